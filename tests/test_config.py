"""Configurations are checked before anything heavy starts, and a mistake is answered with what is allowed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from pydantic import BaseModel

from graphhandoff.configs.loader import ConfigError, differing_keys, load_config
from graphhandoff.eval.comparison import CompareConfig
from graphhandoff.train.token_classifier_config import TokenClassifierConfig

SHIPPED = "configs/compare/plan_track.yaml"


@pytest.mark.parametrize(("folder", "model"), [("compare", CompareConfig), ("token_classifier", TokenClassifierConfig)])
def test_every_shipped_configuration_loads(folder: str, model: type[BaseModel]) -> None:
    names = [item.name for item in files("graphhandoff.configs").joinpath(folder).iterdir()]
    shipped = [name for name in names if name.endswith(".yaml")]
    assert shipped
    for name in shipped:
        load_config(model, f"configs/{folder}/{name}")


def test_overrides_reach_nested_keys_with_yaml_types() -> None:
    config = load_config(
        CompareConfig, SHIPPED, ["protocols.tfidf.rate=0.5", "name=mine", "seeds=[1, 2]", "wandb.mode=off"]
    )
    assert config.protocols.tfidf is not None
    assert (config.protocols.tfidf.rate, config.name, config.seeds, config.wandb.mode) == (0.5, "mine", (1, 2), "off")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("protocols.tfidf.rat=0.5", r"unknown key protocols.tfidf.rat; did you mean rate\? \(allowed: rate\)"),
        ("protocols.tfidff={}", "unknown key protocols.tfidff; did you mean tfidf"),
        ("sead=1", r"unknown key sead; did you mean seed"),
        ("seed=one", "seed: Input should be a valid integer .*'one'"),
        ("protocols.tfidf.rate=7", "less than or equal to 1"),
        ("protocols.routed_ngh.router=coin", "'rules', 'always_graph' or 'natural_language'"),
        ("protocols.natural_language=", "every row is compared with it"),
        ("seeds=[1, 1]", "repeat"),
        ("name=../elsewhere", "name"),
        ("wandb.mode=loud", "wandb.mode"),
        ("seed", "write --set a.b=value"),
        ("seed.x=1", "seed holds a value"),
    ],
)
def test_a_mistake_is_answered_with_what_is_allowed(override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_config(CompareConfig, SHIPPED, [override])


def test_a_seed_is_never_implicit(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("name: x\nprotocols: {natural_language: {}}\n")
    with pytest.raises(ConfigError, match="missing key seed; add it to the file or pass --set seed="):
        load_config(CompareConfig, path)


def test_a_missing_file_lists_its_neighbours(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"no configuration file .*plan_trak.yaml; in configs/compare: plan_track.yaml"
    ):
        load_config(CompareConfig, "configs/compare/plan_trak.yaml")
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(ConfigError, match="expected a mapping of keys, got list"):
        load_config(CompareConfig, tmp_path / "list.yaml")


def test_differing_keys_are_named_by_path() -> None:
    assert differing_keys({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}, "d": 4}) == ["a.c: 2 -> 3", "d: None -> 4"]
