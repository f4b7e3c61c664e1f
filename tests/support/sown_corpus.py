"""Legacy settings sown into real configurations of NeMo-RL, and how its loader merges them."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cgmigrate.megatron.settings import FIELDS
from tests.support.generated_chains import PLAUSIBLE
from tests.support.paths import CORPUS

CONFIGS = CORPUS / "yaml/nemo-rl/configs"
KEY = "megatron_cfg"
_MAPPING = re.compile(rf"^( *){KEY}:[ \t]*(#.*)?\n(?= +[^ \n])", re.MULTILINE)
_POLICY = re.compile(r"^policy:[ \t]*(#.*)?\n(?= +[^ \n])", re.MULTILINE)
SETTINGS: list[dict[str, Any]] = [own for own in PLAUSIBLE if own] + [
    {"cuda_graph_scope": "attn"},
    {"cuda_graph_scope": ["attn", "mlp"]},
    {"cuda_graph_scope": "full_iteration"},
    {"cuda_graph_scope": None},
    {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"},
    {"external_cuda_graph": "${oc.env:GRAPHS,true}"},
]


def sow(text: str, settings: dict[str, Any], chance: random.Random) -> str:
    """Write settings into a mapping of the text, or into one that is added; return the text if neither is possible."""
    settings = {name: value for name, value in settings.items() if not re.search(rf"\b{name}:", text)}
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
    if not settings:
        return text
    if mappings := [*_MAPPING.finditer(text)]:
        return _inserted(text, chance.choice(mappings).end(), lines)
    own = [f"{KEY}:\n", *("  " + line for line in lines)]
    if match := _POLICY.search(text):
        return _inserted(text, match.end(), own)
    if re.search(r"^policy:", text, re.MULTILINE):
        return text
    return text.rstrip("\n") + "\npolicy:\n" + "".join("  " + line for line in own)


def _inserted(text: str, at: int, lines: list[str]) -> str:
    """Insert lines at the start of a mapping, with its indentation."""
    first = re.compile(r"(?:[ \t]*(?:#.*)?\n)*( +)(?=[^ #\n])").match(text, at)
    return text if first is None else text[:at] + "".join(first.group(1) + line for line in lines) + text[at:]


@dataclass
class Corpus:
    """A copy of the configurations, and how they build on each other."""

    folder: Path
    texts: dict[Path, str] = field(default_factory=dict)
    """By path: the text as it is without anything sown. Without those that build on files outside of the copy."""
    parsed: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def copied_to(cls, folder: Path) -> Corpus:
        """Copy the configurations into a project of their own."""
        shutil.copytree(CONFIGS, folder)
        (folder / ".git").mkdir()
        (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
        return cls(folder, {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.yaml"))})

    def __post_init__(self) -> None:
        """Keep the files whose whole chain is in the copy."""
        for path in [*self.texts]:
            try:
                self.load(path)
            except FileNotFoundError:
                del self.texts[path]

    def restore(self) -> None:
        """Write back every text that differs."""
        for path, text in self.texts.items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def load(self, path: Path) -> dict[str, Any]:
        """Load a file as NeMo-RL does, without resolving interpolations."""
        config = dict(self._parsed(path))
        named = config.pop("defaults", None)
        if named is None:
            return config
        below: dict[str, Any] = {}
        for name in [named] if isinstance(named, str) else named:
            below = _merged(below, self.load(path.parent / name))
        return _merged(below, config)

    def parents(self, path: Path) -> list[Path]:
        named = self._parsed(path).get("defaults") or []
        return [(path.parent / name).resolve() for name in ([named] if isinstance(named, str) else named)]

    def _parsed(self, path: Path) -> dict[str, Any]:
        text = path.read_text(encoding="utf-8")
        if text not in self.parsed:
            self.parsed[text] = _relevant(yaml.load(text, yaml.CSafeLoader))
        return self.parsed[text]


def _relevant(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the values that say nothing of settings, so that merging hundreds takes little."""
    kept = (*FIELDS, KEY, "policy", "defaults", "_override_")
    return {
        key: _relevant(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if isinstance(value, dict) or key in kept
    }


def _merged(below: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result, over = dict(below), dict(over)
    for key, value in over.items():
        if isinstance(value, dict) and value.get("_override_"):
            over[key] = {name: inner for name, inner in value.items() if name != "_override_"}
            result.pop(key, None)
    return _deep(result, over)


def _deep(below: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def mappings(config: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield every mapping that NeMo-RL hands to Megatron, with its path."""
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        if key == KEY and isinstance(value, dict):
            yield (*path, key), value
        yield from mappings(value, (*path, str(key)))


def sown(corpus: Corpus, seed: int) -> list[Path]:
    """Sow settings into one to four files: any, or a file and some that it builds on. Return the changed files."""
    chance = random.Random(seed)
    paths = [*corpus.texts]
    chosen = [chance.choice(paths)]
    if chance.random() < 0.6:
        for _ in range(chance.randint(1, 3)):
            parents = corpus.parents(chosen[-1])
            chosen.append(chance.choice(parents) if parents and chance.random() < 0.8 else chance.choice(paths))
    chosen = [path for path in dict.fromkeys(chosen) if path in corpus.texts]
    for path in chosen:
        path.write_text(sow(corpus.texts[path], chance.choice(SETTINGS), chance), encoding="utf-8")
    return [path for path in chosen if path.read_text(encoding="utf-8") != corpus.texts[path]]
