"""Options of command lines that a file of the project defines, with the parser that it builds.

``parser.add_argument("--cuda-graph-scope")`` makes the flag one of the project's own: a command line that starts the
file has to spell it as the file does. A definition is

- the name as an argument of a call that describes an option, of argparse, click, typer or absl;
- the name in a file whose parser takes names that it computes, as those of a table;
- the name compared with what ``sys.argv`` has, or given to getopt, or in a usage that docopt reads;
- a field or parameter of that name in a file that makes options of them (tyro, HfArgumentParser, fire);
- a branch of ``case`` in a shell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

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
_WORDS = re.compile(r"sys\.argv|\bargv\b|\bgetopt\b|\bdocopt\b")
"""What code reads a command line with, without a parser."""


def options_defined(path: str, options: Collection[str]) -> Mapping[str, int]:
    """Return those of some options (``--cuda-graph-scope``) that a file defines, each with its first line.

    A file that cannot be read defines none.
    """
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
        every = _in_shell(text, options) if not path.endswith(".py") else _in_python(text, options)
        lines: dict[str, int] = {}
        for option, line in every:
            lines[option] = min(line, lines.get(option, line))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return lines


def _in_shell(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the options that a branch of ``case``, or a test of an argument, names."""
    for option in options:
        pattern = rf"(?<![\w-]){re.escape(option)}(=?\*)?[\"']?\s*(\)|\|)|=\s*[\"']?{re.escape(option)}[\"']?\s*\]"
        for match in re.finditer(pattern, text):
            yield option, text.count("\n", 0, match.start()) + 1


def _in_python(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    computes = any(_takes_computed_name(node) for node in nodes)
    words = _WORDS.search(text) is not None
    by_fields = _BY_FIELDS.search(text) is not None
    for option in options:
        name = option.lstrip("-").replace("-", "_")
        for node in nodes:
            if (
                _describes(node, option)
                or ((computes or by_fields) and (_is_text_of(node, option, name) or _is_field(node, name)))
                or (words and _names_in_words(node, option))
            ):
                yield option, getattr(node, "lineno", 1)


def _describes(node: ast.AST, option: str) -> bool:
    """Return whether a node is a call that describes an option."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments, keywords=keywords):
            values = [*arguments, *(one.value for one in keywords)]
            is_description = _DESCRIBES.search(name) or any(one.arg in _DESCRIPTION for one in keywords)
            return bool(is_description) and any(option in _spelled(one) for one in values)
    return False


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
            return bool(_DESCRIBES.search(name)) and not isinstance(first, ast.Constant)
    return False


def _is_text_of(node: ast.AST, option: str, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value in (option, option.lstrip("-"), name)


def _is_field(node: ast.AST, name: str) -> bool:
    """Return whether a node is a field of a class, or a parameter, of a name."""
    match node:
        case ast.AnnAssign(target=ast.Name(id=field)):
            return field == name
        case ast.arg(arg=parameter):
            return parameter == name
    return False


def _names_in_words(node: ast.AST, option: str) -> bool:
    """Return whether a node is a text that a command line is searched for: the option, or a usage with it."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    bare = option.lstrip("-")
    is_word = node.value in (f"{option}=", bare, f"{bare}=")
    return is_word or re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", node.value) is not None
