"""Reads a conversation, in the layout of any harness we know, into the calls that were made and what came of each.

Whatever is odd is told and never raised: these messages were written by models and cut short by limits. Every entry
of an assistant's ``tool_calls`` becomes exactly one step, also one that cannot be read; a result goes to the call
that has its id (and its tool's name, if it gives one), and where an id comes twice to the latest message that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from graphhandoff.compress.protocol import ToolCall
from graphhandoff.data.untrusted import read_arguments, read_text, shorten


class Step(BaseModel):
    """One call that was made and what came of it.

    ``observation`` is None when no result was seen, and ``ok`` when the source does not say whether it was refused.
    ``fault`` says why the call could not be read as it was made; its arguments are then empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    call: ToolCall
    observation: str | None = None
    ok: bool | None = None
    fault: str | None = None

    @property
    def refused(self) -> bool | None:
        """Was the call refused: as the source says, else by an observation that starts with ``Error``; None unseen."""
        if self.ok is not None:
            return not self.ok
        return None if self.observation is None else self.observation.startswith("Error")


class Layout(NamedTuple):
    """Where a harness keeps what a result answers, and whether a result without an error is known to be a success."""

    result_id: str
    silence_is_success: bool


OPENAI = Layout("tool_call_id", silence_is_success=False)
TAU2 = Layout("id", silence_is_success=False)
INSPECT = Layout("tool_call_id", silence_is_success=True)


class Conversation(NamedTuple):
    """What a list of messages holds: calls, what the assistant told, what the customer said, and what was odd."""

    steps: tuple[Step, ...]
    said: tuple[str, ...]
    heard: tuple[str, ...]
    oddities: tuple[str, ...]


def read_messages(messages: object, layout: Layout) -> Conversation:
    """Read the messages of one conversation; never raises on their content.

    Args:
        messages: a list of messages, each a mapping with a ``role``; anything else is told as odd.
        layout: of the harness that wrote them.

    Returns:
        One step per call of the assistant, in order, and whatever was odd with the number of its message from 1.
    """
    reader = _Reader(layout)
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return Conversation((), (), (), (f"the messages are no list but {shorten(messages)}",))
    for number, message in enumerate(messages, start=1):
        reader.read(number, message)
    return reader.finish()


_CALL_AS_TEXT = re.compile(r"^Action:\s*\{", re.MULTILINE)


class _Open(NamedTuple):
    """A call as results are matched with it: the message it stands in, and its id there."""

    message: int
    id: str | None


class _Reader:
    """Takes messages one by one."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._steps: list[Step] = []
        self._opened: list[_Open] = []
        self._answered: set[int] = set()
        self._said: list[str] = []
        self._heard: list[str] = []
        self._oddities: list[str] = []

    def read(self, number: int, message: object) -> None:
        if not isinstance(message, Mapping):
            return self._note(number, f"is no message but {shorten(message)}")
        role = message.get("role")
        if role == "assistant":
            self._read_assistant(number, message)
        elif role == "user":
            self._read_user(number, message)
        elif role in ("tool", "function"):
            inner = message.get("tool_messages")
            for result in inner if isinstance(inner, list) else [message]:
                self._read_result(number, result)
        elif role not in ("system", "developer"):
            self._note(number, f"has the unknown role {shorten(role)} and was left out")
        return None

    def finish(self) -> Conversation:
        for i in sorted(set(range(len(self._steps))) - self._answered):
            self._note(self._opened[i].message, f"calls {self._steps[i].call.name!r} (step {i + 1}) without a result")
        return Conversation(tuple(self._steps), tuple(self._said), tuple(self._heard), tuple(self._oddities))

    def _note(self, number: int, text: str) -> None:
        self._oddities.append(f"message {number} {text}")

    def _read_text(self, number: int, content: object) -> str:
        text, oddity = read_text(content)
        if oddity is not None:
            self._note(number, f"holds odd content: {oddity}")
        return text

    def _read_user(self, number: int, message: Mapping[str, Any]) -> None:
        text = self._read_text(number, message.get("content"))
        if text.strip():
            self._heard.append(text)
        for entry in _iter_calls(message):
            self._note(number, f"holds a call of the customer's, not the assistant's: {shorten(entry)}")

    def _read_assistant(self, number: int, message: Mapping[str, Any]) -> None:
        text = self._read_text(number, message.get("content"))
        entries = list(_iter_calls(message))
        for entry in entries:
            self._read_call(number, entry)
        if not text.strip():
            return
        if entries:
            # The harnesses end a turn at text alone: what stands beside a call is never shown to the customer.
            self._note(number, f"has text beside a call, which the customer is not told: {shorten(text)}")
        elif _CALL_AS_TEXT.search(text):
            self._note(number, f"has a call written as text, which is not read: {shorten(text)}")
        else:
            self._said.append(text)

    def _read_call(self, number: int, entry: object) -> None:
        where = len(self._steps) + 1
        fields: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        function = fields.get("function")
        inner: Mapping[str, Any] = function if isinstance(function, Mapping) else fields
        name = function if isinstance(function, str) else inner.get("name")
        arguments, fault, mended = read_arguments(inner.get("arguments"))
        if fields.get("parse_error"):
            arguments, fault = {}, f"the arguments could not be parsed: {shorten(fields['parse_error'])}"
        if not isinstance(name, str) or not name:
            arguments, fault, name = {}, f"the call names no tool: {shorten(entry)}", ""
        name = read_text(name)[0]
        try:
            call = ToolCall(name=name, arguments=arguments)
            # The record takes NaN, half characters and any depth, but could not be written and read again with them.
            json.dumps(arguments, allow_nan=False)
            call.model_dump_json()
        except (ValueError, RecursionError):
            call, fault = ToolCall(name=name), f"the arguments hold what JSON cannot: {shorten(arguments)}"
        if mended is not None and fault is None:
            self._note(number, f"calls {name!r} (step {where}): {mended}")
        if fault is not None:
            self._note(number, f"calls {name!r} (step {where}): {fault}")
        call_id = fields.get("id")
        if isinstance(call_id, str) and any(opened.id == call_id for opened in self._opened):
            self._note(number, f"repeats the call id {shorten(call_id)} (step {where})")
        self._steps.append(Step(call=call, fault=fault))
        self._opened.append(_Open(number, call_id if isinstance(call_id, str) and call_id else None))

    def _read_result(self, number: int, result: object) -> None:
        if not isinstance(result, Mapping):
            return self._note(number, f"is no result but {shorten(result)}")
        text = self._read_text(number, result.get("content"))
        if result.get("requestor") == "user":
            return self._note(number, f"answers a call of the customer's and was left out: {shorten(text)}")
        found = self._find_call(number, result)
        if found is None:
            name = result.get("name") or result.get("function")
            whose = f" of {name!r}" if isinstance(name, str) else ""
            return self._note(number, f"holds a result{whose} that no call waits for: {shorten(text)}")
        ok, told = _read_error(result.get("error"), self._layout)
        if result.get("content") is None and told is None:
            self._note(number, f"holds a result without content (step {found + 1})")
        self._answered.add(found)
        self._steps[found] = self._steps[found].model_copy(update={"observation": text or told or "", "ok": ok})
        return None

    def _find_call(self, number: int, result: Mapping[str, Any]) -> int | None:
        """Find the call a result answers: a wrong guess would make a failed change look done, so none is better."""
        result_id = result.get(self._layout.result_id)
        has_id = isinstance(result_id, str) and bool(result_id)
        asked = [i for i, opened in enumerate(self._opened) if not has_id or opened.id == result_id]
        # Some models number their calls anew in every message, so an id means the latest message that has it.
        latest = max((self._opened[i].message for i in asked), default=0)
        waiting = [i for i in asked if self._opened[i].message == latest and i not in self._answered]
        name = result.get("name") or result.get("function")
        if isinstance(name, str):
            waiting = [i for i in waiting if self._steps[i].call.name == name]
        if waiting and not has_id:
            self._note(number, f"holds a result without an id, which was given to step {waiting[0] + 1}")
        return waiting[0] if waiting else None


def _iter_calls(message: Mapping[str, Any]) -> Iterator[object]:
    calls = message.get("tool_calls")
    if isinstance(calls, list | tuple):
        yield from calls
    elif calls is not None:
        yield calls
    if message.get("function_call") is not None:
        yield message["function_call"]


def _read_error(error: object, layout: Layout) -> tuple[bool | None, str | None]:
    """Tell whether a result says it succeeded, and the error's own words where it has some."""
    if isinstance(error, Mapping):
        message = error.get("message")
        return False, read_text(message)[0] if isinstance(message, str) else None
    if isinstance(error, str) and error:
        return False, read_text(error)[0]
    if isinstance(error, bool):
        return not error, None
    return (True, None) if layout.silence_is_success else (None, None)
