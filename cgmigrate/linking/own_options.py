"""Flags of command lines that a program of the project defines by itself, or whose values it reads.

``python team/train.py --cuda-graph-scope attn`` is a flag of ``team/train.py`` if that file, or one that it imports,
defines it. Written under its new name, the program refuses it. If such a file reads ``args.enable_cuda_graph``, the
attribute is false where the flag has its new name.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.python.source import last_name
from cgmigrate.documents.python.use_owners import OTHER_SYSTEMS
from cgmigrate.documents.sites import Site
from cgmigrate.linking.program_files import ProgramFiles, text_of_code
from cgmigrate.megatron.settings import MODULES, SCOPE
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test
from cgmigrate.text.files import bytes_if_readable, line_of_match, read_bytes, text_if_readable
from cgmigrate.text.remembered import remembered

_DESCRIBES = re.compile(r"^add_(opt|arg|flag|param)|(option|argument|flag)$|^define", re.IGNORECASE)
"""The name of a function that describes an option."""
_DESCRIPTION = frozenset(
    ("default", "type", "choices", "action", "help", "nargs", "dest", "is_flag", "required", "const", "metavar")
)
"""Arguments of such a function."""
_BY_FIELDS = re.compile(
    r"HfArgumentParser|TrlParser|\b(tyro|simple_parsing|pyrallis|draccus|jsonargparse|typer|fire|datargs|cyclopts|"
    r"pydantic_settings|LightningCLI|plac|argh|clize|defopt)\b"
)
"""Libraries that make options of the fields of a class or the parameters of a function."""
_TAKES_NAMES = re.compile(r"add_(option|argument|flag|param)\w*|option|argument|flag|define\w*", re.IGNORECASE)
"""The name of a function that describes options whose names code computes."""
_MAY_NAME = (ast.Constant, ast.AnnAssign, ast.arg)
_READS_WORDS = frozenset(("argv", "getopt", "gnu_getopt", "docopt"))
"""What code reads a command line with, without a parser."""


def options_defined(path: str, options: Collection[str]) -> Mapping[str, int]:
    """Return those of some options (``--cuda-graph-scope``) that a file defines, each with its first line.

    A file that cannot be read defines none.
    """
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
        every = _in_shell(text, options) if not path.endswith(".py") else _in_python(text, options)
        return first_lines(every, options)
    except OSError:
        return {}


def _in_shell(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the options that a branch of ``case``, or a test of an argument, names."""
    for option in options:
        pattern = rf"(?<![\w-]){re.escape(option)}(=?\*)?[\"']?\s*(\)|\|)|=\s*[\"']?{re.escape(option)}[\"']?\s*\]"
        for match in re.finditer(pattern, text):
            yield option, text.count("\n", 0, match.start()) + 1


def _in_python(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    nodes = list(walk(parsed(text) or ast.Module([], [])))
    by_fields = _BY_FIELDS.search(text) is not None or any(map(_takes_computed_name, nodes))
    words = [word for word in _READS_WORDS if word in text]
    reads_words = any(getattr(node, name, "") in words for node in nodes if words for name in ("id", "attr", "name"))
    for node in nodes:
        described = _described(node)
        for option in options if described or isinstance(node, _MAY_NAME) else ():
            name = option.lstrip("-").replace("-", "_")
            is_named = by_fields and (_is_text_of(node, option, name) or _is_field(node, name))
            if is_named or option in described or (reads_words and _is_word_of(node, option)):
                yield option, getattr(node, "lineno", 1)


def _described(node: ast.AST) -> list[str]:
    """Return the options that a node describes, if it is a call that does."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments, keywords=keywords):
            if _DESCRIBES.search(name) or any(one.arg in _DESCRIPTION for one in keywords):
                return [option for one in (*arguments, *(two.value for two in keywords)) for option in _spelled(one)]
    return []


def _spelled(node: ast.expr) -> list[str]:
    """Return the options that an argument names: click writes ``--graphs/--no-graphs``."""
    match node:
        case ast.Constant(value=str() as text):
            return re.split(r"[/,\s]+", text)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [option for one in elements for option in _spelled(one)]
    return []


def _takes_computed_name(node: ast.AST) -> bool:
    """Return whether a node is a call that describes an option with a name that is computed."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *_]):
            return bool(_TAKES_NAMES.fullmatch(name)) and not isinstance(first, ast.Constant)
    return False


def _is_text_of(node: ast.AST, option: str, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value in (option, option.lstrip("-"), name)


def _is_word_of(node: ast.AST, option: str) -> bool:
    """Return whether a text has an option, with or without its dashes, as a word of its own."""
    words = re.findall(r"[\w-]+", node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
    return option in words or words == [option.lstrip("-")]


def _is_field(node: ast.AST, name: str) -> bool:
    """Return whether a node is a field of a class, or a parameter, of a name."""
    match node:
        case ast.AnnAssign(target=ast.Name(id=field)):
            return field == name
        case ast.arg(arg=parameter):
            return parameter == name
    return False


_MOST_BYTES = 1024 * 1024
_ARGUMENTS = re.compile(r"(.*_)?m?args|arguments|namespace|opts?|options|flags", re.IGNORECASE)
"""The name of parsed arguments."""
_PARSES = re.compile(r"(get|parse)_(\w+_)?args")
"""The name of a function that returns them."""
_CONFIGURATION = re.compile(r"self|cls|.*(model|config|cfg|conf|provider)", re.IGNORECASE)
"""The name of an object that is no parsed arguments."""
_MAKES_CONFIGURATION = re.compile(r"[A-Z]\w*(Config|Provider|ModelConfiguration)|replace|override")
_OTHERS = re.compile(rf"^\s*(?:from|import)\s+({'|'.join(sorted(OTHER_SYSTEMS))}|onnxruntime\w*)\b", re.MULTILINE)
"""Imports of systems that have settings of these names, too."""


def arguments_in(path: str, names: Collection[str], *, by_name: bool) -> Mapping[str, int]:
    """Return the settings that a file may use of parsed arguments, each with its first line.

    ``by_name`` are only those of an object that has the name of parsed arguments, or is parsed. Of the scope, which
    arguments lack since 0.18, only what sets it counts. A file that cannot be read as code uses what it names.
    """
    text = text_if_readable(path, _MOST_BYTES)
    if text is None or (_OTHERS.search(text) and "megatron" not in text):
        return {}
    tree = parsed(text)
    if tree is not None:
        return first_lines(_uses_by_name(tree) if by_name else _uses(tree), names)
    words = ((one[0], text.count("\n", 0, one.start()) + 1) for one in re.finditer(r"\w+", text) if one[0] in names)
    return first_lines(words, names)


def first_lines(uses: Iterable[tuple[str, int]], names: Collection[str]) -> dict[str, int]:
    """Return the first line of each of some names."""
    lines: dict[str, int] = {}
    for name, line in uses:
        if name in names:
            lines[name] = min(line, lines.get(name, line))
    return lines


def _uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of settings that code may use of parsed arguments, each with its line."""
    of_configurations = {id(part) for node in walk(tree) for part in _of_configuration(node)}
    for node in walk(tree):
        if id(node) in of_configurations:
            continue
        name, sets = _named(node)
        if name and (sets or name != SCOPE):
            yield name, getattr(node, "lineno", 1)


def _uses_by_name(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of settings that code uses of what is named like parsed arguments, each with its line."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=context) if _is_arguments(owner):
                if name != SCOPE or not isinstance(context, ast.Load):
                    yield name, node.lineno
            case (
                ast.Call(func=ast.Name(), args=[owner, ast.Constant(value=str() as name), *_])
                | ast.Subscript(value=owner, slice=ast.Constant(value=str() as name))
                | ast.Call(func=ast.Attribute(value=owner), args=[ast.Constant(value=str() as name), *_])
                | ast.Compare(left=ast.Constant(value=str() as name), comparators=[owner])
            ) if name != SCOPE and _is_arguments(owner):
                yield name, node.lineno


def _is_arguments(node: ast.expr) -> bool:
    """Return whether an expression is parsed arguments, or a dict of them, as far as names show."""
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[inner]) | ast.Attribute(value=inner, attr="__dict__"):
            return _is_arguments(inner)
        case ast.Call(func=func):
            return _PARSES.fullmatch(last_name(func)) is not None
    return _ARGUMENTS.fullmatch(last_name(node)) is not None


def _named(node: ast.AST) -> tuple[str, bool]:
    """Return the name that a node has, empty if it has none, and whether it may set the attribute of that name."""
    match node:
        case ast.Attribute(attr=name, ctx=context):
            return name, not isinstance(context, ast.Load)
        case ast.Constant(value=str() as name) | ast.arg(arg=name):
            return name, False
        case ast.keyword(arg=str() as name):
            return name, True
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name, False
    return "", False


def _of_configuration(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what sets settings of configurations: keywords of what makes one, and attributes.

    What reads one may get the value of a flag: Megatron-LM makes its configurations from the arguments.
    """
    match node:
        case ast.Call(func=func, keywords=keywords) if _MAKES_CONFIGURATION.fullmatch(last_name(func)):
            yield from keywords
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant() as key, *_]) if _CONFIGURATION.fullmatch(
            last_name(owner)
        ):
            yield key
        case ast.Attribute(value=owner, ctx=ast.Store()) if _CONFIGURATION.fullmatch(last_name(owner)):
            yield node
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            yield node


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
