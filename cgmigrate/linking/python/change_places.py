"""Where the changes of a project are, and which of its functions change, or lead to ones that do."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, closed_by_words, facts_of, words_of
from cgmigrate.linking.python.leading_results import LeadingResults
from cgmigrate.proof.flow.modules import Module, Modules, is_test
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.rounds import Change, Name, Place


@dataclass(frozen=True)
class ChangePlaces:
    """The places of some changes."""

    modules: Modules
    references: References
    changes: Sequence[Change]

    def names_at(self, place: Place) -> Iterator[Name]:
        """Yield the changes at a line."""
        yield from self.at.get(place, ())

    @cached_property
    def at(self) -> Mapping[Place, set[Name]]:
        """The changes of each line."""
        result: dict[Place, set[Name]] = {}
        for change in self.changes:
            for place in change.places:
                result.setdefault(place, set()).add(change.name)
        return result

    @cached_property
    def _lines_of(self) -> Mapping[str, Sequence[int]]:
        """The lines that change, by file, in their order."""
        lines: dict[str, list[int]] = {}
        for path, line in sorted(self.at):
            lines.setdefault(path, []).append(line)
        return lines

    def in_lines(self, path: str, first: int, last: int) -> set[Name]:
        """Return the changes in some lines of a file."""
        lines = self._lines_of.get(path, ())
        between = lines[bisect_left(lines, first) : bisect_right(lines, last)] if lines else ()
        return {name for line in between for name in self.at[path, line]}

    def of(self, unit: Unit) -> set[Name]:
        """Return the changes in a unit."""
        return self.in_lines(unit.module.path, *unit.lines)

    def leading(self, files: Iterable[str]) -> frozenset[str]:
        """Return the functions in some files that change, and those that use them, by their names.

        Names of tables with such functions are among them: ``RECIPES`` in ``RECIPES[name]()``.
        """
        modules = [module for path in files if not is_test(path) and (module := self.modules.read(path))]
        functions = [one for module in modules for one in facts_of(module)]
        changed = {one.name for one in functions if self.in_lines(one.path, *one.lines)}
        tables = dict[str, set[str]]()
        for name, words in (one for module in modules for one in _tables_in(module)):
            tables.setdefault(name, set()).update(words)
        known = frozenset[str]()
        while True:
            names = _closed_with(known, changed, functions)
            new = {name for name, words in tables.items() if not words.isdisjoint(names | known)} - known
            if not new:
                return frozenset(one.removeprefix(".") for one in names | known)
            known |= new

    def results(self, files: Iterable[str], files_with: FilesWith) -> LeadingResults:
        """Return what decides whether a function may return an object of code that changes."""
        modules = [module for path in files if not is_test(path) and (module := self.modules.read(path))]
        functions = [one for module in modules for one in facts_of(module)]
        results = LeadingResults(
            self.references, {one.node for one in functions if self.in_lines(one.path, *one.lines)}, files_with
        )
        results.add_tables(modules)
        return results


def _closed_with(
    tables: frozenset[str], changed: Collection[str], functions: Iterable[FunctionFacts]
) -> frozenset[str]:
    """Return the names of the functions that change, and of those that use one or a table."""
    return closed_by_words(
        functions,
        lambda one: one.name in changed or (one.may_leave and not one.words.isdisjoint(tables)),
        lambda one: one.may_leave,
    )


def _tables_in(module: Module) -> Iterator[tuple[str, set[str]]]:
    """Yield the names that statements at the top of a module bind or fill, with the names that these use."""
    for statement in module.tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name))], value=value):
                yield name, set(words_of(value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, set(words_of(value))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=arguments)):
                yield name, {word for one in arguments for word in words_of(one)}
