"""Options of command lines that a file of the project defines, with the parser that it builds.

``parser.add_argument("--cuda-graph-scope")`` makes the flag one of the project's own: a command line that starts the
file has to spell it as the file does. A definition is

- the name as an argument of a call that describes an option, of argparse, click, typer or absl;
- the name in a file whose parser takes names that it computes, as those of a table;
- the name in a comparison or search where the file reads ``sys.argv``, in a list for getopt, or in the usage of docopt;
- a field or parameter of that name in a file that makes options of them (tyro, HfArgumentParser, fire);
- a branch of ``case`` in a shell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from cgmigrate.documents.python.nodes import walk
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
_READS_WORDS = re.compile(r"\bargv\b|\bgetopt\b|\bdocopt\b")
"""What code reads a command line with, without a parser."""
_DOCOPT = re.compile(r"^\s*(from|import)\s+docopt", re.MULTILINE)
_SEARCHES = frozenset(("index", "count", "startswith", "removeprefix", "partition", "getopt", "gnu_getopt"))


def options_defined(path: str, options: Collection[str]) -> Mapping[str, int]:
    """Return those of some options (``--cuda-graph-scope``) that a file defines, each with its first line.

    A file that cannot be read defines none.
    """
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
        every = _in_shell(text, options) if not path.endswith(".py") else _in_python(text, options)
        return first_lines(every, options)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _in_shell(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the options that a branch of ``case``, or a test of an argument, names."""
    for option in options:
        pattern = rf"(?<![\w-]){re.escape(option)}(=?\*)?[\"']?\s*(\)|\|)|=\s*[\"']?{re.escape(option)}[\"']?\s*\]"
        for match in re.finditer(pattern, text):
            yield option, text.count("\n", 0, match.start()) + 1


def _in_python(text: str, options: Collection[str]) -> Iterator[tuple[str, int]]:
    tree = ast.parse(text)
    nodes = list(walk(tree))
    computes = any(_takes_computed_name(node) for node in nodes)
    searched = _searched(nodes, text) if _READS_WORDS.search(text) else ()
    by_fields = _BY_FIELDS.search(text) is not None
    for option in options:
        name = option.lstrip("-").replace("-", "_")
        for node in nodes:
            if _describes(node, option) or (
                (computes or by_fields) and (_is_text_of(node, option, name) or _is_field(node, name))
            ):
                yield option, getattr(node, "lineno", 1)
        yield from ((option, line) for word, line in searched if _is_option(word, option))


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
            return bool(_TAKES_NAMES.fullmatch(name)) and not isinstance(first, ast.Constant)
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


def _searched(nodes: Collection[ast.AST], text: str) -> list[tuple[str, int]]:
    """Return the texts that code looks for in a command line, each with its line; a usage is divided into words."""
    result: list[tuple[str, int]] = []
    for node in nodes:
        match node:
            case ast.Compare(left=left, comparators=others):
                result += (one for part in (left, *others) for one in _texts_in(part))
            case ast.MatchValue(value=value):
                result += _texts_in(value)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments) if name in _SEARCHES:
                result += (one for argument in arguments for one in _texts_in(argument))
            case ast.Expr(value=ast.Constant(value=str() as usage)) if _DOCOPT.search(text):
                result += ((word, node.lineno) for word in re.findall(r"--[\w-]+", usage))
    return result


def _texts_in(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield a text, or those in a list, set or tuple."""
    for part in node.elts if isinstance(node, (ast.List, ast.Set, ast.Tuple)) else (node,):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value, part.lineno


def _is_option(word: str, option: str) -> bool:
    return word.rstrip("=") in (option, option.lstrip("-"))
