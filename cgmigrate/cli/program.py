"""What surrounds the commands: standard streams that are closed or full, and unexpected errors.

Every run ends with a documented exit status and, after an unexpected error, one line on stderr: never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from cgmigrate.cli.exit_status import ERROR
from cgmigrate.text.escaping import in_line, in_text

BROKEN_PIPE = 141
"""128 + SIGPIPE, as shells report it. It is not 0, since the report is incomplete."""
PROVE, DASHES = "--prove", "--"
INTERRUPTED = 130
"""128 + SIGINT."""


class Option(click.Option):
    """An option in a section of the help. Only its first long name is listed; the others are former names."""

    def __init__(self, *args: Any, section: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help."""
        former = [name for name in self.opts if name.startswith("--")][1:]
        self.opts, names = [name for name in self.opts if name not in former], self.opts
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


class Command(click.Command):
    """A command that refuses options and paths that are empty, lists its options in sections, and shows examples."""

    def __init__(self, *args: Any, section: str = "", examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
        """The section of the commands in which it is listed."""
        self.examples = examples
        """Command lines that the help shows as they are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options. Raises click.BadParameter for one whose value is empty.

        With ``--prove``, what is behind ``--`` is a command of the user.
        """
        ctx.meta[DASHES] = DASHES in args
        if PROVE in args and DASHES in args[args.index(PROVE) :]:
            at = args.index(DASHES, args.index(PROVE))
            args, ctx.meta[PROVE] = args[:at], args[at + 1 :]
        rest = super().parse_args(ctx, args)
        _refuse_empty(ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those without a section last."""
        options = (one for one in self.get_params(ctx) if isinstance(one, click.Option))
        records = [(getattr(one, "section", ""), record) for one in options if (record := one.get_help_record(ctx))]
        _write_sections(formatter, records, "Options")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the text at the end."""
        if self.examples:
            with formatter.section("Examples"):
                # Not as a paragraph, whose lines would be joined.
                formatter.write("".join(f"  {line}\n" for line in self.examples))
        super().format_epilog(ctx, formatter)


class CommandGroup(Command, click.Group):
    """A group of such commands, which it lists in sections."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        commands = [(name, command) for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))]
        # The column of the names is as wide in each section.
        longest = max((len(name) for name, _ in commands), default=0)
        limit = formatter.width - 6 - longest
        rows = (
            (getattr(command, "section", ""), (name.ljust(longest), command.get_short_help_str(limit)))
            for name, command in commands
            if not command.hidden
        )
        _write_sections(formatter, rows, "Commands")
        super().format_options(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (an override)
        """Return the names of the commands as they were added."""
        return list(self.commands)


def _write_sections(formatter: click.HelpFormatter, rows: Iterable[tuple[str, tuple[str, str]]], others: str) -> None:
    """Write rows by section; those without one come last, under a title of their own."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, row in rows:
        sections.setdefault(section, []).append(row)
    for title in sorted(sections, key=lambda title: not title):
        with formatter.section(title or others):
            formatter.write_dl(sections[title])


class Program(CommandGroup):
    """A group of commands that never ends with a traceback."""

    group_class = CommandGroup

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Standard streams that are closed are opened on the null device first."""
        _open_standard_streams()
        try:
            return super().main(*args, **kwargs)
        except OSError:
            # click could not write the message of an error: there is nowhere to say it.
            _silence(sys.stdout)
            _silence(sys.stderr)
            sys.exit(ERROR)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options; --version and --help are carried out at once."""
        with _errors_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. An unexpected error becomes one line on stderr and exit status 2."""
        with _errors_in_one_line():
            _check_folder()
            return super().invoke(ctx)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """End the process where an error is not click's. Those of click are escaped, since they quote the arguments."""
    try:
        yield
    except click.ClickException as error:
        error.message = in_text(error.message)  # type: ignore[misc]  # no other way to change it
        raise
    except (click.Abort, click.exceptions.Exit):
        raise
    except BrokenPipeError:
        _silence(sys.stdout)
        sys.exit(BROKEN_PIPE)
    except KeyboardInterrupt:
        _print_error("interrupted")
        sys.exit(INTERRUPTED)
    except Exception as error:
        _silence(sys.stdout)
        _print_error(_in_one_line(error))
        sys.exit(ERROR)


def _refuse_empty(ctx: click.Context) -> None:
    """Refuse empty values: they come from unset shell variables, and `--ignore ""` would ignore every rule."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        texts = value if isinstance(value, tuple) else (value,)
        on_command_line = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if on_command_line and any(isinstance(text, str) and not text.strip() for text in texts):
            raise click.BadParameter("the value is empty (is a variable not set?)", ctx=ctx, param=parameter)


def _check_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise click.UsageError(f"the working directory cannot be used: {error.strerror or error}") from error


def _in_one_line(error: Exception) -> str:
    from cgmigrate.text.failures import internal_error

    # An error without a file name comes from a standard stream. Errors of other files are caught where they occur.
    if isinstance(error, OSError) and error.filename is None and error.strerror:
        return f"the output cannot be written: {error.strerror}"
    return internal_error(error)


def _print_error(text: str) -> None:
    try:
        click.echo(in_line(f"error: {text}"), err=True)
    except (OSError, ValueError):
        _silence(sys.stderr)


def _silence(stream: Any) -> None:
    """Send the rest of a stream to the null device: Python flushes it on exit, and would fail again."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device, so that no other file gets their descriptors."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
