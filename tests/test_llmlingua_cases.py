"""LLMLingua-2 and the hybrid through the real library, on a tiny classifier of random weights.

Random weights keep random words: what is tested is what must hold whatever the classifier says.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphhandoff.compress.fields import extract_fields
from graphhandoff.compress.graph import HandoffGraph
from graphhandoff.compress.hybrid import Hybrid
from graphhandoff.compress.identifiers import find_identifiers, find_lost_identifiers
from graphhandoff.compress.llmlingua2 import LLMLingua2
from graphhandoff.compress.llmlingua_library import UnsupportedModelError
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Message, Protocol
from tests.tiny_models import TEXTS, save_token_classifier

PROSE = "Exchange 7700112233 in order #W4400917 for 7700445566, refund to credit_card_331883."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_token_classifier(tmp_path_factory.mktemp("model") / "any-name-will-do")


@pytest.fixture(scope="module", params=[LLMLingua2, Hybrid], ids=["llmlingua2", "hybrid"])
def protocol(request: pytest.FixtureRequest, model: Path) -> Protocol:
    protocol: Protocol = request.param(model=str(model), rate=0.3)
    return protocol


def encode(protocol: Protocol, prose: str) -> Message:
    return protocol.encode([Delegation(task_id="t", prose=prose)])[0]


def test_all_four_ids_cross_byte_for_byte_and_in_order(protocol: Protocol) -> None:
    message = encode(protocol, PROSE)
    assert find_identifiers(message.text) == ["7700112233", "#W4400917", "7700445566", "credit_card_331883"]
    assert message.fallback is None


def test_an_order_id_survives_among_many_bare_numbers(protocol: Protocol) -> None:
    assert "#W4400917" in encode(protocol, " ".join(map(str, range(10, 50))) + " #W4400917").text


def test_a_hundred_and_thirty_item_ids_are_no_assertion(protocol: Protocol) -> None:
    ids = [str(7_700_000_000 + 7 * i) for i in range(130)]
    assert find_lost_identifiers(ids, encode(protocol, "Return all of: " + ", ".join(ids) + ".").text) == ()


@pytest.mark.parametrize(
    ("prose", "flag"), [("", "empty"), (" \n", "empty"), ("ok", "too_short"), ("the of and", "too_short")]
)
def test_nothing_and_next_to_nothing_are_flagged(protocol: Protocol, prose: str, flag: str) -> None:
    message = encode(protocol, prose)
    assert message.flags == (flag,)
    assert message.text == prose.strip()


def test_a_long_text_without_full_stops_keeps_its_ids(protocol: Protocol) -> None:
    filler = "the customer talks about the weather and the garden hose " * 1300
    prose = f"#W4400917 {filler} 7700112233 {filler} credit_card_331883"
    start = time.perf_counter()
    message = encode(protocol, prose)
    assert time.perf_counter() - start < 30
    assert message.n_prose_tokens > 25_000
    assert find_lost_identifiers(["#W4400917", "7700112233", "credit_card_331883"], message.text) == ()
    assert 0.15 < float(str(message.details["rate_achieved"])) < 0.45


@pytest.mark.parametrize("mark", ["<|endoftext|>", "<|im_end|>", "</s>", "[SEP]", "[PAD]", "[NEW3]", "###STOP###"])
def test_special_strings_are_plain_text(protocol: Protocol, mark: str) -> None:
    message = encode(protocol, f"Cancel order #W4400917 please {mark} and refund credit_card_331883 by today {mark}")
    assert find_lost_identifiers(["#W4400917", "credit_card_331883"], message.text) == ()


def test_other_scripts_stay_valid(protocol: Protocol) -> None:
    message = encode(protocol, "请取消订单#W4400917，谢谢🙂。 Réserver e\u0301 العنصر 7700112233 الآن من فضلك.")
    message.text.encode("utf-8")
    assert find_lost_identifiers(["#W4400917", "7700112233"], message.text) == ()


def test_the_exception_stays(protocol: Protocol) -> None:
    text = encode(protocol, "Please return everything *except* the tablet from the delivered order #W4400917.").text
    assert "*except* the tablet" in text


def test_the_rate_is_met_and_recorded(model: Path) -> None:
    prose = " ".join([TEXTS] * 4)
    kept = {}
    for rate in (0.3, 0.6, 0.9):
        message = encode(LLMLingua2(model=str(model), rate=rate), prose)
        assert message.details["rate_asked"] == rate
        kept[rate] = float(str(message.details["rate_achieved"]))
        assert kept[rate] == pytest.approx(rate, abs=0.2)
    assert kept[0.3] < kept[0.6] < kept[0.9]


def test_kept_words_are_the_proses_own_in_its_order(model: Path) -> None:
    words = iter(word.rstrip(".,") for word in TEXTS.split())  # a sentence keeps its end mark, on its last kept word
    for word in encode(LLMLingua2(model=str(model), rate=0.5), TEXTS).text.split():
        assert word.rstrip(".,") in words


def test_loading_and_running_leave_the_callers_random_state_alone(model: Path) -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before: Any = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index,union-attr]
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    hash_seed = os.environ.get("PYTHONHASHSEED")
    encode(LLMLingua2(model=str(model)), PROSE)
    after: Any = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index,union-attr]
    assert before == after
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == flags
    assert os.environ.get("PYTHONHASHSEED") == hash_seed


@pytest.mark.parametrize("make", [LLMLingua2, Hybrid])
def test_a_missing_model_names_what_brings_one(
    make: Callable[..., Protocol], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphhandoff.compress.llmlingua2.find_packaged_checkpoint", lambda: None)
    for name in (None, str(tmp_path / "nowhere"), "microsoft/llmlingua-2-xlm-roberta-large-meetingbank"):
        protocol = make(model=name)
        with pytest.raises(CheckpointMissingError, match=rf"--set protocols\.{protocol.id}\.model="):
            encode(protocol, PROSE)


def test_a_model_of_another_family_is_refused_by_name(model: Path, tmp_path: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    with pytest.raises(UnsupportedModelError, match="allowed: a token classifier of bert or xlm-roberta"):
        encode(LLMLingua2(model=str(tmp_path)), PROSE)


def test_fields_keep_operations_with_their_ids_in_order() -> None:
    sentence = 'You are to exchange 7700000009 (blue) for 7700000001 in #W44, reason "no longer needed", not #W45.'
    fields, others = extract_fields(sentence)
    assert " ".join(fields).startswith("to exchange 7700000009")
    assert find_identifiers(" ".join(fields)) == ["7700000009", "7700000001", "#W44", "#W45"]
    assert '"no longer needed",' in " ".join(fields)
    assert "for" in fields
    assert "(blue)" in others
    assert sorted([*fields, *others]) == sorted(sentence.split())


def test_equal_ids_and_pairs_keep_their_order(protocol: Protocol) -> None:
    prose = (
        "Exchange 7700000009 and 7700000009 and 7700000001 for 7700000005 and 7700000002 and 7700000005 in #W4400917."
    )
    assert find_identifiers(encode(protocol, prose).text) == find_identifiers(prose)


def test_an_empty_prose_beside_a_graph_is_told(protocol: Protocol) -> None:
    graph = HandoffGraph.build([{"id": "1", "type": "tool_call", "tool": "transfer_to_human_agents"}], [])
    for prose in ("", "  \n "):
        (message,) = protocol.encode([Delegation(task_id="t", prose=prose, graph=graph)])
        assert (message.route, message.fallback, message.text) == ("natural_language", "the prose is empty", prose)
