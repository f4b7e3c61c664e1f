"""Settings from files: ``[tool.cgmigrate]`` in pyproject.toml, or cgmigrate.toml.

The nearest file at or above a file that is checked decides for it, alone: files further up are not merged in.
The search ends at the top of a git checkout. What the command line says goes before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.releases import Release
from cgmigrate.project.paths import display_path

if TYPE_CHECKING:
    from cgmigrate.project.options import Options


OWN_FILE, SHARED_FILE = "cgmigrate.toml", "pyproject.toml"


class ConfigurationError(ValueError):
    """A configuration that cannot be used; the message says which file, which key, and what is expected."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What one file says.

    ``file`` is its absolute path, empty where there is none; patterns are relative to ``folder``, an absolute
    path. Paths of rules and baseline are absolute. None stands for a key that is not written.
    """

    file: str
    folder: str
    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    extend_rules: tuple[str, ...] = ()
    ecosystems: tuple[tuple[str, str], ...] = ()
    format: str | None = None
    baseline: str | None = None


def merged(options: Options, found: Configuration) -> Options:
    """The options of a run with what a configuration adds to them. Raises ConfigurationError."""
    source, target = options.source or found.source, options.target or found.target
    if source and target and source > target:
        where = display_path(found.file) or "the command line"
        raise ConfigurationError(f"{where}: from {source} is newer than to {target}")
    # As in ruff: --select starts afresh, --ignore takes away from what the file selects.
    select, ignore = (options.select, ()) if options.select else (found.select or (), found.ignore)
    return replace(
        options,
        source=source,
        target=target,
        select=select,
        ignore=(*ignore, *options.ignore),
        rule_folders=(*found.extend_rules, *options.rule_folders),
    )
