"""What a shell offers on Tab: rule codes and releases. click completes the rest by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def codes(prefix: str) -> list[CompletionItem]:
    """Return the codes of rules that begin with ``prefix``, each with the rule's summary."""
    from click.shell_completion import CompletionItem

    from cgmigrate.lint.rules import load
    from cgmigrate.megatron.rule_data import RuleError

    try:
        rules = load()
    except RuleError:
        return []
    return [CompletionItem(r.id, help=r.summary) for r in rules.values() if r.id.startswith(prefix.upper())]


def settings(prefix: str) -> list[CompletionItem]:
    """Return the settings of the catalogue whose names begin with ``prefix``, each with its summary."""
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.catalogue import load

    known = load().settings.values()
    return [CompletionItem(one.name, help=one.summary) for one in known if prefix and one.name.startswith(prefix)]


def releases(prefix: str) -> list[CompletionItem]:
    """Return the known releases of megatron-core that begin with ``prefix``."""
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.releases import ACCEPTED

    return [CompletionItem(str(release)) for release in ACCEPTED if str(release).startswith(prefix)]
