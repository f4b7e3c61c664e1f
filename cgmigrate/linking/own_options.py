"""Flags of command lines that a program of the project defines by itself, or whose values it reads.

``python team/train.py --cuda-graph-scope attn`` is a flag of ``team/train.py`` if that file, or one that it imports,
defines it. Written under its new name, the program refuses it. If such a file reads ``args.enable_cuda_graph``, the
attribute is false where the flag has its new name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.sites import Site
from cgmigrate.linking.argument_reads import arguments_in
from cgmigrate.linking.option_definitions import options_defined
from cgmigrate.linking.program_files import ProgramFiles, text_of_code
from cgmigrate.megatron.settings import MODULES, SCOPE
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test
from cgmigrate.text.files import bytes_if_readable, line_of_match, text_if_readable
from cgmigrate.text.remembered import remembered

_DEFINITIONS = "arguments.py"
"""The file of ``megatron/training`` that defines the arguments."""
_WORDS_ARE_READ = ("argv", "/proc/self/cmdline", "parse_known_args", "REMAINDER", "UNPROCESSED")
_WORDS = re.compile(
    r"\bREMAINDER\b|\bUNPROCESSED\b|parse_known_args\(\)(?!\[0\])|\bsys\.(?:orig_)?argv\b|/proc/self/cmdline"
    r"|\bfrom sys import [^\n]*\bargv\b"
)
_PLAIN_WORDS = re.compile(
    r"sys\.argv\[[0-2]\](?!\s*:)|parse_(?:known_)?args\(\s*(?:args\s*=\s*)?sys\.argv|sys\.argv(?:\[\d*:\])?\s*\+?=(?!=)"
    r"|sys\.argv\.(?:append|extend|insert)\(|\b(?:print|log\w*(?:\.\w+)?)\((?![^\n]*(?:len\(|re\.|find|split|\bin\b|==))[^\n]*join\([^\n]*argv|\bmain\(\s*sys\.argv"
    r"|#[^\n]*argv|(?:\*|\+ ?)sys\.argv\[1:\]"
)
"""What passes the words of a command line on, adds some, prints all, or uses the first."""
_FLAG = re.compile(r"--?[A-Za-z]")


@dataclass
class OwnOptions:
    """The options that files of a checkout define; each file is read once, and only where a flag asks for it."""

    files_with: Callable[[Collection[str]], Iterable[str]]
    """Lists the files of code and the scripts of the checkout that contain one of some words, by their real paths."""
    options: Collection[str]
    """The flags of deprecated settings."""
    shown: Callable[[str], str]
    """How a path is shown."""

    def of(self, site: Site) -> str:
        """Return why a flag of a site has to change together with code of the project; empty if it has not."""
        keys = {use.key.rpartition(".")[2] for use in site.written if _FLAG.match(use.key)}
        for path in self._naming:
            if not is_part_of_megatron(path) and self._may_get(site, path):
                lines, _ = self._defined_and_read(path)
                for option in sorted(keys & lines.keys()):
                    return f"`{option}` is defined by {self.shown(path)}:{lines[option]}, which has to change with it"
        return self._read_by(site, set(map(_underscored, keys)))

    def _read_by(self, site: Site, names: Collection[str]) -> str:
        """Return which code may use the values of flags, by their names; empty if none does.

        What a program is made of may have its arguments under any name.
        """
        code = [one for one in self._naming if one.endswith(".py") and (not is_part_of_megatron(one) or _is_added(one))]
        for path in code:
            uses = arguments_in(path, names, by_name=False) if self._is_made_of(site, path) else {}
            for name in sorted(uses.keys() & names):
                return self._reason(name, path, uses[name])
        for path in code:
            is_reached = is_part_of_megatron(path) or self._may_get(site, path)
            _, uses = self._defined_and_read(path) if is_reached else ({}, {})
            for name in sorted(uses.keys() & names):
                return self._reason(name, path, uses[name])
        return ""

    def reads_of(self, site: Site, names: Collection[str]) -> Mapping[str, str]:
        """Return which code of a program depends on settings that keep their names, and on the scope, by these.

        ``""`` stands for the words of the command line, of which code may look for some.
        """
        result: dict[str, str] = {}
        if not self._own_programs(site):
            return result
        for path in (one for word in _WORDS_ARE_READ for one in self._code_with(word)):
            if self._is_made_of(site, path) and (line := _line_of_words(path)):
                result[""] = f"{self.shown(path)}:{line} may search this command line"
        for name in names:
            for path in self._code_with(name):
                if self._is_made_of(site, path):
                    if name in site.own:
                        line = line_of_match(_pattern(name), text_if_readable(path) or "")
                    else:
                        line = arguments_in(path, [name], by_name=False).get(name, 0)
                    result |= {name: self._reason(name, path, line)} if line else {}
        return result

    @remembered
    def _code_with(self, word: str) -> list[str]:
        return [one for one in self.files_with([word]) if one.endswith(".py") and not is_part_of_megatron(one)]

    def _reason(self, name: str, path: str, line: int) -> str:
        return f"{self.shown(path)}:{line} may read `{name}` of the parsed arguments, and has to change with it"

    @remembered
    def _defined_and_read(self, path: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the options that a file defines, and the settings that it uses of what is named like arguments.

        Each has its line. Of Megatron's own files, only that which defines the arguments uses settings since the new
        names are there: others are what a fork adds.
        """
        read = arguments_in(path, set(map(_underscored, self.options)), by_name=True) if path.endswith(".py") else {}
        return options_defined(path, self.options), read

    @cached_property
    def _naming(self) -> list[str]:
        """The files that name a deprecated setting."""
        bare = sorted({one for option in self.options for one in (option.lstrip("-"), _underscored(option))})
        return list(self.files_with(bare))

    def _may_get(self, site: Site, path: str) -> bool:
        """Return whether a program that gets the flags of a site may be, or use, a file with a definition."""
        programs = site.programs or site.scripts
        if not path.endswith(".py"):
            return any(one == os.path.basename(path) or not one.endswith(".py") for one in programs)
        if not programs:
            return not is_test(path)
        return any(self._may_use(program, path) for program in programs)

    def _is_made_of(self, site: Site, path: str) -> bool:
        """Return whether a program that gets the flags of a site is a file of the project, and a file is part of it."""
        return any(path == one or self._may_run(one, path) for one in self._own_programs(site))

    def _own_programs(self, site: Site) -> list[str]:
        """Return the files of the project that are programs which get the flags of a site."""
        every = (one for name in site.programs or site.scripts for one in self._programs.named(name))
        return [one for one in every if not is_part_of_megatron(one)]

    def _may_run(self, program: str, path: str) -> bool:
        """Return whether a program imports a file, or names it where not all that it runs is known."""
        closure = self._programs.closure(program)
        name = re.compile(rf"[\"'/]{re.escape(os.path.basename(path))}[\"']")
        return path in closure if closure is not None else name.search(text_if_readable(program) or "") is not None

    @cached_property
    def _programs(self) -> ProgramFiles:
        every = partial(self.files_with, ("import", "def ", "class "))
        return ProgramFiles(every, text_of_code)

    def _may_use(self, program: str, path: str) -> bool:
        own = self._programs.named(program)
        if not own:
            # A program that is no file of the project is known only by its name.
            return not is_test(path) and not PROGRAM.fullmatch(program)
        closures = [self._programs.closure(one) for one in own if not is_part_of_megatron(one)]
        return any(closure is None or path in closure for closure in closures)


def _pattern(name: str) -> re.Pattern[str]:
    """Return what uses a setting that a command line has; the scope only counts as one of parsed arguments."""
    return re.compile(rf"\bargs\.{name}\b|[\"']{name}[\"']" if name == SCOPE else rf"\b{name}\b")


def _line_of_words(path: str) -> int:
    """Return the first line of a file that does more with the words of a command line than to pass them on."""
    return line_of_match(_WORDS, _PLAIN_WORDS.sub("", text_if_readable(path) or ""))


def _is_added(path: str) -> bool:
    """Return whether a file of Megatron, beside arguments with the new names, is none that defines them."""
    folder, name = os.path.split(path)
    definitions = os.path.join(folder, _DEFINITIONS)
    if name == _DEFINITIONS or os.path.basename(folder) != "training":
        return False
    return MODULES.encode() in (bytes_if_readable(definitions) or b"")


def _underscored(option: str) -> str:
    return option.lstrip("-").replace("-", "_")
