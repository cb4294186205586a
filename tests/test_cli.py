"""The command line as a user meets it: results on standard output, mistakes answered with exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.protocol import PROTOCOL_IDS, Message
from graphhandoff.compress.schema import build_tool_input_schema
from graphhandoff.compress.wire import write_json
from graphhandoff.eval.cli import VERBS, main

HANDOFF = "Exchange 7700112233 in order #W4400917 for 7700445566, refund to credit_card_331883."


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_lists_every_verb_with_its_module(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("--help", capsys=capsys)
    assert code == 0
    for name, verb in VERBS.items():
        assert name in out
        assert verb.module in out


def test_an_unknown_verb_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("compar", capsys=capsys)
    assert code == 2
    assert "did you mean compare?" in err


@pytest.mark.parametrize("protocol", ["natural_language", "routed_ngh", "predictive_delta", "tfidf"])
def test_encode_prints_the_message_and_what_it_cost(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text(HANDOFF)
    code, out, err = run("encode", "--protocol", protocol, "--file", str(tmp_path / "x"), capsys=capsys)
    assert code == 0
    for identifier in ("7700112233", "#W4400917", "7700445566", "credit_card_331883"):
        assert identifier in out
    assert "identifiers 4 of 4" in err
    assert "cl100k_base tokens" in err


def test_encode_of_a_reference_task_is_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("encode", "--protocol", "routed_ngh", "--task", "9", "--json", capsys=capsys)
    assert code == 0
    message = Message.model_validate_json(out)
    assert message.route == "graph"
    assert message.compression > 2


@pytest.mark.parametrize("protocol", ["qwen_emitter", "t5_autoencoder", "hybrid", "llmlingua2"])
def test_a_protocol_without_its_checkpoint_names_the_command_that_makes_it(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text(HANDOFF)
    elsewhere = [] if protocol in ("qwen_emitter", "t5_autoencoder") else ["--set", f"model={tmp_path / 'nowhere'}"]
    code, out, err = run("encode", "--protocol", protocol, "--file", str(tmp_path / "x"), *elsewhere, capsys=capsys)
    assert code == 2
    assert out == ""
    assert "graphhandoff train" in err or "--set" in err


@pytest.mark.parametrize("protocol", ["hybrid", "llmlingua2"])
def test_the_llmlingua_rows_work_out_of_the_box(protocol: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("encode", "--protocol", protocol, "--task", "9", "--json", capsys=capsys)
    assert code == 0
    message = Message.model_validate_json(out)
    assert message.details["model"] == "packaged:llmlingua2_retail_tiny"
    assert (message.route, message.identifiers_lost, message.fallback) == ("compressed", (), None)
    assert message.compression > 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["encode", "--protocol", "fax", "--file", "x"], "unknown protocol 'fax'; allowed: natural_language"),
        (["encode", "--protocol", "tfidf", "--file", "nowhere"], "nowhere"),
        (["encode", "--protocol", "tfidf"], "either --file or --task"),
        (["encode", "--protocol", "tfidf", "--task", "0"], "no pinned delegation for tasks 0"),
        (["encode", "--protocol", "tfidf", "--task", "9", "--set", "rat=1"], "did you mean rate?"),
        (["encode", "--protocol", "tfidf", "--task", "9", "--tokenizer", "morse"], "unknown tokenizer 'morse'"),
        (["tasks", "999"], "unknown task '999'"),
        (["tasks", "--split", "nowhere"], "retail_pinned_50"),
        (["compare", "--config", "nowhere.yaml"], "no configuration file nowhere.yaml"),
        (["compare", "--config", "configs/compare/plan_track.yaml", "--set", "sed=1"], "did you mean seed?"),
        (["compare", "--config", "configs/compare/plan_track.yaml", "--set", "split=nowhere"], "retail_pinned_50"),
        (["schema", "--form", "telegram"], "telegram"),
    ],
)
def test_a_users_mistake_exits_with_2_and_says_what_is_allowed(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert says in " ".join(err.split())
    assert "Traceback" not in err


def test_a_corrupt_record_stops_the_run_by_name_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["compare", "--config", "configs/compare/plan_track.yaml", "--set", "n_resamples=100"]
    for row in ("qwen_emitter", "t5_autoencoder", "hybrid", "llmlingua2", "tfidf", "predictive_delta"):
        command += ["--set", f"protocols.{row}="]
    assert run(*command, capsys=capsys)[0] == 0
    path = tmp_path / "runs" / "plan_track" / "trials.jsonl"
    whole = path.read_text()
    path.write_text(whole.replace('"status":"scored"', '"status":"guessed"', 1))
    code, _, err = run(*command, capsys=capsys)
    assert code == 2
    assert "CorruptRecordsError" in err
    assert "line 1: status" in err
    assert path.read_text().count("\n") == whole.count("\n")
    code, _, err = run(*command, "--set", "seed=2", capsys=capsys)
    assert code == 2
    assert "seed: 20260825 -> 2" in err


def test_text_that_is_no_utf8_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(b"caf\xe9 #W4400917")
    code, _, err = run("encode", "--protocol", "tfidf", "--file", str(tmp_path / "x"), capsys=capsys)
    assert code == 2
    assert "not UTF-8 text (byte 3)" in err


def test_a_byte_order_mark_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbf" + HANDOFF.encode())
    assert (
        run("encode", "--protocol", "natural_language", "--file", str(tmp_path / "x"), capsys=capsys)[1]
        == HANDOFF + "\n"
    )


def test_tasks_lists_all_and_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("tasks", "--json", capsys=capsys)
    assert code == 0
    assert len(out.splitlines()) == 114
    code, out, _ = run("tasks", capsys=capsys)
    assert "114 tau2-retail tasks" in out
    code, out, _ = run("tasks", "9", capsys=capsys)
    assert "exchange_delivered_order_items" in out
    assert "delegation as graph" in out


def test_the_schema_takes_every_flat_graph_and_keeps_to_portable_keywords(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("schema", capsys=capsys)
    schema = json.loads(out)
    assert code == 0
    assert schema == build_tool_input_schema()
    graph = HandoffGraph.build(
        [
            {"id": "1", "type": "goal", "text": "cancel"},
            {"id": "2", "type": "tool_call", "tool": "cancel"},
            {"id": "3", "type": "tool_arg", "name": "ids", "value": ["01", "01"]},
        ],
        [{"src": "3", "dst": "2", "relation": "targets"}],
    )
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(write_json(graph)))
    for wrong in (
        {"nodes": []},
        {"nodes": [{"id": "1", "type": "wish", "text": "x"}], "edges": []},
        {"nodes": [{"id": "1", "type": "goal", "text": "x", "note": 1}], "edges": []},
        {"nodes": [], "edges": [{"src": "1", "dst": "2", "relation": "after"}]},
    ):
        assert not validator.is_valid(wrong)
    assert keywords_in(schema) <= {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum"}


def keywords_in(schema: object) -> set[str]:
    found: set[str] = set()
    if isinstance(schema, dict):
        for key, value in schema.items():
            found.add(key)
            inner = value.values() if key == "properties" else [value]
            for item in inner:
                found |= keywords_in(item)
    elif isinstance(schema, list):
        for item in schema:
            found |= keywords_in(item)
    return found


def test_the_schema_comes_wrapped_for_providers_and_with_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("schema", "--form", "openai", "--tools", "retail", capsys=capsys)
    tool = json.loads(out)
    assert tool["function"]["strict"] is True
    assert "cancel_pending_order" in json.dumps(tool)
    _, out, _ = run("schema", "--form", "anthropic", capsys=capsys)
    assert json.loads(out)["input_schema"]["type"] == "object"


@pytest.mark.slow
def test_weights_and_biases_without_a_key_neither_blocks_nor_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphhandoff.eval.cli", "compare", "--config", "configs/compare/plan_track.yaml"]
    for mode in ("offline", "online"):
        environment = {key: value for key, value in os.environ.items() if "WANDB" not in key}
        done = subprocess.run(
            [*command, "--set", f"name={mode}", "--set", f"wandb.mode={mode}"],
            cwd=tmp_path,
            env={**environment, "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert "W&B: logged offline" in done.stderr
        (folder,) = (tmp_path / "runs" / mode / "wandb").glob("offline-run-*")
        (log,) = folder.glob("*.wandb")
        for logged in (b"routed_ngh/success_rate", b"tfidf/compression", b"do_nothing/ci_low", b"n_resamples"):
            assert logged in log.read_bytes()
        assert list(folder.glob("files/media/table/*.table.json"))
        assert (tmp_path / "runs" / mode / "table.md").exists()


def test_protocol_ids_are_the_tables_rows() -> None:
    from graphhandoff.eval.paper import PAPER_TABLE_2

    assert set(PAPER_TABLE_2) == set(PROTOCOL_IDS)
