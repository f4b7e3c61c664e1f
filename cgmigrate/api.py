"""The Python API: what ``check`` and ``fix`` do, for a text or for paths, without writing anything.

The command line makes the same runs (``cgmigrate.lint.run``). A text is handled like one from stdin: its file name
decides the syntax, the configuration and the releases, and files that it is merged with are read from disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate import arguments
from cgmigrate.megatron import capture
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Backend, Blocks, Capture, Iteration, Layers, Reader, Rejected
from cgmigrate.project.inputs import InputError
from cgmigrate.project.options import RunOptions

if TYPE_CHECKING:
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run
    from cgmigrate.report import Reported

__all__ = [
    "Backend",
    "Blocks",
    "Capture",
    "Diagnosis",
    "Diagnostic",
    "Iteration",
    "Layers",
    "Options",
    "Reader",
    "Rejected",
    "Release",
    "Report",
    "Result",
    "Settings",
    "Unread",
    "capture_of",
    "check_paths",
    "check_text",
    "doctor",
    "migrate_text",
    "parse_release",
]

AnyPath = str | os.PathLike[str]
"""A path as text, or as a ``pathlib.Path``."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a check or a migration does; the default is that of the command line."""

    source: str | Release | None = None
    """The release that the files were written for (``--from``). None: what the configuration or the project's pins
    say."""
    target: str | Release | None = None
    """The release that is to read them (``--to``). None: the same."""
    select: Sequence[str] = ()
    """Beginnings of codes: only these rules run (``--select``). A single text is refused."""
    ignore: Sequence[str] = ()
    """Beginnings of codes: these rules do not run (``--ignore``)."""
    preview: bool = False
    """Whether what is in preview runs (``--preview``)."""
    rules: Sequence[AnyPath] = ()
    """Folders with rules of a team's own (``--rules``)."""
    exclude: Sequence[str] = ()
    """Patterns as in ``.gitignore``: these files are skipped (``--exclude``)."""
    isolated: bool = False
    """Whether configuration files are ignored (``--isolated``)."""
    unsafe_fixes: bool = False
    """Whether ``migrate_text`` applies unsafe fixes (``--unsafe-fixes`` of ``fix``)."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message about a place. Lines and columns count from 1, columns in code points; the end is exclusive."""

    path: str
    """The file, as it was named or from the working directory."""
    line: int
    """The line where the place begins."""
    column: int
    """The column where it begins."""
    end_line: int
    """The line where it ends."""
    end_column: int
    """The column after its last character."""
    rule: str
    """The code of the rule, such as ``CG101``."""
    name: str
    """The name of the rule, such as ``enable-cuda-graph``."""
    severity: str
    """``error``, ``warning``, or ``note`` for what no program reads, such as documentation."""
    message: str
    """What is wrong, in one sentence."""
    fix: str
    """What its fix writes at this place, empty if there is no fix."""
    applicability: str
    """``safe`` or ``unsafe``, empty if there is no fix."""
    because: str
    """Why the fix is unsafe."""
    blocked_by: str
    """What prevents a fix."""
    help: str
    """What to write by hand."""
    fingerprint: str
    """The same for this diagnostic as long as its file and place have their names."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What ``doctor`` returns. ``str`` of it is a text for a log."""

    name: str
    """The class of the configuration; the path of its diagnostics."""
    release: Release
    """The release of megatron-core that reads it."""
    settings: str
    """The settings that were read, as YAML. The lines of the diagnostics are those of this text."""
    captures: Capture | Rejected
    """What is captured of the layers that the model has, or why megatron-core refuses that."""
    because: str
    """Why nothing is captured; empty if something is."""
    diagnostics: tuple[Diagnostic, ...]
    """What rules report of the settings."""

    def __str__(self) -> str:
        match self.captures:
            case Rejected(code=code, reason=reason, stage=stage):
                outcome = f"{'capture fails' if stage == 'capture' else 'rejected'}: {reason} ({code})"
            case Capture(training=None, inference=None):
                outcome = f"nothing is captured: {self.because}"
            case captured:
                outcome = f"captures {captured}"
        lines = [f"{self.name} with megatron-core {self.release}: {outcome}"]
        for one in self.diagnostics:
            lines += [f"  {one.rule} {one.severity}: {one.message}", *([f"    help: {one.help}"] if one.help else [])]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Unread:
    """A path that could not be read or handled.

    Of a file that cannot be read, only those with the name of a setting are listed: the others are searched for names
    and not read any further. It is listed even where options or comments hide the diagnostic.
    """

    path: str
    """The file or folder, as it was named or from the working directory."""
    reason: str
    """Why it could not be read, in one sentence."""


@dataclass(frozen=True, slots=True)
class Report:
    """What ``check_paths`` returns."""

    files: int
    """How many files were searched for names of settings."""
    diagnostics: tuple[Diagnostic, ...]
    """The diagnostics, in order of path and line."""
    unread: tuple[Unread, ...]
    """What could not be read, in order of path."""

    @property
    def clean(self) -> bool:
        """Whether there is no diagnostic, and every file was read."""
        return not self.diagnostics and not self.unread


@dataclass(frozen=True, slots=True)
class Result:
    """What ``migrate_text`` returns. The places of its diagnostics are those of the old text."""

    text: str
    """The text with its fixes applied. One that has to change other files as well is not applied."""
    diagnostics: tuple[Diagnostic, ...]
    """The diagnostics that remain."""
    fixed: tuple[Diagnostic, ...]
    """Those that the applied fixes settle."""


def check_text(text: str, filename: AnyPath, options: Options | None = None) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a text. Raises TypeError, and ValueError for a name or option that cannot be used."""
    run = _run_of_text(text, filename, options, rewrite=False)
    return tuple(one for checked in _checked(run) for one in _diagnostics(run, checked))


def migrate_text(text: str, filename: AnyPath, options: Options | None = None) -> Result:
    """Return a text with its fixes applied. Raises the same errors as ``check_text``."""
    run = _run_of_text(text, filename, options, rewrite=True)
    every: list[Diagnostic] = []
    fixed: list[Diagnostic] = []
    for checked in _checked(run):
        text = text if checked.after is None else checked.after
        every += _diagnostics(run, checked)
        fixed += _diagnostics(run, replace(checked, diagnostics=checked.fixed))
    return Result(text, tuple(one for one in every if one not in fixed), tuple(fixed))


def check_paths(paths: Iterable[AnyPath], options: Options | None = None) -> Report:
    """Return the diagnostics of files and folders. Raises TypeError, and ValueError for what cannot be used."""
    options = _checked_options(options)
    run = _run(arguments.texts_of("paths", paths), _run_options(options), options)
    diagnostics: list[Diagnostic] = []
    unread: list[Unread] = []
    for item in run:
        if isinstance(item, InputError):
            unread.append(Unread(item.path, item.reason))
            continue
        if item.unread:
            unread.append(Unread(item.path, item.unread))
        diagnostics += _diagnostics(run, item)
    return Report(run.discovery.files_seen, tuple(diagnostics), tuple(unread))


def doctor(config: object, options: Options | None = None) -> Diagnosis:
    """Return what a built configuration captures, and what rules report of the values that are in effect.

    ``config`` is a TransformerConfig, a configuration or model provider of Megatron-Bridge, the arguments of
    Megatron-LM, or a mapping of such settings. It is read for the target of the options, or the installed release.
    Raises TypeError for another object, and ValueError for what cannot be used.
    """
    from cgmigrate.lint.resolved_configurations import captured_in, resolved_text

    options, name = _checked_options(options), type(config).__name__
    release = arguments.release_of("target", options.target or arguments.installed_release())
    text = resolved_text(config, release)
    # The values are those of the process: neither a configuration file nor the pins of a project say more about them.
    options = replace(options, source=release, target=release, isolated=True)
    runs = [_run_of_text(text, f"/{name} in memory/{name}.yaml", options, rewrite=False) for _ in range(2)]
    every = [one for checked in _checked(runs[0]) for one in _diagnostics(runs[0], checked)]
    diagnostics = tuple(replace(one, path=name) for one in every)
    return Diagnosis(name, release, text, *captured_in(runs[1]), diagnostics)


def capture_of(settings: Settings, release: str | Release, reader: str | Reader) -> Capture | Rejected:
    """Return what settings capture when a release reads them, or why it rejects them.

    Raises TypeError, and ValueError for a release, a reader or a setting that is not known.
    """
    return capture.capture_of(
        arguments.settings_of("settings", settings),
        arguments.release_of("release", release),
        arguments.reader_of("reader", reader),
    )


def parse_release(text: str) -> Release:
    """Return the minor release of a version or tag. Raises TypeError, and ValueError for one that is not known."""
    return arguments.release_of("text", text)


def _run_of_text(text: str, filename: AnyPath, options: Options | None, rewrite: bool) -> Run:
    options = _checked_options(options)
    # Code that reads surrogates from a broken file gets the diagnostic about its encoding.
    data = text.encode("utf-8", "surrogatepass")
    stdin = (arguments.text_of("filename", filename), data)
    return _run(("-",), replace(_run_options(options), stdin=stdin, rewrite=rewrite), options)


def _checked_options(options: Options | None) -> Options:
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"options has to be cgmigrate.Options(...), not {type(options).__name__}")
    return options or Options()


def _run_options(options: Options) -> RunOptions:
    source = None if options.source is None else arguments.release_of("source", options.source)
    target = None if options.target is None else arguments.release_of("target", options.target)
    if source and target and source > target:
        raise ValueError(f"source {source} is newer than target {target}")
    return RunOptions(
        source,
        target,
        select=tuple(code.upper() for code in arguments.texts_of("select", options.select)),
        ignore=tuple(code.upper() for code in arguments.texts_of("ignore", options.ignore)),
        preview=options.preview,
        unsafe=options.unsafe_fixes,
        rewrite=False,
        exclude=arguments.texts_of("exclude", options.exclude),
        rule_folders=arguments.texts_of("rules", options.rules),
    )


def _run(paths: Sequence[str], run_options: RunOptions, options: Options) -> Run:
    from cgmigrate.lint.codes import check_codes
    from cgmigrate.lint.run import Run
    from cgmigrate.project.cascade import Configurations

    isolated = options.isolated
    configurations = Configurations("", isolated, bool(run_options.exclude), False, run_options.rule_folders)
    run = Run(paths, run_options, configurations)
    check_codes(run)
    return run


def _checked(run: Run) -> Iterator[FileResult]:
    """Yield the file of a run over one text. Raises ValueError if it cannot be used."""
    for item in run:
        if isinstance(item, InputError):
            raise ValueError(f"{item.path}: {item.reason}")
        yield item


def _diagnostics(run: Run, checked: FileResult) -> Iterator[Diagnostic]:
    from cgmigrate.report import Naming, RuleName, reported, repository_root

    known = run.known_rules
    names = {one.rule: RuleName(one.rule, known[one.rule].name) for one in checked.diagnostics}
    naming = Naming(repository_root(run.paths), names)
    return map(_diagnostic, reported(checked, checked.diagnostics, naming))


def _diagnostic(one: Reported) -> Diagnostic:
    diagnostic = one.diagnostic
    return Diagnostic(
        one.path,
        one.start.line,
        one.start.column,
        one.end.line,
        one.end.column,
        diagnostic.rule,
        one.rules[0].name,
        diagnostic.severity,
        diagnostic.message,
        diagnostic.fix_text if diagnostic.fix else "",
        str(diagnostic.applicability or ""),
        diagnostic.because,
        diagnostic.blocked_by,
        diagnostic.help,
        one.fingerprint,
    )
