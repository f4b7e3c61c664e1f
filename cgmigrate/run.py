"""One run: paths → discovery → documents → findings → edited text, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.discovery import Discovery, Handed, Source, Syntax, TooLarge, Trouble
from cgmigrate.settings import Release, Settings

if TYPE_CHECKING:
    from cgmigrate.documents import Document
    from cgmigrate.edits import Edit
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
    edits: bool = False
    """Whether each finding is to carry the edits of its fix."""
    stdin: tuple[str, bytes] | None = None
    """A text that was handed over instead of a path, and the name to call it by."""
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """One file that holds settings: its findings, and its text before and after the fixes.

    ``after`` is None when nothing is to be rewritten. ``fixed`` are the findings that the rewrite
    settles, ``edits`` what it changes. ``releases`` are those from and to which it goes, None for a
    file that could not be read.
    """

    path: str
    data: bytes
    text: str
    findings: tuple[Finding, ...]
    left_alone: tuple[tuple[int, str, str], ...] = ()
    after: str | None = None
    bom: bool = False
    fixed: tuple[Finding, ...] = ()
    edits: tuple[Edit, ...] = ()
    releases: tuple[Release, Release] | None = None

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """The findings that the rewrite does not settle."""
        return tuple(finding for finding in self.findings if finding not in self.fixed)


@dataclass(slots=True)
class Run:
    """Iterable over what there is to say of each file, in order of path; counts as it goes."""

    paths: Sequence[str]
    options: Options
    discovery: Discovery | Handed = field(init=False)
    notes: list[str] = field(default_factory=list)
    unread: dict[Syntax, int] = field(default_factory=dict)
    """Files that hold the names in a syntax that this release does not read yet."""
    to_examine: int = 0
    """Files that hold the names, known once all were looked at; of these ``examined`` are done."""
    examined: int = 0
    _contexts: dict[Resolution, Context] = field(default_factory=dict)
    _sources: list[Source] = field(default_factory=list)
    _merged: dict[str, str] | None = None
    _rules: dict[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.options.stdin is not None:
            self.discovery = Handed(*self.options.stdin, exclude=self.options.exclude)
        else:
            self.discovery = Discovery(self.paths, self.options.exclude)

    def __iter__(self) -> Iterator[Checked | Trouble]:
        # Which file is merged into which is known only when all that hold settings are known.
        found = list(self.discovery)
        self._sources = [item for item in found if isinstance(item, Source)]
        self._merged = None
        self.to_examine, self.examined = len(found), 0
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
            self.examined += 1

    def _merged_files(self) -> dict[str, str]:
        """Path → the file laid over it, for files of this run; worked out when something is to be rewritten."""
        if self._merged is None:
            self._merged = self._find_merged_files(self._sources)
        return self._merged

    def _find_merged_files(self, sources: Sequence[Source]) -> dict[str, str]:
        from cgmigrate.layers import builds_on, children_around, merged_into

        children = {source.path: builds_on(source.data) for source in sources if source.syntax is Syntax.YAML}
        children |= {path: names for path, names in children_around(children).items() if path not in children}
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
        document, examined, context = self._examine(source.path, text, source.syntax)
        findings = tuple(finding for finding in examined.findings if self._selected(finding.rule))
        if self.options.edits:
            findings = _with_edits(findings, document, examined)
        left_alone = tuple(
            (text.count("\n", 0, written.span.start) + 1, written.key, owner) for written, owner in examined.left_alone
        )
        releases = (context.source, context.target)
        checked = Checked(source.path, source.data, text, findings, left_alone, bom=bom, releases=releases)
        wanted = {**examined.safe, **(examined.unsafe if self.options.unsafe else {})}
        if not wanted or not self.options.rewrite:
            return checked
        try:
            edits = tuple(document.edits(wanted))
            after = apply(text, edits)
            reason = document.check(after, wanted)
        except (CannotEditError, OverlapError) as error:
            reason = str(error)
        if reason:
            # Each fix alone was checked; together they must not differ. Nothing is written then.
            self.notes.append(f"{source.path}: not rewritten, since {reason}; please report this")
            return checked
        applied = ("safe", "unsafe") if self.options.unsafe else ("safe",)
        return replace(checked, after=after, fixed=tuple(f for f in findings if f.safety in applied), edits=edits)

    def _examine(self, path: str, text: str, syntax: Syntax) -> tuple[Document, Examination, Context]:
        from cgmigrate.engine import examine

        document = _document(path, text, syntax)
        context = self._context(path)
        examined = examine(document, context)
        if (examined.safe or examined.unsafe) and (child := self._merged_files().get(path)):
            examined = examine(document, replace(context, merged_into=child))
        return document, examined, context

    def _selected(self, rule: str) -> bool:
        selected = not self.options.select or rule.startswith(self.options.select)
        return selected and not (self.options.ignore and rule.startswith(self.options.ignore))

    @property
    def resolutions(self) -> list[Resolution]:
        """The releases that were decided on so far, each with how."""
        return list(self._contexts)

    def rules(self) -> dict[str, Rule]:
        """All rules by id, loaded once."""
        if not self._rules:
            from pathlib import Path

            from cgmigrate.rules import load

            self._rules = load(tuple(map(Path, self.options.rule_folders)))
        return self._rules

    def _context(self, path: str) -> Context:
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


def _with_edits(findings: Sequence[Finding], document: Document, examined: Examination) -> tuple[Finding, ...]:
    """Give each finding the edits of its fix alone, with those of the sites that must go with it."""
    from cgmigrate.documents import CannotEditError

    planned = {**examined.unsafe, **examined.safe}
    try:
        known = set(document.edits(planned))
    except CannotEditError:
        known = set()
    result = []
    for finding in findings:
        together = examined.together.get(finding.site, (finding.site,))
        wanted = {index: planned[index] for index in together if index in planned}
        edits = _edits_alone(document, wanted, known) if finding.safety and wanted else ()
        result.append(replace(finding, edits=edits) if edits else finding)
    return tuple(result)


def _edits_alone(document: Document, wanted: Mapping[int, Settings], known: Set[Edit]) -> tuple[Edit, ...]:
    """The edits that write these settings and no others; empty where they cannot be written alone."""
    from cgmigrate.documents import CannotEditError
    from cgmigrate.edits import OverlapError, apply

    try:
        edits = document.edits(wanted)
        # The engine has read the text with all edits. What is none of them (an import, say) is tried here.
        unsound = not known >= set(edits) and document.check(apply(document.text, edits), wanted)
    except (CannotEditError, OverlapError):
        return ()
    return () if unsound else tuple(edits)


def _document(path: str, text: str, syntax: Syntax) -> Document:
    if syntax is Syntax.PYTHON:
        from cgmigrate.documents.python import PythonDocument

        return PythonDocument(text, os.path.abspath(path))
    from cgmigrate.documents.yaml import YamlDocument

    return YamlDocument(text)
