"""Uses of deprecated names that are no sites: code that reads, defines, imports or lists them.

Each is a problem that says what the code evaluates to since 0.18 and what to write, or a name that is skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from cgmigrate.documents.python.built_copies import BuiltCopy, report_copy
from cgmigrate.documents.python.flag_reads import both_tests, flag_read
from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.name_strings import NameStrings
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.read_messages import (
    HolderKind,
    advice,
    deprecation_of,
    kind_of,
    meaning,
    of_membership,
    replacement_of,
    result_around,
)
from cgmigrate.documents.python.release_checks import PossibleReleaseChecks, release_check_around
from cgmigrate.documents.python.scope_tests import ScopeTests, comparison, full_iteration_test, read_value
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.use_owners import HUGGING_FACE, OWN, UseOwners
from cgmigrate.documents.python.use_report import Message, UseReplacement, UseReport
from cgmigrate.documents.python.values import enum_class
from cgmigrate.documents.sites import FOLLOWS_OBJECT, FOLLOWS_USES, ProblemKind
from cgmigrate.megatron.settings import IMPL, LAYER_MODULES, MODULES, SCOPE

_RISK_OF_EMPTY = "a scope with full_iteration was not empty, but its list of modules is"


def report_problems(
    source: PythonSource, owners: UseOwners, of_sites: set[int], first_index: int, copies: Iterable[BuiltCopy] = ()
) -> UseReport:
    """Return the report on all uses that are no sites; ``of_sites`` are the ids of nodes that belong to sites.

    ``copies`` are those of settings of configurations that are built, whose nodes are among these.
    """
    report = UseReport(source, owners, first_index)
    for copy in copies:
        report_copy(copy, report)
    _UseProblems(report, owners.names, of_sites).collect()
    report.withhold_partial_fixes()
    return report


class _UseProblems:
    """Visits the nodes of a file; ``covered`` are the ids of those that need no look of their own."""

    def __init__(self, report: UseReport, names: Names, covered: set[int]) -> None:
        self.report, self.names = report, names
        self.covered = covered - _values_of_records(report.source)
        self.source, self.owners = report.source, report.owners
        self.catalogue = report.source.catalogue
        self.tests = ScopeTests(names, report)
        self.strings, self.checks = NameStrings(self.source, report), PossibleReleaseChecks(self.catalogue)

    def collect(self) -> None:
        """Walk the nodes on lines with the names."""
        for node in self.source.walk():
            if self._is_old_read(node):
                # A value of a site, too: no proof of what is captured looks at it.
                self._visit(node)
            elif id(node) in self.covered or self._visit(node):
                self._cover_inside(node)

    def _is_old_read(self, node: ast.AST) -> bool:
        """Return whether code reads an old name that is no part of what is captured."""
        name = self._deprecated(node) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else ""
        return bool(name) and name not in self.catalogue.captures

    def _deprecated(self, node: ast.Attribute) -> str:
        """Return the deprecated setting that an attribute names, empty if it names none."""
        if node.attr in self.catalogue.deprecated:
            return node.attr
        section = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        name = self.catalogue.in_sections.get(section, {}).get(node.attr, "")
        return name if name in self.catalogue.deprecated else ""

    def _cover_inside(self, node: ast.AST) -> None:
        """Cover what is inside a node; the walk comes to the inner nodes later, and covers what is inside them."""
        self.covered |= {id(inner) for inner in ast.iter_child_nodes(node)}

    def _cover_all(self, node: ast.AST) -> None:
        self.covered |= {id(inner) for inner in walk(node)}

    def _flag_read(self, node: ast.AST) -> tuple[ast.Attribute, UseReplacement] | None:
        """Return what a condition on a flag of a recipe asks, and what to write instead of it."""
        condition = flag_read(node, self.source)
        if condition is None or kind_of(self.owners.meant(condition[0].value)) not in (
            HolderKind.RECIPE,
            HolderKind.UNKNOWN,
        ):
            return None
        return condition if self.owners.is_config(condition[0].value) else None

    def _visit(self, node: ast.AST) -> bool:
        """Report a node; return whether that covers what is inside it."""
        match node:
            case ast.BoolOp(op=ast.And()):
                for test in self.tests.in_conjunction(node):
                    self.covered.add(id(test))
                return False
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr)]) if (
                attr == SCOPE and enum_class(getattr(left, "value", left), self.names) == SCOPE_CLASS
            ):
                self.tests.add(node)
            case ast.Compare() if (message := self._of_scope(node)) is not None:
                self.report.add(node, message)
            case ast.BoolOp() | ast.UnaryOp() | ast.Compare() | ast.Attribute() if condition := self._flag_read(node):
                read, replacement = condition
                self._cover_all(node)
                text = meaning(read.attr, kind_of(self.owners.meant(read.value)))
                message = Message(ProblemKind.READ, text, replacement, advice=advice(read.attr))
                self.report.add(node, message)
            case ast.Attribute() if name := self._deprecated(node):
                self._attribute(node, name)
                return False
            case ast.Attribute() | ast.Name() if enum_class(node, self.names) == SCOPE_CLASS:
                self._class_use(node)
            case ast.ImportFrom():
                self._import(node)
            case ast.Constant(value=str() as text):
                self._string(node, text)
            case _:
                return self._declaration(node)
        return True

    def _declaration(self, node: ast.AST) -> bool:
        """Report a node that may define a name; return whether that covers what is inside it."""
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if name in self.catalogue.deprecated:
                self._field(node, name)
                return True
            case ast.arg(arg=name) if name in self.catalogue.deprecated:
                self._definition(node, name, f"the parameter `{name}`")
            case ast.ClassDef(name=name) if name == SCOPE_CLASS:
                self._definition(node, name, f"the class `{name}`")
            case ast.Name(id=name) if name in self.catalogue.deprecated:
                self.report.skip(node, name, OWN)
        return False

    def _attribute(self, node: ast.Attribute, name: str) -> None:
        if self.owners.is_of_hugging_face(node.value):
            self.report.skip(node, name, HUGGING_FACE)
            return
        if not isinstance(node.ctx, ast.Load):
            text = f"`{name}` is set in a way that cgmigrate does not rewrite"
            self.report.add(node, Message(ProblemKind.OTHER_ASSIGNMENT, text, self._extended(node)))
            return
        holder = node.value.value if "." in name and isinstance(node.value, ast.Attribute) else node.value
        is_own = name not in self.catalogue.captures and name in self.owners.declared_by_class_of(holder)
        if is_own or not self.owners.is_config(holder):
            self.report.skip(node, name, OWN if self.owners.megatron else self.owners.of_unrelated_name())
            return
        kind = kind_of(self.owners.meant(node.value))
        around = (
            self.source.parent(node) if name == SCOPE and kind not in (HolderKind.ARGS, HolderKind.RECIPE) else None
        )
        setting = self.catalogue[name]
        text = f"{meaning(name, kind) if setting.captures else deprecation_of(setting)}{result_around(node, around)}"
        if name == SCOPE and kind is not HolderKind.ARGS and self._is_test_for_empty(node):
            replacement = UseReplacement(f"{self.source.of(node.value)}.cuda_graph_modules", risk=_RISK_OF_EMPTY)
            self.report.add(node, Message(ProblemKind.READ, text, replacement))
            return
        follows = read_value(node, self.source) if name == SCOPE and kind is HolderKind.RECIPE else None
        by_hand = (
            (both_tests(node, self.source) or advice(name, is_off=self._is_off(node)))
            if setting.captures
            else replacement_of(setting)
        )
        if follows is None and name == SCOPE and kind is not HolderKind.ARGS:
            modules = None if _names_no_modules(node, self.source) else self._modules_of(node)
            self.report.add(node, Message(ProblemKind.READ, text, modules, advice=by_hand))
            return
        self.report.add(node, Message(ProblemKind.READ, text, follows, advice="" if follows else by_hand))

    def _modules_of(self, node: ast.Attribute) -> UseReplacement:
        """Return the list of modules of an object as what to write for its scope, if a proof shows that it is right."""
        return UseReplacement(f"{self.source.of(node.value)}.{MODULES}", if_proved=True)

    def _extended(self, node: ast.Attribute) -> UseReplacement | None:
        """Return what to write for a scope of a recipe that code extends: ``cfg.model.cuda_graph_scope += ["mlp"]``."""
        match self.source.parent(node):
            case ast.AugAssign(op=ast.Add()) if node.attr == SCOPE and self.owners.is_config(node.value):
                return self._modules_of(node)
        return None

    def _of_scope(self, node: ast.Compare) -> Message | None:
        """Return what to say of a comparison of the scope that a recipe sets, None for any other code."""
        if replacement := self._full_iteration(node):
            return Message(ProblemKind.FULL_ITERATION_TEST, of_membership(HolderKind.RECIPE), replacement)
        read = node.left
        if not isinstance(read, ast.Attribute) or read.attr != SCOPE:
            return None
        replacement = comparison(node, self.source) if self.owners.is_recipe(read.value) else None
        return Message(ProblemKind.READ, meaning(SCOPE, HolderKind.RECIPE), replacement) if replacement else None

    def _full_iteration(self, node: ast.Compare) -> UseReplacement | None:
        """Return what to write instead of ``"full_iteration" in scope`` of what a recipe sets."""
        tested = full_iteration_test(node) if isinstance(node.left, ast.Constant) else None
        if tested is None or not self.owners.is_recipe(tested[0]):
            return None
        sign = "==" if tested[1] else "!="
        text = f'{self.source.of(tested[0])}.{IMPL} {sign} "full_iteration"'
        return UseReplacement(text, risk=FOLLOWS_OBJECT)

    def _is_off(self, node: ast.expr) -> bool:
        """Whether code compares an expression with false."""
        match self.source.parent(node):
            case ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(False)]):
                return True
        return False

    def _is_test_for_empty(self, node: ast.expr) -> bool:
        """Whether code uses an expression only as a condition."""
        above = self.source.parent(node)
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
            return True
        return isinstance(above, (ast.If, ast.While, ast.IfExp)) and above.test is node

    def _class_use(self, node: ast.expr) -> None:
        above = self.source.parent(node)
        text = f"`{SCOPE_CLASS}` is deprecated since megatron-core 0.18, which keeps it for old checkpoints only"
        if isinstance(above, ast.Attribute):
            around = self.source.parent(above)
            by_number = isinstance(around, ast.Attribute) and around.attr == "value"
            how = _BY_NAME if by_number else _instead_of_member(above.attr)
            node = above
        else:
            how = _INSTEAD_OF_CLASS
        older = self.checks.above(node, self.source.ancestors(node))
        how = f"leave it where it is for older releases ({older}), else {how}" if older else f"{how}, {_OF_CHECKPOINTS}"
        self.report.add(node, Message(ProblemKind.ENUM_CLASS, text, advice=how))

    def _import(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != SCOPE_CLASS:
                continue
            local = alias.asname or alias.name
            guard = release_check_around(node, self.source)
            if not self.names.full.get(local, "").startswith("megatron."):
                text = f"`{SCOPE_CLASS}` is imported from another module of this project"
                how = (
                    f"if it is megatron-core's class there, import `{MODULE_CLASS}` there, which has the modules since "
                    "0.18; else leave it; not fixed: another file defines it"
                )
                self.report.add(alias, Message(ProblemKind.ENUM_CLASS, text, advice=how))
            elif guard or local in self.names.shadowed:
                why = guard or f"`{local}` is also defined in this file"
                text = f"`{SCOPE_CLASS}` is deprecated since megatron-core 0.18; the import is not rewritten"
                text += "" if guard else f": {why}"
                how = (
                    f"it may stay; code for megatron-core 0.18 and later imports `{MODULE_CLASS}` in a `try` of its own"
                )
                self.report.add(alias, Message(ProblemKind.ENUM_CLASS, text, advice=how))
            else:
                self.report.skip(alias, SCOPE_CLASS, FOLLOWS_USES)

    def _string(self, node: ast.Constant, text: str) -> None:
        above = self.source.parent(node)
        if (
            self.catalogue.by_key.get(text) in self.catalogue.deprecated
            and text.startswith("-")
            and isinstance(above, ast.Call)
            and dotted(above.func).endswith("add_argument")
        ):
            self._definition(node, text, f"the option `{text}`")
        else:
            self.strings.add(node, text)

    def _field(self, node: ast.AnnAssign, name: str) -> None:
        above = self.source.parent(node)
        if isinstance(above, ast.ClassDef):
            inherits = any(_is_configuration(self.names.resolve(dotted(base))) for base in above.bases)
            how = f"delete it: `{above.name}` inherits the new fields; not fixed: what sets or reads it has to change"
            self._definition(node, name, f"the field `{name}` of `{above.name}`", how if inherits else "")
        else:
            self.report.skip(node, name, OWN)

    def _definition(self, node: ast.AST, name: str, what: str, how: str = "") -> None:
        if not self.owners.megatron:
            self.report.skip(node, name, self.owners.of_unrelated_name())
            return
        setting = self.catalogue.settings.get(self.catalogue.by_key.get(name, name))
        new = f"`{MODULE_CLASS}`" if setting is None else " and ".join(f"`{one}`" for one in setting.replaced_by)
        new = "`cuda_graph_modules` and `cuda_graph_impl` (which has `full_iteration` now)" if name == SCOPE else new
        instead = f"replace it by {new}" if new else "delete it"
        is_gone = setting is not None and setting.until is not None
        text = f"{what} has the name of a {'former' if is_gone else 'deprecated'} setting of megatron-core"
        how = how or (
            f"if it is passed to megatron-core, {instead}, with everything that sets or reads it (not fixed: "
            "that code has to change with it); else leave it"
        )
        self.report.add(node, Message(ProblemKind.DEFINITION, text, advice=how))


def _is_configuration(full: str) -> bool:
    return full.startswith("megatron.") and full.endswith(("Config", "Provider")) and "ModelParallelConfig" not in full


def _names_no_modules(node: ast.expr, source: PythonSource) -> bool:
    """Return whether an expression around a scope names the full iteration, or is compared with whole layers.

    Both are no modules.
    """
    around: ast.AST = node
    while isinstance(above := source.parent(around), (ast.expr, ast.comprehension)):
        around = above
    return any(
        (isinstance(part, ast.Constant) and part.value == "full_iteration")
        or (isinstance(part, ast.Compare) and any(map(_is_full, (part.left, *part.comparators))))
        for part in walk(around)
    )


def _is_full(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "full"


def _values_of_records(source: PythonSource) -> set[int]:
    """Return the ids of the values that records of the file's own get as their scope: reads of other objects."""
    records = {
        node.name
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.bases and any(map(_is_scope, node.body))
    }
    calls = (node for node in source.walk() if isinstance(node, ast.Call)) if records else ()
    every = (one for node in calls if dotted(node.func) in records for one in node.keywords if one.arg == SCOPE)
    return {id(part) for one in every for part in (one, one.value)}


def _is_scope(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == SCOPE


_OF_CHECKPOINTS = "or leave it where it is about old checkpoints; not fixed: what this code is for is not known"
_INSTEAD_OF_CLASS = (
    f"write `{MODULE_CLASS}` for modules, `{IMPL}` for full-iteration graphs, `InferenceCudaGraphScope` for inference "
    "graphs"
)
_BY_NAME = f"compare names instead of `.value`: the members of `{MODULE_CLASS}` have other numbers"


def _instead_of_member(member: str) -> str:
    """Return what to write for a member of the old enum, empty when there is none."""
    if member in LAYER_MODULES:
        return (
            f"write `{MODULE_CLASS}.{member}`, or leave it where the old enum itself is tested; not fixed: what gets "
            "the value is not known"
        )
    return {
        "full": "write an empty list of modules, which captures whole layers",
        "full_iteration": 'write "full_iteration" as the value of `cuda_graph_impl`',
        "full_iteration_inference": "write `InferenceCudaGraphScope.block` as `inference_cuda_graph_scope`",
    }.get(member, "")
