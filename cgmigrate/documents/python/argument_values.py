"""Values of flags and override strings in a list of arguments, beside those that are sites."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cgmigrate.documents.overrides import value_beside
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.settings import Missing, Undecided


def value_in_words(
    words: ast.AST | None, source: PythonSource, prefix: str, section: Sequence[str], keys: Sequence[str]
) -> object:
    """Return the value of a flag or override in a list of arguments; ``prefix`` is that of the site's overrides.

    A flag without a word behind it is true.
    """
    elements = words.elts if isinstance(words, (ast.List, ast.Tuple)) else getattr(words, "args", [])
    if prefix or section:
        constants = (element.value for element in elements if isinstance(element, ast.Constant))
        return value_beside((text for text in constants if isinstance(text, str)), prefix, section, keys)
    value = _flag(elements, keys[-1])
    extended = not isinstance(words, (ast.List, ast.Tuple)) or _is_part(words, source)
    computed = any(not isinstance(element, ast.Constant) for element in elements)
    return Missing.UNKNOWN if value is Missing.ABSENT and (extended or computed) else value


def _is_part(words: ast.AST, source: PythonSource) -> bool:
    """Whether a list is added to another one."""
    above = source.parent(words)
    if isinstance(above, (ast.BinOp, ast.AugAssign, ast.Starred)):
        return True
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "extend"


def _flag(elements: Sequence[ast.expr], flag: str) -> object:
    texts = [element.value if isinstance(element, ast.Constant) else None for element in elements]
    value: object = Missing.ABSENT
    for at, text in enumerate(texts):
        if isinstance(text, str) and text.startswith(flag + "="):
            value = text.partition("=")[2]
        elif text == flag:
            value = _words_behind(texts[at + 1 :])
    return value


def _words_behind(texts: Sequence[object]) -> object:
    words: list[str] = []
    for text in texts:
        if isinstance(text, str) and text.startswith("-"):
            break
        if not isinstance(text, str):
            return Undecided("…", "words computed at run time")
        words.append(text)
    return words[0] if len(words) == 1 else words or True
