"""The part of zensical.toml that lists the rules, by code."""

from __future__ import annotations

import re
from collections.abc import Mapping

from indexes import FAMILIES

from cgmigrate.lint.rules import Rule

_RULES = re.compile(r"(?<=# rules, by docs/build.py\n).*?(?=      # end of the rules\n)", re.DOTALL)


def with_rules(configuration: str, rules: Mapping[str, Rule]) -> str:
    """Return the configuration of the site with every rule in its navigation."""
    lines = []
    for code, title in FAMILIES.items():
        of_family = [rule for rule in rules.values() if rule.id.startswith(code)]
        pages = "".join(f'        {{ "{rule.id} {rule.name}" = "rules/{rule.id}.md" }},\n' for rule in of_family)
        lines.append(f'      {{ "{code} {title}" = [\n{pages}      ] }},\n')
    text, count = _RULES.subn("".join(lines), configuration)
    assert count == 1, "the configuration of the site has a place for the rules"
    return text
