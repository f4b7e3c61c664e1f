"""Where the settings of one site are written: the common form that all finders give and the writer takes."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from cgmigrate.megatron.settings import FIELDS
from cgmigrate.text.spans import Span

_NOWHERE = Span(0, 0)


class Form(Enum):
    """How a site's settings are written."""

    CALL = "keyword arguments of one call"
    DICT = "entries of one dict literal"
    RUN = "statements that set attributes of one object"
    FLAGS = "words of one list of command-line arguments"
    OVERRIDES = "override strings (`model.cuda_graph_scope=[]`) of one list"


@dataclass(slots=True)
class Item:
    """One setting as written: ``name`` is its bare name in the text, ``whole`` what is deleted with it.

    ``values`` are the nodes of its value (several words of a list of flags, none of a boolean flag).
    ``suite`` is the list of statements in which a statement stands.
    """

    field: str
    name: Span
    values: list[ast.expr]
    whole: Span
    node: ast.AST
    suite: list[ast.stmt] = dataclasses.field(default_factory=list)
    value: object = None
    span: Span = _NOWHERE


@dataclass(slots=True)
class Place:
    """All settings of one site. ``elements`` are all elements of the call, dict or list, in order."""

    form: Form
    items: list[Item]
    elements: list[Span] = dataclasses.field(default_factory=list)
    owner: str = ""
    """The object or callee as written, for messages."""
    callee: str = ""
    object: str = ""
    foreign: bool = False
    """Whether ``callee`` is a class that is not Megatron's, which counts more than the object's name."""
    overrides: bool = False
    built: bool = False
    of_built_model: bool = False
    fixed: str = ""
    inherits: Place | None = None
    links: list[Place] = dataclasses.field(default_factory=list)
    """Places that may have set the same object before: they are rewritten together or not at all."""
    uncertain: bool = False
    """Whether branches or a loop leave open what the object holds when this place is reached."""
    prefix: str = ""

    def item(self, name: str) -> Item:
        """The item of a setting; the last one counts."""
        return next(item for item in reversed(self.items) if item.field == name)


FIELD_SET = frozenset(FIELDS)
NEW_NAMES = frozenset(("cuda_graph_modules", "inference_cuda_graph_scope"))
"""Names that megatron-core has since 0.18."""

_GUARDS = ("version", "__version__", "parse", "Version", "fields", "__dataclass_fields__", "signature")
_CATCHES = frozenset(
    ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError", "Exception", "BaseException")
)


def shown(node: ast.expr) -> str:
    """An expression for a message; a long one is cut, with a mark that shows it."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:59]}…"


def guard_of(test: ast.expr) -> str:
    """Why a condition asks which release is installed, empty when it does not."""
    for node in ast.walk(test):
        word = ""
        if isinstance(node, ast.Call) and _asks_for_settings(node):
            return f"the code is guarded by `{shown(node)}`, so it is written for several releases"
        if isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.Attribute):
            word = node.attr
        if word in _GUARDS or "min_version" in word or word.endswith("_version"):
            return f"the code is guarded by `{shown(test)}`, so it is written for several releases"
        if word.startswith("HAVE_") and "GRAPH" in word:
            return f"the code is guarded by `{word}`, so it is written for several releases"
    return ""


def _asks_for_settings(call: ast.Call) -> bool:
    """Whether a ``hasattr`` asks for a setting, an enum of settings, or what nobody knows from here."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "hasattr" and len(call.args) == 2):
        return False
    name = call.args[1]
    return not isinstance(name, ast.Constant) or _is_about_graphs(str(name.value))


def _is_about_graphs(word: str) -> bool:
    return "cuda_graph" in word or "CudaGraph" in word


@lru_cache(maxsize=256)
def _is_for_releases(node: ast.Try) -> bool:
    """Whether a ``try`` is there for the settings: it does nothing else, or what catches it speaks of them."""
    if any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body):
        return True
    return all(map(_speaks_of_graphs, node.body)) or any(map(_speaks_of_graphs, node.handlers))


def _speaks_of_graphs(node: ast.AST) -> bool:
    for part in ast.walk(node):
        for word in (getattr(part, "attr", ""), getattr(part, "id", ""), getattr(part, "arg", "")):
            if isinstance(word, str) and _is_about_graphs(word):
                return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _is_about_graphs(part.value):
            return True
    return False


def catches_missing(node: ast.Try) -> str:
    """Why a ``try`` tells releases apart, empty when it does not."""
    if not _is_for_releases(node):
        return ""
    for handler in node.handlers:
        kinds: Sequence[ast.expr | None] = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            word = kind.id if isinstance(kind, ast.Name) else kind.attr if isinstance(kind, ast.Attribute) else ""
            if kind is None or word in _CATCHES:
                return "the code stands in a `try` that catches what another release lacks"
    return ""


def guards_above(node: ast.AST, ancestors: Iterator[ast.AST]) -> str:
    """Why the code around a node tells releases apart, empty when it does not."""
    for above in ancestors:
        why = ""
        if isinstance(above, (ast.If, ast.IfExp, ast.While)):
            why = guard_of(above.test)
        elif isinstance(above, ast.BoolOp):
            earlier = [value for value in above.values if value is not node]
            why = next(filter(None, map(guard_of, earlier)), "")
        elif isinstance(above, ast.Try):
            why = catches_missing(above)
        if why:
            return why
        node = above
    return ""
