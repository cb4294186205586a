"""The trainer of token classifiers: it learns, what it saves the real llmlingua loads, and a kill costs nothing.

Classifiers here have a few thousand weights and learn a rule that one can check by eye (``toy_pairs``).
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from graphhandoff.compress import llmlingua2
from graphhandoff.compress.checkpoint_card import CheckpointIncompleteError, load_checkpoint_card
from graphhandoff.compress.fields import split_words
from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.llmlingua2 import LLMLingua2, WordLabeller
from graphhandoff.compress.llmlingua_library import load_compressor
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Message
from graphhandoff.configs.loader import ConfigError, validate_config
from graphhandoff.configs.run_directory import OtherRunError
from graphhandoff.eval.cli import main
from graphhandoff.train.checkpoints import DeviceMissingError, NonFiniteError, find_last_whole, is_whole
from graphhandoff.train.encoders import EncoderError, load_encoder
from graphhandoff.train.keep_metrics import score_labels
from graphhandoff.train.keep_pairs import IGNORED, Pair, PairError, build_windows, digest_pairs, read_pairs
from graphhandoff.train.token_classifier import (
    HalfPrecisionError,
    KeepLoss,
    TrainedClassifier,
    WindowDataset,
    build_collator,
    count_steps,
    save_classifier,
    train_token_classifier,
)
from graphhandoff.train.token_classifier_config import OptimisationConfig, TokenClassifierConfig
from tests.tiny_models import save_token_classifier
from tests.toy_pairs import label, make_pairs

TRAIN, VALIDATION = make_pairs(160, seed=1), make_pairs(12, seed=2)
PROSE = "so the customer asks you to exchange 7700112233 in #W4400917, please be nice about the weather and the garden"


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Matrices this small are multiplied no faster by two, which wait for each other on a busy machine."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def configure(folder: Path, **changes: Any) -> TokenClassifierConfig:
    values: dict[str, Any] = {
        "name": "toy",
        "seed": 1,
        "encoder": {"kind": "tiny", "vocab_size": 600, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 32},
        "data": {"seed": 1},
        "runs_directory": str(folder),
    }
    optimisation = {"max_steps": 6, "batch_size": 4, "learning_rate": 0.01, "save_steps": 2, "log_steps": 1}
    values["optimisation"] = {**optimisation, **changes.pop("optimisation", {})}
    return validate_config(TokenClassifierConfig, {**values, **changes}, "test")


def train(config: TokenClassifierConfig, *callbacks: Any, pairs: list[Pair] = TRAIN) -> TrainedClassifier:
    return train_token_classifier(config, pairs, VALIDATION[:2], callbacks=callbacks)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def encode(protocol: LLMLingua2, prose: str = PROSE) -> Message:
    return protocol.encode([Delegation(task_id="t", prose=prose)])[0]


def how_to_get_one(problem: str) -> str:
    return problem


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> TrainedClassifier:
    """A classifier that knows the rule, saved in half precision."""
    folder = tmp_path_factory.mktemp("runs")
    optimisation = {"max_steps": 40, "batch_size": 8, "save_steps": 100}
    config = configure(folder, optimisation=optimisation, save_dtype="float16", rate=0.5)
    return train_token_classifier(config, TRAIN, VALIDATION)


# What it learns


def test_a_rule_is_learnt_within_seconds(learnt: TrainedClassifier) -> None:
    figures: Any = learnt.card.metrics["validation"]
    assert figures["f1"] > 0.9
    assert figures["auc"] > 0.95
    assert figures["keep_share_classifier"] == pytest.approx(figures["keep_share_labels"], abs=0.05)
    assert figures["identifier_recall_at_rate"] > 0.8
    assert json.loads((learnt.folder.parent / "metrics.json").read_text()) == learnt.card.metrics
    log = [json.loads(line) for line in (learnt.folder.parent / "training_log.jsonl").read_text().splitlines()]
    assert log[0]["loss"] > 2 * log[-1]["loss"]


def test_the_protocol_keeps_what_the_rule_keeps(learnt: TrainedClassifier) -> None:
    unprotected = "so the customer talks about a garden hose and would exchange it please, the weather is nice then"
    words = [word.text for word in split_words(unprotected)]
    keep = WordLabeller("llmlingua2", str(learnt.folder), None, "cpu").keep(words, 0.1, [False] * len(words))
    assert keep[words.index("exchange")]
    assert sum(keep) <= 4
    assert find_identifiers(encode(LLMLingua2(model=str(learnt.folder), rate=0.3)).text) == ["7700112233", "#W4400917"]


def test_the_real_library_gives_identifiers_back_uncorrupted(learnt: TrainedClassifier) -> None:
    compressor = load_compressor(str(learnt.folder), None, "cpu", how_to_get_one)
    text = f"{PROSE}, refund to credit_card_331883 or mei.kovacs8232@example.com and say $1,041.50."
    for rate in (1.0, 0.8):
        out = compressor.compress_prompt([text], rate=rate)["compressed_prompt"]
        assert find_identifiers(out) == find_identifiers(text)


def test_half_precision_is_computed_in_single_and_is_finite(learnt: TrainedClassifier) -> None:
    assert {str(weight.dtype) for weight in weights_of(learnt.folder).values()} == {"torch.float16"}
    compressor = load_compressor(str(learnt.folder), None, "cpu", how_to_get_one)
    assert {str(weight.dtype) for weight in compressor.model.parameters()} == {"torch.float32"}
    ids = compressor.tokenizer(PROSE, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        assert compressor.model(input_ids=ids).logits.softmax(-1).isfinite().all()


# What it sees


def test_training_and_inference_see_the_same_windows(
    learnt: TrainedClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    prose = " ".join(f"{PROSE}, {i}7700112233 [SEP] mei.kovacs8232@example.com." for i in range(60))
    words = tuple(word.text for word in split_words(prose))
    labeller = WordLabeller("llmlingua2", str(learnt.folder), None, "cpu")
    labeller.keep(words[:4], 0.5, [False] * 4)
    asked: list[list[int]] = []
    forward = labeller._compressor.model.forward

    def record(input_ids: Any, attention_mask: Any) -> Any:
        asked.extend(ids[mask == 1].tolist() for ids, mask in zip(input_ids, attention_mask, strict=True))
        return forward(input_ids=input_ids, attention_mask=attention_mask)

    monkeypatch.setattr(labeller._compressor.model, "forward", record)
    labeller.keep(words, 0.5, [False] * len(words))
    encoder = load_encoder(configure(Path()).encoder, (word for pair in TRAIN for word in pair.words))
    built = build_windows([Pair(words, label(words))], encoder.tokenizer, encoder.reader, 512)
    assert [window.ids.tolist() for window in built.windows] == asked
    assert len(asked) > 3


@pytest.fixture(scope="module")
def encoder() -> Any:
    return load_encoder(configure(Path()).encoder, (word for pair in TRAIN for word in pair.words))


def test_every_piece_has_its_words_label_and_special_tokens_none(encoder: Any) -> None:
    words = ("please", "cancel", "#W4400917,", "日本", "so")
    (window,) = build_windows([Pair(words, label(words))], encoder.tokenizer, encoder.reader, 512).windows
    pieces = encoder.tokenizer.convert_ids_to_tokens(window.ids.tolist())
    assert pieces == ["[CLS]", *encoder.tokenizer.tokenize("please cancel #W4400917, so"), "[SEP]"]
    by_place = {place: set(window.labels[window.places == place].tolist()) for place in (-1, 0, 1, 2, 4)}
    assert by_place == {-1: {IGNORED}, 0: {0}, 1: {1}, 2: {1}, 4: {0}}
    assert [piece for piece, starts in zip(pieces, window.starts, strict=True) if starts][-3:] == ["#", ",", "so"]


def test_long_texts_are_cut_between_words_and_nothing_is_lost_silently(encoder: Any) -> None:
    words = ("weather", "#W4400917") * 40 + ("7" * 60, "日本")
    built = build_windows([Pair(words, label(words))], encoder.tokenizer, encoder.reader, 34)
    assert all(len(window.ids) <= 34 for window in built.windows)
    seen = [place for window in built.windows for place in dict.fromkeys(window.places[1:-1].tolist())]
    assert seen == list(range(81))
    assert (built.n_words, built.n_long_words, built.n_unknown_words) == (82, 0, 1)
    assert build_windows([Pair(words, label(words))], encoder.tokenizer, encoder.reader, 20).n_long_words == 1


def test_words_that_are_in_no_window_are_reported(tmp_path: Path) -> None:
    pairs = [*TRAIN, Pair(("7" * 900, "so"), (True, False))]
    notices = train(configure(tmp_path, optimisation={"max_steps": 1}), pairs=pairs).notices
    assert any("1 are longer than a window" in notice for notice in notices)


# How it learns


def test_masked_positions_do_not_change_the_loss(encoder: Any) -> None:
    built = build_windows(TRAIN[:3], encoder.tokenizer, encoder.reader, 512)
    batch = build_collator(encoder.tokenizer)([WindowDataset(built)[at] for at in range(3)])
    logits = torch.randn(*batch["labels"].shape, 2)
    loss, masked = KeepLoss(2.0), batch["labels"] == IGNORED
    before = loss(SimpleNamespace(logits=logits), batch["labels"])
    logits[masked] = 1e6
    assert torch.equal(loss(SimpleNamespace(logits=logits), batch["labels"]), before)
    encoder.model.eval()
    with torch.no_grad():
        real = encoder.model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        other_ids = torch.where(batch["attention_mask"] == 0, 7, batch["input_ids"])
        other = encoder.model(input_ids=other_ids, attention_mask=batch["attention_mask"])
    assert loss(real, batch["labels"]).item() == pytest.approx(loss(other, batch["labels"]).item(), abs=1e-6)


def test_a_piece_to_keep_counts_as_often_as_configured() -> None:
    logits, labels = torch.tensor([[[2.0, 0.0], [2.0, 0.0]]]), torch.tensor([[0, 1]])
    right, wrong = math.log1p(math.exp(-2)), math.log1p(math.exp(2))
    weighted = KeepLoss(3.0)(SimpleNamespace(logits=logits), labels).item()
    assert weighted == pytest.approx((right + 3 * wrong) / 4)
    assert KeepLoss(1.0)(SimpleNamespace(logits=logits), labels).item() == pytest.approx((right + wrong) / 2)


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Notes the gradient's norm as the optimizer gets it, and the weights before the first step."""

    def __init__(self) -> None:
        self.norms: list[float] = []
        self.logged: list[float] = []
        self.first: dict[str, torch.Tensor] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.first = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        norms = [weight.grad.norm() for weight in model.parameters() if weight.grad is not None]
        self.norms.append(torch.stack(norms).norm().item())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.logged.extend([logs["grad_norm"]] if "grad_norm" in logs else [])


def test_every_trainable_parameter_moves_and_the_clip_norm_clips(tmp_path: Path) -> None:
    recorder = Recorder()
    trained = train(configure(tmp_path, optimisation={"weight_decay": 0.0, "clip": 0.05}), recorder)
    assert max(recorder.norms) == pytest.approx(0.05, rel=1e-3)
    assert min(recorder.logged) > 0.05
    final = weights_of(trained.folder)
    assert set(final) == set(recorder.first)
    assert [name for name, weight in final.items() if torch.equal(weight, recorder.first[name])] == []


def test_steps_are_those_of_the_epochs_unless_a_number_is_given() -> None:
    assert count_steps(OptimisationConfig(epochs=1.5, batch_size=4), 9) == 5
    assert count_steps(OptimisationConfig(epochs=1.5, batch_size=4, max_steps=2), 9) == 2


# Kills, NaN and repetition


class Killed(Exception):
    pass


class KillAt(TrainerCallback):  # type: ignore[misc]
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise Killed


def test_a_killed_run_resumes_from_its_last_whole_checkpoint_to_the_same_weights(tmp_path: Path) -> None:
    pairs = TRAIN[:12]  # three steps an epoch: the kill is inside the second
    whole = train(configure(tmp_path / "a"), pairs=pairs)
    again = train(configure(tmp_path / "b"), pairs=pairs)
    assert again.card.files == whole.card.files  # equal inputs, equal bytes
    config = configure(tmp_path / "c")
    with pytest.raises(Killed):
        train(config, KillAt(5), pairs=pairs)
    trainer = tmp_path / "c" / "toy" / "trainer"
    assert find_last_whole(trainer) == trainer / "checkpoint-4"
    shutil.copytree(trainer / "checkpoint-4", trainer / "checkpoint-5")  # killed while it was written
    (trainer / "checkpoint-5" / "optimizer.pt").write_bytes(b"half")
    assert not is_whole(trainer / "checkpoint-5")
    resumed = train(config, pairs=pairs)
    assert resumed.notices == ["dropped half-written checkpoint-5", "resumed from checkpoint-4 of 6 steps"]
    assert resumed.card.files == whole.card.files
    assert resumed.card.metrics == whole.card.metrics
    log = (tmp_path / "c" / "toy" / "training_log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [1, 2, 3, 4, 5, 6]


class KillAtTheEnd(TrainerCallback):  # type: ignore[misc]
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        raise Killed


def test_a_run_killed_after_its_last_step_takes_no_step_more(tmp_path: Path) -> None:
    whole = train(configure(tmp_path / "a"))
    with pytest.raises(Killed):
        train(configure(tmp_path / "b"), KillAtTheEnd())
    resumed = train(configure(tmp_path / "b"))
    assert resumed.notices == ["resumed from checkpoint-6 of 6 steps"]
    assert resumed.card.files == whole.card.files
    assert not (tmp_path / "b" / "toy" / "trainer").exists()


class Poison(TrainerCallback):  # type: ignore[misc]
    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if state.global_step == 5:
            with torch.no_grad():
                model.classifier.bias[0] = math.nan


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=r"not finite at step 6; .*trainer/checkpoint-4\. Lower"):
        train(configure(tmp_path), Poison())
    last = find_last_whole(tmp_path / "toy" / "trainer")
    assert last is not None
    assert all(weight.isfinite().all() for weight in weights_of(last).values())
    assert not (tmp_path / "toy" / "checkpoint").exists()
    assert encode(LLMLingua2(model=str(last), rate=0.5)).route == "compressed"


def test_a_finished_run_is_returned_as_it_is_and_other_data_is_refused(tmp_path: Path) -> None:
    config = configure(tmp_path, optimisation={"max_steps": 1})
    first = train(config)
    again = train(config)
    assert again.card == first.card
    assert "finished before" in again.notices[0]
    with pytest.raises(OtherRunError, match=r"data_sha256\.train: "):
        train(config, pairs=TRAIN[1:])


def test_the_callers_random_state_and_flags_are_left_alone(tmp_path: Path) -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    state: Any = np.random.get_state()
    before = random.getstate(), state[1].tolist(), torch.get_rng_state().tolist(), dict(os.environ)
    train(configure(tmp_path, optimisation={"max_steps": 1}))
    state = np.random.get_state()
    after = random.getstate(), state[1].tolist(), torch.get_rng_state().tolist(), dict(os.environ)
    assert before == after
    assert not torch.are_deterministic_algorithms_enabled()


# The checkpoint


def test_the_card_says_what_made_the_checkpoint(learnt: TrainedClassifier) -> None:
    card = load_checkpoint_card(learnt.folder)
    assert card == learnt.card
    assert card.kind == "token_classifier"
    assert card.config["seed"] == 1
    assert card.data_sha256 == {"train": digest_pairs(TRAIN), "validation": digest_pairs(VALIDATION)}
    assert {"commit", "device", "packages", "encoder"} <= set(card.provenance)
    assert set(card.files) >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def _append(folder: Path) -> None:
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b" ")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "checkpoint.json").unlink(), "never finished"),
        (lambda folder: (folder / "checkpoint.json").write_text("{}"), "cannot be read"),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (_append, "model.safetensors has SHA-256"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused(
    learnt: TrainedClassifier, tmp_path: Path, spoil: Callable[[Path], Any], says: str
) -> None:
    folder = shutil.copytree(learnt.folder, tmp_path / "copy")
    spoil(folder)
    with pytest.raises(CheckpointIncompleteError, match=says):
        load_checkpoint_card(folder)


def test_a_message_says_which_weights_wrote_it(learnt: TrainedClassifier, tmp_path: Path) -> None:
    protocol = LLMLingua2(model=str(learnt.folder), rate=0.3)
    sha256 = learnt.card.files["model.safetensors"]
    assert protocol.fingerprint == f"sha256:{sha256}"
    assert encode(protocol).details["weights_sha256"] == sha256
    assert protocol.fingerprint == f"sha256:{sha256}"
    other = shutil.copytree(learnt.folder, tmp_path / "other")
    _append(other)
    assert LLMLingua2(model=str(other)).fingerprint != protocol.fingerprint
    assert LLMLingua2(model=str(tmp_path / "nowhere")).fingerprint is None


def test_the_packaged_checkpoint_is_used_where_none_is_named(
    learnt: TrainedClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llmlingua2, "find_packaged_checkpoint", lambda: str(learnt.folder))
    message = encode(LLMLingua2(rate=0.3))
    assert message.details["model"] == "packaged:llmlingua2_retail_tiny"
    assert message.details["weights_sha256"] == learnt.card.files["model.safetensors"]
    monkeypatch.setattr(llmlingua2, "find_packaged_checkpoint", lambda: None)
    command = r"graphhandoff train token-classifier --config configs/token_classifier/cpu_tiny\.yaml"
    with pytest.raises(CheckpointMissingError, match=command):
        encode(LLMLingua2(rate=0.3))


def test_weights_that_half_precision_cannot_hold_are_refused(encoder: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        before = encoder.model.classifier.bias.clone()
        encoder.model.classifier.bias[0] = 1e6
    with pytest.raises(HalfPrecisionError, match="save_dtype=float32"):
        save_classifier(encoder, tmp_path, "float16")
    with torch.no_grad():
        encoder.model.classifier.bias.copy_(before)


# Encoders, devices, pairs


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta"])
def test_a_pretrained_encoder_of_either_family_trains_and_loads(tmp_path: Path, model_type: Any) -> None:
    from transformers import AutoModelForTokenClassification

    base = save_token_classifier(tmp_path / "base", model_type)
    config = configure(
        tmp_path, encoder={"kind": "pretrained", "model": str(base)}, optimisation={"max_steps": 2}, precision="bf16"
    )
    trained = train(config)
    origin: Any = trained.card.provenance["encoder"]
    assert origin["weights_sha256"] == LLMLingua2(model=str(base)).fingerprint.removeprefix("sha256:")  # type: ignore[union-attr]
    assert AutoModelForTokenClassification.from_pretrained(trained.folder).config.id2label == {0: "drop", 1: "keep"}
    assert encode(LLMLingua2(model=str(trained.folder), rate=0.5)).route == "compressed"


def test_encoders_that_cannot_be_trained_from_are_refused_by_name(tmp_path: Path) -> None:
    def refused(model: str, revision: str | None, says: str) -> None:
        config = configure(tmp_path / says[:4], encoder={"kind": "pretrained", "model": model, "revision": revision})
        with pytest.raises(EncoderError, match=says):
            train(config)

    base = save_token_classifier(tmp_path / "base")
    refused("FacebookAI/xlm-roberta-large", None, "no revision of the hub is given")
    refused("FacebookAI/xlm-roberta-large", "0" * 40, "cannot be loaded")
    settings = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps({**settings, "model_type": "roberta"}))
    refused(str(base), None, "is roberta .*; allowed: bert with 512 or more or xlm-roberta with 514")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceMissingError, match="device cuda is not there; found: cpu"):
        train(configure(tmp_path, device="cuda"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"precision": "fp16"}, "fp16 overflows .*allowed: fp32, bf16"),
        ({"encoder": {"kind": "tiny", "hidden": 16, "heads": 3}}, "encoder: .*hidden 16 is no multiple of heads 3"),
        ({"encoder": {"kind": "tiny", "hiden": 16}}, r"unknown key encoder\.hiden; did you mean hidden\?"),
        ({"encoder": {"kind": "pretrained"}}, r"missing key encoder\.model"),
        ({"encoder": {"kind": "tiny", "max_position_embeddings": 128}}, "512"),
        ({"optimisation": {"clip": 0.0}}, "optimisation.clip"),
        ({"data": {}}, r"missing key data\.seed"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_before_anything_loads(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        configure(tmp_path, **changes)


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([], "no train pairs"),
        ([Pair(("a", "b"), (True,))], "train pair 0 has 2 words and 1 labels"),
        ([TRAIN[0], Pair(("a b",), (True,))], "train pair 1 has the word 'a b'"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(tmp_path: Path, pairs: list[Pair], says: str) -> None:
    with pytest.raises(PairError, match=says):
        train(configure(tmp_path), pairs=pairs)


def write_pairs(path: Path) -> Path:
    rows = [
        {"words": list(pair.words), "keep": list(pair.keep), "split": split}
        for split, pairs in (("train", TRAIN[:8]), ("validation", VALIDATION[:2]))
        for pair in pairs
    ]
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_pairs_are_read_from_files(tmp_path: Path, suffix: str) -> None:
    sets = read_pairs(write_pairs(tmp_path / f"pairs.{suffix}"))
    assert (sets.train, sets.validation) == (tuple(TRAIN[:8]), tuple(VALIDATION[:2]))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"words": ["a"], "keep": [true]}', "row 1: no 'split'"),
        ('{"words": ["a"], "keep": [1], "split": "train"}', "keep must be true or false"),
        ('{"words": ["a"], "keep": [true], "split": "dev"}', "row 1: no 'dev'"),
        ("{", "row 1: "),
    ],
)
def test_a_row_that_is_no_pair_is_named(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "pairs.jsonl").write_text(line)
    with pytest.raises(PairError, match=says):
        read_pairs(tmp_path / "pairs.jsonl")
    with pytest.raises(PairError, match="does not exist"):
        read_pairs(tmp_path / "nowhere.jsonl")


def test_figures_of_a_classifier_that_keeps_nothing_or_everything_are_numbers() -> None:
    pairs = [Pair(("a", "b"), (True, False))]
    assert score_labels(pairs, [np.array([0.1, 0.1])])["f1"] == 0.0
    assert score_labels(pairs, [np.array([0.9, 0.8])])["precision"] == 0.5
    assert score_labels([Pair(("a",), (True,))], [np.array([0.9])])["auc"] is None


# The command line


def command(folder: Path, pairs: Path, *overrides: str) -> list[str]:
    sizes = "encoder={kind: tiny, vocab_size: 600, hidden: 16, layers: 1, heads: 2, intermediate: 32}"
    values = (sizes, f"runs_directory={folder}", "name=cli", f"data.path={pairs}", *overrides)
    options = [part for value in values for part in ("--set", value)]
    return ["train", "token-classifier", "--config", "configs/token_classifier/cpu_tiny.yaml", *options]


def test_the_command_trains_and_says_where_the_checkpoint_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl")
    assert main(command(tmp_path, pairs, "optimisation.max_steps=2", "wandb.mode=offline")) == 0
    out, err = capsys.readouterr()
    assert f"--set protocols.llmlingua2.model={tmp_path}/cli/checkpoint" in out
    assert "W&B: logged offline" in err.replace("\n", " ")
    assert load_checkpoint_card(tmp_path / "cli" / "checkpoint").config["save_dtype"] == "float16"


def test_the_command_exits_with_one_where_training_stops_and_two_where_there_are_no_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl")
    assert main(command(tmp_path, pairs, "optimisation.max_steps=9", "optimisation.learning_rate=1.0e+30")) == 1
    assert "not finite" in capsys.readouterr().err
    assert main(command(tmp_path, tmp_path / "none.jsonl")) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_killed_by_the_system_resumes(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl")
    arguments = command(tmp_path, pairs, "optimisation.max_steps=400", "optimisation.save_steps=20")
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "graphhandoff.eval.cli", *arguments],
        env={**os.environ, "PYTHONPATH": f"{root}:{root / '.typing'}"},
        stderr=subprocess.DEVNULL,
    )
    trainer = tmp_path / "cli" / "trainer"
    end = time.monotonic() + 120
    while find_last_whole(trainer) is None:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cli" / "checkpoint").exists()
    assert main(arguments) == 0
    assert load_checkpoint_card(tmp_path / "cli" / "checkpoint").metrics["train"]["n_steps"] == 400  # type: ignore[index,call-overload]
