"""Configurations of several YAML files, as cgmigrate, Hydra and OmegaConf compose them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cgmigrate.linking.compositions import Composition
from cgmigrate.linking.yaml_files import Sources, YamlFiles
from cgmigrate.megatron.catalogue import load
from cgmigrate.project.seeds import seeds_of
from tests.support.merged_configs import deep_merge


def yaml_files(folder: Path) -> YamlFiles:
    paths = [str(path.resolve()) for path in sorted(folder.rglob("*.y*ml"))]
    data = {path: Path(path).read_bytes() for path in paths}
    return YamlFiles(Sources(data, list, list, lambda _: load(), lambda _: seeds_of()))


def merged(composition: Composition) -> dict[str, Any]:
    """Merge the layers of a composition with a merge of a few lines."""
    result: dict[str, Any] = {}
    for layer in composition.layers:
        content = yaml.safe_load(Path(layer.path).read_text()) or {}
        content.pop("defaults", None)
        for name in reversed(layer.mount):
            content = {name: content}
        result = deep_merge(result, content)
    return result


def composed_by_hydra(folder: Path, name: str, overrides: Sequence[str] = ()) -> dict[str, Any] | None:
    """Compose with Hydra itself; None if it refuses."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
        try:
            config = compose(name, overrides=list(overrides))
        except (HydraException, OmegaConfBaseException, ValueError, AssertionError):
            # Its own assertions fail on some lists that it should refuse, such as `m: ${m}` after `m: null`.
            return None
    result = OmegaConf.to_container(config, resolve=False)
    assert isinstance(result, dict)
    return result
