"""What to know of what a site captures: facts of ``rules/advice`` for which nothing has to be written differently."""

from __future__ import annotations

from functools import cache

from cgmigrate.lint.conditions import Condition, condition_of
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import load_yaml, rules_folder
from cgmigrate.megatron.settings import Settings


def advice_on(case: SiteCase, settings: Settings, target: Release) -> tuple[str, ...]:
    """Return the facts that apply to a site with these settings, in the order of their files."""
    state = case.state(settings, target)
    return tuple(text for condition, text in _facts() if condition(state) is True)


@cache
def _facts() -> tuple[tuple[Condition, str], ...]:
    paths = sorted((rules_folder() / "advice").glob("*.yaml"))
    entries = [entry for path in paths for entry in load_yaml(path.read_text(encoding="utf-8"), str(path))]
    return tuple((condition_of(entry["when"]), entry["text"]) for entry in entries)
