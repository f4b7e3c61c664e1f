"""What reads the data of a project: code that loads it, and which files of data are never read together."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from cgmigrate.linking.name_places import may_run
from cgmigrate.linking.program_files import ProgramFiles
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import PAGES, PROGRAMS
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.remembered import remembered

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
