"""JSON as a tree of spans, with the nodes that YAML has; comments and commas at the end of lists are allowed."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from cgmigrate.documents.yaml.tree import Node

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|[\[{\]}]|[^\s,:\[\]{}"/]+|.', re.DOTALL)
_COMMENTS = ("//", "/*")
_LAST_COMMA = re.compile(r",(?=\s*[\]}])")
_MOST_DEPTH = 500


def json_roots(text: str) -> list[Node]:
    """Return the value that a text is, none if it is no JSON or nested too deeply."""
    tokens = [match for match in _TOKEN.finditer(text) if not match.group().startswith(_COMMENTS)]
    if not _is_json("".join(_with_blanks(tokens))):
        return []
    top = Node("seq", 0, 0, len(text))
    stack = [top]
    for match in tokens:
        token, start, end = match.group(), *match.span()
        if token in "]}":
            stack.pop().end = end
        elif token in ",:" or token.isspace():
            continue
        else:
            node = _node(token, start, end)
            parent = stack[-1]
            if parent.kind == "map" and len(parent.items) % 2:
                node.key = parent.items[-1]
            parent.items.append(node)
            if node.kind != "scalar":
                stack.append(node)
            if len(stack) > _MOST_DEPTH:
                return []
    return top.items


def _with_blanks(tokens: list[re.Match[str]]) -> list[str]:
    """Return the tokens without comments and without commas at the end of lists."""
    result = [match.group() for match in tokens]
    significant = [at for at, token in enumerate(result) if not token.isspace()]
    for at, behind in pairwise(significant):
        if result[at] == "," and result[behind] in ("]", "}"):
            result[at] = " "
    return result


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _node(token: str, start: int, end: int) -> Node:
    if token in "[{":
        node = Node("seq" if token == "[" else "map", start, start, end)
        node.flow = node.brackets = True
        return node
    node = Node("scalar", start, start, end)
    if token.startswith('"'):
        node.value, node.style = json.loads(token), '"'
    else:
        node.value, node.implicit = token, True
    return node
