"""Configuration from files: ``[tool.cgmigrate]`` in pyproject.toml, or cgmigrate.toml.

The nearest file at or above a file that is checked is its configuration; files further up are not merged into it. The
search ends at the root of a git checkout. The command line takes precedence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.releases import Release
from cgmigrate.project.paths import display_path

if TYPE_CHECKING:
    from cgmigrate.project.options import RunOptions


OWN_FILE, SHARED_FILE = "cgmigrate.toml", "pyproject.toml"


class ConfigurationError(ValueError):
    """A configuration that cannot be used; the message says which file, which key, and what is expected."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of one configuration file.

    ``file`` is its absolute path, empty if there is none; patterns are relative to ``folder``, an absolute path. The
    paths of rules and baseline are absolute. A key that is not written is None or empty.
    """

    file: str
    folder: str
    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    preview: bool = False
    docs: bool = False
    explicit: bool = False
    setters: tuple[str, ...] | None = None
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    extend_rules: tuple[str, ...] = ()
    ecosystems: tuple[tuple[str, str], ...] = ()
    format: str | None = None
    baseline: str | None = None
    prove: str = ""
    """The command line of ``--prove``."""


def merged(options: RunOptions, configuration: Configuration) -> RunOptions:
    """Return the options of the command line merged with a configuration. Raises ConfigurationError."""
    source, target = options.source or configuration.source, options.target or configuration.target
    if source and target and source > target:
        where = display_path(configuration.file) or "the command line"
        raise ConfigurationError(f"{where}: from {source} is newer than to {target}")
    # As in ruff: --select replaces what the file selects, --ignore removes from it.
    select, ignore = options.select, options.ignore
    if not select:
        select, ignore = configuration.select or (), (*configuration.ignore, *ignore)
    if select:
        select = (*select, *configuration.extend_select, *options.extend_select)
    return replace(
        options,
        source=source,
        target=target,
        select=select,
        ignore=ignore,
        fixable=options.fixable or configuration.fixable or (),
        unfixable=(*configuration.unfixable, *options.unfixable),
        preview=options.preview or configuration.preview,
        docs=options.docs or configuration.docs,
        explicit=options.explicit or configuration.explicit,
        setters=configuration.setters if options.setters is None else options.setters,
        rule_folders=(*configuration.extend_rules, *options.rule_folders),
    )
