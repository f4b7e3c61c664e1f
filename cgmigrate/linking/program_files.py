"""The files of which programs are made: what code imports or starts, and which code can meet in one program."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test
from cgmigrate.text.remembered import remembered

_MOST_FILES = 2000
"""A limit for the files that a program imports."""
_COMPUTED = re.compile(
    r"\b(import_module|__import__|run_path|run_module|exec_module|spec_from_file_location|load_source)\b|\bexec\s*\("
)
"""What runs code under a name that may be computed."""
_LITERAL = re.compile(r"\b(?:import_module|__import__)\(\s*[\"'][\w.]+[\"']|#[^\n]*")
_PASSES_ON = re.compile(r"\bsys\.argv\b|\bparse_known_args\b|\bREMAINDER\b")
"""What code has words of its command line by which it does not know."""
_STARTS = re.compile(r"\b(subprocess|os\.exec\w+|os\.system|os\.spawn\w+|Popen)\b")
"""What starts another program, which may get all arguments."""
_READS_OUTPUT = re.compile(r"\b(?:check_output|capture_output|PIPE|getoutput|stdout\s*=|popen)\b")
_NAMED = re.compile(
    r"\b(?:import_module|__import__)\(\s*[\"']([\w.]+)|^pytest_plugins\s*=([^\n]*(?:\n[ \t)\]][^\n]*)*)", re.MULTILINE
)
"""A module that is imported by a text."""
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+)?import[ \t]+(\([^()]*\)|[^#;\n]*)", re.MULTILINE)
_PROGRAM = re.compile(r"^[^#\n]*?((?:[\w.-]+/)*[\w.-]+\.(?:py|sh|bash))\b|-m[ \t\"',]+([A-Za-z_][\w.]*)", re.MULTILINE)
_ALIAS = re.compile(r"\s+as\s+\w+|#[^\n]*")
_NAME = re.compile(r"[\w.*]+")
_FIXTURES = "conftest.py"


@dataclass(frozen=True)
class ProgramFiles:
    """The files of code and the scripts of a checkout by what they import and start."""

    every: Callable[[], Iterable[str]]
    """Lists them, by their real paths."""
    text: Callable[[str], str]

    @remembered
    def closure(self, start: str) -> frozenset[str] | None:
        """Return the files that a program imports, and itself; None if not all are known."""
        paths, waiting = {start}, [start]
        while waiting and len(paths) < _MOST_FILES:
            path = waiting.pop()
            if self._runs_others(path):
                return None
            new = self._imported(path) - paths
            paths |= new
            waiting += new
        return frozenset(paths) if not waiting else None

    def named(self, program: str) -> list[str]:
        """Return the files of code with the name of a program."""
        return [one for one in self._by_stem.get(program.removesuffix(".py"), ()) if one.endswith("/" + program)]

    def meeting(self, others: Collection[str]) -> frozenset[str]:
        """Return the files of the programs that use one of some others."""
        return _reached(_reached(others, self._users), self._used)

    def _users(self, path: str) -> Collection[str]:
        return self._users_of.get(path, ())

    @cached_property
    def _users_of(self) -> Mapping[str, set[str]]:
        """The files to which each file may give what it has: that import it, or start it and read what it prints."""
        result: defaultdict[str, set[str]] = defaultdict(set)
        for path in self.every():
            reads = not path.endswith(".py") or _READS_OUTPUT.search(self.text(path)) is not None
            for one in self._used(path) if reads else self._imported(path) | self._fixtures(path):
                result[one].add(path)
        return result

    def _runs_others(self, path: str) -> bool:
        if is_part_of_megatron(path):
            return False
        text = self.text(path)
        is_computed = _COMPUTED.search(text) is not None
        return is_computed or (_PASSES_ON.search(text) is not None and _STARTS.search(text) is not None)

    @remembered
    def _used(self, path: str) -> frozenset[str]:
        """Return the files, none of Megatron's, that a file imports, starts, or gets its fixtures from."""
        if is_part_of_megatron(path):
            return frozenset()
        text = self.text(path)
        started = set[str]()
        if not path.endswith(".py") or _STARTS.search(text):
            programs = _PROGRAM.findall(text)
            started.update(one for name, _ in programs if name for one in self._at(name))
            started.update(one for _, name in programs if name for one in self._files_named(name, path))
        every = started.union(self._imported(path), self._fixtures(path))
        return frozenset(one for one in every if not is_part_of_megatron(one))

    def _fixtures(self, path: str) -> frozenset[str]:
        every = self._by_stem.get("conftest", ()) if is_test(path) else ()
        return frozenset(one for one in every if path.startswith(one.removesuffix(_FIXTURES)))

    @remembered
    def _imported(self, path: str) -> frozenset[str]:
        if is_part_of_megatron(path) or not path.endswith(".py"):
            return frozenset()
        text = self.text(path)
        if is_test(path) and _COMPUTED.search(_LITERAL.sub("", text)):
            # What programs import by a name that users give them is no part of a test.
            return frozenset(one for one in self.every() if not is_part_of_megatron(one) and not is_test(one))
        return frozenset(one for names in _imports_in(text) for one in self._files_of(names, path))

    @cached_property
    def _by_stem(self) -> Mapping[str, list[str]]:
        """The files of code by the last part of the name under which they are imported, or by their own."""
        result: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.every():
            folder, name = os.path.split(path)
            if name.endswith(".py"):
                result[os.path.basename(folder) if name == "__init__.py" else name[:-3]].append(path)
        return result

    def _at(self, program: str) -> list[str]:
        """Return the files whose paths end as a command names a program; all with that name if none does."""
        every = self._by_name.get(os.path.basename(program), [])
        return [one for one in every if one.endswith("/" + program.lstrip("./"))] or every

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        result: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.every():
            result[os.path.basename(path)].append(path)
        return result

    def _files_of(self, names: Sequence[str], importer: str) -> Iterator[str]:
        """Yield the files of the last module of some names that there is, and of the packages around it."""
        every = [self._files_named(name, importer) for name in names]
        found = next(filter(None, reversed(every)), [])
        yield from found
        others = chain.from_iterable(every)
        yield from (one for one in others if any(file.startswith(f"{os.path.dirname(one)}/") for file in found))

    def _files_named(self, name: str, importer: str) -> list[str]:
        """Return the files of a module: the nearest one, or all whose paths end in its name."""
        folder, bare = os.path.dirname(importer), name.lstrip(".")
        for _ in range(len(name) - len(bare) - 1):
            folder = os.path.dirname(folder)
        tail = bare.replace(".", "/")
        ends = (f"/{tail}.py", f"/{tail}/__init__.py") if tail else ("/__init__.py",)
        paths = self._by_stem.get(bare.rpartition(".")[2] or os.path.basename(folder), ())
        if bare != name:
            return [path for path in paths if path in {folder + end for end in ends}]
        every = [path for path in paths if path.endswith(ends)]
        around = [one for one in every if _is_around(one, ends, folder)]
        return every if "sys.path" in self.text(importer) else ([max(around, key=len)] if around else every)


def _is_around(path: str, ends: tuple[str, ...], folder: str) -> bool:
    """Return whether a file is below the folder of an importer, or one above it, as its module says."""
    root = next(path.removesuffix(end) for end in ends if path.endswith(end))
    return f"{folder}/".startswith(f"{root}/")


def _imports_in(text: str) -> Iterator[list[str]]:
    """Yield the names that code may import, each after the packages around it; ``.common`` is relative."""
    for source, names in _IMPORT.findall(text):
        start = source if not source or source.endswith(".") else f"{source}."
        for name in _NAME.findall(_ALIAS.sub("", names)):
            dots = start[: len(start) - len(start.lstrip("."))]
            parts = (start + name).strip(".").split(".")
            yield [dots + ".".join(parts[: at + 1]) for at in range(len(parts))]
    yield from ([name] for match in _NAMED.findall(text) for name in re.findall(r"[\w.]+", "".join(match)))


def _reached(starts: Iterable[str], used: Callable[[str], Iterable[str]]) -> frozenset[str]:
    paths = {*starts}
    waiting = [*paths]
    while waiting:
        new = {*used(waiting.pop())} - paths
        paths |= new
        waiting += new
    return frozenset(paths)
