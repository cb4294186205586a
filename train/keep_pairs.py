"""Training pairs for a token classifier, the words of a prose and which to keep, and the windows made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphhandoff.compress.word_windows import WINDOW_TOKENS, WordReader, pack_words

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

IGNORED = -100
"""The label of positions that do not count in the loss."""


class PairError(ValueError):
    """Training pairs cannot be used; says which one and why."""


class Pair(NamedTuple):
    """The words of a prose, as ``compress.fields.split_words`` gives them, and which of them to keep."""

    words: tuple[str, ...]
    keep: tuple[bool, ...]


class PairSets(NamedTuple):
    """What is learnt from, what is only measured on, and what a user should know of how they came about."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    notices: tuple[str, ...] = ()


def check_pairs(pairs: Iterable[Pair], name: str) -> tuple[Pair, ...]:
    """Return the pairs as a tuple if they can be used.

    Args:
        pairs: any number of them.
        name: of the set, for the message.

    Raises:
        PairError: there are none, a pair has more words than labels or none at all, or a word holds white space.
    """
    checked = tuple(pairs)
    if not checked:
        raise PairError(f"no {name} pairs; at least one is needed. Raise data.n_examples or name another data.path")
    for number, pair in enumerate(checked):
        if not pair.words or len(pair.words) != len(pair.keep):
            raise PairError(
                f"{name} pair {number} has {len(pair.words)} words and {len(pair.keep)} labels; allowed: one label a "
                "word, and a word at least. Label the words of split_words(prose)"
            )
        for word in pair.words:
            if word.split() != [word]:
                raise PairError(
                    f"{name} pair {number} has the word {word!r}; allowed: words without white space. Label the words "
                    "of split_words(prose)"
                )
    return checked


def digest_pairs(pairs: Iterable[Pair]) -> str:
    """Return the SHA-256 of the words and labels of all pairs, in order."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(json.dumps([pair.words, [int(kept) for kept in pair.keep]], ensure_ascii=True).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def read_pairs(path: str | Path) -> PairSets:
    """Read pairs from a file: JSON lines or Parquet with ``words``, ``keep``, and ``split`` (train or validation).

    Raises:
        PairError: no such file, another kind of file, or a line that is no such pair.
    """
    path = Path(path)
    if not path.is_file() or path.suffix not in (".jsonl", ".parquet"):
        problem = "is another kind of file" if path.is_file() else "does not exist"
        raise PairError(f"data.path {path} {problem}; allowed: a .jsonl or .parquet file. Set data.path")
    sets: dict[str, list[Pair]] = {"train": [], "validation": []}
    for number, row in enumerate(_iter_rows(path), start=1):
        try:
            words, keep = row["words"], row["keep"]
            if not all(isinstance(word, str) for word in words) or not all(isinstance(kept, bool) for kept in keep):
                raise TypeError("words must be strings and keep must be true or false")
            sets[row["split"]].append(Pair(tuple(words), tuple(keep)))
        except (KeyError, TypeError) as error:
            problem = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise PairError(
                f"{path}, row {number}: {problem}; expected words: [string], keep: [true or false] and split: train or "
                "validation. Write the file again"
            ) from None
    return PairSets(tuple(sets["train"]), tuple(sets["validation"]))


def _iter_rows(path: Path) -> Iterable[Any]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError as error:
                yield f"not JSON ({error})"


class Window(NamedTuple):
    """A window of a pair as the model sees it; arrays are as long as it, with the special tokens at both ends.

    ``labels`` are 1 keep, 0 drop and -100 where nothing is learnt. ``places`` are the places of the words that the
    pieces belong to, -1 for special tokens. ``starts`` says where a word of llmlingua's own begins.
    """

    pair: int
    ids: NDArray[numpy.int32]
    labels: NDArray[numpy.int8]
    places: NDArray[numpy.int32]
    starts: NDArray[numpy.bool_]


class Windows(NamedTuple):
    """The windows of some pairs, and what of the pairs is in them.

    ``n_long_words`` are longer than a window and ``n_unknown_words`` have no piece in the vocabulary: both are in
    no window, since llmlingua is not asked about them either and they are kept.
    """

    windows: tuple[Window, ...]
    n_words: int
    n_long_words: int
    n_unknown_words: int

    def describe(self) -> dict[str, int]:
        """Count windows, pieces and words for a report."""
        return {
            "n_windows": len(self.windows),
            "n_pieces": sum(len(window.ids) - 2 for window in self.windows),
            "n_words": self.n_words,
            "n_long_words": self.n_long_words,
            "n_unknown_words": self.n_unknown_words,
        }


def build_windows(pairs: Sequence[Pair], tokenizer: Any, reader: WordReader, max_length: int) -> Windows:
    """Make the pieces of all pairs and pack them at word borders as inference does; every piece has its word's label.

    Args:
        pairs: checked pairs.
        tokenizer: of the encoder.
        reader: of the same tokenizer.
        max_length: tokens of a window at most, special tokens included; above 402 it makes no difference.
    """
    import numpy

    limit = min(WINDOW_TOKENS, max_length - 2)
    # llmlingua 0.2.2 frames every text by these two whatever the family: the unknown token for XLM-RoBERTa. What the
    # classifier will be asked is what it is taught.
    first, last = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    readings = reader.read_all(word for pair in pairs for word in pair.words)
    ids = {word: tokenizer.convert_tokens_to_ids(list(reading.pieces)) for word, reading in readings.items()}
    windows: list[Window] = []
    for number, pair in enumerate(pairs):
        for places in pack_words([readings[word] for word in pair.words], limit):
            words = [(place, pair.words[place], int(pair.keep[place])) for place in places]
            counted = [known for _, word, _ in words for known in readings[word].counted]
            labels = [label for _, word, label in words for _ in ids[word]]
            windows.append(
                Window(
                    pair=number,
                    ids=numpy.array([first, *(i for _, word, _ in words for i in ids[word]), last], numpy.int32),
                    labels=numpy.array(
                        [
                            IGNORED,
                            *(label if known else IGNORED for label, known in zip(labels, counted, strict=True)),
                            IGNORED,
                        ],
                        numpy.int8,
                    ),
                    places=numpy.array([-1, *(place for place, word, _ in words for _ in ids[word]), -1], numpy.int32),
                    starts=numpy.array([False, *(s for _, word, _ in words for s in readings[word].starts), False]),
                )
            )
    all_words = [readings[word] for pair in pairs for word in pair.words]
    return Windows(
        windows=tuple(windows),
        n_words=len(all_words),
        n_long_words=sum(reading.n_words > 0 and reading.n_tokens > limit for reading in all_words),
        n_unknown_words=sum(reading.n_words == 0 for reading in all_words),
    )
