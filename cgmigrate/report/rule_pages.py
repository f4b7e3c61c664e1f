"""Where the page of a rule is: on the site that the package names, or beside the package in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cgmigrate.megatron.rule_data import rules_folder


@cache
def page_of(code: str) -> str:
    """Return the address of a rule's page; empty for a team's own rule, and where no page is known."""
    if not any(rules_folder().glob(f"{code}-*.yaml")):
        return ""
    if site := _site():
        return f"{site.rstrip('/')}/rules/{code}.html"
    local = Path(__file__).parents[2] / "docs" / "rules" / f"{code}.md"
    return local.as_uri() if local.is_file() else ""


@cache
def _site() -> str:
    """Return the address of the documentation that the installed package names; empty if it names none."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        addresses = metadata("cgmigrate").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    pairs = (address.partition(",") for address in addresses)
    return next((url.strip() for label, _, url in pairs if label.strip().lower() == "documentation"), "")
