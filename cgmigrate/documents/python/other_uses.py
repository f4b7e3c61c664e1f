"""Code that reads, defines or lists the old names: what it evaluates to since 0.18, and what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.places import guards_above
from cgmigrate.documents.python.read_messages import (
    THREE,
    Kind,
    advice,
    is_list_of_names,
    is_own_flag,
    kind_of,
    meaning,
    of_membership,
    result_around,
    through_getattr,
    through_hasattr,
)
from cgmigrate.documents.python.site_rewriter import module_class_like
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.documents.python.values import enum_class, enum_member
from cgmigrate.documents.sites import FOLLOWS_USES, UNKNOWN_OWNER, Problem, Written
from cgmigrate.megatron.settings import DEPRECATED, ENABLE, LAYER_MODULES, SCOPE
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_OLD_FLAGS = frozenset("--" + name.replace("_", "-") for name in DEPRECATED)
_CONFIGS = ("model", "config", "cfg", "provider", "conf")
OWN = "a variable, parameter or attribute of the file's own"
NO_MEGATRON = "another system (nothing in the file is Megatron's)"
FIELDS_SET = "the project's own options (a current name there)"
_OTHER_SYSTEMS = frozenset(
    ("deepspeed", "vllm", "sglang", "tensorrt_llm", "onnxruntime", "onnxruntime_genai", "lmdeploy")
)
_SAYS = frozenset(
    (
        "print",
        "warn",
        "warning",
        "warn_once",
        "info",
        "debug",
        "error",
        "exception",
        "log",
        "warning_once",
        "print_rank_0",
    )
)
_PATH = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*")
_WRITES = re.compile(
    r"(?<![\w-])(?:--)?(enable_cuda_graph|external_cuda_graph|cuda_graph_scope|(?<=--)enable-cuda-graph|"
    r"(?<=--)external-cuda-graph|(?<=--)cuda-graph-scope)(?:[ ]*=(?!=)|[\"']?:[ ]*(?:$|[\[{\"'\w])|(?<=-scope) )"
)


@dataclass(frozen=True, slots=True)
class Read:
    """A place that reads a setting of an object; ``index`` is that of its problem."""

    function: ast.AST | None
    object: str
    name: str
    line: int
    index: int


@dataclass(slots=True)
class Readings:
    """Finds what is no site; ``consumed`` are nodes that belong to sites."""

    source: Source
    names: Names
    consumed: set[int]
    megatron: bool
    """Whether the file shows that it works with Megatron."""
    first_index: int = 0
    problems: list[Problem] = field(default_factory=list)
    fixes: dict[int, list[Edit]] = field(default_factory=dict)
    skipped: list[tuple[Written, str]] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    statements: list[ast.AST] = field(default_factory=list)
    """The statement of each problem."""

    def collect(self) -> None:
        """Walk the nodes on lines with the names."""
        for node in self.source.walk():
            if id(node) in self.consumed:
                self._take(node)
                continue
            if self._visit(node):
                self._take(node)
        self._hold_halves()

    def _hold_halves(self) -> None:
        """An expression that can be rewritten only in part is left as a whole, or changed on request."""
        by_statement: dict[int, list[int]] = {}
        for at, statement in enumerate(self.statements):
            by_statement.setdefault(id(statement), []).append(at)
        for group in by_statement.values():
            if all(self.problems[at].replacement and not self.problems[at].risk for at in group):
                continue
            for at in group:
                problem = self.problems[at]
                if problem.replacement and not problem.risk:
                    risk = "another part of the expression needs a decision and has to change with it"
                    self.problems[at] = replace(problem, risk=risk)

    def _take(self, node: ast.AST) -> None:
        """A node that is dealt with, and all in it; what is in a value of a site is not looked at again."""
        for inner in ast.iter_child_nodes(node):
            self.consumed.add(id(inner))

    # --- one node ---------------------------------------------------------------------------

    def _visit(self, node: ast.AST) -> bool:
        """Deal with a node; return whether what is inside it is dealt with, too."""
        match node:
            case ast.BoolOp(op=ast.And()):
                return self._conjunction(node)
            case ast.Compare(
                left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr) as scope]
            ) if attr == SCOPE and enum_class(getattr(left, "value", left), self.names) == SCOPE_CLASS:
                return self._membership(node, left, scope, "")
            case ast.Attribute(attr=attr) if attr in DEPRECATED:
                self._attribute(node)
                return False
            case ast.Attribute() | ast.Name() if enum_class(node, self.names) == SCOPE_CLASS:
                self._class_use(node)
                return True
            case ast.ImportFrom():
                self._import(node)
                return True
            case ast.Constant(value=str() as text):
                self._text(node, text)
                return True
            case ast.AnnAssign(target=ast.Name(id=name)) if name in DEPRECATED:
                return self._field(node, name)
            case ast.arg(arg=name) if name in DEPRECATED:
                self._definition(node, name, f"the parameter `{name}`")
                return False
            case ast.ClassDef(name=name) if name == SCOPE_CLASS:
                self._definition(node, name, f"the class `{name}`")
                return False
            case ast.Name(id=name) if name in DEPRECATED:
                self._left(node, name, OWN)
        return False

    def _conjunction(self, node: ast.BoolOp) -> bool:
        """``cfg.cuda_graph_impl == "local" and CudaGraphScope.full_iteration in cfg.cuda_graph_scope``."""
        known = {path: test for value in node.values for path, test in _implementation(value)}
        dealt = False
        for value in node.values:
            match value:
                case ast.Compare(
                    left=left,
                    ops=[ast.In() | ast.NotIn()],
                    comparators=[ast.Attribute(attr=attr, value=owner) as scope],
                ) if attr == SCOPE and enum_member(left, self.names):
                    path = dotted(owner)
                    if path in known and self._membership(value, left, scope, known[path], node):
                        self.consumed.add(id(value))
                        self._take(value)
                        dealt = True
        if dealt:
            # The other operands are walked as usual; those dealt with are not.
            return False
        return False

    def _membership(
        self, node: ast.Compare, left: ast.expr, scope: ast.Attribute, test: str, within: ast.BoolOp | None = None
    ) -> bool:
        member = enum_member(left, self.names)
        owner = self.source.of(scope.value)
        inside = isinstance(node.ops[0], ast.In)
        if not self._is_config(scope.value):
            self._report(
                "CG603", node, f"{meaning(SCOPE)}; `{owner}.{SCOPE}` is a copy of it, made elsewhere in this file"
            )
            return True
        message = of_membership(kind_of(scope.value))
        if member in LAYER_MODULES:
            new_class = module_class_like(self.source.of(left.value), self.names)  # type: ignore[attr-defined]
            word = "in" if inside else "not in"
            self._report("CG602", node, message, f"{new_class}.{member} {word} {owner}.cuda_graph_modules")
        elif member == "full_iteration":
            self._full_iteration(node, owner, inside, test, within, message)
        elif member == "full_iteration_inference":
            sign = "==" if inside else "!="
            advice = f"`{owner}.inference_cuda_graph_scope {sign} InferenceCudaGraphScope.block` says what is meant"
            self._report("CG601", node, message, advice=advice)
        else:
            self._report("CG603", node, message)
        return True

    def _full_iteration(
        self, node: ast.Compare, owner: str, inside: bool, test: str, within: ast.BoolOp | None, message: str
    ) -> None:
        becomes = f'{owner}.cuda_graph_impl {"==" if inside else "!="} "full_iteration"'
        if test == "== local" and within is not None:
            edits = self._merged(node, owner, inside, within)
            if edits:
                # Without the operand nothing else changes: since 0.18 `local` is never the full iteration.
                fix = "" if inside else f"delete `{' '.join(self.source.of(node).split())}`"
                self._report("CG601", node, message, becomes, edits=edits, fix=fix)
                return
        risk = (
            ""
            if test == "!= none"
            else ("with `cuda_graph_impl` none the old scope could still hold full_iteration, and nothing was captured")
        )
        self._report("CG601", node, message, becomes, risk=risk)

    def _merged(self, node: ast.Compare, owner: str, inside: bool, within: ast.BoolOp) -> list[Edit]:
        """``impl == "local" and full_iteration in scope`` as one comparison."""
        source = self.source
        at = within.values.index(node)
        spans = [self._operand_span(value) for value in within.values]
        if any(span is None for span in spans):
            return []
        known = [span for span in spans if span is not None]
        impl = next(i for i, value in enumerate(within.values) if (owner, "== local") in _implementation(value))
        edits: list[Edit] = []
        if inside:
            literal = within.values[impl].comparators[0]  # type: ignore[attr-defined]
            where = source.span(literal)
            quote = source.text[where.start]
            edits.append(Edit(where.start, where.end, f"{quote}full_iteration{quote}"))
        if at:
            between = source.text[known[at - 1].end : known[at].start]
            cut = Edit(known[at - 1].end, known[at].end, "")
        else:
            between = source.text[known[0].end : known[1].start]
            cut = Edit(known[0].start, known[1].start, "")
        if "#" in between:
            return []
        edits.append(cut)
        if len(known) == 2:
            edits += self._without_brackets(within, sum(len(edit.text) - edit.end + edit.start for edit in edits))
        return edits

    def _operand_span(self, node: ast.expr) -> Span | None:
        """An operand with the brackets around it, where they are its own."""
        span = self.source.span(node)
        text = self.source.text
        start, end = span.start, span.end
        before, behind = text[:start].rstrip(), text[end:].lstrip()
        if before.endswith("(") and behind.startswith(")") and isinstance(node, (ast.Compare, ast.BoolOp)):
            return None
        return Span(start, end)

    def _without_brackets(self, node: ast.BoolOp, grows: int) -> list[Edit]:
        """``if (⏎ a⏎ and b⏎):`` needs its brackets no longer when one operand is left and fits a line."""
        above = self.source.parent(node)
        if not isinstance(above, (ast.If, ast.While)) or above.test is not node:
            return []
        text, span = self.source.text, self.source.span(node)
        before = text[: span.start].rstrip()
        behind = len(text) - len(text[span.end :].lstrip())
        if not before.endswith("(") or text[behind : behind + 1] != ")" or text[behind + 1 : behind + 2] != ":":
            return []
        line = text[text.rfind("\n", 0, len(before)) + 1 : len(before) - 1]
        if "#" in text[len(before) : span.start] + text[span.end : behind]:
            return []
        if len(line) + span.end - span.start + grows > 118:
            return []
        return [Edit(len(before) - 1, span.start, ""), Edit(span.end, behind + 1, "")]

    def _attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if not isinstance(node.ctx, ast.Load):
            self._report("CG607", node, f"`{name}` is set in a way that cgmigrate does not rewrite")
            return
        if not self._is_config(node.value, name):
            self._left(node, name, OWN if self.megatron else self._nobody())
            return
        kind = kind_of(node.value)
        around = self.source.parent(node) if name == SCOPE and kind not in (Kind.ARGS, Kind.RECIPE) else None
        told = f"{meaning(name, kind)}{result_around(node, around)}"
        if name == SCOPE and kind is not Kind.ARGS and self._asks_if_empty(node):
            risk = "where the scope held full_iteration it was not empty; the modules are"
            self._report("CG603", node, told, f"{self.source.of(node.value)}.cuda_graph_modules", risk=risk)
            return
        self._report("CG603", node, told, advice=advice(name))

    def _asks_if_empty(self, node: ast.expr) -> bool:
        """Whether an expression is only asked for being true."""
        above = self.source.parent(node)
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
            return True
        return isinstance(above, (ast.If, ast.While, ast.IfExp)) and above.test is node

    def _class_use(self, node: ast.expr) -> None:
        above = self.source.parent(node)
        place = above if isinstance(above, ast.Attribute) else node
        message = f"`{SCOPE_CLASS}` names no modules since megatron-core 0.18 (it is kept for unpickling)"
        member = above.attr if isinstance(above, ast.Attribute) else ""
        self._report("CG606", place, message, advice=_instead_of_member(member))

    def _import(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != SCOPE_CLASS:
                continue
            local = alias.asname or alias.name
            guard = guards_above(node, self.source.ancestors(node))
            if not self.names.full.get(local, "").startswith("megatron."):
                self._report(
                    "CG606", alias, f"`{SCOPE_CLASS}` comes from a module of this project, where it is defined"
                )
            elif guard or local in self.names.shadowed:
                why = guard or f"`{local}` is also defined in this file"
                self._report("CG606", alias, f"the import of `{SCOPE_CLASS}` is left as it is: {why}")
            else:
                self._left(alias, SCOPE_CLASS, FOLLOWS_USES)

    def _text(self, node: ast.Constant, text: str) -> None:
        above = self.source.parent(node)
        if text in _OLD_FLAGS:
            self._flag(node, text, above)
            return
        name = text.rpartition(".")[2] if _PATH.fullmatch(text) else text
        if name not in DEPRECATED and text != SCOPE_CLASS:
            self._generated(node, text)
            return
        match above:
            case ast.Call(func=func, args=[owner, *more]) if dotted(func) == "getattr" and owner is not node:
                self._by_string(node, name, through_getattr(name, kind_of(owner), len(more) > 1), reads=True)
            case ast.Call(func=func, args=[owner, *_]) if dotted(func) == "hasattr" and owner is not node:
                self._by_string(node, name, through_hasattr(name, kind_of(owner)), reads=True)
            case _ if is_own_flag(node, above):
                self._left(node, name, FIELDS_SET)
            case _ if is_list_of_names(above):
                told = f"a list of names holds `{name}`: code that copies or accepts these names misses the new ones"
                self._by_string(node, name, told, f"add the three new names to this list: {THREE}", reads=True)
            case _:
                told = f"`{text}` is written as text; {meaning(name)}"
                self._by_string(node, name, told, reads=_is_read(node, above))

    def _flag(self, node: ast.Constant, flag: str, above: ast.AST | None) -> None:
        if isinstance(above, ast.Call) and dotted(above.func).endswith("add_argument"):
            self._definition(node, flag, f"the option `{flag}`")
            return
        name = flag[2:].replace("-", "_")
        told = f"`{flag}` is written as text; {meaning(name, Kind.ARGS)}"
        self._by_string(node, name, told, reads=_is_read(node, above))

    def _generated(self, node: ast.Constant, text: str) -> None:
        """Text that writes settings (an f-string that makes a recipe) or names a type."""
        above = self.source.parent(node)
        if _docstring(node, above, self.source):
            return
        if SCOPE_CLASS in text and isinstance(above, (ast.Subscript, ast.AnnAssign, ast.arg, ast.BinOp)):
            self._report("CG606", node, f"a type names `{SCOPE_CLASS}`", advice=advice(SCOPE_CLASS))
        elif found := _WRITES.search(text):
            told = f"this text writes `{found.group(1)}`, which what reads the text has to know"
            help_ = f"write the new names ({THREE}) if megatron-core 0.18 or later reads it"
            self._by_string(node, found.group(1), told, help_)

    def _by_string(self, node: ast.Constant, name: str, message: str, help_: str = "", reads: bool = False) -> None:
        if not self.megatron and not (reads and name != ENABLE and not self._of_another_system()):
            self._left(node, name, self._nobody())
            return
        self._report("CG604", node, message, advice=help_ or advice(name), anywhere=True)

    def _nobody(self) -> str:
        """The owner of a name in a file that does not show that it is Megatron's."""
        return NO_MEGATRON if self._of_another_system() else UNKNOWN_OWNER

    def _of_another_system(self) -> bool:
        return any(module.partition(".")[0] in _OTHER_SYSTEMS for module in self.names.modules)

    def _field(self, node: ast.AnnAssign, name: str) -> bool:
        above = self.source.parent(node)
        if isinstance(above, ast.ClassDef):
            self._definition(node, name, f"the field `{name}` of `{above.name}`")
        else:
            self._left(node, name, OWN)
        return True

    def _definition(self, node: ast.AST, name: str, what: str) -> None:
        if not self.megatron:
            self._left(node, name, self._nobody())
            return
        how = "rename it together with everything that sets or reads it, or keep it if it is not megatron-core's"
        self._report("CG605", node, f"{what} carries a name that megatron-core deprecates", advice=how)

    # --- owners -----------------------------------------------------------------------------

    def _is_config(self, node: ast.expr, name: str = SCOPE) -> bool:
        """Whether an object is a Megatron configuration, as far as its name and the file tell."""
        if not self.megatron:
            return False
        path = dotted(node)
        last = path.rpartition(".")[2].lower()
        if path == "self":
            inside = next((above for above in self.source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
            full = self.names.resolve(inside.name) if inside else ""
            return full.startswith(("megatron.", "nemo.")) and full.endswith(("Config", "Provider"))
        if last == "args":
            # Megatron-LM's namespace; a harness has flags of its own with these names.
            return any(module.startswith("megatron.training") for module in self.names.modules)
        return last.endswith(_CONFIGS)

    def _function(self, node: ast.AST) -> ast.AST | None:
        return function_of(node, self.source)

    # --- telling ----------------------------------------------------------------------------

    def _place(self, node: ast.AST) -> Span:
        span = self.source.span(node)
        if isinstance(node, ast.ClassDef):
            return Span(span.start, self.source.text.find("\n", span.start))
        return span

    def _left(self, node: ast.AST, name: str, owner: str) -> None:
        self.skipped.append((Written(name, name, None, self._place(node)), owner))

    def _report(
        self,
        rule: str,
        node: ast.AST,
        message: str,
        replacement: str = "",
        *,
        advice: str = "",
        risk: str = "",
        edits: list[Edit] | None = None,
        fix: str = "",
        anywhere: bool = False,
    ) -> None:
        if not self.megatron and not anywhere:
            self._left(node, SCOPE, self._nobody())
            return
        span = self._place(node)
        if guard := guards_above(node, self.source.ancestors(node)):
            advice = advice or (f"for megatron-core 0.18 and later write `{replacement}`" if replacement else "")
            replacement = ""
        index = self.first_index + len(self.problems)
        line = getattr(node, "lineno", 0)
        inside = (above for above in self.source.ancestors(node) if isinstance(above, ast.stmt))
        self.statements.append(next(inside, node))
        self.reads += [Read(self._function(node), *what, line, index) for what in sorted(_settings_read(node))]
        self.problems.append(Problem(rule, span, message, index, replacement, advice, risk, blocked_by=guard, fix=fix))
        if replacement:
            self.fixes[index] = edits if edits is not None else [Edit(span.start, span.end, replacement)]


def function_of(node: ast.AST, source: Source) -> ast.AST | None:
    """The function in which a node stands; None at the top of the file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return next((above for above in source.ancestors(node) if isinstance(above, kinds)), None)


def _settings_read(node: ast.AST) -> set[tuple[str, str]]:
    """The old settings that an expression reads: the object of each, and its name."""
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr in DEPRECATED)
    return {(path, part.attr) for part in parts if (path := dotted(part.value))}


def _implementation(node: ast.expr) -> Iterator[tuple[str, str]]:
    """(``cfg``, ``== local``) for ``cfg.cuda_graph_impl == "local"``, likewise ``!= none``."""
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


def _instead_of_member(member: str) -> str:
    """What to write for a member of the old enum; empty for the class itself."""
    if member in LAYER_MODULES:
        return f"write `{MODULE_CLASS}.{member}`"
    return {
        "full": "write an empty list of modules, which captures whole layers",
        "full_iteration": 'write "full_iteration" as the value of `cuda_graph_impl`',
        "full_iteration_inference": "write `InferenceCudaGraphScope.block` as `inference_cuda_graph_scope`",
    }.get(member, "")


def _is_read(node: ast.AST, above: ast.AST | None) -> bool:
    """Whether a string is a key or name that code asks for: ``in``, a subscript, ``.get``."""
    match above:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
            return left is node
        case ast.Subscript(slice=key):
            return key is node
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[first, *_]):
            return first is node
    return False


def _docstring(node: ast.AST, above: ast.AST | None, source: Source) -> bool:
    """Whether a string is a statement of its own, or part of one that raises, prints or logs."""
    if isinstance(above, ast.Expr):
        return True
    for around in source.ancestors(node):
        if isinstance(around, ast.stmt):
            return isinstance(around, (ast.Raise, ast.Assert))
        if isinstance(around, ast.Call):
            last = dotted(around.func).rpartition(".")[2]
            if last in _SAYS or last.endswith(("Error", "Warning")):
                return True
    return False
