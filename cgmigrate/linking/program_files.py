"""The files of which a program is made: what code imports, and what that imports."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from cgmigrate.linking.name_places import may_run
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import PAGES, PROGRAMS
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.files import text_if_readable
from cgmigrate.text.remembered import remembered

_MOST_FILES = 2000
"""A limit for the files that a program imports."""
_COMPUTED = re.compile(
    r"\b(import_module|__import__|run_path|run_module|exec_module|spec_from_file_location|load_source)\b|\bexec\s*\("
)
"""What runs code under a name that may be computed."""
_PASSES_ON = re.compile(r"\bsys\.argv\b|\bparse_known_args\b|\bREMAINDER\b")
"""What code has words of its command line by which it does not know."""
_STARTS = re.compile(r"\b(subprocess|os\.exec\w+|os\.system|os\.spawn\w+|Popen)\b")
"""What starts another program, which may get all arguments."""
_NAMED = re.compile(
    r"\b(?:import_module|__import__)\(\s*[\"']([\w.]+)|^pytest_plugins\s*=([^\n]*(?:\n[ \t)\]][^\n]*)*)", re.MULTILINE
)
"""A module that is imported by a text."""
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+)?import[ \t]+(\([^()]*\)|[^#;\n]*)", re.MULTILINE)
_ALIAS = re.compile(r"\s+as\s+\w+|#[^\n]*")
_NAME = re.compile(r"[\w.*]+")


@dataclass(frozen=True)
class ProgramFiles:
    """The files of code of a checkout by what they import."""

    every: Callable[[], Iterable[str]]
    """Lists them, by their real paths."""
    text: Callable[[str], str]

    @remembered
    def parts_of(self, start: str) -> frozenset[str]:
        """Return the files that a program imports under names that are written, and itself."""
        paths, waiting = {start}, [start]
        while waiting and len(paths) < _MOST_FILES:
            new = self._imported(waiting.pop()) - paths
            paths |= new
            waiting += new
        return frozenset(paths)

    @remembered
    def closure(self, start: str) -> frozenset[str] | None:
        """Return the files that a program imports, and itself; None if not all are known."""
        parts = self.parts_of(start)
        return None if len(parts) >= _MOST_FILES or any(map(self.runs_others, parts)) else parts

    def named(self, program: str) -> list[str]:
        """Return the files of code with the name of a program."""
        return [one for one in self._by_stem.get(program.removesuffix(".py"), ()) if one.endswith("/" + program)]

    @remembered
    def imported(self, path: str) -> frozenset[str]:
        """Return the files that code imports, and those from which packages among them have their names."""
        own = self._imported(path)
        packages = (one for one in own if os.path.basename(one) == "__init__.py")
        return own.union(*(self._imported(one) for one in packages))

    @remembered
    def runs_others(self, path: str) -> bool:
        """Return whether code, none of Megatron's, may run other code under a name that is not written."""
        if is_part_of_megatron(path):
            return False
        text = self.text(path)
        if "spec_utils import" in text and "importlib" not in text:
            # Megatron's function of this name gets the layers of a model from a module.
            text = text.replace("import_module", "")
        is_computed = _COMPUTED.search(text) is not None
        return is_computed or (_PASSES_ON.search(text) is not None and _STARTS.search(text) is not None)

    @remembered
    def _imported(self, path: str) -> frozenset[str]:
        if is_part_of_megatron(path) or not path.endswith(".py"):
            return frozenset()
        return frozenset(one for names in _imports_in(self.text(path)) for one in self._files_of(names, path))

    @cached_property
    def _by_stem(self) -> Mapping[str, list[str]]:
        """The files of code by the last part of the name under which they are imported, or by their own."""
        result: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.every():
            folder, name = os.path.split(path)
            if name.endswith(".py"):
                result[os.path.basename(folder) if name == "__init__.py" else name[:-3]].append(path)
        return result

    def _files_of(self, names: Sequence[str], importer: str) -> Iterator[str]:
        """Yield the files of the last module of some names that there is, and of the packages around it."""
        every = [self._files_named(name, importer) for name in names]
        last = next(filter(None, reversed(every)), [])
        yield from last
        others = chain.from_iterable(every)
        yield from (one for one in others if any(file.startswith(f"{os.path.dirname(one)}/") for file in last))

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


def text_of_code(path: str) -> str:
    """Return the text of a file, empty for one that cannot be read."""
    return text_if_readable(path) or ""


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


# --- code that reads data -------------------------------------------------------------------------

YAML_WORDS = ("yaml", "yml", "omegaconf", "hydra", "yq")
JSON_WORDS = ("json", "jq", "orjson", "ujson")
"""What code and scripts have that load such data."""
_KEY = re.compile(r"^[ \t-]*[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:(?=\s)", re.MULTILINE)
_MERGES_ALL = re.compile(
    r"\b(?:iterdir|r?glob|listdir|scandir|walk)\(.{0,300}?load.{0,300}?(?:merge|\.update\(|\|=|ChainMap)", re.DOTALL
)
"""Goes through the files of a folder, and merges what it loads."""
_READS = re.compile(
    r"(?<!tarfile\.)\bopen\((?![^\n]*[\"'][wax]b?[\"'])|\bread_(?:text|bytes)\(|\bloads?\("
    r"|\b(?:subprocess|popen|urlopen|fileinput)\b"
)
"""What code has that reads a file, or what a program prints."""
_MAKES_VARIABLES = re.compile(
    r"\.upper\(\)(?:\}|[ ]*\+[ ]*[\"'])=(?!=)|\benviron\b[^\n]{0,60}\.upper\(|\^\^\}[\"']?=(?!=)"
)
"""Makes variables of the environment, or lines of a script that sets them, of names that it reads."""
_CONFTEST = "conftest.py"
_OF_PYTEST = frozenset((_CONFTEST, "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"))
"""Files that name the plugins of pytest."""
_SHARED = 20
"""The keys that two whole configurations have in common; what is merged over another file sets a few."""


def _gives_to(fixtures: str, test: str) -> bool:
    folder, name = os.path.split(fixtures)
    return name != _CONFTEST or test.startswith(f"{folder}/")


@dataclass
class DataReaders:
    """What reads data in a project."""

    texts: ProjectTexts

    @remembered
    def of(self, words: tuple[str, ...]) -> list[str]:
        """Return the code and scripts that load a kind of data, which have one of some words."""
        loads = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
        every = (path for path in self.texts.holding(words) if may_run(path) and not is_part_of_megatron(path))
        return [path for path in every if "\0" not in (text := self.texts.text(path)) and loads.search(text)]

    @remembered
    def is_loading(self, path: str, *, any_data: bool) -> bool:
        """Return whether a test, or a file that it imports, loads data in YAML; also if it may import any file.

        With ``any_data``, also whether it reads another file, or what a program prints.
        """
        every = (path, *(one for one in self._fixtures if _gives_to(one, path)))
        parts = {one for own in every for one in self._programs.parts_of(own) if not is_part_of_megatron(one)}
        runs_others = any(map(self._programs.runs_others, parts)) if any_data else self._programs.runs_others(path)
        reads = any_data and any(_READS.search(self.texts.text(one)) for one in parts)
        return runs_others or reads or not parts.isdisjoint(self.of(YAML_WORDS))

    @cached_property
    def _fixtures(self) -> list[str]:
        """The files that give tests what they do not import: those of each folder, and plugins that pytest gets."""
        every = self.texts.holding(("pytest.fixture", "import fixture", "def pytest_"))
        code = [one for one in every if one.endswith(".py") and not os.path.basename(one).startswith("test_")]
        return [one for one in code if os.path.basename(one) == _CONFTEST or self._is_plugin(one)]

    def _is_plugin(self, path: str) -> bool:
        name = os.path.basename(path).removesuffix(".py")
        return any(os.path.basename(one) in _OF_PYTEST for one in self.texts.holding([name]))

    @cached_property
    def _programs(self) -> ProgramFiles:
        return ProgramFiles(partial(self.texts.holding, ("import", "def ", "class ")), self.texts.text)

    @remembered
    def is_exported(self, name: str) -> bool:
        """Return whether a variable of scripts may be one of the environment, which any program reads."""
        exported = re.compile(
            rf"\b(?:export|declare -x|env)\b[^\n]*{name}\b|-e\s*\S*{name}\b|{name}=\S*[ \t]+[^\s;&|#]"
        )
        texts = map(self.texts.text, self.texts.holding([name]))
        return any(map(exported.search, texts)) or self._exports_any

    @cached_property
    def _exports_any(self) -> bool:
        """Whether scripts export all that they set, or code makes variables of what it reads."""
        making = filter(may_run, self.texts.holding((".upper()", "^^}")))
        return bool(self.texts.holding(("set -a", "allexport"))) or any(
            _MAKES_VARIABLES.search(self.texts.text(one)) for one in making
        )

    @remembered
    def are_alternatives(self, path: str, own: str) -> bool:
        """Return whether two YAML files are whole configurations, of which no program merges one over the other.

        Most of what one sets, the other sets as well; nothing but pages has the name of one, no line of a page those of
        both, and no program merges all files of a folder.
        """
        names = [os.path.splitext(os.path.basename(one))[0] for one in (path, own)]
        first, second = (set(_KEY.findall(self.texts.text(one))) for one in (path, own))
        shared = len(first & second)
        if shared < _SHARED or max(len(first), len(second)) > 2 * shared or self._merges_folders:
            return False
        return not any(self._has_both(one, names, [path, own]) for one in self.texts.holding(names))

    def _has_both(self, path: str, names: Sequence[str], own: Sequence[str]) -> bool:
        """Return whether a text may bring two files together; a page, only if one of its lines has both names."""
        text = self.texts.text(path)
        if path in own:
            return names[1 - own.index(path)] in text
        lines = text.replace("\\\n", "").split("\n")
        return not path.endswith(PAGES) or any(all(name in line for name in names) for line in lines)

    @cached_property
    def _merges_folders(self) -> bool:
        """Whether a program goes through the files of a folder, and merges what it loads."""
        programs = (self.texts.text(one) for one in self.of(YAML_WORDS) if one.endswith(PROGRAMS))
        return any(map(_MERGES_ALL.search, programs))
