"""The Python API: what ``check`` and ``fix`` do, for a text or for paths, without writing anything.

The command line makes the same runs (``cgmigrate.lint.run``). A text is handled like one from stdin: its file name
decides the syntax, the configuration and the releases, and files that it is merged with are read from disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.megatron.versions import parse_release
from cgmigrate.project.inputs import InputError
from cgmigrate.project.options import Options as RunOptions

if TYPE_CHECKING:
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run
    from cgmigrate.report import Reported

__all__ = [
    "Capture",
    "Diagnostic",
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
    "migrate_text",
    "parse_release",
]


@dataclass(frozen=True, slots=True)
class Options:
    """What a check or a migration does; the default is that of the command line.

    ``source`` and ``target`` are releases such as ``0.17``; without them, those of the project's pins apply.
    ``isolated`` reads no configuration files.
    """

    source: str | None = None
    target: str | None = None
    select: tuple[str, ...] = ()
    """Beginnings of codes: only these rules run."""
    ignore: tuple[str, ...] = ()
    preview: bool = False
    rules: tuple[str, ...] = ()
    """Folders with rules of a team's own."""
    exclude: tuple[str, ...] = ()
    isolated: bool = False
    unsafe_fixes: bool = False
    """Whether `migrate_text` applies unsafe fixes."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message about a place. Lines and columns count from 1, columns in code points; the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: str
    """Its code, such as ``CG101``."""
    name: str
    severity: str
    """``error`` or ``warning``."""
    message: str
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
class Unread:
    """A file that could not be read or handled, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The diagnostics of some paths in order of path and line, and the number of files that were searched."""

    files: int
    diagnostics: tuple[Diagnostic, ...]
    unread: tuple[Unread, ...]

    @property
    def clean(self) -> bool:
        """Whether there is no diagnostic, and every file was read."""
        return not self.diagnostics and not self.unread


@dataclass(frozen=True, slots=True)
class Result:
    """A migrated text, the diagnostics that remain in it, and those that were fixed.

    Places are those of the text before. A fix that has to change other files as well is not applied.
    """

    text: str
    diagnostics: tuple[Diagnostic, ...]
    fixed: tuple[Diagnostic, ...]


def check_text(text: str, filename: str, options: Options | None = None) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a text. Raises ValueError for a name or option that cannot be used."""
    run = _run_of_text(text, filename, options, rewrite=False)
    return tuple(one for checked in _checked(run) for one in _diagnostics(run, checked))


def migrate_text(text: str, filename: str, options: Options | None = None) -> Result:
    """Return a text with its fixes applied. Raises ValueError for a name or option that cannot be used."""
    run = _run_of_text(text, filename, options, rewrite=True)
    every: list[Diagnostic] = []
    fixed: list[Diagnostic] = []
    for checked in _checked(run):
        text = text if checked.after is None else checked.after
        every += _diagnostics(run, checked)
        fixed += _diagnostics(run, replace(checked, diagnostics=checked.fixed))
    return Result(text, tuple(one for one in every if one not in fixed), tuple(fixed))


def check_paths(paths: Sequence[str], options: Options | None = None) -> Report:
    """Return the diagnostics of files and folders. Raises ValueError for an option that cannot be used."""
    if isinstance(paths, str):
        raise TypeError("paths is a string: give a list of paths")
    run = _run(tuple(paths), _run_options(options), options)
    diagnostics: list[Diagnostic] = []
    unread: list[Unread] = []
    for item in run:
        if isinstance(item, InputError):
            unread.append(Unread(item.path, item.reason))
        else:
            diagnostics += _diagnostics(run, item)
    return Report(run.discovery.files_seen, tuple(diagnostics), tuple(unread))


def _run_of_text(text: str, filename: str, options: Options | None, rewrite: bool) -> Run:
    # Code that reads surrogates from a broken file gets the diagnostic about its encoding.
    stdin = (filename, text.encode("utf-8", "surrogatepass"))
    return _run(("-",), replace(_run_options(options), stdin=stdin, rewrite=rewrite), options)


def _run_options(options: Options | None) -> RunOptions:
    options = options or Options()
    return RunOptions(
        parse_release(options.source) if options.source else None,
        parse_release(options.target) if options.target else None,
        tuple(code.upper() for code in options.select),
        tuple(code.upper() for code in options.ignore),
        preview=options.preview,
        unsafe=options.unsafe_fixes,
        rewrite=False,
        exclude=options.exclude,
        rule_folders=options.rules,
    )


def _run(paths: Sequence[str], run_options: RunOptions, options: Options | None) -> Run:
    from cgmigrate.lint.codes import check_codes
    from cgmigrate.lint.run import Run
    from cgmigrate.project.cascade import Configurations

    isolated, rules = (options.isolated, options.rules) if options else (False, ())
    run = Run(paths, run_options, Configurations("", isolated, bool(run_options.exclude), False, rules))
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
