"""Reads arguments and text as models and harnesses leave them, and says what was wrong with them or put right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from reprlib import Repr
from typing import Any

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_FENCE = re.compile(r"```[A-Za-z]*\s(.*?)\s*```", re.DOTALL)


def read_arguments(raw: object) -> tuple[dict[str, Any], str | None, str | None]:
    """Read a call's arguments as harnesses write them: an object, or the text of one.

    Returns:
        The arguments; what is wrong with them, or None; and what was put right, or None. Faulty ones are empty.
    """
    if isinstance(raw, Mapping):
        return dict(raw), None, None
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None, "arguments left out were read as none"
    if not isinstance(raw, str):
        return {}, f"the arguments are no object but {shorten(raw)}", None
    fenced = _FENCE.fullmatch(raw.strip())
    mended = "a code fence around the arguments was taken off" if fenced else None
    try:
        value = _load_strictly(fenced.group(1) if fenced else raw)
        if isinstance(value, str):
            value, mended = _load_strictly(value), "arguments encoded twice were decoded twice"
    except (ValueError, RecursionError) as error:
        return {}, f"the arguments are not JSON ({error}): {shorten(raw)}", None
    if not isinstance(value, dict):
        return {}, f"the arguments are no object but {shorten(value)}", None
    return value, None, mended


def read_text(content: object) -> tuple[str, str | None]:
    """Read a message's content, which may be text, a list of parts, or nothing.

    Returns:
        The text, and what was odd about it, or None.
    """
    if content is None:
        return "", None
    if isinstance(content, str):
        # Half a surrogate pair is no text that could be stored; JSON files of cut-off emoji hold such halves.
        clean = content.encode("utf-8", "replace").decode("utf-8")
        return clean, None if clean == content else "half a surrogate pair was replaced"
    if not isinstance(content, list):
        try:
            return read_text(json.dumps(content, default=str))[0], "content that is no text was written as JSON"
        except (ValueError, RecursionError):
            return "", f"content that is no text was left out: {shorten(content)}"
    texts: list[str] = []
    oddities: list[str] = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else part
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if isinstance(text, str):
            text, replaced = read_text(text)
            texts.append(text)
            oddities += [replaced] if replaced else []
        elif kind not in ("reasoning", "thinking"):
            oddities.append(f"a part of type {shorten(kind)} has no text and was left out")
    return "\n".join(texts), "; ".join(oddities) or None


def shorten(value: object) -> str:
    """Return a value on one line, for messages: quoted, long and deep ones cut."""
    return _SHORT.repr(value)


def _load_strictly(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
