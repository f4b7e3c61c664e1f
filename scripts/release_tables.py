"""Tables of what each release of megatron-core and Megatron-Bridge accepts: fields, flags, types, choices, defaults.

``python scripts/release_tables.py 0.19.2 --bridge 0.6.2`` fetches the wheels with pip, reads them, and puts the release
into ``rules/releases.json``. ``--diff 0.18 0.19`` prints what a release changed, from the committed tables.
Wheels before 0.17 have no command line: ``--source CLONE`` is a clone of Megatron-LM, of which the tag is read.

Fields are read from the source of the dataclasses, base classes included: importing Megatron-Bridge takes a GPU
machine's packages. Flags are read from the argument parser itself, run with the wheel's own code, because since
0.18 the parser makes many of them from dataclasses. ``tests/megatron/test_tables.py`` compares the table of
the installed release with the installed package.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgmigrate.megatron.tables import at, release_of
from cgmigrate.verify.packs import MODULES as CLASSES

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "rules/releases.json"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_24_x86_64", "manylinux2014_x86_64", "any")
CONTAINER = {"ConfigContainer": "megatron.bridge.training.config"}

Row = dict[str, Any]


@dataclass
class Wheels:
    """The modules of some unpacked wheels, parsed when first needed."""

    folders: list[Path]
    _trees: dict[str, ast.Module | None] = field(default_factory=dict)

    def tree(self, module: str) -> ast.Module | None:
        """Return the parsed module, None if no wheel has it."""
        if module not in self._trees:
            self._trees[module] = next((ast.parse(path.read_text("utf-8")) for path in self._files(module)), None)
        return self._trees[module]

    def _files(self, module: str) -> Iterator[Path]:
        for folder in self.folders:
            base = folder.joinpath(*module.split("."))
            yield from (path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file())

    def is_package(self, module: str) -> bool:
        """Return whether a module is the ``__init__`` of a package."""
        return any(path.name == "__init__.py" for path in self._files(module))

    def class_of(self, name: str, module: str, seen: frozenset[str] = frozenset()) -> tuple[ast.ClassDef, str] | None:
        """Return a class and the module that defines it, following imports; None if no wheel has it."""
        tree = self.tree(module)
        if tree is None or f"{module}.{name}" in seen:
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node, module
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    source = self._absolute(node, module)
                    if located := self.class_of(alias.name, source, seen | {f"{module}.{name}"}):
                        return located
        return None

    def _absolute(self, node: ast.ImportFrom, module: str) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        kept = parts[: len(parts) - node.level + self.is_package(module)]
        return ".".join([*kept, node.module] if node.module else kept)


def add_class(wheels: Wheels, name: str, module: str, classes: dict[str, Row]) -> str:
    """Add a dataclass and its bases to ``classes``; return the name that it gets there, empty if no wheel has it.

    Two classes of one name, one of which extends the other, are distinguished by the wheel's name before a dot.
    """
    located = wheels.class_of(name, module)
    if located is None:
        return ""
    node, home = located
    key = node.name if home.startswith("megatron.core") else f"{home.split('.')[1]}.{node.name}"
    if key not in classes:
        classes[key] = {}
        bases = [add_class(wheels, base.id, home, classes) for base in node.bases if isinstance(base, ast.Name)]
        own = [_row(line) for line in node.body if isinstance(line, ast.AnnAssign)] if _is_dataclass(node) else []
        classes[key] = {"bases": [base for base in bases if base], "fields": dict(filter(None, own))}
    return key


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def _row(statement: ast.AnnAssign) -> tuple[str, Row] | None:
    """A field's name and what the source says of it; None for what is no field."""
    annotation = ast.unparse(statement.annotation)
    if annotation.startswith(("ClassVar", "InitVar")) or not isinstance(statement.target, ast.Name):
        return None
    row: Row = {"type": annotation}
    if choices := _literals(statement.annotation):
        row["choices"] = choices
    if statement.value is not None:
        row |= _default(statement.value)
    return statement.target.id, row


def _literals(annotation: ast.expr) -> list[Any]:
    """The values of every ``Literal[...]`` in an annotation."""
    values: list[Any] = []
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            values += [item.value for item in items if isinstance(item, ast.Constant)]
    return values


def _default(value: ast.expr) -> Row:
    """The default as a value of JSON, else as the text of its expression."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        if options.get("init") is not None and ast.unparse(options["init"]) == "False":
            return {"init": False}
        if "default" in options:
            return _default(options["default"])
        if "default_factory" in options:
            made = ast.unparse(options["default_factory"])
            return {"default": {"list": [], "dict": {}}[made]} if made in ("list", "dict") else {"factory": made}
        return {}
    try:
        literal = ast.literal_eval(value)
        json.dumps(literal)
    except (ValueError, TypeError):
        return {"expression": ast.unparse(value)}
    return {"default": literal}


PLACEHOLDERS = ("einops", "pydantic", "regex", "six")
"""Packages that older releases import, and that no flag depends on: their names are classes that do nothing."""
PARSER = """
import argparse, importlib.abc, importlib.machinery, json, sys, types
class StandIn(types.ModuleType):
    __path__ = []
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        own = {"__init__": lambda self, *a, **k: None, "__init_subclass__": lambda cls, **k: None}
        return type(name, (), own)
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return StandIn(spec.name)
    def exec_module(self, module):
        pass
sys.meta_path.append(Finder())
from megatron.training import arguments
parser = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
rows = {}
def plain(value):
    try:
        json.dumps(value)
        return value
    except TypeError:
        return {"expression": getattr(value, "name", None) and str(value) or repr(value)}
for action in parser._actions:
    if not action.option_strings or action.dest == "help":
        continue
    row = {"dest": action.dest, "action": type(action).__name__.strip("_").removesuffix("Action")}
    if action.nargs not in (None, 0):
        row["nargs"] = action.nargs
    if action.choices is not None:
        row["choices"] = [plain(getattr(choice, "name", choice)) for choice in action.choices]
    if action.type is not None:
        row["type"] = getattr(action.type, "__name__", str(type(action.type).__name__))
    if action.const is not None:
        row["const"] = plain(action.const)
    if action.default is not None:
        row["default"] = plain(action.default)
    if len(action.option_strings) > 1:
        row["also"] = action.option_strings[1:]
    rows[action.option_strings[0]] = row
print(json.dumps(rows))
"""


def flags_of(folder: Path) -> dict[str, Row]:
    """Return the flags of Megatron-LM's command line by name; empty where the wheel has no megatron.training."""
    if not (folder / "megatron/training/arguments.py").is_file():
        return {}
    command = [sys.executable, "-P", "-c", PARSER, *PLACEHOLDERS]
    done = subprocess.run(command, env=_with(folder), capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise SystemExit(f"the argument parser of {folder.name} does not run:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _with(folder: Path) -> dict[str, str]:
    # 0.15 compiles an extension when it is imported, for the devices that it sees.
    return {**os.environ, "PYTHONPATH": str(folder), "CUDA_VISIBLE_DEVICES": "", "TORCH_CUDA_ARCH_LIST": "9.0"}


def classes_of(wheels: Wheels, roots: Mapping[str, str]) -> dict[str, Row]:
    """Return these classes, and those that a container among them holds, each with its bases and own fields."""
    classes: dict[str, Row] = {}
    for name, module in roots.items():
        key = add_class(wheels, name, module, classes)
        if name == "ConfigContainer" and key:
            for part in _parts(classes[key]["fields"]):
                add_class(wheels, part, module, classes)
    return {name: entry for name, entry in classes.items() if entry["fields"] or entry["bases"]}


def _parts(fields: Mapping[str, Row]) -> Iterator[str]:
    for row in fields.values():
        for word in ast.walk(ast.parse(row["type"].strip("'\""), mode="eval")):
            if isinstance(word, ast.Name) and word.id.endswith(("Config", "Provider")):
                yield word.id


def fetched(package: str, release: str, folder: Path) -> Path:
    """Download a wheel with pip and unpack it; return the folder."""
    words = [f"--platform={platform}" for platform in PLATFORMS]
    python = "3.10" if package == "megatron-core" and release < "0.14" else "3.12"
    command = ["download", "-q", "--no-deps", "--only-binary=:all:", f"--python-version={python}", *words]
    subprocess.run(
        [sys.executable, "-m", "pip", *command, "-d", str(folder), f"{package}=={release}"], check=True, timeout=600
    )
    [wheel] = folder.glob(f"{package.replace('-', '_')}-{release}-*.whl")
    unpacked = folder / f"{package}-{release}"
    zipfile.ZipFile(wheel).extractall(unpacked)
    return unpacked


def at_tag(clone: str, release: str, folder: Path) -> Path:
    """Unpack the sources of a release from a clone of Megatron-LM; return the folder."""
    unpacked, archive = folder / f"Megatron-LM-{release}", folder / "sources.tar"
    subprocess.run(["git", "-C", clone, "archive", "-o", str(archive), f"core_v{release}", "megatron"], check=True)
    with tarfile.open(archive) as sources:
        sources.extractall(unpacked, filter="data")
    return unpacked


def table_of(release: str, bridge: str, clone: str = "") -> Row:
    """Return what a release accepts, read from its wheel and that of a Megatron-Bridge, empty for none.

    ``classes`` maps a class to its bases and own fields, ``flags`` a flag to what its parser does with it. Where a
    ``clone`` of Megatron-LM is named, flags are those of its tag.
    """
    with tempfile.TemporaryDirectory() as scratch:
        core = fetched("megatron-core", release, Path(scratch))
        folders, roots = [core], dict(CLASSES)
        if bridge:
            folders.insert(0, fetched("megatron-bridge", bridge, Path(scratch)))
            roots |= CONTAINER
        sources = at_tag(clone, release, Path(scratch)) if clone else core
        return {"classes": classes_of(Wheels(folders), roots), "flags": flags_of(sources)}


def split(document: Row, minor: str) -> Row:
    """Return the table of one release out of all (what ``table_of`` returned for it)."""

    release = release_of(minor)

    def rows(entries: Row) -> Row:
        return {name: row for name, history in entries.items() if (row := at(history, release)) is not None}

    classes = {
        name: {"bases": bases["names"], "fields": rows(entry["fields"])}
        for name, entry in document["classes"].items()
        if (bases := at(entry["bases"], release)) is not None
    }
    return {"classes": classes, "flags": rows(document["flags"])}


def joined(tables: Mapping[str, Row]) -> Row:
    """Return all tables as one: each entry with the first release of each of its forms, None where it is gone."""
    names = list(dict.fromkeys(name for table in tables.values() for name in table["classes"]))
    return {
        "classes": {
            name: {
                "bases": _history({m: _bases(t["classes"].get(name)) for m, t in tables.items()}),
                "fields": _histories({m: t["classes"].get(name, {}).get("fields", {}) for m, t in tables.items()}),
            }
            for name in names
        },
        "flags": _histories({m: t["flags"] for m, t in tables.items() if t["flags"]}),
    }


def _bases(entry: Row | None) -> Row | None:
    return None if entry is None else {"names": entry["bases"]}


def _histories(entries: Mapping[str, Row]) -> Row:
    names = dict.fromkeys(name for rows in entries.values() for name in rows)
    return {name: _history({minor: rows.get(name) for minor, rows in entries.items()}) for name in names}


def _history(forms: Mapping[str, Row | None]) -> Row:
    history: Row = {}
    last = None
    for minor, form in forms.items():
        if form != last:
            history[minor] = last = form
    return history


def written(document: Row) -> str:
    """Return the tables as JSON with a line for each entry, so that a new release is a difference to read."""

    def rows(entries: Row, indent: str) -> str:
        lines = [f"{indent} {json.dumps(name)}: {json.dumps(row)}" for name, row in entries.items()]
        return "{\n" + ",\n".join(lines) + "\n" + indent + "}" if lines else "{}"

    classes = [
        f'  {json.dumps(name)}: {{"bases": {json.dumps(entry["bases"])}, "fields": {rows(entry["fields"], "  ")}}}'
        for name, entry in document["classes"].items()
    ]
    parts = [
        f'"releases": {json.dumps(document["releases"])}',
        f'"bridges": {json.dumps(document["bridges"])}',
        f'"flags-since": {json.dumps(document["flags-since"])}',
        '"classes": {\n' + ",\n".join(classes) + "\n }",
        f'"flags": {rows(document["flags"], " ")}',
    ]
    return "{\n" + ",\n".join(" " + part for part in parts) + "\n}\n"


def with_table(document: Row, release: str, table: Row, bridge: str = "") -> Row:
    """Return the tables of all releases with the table of one; ``bridge`` is the Megatron-Bridge that it has."""
    minor = release.rpartition(".")[0]
    tables = {minor: split(document, minor) for minor in document["releases"]} | {minor: table}
    patches = document["releases"] | {minor: release}
    bridges = document["bridges"] | ({minor: bridge} if bridge else {})
    order = sorted(tables, key=release_of)
    head = {
        "releases": {minor: patches[minor] for minor in order},
        "bridges": {minor: bridges[minor] for minor in order if minor in bridges},
        "flags-since": next(minor for minor in order if tables[minor]["flags"]),
    }
    return head | joined({minor: tables[minor] for minor in order})


def add(releases: Sequence[str], bridge: str, clone: str) -> None:
    """Read these releases and write the tables with them; a release that is there keeps its Megatron-Bridge."""
    document = json.loads(TABLES.read_text("utf-8")) if TABLES.exists() else {"releases": {}, "bridges": {}}
    for release in releases:
        used = bridge or document["bridges"].get(release.rpartition(".")[0], "")
        document = with_table(document, release, table_of(release, used, clone), used)
    TABLES.write_text(written(document), "utf-8")


def differences(old: str, new: str) -> Iterator[str]:
    """Return a line for each class, field or flag that is new, gone or changed between two releases."""
    document = json.loads(TABLES.read_text("utf-8"))
    for minor in (old, new):
        if minor not in document["releases"]:
            raise SystemExit(f"{minor} is none of the releases in {TABLES.name}: {', '.join(document['releases'])}")
    before, after = split(document, old), split(document, new)
    for name in dict.fromkeys([*before["classes"], *after["classes"]]):
        one, other = (table["classes"].get(name, {}).get("fields", {}) for table in (before, after))
        yield from _changes(name + ".", one, other)
    if before["flags"]:
        yield from _changes("", before["flags"], after["flags"])


def _changes(prefix: str, before: Row, after: Row) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"gone     {prefix}{name}"
        elif name not in before:
            yield f"new      {prefix}{name}: {_shown(after[name])}"
        elif before[name] != after[name]:
            yield f"changed  {prefix}{name}: {'; '.join(_differing(before[name], after[name]))}"


def _differing(before: Row, after: Row) -> Iterator[str]:
    for part in dict.fromkeys([*before, *after]):
        if before.get(part) != after.get(part):
            yield f"{part} {json.dumps(before.get(part))} -> {json.dumps(after.get(part))}"


def _shown(row: Row) -> str:
    return ", ".join(f"{part} {json.dumps(value)}" for part, value in row.items())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="a published release, such as 0.19.2")
    parser.add_argument("--bridge", default="", metavar="RELEASE", help="the Megatron-Bridge for it: 0.6.2")
    parser.add_argument("--source", default="", metavar="CLONE", help="a clone of Megatron-LM, for what wheels lack")
    parser.add_argument("--diff", nargs=2, metavar=("OLD", "NEW"), help="print what changed between two releases")
    options = parser.parse_args()
    if options.diff:
        print("\n".join(differences(*options.diff)))
    elif options.releases:
        add(options.releases, options.bridge, options.source)
    else:
        parser.error("give releases, or --diff OLD NEW")


if __name__ == "__main__":
    main()
