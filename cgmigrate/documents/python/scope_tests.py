"""Tests for a member of the scope, ``CudaGraphScope.attn in config.cuda_graph_scope``, and what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.read_messages import HolderKind, kind_of, meaning, of_membership, result_around
from cgmigrate.documents.python.source import NOT_LITERAL, PythonSource, dotted, literal_value
from cgmigrate.documents.python.spelling import module_class_like
from cgmigrate.documents.python.use_report import Message, UseReplacement, UseReport
from cgmigrate.documents.python.values import enum_member
from cgmigrate.documents.sites import FOLLOWS_OBJECT, ProblemKind
from cgmigrate.megatron.settings import IMPL, LAYER_MODULES, MODULES, SCOPE
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_LIBRARIES = "megatron.core."
_OTHERS = ("Config", "Provider", "Container", "Mixin")
_MOST_BASES = 8


def is_config_of_module(node: ast.expr, source: PythonSource, names: Names) -> bool:
    """Return whether an expression is ``self.config`` in a class that derives from a module of megatron-core."""
    if dotted(node) != "self.config":
        return False
    around = next((above for above in source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
    return around is not None and _is_module(around, source, names, _MOST_BASES)


def _is_module(node: ast.ClassDef, source: PythonSource, names: Names, depth: int) -> bool:
    return depth > 0 and any(_is_base(dotted(base), source, names, depth) for base in node.bases)


def _is_base(name: str, source: PythonSource, names: Names, depth: int) -> bool:
    if full := names.imported(name):
        return full.startswith(_LIBRARIES) and not full.endswith(_OTHERS)
    own = [one for one in source.tree.body if isinstance(one, ast.ClassDef) and one.name == name]
    return len(own) == 1 and _is_module(own[0], source, names, depth - 1)


_LONGEST_LINE = 118
_RISK_OF_NONE = "with `cuda_graph_impl` none the old scope could still hold full_iteration, and nothing was captured"

_IN_INFERENCE = (
    "write `{config}.inference_cuda_graph_scope == InferenceCudaGraphScope.block` for the graphs that 0.16 captured in "
    'inference for full_iteration, else `{config}.cuda_graph_impl == "full_iteration"`; not fixed: which is meant is '
    "not known"
)


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """The ``and`` around a test, and how it tests the implementation of the same configuration (``== local``)."""

    node: ast.BoolOp
    implementation: str


@dataclass(frozen=True, slots=True)
class ScopeTests:
    """Reports such tests."""

    names: Names
    report: UseReport

    def in_conjunction(self, node: ast.BoolOp) -> list[ast.Compare]:
        """Report tests beside one of the implementation (``cfg.cuda_graph_impl == "local" and ...``); return them."""
        reported: list[ast.Compare] = []
        implementations = {path: test for value in node.values for path, test in _implementation_tests(value)}
        for value in node.values:
            match value:
                case ast.Compare(
                    left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr, value=config)]
                ) if attr == SCOPE and enum_member(left, self.names):
                    if (path := dotted(config)) in implementations:
                        self.add(value, _Conjunction(node, implementations[path]))
                        reported.append(value)
                case ast.Compare(
                    left=ast.Attribute(attr=attr, value=config),
                    ops=[ast.NotEq()],
                    comparators=[ast.Constant(value="full_iteration")],
                ) if attr == SCOPE and implementations.get(dotted(config)) == "== local":
                    is_added = self._add_in_module(value, config, node) or self._add_of_recipe(value, node)
                    reported += [value] if is_added else []
                case ast.Compare() if (tested := full_iteration_test(value)) is not None:
                    is_local = implementations.get(dotted(tested[0])) == "== local"
                    reported += [value] if is_local and self._add_of_recipe(value, node) else []
        return reported

    def _add_of_recipe(self, node: ast.Compare, within: ast.BoolOp) -> bool:
        """Report a test of what a recipe sets, ``impl == "local" and "full_iteration" in scope``; return whether it is.

        One comparison of the implementation takes the place of both operands.
        """
        tested = full_iteration_test(node)
        if tested is None or not self.report.owners.is_recipe(tested[0]):
            return False
        config, is_full = tested
        if not (edits := self._merged(node, within, config, inside=is_full)):
            return False
        source = self.report.source
        fix = "" if is_full else f"delete `{' '.join(source.of(node).split())}`"
        text = f'{source.of(config)}.cuda_graph_impl == "{"full_iteration" if is_full else "local"}"'
        replacement = UseReplacement(text, risk=FOLLOWS_OBJECT, edits=edits, fix=fix)
        self.report.add(node, Message(ProblemKind.READ, meaning(SCOPE, HolderKind.RECIPE), replacement))
        return True

    def _add_in_module(self, node: ast.Compare, config: ast.expr, within: ast.BoolOp) -> bool:
        """Report ``self.config.cuda_graph_scope != "full_iteration"`` in a module of a model; return whether it is one.

        Its configuration is built: the test is always true since 0.18, and `local` is never the full iteration.
        """
        if not is_config_of_module(config, self.report.source, self.names):
            return False
        if not (edits := self._merged(node, within, config, inside=False)):
            return False
        source = self.report.source
        text = f"{meaning(SCOPE, kind_of(config))}{result_around(node.left, node)}"
        fix = f"delete `{' '.join(source.of(node).split())}`"
        replacement = UseReplacement(
            f'{source.of(config)}.cuda_graph_impl == "local"', edits=edits, fix=fix, is_built=True
        )
        self.report.add(node, Message(ProblemKind.READ, text, replacement))
        return True

    def add(self, node: ast.Compare, within: _Conjunction | None = None) -> None:
        """Report ``member in config.cuda_graph_scope``, or ``not in``."""
        left, scope = node.left, node.comparators[0]
        assert isinstance(scope, ast.Attribute)
        member, config = enum_member(left, self.names), self.report.source.of(scope.value)
        if not self.report.owners.is_config(scope.value):
            text = f"{meaning(SCOPE)}; `{config}.{SCOPE}` is a copy made elsewhere in this file"
            self.report.add(node, Message(ProblemKind.READ, text))
            return
        text = of_membership(kind_of(scope.value))
        inside = isinstance(node.ops[0], ast.In)
        if member in LAYER_MODULES and isinstance(left, ast.Attribute):
            module = f"{module_class_like(self.report.source.of(left.value), self.names)}.{member}"
            replacement = UseReplacement(f"{module} {'in' if inside else 'not in'} {config}.cuda_graph_modules")
            self.report.add(node, Message(ProblemKind.MODULE_TEST, text, replacement))
        elif member == "full_iteration":
            test = self._instead_of_full_iteration(node, config, within)
            advice = "" if test else _IN_INFERENCE.format(config=config)
            self.report.add(node, Message(ProblemKind.FULL_ITERATION_TEST, text, test, advice=advice))
        elif member == "full_iteration_inference":
            sign = "==" if inside else "!="
            advice = f"`{config}.inference_cuda_graph_scope {sign} InferenceCudaGraphScope.block` is the new test"
            self.report.add(node, Message(ProblemKind.FULL_ITERATION_TEST, text, advice=advice))
        else:
            self.report.add(node, Message(ProblemKind.READ, text))

    def _instead_of_full_iteration(
        self, node: ast.Compare, config: str, within: _Conjunction | None
    ) -> UseReplacement | None:
        inside = isinstance(node.ops[0], ast.In)
        text = f'{config}.cuda_graph_impl {"==" if inside else "!="} "full_iteration"'
        scope = node.comparators[0]
        assert isinstance(scope, ast.Attribute)
        is_local = within is not None and within.implementation == "== local"
        if within and is_local and (edits := self._merged(node, within.node, scope.value, inside=inside)):
            # Without the operand nothing else changes: since 0.18 `local` is never the full iteration.
            test = " ".join(self.report.source.of(node).split())
            fix = "" if inside else f"delete `{test}`: since 0.18 `local` has no full-iteration graphs"
            return UseReplacement(text, edits=edits, fix=fix)
        if within and within.implementation == "!= none":
            return UseReplacement(text)
        around: ast.expr = node
        while isinstance(above := self.report.source.parent(around), ast.expr):
            around = above
        # A condition about inference may mean what 0.16 captured there.
        is_of_inference = "inference" in self.report.source.of(around).lower()
        return None if is_of_inference else UseReplacement(text, risk=_RISK_OF_NONE)

    def _merged(self, node: ast.Compare, within: ast.BoolOp, config: ast.expr, *, inside: bool) -> list[Edit]:
        """Return edits that make one comparison of ``impl == "local" and full_iteration in scope``, if possible."""
        source = self.report.source
        spans = [source.span(value) for value in within.values]
        if any(_is_bracketed(value, source.text, span) for value, span in zip(within.values, spans, strict=True)):
            return []
        at = within.values.index(node)
        cut = Edit(spans[at - 1].end, spans[at].end, "") if at else Edit(spans[0].start, spans[1].start, "")
        if "#" in (source.text[cut.start : spans[at].start] if at else source.text[spans[0].end : cut.end]):
            return []
        edits = [cut]
        if inside:
            edits.insert(0, self._implementation_edit(config, within))
        if len(spans) == 2:
            edits += self._without_brackets(within, sum(len(edit.text) - edit.end + edit.start for edit in edits))
        return edits + self._on_one_line(within, edits)

    def _implementation_edit(self, config: ast.expr, within: ast.BoolOp) -> Edit:
        """Return the edit that writes "full_iteration" for "local" in the test of the implementation."""
        owner = (dotted(config), "== local")
        test = next(value for value in within.values if owner in _implementation_tests(value))
        assert isinstance(test, ast.Compare)
        literal = self.report.source.span(test.comparators[0])
        quote = self.report.source.text[literal.start]
        return Edit(literal.start, literal.end, f"{quote}full_iteration{quote}")

    def _without_brackets(self, node: ast.BoolOp, growth: int) -> list[Edit]:
        """Return edits that delete the brackets of ``if (⏎ a⏎ and b⏎):``, once one operand is left and fits a line."""
        source = self.report.source
        above = source.parent(node)
        if isinstance(above, ast.BoolOp):
            return self._without_own_brackets(source.span(node))
        if not isinstance(above, (ast.If, ast.While)) or above.test is not node:
            return []
        text, span = source.text, source.span(node)
        before = text[: span.start].rstrip()
        behind = len(text) - len(text[span.end :].lstrip())
        if not before.endswith("(") or text[behind : behind + 1] != ")" or text[behind + 1 : behind + 2] != ":":
            return []
        line = text[text.rfind("\n", 0, len(before)) + 1 : len(before) - 1]
        if "#" in text[len(before) : span.start] + text[span.end : behind]:
            return []
        if len(line) + span.end - span.start + growth > _LONGEST_LINE:
            return []
        return [Edit(len(before) - 1, span.start, ""), Edit(span.end, behind + 1, "")]

    def _on_one_line(self, node: ast.BoolOp, edits: Sequence[Edit]) -> list[Edit]:
        """Return edits that join the lines of the condition around one that is shorter now, if they fit in one."""
        source, text = self.report.source, self.report.source.text
        above = source.parent(node)
        if not isinstance(above, ast.BoolOp):
            return []
        span = source.span(above)
        first, last = len(text[: span.start].rstrip()), len(text) - len(text[span.end :].lstrip())
        inside = text[first:last]
        if text[first - 1 : first] != "(" or text[last : last + 1] != ")" or "#" in inside or '"""' in inside:
            return []
        breaks = [
            Edit(first + one.start(), first + one.end(), "" if one.start() == 0 or one.end() == len(inside) else " ")
            for one in re.finditer(r"\s*\n\s*", inside)
        ]
        growth = sum(len(edit.text) - edit.end + edit.start for edit in (*edits, *breaks))
        line = text[text.rfind("\n", 0, first) + 1 : first]
        if len(line) + len(inside) + growth + 1 > _LONGEST_LINE or _overlap(edits, breaks):
            return []
        return breaks

    def _without_own_brackets(self, span: Span) -> list[Edit]:
        """Return edits that delete the brackets directly around an operand, once it is a comparison."""
        text = self.report.source.text
        if text[span.start - 1 : span.start] != "(" or text[span.end : span.end + 1] != ")":
            return []
        return [Edit(span.start - 1, span.start, ""), Edit(span.end, span.end + 1, "")]


def full_iteration_test(node: ast.expr) -> tuple[ast.expr, bool] | None:
    """Return the object of which a comparison asks whether its scope is the full iteration, and whether it says so.

    Both are None for any other code. The value is a text; of a recipe, the scope is the assigned value.
    """
    match node:
        case ast.Compare(left=ast.Constant(value="full_iteration"), ops=[operator], comparators=[scopes]):
            is_test, is_full = isinstance(operator, (ast.In, ast.NotIn)), isinstance(operator, ast.In)
            scope = _without_default(scopes)
        case ast.Compare(
            left=ast.Attribute() as scope,
            ops=[operator],
            comparators=[ast.Constant(value="full_iteration") | ast.List(elts=[ast.Constant(value="full_iteration")])],
        ):
            is_test, is_full = isinstance(operator, (ast.Eq, ast.NotEq)), isinstance(operator, ast.Eq)
        case _:
            return None
    if not is_test or not isinstance(scope, ast.Attribute) or scope.attr != SCOPE:
        return None
    return scope.value, is_full


def _without_default(node: ast.expr) -> ast.expr:
    """Return what an expression is unless that is empty: the scope in ``cfg.model.cuda_graph_scope or []``."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=[first, ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Constant(value="")]):
            return first
    return node


def _overlap(edits: Iterable[Edit], others: Sequence[Edit]) -> bool:
    return any(one.start < other.end and other.start < one.end for one in edits for other in others)


def _is_bracketed(node: ast.expr, text: str, span: Span) -> bool:
    """Whether an operand seems to have brackets of its own."""
    if not isinstance(node, (ast.Compare, ast.BoolOp)):
        return False
    return text[: span.start].rstrip().endswith("(") and text[span.end :].lstrip().startswith(")")


def _implementation_tests(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield (``cfg``, ``== local``) for ``cfg.cuda_graph_impl == "local"``, likewise ``!= none``."""
    match node:
        case ast.Compare(
            left=ast.Attribute(value=owner, attr="cuda_graph_impl"),
            ops=[ast.Eq() | ast.NotEq() as op],
            comparators=[ast.Constant(value=str() as text)],
        ):
            test = f"{'==' if isinstance(op, ast.Eq) else '!='} {text}"
            if test == "== transformer_engine":
                test = "!= none"
            yield dotted(owner), test


# --- comparisons ----------------------------------------------------------------------------------

_FULL_ITERATION = "full_iteration"


def comparison(node: ast.Compare, source: PythonSource) -> UseReplacement | None:
    """Return what follows the new settings instead of a comparison of the scope with a literal; None for any other."""
    match node:
        case ast.Compare(
            left=ast.Attribute(attr=name, value=owner), ops=[ast.Eq() | ast.NotEq() as op], comparators=[other]
        ) if name == SCOPE and not sets_scope(node, source):
            value = literal_value(other)
            if value is NOT_LITERAL or value is None:
                return None
            sign, path = "==" if isinstance(op, ast.Eq) else "!=", source.of(owner)
            if value in (_FULL_ITERATION, [_FULL_ITERATION]):
                return UseReplacement(f'{path}.{IMPL} {sign} "{_FULL_ITERATION}"', risk=FOLLOWS_OBJECT)
            written = _written(value, source.of(other))
            return UseReplacement(f"{path}.{MODULES} {sign} {written}", risk=FOLLOWS_OBJECT) if written else None
    return None


def _written(value: object, text: str) -> str:
    """Return the modules that correspond to a scope, as text; empty for a value that has none."""
    if value == "full":
        return "[]"
    if isinstance(value, str):
        return f"[{text}]" if value in LAYER_MODULES else ""
    is_list = isinstance(value, list) and all(one in LAYER_MODULES for one in value)
    return text if is_list else ""


def read_value(node: ast.Attribute, source: PythonSource) -> UseReplacement | None:
    """Return the new setting for a scope that is compared with that of another object, or iterated over.

    None for any other read.
    """
    above = source.parent(node)
    match above:
        case ast.Compare(
            left=ast.Attribute(attr=first), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Attribute(attr=second)]
        ):
            follows = first == second
        case ast.comprehension(iter=iterated) | ast.For(iter=iterated):
            follows = iterated is node
        case _:
            follows = False
    if not follows or sets_scope(node, source):
        return None
    return UseReplacement(f"{source.of(node.value)}.{MODULES}", risk=FOLLOWS_OBJECT)


def sets_scope(node: ast.AST, source: PythonSource) -> bool:
    """Return whether the function around code gives some object a scope."""
    function = source.function_of(node)
    for part in walk(function) if function is not None else ():
        match part:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.keyword(arg=name) | ast.arg(arg=name):
                if name == SCOPE:
                    return True
            case ast.Dict(keys=keys):
                if any(isinstance(key, ast.Constant) and key.value == SCOPE for key in keys):
                    return True
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_]):
                if name == SCOPE:
                    return True
    return False
