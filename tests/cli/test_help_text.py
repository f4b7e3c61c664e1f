"""`--help` and `cgmigrate help`: commands and options in sections."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from click import Command, Group, Option
from click.testing import Result

from cgmigrate.cli.commands import main


def test_help_lists_every_command_in_a_section_and_in_full(cgmigrate: Callable[..., Result]) -> None:
    shown = cgmigrate("--help").stdout
    assert cgmigrate("help").stdout == shown
    listed = shown[shown.index("Check and migrate:") : shown.index("Options:")]
    assert "Commands:" not in listed and "..." not in listed
    for name in main.commands:
        assert f"\n  {name} " in listed


@pytest.mark.parametrize("words", [("check",), ("fix",), ("verify",), ("rules", "test")])
def test_help_of_a_command_lists_every_option_in_a_section(
    cgmigrate: Callable[..., Result], words: tuple[str, ...]
) -> None:
    shown = cgmigrate("help", *words).stdout
    assert shown == cgmigrate(*words, "--help").stdout
    command: Command = main
    for word in words:
        assert isinstance(command, Group)
        command = command.commands[word]
    for option in command.params:
        if isinstance(option, Option) and not option.hidden:
            assert f"  {option.opts[0]}" in shown
    # Without a section is only the option that each command has.
    options = shown[shown.index("\nOptions:") :].partition("\nExamples:")[0]
    assert options.split("\n")[2:] in (
        ["  -h, --help  Show this message and exit.", ""],
        [""],
    )


def test_help_of_an_unknown_command_names_help(cgmigrate: Callable[..., Result]) -> None:
    result = cgmigrate("help", "chekc")
    assert result.exit_code == 2 and "no command chekc; `cgmigrate help` lists the commands" in result.stderr


@pytest.mark.parametrize("name", ["check", "fix", "upgrade", "explain", "verify", "doctor"])
def test_help_ends_with_examples_that_can_be_run(cgmigrate: Callable[..., Result], name: str) -> None:
    before, title, after = cgmigrate(name, "--help").stdout.partition("\nExamples:\n")
    lines = after.splitlines()
    assert title and "Options:" in before and 2 <= len(lines) <= 3
    for line in lines:
        program, command, *words = shlex.split(line)
        assert (line[:2], program, command) == ("  ", "cgmigrate", name) and len(line) <= 80
        # Raises an error for an option or value that there is not.
        main.commands[name].make_context(name, words)
