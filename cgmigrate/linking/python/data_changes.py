"""Changes of dictionaries of tests, and the code that shows them: before the changes, and after them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import lines_of
from cgmigrate.linking.python.comparisons import Comparer
from cgmigrate.linking.python.data_owners import functions_leading_to
from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.rounds import Change, Name
from cgmigrate.linking.python.test_data import TextWithData


@dataclass(frozen=True, slots=True)
class DataChanges:
    """The changes of dictionaries among all changes. ``edited`` returns the modules with changes made, in their forms.

    ``texts`` are the texts of the code that shows them, each with its change, by the path of the module.
    """

    changes: Sequence[Change]
    edited: Callable[[Mapping[Name, int]], Modules]
    texts: dict[str, tuple[Name, TextWithData]] = field(default_factory=dict)
    _after: dict[tuple[str, int], str] = field(default_factory=dict)
    """These texts after the changes, by the path and the form."""

    def leading(self, comparer: Comparer) -> dict[Name, frozenset[ast.AST] | None]:
        """Return the functions that make the objects which get the dictionaries, None for other than Megatron's."""
        return {one.name: functions_leading_to(one.entries, comparer) for one in self.changes if one.entries}

    def tables(self, in_lines: Callable[[str, int, int], Set[Name]]) -> Iterator[tuple[str, str]]:
        """Yield the names of tables that change only in these dictionaries, each with its file."""
        of_entries = {change.name for change in self.changes if change.entries}
        for change in self.changes:
            for one in change.entries:
                for name in one.names:
                    value = one.module.bindings[name]
                    assert isinstance(value, ast.expr)
                    if in_lines(change.path, *lines_of(value)) <= of_entries:
                        yield change.path, name

    def edited_with(self, forms: Mapping[Name, int]) -> Modules:
        """Return the modules with changes made, each in one of its forms, also in the code that shows these."""
        texts = {path: self._text(path, name, forms[name]) for path, (name, _) in self.texts.items() if name in forms}
        return self.edited(forms).with_texts(texts) if texts else self.edited(forms)

    def _text(self, path: str, name: Name, form: int) -> str:
        """Return the code that shows a dictionary after its change."""
        if (path, form) not in self._after:
            module = self.edited({name: form}).read(name[0])
            text = self.texts[path][1].in_module(module) if module is not None else None
            # An empty module has no function: nothing is proved that needs it.
            self._after[path, form] = str(text) if text is not None else ""
        return self._after[path, form]
