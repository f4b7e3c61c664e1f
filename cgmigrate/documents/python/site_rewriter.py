"""Rewrites one site: edits that give a call, dict, object or list of arguments other settings, in the style around."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cgmigrate.documents.changes import Add, Remove, Rename, Revalue, changes
from cgmigrate.documents.overrides import override_text
from cgmigrate.documents.python.name_resolution import SCOPE_CLASS, Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.setters import Setters, call_statement, clears_scope, without_cleared
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.python.spelling import argument_words, module_class_like, rendered
from cgmigrate.documents.python.statement_edits import END_OF_LINE, add_statement, newline_near, remove_elements
from cgmigrate.documents.python.values import branches_of, enum_class, enum_member
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, MODULES, SCOPE, Choice, Settings, Undecided
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import line_start

_NEW_NAMES = {SCOPE: MODULES, ENABLE: IMPL, EXTERNAL: IMPL}
"""What code reads that copies a setting under its new name."""


class PythonSiteRewriter:
    """Rewrites the site with an index.

    ``removed_statements`` are deleted by the document once all sites are rewritten: only then is it known whether
    their suite is empty.
    """

    def __init__(
        self, index: int, place: SiteNodes, source: PythonSource, names: Names, setters: Setters | None = None
    ) -> None:
        self.index, self.place, self.source, self.names = index, place, source, names
        self._setters = setters
        self._calls: Setters | None = None
        """The functions that the rewrite calls."""
        self.text = source.text
        self.removed_statements: list[Item] = []

    def edits(self, own: Settings, after: Settings) -> list[Edit]:
        """Return the edits that turn the site's own settings into others, but for ``removed_statements``.

        Raises CannotEditError.
        """
        self._calls = self._setters if clears_scope(after) else None
        after = without_cleared(after)
        planned = changes(own, after, self.source.catalogue)
        if planned and self.place.blocked_by:
            self._refuse(self.place.blocked_by)
        edits: list[Edit] = []
        removed: list[Item] = []
        for change in planned:
            match change:
                case Rename(old=old):
                    edits += self._renamed(self.place.item(old), change, own[old])
                case Revalue(name=name, value=value):
                    edits += self._new_value(self.place.item(name), value, own[name])
                case Remove(name=name):
                    removed.append(self.place.item(name))
        renamed = {change.new: change.old for change in planned if isinstance(change, Rename)}
        for change in planned:
            if isinstance(change, Add):
                after_name = change.after if change.after in own else renamed.get(change.after, change.after)
                edits.append(self._add(self.place.item(after_name), change.name, change.value))
        if self.place.form is SiteForm.ASSIGNMENTS:
            self.removed_statements = removed
            return edits
        return edits + self._remove(removed)

    def _renamed(self, item: Item, change: Rename, old: object) -> list[Edit]:
        if self._calls is not None and change.new == MODULES:
            return [self._call(item, change.value, old, self._calls)]
        return [self._new_name(item, change.new), *self._new_value(item, change.value, old)]

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.index, reason)

    # --- names and values -------------------------------------------------------------------

    def _new_name(self, item: Item, new: str) -> Edit:
        word = self.source.catalogue[new].flag if self.place.form is SiteForm.FLAGS else new
        return Edit(item.name.start, item.name.end, word)

    def _new_value(self, item: Item, value: object, old: object) -> list[Edit]:
        match self.place.form:
            case SiteForm.FLAGS:
                return self._new_words(item, value, old)
            case SiteForm.OVERRIDES:
                return self._new_override(item, value, old)
        (node,) = item.values
        if not isinstance(value, Choice):
            return self._new_expression(node, value, old)
        if not isinstance(old, Choice) or old.texts != value.texts:
            self._refuse("a condition would have to move to another setting")
            return []
        if not isinstance(node, ast.IfExp):
            return self._conditional(node, value)
        edits: list[Edit] = []
        for branch, new, was in zip(branches_of(node), value.branches, old.branches, strict=True):
            edits += self._new_expression(branch, new, was)
        return edits

    def _conditional(self, node: ast.expr, value: Choice) -> list[Edit]:
        """Return edits that choose a value by an expression that was the value of a flag."""
        span, quote = self.source.span(node), self._quote_near(node)
        on, off = (rendered(one, quote) for one in value.branches)
        return [Edit(span.start, span.start, f"{on} if "), Edit(span.end, span.end, f" else {off}")]

    def _new_expression(self, node: ast.expr, value: object, old: object) -> list[Edit]:
        if type(value) is type(old) and value == old:
            return self._with_new_class(node)
        if isinstance(value, Undecided):
            return self._following(node, value)
        if isinstance(value, list) and value and isinstance(old, list) and isinstance(node, ast.List):
            fewer = all(item in old for item in value)
            return self._without_items(node, value) if fewer else [self._rendered(node, value)]
        return [self._rendered(node, value)]

    def _following(self, node: ast.expr, value: Undecided) -> list[Edit]:
        """Return edits that read the new settings of objects in a value instead of their old ones."""
        edits = []
        for part in walk(node):
            if isinstance(part, ast.Attribute) and (new := _NEW_NAMES.get(part.attr)):
                end = self.source.span(part).end
                edits.append(Edit(end - len(part.attr), end, new))
        if not edits:
            self._refuse(f"it would be `{value.text}`")
        return edits

    def _rendered(self, node: ast.expr, value: object) -> Edit:
        span = self.source.span(node)
        return Edit(span.start, span.end, rendered(value, self._quote_near(node)))

    def _with_new_class(self, node: ast.expr) -> list[Edit]:
        """Return edits that write ``CudaGraphModule.attn`` for each ``CudaGraphScope.attn`` in a value."""
        return [edit for part in walk(node) if isinstance(part, ast.expr) for edit in self._class_edit(part)]

    def _class_edit(self, node: ast.expr) -> list[Edit]:
        if not isinstance(node, ast.Attribute) or not enum_member(node, self.names):
            return []
        if enum_class(node.value, self.names) != SCOPE_CLASS:
            return []
        end = self.source.span(node.value).end
        local = self.text[self.source.span(node.value).start : end]
        return [Edit(end - len(local), end, module_class_like(local, self.names))]

    def _without_items(self, node: ast.List, kept: Sequence[object]) -> list[Edit]:
        expected, removed = list(kept), []
        edits: list[Edit] = []
        for at, element in enumerate(node.elts):
            value = element.value if isinstance(element, ast.Constant) else enum_member(element, self.names)
            if value in expected:
                expected.remove(value)
                edits += self._with_new_class(element)
            else:
                removed.append(at)
        return edits + remove_elements(self.text, removed, [self.source.span(element) for element in node.elts])

    def _quote_near(self, node: ast.AST) -> str:
        """Return the quote in use: of the value, else of the other values of the site, else a double one."""
        for part in [node, *(value for item in self.place.items for value in item.values)]:
            for inner in walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    written = self.source.of(inner).lstrip("rRuUbB")
                    return "'" if written.startswith("'") else '"'
        return '"'

    def _new_words(self, item: Item, value: object, old: object) -> list[Edit]:
        words = argument_words(value)
        if words == argument_words(old):
            return []
        quote = self._quote_near(item.node)
        text = "".join(", " + rendered(word, quote) for word in words)
        flag_end = self.source.span(item.node).end
        end = self.source.span(item.values[-1]).end if item.values else flag_end
        if "#" in self.text[flag_end:end]:
            self._refuse("there is a comment among the words of the flag")
        return [Edit(flag_end, end, text)]

    def _new_override(self, item: Item, value: object, old: object) -> list[Edit]:
        if type(value) is type(old) and value == old:
            return []
        span = self.source.span(item.node)
        written = self.text[span.start : span.end]
        closing = 3 if written.endswith(('"""', "'''")) else 1
        return [Edit(item.name.end + 1, span.end - closing, override_text(value))]

    # --- calls of setters ---------------------------------------------------------------------

    def _call(self, item: Item, value: object, old: object, setters: Setters) -> Edit:
        """Return the edit that writes a call in place of a statement that sets the old scope."""
        (node,) = item.values
        span = self.source.span(node)
        inner = [
            Edit(one.start - span.start, one.end - span.start, one.text) for one in self._new_value(item, value, old)
        ]
        written = apply(self.text[span.start : span.end], inner)
        call = call_statement(self.source, item.node, written, setters) if isinstance(item.node, ast.stmt) else ""
        if not call:
            self._refuse("it is set in a form that no call can replace")
        return Edit(item.whole.start, item.whole.end, call)

    # --- adding and removing ----------------------------------------------------------------

    def _add(self, item: Item, name: str, value: object) -> Edit:
        if isinstance(value, Choice):
            self._refuse("a condition would have to be written twice")
        if self._calls is not None and name == MODULES:
            self._refuse("it is set in a form that no call can replace")
        if self.place.form is SiteForm.ASSIGNMENTS:
            return add_statement(self.index, item, name, rendered(value, self._quote_near(item.values[0])), self.source)
        elements = self._elements_for(item, name, value)
        end = item.whole.end
        first = line_start(self.text, item.whole.start)
        has_line = not self.text[first : item.whole.start].strip() and END_OF_LINE.match(self.text, end)
        if has_line and len(elements) == 1:
            newline = newline_near(self.text, first)
            return Edit(end, end, f",{newline}{self.text[first : item.whole.start]}" + elements[0])
        return Edit(end, end, "".join(", " + element for element in elements))

    def _elements_for(self, item: Item, name: str, value: object) -> list[str]:
        """Return the text of the elements that set a setting, beside those of another one."""
        match self.place.form:
            case SiteForm.FLAGS:
                quote = self._quote_near(item.node)
                return [rendered(word, quote) for word in (self.source.catalogue[name].flag, *argument_words(value))]
            case SiteForm.OVERRIDES:
                quote = self._quote_near(item.node)
                written = self.text[self.source.span(item.node).start + 1 : item.name.start]
                return [f"{quote}{written}{name}={override_text(value)}{quote}"]
            case SiteForm.DICT:
                quote = self.text[item.name.start - 1]
                return [f"{quote}{name}{quote}: {rendered(value, self._quote_near(item.values[0]))}"]
        return [f"{name}={rendered(value, self._quote_near(item.values[0]))}"]

    def _remove(self, items: Sequence[Item]) -> list[Edit]:
        """Return edits that delete elements of a call, dict or list."""
        removed: list[int] = []
        for item in items:
            removed += [
                at
                for at, span in enumerate(self.place.elements)
                if item.whole.start <= span.start and span.end <= item.whole.end
            ]
        return remove_elements(self.text, sorted(removed), self.place.elements)
