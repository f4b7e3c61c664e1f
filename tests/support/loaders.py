"""Loaders of YAML files that build on others, written from the rules of the real programs: judges of merged files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf

Config = dict[str, Any]


def load_nemo_rl(path: Path, overrides: Sequence[str] = (), resolve: bool = True) -> Config:
    """Load a file as NeMo-RL's ``load_config`` and ``parse_hydra_overrides`` do (``nemo_rl/utils/config.py``)."""
    config = _nemo_rl(path)
    for override in overrides:
        _apply_override(config, override)
    return _plain(config, resolve)


def _nemo_rl(path: Path) -> DictConfig:
    config = OmegaConf.load(path)
    assert isinstance(config, DictConfig)
    if "defaults" not in config:
        return config
    named = config.pop("defaults")
    names = [str(name) for name in named] if isinstance(named, ListConfig) else [str(named)]
    below = OmegaConf.create({})
    for name in names:
        below = _merged(below, _nemo_rl(path.parent / name))
    return _merged(below, config)


def _merged(below: DictConfig, over: DictConfig) -> DictConfig:
    """Merge two configurations; a mapping marked with ``_override_`` replaces the one below, at the top level only."""
    for key in list(over):
        if OmegaConf.is_missing(over, key):
            continue
        value = over[key]
        if isinstance(value, DictConfig) and value.get("_override_", False):
            value.pop("_override_")
            below.pop(key, None)
    merged = OmegaConf.merge(below, over)
    assert isinstance(merged, DictConfig)
    return merged


def load_hydra(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Compose the file as ``hydra.main`` does; its folder is that of the configurations."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(path.parent.resolve()), version_base=None):
        return _plain(compose(config_name=path.stem, overrides=list(overrides)))


def load_extending(path: Path, key: str, replaces: bool) -> Config:
    """Load a file that names those it builds on under a key.

    ``replaces`` says whether a mapping replaces the one below as a whole, else they are merged key by key.
    """
    config = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    named = config.pop(key, None) or []
    below: Config = {}
    for name in [named] if isinstance(named, str) else named:
        beside = path.parent / name
        other = beside if beside.suffix in (".yaml", ".yml") else beside.with_name(beside.name + ".yaml")
        below = _over(below, load_extending(other, key, replaces), replaces)
    return _over(below, config, replaces)


def _over(below: Config, over: Config, replaces: bool) -> Config:
    if replaces:
        return {**below, **over}
    result = dict(below)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = _over(old, value, False) if both else value
    return result


def _apply_override(config: DictConfig, override: str) -> None:
    name, _, value = override.partition("=")
    if name.startswith("~"):
        *above, last = name[1:].split(".")
        parent = OmegaConf.select(config, ".".join(above)) if above else config
        parent.pop(last, None)
        return
    OmegaConf.update(config, name.lstrip("+"), yaml.safe_load(value), merge=True, force_add=True)


def _plain(config: DictConfig, resolve: bool = True) -> Config:
    result = OmegaConf.to_container(config, resolve=resolve)
    assert isinstance(result, dict)
    return {str(key): value for key, value in result.items()}


def without(config: Any, names: Mapping[str, Any] | Sequence[str]) -> Any:
    """A configuration without the keys of these names, at all depths."""
    match config:
        case dict():
            return {key: without(value, names) for key, value in config.items() if key not in names}
        case list():
            return [without(value, names) for value in config]
    return config
