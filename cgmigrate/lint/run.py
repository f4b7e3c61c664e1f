"""One run: paths → discovery → documents → diagnostics → edited text, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from cgmigrate.documents.syntax import READ, Syntax, document_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.project.discovery import Buffer, Discovery
from cgmigrate.project.inputs import InputError, Source, TooLarge

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.baseline import Baseline
    from cgmigrate.lint.diagnostics import Context, Diagnostic, FilePlan
    from cgmigrate.lint.rules import Rule
    from cgmigrate.lint.suppressions import Requests, Suppressed
    from cgmigrate.project.cascade import Configurations, FileOptions
    from cgmigrate.project.pins.resolution import Resolution
    from cgmigrate.text.edits import Edit
    from cgmigrate.text.spans import Span
from cgmigrate.project.options import Options


class Chooser(Protocol):
    """Asks a person which fixes of a file are to be written; see ``cgmigrate.cli.interactive``."""

    quit: bool

    def choose(
        self,
        path: str,
        document: Document,
        rewrites: Mapping[int, Settings],
        together: Sequence[Sequence[int]],
        diagnostics: Sequence[Diagnostic],
    ) -> dict[int, Settings]:
        """Return those of the wanted settings that the user agrees to; ``together`` are sites that go as one."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One file that holds settings: its diagnostics, and its text before and after the fixes.

    ``after`` is None when nothing is to be rewritten. ``fixed`` are the diagnostics that the rewrite
    settles, ``edits`` what it changes. ``releases`` are those from and to which it goes, None for a
    file that could not be read. ``known`` are those in the baseline, ``hidden`` those that comments leave
    out: neither is among ``diagnostics``.
    """

    path: str
    data: bytes
    text: str
    diagnostics: tuple[Diagnostic, ...]
    skipped: tuple[tuple[int, str, str], ...] = ()
    after: str | None = None
    bom: bool = False
    fixed: tuple[Diagnostic, ...] = ()
    edits: tuple[Edit, ...] = ()
    releases: tuple[Release, Release] | None = None
    known: tuple[Diagnostic, ...] = ()
    hidden: tuple[Diagnostic, ...] = ()
    declined: tuple[Diagnostic, ...] = ()
    """Diagnostics whose fix the user declined."""

    @property
    def remaining(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that the rewrite does not settle."""
        fixed = {(diagnostic.rule, diagnostic.span, diagnostic.message) for diagnostic in self.fixed}
        return tuple(f for f in self.diagnostics if (f.rule, f.span, f.message) not in fixed)


@dataclass(slots=True)
class Run:
    """Iterable over what there is to say of each file, in order of path; counts as it goes."""

    paths: Sequence[str]
    options: Options
    configurations: Configurations | None = None
    baseline: Baseline | None = None
    chooser: Chooser | None = None
    discovery: Discovery | Buffer = field(init=False)
    notes: list[str] = field(default_factory=list)
    unread: dict[Syntax, int] = field(default_factory=dict)
    """Files that hold the names in a syntax that this release does not read yet."""
    to_examine: int = 0
    """Files that hold the names, known once all were looked at; of these ``examined`` are done."""
    examined: int = 0
    _contexts: dict[tuple[Resolution, FileOptions], Context] = field(default_factory=dict)
    _governing: dict[str, FileOptions] = field(default_factory=dict)
    _listed: frozenset[str] = frozenset()
    _sources: list[Source] = field(default_factory=list)
    _merged: dict[str, str] | None = None
    _resolved: dict[tuple[str, Release | None, Release | None], Resolution] = field(default_factory=dict)
    _key_readers: dict[str | None, Mapping[str, str]] = field(default_factory=dict)
    _rules: dict[tuple[str, ...], dict[str, Rule]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        excludes = self.configurations.excludes if self.configurations else None
        if self.options.stdin is not None:
            self.discovery = Buffer(*self.options.stdin, exclude=self.options.exclude, excludes=excludes)
        else:
            self.discovery = Discovery(self.paths, self.options.exclude, excludes)

    def __iter__(self) -> Iterator[Checked | InputError]:
        # Which file is merged into which is known only when all that hold settings are known.
        found = list(self.discovery)
        self._sources = [item for item in found if isinstance(item, Source)]
        self._merged, self._key_readers = None, {}
        self._load_team_rules()
        for source in self._sources:
            # What is wrong with one of several configurations ends the run before a file is written.
            if source.syntax in READ:
                self.rules(self.governing(source.path).options)
        self.to_examine, self.examined = len(found), 0
        for item in found:
            match item:
                case InputError():
                    yield item
                case TooLarge(path=path, size=size):
                    message = f"the file has {size:,} bytes and is not read as a configuration"
                    yield self._beside_baseline(self._unreadable(path, b"", "CG008", message))
                case Source() if item.syntax in READ:
                    yield self._checked(item)
                case Source():
                    self.unread[item.syntax] = self.unread.get(item.syntax, 0) + 1
            self.examined += 1

    def _load_team_rules(self) -> None:
        """Load the rules of every folder whose YAML was passed over: what is no rule there must not go unseen."""
        if self.configurations is None:
            return
        from cgmigrate.project.configuration import merged

        here = self.configurations.for_run()
        for found in (here, *map(self.configurations.for_folder, sorted(self.configurations.excluded_rule_folders))):
            options = merged(self.options, found)
            if options.rule_folders:
                self.rules(options)

    def _checked(self, source: Source) -> Checked | InputError:
        """What there is to say of one file; whatever fails in it must not hide what the others hold."""
        from cgmigrate.text.failures import TOO_DEEP, internal_error, too_deep

        try:
            try:
                checked = self._check(source)
            except TOO_DEEP as error:
                checked = self._unreadable(source.path, source.data, "CG013", too_deep(error))
            return self._beside_baseline(checked)
        except Exception as error:
            if _is_of_the_user(error):
                raise
            return InputError(source.path, internal_error(error), missing=True)

    def _beside_baseline(self, checked: Checked) -> Checked:
        if self.baseline is None:
            return checked
        # What the rewrite settles is not compared: what is left of a rule may be no more than is known.
        shown, known = self.baseline.part(checked.path, checked.remaining)
        diagnostics = sorted((*checked.fixed, *shown), key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
        return replace(checked, diagnostics=tuple(diagnostics) if checked.fixed else shown, known=known)

    def can_tell(self, name: str, rule: str) -> bool:
        """Whether this run would have found what the baseline knows of a file and rule, if it were still there."""
        assert self.baseline is not None
        path = self.baseline.file_of(name)
        gone = not os.path.lexists(path)
        left_out = self.configurations is not None and self.configurations.excludes(path)
        if not self._listed:
            self._listed = frozenset(map(os.path.abspath, self.discovery.names_listed))
        return gone or left_out or (os.path.abspath(path) in self._listed and self.selects(path, rule))

    def _merged_files(self) -> dict[str, str]:
        """Path → the file laid over it, for files of this run; worked out when something is to be rewritten."""
        if self._merged is None:
            self._merged = self._find_merged_files(self._sources)
        return self._merged

    def _find_merged_files(self, sources: Sequence[Source]) -> dict[str, str]:
        from cgmigrate.linking.chains import builds_on, children_around, merged_into

        yaml = [source for source in sources if source.syntax is Syntax.YAML]
        children = {source.path: builds_on(source.path, source.data) for source in yaml}
        children |= {path: names for path, names in children_around(children).items() if path not in children}
        return merged_into({path: names for path, names in children.items() if names}, [s.path for s in sources])

    def _check(self, source: Source) -> Checked:
        from cgmigrate.text.encoding import decode

        try:
            text, bom = decode(source.data)
        except UnicodeDecodeError as error:
            line = source.data.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8 (byte {error.start}, line {line}: {error.reason}), so it is not read"
            return self._unreadable(source.path, source.data, "CG007", message)
        document, examined, context = self._examine(source.path, text, source.syntax)
        diagnostics = self._wanted(source.path, examined.diagnostics)
        hidden: tuple[Diagnostic, ...] = ()
        if "cgmigrate:" in text and not self.options.strict:
            examined, diagnostics, hidden = self._suppress(source, document, examined, diagnostics)
        if (examined.safe or examined.unsafe) and (place := self._outside(source.path)):
            from cgmigrate.lint.boundary import withheld, without_fixes

            examined, diagnostics = without_fixes(examined), withheld(diagnostics, place)
        if self.options.edits:
            diagnostics = _with_edits(diagnostics, document, examined)
        skipped = tuple(
            (text.count("\n", 0, written.span.start) + 1, written.key, owner) for written, owner in examined.skipped
        )
        checked = Checked(
            source.path,
            source.data,
            text,
            diagnostics,
            skipped,
            bom=bom,
            releases=(context.source, context.target),
            hidden=hidden,
        )
        if self.options.add_ignore:
            return self._ignoring(checked, document, source)
        rewrites = {**examined.safe, **(examined.unsafe if self.options.unsafe else {})}
        if not rewrites or not self.options.rewrite:
            return checked
        groups = tuple(dict.fromkeys(examined.together.values()))
        return self._rewritten(checked, document, rewrites, groups)

    def _rewritten(
        self,
        checked: Checked,
        document: Document,
        rewrites: Mapping[int, Settings],
        together: Sequence[tuple[int, ...]],
    ) -> Checked:
        """The file with the settings that its sites are to have, as far as the user agrees."""
        from cgmigrate.documents.sites import CannotEditError
        from cgmigrate.lint.diagnostics import Applicability
        from cgmigrate.text.edits import OverlapError, apply

        applied = (Applicability.SAFE, Applicability.UNSAFE) if self.options.unsafe else (Applicability.SAFE,)
        fixed = tuple(diagnostic for diagnostic in checked.diagnostics if diagnostic.applicability in applied)
        if self.chooser is not None:
            rewrites = self.chooser.choose(checked.path, document, rewrites, together, checked.diagnostics)
            fixed, declined = _parted_by_choice(fixed, document, rewrites)
            checked = replace(checked, declined=declined)
            if not rewrites:
                return checked
        try:
            edits = tuple(document.edits(rewrites))
            after = apply(checked.text, edits)
            reason = document.check(after, rewrites)
        except (CannotEditError, OverlapError) as error:
            reason = str(error)
        if reason:
            # Each fix alone was checked; together they must not differ. Nothing is written then.
            self.notes.append(f"{checked.path}: not rewritten, since {reason}; please report this")
            return checked
        return replace(checked, after=after, fixed=fixed, edits=edits)

    def _ignoring(self, checked: Checked, document: Document, source: Source) -> Checked:
        """With comments that leave the diagnostics out; those that the baseline knows need none."""
        if not checked.diagnostics:
            return checked
        from cgmigrate.lint.boundary import not_written
        from cgmigrate.lint.ignoring import add_ignores

        if place := self._outside(source.path):
            self.notes.append(not_written(source.path, place))
            return checked
        diagnostics = self.baseline.part(source.path, checked.diagnostics)[0] if self.baseline else checked.diagnostics
        added = add_ignores(
            document,
            source.syntax,
            diagnostics,
            lambda text: document_of(source.path, text, source.syntax),
            self.options.reason,
        )
        return replace(checked, after=added.text if added.hidden else None, fixed=added.hidden)

    def _outside(self, path: str) -> str:
        """The real path of a file that a link puts into the paths; empty for one that is in them, and for stdin."""
        from cgmigrate.lint.boundary import outside

        return "" if self.options.stdin else outside(path, self.paths)

    def _wanted(self, path: str, diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in diagnostics if self.selects(path, diagnostic.rule))

    def _suppress(
        self, source: Source, document: Document, examined: FilePlan, diagnostics: tuple[Diagnostic, ...]
    ) -> tuple[FilePlan, tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
        """Leave out what comments in the file ask for, and do not fix it either: what is shown, and what is not."""
        from cgmigrate.lint.suppressions import Requests, held_back

        requests = Requests(document.text, source.syntax, document)
        parted = self._parted(requests, source.path, diagnostics)
        shown = parted.shown
        if held := frozenset(diagnostic.span for diagnostic in parted.hidden if diagnostic.applicability):
            document, examined, _ = self._examine(source.path, document.text, source.syntax, held)
            shown = held_back(shown, parted.hidden, examined.diagnostics, requests.line_of)
        shown = tuple(sorted((*shown, *parted.idle), key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule)))
        return examined, shown, parted.hidden

    def _parted(self, requests: Requests, path: str, diagnostics: tuple[Diagnostic, ...]) -> Suppressed:
        from cgmigrate.lint.suppressions import WITHOUT_EFFECT

        rules = self.rules(self.governing(path).options)
        selected = [rule for rule in rules if self.selects(path, rule)]
        parted = requests.apply(diagnostics, rules[WITHOUT_EFFECT].severity, list(rules), selected)
        return replace(parted, idle=self._wanted(path, parted.idle))

    def _examine(
        self, path: str, text: str, syntax: Syntax, held: frozenset[Span] = frozenset()
    ) -> tuple[Document, FilePlan, Context]:
        from cgmigrate.lint.plan import examine

        document = document_of(path, text, syntax)
        context = self.context(path)
        if held:
            context = replace(context, suppressed=held)
        examined = examine(document, context)
        if syntax is Syntax.YAML and (examined.safe or examined.unsafe):
            around = self._around(path, document, context)
            examined = examined if around == context else examine(document, around)
        return document, examined, context

    def _around(self, path: str, document: Document, context: Context) -> Context:
        """The context of a YAML file that is to be rewritten, with the other files that its settings concern."""
        from cgmigrate.documents.yaml import YamlDocument
        from cgmigrate.linking.chains import files_named

        assert isinstance(document, YamlDocument)
        named = files_named(path, document.top_level_words)
        return replace(
            context,
            merged_into=self._merged_files().get(path, ""),
            names_files=", ".join(f"{key}: {word}" for key, word in named),
            key_readers=self._readers_of_keys(path),
        )

    def _readers_of_keys(self, path: str) -> Mapping[str, str]:
        """Old name → the place of code that reads it by name, in the project around a file.

        That is the folder that pins megatron-core for the file, or else the checkout: a folder with a pin of its own
        (one benchmark of many, a set of examples) runs apart from the rest of the checkout.
        """
        from pathlib import Path

        from cgmigrate.linking.key_readers import readers_of_keys
        from cgmigrate.project.checkout import checkout_of
        from cgmigrate.project.pins.search import pinned_folder

        folder = os.path.realpath(os.path.dirname(path))
        pinned = pinned_folder(Path(folder))
        top = str(pinned) if pinned else checkout_of(folder)
        if top not in self._key_readers:
            sources = [(item.path, item.data) for item in self._sources if item.syntax is Syntax.PYTHON]
            below = [item for item in sources if top is None or os.path.realpath(item[0]).startswith(top + os.sep)]
            self._key_readers[top] = readers_of_keys(top, below)
        return self._key_readers[top]

    def governing(self, path: str) -> FileOptions:
        """What holds for a file: the command line and the configuration nearest to it."""
        if path not in self._governing:
            from cgmigrate.project.cascade import FileOptions

            known = self.configurations
            self._governing[path] = known.file_options(path, self.options) if known else FileOptions(self.options)
        return self._governing[path]

    def selects(self, path: str, rule: str) -> bool:
        """Whether a rule's diagnostics are wanted in a file."""
        governing = self.governing(path)
        return _selects(governing.options, rule) and not rule.startswith(governing.ignored)

    @property
    def resolutions(self) -> list[Resolution]:
        """The releases that were decided on so far, each with how."""
        return list(dict.fromkeys(resolution for resolution, _ in self._contexts))

    @property
    def known_rules(self) -> dict[str, Rule]:
        """All rules that were loaded for any file, by id."""
        loaded = self._rules or {(): self.rules(self.options)}
        return {name: rule for rules in loaded.values() for name, rule in rules.items()}

    def rules(self, options: Options) -> dict[str, Rule]:
        """All rules by id, loaded once."""
        if options.rule_folders not in self._rules:
            from pathlib import Path

            from cgmigrate.lint.rules import load

            self._rules[options.rule_folders] = load(tuple(map(Path, options.rule_folders)))
        return self._rules[options.rule_folders]

    def context(self, path: str) -> Context:
        """Releases, rules and owners for a file; the project's pins are those nearest to it."""
        from cgmigrate.lint.diagnostics import Context

        governing = self.governing(path)
        options = governing.options
        resolution = self._told(path, self._resolution(os.path.dirname(path), options))
        if (resolution, governing) not in self._contexts:
            from cgmigrate.linking import ecosystems

            self.notes += [note for note in resolution.notes if note not in self.notes]
            rules = self.rules(options)
            self._contexts[resolution, governing] = Context(
                resolution.source,
                resolution.target,
                {i: r for i, r in rules.items() if i.startswith("CG0") or self.selects(path, i)},
                ecosystems.only(governing.ecosystem) if governing.ecosystem else ecosystems.load(),
                assumed_source=resolution.source_from == "the default",
            )
        return self._contexts[resolution, governing]

    def _resolution(self, folder: str, options: Options) -> Resolution:
        """The releases for the files of a folder, decided once for each."""
        from pathlib import Path

        from cgmigrate.project.pins.resolution import resolve

        key = (folder, options.source, options.target)
        if key not in self._resolved:
            self._resolved[key] = resolve(Path(folder), options.source, options.target)
        return self._resolved[key]

    def _told(self, path: str, resolution: Resolution) -> Resolution:
        """With the configuration as the origin of what stands in it; `resolve` takes all for options."""
        from cgmigrate.project.paths import display_path

        if self.configurations is None or not (file := self.configurations.for_file(path).file):
            return resolution
        options = (("--from", self.options.source), ("--to", self.options.target))
        given = {option for option, release in options if release is not None}
        first, last = (
            display_path(file) if origin in ("--from", "--to") and origin not in given else origin
            for origin in (resolution.source_from, resolution.target_from)
        )
        return replace(resolution, source_from=first, target_from=last)

    def _unreadable(self, path: str, data: bytes, rule: str, message: str) -> Checked:
        from cgmigrate.lint.diagnostics import Diagnostic
        from cgmigrate.text.spans import Span

        severity = self.rules(self.governing(path).options)[rule].severity
        diagnostics = self._wanted(path, (Diagnostic(rule, severity, Span(0, 0), message),))
        if b"cgmigrate:" in data and not self.options.strict:
            from cgmigrate.lint.suppressions import Requests

            requests = Requests(data.decode("utf-8", "replace"), Syntax.YAML, None)
            parted = self._parted(requests, path, diagnostics)
            return Checked(path, data, "", parted.shown, hidden=parted.hidden)
        return Checked(path, data, "", diagnostics)


def _is_of_the_user(error: Exception) -> bool:
    """Whether an error is about a rule or a configuration that the user gave, so that the run as a whole ends."""
    from cgmigrate.megatron.rule_data import RuleError
    from cgmigrate.project.configuration import ConfigurationError

    return isinstance(error, (ConfigurationError, RuleError))


def _parted_by_choice(
    diagnostics: Sequence[Diagnostic], document: Document, chosen: Mapping[int, Settings]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """The diagnostics whose fix the user chose, and those whose fix was declined."""
    from cgmigrate.documents.sites import spans_of

    spans = spans_of(document, list(chosen))
    return tuple(f for f in diagnostics if f.span in spans), tuple(f for f in diagnostics if f.span not in spans)


def _selects(options: Options, rule: str) -> bool:
    from cgmigrate.lint.diagnostics import UNREADABLE

    # A file that cannot be read may hold what is selected; only --ignore CG0 says that this is all right.
    selected = not options.select or rule.startswith(options.select) or rule in UNREADABLE
    return selected and not (options.ignore and rule.startswith(options.ignore))


def _with_edits(diagnostics: Sequence[Diagnostic], document: Document, examined: FilePlan) -> tuple[Diagnostic, ...]:
    """Give each diagnostic the edits of its fix alone, with those of the sites that must go with it."""
    from cgmigrate.documents.sites import CannotEditError

    planned = {**examined.unsafe, **examined.safe}
    try:
        known = set(document.edits(planned))
    except CannotEditError:
        known = set()
    result = []
    tried: dict[frozenset[Edit], bool] = {}
    for diagnostic in diagnostics:
        together = examined.together.get(diagnostic.site, (diagnostic.site,))
        rewrites = {index: planned[index] for index in together if index in planned}
        edits = _edits_alone(document, rewrites, known, tried) if diagnostic.applicability and rewrites else ()
        result.append(replace(diagnostic, edits=edits) if edits else diagnostic)
    return tuple(result)


def _edits_alone(
    document: Document, rewrites: Mapping[int, Settings], known: Set[Edit], tried: dict[frozenset[Edit], bool]
) -> tuple[Edit, ...]:
    """The edits that write these settings and no others; empty where they cannot be written alone.

    The engine has read the text with all edits that are ``known``. What is none of them (an import, say) is ``tried``
    here, once for all diagnostics that need the same: each trial reads the whole file.
    """
    from cgmigrate.documents.sites import CannotEditError
    from cgmigrate.text.edits import OverlapError, apply

    try:
        edits = document.edits(rewrites)
        further = frozenset(edits) - known
        if further and further not in tried:
            tried[further] = not document.check(apply(document.text, edits), rewrites)
    except (CannotEditError, OverlapError):
        return ()
    return tuple(edits) if tried.get(further, True) else ()
