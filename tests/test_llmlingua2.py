"""LLMLingua-2 through the real library: both families it knows, what it does to the process, and its limits.

The small inputs that every protocol must stand are in ``test_llmlingua.py``; here is what only this one can get wrong.
The classifiers have random weights and so keep random words: what is tested must hold whatever a classifier says.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiktoken
import torch

from graphhandoff.compress.fields import join_words, must_stay, split_words
from graphhandoff.compress.identifiers import find_identifiers
from graphhandoff.compress.llmlingua2 import LLMLingua2, WordLabeller
from graphhandoff.compress.llmlingua_library import UnsupportedModelError
from graphhandoff.compress.protocol import CheckpointMissingError, Delegation, Message, Protocol
from graphhandoff.compress.wire import parse
from tests.tiny_models import TEXTS, save_token_classifier

FILLER = "the customer talks about the weather and the garden hose "


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder under the name by which the library itself would know the family."""
    return save_token_classifier(tmp_path_factory.mktemp("model") / "bert-base-multilingual-cased")


@pytest.fixture(scope="module")
def xlm_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_token_classifier(tmp_path_factory.mktemp("model") / "a folder of ours", "xlm-roberta")


@pytest.fixture(scope="module", params=["bert", "xlm_roberta"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return LLMLingua2(model=str(request.getfixturevalue(request.param)), rate=0.3)


def encode(protocol: Protocol, prose: str, graph: Any = None) -> Message:
    return protocol.encode([Delegation(task_id="t", prose=prose, graph=graph)])[0]


def random_state() -> tuple[Any, ...]:
    numpy_state: Any = np.random.get_state()
    return random.getstate(), numpy_state[1].tolist(), numpy_state[2:], torch.get_rng_state().tolist()


def test_the_folders_name_does_not_matter(bert: Path, tmp_path: Path) -> None:
    other = shutil.copytree(bert, tmp_path / "xlm-roberta-large, or so it says")
    texts = {encode(LLMLingua2(model=str(folder), rate=0.5), TEXTS).text for folder in (bert, other)}
    assert len(texts) == 1


def test_ids_cross_byte_for_byte_and_in_order_among_compressed_words(protocol: Protocol) -> None:
    prose = f"{FILLER * 3}Exchange 7700112233 in #W4400917 for 7700445566, {FILLER}refund credit_card_331883. {FILLER}"
    message = encode(protocol, prose)
    assert find_identifiers(message.text) == find_identifiers(prose)
    assert message.route == "compressed"
    assert message.fallback is None
    assert message.n_tokens < message.n_prose_tokens


def test_words_that_turn_the_meaning_round_stay(protocol: Protocol) -> None:
    prose = f"{FILLER * 4}Only act before noon, not after, unless she is out; if so, call instead. {FILLER}"
    kept = encode(protocol, prose).text
    for word in ("Only", "before", "not", "after,", "unless", "if", "instead."):
        assert word in kept.split()


def test_an_exception_stays_where_punctuation_joins_it_to_another_word(protocol: Protocol) -> None:
    kept = encode(
        protocol, f"{FILLER * 4}Return everything—except the tablet. Do so if/unless asked (not/never). "
    ).text
    assert "except the tablet" in kept
    assert {"if", "unless", "not", "never"} <= set(kept.replace("/", " ").replace("(", " ").replace(")", " ").split())


def test_a_long_text_without_full_stops_is_met_at_its_rate_by_both_families(protocol: Protocol) -> None:
    prose = f"#W4400917 {FILLER * 100} 7700112233 {FILLER * 100} credit_card_331883"
    message = encode(protocol, prose)
    assert find_identifiers(message.text) == ["#W4400917", "7700112233", "credit_card_331883"]
    assert float(str(message.details["rate_achieved"])) == pytest.approx(0.3, abs=0.15)


def test_a_word_longer_than_the_model_sees_is_not_cut(protocol: Protocol) -> None:
    long_word = "ab-" * 1000
    assert long_word in encode(protocol, f"{FILLER} {long_word} {FILLER}").text


@pytest.mark.parametrize("mark", ["[SEP]", "</s>word", "<s>", "<pad>", "[PAD]", "[NEW3]", "[NEW3]word", "<mask>"])
def test_special_tokens_in_the_text_are_plain_text(protocol: Protocol, mark: str) -> None:
    prose = f"{mark} {FILLER} {mark} #W4400917 {mark} {FILLER}{mark}"
    message = encode(protocol, prose)
    assert find_identifiers(message.text) == ["#W4400917"]
    assert {word.text for word in split_words(message.text)} <= {word.text for word in split_words(prose)}
    assert float(str(message.details["rate_achieved"])) < 0.8  # labels met their words


def test_labelling_leaves_the_callers_random_state_alone(protocol: Protocol) -> None:
    encode(protocol, TEXTS)  # loaded: what follows is labelling, where every DataLoader would draw a seed
    before = random_state()
    message = encode(protocol, FILLER * 3)
    assert 0 < float(str(message.details["rate_achieved"])) < 1
    assert random_state() == before


def test_loading_leaves_the_process_as_it_was(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before, encoding_for_model = random_state(), tiktoken.encoding_for_model
    first = encode(LLMLingua2(model=str(bert)), FILLER * 3)
    assert random_state() == before
    assert os.environ["PYTHONHASHSEED"] == "7"
    assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.deterministic
    assert tiktoken.encoding_for_model is encoding_for_model
    torch.manual_seed(2)
    assert encode(LLMLingua2(model=str(bert)), FILLER * 3) == first


def test_a_failed_load_leaves_the_process_as_it_was(bert: Path, tmp_path: Path) -> None:
    (shutil.copytree(bert, tmp_path / "m") / "model.safetensors").unlink()
    before, encoding_for_model = random_state(), tiktoken.encoding_for_model
    with pytest.raises(CheckpointMissingError):
        encode(LLMLingua2(model=str(tmp_path / "m")), FILLER)
    assert random_state() == before
    assert tiktoken.encoding_for_model is encoding_for_model


def test_nothing_is_loaded_before_the_first_use() -> None:
    code = (
        "import sys; from graphhandoff.compress.hybrid import Hybrid; Hybrid(model='x');"
        "assert not {'torch', 'transformers', 'numpy', 'llmlingua'} & set(sys.modules)"
    )
    path = os.pathsep.join(str(Path(__file__).parents[1] / name) for name in ("", ".typing"))
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path})


def test_more_protected_words_than_the_rate_allows_are_all_kept(bert: Path) -> None:
    prose = "Only #W1 #W2 #W3 #W4 #W5 #W6 before #W7, never the garden hose."
    message = encode(LLMLingua2(model=str(bert), rate=0.1), prose)
    assert find_identifiers(message.text) == find_identifiers(prose)
    assert message.details["rate_asked"] == 0.1
    assert float(str(message.details["rate_achieved"])) > 0.5


def test_a_rate_that_is_all_but_spent_on_protected_words_is_no_error(bert: Path) -> None:
    protected = [True] * 7 + [False] * 18
    # 0.28 * 25 is 7.000000000000001: the library would ask numpy for the 101st percentile.
    keep = WordLabeller("llmlingua2", str(bert), None, "cpu").keep(["garden"] * 25, 0.28, protected)
    assert keep == protected


def test_a_rate_of_one_keeps_every_word(protocol: Protocol, bert: Path) -> None:
    message = encode(LLMLingua2(model=str(bert), rate=1.0), TEXTS)
    assert (message.text, message.details["rate_achieved"]) == (TEXTS, 1.0)


def test_where_the_classifier_keeps_nothing_the_prose_is_sent_and_the_message_says_so(
    bert: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(bert, tmp_path / "undecided")
    weights = load_file(folder / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        weights[name].zero_()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    message = encode(LLMLingua2(model=str(folder), threshold=0.5), FILLER)
    assert (message.text, message.route) == (FILLER, "natural_language")
    assert message.fallback == "the classifier kept no word"
    assert message.details["rate_achieved"] == 0.0


def test_a_graph_without_prose_gives_an_empty_message(protocol: Protocol) -> None:
    graph = parse(
        'cancel_pending_order #W1 "no longer needed"', "compact", {"cancel_pending_order": ("order_id", "reason")}
    )
    assert encode(protocol, " \n", graph).text.strip() == ""


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _cut(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.truncate(500)


@pytest.mark.parametrize(
    "spoil",
    [_without("config.json"), _without("tokenizer.json"), _without("model.safetensors"), _cut],
    ids=["no config", "no tokenizer", "no weights", "half the weights"],
)
def test_a_folder_that_is_not_whole_names_what_brings_one(
    bert: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(bert, tmp_path / "model")
    spoil(folder)
    with pytest.raises(CheckpointMissingError, match=r"is not a whole model .*--set protocols\.llmlingua2\.model="):
        encode(LLMLingua2(model=str(folder)), FILLER)


def test_a_pickle_is_not_loaded(bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = shutil.copytree(bert, tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointMissingError, match="is not a whole model"):
        encode(LLMLingua2(model=str(folder)), FILLER)


def test_code_beside_a_model_is_not_run(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoConfig": "code.Config"}}))
    (folder / "code.py").write_text("raise RuntimeError('this was run')")
    assert encode(LLMLingua2(model=str(folder)), FILLER * 3).route == "compressed"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "allowed: a token classifier of bert or xlm-roberta"),
        ({"model_type": "roberta"}, "is roberta .*; allowed: a token classifier of bert or xlm-roberta"),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, "has 3 classes .*allowed: 2 classes"),
        ({"max_position_embeddings": 128}, "128 positions; allowed: .* 512 positions"),
    ],
)
def test_a_model_that_the_library_would_misuse_is_refused_by_name(
    bert: Path, tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    config = json.loads((bert / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(UnsupportedModelError, match=problem):
        encode(LLMLingua2(model=str(tmp_path)), FILLER)


def test_settings_that_cannot_work_are_refused_before_anything_loads() -> None:
    with pytest.raises(ValueError, match="rate must be over 0 and at most 1, got 0"):
        LLMLingua2(rate=0.0)
    with pytest.raises(ValueError, match="threshold must be between 0 and 1, got 1"):
        LLMLingua2(threshold=1.0)
    with pytest.raises(ValueError, match=r"give a rate or a threshold, got rate 0\.3 and threshold 0\.3"):
        LLMLingua2(rate=0.3, threshold=0.3)
    with pytest.raises(ValueError, match="unknown device 'gpu'; allowed: cpu, mps, cuda"):
        LLMLingua2(device="gpu")


def test_words_are_joined_as_they_stood_and_never_grow_together() -> None:
    text = "all—except one/two http://a.b/c #W1—no"
    words = split_words(text)
    assert [word.text for word in words] == ["all—", "except", "one/", "two", "http://a.b/c", "#W1—", "no"]
    assert join_words(words, [True] * 7) == text
    assert join_words(words, [False, True, True, False, True, False, True]) == "except one/ http://a.b/c no"
    assert join_words(words, [True, False, False, True, False, True, True]) == "all— two #W1—no"
    assert join_words(words, [False] * 7) == ""


def test_what_no_classifier_may_drop() -> None:
    words = split_words("She shouldn’t pay, can't, wouldn't; 请不要取消 กรุณาอย่ายกเลิก before jo_lee_12 comes")
    kept = [word.text for word, stays in zip(words, must_stay(words), strict=True) if stays]
    assert kept == ["shouldn’t", "can't,", "wouldn't;", "请不要取消", "กรุณาอย่ายกเลิก", "before", "jo_lee_12"]
