"""Lets a language model tell a delegation in its own words, and keeps the grammar's words where it lost something.

Off by default: it needs a model, costs money, and gives another text every time. Rows say who told them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from graphhandoff.compress.identifiers import find_identifiers, find_lost_identifiers
from graphhandoff.data.problems import Problem
from graphhandoff.data.prose import Prose, find_missing_values

GRAMMAR = "grammar"
"""Who told a row's prose if no model did."""

PROMPT = """\
Below is the message by which one support agent hands a customer's case to a colleague. Write the message anew as \
another person would: other sentences, another order where the steps allow it, your own emphasis. Leave nothing out \
and add nothing. Keep every id, e-mail, zip code, amount, quoted text and tool name exactly as it is, character by \
character. Answer with the message alone.

{text}"""
RETRY = "{prompt}\n\nAn earlier attempt was not usable: {fault}."


class ModelUnavailableError(ValueError):
    """The model that should tell the delegations cannot be used; says why."""


class ProseConfig(BaseModel):
    """Who tells the delegations.

    Args:
        model: as Inspect AI names it (``openai/gpt-4o-mini``, ``vllm/…``); by default the built-in grammar tells them.
        temperature: of the model.
        max_tokens: of one message.
        n_attempts: after so many unusable messages the grammar's stays.
        n_at_once: messages that are asked for at the same time, per process.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str | None = None
    temperature: float = Field(default=1.0, ge=0, le=2)
    max_tokens: int = Field(default=1_500, ge=100)
    n_attempts: int = Field(default=2, ge=1)
    n_at_once: int = Field(default=16, ge=1)


def rewrite(told: Sequence[tuple[Problem, Prose]], config: ProseConfig) -> list[tuple[str, str]]:
    """Let the model tell delegations anew.

    Args:
        told: problems, and how the grammar tells them.
        config: names the model.

    Returns:
        Of each, the text and who wrote it: the model, or ``grammar`` if the model lost something every time.

    Raises:
        ModelUnavailableError: there is no such model, its package or key is missing, or its provider fails.
    """
    try:
        return asyncio.run(_rewrite_all(told, config))
    except Exception as error:  # providers raise what they like
        raise ModelUnavailableError(
            f"{config.model} cannot tell delegations ({type(error).__name__}): {error}. Name a model as Inspect AI "
            "does, with its key in the environment, or leave prose.model out"
        ) from error


async def _rewrite_all(told: Sequence[tuple[Problem, Prose]], config: ProseConfig) -> list[tuple[str, str]]:
    model = _load_model(config)
    return list(await asyncio.gather(*(_rewrite_one(model, problem, prose, config) for problem, prose in told)))


async def _rewrite_one(model: Any, problem: Problem, prose: Prose, config: ProseConfig) -> tuple[str, str]:
    prompt = PROMPT.format(text=prose.text)
    asked = prompt
    for _ in range(config.n_attempts):
        text = str((await model.generate(asked)).completion).strip()
        fault = find_fault(problem, prose.text, text)
        if fault is None:
            return text, str(config.model)
        asked = RETRY.format(prompt=prompt, fault=fault)
    return prose.text, GRAMMAR


def find_fault(problem: Problem, original: str, text: str) -> str | None:
    """Say what a text lost or made up: values and facts of the plan, or identifiers of the text it was made from."""
    missing = find_missing_values(problem.calls, [fact.value for fact in problem.facts], text)
    known = find_identifiers(original)
    missing += [lost for lost in find_lost_identifiers(known, text) if lost not in missing]
    if missing:
        return f"it lacks {', '.join(missing[:8])}"
    made_up = find_lost_identifiers(find_identifiers(text), original)
    if made_up:
        return f"it holds {', '.join(made_up[:8])}, which the original does not"
    return _find_disorder(problem, original, text)


def _find_disorder(problem: Problem, original: str, text: str) -> str | None:
    """Say if the items of a call come in another order, or an item that it lists twice is told once only.

    Items that change places may have changed partners, which no other check would see.
    """
    for call in problem.calls:
        listed = [str(item) for value in call.arguments.values() if isinstance(value, list) for item in value]
        order = sorted(set(listed), key=original.find)
        told = sorted(set(listed), key=text.find)
        if told != order:
            return f"it tells the items of {call.name} as {', '.join(told)}, the original as {', '.join(order)}"
        few = [item for item in order if text.count(item) < min(listed.count(item), original.count(item))]
        if few:
            return (
                f"it tells {few[0]} {text.count(few[0])} times, and {call.name} lists it {listed.count(few[0])} times"
            )
    return None


def _load_model(config: ProseConfig) -> Any:
    from inspect_ai.model import GenerateConfig, get_model

    limits = GenerateConfig(
        temperature=config.temperature, max_tokens=config.max_tokens, max_retries=5, max_connections=config.n_at_once
    )
    return get_model(config.model, config=limits)
