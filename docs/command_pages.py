"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from cgmigrate.cli.commands import main

GENERATED = "Generated from the commands by `docs/build.py`."


def commands_page() -> str:
    """Every command with its arguments and options, in the sections of its help."""
    context = click.Context(main, info_name="cgmigrate")
    commands = [(name, main.get_command(context, name)) for name in main.list_commands(context)]
    shown = [(name, command) for name, command in commands if command is not None and not command.hidden]
    table = ["| command | what it does |", "|---|---|"]
    table += [
        f"| [`{name}`](#cgmigrate-{name}) | {_inline(command.get_short_help_str(200))} |" for name, command in shown
    ]
    parts = ["# Commands", "[Releases, exit codes, editors and suppressions](command-line.md) has what all share."]
    parts.append("\n".join(table))
    for name, command in shown:
        parts += _command(command, click.Context(command, info_name=name, parent=context))
    return "\n\n".join([*parts, f"<!-- {GENERATED} -->"]) + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}"
    usage = " ".join(["cgmigrate", context.info_name or "", *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    yield from _help(command.help or "")
    sections: dict[str, list[str]] = {}
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if isinstance(option, click.Option) and record:
            row = f"| `{_cell(record[0])}` | {_inline(record[1])} |"
            sections.setdefault(getattr(option, "section", "") or "Options", []).append(row)
    for title, rows in sections.items():
        yield "\n".join([f"| {title} | |", "|---|---|", *rows])
    if examples := getattr(command, "examples", ()):
        yield "Examples:"
        yield "\n".join(["```sh", *examples, "```"])


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help; one that click prints as it is (it begins with a backspace) is a block of text."""
    for paragraph in text.split("\n\n"):
        if "\b" in paragraph:
            yield "```text\n" + inspect.cleandoc(paragraph.replace("\b", "")) + "\n```"
        elif paragraph.strip():
            yield _inline(" ".join(paragraph.split()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _inline(text: str) -> str:
    """A sentence of the help in a cell or a paragraph: no character of it is markup for Markdown."""
    return _cell(" ".join(text.split())).replace("<", "&lt;").replace("*", "\\*")
