"""Text in code that sets keys: YAML or JSON which the code writes, and which may be merged with a file.

It is a string, a template, or a string that ``format`` or ``%`` completes. Messages and docstrings do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.python.text_for_people import is_for_people
from cgmigrate.megatron.catalogue import Catalogue

_VALUE = r"[\"']?[ \t]*:(?=[ \t\n{\[\"'\\]|$)"


def written_key(catalogue: Catalogue) -> str:
    """Return a regular expression of a deprecated setting that a line of code or text may write as a key."""
    return rf"(?<![A-Za-z_0-9])(?P<written>{catalogue.alternatives(deprecated=True)}){_VALUE}"


@lru_cache(maxsize=8)
def _key(catalogue: Catalogue) -> re.Pattern[str]:
    start = r"(?:^|[{,])[ \t]*(?:-[ \t]+)?[\"']?(?:[A-Za-z_0-9]+[.])*"
    return re.compile(rf"{start}({catalogue.alternatives()}){_VALUE}", re.MULTILINE)


def names_in_texts(node: ast.AST, source: PythonSource, among: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the settings, of some, that a string of code sets as keys, each with the line."""
    match node:
        case ast.Constant(value=str() as text) if ":" in text and source.catalogue.is_in(text):
            names = [name for match in _key(source.catalogue).finditer(text) if (name := match.group(1)) in among]
            if names and not is_for_people(source.ancestors(node)):
                span = source.span(node)
                for name in dict.fromkeys(names):
                    at = source.text.find(name, span.start, span.end)
                    yield name, source.line_of(at) if at >= 0 else node.lineno
