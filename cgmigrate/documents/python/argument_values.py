"""Values of flags and override strings in a list of arguments, beside those that are sites."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from cgmigrate.documents.python.source import Source
from cgmigrate.megatron.settings import Missing, Undecided


def value_in_words(
    words: ast.AST | None, source: Source, prefix: str, section: Sequence[str], keys: Sequence[str]
) -> object:
    """Return the value of a flag or override in a list of arguments; ``prefix`` is that of the site's overrides.

    A flag without a word behind it is true.
    """
    elements = words.elts if isinstance(words, (ast.List, ast.Tuple)) else getattr(words, "args", [])
    if prefix or section:
        return _override(elements, prefix, section, keys)
    value = _flag(elements, keys[-1])
    extended = not isinstance(words, (ast.List, ast.Tuple)) or _is_part(words, source)
    computed = any(not isinstance(element, ast.Constant) for element in elements)
    return Missing.UNKNOWN if value is Missing.ABSENT and (extended or computed) else value


def _is_part(words: ast.AST, source: Source) -> bool:
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
            return Undecided("…", "words that are computed when the code runs")
        words.append(text)
    return words[0] if len(words) == 1 else words or True


def _override(elements: Sequence[ast.expr], prefix: str, section: Sequence[str], keys: Sequence[str]) -> object:
    names = prefix.rstrip(".").split(".") if prefix else []
    if section and names[-len(section) :] != list(section):
        return Missing.UNKNOWN
    path = re.escape(".".join((*names[: len(names) - len(section)], *keys)))
    pattern = re.compile(rf"[+~]{{0,2}}{path}=(.*)", re.DOTALL)
    texts = [element.value for element in elements if isinstance(element, ast.Constant)]
    matches = [match for text in texts if isinstance(text, str) and (match := pattern.fullmatch(text))]
    if not matches:
        return Missing.UNKNOWN
    text = matches[-1][1].strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return Undecided(text, "a value that is computed when the override is read") if "$" in text else text.strip("'\"")
