"""The code cells of a notebook: code in Python, with lines of IPython in it, or what a magic says that it is."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from cgmigrate.documents.code import Code
from cgmigrate.documents.notebook.json_tree import Node, json_tree, string_code
from cgmigrate.documents.python.nodes import walk
from cgmigrate.text.spans import Span

_CELL_MAGIC = re.compile(r"\s*%%(?P<magic>\S+)[ \t]*(?P<rest>[^\n]*)(?:\n|\Z)")
_SHELL_MAGICS = frozenset(("bash", "sh", "!", "system"))
_SCRIPT_SHELL = re.compile(r"(?:\S*/)?(?:ba|da|a|k)?sh\b")
_PYTHON_MAGICS = frozenset(("time", "timeit", "capture", "prun"))
"""Magics that run the cell as Python."""
_CONTINUED = r"(?:[^\n]*\\\n)*[^\n]*"
_MAGIC = re.compile(
    r"^(?P<before>[ \t]*(?:[\w, \t.]+=[ \t]*)?)"
    rf"(?:(?:!!?|%(?:sx|system)[ \t]+)(?P<command>{_CONTINUED})|[%?]{_CONTINUED})"
    r"|^(?P<indent>[ \t]*)[\w.]+\?{1,2}[ \t]*$",
    re.MULTILINE,
)
"""A line that IPython reads itself: a command of a shell, a magic, or a question."""


@dataclass(frozen=True, eq=False, slots=True)
class Cell:
    """A code cell. ``span`` is where its source is in the file, ``between`` what the file has between two lines of it.

    ``python`` is its code in Python, None if it is not read as such; the lines of IPython are numbers in it.
    ``commands`` are those that a shell gets.
    """

    span: Span
    between: str
    code: Code
    python: Code | None
    commands: tuple[Code, ...]

    def reads(self, offset: int) -> bool:
        """Return whether a character of the file is in code that is read."""
        return any(code.position(offset) is not None for code in (self.python, *self.commands) if code is not None)


def code_cells(text: str) -> list[Cell] | None:
    """Return the code cells of a notebook in Python, None if a text is no such notebook."""
    root = json_tree(text)
    cells = root.under("cells") if root is not None else None
    if root is None or cells is None or not cells.is_array or not _is_python(root):
        return None
    sources = (cell.under("source") for cell in cells.items if _is_code(cell))
    return [_cell(source) for source in sources if source is not None and _is_text(source)]


def _is_python(root: Node) -> bool:
    names = (root.under("metadata", *keys) for keys in (("kernelspec", "language"), ("language_info", "name")))
    return all(name is None or str(name.value).lower() == "python" for name in names if name is None or name.is_string)


def _is_code(cell: Node) -> bool:
    kind = cell.under("cell_type")
    return kind is not None and kind.is_string and kind.value == "code"


def _is_text(source: Node) -> bool:
    return source.is_string or (source.is_array and bool(source.items) and all(one.is_string for one in source.items))


def _cell(source: Node) -> Cell:
    lines = [source] if source.is_string else source.items
    code = Code.joined(list(_lines(lines)))
    span = Span(lines[0].start, lines[-1].end)
    python, commands = _read(code)
    return Cell(span, _between(source), code, python, commands)


def _lines(lines: list[Node]) -> Iterator[Code]:
    """Yield the lines of a cell. The line break at the end of one is all that the file has in front of the next."""
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        code = string_code(line)
        if after is not None and code.text.endswith("\n"):
            code = code[:-1] + Code.written_as("\n", code.starts[-1], after.start + 1)
        yield code


def _between(source: Node) -> str:
    """Return what the file has between the strings of two lines, empty if the source is one string."""
    if source.is_string:
        return ""
    if len(source.items) > 1:
        return source.text[source.items[0].end : source.items[1].start]
    start = source.items[0].start
    before = source.text[source.text.rfind("\n", 0, start) + 1 : start]
    line_break = "\r\n" if "\r\n" in source.text else "\n"
    return ", " if before.strip() else f",{line_break}{before}"


def _read(code: Code) -> tuple[Code | None, tuple[Code, ...]]:
    """Return the code of a cell in Python, and the commands in it."""
    magic = _CELL_MAGIC.match(code.text)
    if magic is None or magic["magic"] in _PYTHON_MAGICS:
        return _in_python(
            code if magic is None else _number(code[: magic.end()]) + Code.added("\n") + code[magic.end() :]
        )
    is_shell = magic["magic"] in _SHELL_MAGICS
    is_script = magic["magic"] == "script" and _SCRIPT_SHELL.match(magic["rest"]) is not None
    return None, ((code[magic.end() :],) if is_shell or is_script else ())


def _in_python(code: Code) -> tuple[Code | None, tuple[Code, ...]]:
    if _tree(code.text) is not None:
        return code, ()
    lines = list(_outside_strings(code, list(_MAGIC.finditer(code.text))))
    python = _with_numbers(code, lines)
    if _tree(python.text) is None:
        return None, ()
    return python, tuple(code[slice(*line.span("command"))] for line in lines if line["command"])


def _outside_strings(code: Code, lines: list[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yield the lines of IPython, without those of a string in Python that only look like it."""
    tree = _tree(_with_numbers(code, lines).text)
    constants = (node for node in walk(tree) if isinstance(node, ast.Constant)) if tree is not None else ()
    numbers = {constant.lineno for constant in constants if constant.value == 0}
    joined = 0
    for line in lines:
        if code.text.count("\n", 0, line.start()) + 1 - joined in numbers:
            yield line
        joined += line.group().count("\n")


def _with_numbers(code: Code, lines: list[re.Match[str]]) -> Code:
    """Return code with a number instead of each line of IPython."""
    pieces: list[Code] = []
    at = 0
    for line in lines:
        start = line.end("before") if line["indent"] is None else line.end("indent")
        pieces += [code[at:start], _number(code[start : line.end()])]
        at = line.end()
    return Code.joined([*pieces, code[at:]])


def _number(code: Code) -> Code:
    """Return a number in Python instead of a line that is not in Python."""
    return Code.written_as("0", code.starts[0], code.ends[-1])


def _tree(text: str) -> ast.Module | None:
    """Return the syntax tree of a text, None if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
