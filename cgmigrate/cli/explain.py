"""``cgmigrate explain``: a rule, a setting, or the objects of a file."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, ERROR, command_errors
from cgmigrate.cli.rules import configured_folders, load_rules, show_rules
from cgmigrate.project.options import release_words
from cgmigrate.project.paths import file_and_line, openable_path
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from cgmigrate.lint.objects import ExplainedFile, ExplainedObject
    from cgmigrate.lint.rules import Rule
    from cgmigrate.megatron.releases import Release


_FAMILY = re.compile(r"[A-Z]+\d*")
"""The beginning of codes."""


class Topic(NamedTuple):
    """What to explain: a name or place, and the releases and folders of rules that apply."""

    name: str
    source: Release | None = None
    target: Release | None = None
    folders: tuple[str, ...] = ()
    as_json: bool = False


def explain(topic: Topic) -> int:
    """Print a rule, a setting of the catalogue or of the known releases, or the objects of a file; return the status.

    Rules and settings take precedence over files of the same name: `./CG101` is a file. Raises click.UsageError.
    """
    rules = load_rules(topic.folders)
    name = topic.name.upper()
    if chosen := [rule for rule in rules.values() if name == rule.id or topic.name == rule.name]:
        _show_rule(topic, chosen[0])
        return CLEAN
    path, line = file_and_line(topic.name)
    if text := _setting_text(topic, rules):
        _print(text)
        return CLEAN
    if os.path.lexists(path) or _is_like_path(topic.name, path):
        return _explain_file(topic, path, line)
    if _FAMILY.fullmatch(name) and (family := [rule for rule in rules.values() if rule.id.startswith(name)]):
        show_rules(family, as_json=topic.as_json)
        return CLEAN
    raise click.UsageError(_unknown(topic.name, rules))


def _show_rule(topic: Topic, rule: Rule) -> None:
    from cgmigrate.report.explain import rule_text
    from cgmigrate.report.explained_json import rules_document

    if topic.as_json:
        click.echo(rules_document([rule]), nl=False)
    else:
        _print(in_text(rule_text(rule)))


def _print(text: str) -> None:
    if sys.stdout.isatty():
        from cgmigrate.report.style import for_terminal

        text = for_terminal(text, shutil.get_terminal_size().columns)
    click.echo(text, nl=False)


# --- objects of files -----------------------------------------------------------------------------


def _is_like_path(name: str, path: str) -> bool:
    """Return whether a name that is no file is meant as one: it has a folder, a suffix of a syntax, or a line."""
    from cgmigrate.documents.syntax import syntax_of

    return path != name or os.sep in name or "/" in name or "\\" in name or syntax_of(path) is not None


def _explain_file(topic: Topic, path: str, line: int | None) -> int:
    """Print the objects of a file, or the one at a line; return the exit status."""
    from cgmigrate.lint.objects import explain_file
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.inputs import InputError
    from cgmigrate.project.options import RunOptions

    if os.path.isdir(path):
        raise click.UsageError(f"{path} is a folder: give a file, or a line as FILE:LINE")
    options = RunOptions(topic.source, topic.target, rewrite=False, rule_folders=topic.folders)
    with command_errors():
        # A file that is named is shown, whatever excludes it.
        named = frozenset((os.path.dirname(os.path.abspath(path)),))
        configurations = Configurations(rule_folders=topic.folders, named_folders=named)
        file = explain_file(openable_path(path, os.getcwd()), options, configurations)
    if isinstance(file, InputError):
        click.echo(in_line(f"error: {file.path}: {file.reason}"), err=True)
        return ERROR
    for note in file.notes:
        click.echo(in_line(f"note: {note}"), err=True)
    if not file.objects:
        click.echo(in_line(f"{file.path}: no settings that cgmigrate knows"), err=True)
        return CLEAN if line is None else DIAGNOSTICS
    one = None if line is None else file.at(line)
    if line is not None and one is None:
        nearest = file.nearest(line)
        assert nearest is not None
        text = f"{file.path}:{line}: no settings on this line; the nearest are {_named(nearest)}"
        click.echo(in_line(text), err=True)
        return DIAGNOSTICS
    if topic.as_json:
        from cgmigrate.report.explained_json import objects_document

        click.echo(objects_document(file, file.objects if one is None else [one]), nl=False)
    elif one is None:
        _show_all(topic, file)
    else:
        _show(topic, file, one)
    return CLEAN


def _named(one: ExplainedObject) -> str:
    place = f"{one.first.path}:{one.first.number}"
    return f"those of {one.name} (`cgmigrate explain {shlex.quote(place)}`)"


def _show(topic: Topic, file: ExplainedFile, one: ExplainedObject) -> None:
    from cgmigrate.report.objects import object_text

    _print(in_text(object_text(one)))
    _print_last(file, _next(topic, one))


def _show_all(topic: Topic, file: ExplainedFile) -> None:
    from cgmigrate.report.objects import object_line

    for one in file.objects:
        click.echo(in_text(object_line(one)), nl=False)
    with_fix = [one for one in file.objects if one.edit_set and not one.edit_set.withheld]
    left = next((one for one in file.objects if one.diagnostics and one not in with_fix), None)
    first = left or next(iter(with_fix), None)
    place = f"{first.first.path}:{first.first.number}" if first else ""
    words = ["cgmigrate", "explain", *release_words(topic.source, topic.target), place]
    _print_last(file, shlex.join(words) if place else "")


def _print_last(file: ExplainedFile, command: str) -> None:
    """Print the releases that apply and the command to run next."""
    click.echo()
    if file.releases:
        click.echo(in_line(f"Releases: {file.releases}"))
    if command:
        click.echo(in_line(f"Next: {command}"))


def _next(topic: Topic, one: ExplainedObject) -> str:
    """Return the command to run next for an object: its fix, or else the explanation of what prevents one."""
    if one.edit_set is not None and not one.edit_set.withheld:
        unsafe = [] if one.edit_set.applicability == "safe" else ["--unsafe-fixes", "--diff"]
        files = sorted(one.edit_set.files)
        guard = ["--"] if any(path.startswith("-") for path in files) else []
        options = [*release_words(topic.source, topic.target), *unsafe, "--group", one.edit_set.id]
        return shlex.join(["cgmigrate", "fix", *options, *guard, *files])
    rules = [diagnostic.rule for _, diagnostic in one.diagnostics]
    return f"cgmigrate explain {rules[0]}" if rules else ""


# --- rules and settings ---------------------------------------------------------------------------


def _setting_text(topic: Topic, rules: Mapping[str, Rule]) -> str:
    """Return a setting by its name or flag: what the releases accept, and its entry in the catalogue.

    Empty if neither knows it.
    """
    from cgmigrate.megatron import catalogue
    from cgmigrate.megatron.tables import load
    from cgmigrate.report.release_tables import entry_text, setting_text

    known = catalogue.load((*configured_folders(topic.folders), *topic.folders))
    setting, text = known.get(topic.name), setting_text(topic.name, load())
    if topic.as_json and (setting or text):
        from cgmigrate.report.explained_json import setting_document

        return setting_document(topic.name, setting, rules.values(), load())
    entry = entry_text(setting, known, rules) if setting else ""
    return in_text("\n".join(filter(None, (text, entry))))


def _own_settings(rules: Mapping[str, Rule]) -> list[str]:
    """Return the settings that rules are about, a team's own included."""
    return sorted({name for rule in rules.values() for name in rule.names})


def _unknown(name: str, rules: Mapping[str, Rule]) -> str:
    """Return that nothing has a name, with the most similar ones."""
    from cgmigrate.megatron.tables import load
    from cgmigrate.report.release_tables import names

    similar = [code for code in rules if _FAMILY.fullmatch(name.upper()) and code.startswith(name.upper()[:-1])]
    named = dict.fromkeys((*(rule.name for rule in rules.values()), *_own_settings(rules), *names(load())))
    similar = similar or [one for one in named if one.startswith(name.lower())]
    similar = similar or difflib.get_close_matches(name.lower(), named, n=1, cutoff=0.75)
    hint = f"; did you mean {', '.join(similar[:3])}?" if similar else ""
    return f"no rule or setting {name}{hint} (`cgmigrate rules` lists the rules)"
