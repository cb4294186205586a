"""Tells a synthetic problem as a delegation: many voices, layouts, step orders and ways to refer to things.

A text is drawn in three moves: its author (register, layout, habits of wording), what is said beside the bare plan
(records, checks, refusals, decoys, slips, small talk), and the phrases. Every argument and every fact of the plan
stands in the text verbatim, or the text is drawn anew.
"""

from __future__ import annotations

import random
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, JsonValue

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.catalogue import Catalogue, load_catalogue
from graphhandoff.data.grammar import GRAMMAR, GrammarError, Speaker, load_grammar
from graphhandoff.data.layout import LAYOUTS, Part, arrange
from graphhandoff.data.problems import Decoy, Problem, Step
from graphhandoff.data.telling import Telling
from graphhandoff.data.wording import Wording

_MAX_DRAWS = 20
_WORDS = (365.0, 75.0)  # mean and spread of the length that authors aim at; hand-written ones have 180 to 500
_WORDS_TERSE = (220.0, 40.0)


class Prose(BaseModel):
    """A delegation in words and the customer's own text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str
    task_text: str


class ProseError(RuntimeError):
    """A value of the plan would be missing from the text."""


def write_prose(problem: Problem, seed: int, split: str = "retail_pinned_50") -> Prose:
    """Write the delegation of a problem and the text of its task; equal arguments give the equal text.

    Args:
        problem: with its plan.
        seed: another seed tells the same problem another way.
        split: names the catalogue that the problem was made from.

    Raises:
        ProseError: 20 texts in a row lacked a value; the message names it.
    """
    catalogue = load_catalogue(split)
    missing: list[str] = []
    for draw in range(_MAX_DRAWS):
        rng = random.Random(f"prose:{seed}:{problem.id}:{draw}")
        text = _Author(problem, catalogue, rng).write()
        missing = find_missing_values(problem.calls, [fact.value for fact in problem.facts], text)
        if not missing:
            return Prose(text=text, task_text=_write_task_text(problem, catalogue, rng))
    raise ProseError(f"{problem.id}: {', '.join(missing)} not in the prose after {_MAX_DRAWS} draws; mend the grammar")


def find_missing_values(calls: Iterable[ToolCall], facts: Iterable[str], text: str) -> list[str]:
    """List argument values (lists by their entries) and facts that do not stand in a text verbatim."""
    needed = [value for call in calls for argument in call.arguments.values() for value in _strings(argument)]
    missing = [value for value in needed if value not in text]
    heard = text.lower().replace(",", "")
    return list(dict.fromkeys([*missing, *(fact for fact in facts if fact.lower() not in heard)]))


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif value != "":
        yield str(value)


class _Author:
    """One author at one problem."""

    def __init__(self, problem: Problem, catalogue: Catalogue, rng: random.Random) -> None:
        self.problem = problem
        self.rng = rng
        self.layout = rng.choices([name for name, _ in LAYOUTS], [weight for _, weight in LAYOUTS])[0]
        terse = self.layout in ("telegram", "notes") or rng.random() < 0.06
        self.speaker = Speaker(load_grammar(GRAMMAR), rng, terse)
        self.telling = Telling(problem, catalogue, Wording(rng), rng)
        self.mood = self._say("mood")
        # Short cases are told at more length, as people do; long ones have enough to say.
        n_calls = len(problem.calls)
        self.wordiness = min(1.0, max(0.12, rng.gauss(0.95 if n_calls <= 2 else 0.75 if n_calls <= 5 else 0.4, 0.15)))

    def write(self) -> str:
        steps = self._step_parts()
        if len(steps) > 1 and self.rng.random() < 0.12:
            steps[-1].sentences.insert(0, self._say("later"))
            steps = [steps[-1], *steps[:-1]]
        parts = [self._opening(), *self._look_ups_before(), *steps, *self._cautions(), *self._closing()]
        self._enrich(parts)
        for part in parts:
            part.sentences[:] = map(_capitalise, part.sentences)
        return arrange([part for part in parts if part.sentences], self.layout, self.rng)

    def _enrich(self, parts: Sequence[Part]) -> None:
        """Add what else the planner saw and heard, until the text is as long as this author likes."""
        wanted = self.rng.gauss(*_WORDS_TERSE if self.speaker.terse else _WORDS)
        account = self.telling.of_account()
        steps = [(part, step) for part in parts if part.role == "step" for step in part.steps]
        extras: list[tuple[str, Part, dict[str, str]]] = []
        for part, step in steps:
            values = self.telling.of_step(step)
            if step.swaps:
                extras += [("alternatives", part, self.telling.of_alternatives(step)) for _ in range(3)]
            rules = ("reason_why",) if step.kind == "transfer" else ("check", "refused", "reason_why")
            extras += [(rule, part, self._spoken(values)) for rule in rules if step.order_id]
        for part in parts:
            if part.role in ("who", "care"):
                extras += [(rule, part, account) for rule in ("account", "policy", "small_talk")]
        self.rng.shuffle(extras)
        have = sum(len(sentence.split()) for part in parts for sentence in part.sentences)
        for rule, part, values in extras:
            if have >= wanted:
                break
            try:
                sentence = self._say(rule, values, mood=self.mood)
            except GrammarError:  # this account has nothing of the kind to tell
                continue
            if sentence not in part.sentences:
                at = self.rng.randrange(1, len(part.sentences) + 1) if part.sentences else 0
                part.sentences.insert(at, sentence)
                have += len(sentence.split())

    def _say(self, rule: str, *values: Mapping[str, str], **more: str) -> str:
        """Expand a rule with the customer's values and these; later ones win."""
        return self.speaker.say(rule, dict(ChainMap(more, *(dict(v) for v in reversed(values)), self.telling.general)))

    def _maybe(self, chance: float) -> bool:
        return self.rng.random() < chance * self.wordiness

    def _opening(self) -> Part:
        gists = []
        for step in self.problem.steps[:2]:
            gists.append(self._say(f"gist_{step.kind}", self.telling.of_step(step)))
        gist = " and ".join(gists) if gists else self._say("gist_question")
        said = [self._say("opening", gist=gist, Gist=gist[0].upper() + gist[1:], mood=self.mood)]
        names = {call.name for call in self.problem.calls}
        if not names & {"find_user_id_by_name_zip", "find_user_id_by_email"} and self._maybe(0.9):
            said.append(self._say("user_known"))
        if self._maybe(0.5):
            said.append(self._say("small_talk", mood=self.mood))
        if not self.problem.steps:
            said.append(self._say("no_change"))
        return Part("who", said)

    def _look_ups_before(self) -> list[Part]:
        """Tell the look-ups that come before the first write, in the plan's order."""
        said = Part("look", [])
        waiting: list[str] = []
        for call in self.problem.calls:
            if call in self.telling.writes:
                break
            if call.name == "get_order_details":
                waiting.append(str(call.arguments["order_id"]))
                continue
            said.sentences.extend(self._read_orders(waiting))
            waiting = []
            said.sentences.append(self._look_up(call))
        said.sentences.extend(self._read_orders(waiting))
        return [said]

    def _read_orders(self, orders: Sequence[str]) -> list[str]:
        if len(orders) > 2 and self.rng.random() < 0.6:
            joined = self.telling.wording.series(orders)
            records = [self._say("record", self.telling.of_order(order)) for order in orders if self._maybe(0.25)]
            return [self._say("read_orders", orders=joined), *records]
        return [self._say("read_order", self.telling.of_order(order)) for order in orders]

    def _look_up(self, call: ToolCall) -> str:
        rules = {
            "find_user_id_by_name_zip": "find_by_name",
            "find_user_id_by_email": "find_by_email",
            "get_user_details": "profile",
            "get_order_details": "read_order",
            "get_product_details": "read_product",
            "calculate": "reckon",
        }
        return self._say(rules[call.name], self.telling.of_look_up(call))

    def _step_parts(self) -> list[Part]:
        """Tell each step with the look-ups that the plan has just before it."""
        parts: list[Part] = []
        lead: list[str] = []
        seen_write = False
        for call in self.problem.calls:
            step = self.telling.writes.get(call)
            if step is None:
                if seen_write:
                    lead.append(self._look_up(call))
                continue
            seen_write = True
            parts.append(Part("step", [*lead, *self._step(step)], (step,)))
            lead = []
        if lead:
            parts.append(Part("look", lead))
        return parts

    def _step(self, step: Step) -> list[str]:
        values = self.telling.of_step(step)
        said = [*self._before(step, values)]
        said.append(self._say(f"{step.kind}_do", values))
        said.extend(self._after(step, values))
        return said

    def _before(self, step: Step, values: dict[str, str]) -> Iterator[str]:
        looked_up = any(
            call.name == "get_order_details" and call.arguments["order_id"] == step.order_id
            for call in self.problem.calls
        )
        if step.order_id and not looked_up and self._maybe(0.75):
            yield self._say("record", self.telling.of_order(step.order_id))
        story = {"exchange": "swap_story", "modify_items": "swap_story", "modify_address": "address_story"}
        story |= {"modify_user_address": "user_address_story", "modify_payment": "payment_story"}
        rule = story.get(step.kind, f"{step.kind}_story")
        if step.fallback == "one_item_only":
            yield self._say("cancel_one_item", values)
        elif self._maybe(0.85):
            for swap_values in self.telling.of_swaps(step) or [values]:
                yield self._say(rule, values, swap_values)
        if step.fallback == "refund_elsewhere":
            yield self._say("return_elsewhere", values)
        if step.first_payment and step.kind in ("exchange", "modify_items", "modify_payment"):
            yield self._say("swap_card_too_small", values)
        for swap in step.swaps:
            if swap.first_choice is not None:
                yield self._say("swap_sold_out", values, self.telling.of_swap(swap))
            elif swap.rule != "options" and self._maybe(0.9):
                yield self._say(f"swap_{swap.rule}", values, self.telling.of_swap(swap))
        if step.order_id and step.kind != "transfer" and self._maybe(0.3):
            yield self._say("check", self._spoken(values))
        if self.problem.misnamed and step.order_id == self.telling.first_order:
            yield self._say("slip", values, misnamed=self.problem.misnamed)

    def _after(self, step: Step, values: dict[str, str]) -> Iterator[str]:
        if step.kind in ("exchange", "modify_items"):
            rule = "more" if (step.amount or 0) > 0 else "less" if (step.amount or 0) < 0 else "even"
            if self._maybe(0.6):
                yield self._say(f"swap_after_{rule}", values)
            if self._maybe(0.4):
                yield self._say("swap_once", self._spoken(values))
        elif step.kind in ("cancel", "return") and self._maybe(0.6):
            yield self._say(f"{step.kind}_after", values)
        elif step.kind == "modify_payment" and self._maybe(0.5):
            yield self._say("payment_after", values)
        if values.get("kept") and step.kind in ("return", "exchange", "modify_items") and self._maybe(0.45):
            yield self._say("rest_of_order", self._spoken(values))
        for decoy in self.problem.decoys:
            if decoy.kind in ("item", "sold_out", "payment") and self.telling.decoy_step(decoy) == step:
                yield self._decoy(decoy)
        if step.order_id and step.kind != "transfer" and self._maybe(0.3):
            yield self._say("refused", self._spoken(values))

    def _spoken(self, values: dict[str, str]) -> dict[str, str]:
        """Say *that order* here and there, where the number has just been given."""
        if self.rng.random() < 0.4 and values.get("order"):
            return {**values, "order": self.rng.choice(("that order", "this order", "the same order"))}
        return values

    def _decoy(self, decoy: Decoy) -> str:
        return self._say(f"decoy_{decoy.kind}", decoy=decoy.id, about=decoy.about)

    def _cautions(self) -> list[Part]:
        said = [self._decoy(decoy) for decoy in self.problem.decoys if self.telling.decoy_step(decoy) is None]
        if self._maybe(0.5):
            said.append(self._say("policy"))
        if self._maybe(0.3):
            said.append(self._say("small_talk", mood=self.mood))
        if len(self.problem.steps) > 1 and self._maybe(0.35):
            said.append(self._say("sequence", sequence=self.telling.sequence()))
        self.rng.shuffle(said)
        return [Part("care", said)]

    def _closing(self) -> list[Part]:
        facts = [
            self._say(f"fact_{fact.kind}", value=fact.value, about=self.telling.about(fact))
            for fact in self.problem.facts
        ]
        done = [
            self._say(f"done_{step.kind}", self.telling.of_step(step))
            for step in self.problem.steps
            if facts or self.rng.random() < 0.8
        ]
        told = facts if facts and self.rng.random() < 0.4 else [*done, *facts]
        said: list[str] = []
        if told and len(told) > 2 and self.rng.random() < 0.5:
            said.append(f"{self._say('tell_lead')} {'; '.join(told)}.")
        elif told:
            said.append(self._say("tell_done", done=self.telling.wording.series(told, " and ")))
        end = [self._say("closing")] if self._maybe(0.5) else []
        return [Part("tell", said), Part("end", end)]


def _capitalise(sentence: str) -> str:
    """Begin with a capital, unless an identifier or a tool's name begins it."""
    first = sentence.split(" ", 1)[0]
    plain = first.rstrip(",.:;'’").replace("'", "").isalpha()
    return sentence[0].upper() + sentence[1:] if plain else sentence


def _write_task_text(problem: Problem, catalogue: Catalogue, rng: random.Random) -> str:
    """Write what the customer wants in their own words, in the layout of the benchmark's texts."""
    speaker = Speaker(load_grammar(GRAMMAR), rng)
    telling = Telling(problem, catalogue, Wording(rng), rng)
    wants: list[str] = []
    for step in problem.steps:
        for rule, values in telling.asks(step):
            wants.append(speaker.say(rule, {**telling.general, **values}))
    for fact in problem.facts:
        wants.append(speaker.say(f"ask_fact_{fact.kind}", {**telling.general, "about": fact.about}))
    by_email = any(call.name == "find_user_id_by_email" for call in problem.calls)
    known = speaker.say("known_email" if by_email else "known_name", telling.general)
    mood = speaker.say("mood", telling.general)
    lines = [f"Reason for call: {' '.join(wants)}", f"Known info: {known}"]
    if not by_email:
        lines.append("Unknown info: You do not remember your email address.")
    lines.append(f"Task instructions: {speaker.say('persona', {**telling.general, 'mood': mood})}")
    return "\n".join(lines)
