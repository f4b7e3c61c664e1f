"""The options of the commands, grouped by what they decide: what is checked, how it is reported, what is written.

Named tuples and not dataclasses: to create the class of a frozen dataclass takes a millisecond of every start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgmigrate.cli.program import Option
from cgmigrate.project.options import FORMATS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.releases import Release


class Selection(NamedTuple):
    """Which files a run checks, for which releases, and with which rules, configuration and baseline."""

    paths: tuple[str, ...]
    stdin_filename: str | None = None
    """The name of the text on stdin, where ``paths`` is ``-``."""
    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    per_file_ignores: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    keep_defaults: bool = False
    hybrid: bool = False
    raise_pin: bool = False
    preview: bool = False
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[str, ...] = ()
    config: str = ""
    isolated: bool = False
    baseline: str = ""
    strict: bool = False


class Reporting(NamedTuple):
    """How and where diagnostics are reported, and which of them fail a run."""

    format: str | None = None
    """None where the configuration decides."""
    output_file: str | None = None
    table: str = ""
    """A table that is shown instead of the diagnostics: ``statistics`` or ``impact``; empty for none."""
    fail_on: str = "warning"
    exit_zero: bool = False
    quiet: bool = False
    verbose: bool = False
    color: str = "auto"


class Proving(NamedTuple):
    """How fixes are proved by running the user's command; ``prove`` says that they are."""

    prove: bool = False
    source_command: str = ""
    source_python: str = ""
    timeout: float = 3600
    most_runs: int = 40


NOT_PROVING = Proving()


class CheckMode(NamedTuple):
    """What ``check`` writes besides its report."""

    write_baseline: bool = False
    prune_baseline: bool = False
    add_ignore: bool = False
    reason: str = ""
    """The reason in the comments of ``--add-ignore``."""

    @property
    def updates_baseline(self) -> bool:
        """Whether the baseline is written."""
        return self.write_baseline or self.prune_baseline


class FixMode(NamedTuple):
    """What ``fix`` does with the fixes: ``diff`` shows them, ``interactive`` asks; ``fix_only`` reports nothing.

    ``group`` is the id of the only fix that is applied, empty for all. ``docs`` says that fixes of documentation are
    applied as well. ``commits`` says that each set of files is committed when it is written, ``upgrades`` that the
    releases of the project are to change.
    """

    diff: bool = False
    unsafe_fixes: bool = False
    interactive: bool = False
    fix_only: bool = False
    group: str = ""
    docs: bool = False
    commits: bool = False
    upgrades: bool = False


class UpgradeMode(NamedTuple):
    """What ``upgrade`` does with the fixes: ``diff`` shows and ``writes`` applies them.

    ``steps`` goes from one minor release to the next, and ``commits`` commits each set of files that is written.
    """

    diff: bool = False
    writes: bool = False
    unsafe_fixes: bool = False
    steps: bool = False
    commits: bool = False


class ReleaseType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
    """A release of megatron-core, such as 0.17."""

    name = "release"

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the known releases that begin with the text."""

        return releases(incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Release:
        """Return the release. Raises click.BadParameter."""
        from cgmigrate.megatron.versions import ReleaseError, parse_release

        try:
            release: Release = parse_release(value) if isinstance(value, str) else value
        except ReleaseError as error:
            self.fail(str(error), param, ctx)
        return release


def complete_codes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the rule codes that begin with the text."""

    return codes(incomplete)


def complete_explained(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the rule codes and the settings that begin with the text."""

    return [*codes(incomplete), *settings(incomplete)]


# The type only helps shells to complete paths. A path that is wrong is reported when it is read.
PATH = click.Path(readable=False)


RELEASES = "Releases"
RULES = "Rules"
PATHS = "Paths"
CONFIGURATION = "Configuration"
OUTPUT = "Output"
GATE = "Gates"
RUNS = "Runs"
PROVING = "Proof by running"
"""Sections of options in the help."""


def option(section: str, *names: str, **values: Any) -> Callable[..., Any]:
    """Return a decorator that adds an option in a section of the help; its second long name is a former one."""
    return click.option(*names, cls=Option, section=section, **values)


def format_option(*formats: str) -> Callable[..., Any]:
    """Return a decorator that adds --format to a command; the first format is the default."""
    return option(
        OUTPUT,
        "--output-format",
        "--format",
        "format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Print the result in this format.",
    )


mcore_option = option(
    RUNS,
    "--mcore",
    multiple=True,
    metavar="VERSION[=DIR]",
    help="Use this release of megatron-core, in this folder or virtual environment. Without DIR, pip downloads it.",
)
rules_option = option(
    RULES, "--rules", "folders", multiple=True, metavar="DIR", type=str, help="Also load the rules in this directory."
)
exclude_option = option(
    PATHS,
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip paths that match PATTERN, in the syntax of .gitignore.",
)


def release_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --from and --to."""
    options = [
        option(
            RELEASES,
            "--from",
            "source",
            type=ReleaseType(),
            help="The release of megatron-core that the files are written for.",
        ),
        option(RELEASES, "--to", "target", type=ReleaseType(), help="The release of megatron-core to migrate to."),
    ]
    return _with(options, command)


def proving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --prove and its options; the command gets them as a `Proving`."""

    options = [
        option(
            PROVING,
            "--prove",
            is_flag=True,
            help="Run the command behind `--` in copies of the tree with the old and the new text, and apply the fixes "
            "that it reaches and that change nothing that it builds or reports. This runs the project's code.",
        ),
        option(
            PROVING, "--source-python", metavar="FILE", type=PATH, help="The Python with the old release, for old text."
        ),
        option(
            PROVING, "--source-command", metavar="COMMAND", help="Run this command for old text under the old release."
        ),
        option(
            PROVING,
            "--timeout",
            type=float,
            metavar="SECONDS",
            help="Stop a run of the command after this time (3600).",
        ),
        option(PROVING, "--max-runs", "most_runs", type=int, metavar="N", help="Run the command at most N times (40)."),
    ]
    return _with(options, collected(proving=Proving)(command))


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that check and fix share; the command gets them as a `Selection` and a `Reporting`.

    An option is a field of one of the two by its name, and its value there if it is not given is the field's.
    """

    both = collected(selection=Selection, reporting=Reporting)
    return _with([*_selection_options(), *_reporting_options()], both(command))


def collected(**kinds: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator by which a command gets its options as tuples of some types, each by a name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def grouped(*args: Any, **values: Any) -> None:
            made = {name: kind(**_taken(values, kind._fields)) for name, kind in kinds.items()}
            command(*args, **made, **values)

        return grouped

    return decorate


def _taken(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Remove some values and return those that are given."""
    taken = {name: values.pop(name) for name in names if name in values}
    return {name: value for name, value in taken.items() if value is not None}


def _with(options: Iterable[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(list(options)):
        command = option(command)
    return command


CODES = {
    "select": "Run only the rules whose code begins with CODE, such as CG1 or CG301.",
    "extend_select": "Also run the rules whose code begins with CODE, besides those that are selected.",
    "ignore": "Skip the rules whose code begins with CODE.",
    "fixable": "Apply only the fixes of rules whose code begins with CODE.",
    "unfixable": "Apply no fixes of rules whose code begins with CODE.",
}
"""The options that take the beginning of a code, and their help."""


def _selection_options() -> list[Callable[..., Any]]:
    return [
        click.argument("paths", nargs=-1, type=PATH),
        release_options,
        option(
            RELEASES,
            "--raise-pin",
            is_flag=True,
            help="Drop the releases before 0.18 that a requirement admits; `fix` raises the requirement to >=0.18.",
        ),
        *(
            option(
                RULES,
                f"--{name.replace('_', '-')}",
                multiple=True,
                metavar="CODE",
                shell_complete=complete_codes,
                help=text,
            )
            for name, text in CODES.items()
        ),
        option(
            RULES,
            "--per-file-ignores",
            multiple=True,
            metavar="PATTERN:CODE",
            help="Skip the rules whose code begins with CODE in files that match PATTERN.",
        ),
        option(RULES, "--preview", is_flag=True, help="Also run the rules in preview, which may still change."),
        exclude_option,
        option(
            RULES,
            "--rules",
            "rule_folders",
            multiple=True,
            metavar="DIR",
            type=PATH,
            help="Also load the rules in this directory.",
        ),
        option(
            CONFIGURATION,
            "--config",
            metavar="FILE",
            type=PATH,
            help="Use this configuration file for all PATHS, instead of the nearest one.",
        ),
        option(CONFIGURATION, "--isolated", is_flag=True, help="Read no configuration files."),
        option(GATE, "--baseline", metavar="FILE", type=PATH, help="Hide the diagnostics that this baseline contains."),
    ]


def _reporting_options() -> list[Callable[..., Any]]:
    return [
        option(
            OUTPUT,
            "--output-format",
            "--format",
            "format",
            type=click.Choice(FORMATS),
            help=f"Report diagnostics in this format (default: {FORMATS[0]}).",
        ),
        option(
            OUTPUT, "--output-file", metavar="FILE", type=PATH, help="Write the report to this file instead of stdout."
        ),
        option(
            GATE,
            "--fail-on",
            type=click.Choice(["note", "warning", "error"]),
            default="warning",
            show_default=True,
            help="Exit with 1 only for diagnostics of at least this severity.",
        ),
        option(GATE, "--exit-zero", is_flag=True, help="Exit with 0 even if there are diagnostics."),
        option(
            PATHS,
            "--stdin-filename",
            metavar="NAME",
            type=PATH,
            help="The name of the file whose text is read from stdin.",
        ),
        option(OUTPUT, "-q", "--quiet", is_flag=True, help="Print only diagnostics and errors."),
        option(
            OUTPUT,
            "-v",
            "--verbose",
            is_flag=True,
            help="Also print how many files were searched, and where the releases come from.",
        ),
        option(
            OUTPUT,
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Use colors. With `auto`, only on a terminal; NO_COLOR and FORCE_COLOR override that.",
        ),
    ]


def codes(prefix: str) -> list[CompletionItem]:
    """Return the codes of rules that begin with ``prefix``, each with the rule's summary."""
    from click.shell_completion import CompletionItem

    from cgmigrate.lint.rules import load
    from cgmigrate.megatron.rule_data import RuleError

    try:
        rules = load()
    except RuleError:
        return []
    return [CompletionItem(r.id, help=r.summary) for r in rules.values() if r.id.startswith(prefix.upper())]


def settings(prefix: str) -> list[CompletionItem]:
    """Return the settings of the catalogue whose names begin with ``prefix``, each with its summary."""
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.catalogue import load

    known = load().settings.values()
    return [CompletionItem(one.name, help=one.summary) for one in known if prefix and one.name.startswith(prefix)]


def releases(prefix: str) -> list[CompletionItem]:
    """Return the known releases of megatron-core that begin with ``prefix``."""
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.releases import ACCEPTED

    return [CompletionItem(str(release)) for release in ACCEPTED if str(release).startswith(prefix)]
