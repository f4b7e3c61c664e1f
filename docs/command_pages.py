"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from cgmigrate.cli.commands import main

SHARED = ("check", "fix")
"""Commands with many options in common, which the page has once."""
_PLACE = re.compile(r"(?<=<!-- commands, by docs/build.py -->\n\n).*?(?=<!-- end of the commands -->)", re.DOTALL)

Options = dict[tuple[str, str], str]
"""What a row of a table shows of an option, and the title of its section."""


def with_commands(page: str) -> str:
    """Return the page with every command between its comments: arguments, and options in the sections of the help."""
    context = click.Context(main, info_name="cgmigrate")
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    shown = {name: one for name, one in commands.items() if one is not None and not one.hidden}
    contexts = {name: click.Context(one, info_name=name, parent=context) for name, one in shown.items()}
    options = {name: _options(one, contexts[name]) for name, one in shown.items()}
    check, fix = (options[name] for name in SHARED)
    common = {row: section for row, section in check.items() if fix.get(row) == section}
    head = ["| command | what it does |", "|---|---|"]
    short = {name: _inline(one.get_short_help_str(200)) for name, one in shown.items()}
    head += [f"| [`{name}`](#cgmigrate-{name}) | {text} |" for name, text in short.items()]
    parts = ["\n".join(head), "## Options of `check` and `fix`", *_tables(common)]
    for name, command in shown.items():
        parts += _command(command, contexts[name], options[name], common)
    text, count = _PLACE.subn("\n\n".join(parts).replace("\\", r"\\") + "\n\n", page)
    assert count == 1, "the page has a place for the commands"
    return text


def _options(command: click.Command, context: click.Context) -> Options:
    """The options of a command, without `--help`, which each of them has."""
    options: Options = {}
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if isinstance(option, click.Option) and record and "help" not in (option.name or ""):
            options[record] = getattr(option, "section", "") or "Options"
    return options


def _command(command: click.Command, context: click.Context, options: Options, common: Options) -> Iterator[str]:
    name = context.info_name or ""
    yield f"## {context.command_path}"
    usage = " ".join(["cgmigrate", name, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    # The page has a table of the exit codes of the commands that share options.
    yield from (part for part in _help(command.help or "") if name not in SHARED or not part.startswith("```"))
    yield from _tables({row: section for row, section in options.items() if row not in common})
    if name not in SHARED and (others := [f"`{names}`" for names, _ in options if (names, _) in common]):
        yield f"Also {', '.join(others)}, as [above](#options-of-check-and-fix)."
    if examples := getattr(command, "examples", ()):
        yield "\n".join(["```console", *examples, "```"])


def _tables(options: Options) -> Iterator[str]:
    """A table for each section of the help."""
    for title in dict.fromkeys(options.values()):
        rows = [f"| `{_cell(names)}` | {_inline(text)} |" for (names, text), one in options.items() if one == title]
        yield "\n".join([f"| {title} | |", "|---|---|", *rows])


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
