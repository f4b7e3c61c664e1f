"""What a shell offers when a person presses Tab: rule codes and releases. The rest click knows by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The codes of rules that begin so, each with what it says."""
    from click.shell_completion import CompletionItem

    from cgmigrate.lint.rules import load
    from cgmigrate.megatron.rule_data import RuleError

    try:
        rules = load()
    except RuleError:
        return []
    return [CompletionItem(r.id, help=r.summary) for r in rules.values() if r.id.startswith(incomplete.upper())]


def releases(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The known releases of megatron-core that begin so."""
    from click.shell_completion import CompletionItem

    from cgmigrate.megatron.settings import ACCEPTED

    return [CompletionItem(str(release)) for release in ACCEPTED if str(release).startswith(incomplete)]
