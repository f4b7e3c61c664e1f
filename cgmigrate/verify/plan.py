"""From files to what is to be verified: each site's settings before and after, its proxy, and the arms to run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cgmigrate.documents.sites import Document, Site
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.kinds import UNREADABLE, CheckKind
from cgmigrate.lint.run import Run
from cgmigrate.megatron.capture import capture_of, validation_input
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import DEPRECATED, FIELDS, MODULES, SCOPE, Choice, Settings, Undecided, names_in
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.project.inputs import InputError
from cgmigrate.project.options import RunOptions
from cgmigrate.project.paths import file_and_line
from cgmigrate.text.files import read_bytes
from cgmigrate.verify.arms import (
    DYNAMIC,
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    STATIC,
    TRAINING,
    Arm,
    Packing,
    Proxy,
)
from cgmigrate.verify.mcore import not_available
from cgmigrate.verify.other_changes import other_changes
from cgmigrate.verify.proxy import NO_MAMBA, proxy_of


@dataclass(frozen=True, slots=True)
class Case:
    """One site to verify: its settings before, read by ``source``, and after, read by ``target``.

    ``name`` is the file and the line; ``fields`` are the plain values beside the settings, ``fields_after`` those
    beside the migrated ones where these are others (``--after``); ``diff`` is what changes in the file, ``changes``
    names what else changes in it. ``unclear`` says why the site cannot be verified, empty when it can.
    """

    name: str
    reader: Reader
    before: Settings
    after: Settings
    source: Release
    target: Release
    fields: Mapping[str, Any] = field(default_factory=dict)
    diff: str = ""
    unclear: str = ""
    fields_after: Mapping[str, Any] | None = None
    changes: tuple[str, ...] = ()
    generates: bool = False
    """Whether the programs that get the settings generate, and do not train."""

    @property
    def migrated_fields(self) -> Mapping[str, Any]:
        """The plain values beside the migrated settings."""
        return self.fields if self.fields_after is None else self.fields_after


@dataclass(frozen=True, slots=True)
class VerifySelection:
    """What to verify: paths, releases, and whether unsafe fixes apply.

    ``after`` is a file that holds the migrated form, made by whomever, instead of cgmigrate's own. ``before`` is a
    revision or a folder with the old form of a project that is migrated already; empty for none. ``every`` takes sites
    that migration leaves alone, too.
    """

    paths: tuple[str, ...]
    source: Release | None = None
    target: Release | None = None
    unsafe: bool = False
    after: str = ""
    exclude: tuple[str, ...] = ()
    before: str = ""
    every: bool = False


class PlanError(Exception):
    """The selection cannot be planned; the message says why."""


def cases_of(selection: VerifySelection, input_errors: list[str], notes: list[str] | None = None) -> Iterator[Case]:
    """Yield every site in the files that migration changes, or should have changed.

    ``input_errors`` takes what cannot be read, ``notes`` what is skipped.
    """
    paths, lines = _split_lines(selection.paths)
    if selection.before:
        yield from _cases_since(selection, paths, input_errors, notes)
        return
    if selection.after:
        _check_after(selection.after, paths)
    readable = False
    for item, run in _read(selection, paths, input_errors, notes):
        readable = True
        cases = list(_cases_of_file(item, run, selection.after, selection.every))
        yield from _cases_at(item.path, cases, lines.pop(os.path.abspath(item.path), ()))
    if input_errors:
        return
    if selection.after and not readable:
        raise PlanError(f"{paths[0]} holds no settings that --after could be compared with")
    for path, rest in lines.items():
        raise _no_case_at(path, rest[0])


def _cases_since(
    selection: VerifySelection, paths: Sequence[str], input_errors: list[str], notes: list[str] | None
) -> Iterator[Case]:
    """Yield the cases of the files that changed since a revision; each is named by the file of today."""
    from cgmigrate.verify.revisions import RevisionError, earlier_files

    try:
        with earlier_files(selection.before, paths) as pairs:
            for item, run in _read(selection, list(pairs), input_errors, notes) if pairs else ():
                now = pairs[item.path]
                for case, _, _ in _cases_of_file(item, run, now):
                    yield replace(case, name=case.name.replace(item.path, now), diff=case.diff.replace(item.path, now))
    except RevisionError as error:
        raise PlanError(str(error)) from error


def _read(
    selection: VerifySelection, paths: Sequence[str], input_errors: list[str], notes: list[str] | None
) -> Iterator[tuple[FileResult, Run]]:
    """Yield the files that can be read, with their run."""
    from cgmigrate.project.cascade import Configurations, folders_in

    options = RunOptions(selection.source, selection.target, unsafe=selection.unsafe, exclude=selection.exclude)
    configurations = Configurations(replaces_exclude=bool(selection.exclude), named_folders=folders_in(paths))
    run = Run(list(dict.fromkeys(paths)), options, configurations)
    for item in _without_pages(run, () if selection.before else paths):
        if isinstance(item, InputError):
            input_errors.append(f"{item.path}: {item.reason}")
            continue
        if unread := [diagnostic for diagnostic in item.diagnostics if diagnostic.reports in UNREADABLE]:
            input_errors.append(f"{item.path}: {unread[0].message}")
            continue
        unowned = [one for one in item.diagnostics if one.reports == CheckKind.UNKNOWN_OWNER]
        if notes is not None and unowned:
            notes.append(f"{item.path}: settings whose owner is ambiguous are skipped ({unowned[0].rule})")
        yield item, run
    if notes is not None:
        notes += [f"{path} is excluded" for path in run.discovery.excluded]


def _without_pages(run: Run, named: Sequence[str]) -> Iterator[FileResult | InputError]:
    """Yield the files of a run without documentation, which no program reads; a page that is named is an error."""
    from cgmigrate.documents.syntax import is_documentation

    known = set(map(os.path.abspath, named))
    for item in run:
        if not is_documentation(item.path):
            yield item
        elif os.path.abspath(item.path) in known:
            yield InputError(item.path, "documentation, which configures nothing that could be verified", missing=True)


def _cases_at(path: str, cases: Sequence[tuple[Case, int, int]], lines: Sequence[int]) -> Iterator[Case]:
    """Yield the last case of a file around each line; all cases where no lines are named."""
    for line in lines:
        at_line = [case for case, first, last in cases if first <= line <= last]
        if not at_line:
            raise _no_case_at(path, line)
        yield at_line[-1]
    if not lines:
        yield from (case for case, _, _ in cases)


def _no_case_at(path: str, line: int) -> PlanError:
    return PlanError(f"{path}:{line}: no settings that change are on this line")


def _check_after(after: str, paths: Sequence[str]) -> None:
    """Check that --after has one file to compare with, and can be read in its syntax. Raises PlanError."""
    if len(paths) != 1:
        raise PlanError("--after gives the migrated form of one file; name one file to compare it with")
    _readable(after, paths[0])


def _readable(after: str, before: str) -> None:
    """Check that the migrated form can be read in the syntax of the file. Raises PlanError."""
    from cgmigrate.documents.syntax import document_of, syntax_of
    from cgmigrate.megatron.catalogue import load
    from cgmigrate.text.encoding import decode

    try:
        text, _ = decode(read_bytes(after))
    except OSError as error:
        raise PlanError(f"--after {after}: {error.strerror}") from error
    except ValueError as error:
        raise PlanError(f"--after {after}: {error}") from error
    if (syntax := syntax_of(before)) is not None:
        problems = document_of(after, text, syntax, load()).problems
        if unread := [problem for problem in problems if problem.kind in UNREADABLE]:
            raise PlanError(f"--after {after}: {unread[0].message}")


def _split_lines(paths: Sequence[str]) -> tuple[list[str], dict[str, list[int]]]:
    """``recipe.yaml:12`` means the site around line 12; a file that is also given whole is taken whole."""
    plain: list[str] = []
    whole: set[str] = set()
    lines: dict[str, list[int]] = {}
    for path in paths:
        file, line = file_and_line(path)
        plain.append(file)
        if line is None:
            whole.add(os.path.abspath(path))
        else:
            lines.setdefault(os.path.abspath(file), []).append(line)
    return plain, {path: numbers for path, numbers in lines.items() if path not in whole}


_ReadSites = Mapping[int, tuple[Reader, Settings]]
"""The sites of a document that have a reader, by index: the reader and the settings in effect."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """A file before and after its edits, both read; ``after_file`` is the path of a form written by hand, or empty."""

    before: str
    after: str
    documents: tuple[Document, Document]
    diff: str
    after_file: str
    changes: tuple[str, ...]
    every: bool


def _cases_of_file(
    checked: FileResult, run: Run, after_file: str, every: bool = False
) -> Iterator[tuple[Case, int, int]]:
    """The cases of one file, each with the first and last line of its site."""
    from cgmigrate.lint.examination import settings_of

    context = run.context(checked.path)
    if not checked.text or (texts := _texts(checked, after_file, every, context.catalogue)) is None:
        return
    before, after = (settings_of(document, context) for document in texts.documents)
    yield from _cases_at_sites(checked.path, texts, context, before, after)
    if after_file:
        yield from _cases_of_new_sites(texts, context, before, after)


def _texts(checked: FileResult, after_file: str, every: bool, catalogue: Catalogue) -> _Texts | None:
    """Read both texts; return None if the syntax is not read."""
    from cgmigrate.documents.syntax import SHEBANG_BYTES, document_of, syntax_of_file
    from cgmigrate.text.diff import unified_diff
    from cgmigrate.text.encoding import decode

    if (syntax := syntax_of_file(checked.path, checked.text[:SHEBANG_BYTES].encode())) is None:
        return None
    if after_file:
        after, _ = decode(read_bytes(after_file))
    else:
        after = checked.after if checked.after is not None else checked.text
    return _Texts(
        before=checked.text,
        after=after,
        documents=(
            document_of(checked.path, checked.text, syntax, catalogue),
            document_of(after_file or checked.path, after, syntax, catalogue),
        ),
        diff=unified_diff(checked.path, checked.text, after) if after != checked.text else "",
        after_file=after_file,
        changes=other_changes(checked.text, after, syntax) if after_file else (),
        every=every,
    )


def _cases_at_sites(
    path: str, texts: _Texts, context: Context, read_before: _ReadSites, read_after: _ReadSites
) -> Iterator[tuple[Case, int, int]]:
    """The cases at the sites of the old text whose settings change or are deprecated, or at every site."""
    before, after = texts.documents
    for index, (reader, settings) in read_before.items():
        site = before.sites[index]
        twin = _twin(site, before.sites, after.sites)
        migrated = read_after.get(twin, (reader, {}))[1] if twin is not None else {}
        is_kept = not texts.every and dict(settings) == dict(migrated) and not DEPRECATED & settings.keys()
        if not site.written or is_kept:
            continue
        first = _line_of(texts.before, site.written[0].span.start)
        case = Case(
            name=f"{path}:{first}",
            reader=reader,
            before=settings,
            after=migrated,
            source=context.source,
            target=context.target,
            fields=_beside(site, texts.before),
            diff=texts.diff,
            unclear=_unclear(settings, migrated),
            fields_after=_beside(after.sites[twin], texts.after) if texts.after_file and twin is not None else None,
            changes=texts.changes,
            generates=_generates(site),
        )
        start, end = _line_of(texts.before, site.span.start), _line_of(texts.before, max(site.span.end - 1, 0))
        yield case, min(start, first), end


def _cases_of_new_sites(
    texts: _Texts, context: Context, read_before: _ReadSites, read_after: _ReadSites
) -> Iterator[tuple[Case, int, int]]:
    """The cases at places that only the form written by hand has: nothing is captured there before."""
    before, after = texts.documents
    for index, (reader, settings) in read_after.items():
        site = after.sites[index]
        if not site.written or _twin(site, after.sites, before.sites) in read_before:
            continue
        case = Case(
            name=f"{texts.after_file}:{_line_of(texts.after, site.written[0].span.start)}",
            reader=reader,
            before={},
            after=settings,
            source=context.source,
            target=context.target,
            fields=_beside(site, texts.after),
            diff=texts.diff,
            unclear=_unclear({}, settings),
            changes=texts.changes,
            generates=_generates(site),
        )
        yield case, 0, 0


def _generates(site: Site) -> bool:
    programs = [name for name in site.programs or site.scripts if name.endswith(".py")]
    return bool(programs) and all("inference" in name or "text_generation" in name for name in programs)


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _twin(site: Site, before: Sequence[Site], after: Sequence[Site]) -> int | None:
    """The site of the edited text for ``site``: the same path, the same position among the sites of that path."""

    def same_path(sites: Sequence[Site]) -> list[int]:
        return [other.index for other in sites if (other.path, other.origin) == (site.path, site.origin)]

    place = same_path(before).index(site.index)
    twins = same_path(after)
    return twins[place] if place < len(twins) else None


def undecided(before: Settings, after: Settings) -> str:
    """Which setting has a value that reading the file cannot decide, and why; empty when there is none."""
    for settings in (before, after):
        for name in FIELDS:
            if isinstance(value := settings.get(name), (Undecided, Choice)):
                return f"`{name}` is {getattr(value, 'reason', 'chosen by a condition')}, so what runs is not known"
    return ""


def _unclear(before: Settings, after: Settings) -> str:
    if why := undecided(before, after):
        return why
    if dict(before) == dict(after):
        return (
            "the settings are not migrated, so there is nothing to compare: `cgmigrate check` says why, and which "
            "other files have to change with this one"
        )
    return ""


def _beside(site: Site, text: str) -> dict[str, Any]:
    """The values beside the settings; lists, too, where the file is YAML that a plain reader understands."""
    beside = {name: value for name, value in site.neighbours.items() if not isinstance(value, (Undecided, Choice))}
    if site.origin is not None:
        return beside
    import yaml

    try:
        node = yaml.safe_load(text)
        for key in site.path:
            node = node[int(key)] if isinstance(node, list) else node[key]
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        return beside
    listed = {str(k): v for k, v in node.items() if isinstance(v, list)} if isinstance(node, dict) else {}
    return listed | beside


# --- arms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedComparison:
    """One comparison to make: a case under one workload, and its arms by role."""

    case: Case
    workload: str
    arms: Mapping[str, Arm]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to run: training steps, generated tokens, GPUs, workloads (None: those that the settings concern)."""

    steps: int = 8
    tokens: int = 16
    gpus: int = 1
    workloads: tuple[str, ...] | None = None
    packing: Packing | None = None
    proxy: Proxy | None = None


def planned(case: Case, versions: Mapping[Release, str], scale: Scale) -> list[PlannedComparison]:
    """The comparisons of a case; ``versions`` maps minor releases to the available versions."""
    proxy, after = (
        scale.proxy or proxy_for(case, fields, scale.gpus, scale.packing)
        for fields in (case.fields, case.migrated_fields)
    )
    target = versions.get(case.target)
    if target is None:
        raise PlanError(not_available(case.target))
    return [
        PlannedComparison(case, workload, _arms(case, workload, (proxy, after), versions, scale))
        for workload in scale.workloads or _concerned(case)
    ]


def proxy_for(case: Case, fields: Mapping[str, Any], gpus: int = 1, packing: Packing | None = None) -> Proxy:
    """Return the proxy; it says that it has no Mamba layers if only the settings show that the model has some."""
    proxy = proxy_of(fields, gpus, packing)
    named = (word for one in (case.before, case.after) for name in (SCOPE, MODULES) for word in names_in(one.get(name)))
    return replace(proxy, notes=(*proxy.notes, NO_MAMBA)) if "mamba" in named and NO_MAMBA not in proxy.notes else proxy


def _concerned(case: Case) -> tuple[str, ...]:
    """Training, unless the program only generates; generation, too, where either form captures something in it."""
    if case.generates:
        return STATIC, DYNAMIC
    captures = [capture_of(case.before, case.source, case.reader), capture_of(case.after, case.target, case.reader)]
    inference = any(isinstance(capture, Capture) and capture.inference is not None for capture in captures)
    return (TRAINING, STATIC, DYNAMIC) if inference else (TRAINING,)


def _arm(workload: str, proxy: Proxy, release: str, scale: Scale) -> Arm:
    """The arm that captures nothing on a proxy."""
    if workload != TRAINING and proxy.pipeline > 1:
        proxy = replace(proxy, pipeline=1, notes=(*proxy.notes, "generation runs without pipeline parallelism"))
    steps = scale.steps if workload == TRAINING else scale.tokens
    return Arm(release, workload, {}, proxy, steps, max(proxy.processes, scale.gpus if workload == TRAINING else 1))


def _arms(
    case: Case, workload: str, proxies: tuple[Proxy, Proxy], versions: Mapping[Release, str], scale: Scale
) -> dict[str, Arm]:
    """The arms by role; ``proxies`` stand for the configuration before and after."""
    source, target = versions.get(case.source), versions[case.target]
    base, after = (_arm(workload, proxy, target, scale) for proxy in proxies)
    result = {EAGER: base, EAGER_AGAIN: replace(base, repeat=1)}
    if source is not None:
        if source != target:
            result[EAGER_SOURCE] = replace(base, release=source)
        result[LEGACY_SOURCE] = replace(base, release=source, settings=_for_config(case.before, case.source, case))
    result[LEGACY_TARGET] = replace(base, settings=_for_config(case.before, case.target, case))
    result[MIGRATED] = replace(after, settings=_for_config(case.after, case.target, case))
    return result


def _for_config(settings: Settings, release: Release, case: Case) -> dict[str, Any]:
    """The settings as TransformerConfig gets them from the case's reader (command line, Megatron-Bridge)."""
    resolved = validation_input(settings, release, case.reader)
    # What the reader refuses is left to TransformerConfig, which mostly says the same; the config level shows the rest.
    plain = settings if isinstance(resolved, Rejected) else resolved
    return {name: plain[name] for name in FIELDS if name in plain}
