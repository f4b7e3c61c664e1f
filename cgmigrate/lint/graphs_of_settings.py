"""What settings outside of the capture model capture, each in a graph of its own, in words."""

from __future__ import annotations

from collections.abc import Iterator

from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.setting import Setting
from cgmigrate.megatron.settings import Settings


def graphs_of_settings(case: SiteCase, after: Settings, target: Release) -> Iterator[str]:
    """Yield what each setting that is on captures; ``after`` are the settings in effect once fixes are written."""
    catalogue = case.document.catalogue
    for setting in (catalogue[name] for name in sorted(case.before)):
        if setting.graph_of and case.before[setting.name] is True and after.get(setting.name) is True:
            was, will = (_outcome(setting, release) for release in (case.source, target))
            if was == will:
                yield f"{case.source}: {was} -> {target}: the same"
            else:
                yield f"{case.source}: {was} -> {target}: {will} (without changes)"


def _outcome(setting: Setting, release: Release) -> str:
    if release < setting.since:
        return f"does not capture {setting.graph_of}"
    return f"{'fails when it captures' if release in setting.graph_fails_in else 'captures'} {setting.graph_of}"
