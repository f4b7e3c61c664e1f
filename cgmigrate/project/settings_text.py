"""The settings in effect for a folder, as text of a configuration file."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.project.configuration import Configuration, merged
from cgmigrate.project.options import FORMATS, RunOptions
from cgmigrate.project.paths import display_path


def settings_text(configuration: Configuration, options: RunOptions) -> str:
    """Return the settings in effect for a folder as TOML that its configuration file could contain."""
    settings = merged(options, configuration)
    source, target = settings.source, settings.target
    lines = [f"# {display_path(configuration.file) or 'no configuration file'}"]
    lines += [
        f'from = "{source}"' if source else f"# from: the nearest pin of megatron-core, else {LAST_OLD}",
        f'to = "{target}"' if target else f"# to: the nearest pin of megatron-core, else {NEWEST}",
        f"select = {_list(settings.select)}" + ("" if settings.select else "  # all rules"),
        f"ignore = {_list(settings.ignore)}",
        f"exclude = {_list(options.exclude or configuration.exclude)}",
        f"extend-exclude = {_list(configuration.extend_exclude)}",
        f"extend-rules = {_list(map(display_path, settings.rule_folders))}",
        f"output-format = {_string(configuration.format or FORMATS[0])}",
    ]
    lines += [f"{name} = {_list(codes)}" for name in ("fixable", "unfixable") if (codes := getattr(settings, name))]
    baseline = options.baseline or configuration.baseline
    lines.append(f"baseline = {_string(display_path(os.path.abspath(baseline)))}" if baseline else "# baseline: none")
    tables = (("per-file-ignores", configuration.per_file_ignores), ("ecosystems", configuration.ecosystems))
    for name, table in tables:
        lines += [f"[{name}]"] if table else []
        lines += [f"{_string(k)} = {_string(v) if isinstance(v, str) else _list(v)}" for k, v in table]
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    import json

    # JSON's strings are TOML's basic strings.
    return json.dumps(text, ensure_ascii=False)


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(map(_string, items))}]"
