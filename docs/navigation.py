"""The part of zensical.toml that lists the rules, by family."""

from __future__ import annotations

import re
from collections.abc import Mapping

from indexes import FAMILIES

from cgmigrate.lint.rules import Rule

_RULES = re.compile(r"(?<=# rules, by docs/build.py\n).*?(?=      # end of the rules\n)", re.DOTALL)


def with_rules(configuration: str, rules: Mapping[str, Rule]) -> str:
    """Return the configuration of the site with every rule in its navigation."""
    lines = []
    for kind, title in FAMILIES.items():
        of_kind = [rule for rule in rules.values() if rule.kind is kind]
        if of_kind:
            pages = "".join(f'        {{ "{rule.id} {rule.name}" = "rules/{rule.id}.md" }},\n' for rule in of_kind)
            lines.append(f'      {{ "{title}" = [\n{pages}      ] }},\n')
    text, count = _RULES.subn("".join(lines), configuration)
    assert count == 1, "the configuration of the site has a place for the rules"
    return text
