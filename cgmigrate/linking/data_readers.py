"""What reads the data of a project: code that loads it, and which files of data are never read together."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.linking.name_places import may_run
from cgmigrate.linking.program_files import ProgramFiles
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import PROGRAMS, SHELL
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.remembered import remembered

YAML_WORDS = ("yaml", "yml", "omegaconf", "hydra", "yq")
JSON_WORDS = ("json", "jq", "orjson", "ujson")
"""What code and scripts have that load such data."""
_KEY = re.compile(r"^[ \t-]*[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:(?=\s)", re.MULTILINE)
_IN_UPPER = re.compile(r"(?:getenv|environ\.get)\([^()]*\)(?:\.strip\(\))?\.\w+\(")
_VARIABLES = re.compile(
    r"\b(?:environ|getenv)\b.{0,300}\.upper\b|\.upper\b.{0,300}\b(?:environ|getenv)\b|environ\.(?:items|keys)"
    r"|\bfor\b[^\n]* in (?:os\.)?environ:|BaseSettings|dynaconf",
    re.DOTALL,
)
"""What code has that makes the name of a variable of that of a setting, or goes through all variables."""
_SHARED = 20
"""The keys that two whole configurations have in common; what is merged over another file sets a few."""


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

    @cached_property
    def meeting_data(self) -> Collection[str]:
        """The code in whose programs data in YAML is loaded."""
        programs = ProgramFiles(self._every_program, self.texts.text)
        every = (one for one in self.of(YAML_WORDS) if one.endswith(PROGRAMS))
        # A script has the names of data, and gives them to a program.
        return programs.meeting([one for one in every if not one.endswith(SHELL) or "yq" in self.texts.text(one)])

    def _every_program(self) -> list[str]:
        every = self.texts.holding(("import ", "def ", "python"))
        return [path for path in every if path.endswith(PROGRAMS)]

    @cached_property
    def makes_names_of_variables(self) -> bool:
        """Whether code, none of Megatron's, makes the name of a variable of the environment of that of a setting."""
        every = self.texts.holding(("environ", "getenv", "BaseSettings", "dynaconf"))
        code = (path for path in every if may_run(path) and not is_part_of_megatron(path))
        return any(_VARIABLES.search(_IN_UPPER.sub("", self.texts.text(path))) for path in code)

    @remembered
    def are_alternatives(self, path: str, own: str) -> bool:
        """Return whether two YAML files are whole configurations, of which no program merges one over the other.

        Most of what one sets, the other sets as well; no program has the name of one, no line of a page those of both,
        and neither file has the name of the other.
        """
        names = [os.path.splitext(os.path.basename(one))[0] for one in (path, own)]
        first, second = (set(_KEY.findall(self.texts.text(one))) for one in (path, own))
        shared = len(first & second)
        is_whole = shared >= _SHARED and max(len(first), len(second)) <= 2 * shared
        naming = [] if not is_whole else [one for one in self.texts.holding(names) if one not in (path, own)]
        if not is_whole or names[1] in self.texts.text(path) or names[0] in self.texts.text(own):
            return False
        return not any(may_run(one) or self._has_line_with(one, names) for one in naming)

    def _has_line_with(self, path: str, names: Sequence[str]) -> bool:
        """Return whether a line of a page has some names, one of a command with those that go on with it."""
        text = self.texts.text(path).replace("\\\n", "")
        return any(all(name in line for name in names) for line in text.split("\n"))
