"""The one command that a run recommends to run next, with the paths and options of this one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.options import CODES
from cgmigrate.cli.program import PROVE
from cgmigrate.project.options import release_words
from cgmigrate.project.paths import shown_path

if TYPE_CHECKING:
    from cgmigrate.report import Reported

_OF_FILES = ("config", "isolated", "baseline")
_OF_RULES = (*CODES, "per_file_ignores", "preview", "rule_folders")
_KEPT = frozenset(
    ("source", "target", "keep_defaults", "hybrid", "raise_pin", "docs", "exclude", *_OF_RULES, *_OF_FILES)
)
"""Options of this run that the next one needs as well."""


def next_command(diagnostics: Sequence[Reported], unfollowed: Sequence[str] = ()) -> str:
    """Return the command that settles most of what is left: safe fixes, then unsafe ones, then an explanation.

    Many fixes may be safe in a checkout whose objects were not followed, so that is done before unsafe ones. These are
    for one file at a time, whose diff a person reads.
    """
    context = click.get_current_context(silent=True)
    if not diagnostics or context is None:
        return ""
    applicable = {reported.diagnostic.applicability for reported in diagnostics}
    unsafe = ["--unsafe-fixes"] if context.params.get("unsafe_fixes") else []
    if any("--raise-pin" in reported.diagnostic.help for reported in diagnostics):
        return _fix(context, "--raise-pin", "--diff")
    if "safe" in applicable or (unsafe and "unsafe" in applicable):
        return _fix(context, *unsafe)
    if "not analysed" in applicable:
        return _fix(context, "--diff", paths=[shown_path(top) for top in unfollowed])
    files = {reported.path for reported in diagnostics if reported.diagnostic.applicability == "unsafe"}
    if len(files) == 1:
        return _fix(context, "--unsafe-fixes", "--diff", paths=() if _is_stdin() else [*files])
    return explain_command([one for one in diagnostics if one.path in files] or diagnostics)


def check_command() -> str:
    """Return the command that checks the same files again; empty outside of a command line."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    name = "upgrade" if context.info_name == "upgrade" else "check"
    return shlex.join(["cgmigrate", name, *_options(context), *_paths(context)])


def explain_command(diagnostics: Sequence[Reported]) -> str:
    """Return the command that explains the largest withheld set, or else the most frequent rule.

    Diagnostics without a safe fix take precedence.
    """
    left = [reported for reported in diagnostics if not reported.applied] or diagnostics
    largest = max(left, key=lambda reported: len(reported.related))
    if largest.related and not _is_stdin():
        return shlex.join(["cgmigrate", "explain", *_releases(), f"{largest.path}:{largest.start.line}"])
    counts = Counter(rule.code for reported in left for rule in reported.rules)
    return f"cgmigrate explain {counts.most_common(1)[0][0]}"


def _is_stdin() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and [str(path) for path in context.params.get("paths", ())] == ["-"]


def _releases() -> list[str]:
    """Return the releases of this run, if the command line has them, as words of a command line."""
    context = click.get_current_context(silent=True)
    return release_words(context.params.get("source"), context.params.get("target")) if context else []


def _fix(context: click.Context, *further: str, paths: Sequence[str] = ()) -> str:
    command = context.meta.get(PROVE, [])
    proving = [PROVE, *(["--", *command] if command else [])] if context.params.get("prove") else []
    name = ["fix"] if context.info_name != "upgrade" else ["upgrade", *([] if "--diff" in further else ["--fix"])]
    return shlex.join(["cgmigrate", *name, *_options(context), *further, *_paths(context, paths), *proving])


def _paths(context: click.Context, paths: Sequence[str] = ()) -> list[str]:
    """Return paths, or those of this run, as words of a command line."""
    paths = paths or [str(path) for path in context.params["paths"]] or ["."]
    if paths == ["-"]:
        # What an editor hands over is the text of this file.
        paths = [context.params["stdin_filename"]]
    return [*(["--"] if any(path.startswith("-") for path in paths) else []), *paths]


def _options(context: click.Context) -> list[str]:
    """Return the options of this run that are kept, as words of a command line."""
    words: list[str] = []
    for parameter in context.command.params:
        if parameter.name not in _KEPT or not (value := context.params.get(parameter.name)):
            continue
        values = value if parameter.multiple else [value]
        for one in values:
            words += [parameter.opts[0]] if value is True else [parameter.opts[0], str(one)]
    return words
