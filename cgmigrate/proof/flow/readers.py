"""Functions that read settings and set none, and that are too long to take each path through them.

Everything but the expressions of settings has to be the same text before and after the edits, and without the name of a
setting. Then the function does the same on every path if each of these expressions has the same value for each state.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.scopes import bound_by
from cgmigrate.proof.flow.expressions import Evaluator
from cgmigrate.proof.flow.limits import NotFollowedError
from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.names import enumeration, global_name
from cgmigrate.proof.flow.run import KEPT_STATE, FlowRun, Text
from cgmigrate.proof.flow.slices import AnyFunction, Slice
from cgmigrate.proof.flow.values import Builtin, Object, Scope
from cgmigrate.proof.flow.world import ENUMERATIONS, PROGRAMS

_IN_TEXT = re.compile(rf"\b(?:{'|'.join(sorted(KEPT_STATE | ENUMERATIONS))})\b")
_SETTING = re.compile(rf"{_IN_TEXT.pattern}[\"' ]*[=:](?!=)")
_FEW_WORDS = 3
_BY_ANY_NAME = frozenset(("setattr", "delattr", "__setattr__", "__dict__", "vars"))
_BY_NAME = frozenset(("getattr", "hasattr"))
_CALLED = _BY_NAME | {"bool", "len"}
_OTHER = ast.Name("?", ast.Load())
"""Stands for a value that is not followed: what an inner function gets, a function, a variable of other code."""
_BINDING: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Assign: ("targets", "value"),
    **dict.fromkeys((ast.AnnAssign, ast.AugAssign, ast.NamedExpr), ("target", "value")),
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.comprehension), ("target", "iter")),
    ast.withitem: ("optional_vars", "context_expr"),
}
"""Where a node has what it binds, and its value."""
_MADE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
"""Collections of any objects, also of such that code adds later."""
_COMPARED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)


@dataclass(frozen=True, slots=True)
class Read:
    """An expression of settings, before and after the edits; ``is_test`` says that code uses only its truth."""

    old: ast.expr
    new: ast.expr
    is_test: bool


def reads_of(
    old: AnyFunction, new: AnyFunction, module: Module, words: Slice, texts: dict[object, Text]
) -> Sequence[Read]:
    """Return the expressions of settings in a function. Raises NotFollowedError if it does more than read them.

    ``texts`` keeps those of functions, for which each state asks.
    """
    if words.is_dynamic(old, module):
        raise NotFollowedError("it sets attributes by unknown names")
    # The names of classes and variables are complete before code is evaluated; the paths may still grow.
    size = len(words.paths)
    for node in (old, new):
        if (node, size) not in texts:
            texts[node, size] = _text_of(node, words)
    (before, reads), (after, others) = texts[old, size], texts[new, size]
    if before != after:
        raise NotFollowedError("edits change more of it than what it reads")
    return [Read(one, other, is_test) for (one, is_test), (other, _) in zip(reads, others, strict=True)]


def _text_of(node: AnyFunction, words: Slice) -> Text:
    text = _Text(words.classes | words.variables | _BY_ANY_NAME, words.paths)
    return "\n".join(text.of(node)), text.reads


@dataclass(slots=True)
class _Text:
    """The text of a function without the expressions of settings, and these, each with whether it is a condition."""

    words: Collection[str]
    paths: Collection[str]
    reads: list[tuple[ast.expr, bool]] = field(default_factory=list)

    def of(self, node: ast.AST, *, is_test: bool = False) -> Iterator[str]:
        """Yield the text of a node."""
        if isinstance(node, ast.expr) and _is_read(node):
            self.reads.append((node, is_test))
            yield "read"
            return
        sets_path = isinstance(node, ast.Attribute) and node.attr in self.paths and not isinstance(node.ctx, ast.Load)
        if sets_path or isinstance(node, (ast.Global, ast.Nonlocal)):
            raise NotFollowedError(f"it sets what other code reads (`{ast.unparse(node)}`)")
        yield type(node).__name__
        parts = _joined(node) if isinstance(node, ast.BoolOp) else (getattr(node, name, None) for name in node._fields)
        for name, part in zip(node._fields, parts, strict=True):
            for one in part if isinstance(part, list) else [part]:
                if isinstance(one, ast.AST):
                    yield from self.of(one, is_test=_is_condition(node, name, is_test=is_test))
                else:
                    yield self._checked(one, is_text=isinstance(node, ast.Constant))
            yield ";"

    def _checked(self, value: object, *, is_text: bool) -> str:
        """Return the text of a name or a constant. Raises NotFollowedError for a setting, other than in a sentence."""
        if isinstance(value, str):
            is_sentence = is_text and len(value.split()) > _FEW_WORDS and not _SETTING.search(value)
            if value in self.words or (not is_sentence and _IN_TEXT.search(value)):
                raise NotFollowedError(f"it uses `{value}` in a way that cgmigrate does not follow")
        return repr(value)


def _joined(node: ast.BoolOp) -> Iterator[object]:
    """Yield the fields of `a and b`: operands that follow each other and only read are one expression."""
    yield node.op
    operands: list[ast.expr] = []
    for is_plain, group in groupby(node.values, _is_plain):
        every = list(group)
        joined = ast.copy_location(ast.BoolOp(node.op, every), node)
        operands += [joined] if is_plain and len(every) > 1 and _is_read(joined) else every
    yield operands


def _is_condition(node: ast.AST, name: str, *, is_test: bool) -> bool:
    """Return whether code uses only the truth of a field of a node."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return name == "test"
        case ast.comprehension():
            return name == "ifs"
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp():
            return is_test
    return False


# --- expressions of settings ------------------------------------------------------------------------


def _is_read(node: ast.expr) -> bool:
    """Return whether an expression reads settings of one object, and does nothing else."""
    return _is_plain(node) and len(set(map(ast.unparse, _owners(node)))) == 1


def _is_plain(node: ast.expr) -> bool:
    """Return whether an expression only reads and compares."""
    parts: Sequence[ast.expr]
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.Attribute(value=part, ctx=ast.Load()) | ast.UnaryOp(op=ast.Not(), operand=part):
            parts = [part]
        case ast.Subscript(value=part, slice=ast.Constant(), ctx=ast.Load()):
            parts = [part]
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(one, _COMPARED) for one in ops):
            parts = [left, *others]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _CALLED:
            if name in _BY_NAME and not (len(parts) > 1 and isinstance(parts[1], ast.Constant)):
                return False
        case _:
            return False
    return all(map(_is_plain, parts))


def _owners(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions of the objects whose settings an expression reads."""
    for one in walk(node):
        match one:
            case ast.Attribute(value=owner, attr=name) if name in KEPT_STATE:
                yield owner
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[owner, ast.Constant(value=name), *_]):
                if name in KEPT_STATE:
                    yield owner


# --- evaluation -----------------------------------------------------------------------------------


def value_of(
    run: FlowRun, module: Module, node: AnyFunction, read: ast.expr, arguments: Mapping[str, object]
) -> object:
    """Return the value of an expression of settings. Raises NotFollowedError if it is not known what its names are.

    ``arguments`` are its parameters. At one moment a variable is the same before and after the edits, whatever it is.
    """
    variables = _Variables(_sources(node), run.side.slice)
    names = {one.id for one in walk(read) if isinstance(one, ast.Name)}
    for name in names - variables.sources.keys():
        value = global_name(run, module, name)
        if not (enumeration(value) or (isinstance(value, Builtin) and name in _CALLED)):
            raise NotFollowedError(f"it reads settings with `{name}`")
    if any(map(variables.makes, _owners(read))):
        raise NotFollowedError(f"it makes what it reads (line {read.lineno})")
    scope = Scope({name: variables.value(name, arguments) for name in names & variables.sources.keys()})
    return Evaluator(run, module, scope).value(read)


@dataclass(frozen=True, slots=True)
class _Variables:
    """The variables of a function and of those in it, with what each gets: None for what other code gives."""

    sources: Mapping[str, Sequence[ast.expr | None]]
    words: Slice

    def value(self, name: str, arguments: Mapping[str, object]) -> object:
        """Return the value of a variable: if it is bound once, that of the parameter."""
        if name in arguments and self.sources[name] == [None]:
            return arguments[name]
        return Object(name, is_argument=True, is_part=True, is_bare=name in PROGRAMS)

    def makes(self, owner: ast.expr) -> bool:
        """Return whether the function may make an object, so that it has none of the states that other code leaves."""
        waiting, seen = [owner], set[str]()
        while waiting:
            value = waiting.pop()
            calls = [one for one in walk(value) if isinstance(one, ast.Call)]
            called = {one for call in calls for one in walk(call.func)}
            if any(map(self._may_make, calls)) or any(isinstance(one, _MADE) for one in walk(value)):
                return True
            for one in walk(value):
                if isinstance(one, ast.Name) and one not in called and one.id not in seen:
                    seen.add(one.id)
                    if one.id not in self.sources:
                        return True
                    waiting += [source for source in self.sources[one.id] if source is not None]
        return False

    def _may_make(self, call: ast.Call) -> bool:
        """Return whether a call makes an object: of a class, of any keywords, or by a function that uses settings."""
        names = [getattr(one, "attr", getattr(one, "id", "")) for one in walk(call.func)]
        return any(word.arg is None for word in call.keywords) or any(
            name.lstrip("_")[:1].isupper() or name in self.words.functions for name in names
        )


@lru_cache(maxsize=1024)
def _sources(node: AnyFunction) -> Mapping[str, Sequence[ast.expr | None]]:
    values: dict[ast.AST, ast.expr | None] = dict(chain.from_iterable(map(_values_of, walk(node))))
    values |= dict.fromkeys(one for one in walk(node.args) if isinstance(one, ast.arg))
    sources: dict[str, list[ast.expr | None]] = {}
    for one in walk(node):
        for name in bound_by(one):
            sources.setdefault(name, []).append(values.get(one, _OTHER))
    return sources


def _values_of(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Yield the names that a node binds, each with the expression from which it gets its value."""
    targets, value = (getattr(node, name, None) for name in _BINDING.get(type(node), ("", "")))
    for target in targets if isinstance(targets, list) else [targets] if targets is not None else []:
        yield from ((one, value) for one in walk(target))
