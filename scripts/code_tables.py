"""Table of the code that releases of Megatron-LM no longer have as it was: names of modules, and parameters.

``python scripts/code_tables.py CLONE BRIDGE`` reads the tags ``core_v*`` of a clone of Megatron-LM, and of one of
Megatron-Bridge the tags whose submodule is of these releases. It writes ``rules/code.json``: for each module the names
that it had in a release and has not in the newest one, with the first release without them and, where the name is
defined in one other module there, that module; and for each function or class whose parameters changed so that a call
of before may fail, its parameters by release.

Sources are parsed, nothing is run: modules that need a GPU machine's packages are read like others.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from cgmigrate.megatron.code import CallShape, Parameters

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "rules/code.json"
PACKAGES = ("megatron/core", "megatron/training", "megatron/legacy", "megatron/inference", "megatron/post_training")
LAST_PATCHES = ("0.12.3", "0.13.1", "0.14.0", "0.15.3", "0.16.1", "0.17.1", "0.18.2", "0.19.0")
BRIDGE = "megatron.bridge"
BRIDGES = {"0.14": "0.1.0rc4", "0.15": "0.2.2", "0.16": "0.3.1", "0.17": "0.4.2", "0.18": "0.5.1", "0.19": "0.6.0"}
"""The tag of Megatron-Bridge for each release of megatron-core: its submodule, of 0.1 its requirement."""

WEIGHTS = {"transformer_layer": ["mtp", "0.17", "mtp_model_layer"]}
"""Parts of the names of weights, each with one above it (Megatron-LM #2363): read, since many classes make them."""


@dataclass
class Module:
    """One module: what it defines and what it imports, each name with where it comes from."""

    name: str
    is_package: bool
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A local name → the module and the name there; an empty name is the module itself."""
    stars: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, is_package: bool, text: str) -> Module:
        """Return what the source of a module has at its top."""
        module = cls(name, is_package)
        for node in _at_top(ast.parse(text).body):
            module._add(node)
        return module

    def _add(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.defined[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in self.imported:
                self.imported[name] = self.imported[other]
            case ast.Assign(targets=targets):
                self.defined |= {one.id: node for one in targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                self.defined[name] = node
            case ast.Import(names=names):
                self.imported |= {one.asname: (one.name, "") for one in names if one.asname}
            case ast.ImportFrom():
                source = self._absolute(node)
                for one in node.names:
                    if one.name == "*":
                        self.stars.append(source)
                    else:
                        self.imported[one.asname or one.name] = (source, one.name)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*kept, node.module] if node.module else kept)


def _at_top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, those in conditions and attempts included."""
    for node in body:
        yield node
        for name in (
            ("body", "orelse", "handlers", "finalbody") if isinstance(node, (ast.If, ast.Try, ast.With)) else ()
        ):
            for below in getattr(node, name, ()):
                yield from _at_top(below.body if isinstance(below, ast.ExceptHandler) else [below])


@dataclass
class Release:
    """The modules of a release, by their names."""

    modules: dict[str, Module]

    @classmethod
    def at_tag(cls, clone: str, tag: str, packages: Iterable[str]) -> Release:
        """Read the modules that the packages have at a tag; ``tag`` may end with a folder, as in ``v0.6.0:src``."""
        packed = subprocess.run(
            ["git", "-C", clone, "archive", tag, "megatron"], check=True, capture_output=True
        ).stdout
        with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(scratch, filter="data")
            paths = [one for package in packages for one in sorted(Path(scratch, package).rglob("*.py"))]
            modules = {}
            for path in paths:
                parts = path.relative_to(scratch).with_suffix("").parts
                is_package = parts[-1] == "__init__"
                name = ".".join(parts[:-1] if is_package else parts)
                modules[name] = Module.of(name, is_package, path.read_text("utf-8"))
        return cls(modules)

    def origin(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> tuple[str, str]:
        """Return the module that defines what a name of a module is, and its name there.

        Both are empty where it is of none of these packages.
        """
        if (one := self.modules.get(module)) is None or module in seen:
            return "", ""
        if name in one.defined:
            return module, name
        if name in one.imported:
            return self.origin(*one.imported[name], seen | {module})
        places = (self.origin(star, name, seen | {module}) for star in one.stars)
        return next((place for place in places if place[0]), ("", ""))

    def home(self, module: str, name: str) -> str:
        """Return the module that defines a name of a module under that name; empty where it comes from elsewhere."""
        home, original = self.origin(module, name)
        return home if original == name else ""

    def names(self, module: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return the names of these packages that code can import from a module."""
        one = self.modules.get(module)
        if one is None or module in seen:
            return set()
        starred = {name for star in one.stars for name in self.names(star, seen | {module})}
        own = {*one.defined, *(name for name in one.imported if self.origin(module, name)[0]), *starred}
        return {name for name in own if not name.startswith("__")}

    def bound(self, module: str) -> set[str]:
        """Return all names that a module has, those of other packages included."""
        one = self.modules.get(module)
        return self.names(module) | ({*one.defined, *one.imported} if one else set())

    def gives_any(self, module: str) -> bool:
        """Return whether a module has names that its text does not show."""
        return module in self.modules and "__getattr__" in self.modules[module].defined

    def parameters(self, module: str, name: str) -> str | None:
        """Return the parameters of a function or class that a module defines; None where they are not written."""
        node = self.modules[module].defined.get(name)
        if isinstance(node, ast.ClassDef):
            node = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
            return str(Parameters.of(node.args, is_method=True)) if node else None
        if not isinstance(node, ast.FunctionDef):
            return None
        other = self._of_other(module, node)
        return str(Parameters.of(node.args)) if other is None else other

    def methods(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> dict[str, Parameters]:
        """Return the parameters of the methods of a class, those of its bases in these packages included."""
        node = self.modules[module].defined.get(name)
        if not isinstance(node, ast.ClassDef) or f"{module}.{name}" in seen:
            return {}
        methods: dict[str, Parameters] = {}
        for base in reversed([one.id for one in node.bases if isinstance(one, ast.Name)]):
            home, original = self.origin(module, base)
            methods |= self.methods(home, original, seen | {f"{module}.{name}"}) if home else {}
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and (one.name == "__init__" or not one.name.startswith("_")):
                methods[one.name] = Parameters.of(one.args, is_method=True)
                if any(isinstance(mark, ast.Name) for mark in one.decorator_list):
                    # A property, or a method of the class.
                    del methods[one.name]
        return methods

    def _of_other(self, module: str, node: ast.FunctionDef) -> str | None:
        """Return the parameters of the function to which another one passes all that it gets; None without one."""
        for call in ast.walk(node) if ast.unparse(node.args) == "*args, **kwargs" else ():
            match call:
                case ast.Call(func=ast.Name(id=name), args=[ast.Starred()], keywords=[ast.keyword(arg=None)]):
                    home = self.home(module, name)
                    return self.parameters(home, name) if home else None
        return None

    def callbacks(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> dict[str, set[CallShape]]:
        """Return how a function calls what it gets, by parameter; what it passes on to another function included."""
        node = self.modules[module].defined.get(name)
        if not isinstance(node, ast.FunctionDef) or f"{module}.{name}" in seen:
            return {}
        parameters = Parameters.of(node.args).names
        calls: dict[str, set[CallShape]] = {}
        for call in ast.walk(node):
            match call:
                case ast.Call(func=ast.Name(id=one)) if one in parameters:
                    calls.setdefault(one, set()).update(_shape_of(call))
                case ast.Call(func=ast.Name(id=one)):
                    home, original = self.origin(module, one)
                    below = self.callbacks(home, original, seen | {f"{module}.{name}"}) if home else {}
                    text = self.parameters(home, original) if below else None
                    for argument, shapes in _passed_on(call, Parameters.read(text or ""), below):
                        if argument in parameters:
                            calls.setdefault(argument, set()).update(shapes)
        return calls


def _passed_on(
    call: ast.Call, of: Parameters, callbacks: Mapping[str, set[CallShape]]
) -> Iterator[tuple[str, set[CallShape]]]:
    """Yield the names that a call passes on to parameters which the called function calls, each with its calls."""
    pairs = [*zip(of.positional, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
    for parameter, value in pairs:
        if isinstance(value, ast.Name) and parameter in callbacks:
            yield value.id, callbacks[parameter]


def aliases(releases: Mapping[str, Release]) -> dict[str, str]:
    """Return the modules that packages have under another name: `megatron.core.mpu`."""
    known = {}
    for one in releases.values():
        for module in filter(lambda module: module.is_package, one.modules.values()):
            for name, place in module.imported.items():
                target = ".".join(filter(None, place))
                if target in one.modules and target != f"{module.name}.{name}":
                    known[f"{module.name}.{name}"] = target
    return dict(sorted(known.items()))


def gone(releases: Mapping[str, Release]) -> dict[str, dict[str, list[object]]]:
    """Return the names that are gone, by module: the first release without one, and where it is there.

    Without a name it is the module itself. With the place is true for the same object, which the old module only
    passed on, and false for one whose definition has the same text.
    """
    every = list(releases)
    rows: dict[str, dict[str, list[object]]] = {}
    for before, after in itertools.pairwise(every):
        later = [releases[one] for one in every[every.index(after) :]]
        for module in releases[before].modules:
            left = set.union(*(one.bound(module) for one in later))
            is_gone = not any(module in one.modules for one in later)
            if any(one.gives_any(module) for one in later):
                continue
            if is_gone:
                rows.setdefault(module, {})[""] = [after]
            for name in sorted(releases[before].names(module) - left):
                place = _place(releases[before], releases[after], module, name)
                if place and not all(name in one.names(str(place[0])) for one in later):
                    # It has moved on since then, or is gone.
                    place = []
                if place or not is_gone:
                    rows.setdefault(module, {})[name] = [after, *place]
    return rows


def _place(old: Release, new: Release, module: str, name: str) -> list[object]:
    """Return where a name is now and whether it is the same: the old module only passed it on, or the text is equal."""
    every = [one for one in new.modules if name in new.modules[one].defined and not one.startswith("megatron.legacy")]
    # Megatron-Bridge depends on Megatron-LM, and not the other way round.
    homes = [one for one in every if one.startswith(BRIDGE) is module.startswith(BRIDGE)]
    homes = homes or (every if module.startswith(BRIDGE) else [])
    home = old.home(module, name)
    if home in homes:
        return [home, True]
    if len(homes) != 1:
        return []
    same_text = home and ast.dump(old.modules[home].defined[name]) == ast.dump(new.modules[homes[0]].defined[name])
    return [homes[0], *([False] if same_text else [])]


def _shape_of(call: ast.Call) -> Iterator[CallShape]:
    """Yield the shape of a call; nothing for one whose arguments are not all shown."""
    names = [one.arg for one in call.keywords]
    if None not in names and not any(isinstance(one, ast.Starred) for one in call.args):
        yield CallShape(len(call.args), frozenset(filter(None, names)))


def signatures(releases: Mapping[str, Release]) -> dict[str, dict[str, str]]:
    """Return the parameters by release of each function or class of which a call can fail that was right before."""
    rows: dict[str, dict[str, str]] = {}
    places = {(module, name) for one in releases.values() for module in one.modules for name in one.names(module)}
    for module, name in sorted(places):
        history: dict[str, str] = {}
        for release, one in releases.items():
            home, original = one.origin(module, name)
            text = one.parameters(home, original) if home else None
            if text is not None and text != next(reversed(history.values()), None):
                history[release] = text
        forms = [Parameters.read(text) for text in history.values()]
        if any(not after.accepts_all_of(before) for before, after in itertools.pairwise(forms)):
            rows[f"{module}.{name}"] = history
    return rows


def overrides(releases: Mapping[str, Release]) -> dict[str, str | dict[str, dict[str, list[str]]]]:
    """Return the parameters that methods got and still have, by class, method and release.

    For a class with the row of another one, such as its base, it is the name of that class.
    """
    rows: dict[str, dict[str, dict[str, list[str]]]] = {}
    places = {(module, name) for one in releases.values() for module in one.modules for name in one.names(module)}
    for module, name in sorted(places):
        homes = {release: one.origin(module, name) for release, one in releases.items()}
        forms = {release: releases[release].methods(*home) for release, home in homes.items() if home[0]}
        for (_, before), (release, after) in itertools.pairwise(forms.items()):
            later = [methods for one, methods in forms.items() if one >= release]
            for method in sorted(before.keys() & after.keys()):
                kept = frozenset.intersection(*(one[method].names for one in later if method in one))
                if added := sorted(kept - before[method].names):
                    rows.setdefault(f"{module}.{name}", {}).setdefault(method, {})[release] = added
    first: dict[str, str] = {}
    for name, row in rows.items():
        first.setdefault(json.dumps(row), name)
    return {name: row if (of := first[json.dumps(row)]) == name else of for name, row in rows.items()}


def callbacks(releases: Mapping[str, Release]) -> dict[str, dict[str, dict[str, list[object]]]]:
    """Return how functions call what they get, where that changed: by function, parameter and release.

    A row has the position of the parameter, -1 for one without, and for each call the number of arguments by position
    and the names of the others.
    """
    rows: dict[str, dict[str, dict[str, list[object]]]] = {}
    places = {(module, name) for one in releases.values() for module in one.modules for name in one.names(module)}
    for module, name in sorted(places):
        for release, one in releases.items():
            home, original = one.origin(module, name)
            for parameter, calls in (one.callbacks(home, original) if home else {}).items():
                positional = Parameters.read(one.parameters(home, original) or "").positional
                position = positional.index(parameter) if parameter in positional else -1
                row = [position, sorted([call.positional, sorted(call.names)] for call in calls)]
                history = rows.setdefault(f"{module}.{name}", {}).setdefault(parameter, {})
                if calls and [row[1]] != [one[1] for one in list(history.values())[-1:]]:
                    history[release] = row
    changed = {
        function: {parameter: history for parameter, history in sorted(of.items()) if len(history) > 1}
        for function, of in rows.items()
    }
    return {function: of for function, of in changed.items() if of}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", help="a clone of Megatron-LM with its tags")
    parser.add_argument("bridge", help="a clone of Megatron-Bridge with its tags")
    options = parser.parse_args()
    releases = {one.rpartition(".")[0]: Release.at_tag(options.clone, f"core_v{one}", PACKAGES) for one in LAST_PATCHES}
    for release, tag in BRIDGES.items():
        releases[release].modules |= Release.at_tag(options.bridge, f"v{tag}:src", ["megatron/bridge"]).modules
    table: dict[str, Mapping[str, object]] = {
        "packages": {BRIDGE: {release: ".".join(tag.split(".")[:2]) for release, tag in BRIDGES.items()}},
        "aliases": aliases(releases),
        "gone": gone(releases),
        "parameters": signatures(releases),
        "callbacks": callbacks(releases),
        "overrides": overrides(releases),
        "weights": WEIGHTS,
    }
    lines = (
        f"{json.dumps(part)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
        + "\n}"
        for part, rows in table.items()
    )
    TABLE.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")


if __name__ == "__main__":
    main()
