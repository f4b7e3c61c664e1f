"""Options of command lines that a file of the project defines, with the parser that it builds.

``parser.add_argument("--cuda-graph-scope")`` makes the flag one of the project's own: a command line that starts the
file has to spell it as the file does. A definition is

- the name as an argument of a call that describes an option, of argparse, click, typer or absl;
- the name in a file whose parser takes names that it computes, as those of a table;
- the name in a text of a file that reads ``sys.argv``, or gets its words from getopt or docopt;
- a field or parameter of that name in a file that makes options of them (tyro, HfArgumentParser, fire);
- a branch of ``case`` in a shell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.linking.argument_reads import first_lines
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
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
