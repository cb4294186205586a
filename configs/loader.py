"""Reads YAML into frozen pydantic models: defaults live in the model only, unknown keys are refused by name."""

from __future__ import annotations

import difflib
import types
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


class ConfigError(ValueError):
    """A configuration cannot be used; the message lists every problem with what is allowed."""


def load_config(model: type[Model], path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Read a YAML file into ``model`` and apply overrides.

    Args:
        model: a pydantic model that forbids unknown keys.
        path: a file; a relative path that does not exist here is looked up among the installed configurations
            (``configs/compare/plan_track.yaml`` works from any directory).
        overrides: ``a.b=value`` strings, the value read as YAML.

    Raises:
        ConfigError: no such file, not YAML, a misspelt key, a value of the wrong type, or a malformed override.
    """
    values = read_yaml(path)
    for override in overrides:
        _apply(values, override)
    return validate_config(model, values, str(path))


def parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Read ``a.b=value`` strings into a nested mapping.

    Raises:
        ConfigError: an override is malformed.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        _apply(values, override)
    return values


def validate_config(model: type[Model], values: Mapping[str, Any], source: str) -> Model:
    """Validate values as ``model``; ``source`` is where they came from, for the message.

    Raises:
        ConfigError: lists every problem, with near matches for misspelt keys.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join([f"{source}: cannot be used:", *_explain(error, model)])) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        ConfigError: no such file (the message lists its neighbours), or not a mapping.
    """
    text = _find(Path(path)).read_text(encoding="utf-8")
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got {type(values).__name__}")
    return values


def _find(path: Path) -> Any:
    if path.is_file():
        return path
    parts = path.parts[1:] if path.parts[:1] == ("configs",) else path.parts
    packaged = files("graphhandoff.configs")
    if not path.is_absolute() and ".." not in parts:
        candidate = packaged.joinpath(*parts)
        if candidate.is_file():
            return candidate
    folder = packaged.joinpath(*parts[:-1]) if parts[:-1] else packaged
    names = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
    known = [name for name in names if name.endswith(".yaml")]
    where = "/".join(("configs", *parts[:-1]))
    raise ConfigError(f"no configuration file {path}; in {where}: {', '.join(known) or 'nothing'}")


def _apply(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {override!r} is malformed; write --set a.b=value")
    try:
        value = yaml.safe_load(text) if text else None
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override!r}: the value is not YAML: {error}") from None
    *parents, last = key.split(".")
    target = values
    for parent in parents:
        inner = target.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {override!r}: {parent} holds a value, not keys")
        target = inner
    target[last] = value


def _explain(error: ValidationError, model: type[BaseModel]) -> list[str]:
    lines: list[str] = []
    for problem in error.errors(include_url=False):
        keys, parent = _locate(model, problem["loc"])
        path = ".".join(keys)
        if problem["type"] == "extra_forbidden":
            allowed = list(parent.model_fields) if parent else []
            near = difflib.get_close_matches(keys[-1], allowed, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            lines.append(f"  unknown key {path}{hint} (allowed: {', '.join(allowed)})")
        elif problem["type"] == "missing":
            lines.append(f"  missing key {path}; add it to the file or pass --set {path}=…")
        else:
            lines.append(f"  {path or 'configuration'}: {problem['msg']} (got {problem['input']!r})")
    return lines


def _locate(model: type[BaseModel], loc: Sequence[int | str]) -> tuple[list[str], type[BaseModel] | None]:
    """Return the keys of a problem as they stand in the file, and the model that the last one is a key of.

    Where a key's value is one of several models, told apart by a ``kind``, pydantic puts the kind into the path.
    """
    keys: list[str] = []
    choices: list[type[BaseModel]] = [model]
    parent: type[BaseModel] | None = model
    for part in map(str, loc):
        if len(choices) > 1 and (chosen := [choice for choice in choices if part in _tags(choice)]):
            choices = chosen
            continue
        parent = choices[0] if choices else None
        keys.append(part)
        field = parent.model_fields.get(part) if parent else None
        choices = _models_in(field.annotation) if field else []
    return keys, parent


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    return tuple(
        tag
        for field in model.model_fields.values()
        if get_origin(field.annotation) is Literal
        for tag in get_args(field.annotation)
    )


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Annotated:
        return _models_in(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [found for inner in get_args(annotation) for found in _models_in(inner)]
    return []


def differing_keys(ours: Mapping[str, Any], theirs: Mapping[str, Any], prefix: str = "") -> list[str]:
    """List ``key: ours -> theirs`` for every leaf that differs between two resolved configurations."""
    lines: list[str] = []
    for key in sorted({*ours, *theirs}):
        a, b = ours.get(key), theirs.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            lines.extend(differing_keys(a, b, f"{prefix}{key}."))
        elif a != b:
            lines.append(f"{prefix}{key}: {a!r} -> {b!r}")
    return lines
