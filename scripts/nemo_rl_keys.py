"""Keys of NeMo-RL's configurations that a release no longer reads.

``python -m scripts.nemo_rl_keys CLONE`` reads the tags of a clone of NeMo-RL and writes ``rules/nemo-rl-keys.json``:
for each key the first release without it, and what replaces it. A key counts only if that is certain:

- it was in an exemplar or a class of configurations of a release whose code had its name, and no code since then has;
- or it was in both, and its class has it one level below now (`data.prompt_file`, `data.train.prompt_file`);
- or a validator of the newest release refuses it and names the new one.

Keys below mappings that are passed on (`kwargs`, `env_vars`) are those of others. Sources are parsed, nothing is run.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).resolve().parents[1] / "rules/nemo-rl-keys.json"
Key = tuple[str, ...]
RELEASES = {"0.3": "v0.3.1", "0.4": "v0.4.0", "0.5": "v0.5.0", "0.6": "v0.6.0", "0.7": "v0.7.0", "0.8": "HEAD"}
"""Release → tag; the main branch counts as the release after the newest."""
_PASSED_ON = re.compile(r"kwargs|env_vars|overrides|_args\Z|config\Z")
_OF_CONFIG = ("TypedDict", "BaseModel")
_DEEPEST = 8


class _Loader(yaml.SafeLoader):
    """Reads any tag as nothing."""


_Loader.add_multi_constructor("", lambda *_: None)


@dataclass
class Tag:
    """What one release has: keys of its exemplars, words of its code, and classes of configurations."""

    exemplars: set[Key] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)

    @classmethod
    def read(cls, clone: Path, tag: str) -> Tag:
        """Return what the files of a tag have."""
        own = cls()
        for name in _git(clone, "ls-tree", "-r", "--name-only", tag).splitlines():
            if name.startswith("examples/") and "config" in name and name.endswith(".yaml"):
                own.exemplars |= set(_keys_of(yaml.load(_git(clone, "show", f"{tag}:{name}"), _Loader)))
            elif name.startswith("nemo_rl/") and name.endswith(".py"):
                own.add_code(_git(clone, "show", f"{tag}:{name}"))
        return own

    def add_code(self, text: str) -> None:
        """Add the words and classes of a module."""
        self.words |= set(re.findall(r"\w+", text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, []).append(node)

    def declared(self) -> dict[Key, None]:
        """Return the keys that classes declare, from the top of a configuration."""
        return dict.fromkeys(key for key, _ in self._fields("MasterConfig", (), ()))

    def refused(self) -> Iterator[tuple[Key, str]]:
        """Yield the keys that a validator refuses, each with the new one."""
        for key, node in self._fields("MasterConfig", (), ()):
            for one in ast.walk(node) if isinstance(node, ast.ClassDef) else ():
                match one:
                    case ast.Assign(targets=[ast.Name(id="renamed")], value=ast.Dict() as pairs):
                        for old, new in ast.literal_eval(pairs).items():
                            yield (*key, old), ".".join((*key, new))

    def _fields(self, name: str, above: Key, seen: Key) -> Iterator[tuple[Key, ast.AST]]:
        """Yield the keys of a class and of those below it, each with what declares it: a class for its own place."""
        if name in seen or len(seen) > _DEEPEST:
            return
        for node in self.classes.get(name, ()):
            yield above, node
            for base in node.bases:
                yield from self._fields(ast.unparse(base).rpartition(".")[2], above, (*seen, name))
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    key = (*above, one.target.id)
                    yield key, one
                    for word in set(re.findall(r"\w+", ast.unparse(one.annotation))):
                        if self._is_config(word):
                            yield from self._fields(word, key, (*seen, name))

    def _is_config(self, name: str) -> bool:
        bases = [ast.unparse(base) for node in self.classes.get(name, ()) for base in node.bases]
        return any(base.endswith((*_OF_CONFIG, "Config")) for base in bases)


def rows(tags: Mapping[str, Tag]) -> dict[str, dict[str, Any]]:
    """Return the keys that are gone, each with the release and what replaces it."""
    every, releases = list(tags.values()), list(tags)
    declared = [tag.declared() for tag in every]
    result: dict[str, dict[str, Any]] = {}
    for key in sorted(set().union(*declared, *(tag.exemplars for tag in every))):
        if not key or not key[-1].isidentifier() or any(map(_PASSED_ON.search, key[:-1])):
            continue
        having = [at for at, tag in enumerate(every) if key[-1] in tag.words]
        was_read = any(key in declared[at] or key in every[at].exemplars for at in having)
        if was_read and having[-1] + 1 < len(every):
            result[".".join(key)] = {"gone": releases[having[-1] + 1]}
        elif (last := max((at for at, keys in enumerate(declared) if key in keys), default=-1)) + 1 < len(every):
            below = [other for other in declared[-1] if _is_below(other, key)]
            if last >= 0 and below and any(key in tag.exemplars for tag in every[: last + 1]):
                result[".".join(key)] = {"gone": releases[last + 1], "now": sorted(map(".".join, below))}
    for key, new in every[-1].refused():
        result[".".join(key)] = {"gone": releases[-1], "now": new.split()[:1]}
    return dict(sorted(result.items()))


def _is_below(key: Key, old: Key) -> bool:
    return len(key) == len(old) + 1 and key[: len(old) - 1] == old[:-1] and key[-1] == old[-1]


def _keys_of(value: Any, above: Key = ()) -> Iterator[Key]:
    for name, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(name, str):
            key = (*above, *name.split("."))
            yield key
            yield from _keys_of(inner, key)


def _git(clone: Path, *words: str) -> str:
    result = subprocess.run(["git", "-C", str(clone), *words], capture_output=True, check=True)
    return result.stdout.decode("utf-8", "replace")


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path, help="a clone of NeMo-RL with its tags")
    clone = parser.parse_args().clone
    table = rows({release: Tag.read(clone, tag) for release, tag in RELEASES.items()})
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
