"""YAML files that are merged as NeMo-RL merges them, and judges of what each captures before and after a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import FIELDS, IMPL, INFERENCE, MODULES
from cgmigrate.megatron.types import Capture, Reader, Rejected


def loaded(path: Path) -> dict[str, Any]:
    """Load a file with the files that it builds on, with a merge of a few lines."""
    config = yaml.safe_load(path.read_text()) or {}
    named = config.pop("defaults", None) or config.pop("extends", None) or []
    merged: dict[str, Any] = {}
    for name in [named] if isinstance(named, str) else named:
        merged = deep_merge(merged, loaded(path.parent / name))
    return deep_merge(merged, config)


def loaded_by_omegaconf(path: Path) -> dict[str, Any]:
    """Load the same as NeMo-RL's ``load_config_with_inheritance`` does."""
    from omegaconf import OmegaConf

    config = OmegaConf.load(path)
    named = config.pop("defaults", None) or config.pop("extends", None) or []
    merged = OmegaConf.create({})
    for name in [named] if isinstance(named, str) else named:
        merged = OmegaConf.merge(merged, OmegaConf.create(loaded_by_omegaconf(path.parent / name)))
    result = OmegaConf.to_container(OmegaConf.merge(merged, config))
    assert isinstance(result, dict)
    return result


def deep_merge(below: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in over.items():
        old = result.get(key)
        result[key] = deep_merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def settings_at(config: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for name in path:
        config = config.get(name) or {}
    return {name: value for name, value in config.items() if name in FIELDS}


def captured(settings: dict[str, Any], reader: Reader, migrated: bool) -> Capture | Rejected:
    """What settings capture: before a fix in the release that reads their names, after it in the newest."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return capture_of(settings, NEWEST if migrated or new else LAST_OLD, reader)
