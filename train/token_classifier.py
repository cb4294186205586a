"""The LLMLingua-2 recipe on our pairs: a token classifier that learns which words of a prose to keep.

``train_token_classifier`` is the path to read: windows, encoder, transformers' ``Trainer``, the saved checkpoint, and
what it reaches when the real ``llmlingua`` loads it. A killed run resumes from its last whole checkpoint.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphhandoff.compress.checkpoint_card import CheckpointCard, load_checkpoint_card
from graphhandoff.compress.randomness import random_state_kept
from graphhandoff.configs.files import write_atomically
from graphhandoff.configs.provenance import collect_provenance
from graphhandoff.configs.run_directory import RunDirectory
from graphhandoff.train.checkpoints import (
    FINISHED,
    StepProgress,
    build_guard,
    check_device,
    drop_after,
    find_last_whole,
    finishing,
    write_card,
)
from graphhandoff.train.encoders import Encoder, load_encoder
from graphhandoff.train.keep_metrics import score_at_rate, score_labels, score_words
from graphhandoff.train.keep_pairs import IGNORED, Pair, Windows, build_windows, check_pairs, digest_pairs
from graphhandoff.train.token_classifier_config import OptimisationConfig, TokenClassifierConfig
from graphhandoff.train.trainer_log import open_training_log, write_log


class HalfPrecisionError(ValueError):
    """The weights do not fit into half precision."""


class TrainedClassifier(NamedTuple):
    """A finished checkpoint's folder and card, and what a user should know."""

    folder: Path
    card: CheckpointCard
    notices: list[str]


def train_token_classifier(
    config: TokenClassifierConfig,
    train: Iterable[Pair],
    validation: Iterable[Pair],
    progress: StepProgress | None = None,
    callbacks: Sequence[Any] = (),
) -> TrainedClassifier:
    """Train, save and measure a token classifier; resume if the run was killed; equal inputs give equal weights.

    Args:
        config: checked configuration.
        train: pairs to learn from.
        validation: pairs to measure on, of which nothing is learnt.
        progress: called after every step.
        callbacks: further callbacks of transformers' ``Trainer``.

    Returns:
        The checkpoint in ``<runs_directory>/<name>/checkpoint``, which llmlingua has loaded and run; a finished run
        is returned as it is.

    Raises:
        PairError: pairs cannot be used.
        EncoderError: the encoder cannot be trained from.
        DeviceMissingError: the device is not there.
        RunDirectoryError: the run directory is busy, or of another configuration or other data.
        NonFiniteError: the loss or a gradient was not finite; the last good checkpoint is kept.
        HalfPrecisionError: the weights do not fit into ``save_dtype``.
    """
    device = check_device(config.device)
    pairs = {"train": check_pairs(train, "train"), "validation": check_pairs(validation, "validation")}
    data = {name: digest_pairs(some) for name, some in pairs.items()}
    resolved = {**config.resolved(), "data_sha256": data}
    path = Path(config.runs_directory) / config.name
    with RunDirectory(path, resolved, collect_provenance(data, device)) as run, random_state_kept(config.device):
        folder = path / FINISHED
        if folder.is_dir():
            run.notices.append(f"{folder} was finished before; nothing was trained")
            card = load_checkpoint_card(folder)
        else:
            card = _make(config, pairs, data, run, progress, callbacks)
        write_atomically(path / "metrics.json", json.dumps(card.metrics, indent=2) + "\n")
        shutil.rmtree(path / "trainer", ignore_errors=True)  # what a killed run would resume from: gigabytes at times
    return TrainedClassifier(folder, card, run.notices)


def _make(
    config: TokenClassifierConfig,
    pairs: Mapping[str, Sequence[Pair]],
    data: Mapping[str, str],
    run: RunDirectory,
    progress: StepProgress | None,
    callbacks: Sequence[Any],
) -> CheckpointCard:
    values = config.model_dump(mode="json")
    with open_training_log(config.wandb, config.name, run.path, values, run.notices) as log:
        every = [build_guard(progress), *log.callbacks, *callbacks]
        encoder, fit = fit_encoder(config, pairs["train"], run.path, run.notices, every)
        with finishing(run.path) as partial:
            save_classifier(encoder, partial, config.save_dtype)
            metrics = {"train": fit, "validation": measure_classifier(partial, encoder, pairs["validation"], config)}
            provenance = {**run.provenance, "encoder": encoder.origin}
            card = write_card(partial, "token_classifier", config.resolved(), data, metrics, provenance)
        log.summarise(metrics)
    return card


def fit_encoder(
    config: TokenClassifierConfig,
    pairs: Sequence[Pair],
    path: Path,
    notices: list[str],
    callbacks: Sequence[Any],
) -> tuple[Encoder, dict[str, Any]]:
    """Fit an encoder to the pairs, from the last whole checkpoint in ``<path>/trainer`` if there is one.

    Args:
        config: checked configuration.
        pairs: checked pairs.
        path: of the run directory.
        notices: appended to.
        callbacks: of transformers' ``Trainer``, the guard among them.

    Returns:
        The trained encoder, and counts of what it was trained on with the final loss.
    """
    from transformers import Trainer, TrainingArguments, set_seed
    from transformers.trainer_callback import PrinterCallback

    set_seed(config.seed)
    encoder = load_encoder(config.encoder, (word for pair in pairs for word in pair.words))
    windows = build_windows(pairs, encoder.tokenizer, encoder.reader, config.optimisation.max_length)
    counts = windows.describe()
    if counts["n_long_words"] or counts["n_unknown_words"]:
        notices.append(
            f"of {counts['n_words']} training words, {counts['n_long_words']} are longer than a window and "
            f"{counts['n_unknown_words']} are unknown to the tokenizer: they are always kept, and nothing is learnt "
            "from them"
        )
    steps = count_steps(config.optimisation, len(windows.windows))
    trainer = Trainer(
        model=encoder.model,
        args=TrainingArguments(
            output_dir=str(path / "trainer"),
            per_device_train_batch_size=config.optimisation.batch_size,
            max_steps=steps,
            learning_rate=config.optimisation.learning_rate,
            warmup_steps=math.ceil(steps * config.optimisation.warmup_ratio),
            weight_decay=config.optimisation.weight_decay,
            max_grad_norm=config.optimisation.clip,
            optim="adamw_torch",
            bf16=config.precision == "bf16",
            use_cpu=config.device == "cpu",
            seed=config.seed,
            data_seed=config.seed,
            average_tokens_across_devices=False,  # the loss is a mean already
            logging_steps=min(config.optimisation.log_steps, steps),  # a short run has a loss too
            save_steps=config.optimisation.save_steps,
            save_total_limit=2,  # the one before stays until the next is whole
            remove_unused_columns=False,
            dataloader_pin_memory=config.device == "cuda",
            disable_tqdm=True,
            report_to=[],
        ),
        data_collator=build_collator(encoder.tokenizer),
        train_dataset=WindowDataset(windows),
        processing_class=encoder.tokenizer,
        compute_loss_func=KeepLoss(config.optimisation.keep_weight),
        callbacks=list(callbacks),
    )
    trainer.remove_callback(PrinterCallback)
    last = find_last_whole(path / "trainer")
    dropped = drop_after(path / "trainer", last)
    if dropped:
        notices.append(f"dropped half-written {', '.join(dropped)}")
    if last is not None:
        notices.append(f"resumed from {last.name} of {steps} steps")
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    final_loss = write_log(path / "training_log.jsonl", trainer.state.log_history)
    return encoder, {**counts, "n_steps": steps, "final_loss": final_loss}


def count_steps(config: OptimisationConfig, n_windows: int) -> int:
    """Return how many steps are taken: ``max_steps``, or what ``epochs`` over the windows need."""
    if config.max_steps is not None:
        return config.max_steps
    return math.ceil(config.epochs * math.ceil(n_windows / config.batch_size))


class WindowDataset:
    """Windows as transformers' ``Trainer`` takes them."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows.windows

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, at: int) -> dict[str, list[int]]:
        window = self._windows[at]
        ids = window.ids.tolist()
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": window.labels.tolist()}


def build_collator(tokenizer: Any) -> Any:
    """Build what pads windows to the longest of a batch, labels with -100."""
    from transformers import DataCollatorForTokenClassification

    return DataCollatorForTokenClassification(tokenizer, label_pad_token_id=IGNORED)


class KeepLoss:
    """Cross-entropy over the pieces with a label, those to keep weighted; the mean by weight over a batch.

    Args:
        keep_weight: how often a piece to keep counts, over 0.
    """

    def __init__(self, keep_weight: float) -> None:
        self.keep_weight = keep_weight

    def __call__(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        """Return the loss of ``outputs.logits`` (B, T, 2) for ``labels`` (B, T), a scalar."""
        import torch

        logits = outputs.logits.float()
        weights = torch.tensor([1.0, self.keep_weight], device=logits.device)
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, 2), labels.reshape(-1), weight=weights, ignore_index=IGNORED
        )


def save_classifier(encoder: Encoder, folder: Path, dtype: str) -> None:
    """Save weights, configuration and tokenizer so that llmlingua loads them.

    Raises:
        HalfPrecisionError: a weight is beyond what ``dtype`` holds.
    """
    import copy

    import torch

    model = copy.deepcopy(encoder.model).cpu().to(getattr(torch, dtype))
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise HalfPrecisionError(f"a weight does not fit into {dtype}; allowed: float32. Set save_dtype=float32")
    model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    # transformers 5 names a class that version 4 does not know; both know this one.
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    if settings.get("tokenizer_class") == "TokenizersBackend":
        path.write_text(json.dumps({**settings, "tokenizer_class": "PreTrainedTokenizerFast"}, indent=2) + "\n")


def measure_classifier(
    folder: Path, encoder: Encoder, pairs: Sequence[Pair], config: TokenClassifierConfig
) -> dict[str, Any]:
    """Measure a saved classifier, as it was saved, on pairs: see ``score_labels`` and ``score_at_rate``."""
    import torch
    from transformers import AutoModelForTokenClassification

    model = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).to(config.device)
    windows = build_windows(pairs, encoder.tokenizer, encoder.reader, config.optimisation.max_length)
    scores = score_words(model, encoder.tokenizer, pairs, windows, config.optimisation.batch_size)
    return {
        **windows.describe(),
        **score_labels(pairs, scores),
        **score_at_rate(folder, pairs, config.rate, config.device),
    }
