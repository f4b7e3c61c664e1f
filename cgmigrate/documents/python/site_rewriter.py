"""Edits that give one site other settings, in the style of the text around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from cgmigrate.documents.changes import Add, Remove, Rename, Revalue, changes
from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.places import Form, Item, Place
from cgmigrate.documents.python.source import Source
from cgmigrate.documents.python.values import branches_of, enum_class, enum_member, rendered
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.megatron.settings import FLAGS, Choice, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_BLANKS = re.compile(r"[ \t]*")
_TAIL = re.compile(r"[ \t]*,?[ \t]*(?:#[^\r\n]*)?(?:\r?\n)")


class SiteWriter:
    """Turns the settings rewrites of one site into edits."""

    def __init__(self, index: int, place: Place, source: Source, names: Names) -> None:
        self.index, self.place, self.source, self.names = index, place, source, names
        self.text = source.text
        self.dropped: list[Item] = []
        """Statements that go; whether their suite is then empty is known only when all sites are."""

    def edits(self, own: Settings, after: Settings) -> list[Edit]:
        """Return the edits, less those that delete statements (``dropped``). Raises CannotEditError."""
        planned = changes(own, after)
        if planned and self.place.fixed:
            self._refuse(self.place.fixed)
        result: list[Edit] = []
        removed: list[Item] = []
        for change in planned:
            match change:
                case Rename(old=old, new=new, value=value):
                    item = self.place.item(old)
                    result += self._renamed(item, new)
                    result += self._new_value(item, new, value, own[old])
                case Revalue(name=name, value=value):
                    result += self._new_value(self.place.item(name), name, value, own[name])
                case Remove(name=name):
                    removed.append(self.place.item(name))
        places = {change.new: change.old for change in planned if isinstance(change, Rename)}
        for change in planned:
            if isinstance(change, Add):
                after_name = change.after if change.after in own else places.get(change.after, change.after)
                result.append(self._add(self.place.item(after_name), change.name, change.value))
        if self.place.form is Form.RUN:
            self.dropped = removed
            return result
        return result + self._remove(removed)

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.index, reason)

    # --- names and values -------------------------------------------------------------------

    def _renamed(self, item: Item, new: str) -> list[Edit]:
        word = FLAGS[new] if self.place.form is Form.FLAGS else new
        return [Edit(item.name.start, item.name.end, word)]

    def _new_value(self, item: Item, name: str, value: object, old: object) -> list[Edit]:
        match self.place.form:
            case Form.FLAGS:
                return self._new_words(item, value, old)
            case Form.OVERRIDES:
                return self._new_override(item, value, old)
        (node,) = item.values
        if not isinstance(value, Choice):
            return self._new_expression(node, value, old)
        if not isinstance(old, Choice) or old.texts != value.texts:
            self._refuse("a condition would have to move to another setting")
            return []
        result: list[Edit] = []
        for branch, new, was in zip(branches_of(node), value.branches, old.branches, strict=True):
            result += self._new_expression(branch, new, was)
        return result

    def _new_expression(self, node: ast.expr, value: object, old: object) -> list[Edit]:
        span = self.source.span(node)
        if type(value) is type(old) and value == old:
            return self._with_new_class(node)
        if isinstance(value, list) and isinstance(node, ast.List) and value:
            return self._without_items(node, value)
        return [Edit(span.start, span.end, rendered(value, self._quote_near(node)))]

    def _with_new_class(self, node: ast.expr) -> list[Edit]:
        """``CudaGraphScope.attn`` becomes ``CudaGraphModule.attn`` wherever it stands in a value."""
        return [edit for part in ast.walk(node) if isinstance(part, ast.expr) for edit in self._class_edit(part)]

    def _class_edit(self, node: ast.expr) -> list[Edit]:
        if not isinstance(node, ast.Attribute) or not enum_member(node, self.names):
            return []
        if enum_class(node.value, self.names) != SCOPE_CLASS:
            return []
        end = self.source.span(node.value).end
        local = self.text[self.source.span(node.value).start : end]
        return [Edit(end - len(local), end, module_class_like(local, self.names))]

    def _without_items(self, node: ast.List, kept: Sequence[object]) -> list[Edit]:
        rewrites, gone = list(kept), []
        result: list[Edit] = []
        for at, element in enumerate(node.elts):
            value = element.value if isinstance(element, ast.Constant) else enum_member(element, self.names)
            if value in rewrites:
                rewrites.remove(value)
                result += self._with_new_class(element)
            else:
                gone.append(at)
        spans = [self.source.span(element) for element in node.elts]
        return result + self._without(gone, spans)

    def _quote_near(self, node: ast.AST) -> str:
        """The quote in use: of the value, else of the other values of the site, else a double one."""
        for part in [node, *(value for item in self.place.items for value in item.values)]:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    written = self.source.of(inner).lstrip("rRuUbB")
                    return "'" if written.startswith("'") else '"'
        return '"'

    def _new_words(self, item: Item, value: object, old: object) -> list[Edit]:
        words = [] if isinstance(value, bool) or value is None else value if isinstance(value, list) else [str(value)]
        had = [] if isinstance(old, bool) else old if isinstance(old, list) else [str(old)]
        if words == had:
            return []
        quote = self._quote_near(item.node)
        text = "".join(", " + rendered(word, quote) for word in words)
        flag_end = self.source.span(item.node).end
        end = self.source.span(item.values[-1]).end if item.values else flag_end
        if "#" in self.text[flag_end:end]:
            self._refuse("a comment stands among the words of the flag")
        return [Edit(flag_end, end, text)]

    def _new_override(self, item: Item, value: object, old: object) -> list[Edit]:
        if type(value) is type(old) and value == old:
            return []
        span = self.source.span(item.node)
        written = self.text[span.start : span.end]
        closing = 3 if written.endswith(('"""', "'''")) else 1
        return [Edit(item.name.end + 1, span.end - closing, override_text(value))]

    # --- adding and removing ----------------------------------------------------------------

    def _add(self, item: Item, name: str, value: object) -> Edit:
        if isinstance(value, Choice):
            self._refuse("a condition would have to be written twice")
        match self.place.form:
            case Form.RUN:
                return self._add_statement(item, name, value)
            case Form.FLAGS:
                quote = self._quote_near(item.node)
                words = [
                    FLAGS[name],
                    *([] if isinstance(value, bool) else value if isinstance(value, list) else [value]),
                ]
                pieces = [rendered(word, quote) for word in words]
            case Form.OVERRIDES:
                quote = self._quote_near(item.node)
                written = self.text[self.source.span(item.node).start + 1 : item.name.start]
                pieces = [f"{quote}{written}{name}={override_text(value)}{quote}"]
            case Form.DICT:
                quote = self.text[item.name.start - 1]
                pieces = [f"{quote}{name}{quote}: {rendered(value, self._quote_near(item.values[0]))}"]
            case _:
                pieces = [f"{name}={rendered(value, self._quote_near(item.values[0]))}"]
        end = item.whole.end
        first = _line_start(self.text, item.whole.start)
        own_line = not self.text[first : item.whole.start].strip() and _TAIL.match(self.text, end)
        if own_line and len(pieces) == 1:
            newline = _newline_near(self.text, first)
            return Edit(end, end, f",{newline}{self.text[first : item.whole.start]}" + pieces[0])
        return Edit(end, end, "".join(", " + piece for piece in pieces))

    def _add_statement(self, item: Item, name: str, value: object) -> Edit:
        first = _line_start(self.text, item.whole.start)
        indent = self.text[first : item.whole.start]
        end = _line_end(self.text, item.whole.end)
        if indent.strip() or _behind(self.text, item.whole.end):
            self._refuse("the statement shares its line with another one")
        newline = _newline_near(self.text, first)
        text = rendered(value, self._quote_near(item.values[0]))
        if isinstance(item.node, ast.Assign):
            target = self.text[item.whole.start : item.name.start]
            line = f"{indent}{target}{name} = {text}"
        else:
            line = f"{indent}{self.text[item.whole.start : item.name.start]}{name}"
            line += f"{self.text[item.name.end : self.source.span(item.values[0]).start]}{text})"
        if "\n" in line:
            self._refuse("the statement runs over several lines")
        if self.text[end - 1 : end] == "\n":
            return Edit(end, end, line + newline)
        return Edit(end, end, newline + line)

    def _remove(self, items: Sequence[Item]) -> list[Edit]:
        """Delete elements of a call, dict or list with their commas."""
        gone: list[int] = []
        for item in items:
            gone += [
                at
                for at, span in enumerate(self.place.elements)
                if item.whole.start <= span.start and span.end <= item.whole.end
            ]
        return self._without(sorted(gone), self.place.elements)

    def _without(self, gone: Sequence[int], spans: Sequence[Span]) -> list[Edit]:
        """Take elements out of a bracket, each run of neighbours at once."""
        result: list[Edit] = []
        for at in gone:
            if at - 1 in gone:
                continue
            last = at
            while last + 1 in gone:
                last += 1
            result.append(self._cut(at, last, spans))
        return result

    def _cut(self, at: int, last: int, spans: Sequence[Span]) -> Edit:
        text, start, end = self.text, spans[at].start, spans[last].end
        first = _line_start(text, start)
        tail = _TAIL.match(text, end)
        if not text[first:start].strip() and tail:
            return Edit(first, tail.end(), "")
        if last + 1 < len(spans):
            following = text[end : spans[last + 1].start]
            if "#" not in following and "\n" not in following:
                return Edit(start, spans[last + 1].start, "")
            behind = _BLANKS.match(text, text.index(",", end) + 1).end()  # type: ignore[union-attr]
            if text.startswith(("\n", "\r\n"), behind):
                # No blank stays at the end of the line.
                start = len(text[:start].rstrip(" \t"))
            # The rest of the line, a comment perhaps, stays with what is before.
            return Edit(start, behind, "")
        if at and "#" not in text[spans[at - 1].end : start]:
            return Edit(spans[at - 1].end, end, "")
        comma_behind = re.compile(r"[ \t]*,").match(text, end)
        return Edit(start, comma_behind.end() if comma_behind and not at else end, "")


def delete_statements(items: Sequence[Item], source: Source) -> list[Edit]:
    """Delete statements with their lines and comments; ``pass`` goes where nothing would be left."""
    text = source.text
    result: list[Edit] = []
    by_suite: dict[int, list[Item]] = {}
    for item in items:
        by_suite.setdefault(id(item.suite), []).append(item)
    for group in by_suite.values():
        keep = group[0] if len(group) == len(group[0].suite) else None
        for item in group:
            first = _line_start(text, item.whole.start)
            if text[first : item.whole.start].strip() or _behind(text, item.whole.end):
                raise CannotEditError(-1, "the statement shares its line with another one")
            if item is keep:
                result.append(Edit(item.whole.start, item.whole.end, "pass"))
            else:
                result.append(_delete_lines(text, first, _line_end(text, item.whole.end), item.field))
    return result


def _delete_lines(text: str, first: int, last: int, name: str) -> Edit:
    """Delete whole lines; of two blank lines that would meet, one goes, and a comment of their own above."""
    indent = re.compile(r"[ \t]*").match(text, first).group()  # type: ignore[union-attr]
    above = first
    while above:
        previous = text.rfind("\n", 0, above - 1) + 1
        if not text.startswith(indent + "#", previous):
            break
        above = previous
    block = text[above:first]
    if re.search(rf"(?<![\w-]){name}(?![\w-])", block) and not re.search(
        rf"(?<![\w-])(?!{name}\b)\w*cuda_graph\w*", block
    ):
        first = above
    before = text[:first]
    if last == len(text) and not text.endswith("\n") and first:
        return Edit(first - (2 if before.endswith("\r\n") else 1), last, "")
    blank = re.compile(r"[ \t]*\r?\n").match(text, last)
    if blank and re.search(r"(?:\n|\A)[ \t]*\r?\n\Z", before):
        last = blank.end()
    return Edit(first, last, "")


def module_class_like(local: str, names: Names) -> str:
    """The name of the new class where ``local`` named the old one: beside it in the same module or import."""
    head, dot, _ = local.rpartition(".")
    if dot:
        return head + dot + MODULE_CLASS
    known = next((name for name, full in names.full.items() if full.endswith("." + MODULE_CLASS)), "")
    return known or MODULE_CLASS


def spelled_at(place: Place, name: str, value: object, source: Source) -> str:
    """A setting as it would be written at a place, with double quotes."""
    text = str(value) if isinstance(value, Choice) else rendered(value, '"')
    match place.form:
        case Form.FLAGS:
            words = [] if isinstance(value, bool) or value is None else value if isinstance(value, list) else [value]
            return ", ".join(rendered(word, '"') for word in (FLAGS[name], *words))
        case Form.OVERRIDES:
            return f'"{place.prefix}{name}={override_text(value)}"'
        case Form.DICT:
            return f'"{name}": {text}'
        case Form.CALL:
            return f"{name}={text}"
    item = place.items[0]
    before = source.text[item.whole.start : item.name.start]
    if isinstance(item.node, ast.Assign):
        return f"{before}{name} = {text}"
    return f"{before}{name}{source.text[item.name.end]}, {text})"


def override_text(value: object) -> str:
    """A value in Hydra's notation."""
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _behind(text: str, at: int) -> str:
    """What stands behind a statement on its line, comments left out."""
    rest = text[at : _line_end(text, at)].strip()
    return "" if rest.startswith("#") else rest


def _newline_near(text: str, at: int) -> str:
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
