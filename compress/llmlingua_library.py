"""Loads llmlingua 0.2.2's ``PromptCompressor`` so that it neither downloads, seeds, nor loads what it would misuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphhandoff.compress.checkpoint_card import CARD_NAME
from graphhandoff.compress.protocol import CheckpointMissingError
from graphhandoff.compress.tokens import DEFAULT_TOKENIZER, load_encoding

FAMILY_OF_MODEL_TYPE = {"bert": "bert-base-multilingual-cased", "xlm-roberta": "xlm-roberta-large"}
"""llmlingua 0.2.2 tells families apart by a substring of the model's path; we look at the model's own config."""

LEAST_POSITIONS = {"bert": 512, "xlm-roberta": 514}
"""The library pads every input to 512; XLM-RoBERTa counts positions from 2."""

PACKAGED = "llmlingua2_retail_tiny"
"""The checkpoint that comes with the package, used where none is named."""

_BATCH = 8  # of 512 tokens, to which the library pads every chunk: bounds memory for long texts


class UnsupportedModelError(ValueError):
    """The model is no token classifier of a family that llmlingua supports."""


def find_packaged_checkpoint() -> str | None:
    """Return the folder of the checkpoint that comes with the package, ``None`` if this version has none."""
    folder = files("graphhandoff.compress") / "checkpoints" / PACKAGED
    return str(folder) if (folder / CARD_NAME).is_file() else None


def load_compressor(model: str, revision: str | None, device: str, explain: Callable[[str], str]) -> Any:
    """Load llmlingua's ``PromptCompressor`` without network for local folders; call it with the random state fenced.

    Raises:
        CheckpointMissingError: the model cannot be found or fetched, or its folder is not whole.
        UnsupportedModelError: its family is none that llmlingua supports, or it is no classifier of two classes.
    """
    from safetensors import SafetensorError
    from transformers import AutoConfig

    pinned = {"revision": revision} if revision else {}
    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False, **pinned)
        _check_family(model, config)
        with _library_tamed() as prompt_compressor:
            compressor = prompt_compressor(
                model_name=model,
                device_map=device,
                # A fresh dict: the library changes it. No pickles, and no code from the hub.
                model_config={"trust_remote_code": False, "use_safetensors": True, **pinned},
                use_llmlingua2=True,
                llmlingua2_config={"max_batch_size": _BATCH},
            )
    except UnsupportedModelError:
        raise
    except (OSError, ValueError, SafetensorError) as error:
        where = "is not a whole model" if Path(model).is_dir() else "cannot be found or fetched"
        # Not on the hub, and not in a folder: the hub's complaint about the form of its ids explains nothing.
        if isinstance(error, OSError) and "Repo id must be" in str(error):
            raise CheckpointMissingError(explain(f"there is no folder {model!r}, and no such model")) from error
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        raise CheckpointMissingError(explain(f"{model!r} {where} ({why})")) from error
    compressor.model_name = FAMILY_OF_MODEL_TYPE[config.model_type]
    # Weights saved in half precision are computed in single on every device: a row does not depend on where it ran.
    compressor.model.float().eval()
    return compressor


def _check_family(model: str, config: Any) -> None:
    architectures = ", ".join(config.architectures or ("no architecture",))
    if config.model_type not in FAMILY_OF_MODEL_TYPE or "ForTokenClassification" not in architectures:
        raise UnsupportedModelError(
            f"{model!r} is {config.model_type} {architectures}; allowed: a token classifier of "
            f"{' or '.join(FAMILY_OF_MODEL_TYPE)}. Choose an LLMLingua-2 model"
        )
    # The library would put random weights in place of a head that does not fit, without a word.
    least = LEAST_POSITIONS[config.model_type]
    if config.num_labels != 2 or config.max_position_embeddings < least:
        raise UnsupportedModelError(
            f"{model!r} has {config.num_labels} classes and {config.max_position_embeddings} positions; allowed: "
            f"2 classes (drop, keep) and {least} positions or more. Choose an LLMLingua-2 model"
        )


class _PlainEncoding:
    """What llmlingua counts with: its own ``encode`` raises on text such as ``<|endoftext|>``."""

    def encode(self, text: str) -> list[int]:
        return load_encoding(DEFAULT_TOKENIZER).encode_ordinary(text)


@contextmanager
def _library_tamed() -> Iterator[Any]:
    """Lend llmlingua 0.2.2's ``PromptCompressor`` so that constructing it neither downloads nor seeds.

    Its constructor fetches a tiktoken file; and ``seed_everything(42)`` seeds random, numpy, torch and (even before
    CUDA is up) every GPU, sets PYTHONHASHSEED and turns cuDNN's benchmarking off.
    """
    import tiktoken
    from llmlingua import prompt_compressor as library
    from transformers.utils import logging

    encoding_for_model, seed_everything = tiktoken.encoding_for_model, library.seed_everything
    verbosity, showed_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # it announces every special token that the library adds
    logging.disable_progress_bar()
    tiktoken.encoding_for_model = lambda _name: _PlainEncoding()  # type: ignore[assignment,return-value]
    library.seed_everything = lambda _seed: None
    try:
        yield library.PromptCompressor
    finally:
        tiktoken.encoding_for_model = encoding_for_model
        library.seed_everything = seed_everything
        logging.set_verbosity(verbosity)
        if showed_bars:
            logging.enable_progress_bar()
