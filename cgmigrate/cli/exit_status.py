"""The exit statuses, and the error that ends a command with status 2; `program` has those of signals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

CLEAN, DIAGNOSTICS, ERROR = 0, 1, 2


class CommandError(click.ClickException):
    """A rule, option or file that cannot be used; the command ends with status 2."""

    exit_code = ERROR


@contextmanager
def command_errors() -> Iterator[None]:
    """Turn a ValueError, which says that an option, rule, configuration or baseline is wrong, into a CommandError."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error)) from error
