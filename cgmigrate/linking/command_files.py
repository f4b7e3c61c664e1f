"""Other files that have a part in a command line: callers, files of flags, and variables.

Of two equal flags the last one counts, and a release refuses an old flag beside a new one. So where another file of the
checkout spells a flag and may add words to a command line, a fix is not safe. What works on the text of its script is
seen with that of all files (`text_tools`).
Files are searched as text, whatever their kind. What users type themselves is not known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.documents.shell.plain_words import CUTS_VARIABLE, PICKS_ARGUMENTS, PICKS_IN_FUNCTION
from cgmigrate.documents.shell.started_commands import script_named
from cgmigrate.documents.sites import Site
from cgmigrate.documents.syntax import Syntax, is_documentation, syntax_of_file
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.files import text_if_readable
from cgmigrate.text.remembered import remembered

_MOST_BYTES = 1024 * 1024
_MOST_STEPS = 4
"""Scripts that start one another with all their arguments."""
_ARGUMENTS = re.compile(r"\$\{?[@*1-9]")
"""How a script gets words of its caller."""
_READS = re.compile(r"(?:^|[\s;&|(`])(?:source|\.|cat|bash|sh|mapfile|readarray|read)\s|<")
_COMPUTED = re.compile(r"(?:^|[\s;&|(`])(?:(?:source|\.|cat)\s+|<\s*)[\"']?[\w./-]*\$", re.MULTILINE)
"""What reads a file whose name the script computes."""
_CALLS = (
    r"^(?:[^#\n]*[\s;&|(`])?(?:bash|sh|zsh|source|\.|sbatch|srun|qsub|exec|nohup|ssh|in|time|timeout)\s[^#\n]*(?<![\w.-]){name}(?![\w-])"
    r"|(?:^|[;&|(]|\w=)\s*(?:\w+=\S*\s+)*([\"']?)[^\s\"'#]*(?<![\w.-]){name}\1(?![\w-])"
)
"""What starts a script: it follows a program that runs it, or is the first word, or a value by itself."""
_ARGS = ".args"
_FILL = "{place} also sets `{flag}`, which may be on the same command line"
_CUTS = "{place} may count, select or cut the words of this command line"


@dataclass
class CommandFiles:
    """The files of a checkout that spell flags or name scripts that do; each is read once."""

    files_with: Callable[[Collection[str]], Iterable[str]]
    """Lists the files that contain one of some words, by their real paths."""
    files_named: Callable[[str], Iterable[str]]
    """Lists the files of a name, by their real paths."""
    catalogue: Catalogue
    shown: Callable[[str], str]
    """How a path is shown."""

    def of(self, site: Site, path: str) -> str:
        """Return why other files may have a part in the command line of a site, empty if none has."""
        real = os.path.realpath(path)
        for other in self._candidates(site, real):
            if other != real and self._meet(site, real, other):
                match = self._flags.search(self._spelling[other])
                assert match is not None
                return _FILL.format(place=self._place(other, match.start()), flag=match.group())
        return self._cut(site, real)

    def _candidates(self, site: Site, path: str) -> list[str]:
        """Return the files that spell a flag, and that share a name with a command line, in their order."""
        words, text = self._words(path), self._text(path)
        files = {other for name in self._basenames.keys() & words for other in self._basenames[name]}
        files |= {other for name in site.meets if name.isidentifier() for other in self._with(name)}
        if "@" in site.meets:
            files |= self._callers(path)
        if self._scripts_named.keys() & words:
            files |= {one for one in self._scripts if path in self._callers(one)}
        if path.endswith(_ARGS):
            files |= set(self._with(os.path.basename(path)))
        if site.meets and _COMPUTED.search(text):
            files |= {one for one, other in self._spelling.items() if _kind(one, other) is None}
        return sorted(files & self._spelling.keys())

    @remembered
    def _with(self, word: str) -> list[str]:
        """Return the files that spell a flag and have a word."""
        return [one for one in self._spelling if word in self._words(one)]

    @cached_property
    def _basenames(self) -> Mapping[str, list[str]]:
        """The files that spell a flag, by their names."""
        return _by_name(self._spelling)

    @cached_property
    def _scripts(self) -> list[str]:
        return [path for path, text in self._spelling.items() if _kind(path, text) is Syntax.SHELL]

    @cached_property
    def _scripts_named(self) -> Mapping[str, list[str]]:
        """The scripts that spell a flag, and those that start them, by their names."""
        return _by_name([*self._scripts, *self._calling])

    @cached_property
    def _calling_with(self) -> Mapping[str, list[str]]:
        """The files that name a script, by its name."""
        names, result = self._scripts_named.keys(), dict[str, list[str]]()
        for path in self._calling:
            for name in self._words(path) & names:
                result.setdefault(name, []).append(path)
        return result

    def _cut(self, site: Site, path: str) -> str:
        """Return which script, started with the flags or a variable that has them, counts, picks or cuts words."""
        for script in sorted(filter(script_named, site.meets)):
            for other in self.files_named(script):
                if other != path and (match := PICKS_ARGUMENTS.search(self._text(other))):
                    return _CUTS.format(place=self._place(other, match.start()))
        for program in filter(str.isidentifier, site.programs or ()):
            for other in self._defining(program):
                if other != path and (match := PICKS_IN_FUNCTION.search(self._text(other))):
                    return _CUTS.format(place=self._place(other, match.start()))
        for name in sorted(one for one in site.meets if one.isidentifier()):
            for other, at in self._cutting(name):
                if other != path:
                    return _CUTS.format(place=self._place(other, at))
        return ""

    @remembered
    def _cutting(self, variable: str) -> list[tuple[str, int]]:
        """Return the files that expand a part of a variable, and where."""
        pattern = re.compile(CUTS_VARIABLE.format(name=variable))
        files = self.files_with([f"{{{variable}", f"{{#{variable}", f"{{!{variable}"])
        every = ((one, pattern.search(self._text(one))) for one in files)
        return [(one, match.start()) for one, match in every if match is not None]

    @remembered
    def _defining(self, function: str) -> list[str]:
        """Return the files that define a function of a shell."""
        files = self.files_with([f"{function}()", f"{function} ()", f"function {function}"])
        return [one for one in files if not one.endswith(".py")]

    def _place(self, path: str, at: int) -> str:
        return f"{self.shown(path)}:{self._text(path).count(chr(10), 0, at) + 1}"

    def _meet(self, site: Site, path: str, other: str) -> bool:
        """Return whether another file that spells a flag may fill a command line, or get what it has."""
        if "@" in site.meets and other in self._callers(path):
            name = os.path.basename(path)
            if not is_documentation(other) or self._flags.search(_blocks_of_code(other, self._spelling[other], name)):
                return True
        if _kind(other, self._spelling[other]) is Syntax.SHELL and path in self._callers(other):
            return True
        if any(self._sets(name, path, other) for name in site.meets if name.isidentifier()):
            return True
        if path.endswith(_ARGS) and os.path.basename(path) in self._words(other) and not is_documentation(other):
            return True
        is_open = any(not name or name == "@" or name.isidentifier() for name in site.meets)
        return is_open and self._is_data(self._text(path), other, self._spelling[other])

    # --- variables and files of flags ---------------------------------------------------------------

    def _sets(self, name: str, path: str, other: str) -> bool:
        """Return whether another file may set a variable of a script, or expand one that the script exports."""
        if name not in self._words(other):
            return False
        text = _blocks_of_code(other, self._spelling[other], name)
        if not self._flags.search(text):
            return False
        if _kind(other, text) is not Syntax.SHELL or self._calls(path, other) or self._calls(other, path):
            return name in text
        is_set, is_used = re.search(rf"(?<![\w$]){name}\+?=", text), re.search(rf"\$\{{?{name}\b", text)
        return is_set is not None and (is_used is None or re.search(rf"\bexport\b[^\n]*\b{name}\b", text) is not None)

    def _is_data(self, text: str, other: str, other_text: str) -> bool:
        """Return whether a script with words that it does not show may read them from a file."""
        name, kind = os.path.basename(other), _kind(other, other_text)
        if is_documentation(other) or (kind is Syntax.PYTHON and f"python {name}" not in text):
            return False
        lines = [text[text.rfind("\n", 0, at) + 1 : at] for at in _places(name, text)]
        if kind is Syntax.SHELL:
            return any(_READS.search(line) and "#" not in line for line in lines)
        return any("#" not in line for line in lines) or (kind is None and _COMPUTED.search(text) is not None)

    # --- callers ------------------------------------------------------------

    @remembered
    def _callers(self, script: str) -> frozenset[str]:
        """Return the files that may give arguments to a script."""
        reached, new = {script}, {script}
        for _ in range(_MOST_STEPS):
            passing = [one for one in new if _ARGUMENTS.search(self._text(one))]
            named = {other: self._calling_with.get(os.path.basename(other), ()) for other in passing}
            new = {one for other, every in named.items() for one in every if self._calls(one, other)} - reached
            reached |= new
        return frozenset(reached - {script})

    def _calls(self, path: str, script: str) -> bool:
        """Return whether a file seems to start a script."""
        name = os.path.basename(script)
        if name not in self._words(path):
            return False
        text = _blocks_of_code(path, self._text(path), name)
        if _kind(path, text) is Syntax.SHELL:
            return re.search(_CALLS.format(name=re.escape(name)), text, re.MULTILINE) is not None
        return any("#" not in text[text.rfind("\n", 0, at) + 1 : at] for at in _places(name, text))

    @cached_property
    def _calling(self) -> list[str]:
        """The files that name a script which spells a flag, and those that name these."""
        files, new = dict(self._mentioning), dict(self._mentioning)
        for _ in range(_MOST_STEPS - 2):
            new = self._naming([one for one, text in new.items() if _kind(one, text) is Syntax.SHELL])
            new = {path: text for path, text in new.items() if path not in files}
            files |= new
        return list(files)

    @cached_property
    def _mentioning(self) -> Mapping[str, str]:
        return self._naming(self._scripts)

    def _naming(self, scripts: Iterable[str]) -> dict[str, str]:
        names = sorted({os.path.basename(one) for one in scripts})
        return {path: self._text(path) for path in self.files_with(names)} if names else {}

    @remembered
    def _words(self, path: str) -> frozenset[str]:
        """Return the names of variables and files in a file."""
        text = self._text(path)
        return frozenset((*re.findall(r"[\w.-]+", text), *re.findall(r"\w+", text)))

    @cached_property
    def _spelling(self) -> Mapping[str, str]:
        """The files that spell a flag which a fix replaces, or writes."""
        flags = [self.catalogue.flags[name] for name in self._names if name in self.catalogue.flags]
        paths = (path for path in self.files_with(sorted(flags)) if not is_part_of_megatron(path))
        return {path: text for path in paths if self._flags.search(text := self._text(path))}

    @property
    def _names(self) -> list[str]:
        deprecated = self.catalogue.deprecated
        return sorted({*deprecated, *(new for name in deprecated for new in self.catalogue[name].replaced_by)})

    @cached_property
    def _flags(self) -> re.Pattern[str]:
        flags = [self.catalogue.flags[name] for name in self._names if name in self.catalogue.flags]
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, flags))})(?![\w-])")

    @remembered
    def _text(self, path: str) -> str:
        return text_if_readable(path, _MOST_BYTES) or ""


def _by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for path in paths:
        result.setdefault(os.path.basename(path), []).append(path)
    return result


def _kind(path: str, text: str) -> Syntax | None:
    return syntax_of_file(path, text[:128].encode())


def _places(name: str, text: str) -> Iterator[int]:
    return (match.start() for match in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text))


def _blocks_of_code(path: str, text: str, name: str) -> str:
    """Return the blocks of code with a name where a file is a page, else all of it."""
    if not is_documentation(path):
        return text
    blocks = text.split("```")[1::2] if "```" in text else re.split(r"\n\s*\n", text)
    return "\n".join(block for block in blocks if name in block)
