"""One run: paths → discovery → documents → findings → edited text, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.discovery import Discovery, Source, Syntax, TooLarge, Trouble
from cgmigrate.settings import Release

if TYPE_CHECKING:
    from cgmigrate.documents import Document
    from cgmigrate.examination import Context, Examination, Finding
    from cgmigrate.releases import Resolution
    from cgmigrate.rules import Rule


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    rewrite: bool = True
    """Whether the rewritten text is wanted, or only what there is to say."""
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """One file that holds settings: its findings, and its text before and after the fixes.

    ``after`` is None when nothing is to be rewritten. ``fixed`` are the findings that the rewrite
    settles.
    """

    path: str
    data: bytes
    text: str
    findings: tuple[Finding, ...]
    left_alone: tuple[tuple[int, str, str], ...] = ()
    after: str | None = None
    bom: bool = False
    fixed: tuple[Finding, ...] = ()

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """The findings that the rewrite does not settle."""
        return tuple(finding for finding in self.findings if finding not in self.fixed)


@dataclass(slots=True)
class Run:
    """Iterable over what there is to say of each file, in order of path; counts as it goes."""

    paths: Sequence[str]
    options: Options
    discovery: Discovery = field(init=False)
    notes: list[str] = field(default_factory=list)
    unread: dict[Syntax, int] = field(default_factory=dict)
    """Files that hold the names in a syntax that this release does not read yet."""
    _contexts: dict[Resolution, Context] = field(default_factory=dict)
    _sources: list[Source] = field(default_factory=list)
    _merged: dict[str, str] | None = None
    _rules: dict[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.discovery = Discovery(self.paths, self.options.exclude)

    def __iter__(self) -> Iterator[Checked | Trouble]:
        # Which file is merged into which is known only when all that hold settings are known.
        found = list(self.discovery)
        self._sources = [item for item in found if isinstance(item, Source)]
        self._merged = None
        for item in found:
            match item:
                case Trouble():
                    yield item
                case TooLarge(path=path, size=size):
                    message = f"the file has {size:,} bytes and is not read as a configuration"
                    yield self._unreadable(path, b"", "CG008", message)
                case Source() if item.syntax in (Syntax.YAML, Syntax.PYTHON):
                    yield self._check(item)
                case Source():
                    self.unread[item.syntax] = self.unread.get(item.syntax, 0) + 1

    def _merged_files(self) -> dict[str, str]:
        """Path → the file laid over it, for files of this run; worked out when something is to be rewritten."""
        if self._merged is None:
            self._merged = self._find_merged_files(self._sources)
        return self._merged

    def _find_merged_files(self, sources: Sequence[Source]) -> dict[str, str]:
        from cgmigrate.layers import builds_on, merged_into

        children = {source.path: builds_on(source.data) for source in sources if source.syntax is Syntax.YAML}
        return merged_into({path: names for path, names in children.items() if names}, [s.path for s in sources])

    def _check(self, source: Source) -> Checked:
        from cgmigrate.documents import CannotEditError
        from cgmigrate.edits import OverlapError, apply, decode

        try:
            text, bom = decode(source.data)
        except UnicodeDecodeError as error:
            line = source.data.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8 (byte {error.start}, line {line}: {error.reason}), so it is not read"
            return self._unreadable(source.path, source.data, "CG007", message)
        document, examined = self._examine(source.path, text, source.syntax)
        findings = tuple(finding for finding in examined.findings if self._selected(finding.rule))
        left_alone = tuple(
            (text.count("\n", 0, written.span.start) + 1, written.key, owner) for written, owner in examined.left_alone
        )
        checked = Checked(source.path, source.data, text, findings, left_alone, bom=bom)
        wanted = {**examined.safe, **(examined.unsafe if self.options.unsafe else {})}
        if not wanted or not self.options.rewrite:
            return checked
        try:
            after = apply(text, document.edits(wanted))
            reason = document.check(after, wanted)
        except (CannotEditError, OverlapError) as error:
            reason = str(error)
        if reason:
            # Each fix alone was checked; together they must not differ. Nothing is written then.
            self.notes.append(f"{source.path}: not rewritten, since {reason}; please report this")
            return checked
        applied = ("safe", "unsafe") if self.options.unsafe else ("safe",)
        return replace(checked, after=after, fixed=tuple(f for f in findings if f.safety in applied))

    def _examine(self, path: str, text: str, syntax: Syntax) -> tuple[Document, Examination]:
        from cgmigrate.engine import examine

        document = document_of(path, text, syntax)
        context = self.context(path)
        examined = examine(document, context)
        if (examined.safe or examined.unsafe) and (child := self._merged_files().get(path)):
            examined = examine(document, replace(context, merged_into=child))
        return document, examined

    def _selected(self, rule: str) -> bool:
        selected = not self.options.select or rule.startswith(self.options.select)
        return selected and not (self.options.ignore and rule.startswith(self.options.ignore))

    def rules(self) -> dict[str, Rule]:
        """All rules by id, loaded once."""
        if not self._rules:
            from pathlib import Path

            from cgmigrate.rules import load

            self._rules = load(tuple(map(Path, self.options.rule_folders)))
        return self._rules

    def context(self, path: str) -> Context:
        """Releases, rules and owners for a file; the project's pins are those nearest to it."""
        from pathlib import Path

        from cgmigrate.examination import Context
        from cgmigrate.releases import resolve

        resolution = resolve(Path(path).parent, self.options.source, self.options.target)
        if resolution not in self._contexts:
            from cgmigrate import ecosystems

            self.notes += [note for note in resolution.notes if note not in self.notes]
            rules = {i: r for i, r in self.rules().items() if i.startswith("CG0") or self._selected(i)}
            self._contexts[resolution] = Context(
                resolution.source,
                resolution.target,
                rules,
                ecosystems.load(),
                assumed_source=resolution.source_from == "the default",
            )
        return self._contexts[resolution]

    def _unreadable(self, path: str, data: bytes, rule: str, message: str) -> Checked:
        from cgmigrate.documents import Span
        from cgmigrate.examination import Finding

        finding = Finding(rule, self.rules()[rule].severity, Span(0, 0), message)
        return Checked(path, data, "", (finding,) if self._selected(rule) else ())


def document_of(path: str, text: str, syntax: Syntax) -> Document:
    """The document that reads a file's text."""
    if syntax is Syntax.PYTHON:
        from cgmigrate.documents.python import PythonDocument

        return PythonDocument(text, os.path.abspath(path))
    from cgmigrate.documents.yaml import YamlDocument

    return YamlDocument(text)
