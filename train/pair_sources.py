"""Where training pairs come from: a file, or synthetic and hand-written delegations labelled with what they need."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from graphhandoff.compress.fields import split_words
from graphhandoff.compress.protocol import Delegation
from graphhandoff.data.delegations import load_delegations, load_reference_delegations, load_training_delegations
from graphhandoff.data.keep_labels import gives_the_plan, label_words
from graphhandoff.data.label import build_plan_graph
from graphhandoff.data.problems import Problem
from graphhandoff.data.prose import write_prose
from graphhandoff.data.retail import load_signatures, load_split
from graphhandoff.data.synthesize import SynthesisConfig, synthesize
from graphhandoff.train.keep_pairs import Pair, PairSets, read_pairs
from graphhandoff.train.token_classifier_config import PairDataConfig

_CHUNK = 100


def load_pairs(data: PairDataConfig) -> PairSets:
    """Load or make the pairs that a configuration asks for; equal configurations give equal pairs.

    Raises:
        PairError: the file cannot be used.
        SplitNotFoundError: no such split.
    """
    if data.path is not None:
        return read_pairs(data.path)
    pinned = load_split(data.split)
    written = [build_pair(delegation) for delegation in load_training_delegations(pinned)]
    asides = list(iter_asides(written))
    train = [
        add_noise(pair, asides, data.asides, data.word_noise, random.Random(f"noise:{data.seed}:{i}"))
        for i, pair in enumerate(make_synthetic_pairs(data))
    ]
    n_left_out = data.n_examples - len(train)
    train.extend(pair for pair in written for _ in range(data.hand_written_repeats))
    # Batches are drawn by the trainer's seed; this one only keeps repeats of one text apart.
    random.Random(data.seed).shuffle(train)
    validation_ids = [record.task_id for record in load_reference_delegations("validation")]
    validation = tuple(build_pair(d) for d in load_delegations(validation_ids, "validation"))
    notice = (
        f"{n_left_out} of {data.n_examples} synthetic delegations are left out: the literal reader does not get the "
        "plan from their words to keep"
    )
    return PairSets(tuple(train), validation, (notice,) if n_left_out else ())


def make_synthetic_pairs(data: PairDataConfig) -> Iterator[Pair]:
    """Yield, in the stream's order, pairs of the synthetic delegations that can be read back from their kept words."""
    synthesis = SynthesisConfig(seed=data.seed, split=data.split)
    chunks = [range(start, min(start + _CHUNK, data.n_examples)) for start in range(0, data.n_examples, _CHUNK)]
    make = partial(_make_chunk, synthesis)
    if data.n_workers == 1 or len(chunks) < 2:
        for chunk in chunks:
            yield from make(chunk)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(data.n_workers, get_context("spawn")) as pool:
        for pairs in pool.map(make, chunks):
            yield from pairs


def iter_asides(written: Iterable[Pair]) -> Iterator[tuple[str, ...]]:
    """Yield the sentences of hand-written pairs of which nothing is kept."""
    for pair in written:
        start = 0
        for end, word in enumerate(pair.words, start=1):
            if not word.endswith((".", "!", "?")) and end < len(pair.words):
                continue
            if end - start > 3 and not any(pair.keep[start:end]):
                yield pair.words[start:end]
            start = end


def add_noise(
    pair: Pair, asides: Sequence[tuple[str, ...]], n_asides: float, word_noise: float, rng: random.Random
) -> Pair:
    """Bring a synthetic pair nearer to real prose: asides between its sentences, strange words among the dropped ones.

    Args:
        pair: of a synthetic delegation.
        asides: sentences that say nothing a graph needs.
        n_asides: their mean number.
        word_noise: share of the dropped words that another word of the asides takes the place of.
        rng: draws everything.
    """
    words: list[str] = []
    keep: list[bool] = []
    n_sentences = max(1, sum(word.endswith((".", "!", "?")) for word in pair.words))
    for word, kept in zip(pair.words, pair.keep, strict=True):
        strange = asides and not kept and word.isalpha() and rng.random() < word_noise
        words.append(rng.choice(rng.choice(asides)) if strange else word)
        keep.append(kept)
        if asides and word.endswith((".", "!", "?")) and rng.random() < n_asides / n_sentences:
            aside = rng.choice(asides)
            words.extend(aside)
            keep.extend([False] * len(aside))
    return Pair(tuple(words), tuple(keep))


def _make_chunk(synthesis: SynthesisConfig, indices: Iterable[int]) -> list[Pair]:
    pairs: list[Pair] = []
    for index in indices:
        problem = synthesize(synthesis, index)
        delegation = build_delegation(problem, synthesis)
        pair = build_pair(delegation)
        if gives_the_plan(delegation, pair.keep):
            pairs.append(pair)
    return pairs


def build_delegation(problem: Problem, synthesis: SynthesisConfig) -> Delegation:
    """Write a synthetic problem as a delegation, prose and graph."""
    prose = write_prose(problem, synthesis.seed, synthesis.split)
    facts = [fact.value for fact in problem.facts]
    graph = build_plan_graph(problem.calls, facts, problem.customer.user_id, load_signatures())
    return Delegation(task_id=problem.id, prose=prose.text, graph=graph, task_text=prose.task_text)


def build_pair(delegation: Delegation) -> Pair:
    """Label the words of a delegation that has a graph."""
    assert delegation.graph is not None
    words = tuple(word.text for line in delegation.prose.split("\n") for word in split_words(line))
    return Pair(words, tuple(label_words(delegation.prose, delegation.graph)))
