"""Where the project and the page of a rule are: at the addresses of the package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from cgmigrate.megatron.rule_data import rules_folder


def public_page_of(code: str) -> str:
    """Return the address of a rule's page on the site of the documentation; empty without a site."""
    site = _addresses().get("documentation", "")
    known = site and any(rules_folder().glob(f"{code}-*.yaml"))
    return f"{site.rstrip('/')}/rules/{code}.html" if known else ""


def home() -> str:
    """Return the address of the project: its home page, its documentation or its repository; empty without any."""
    addresses = _addresses()
    return next((addresses[one] for one in ("homepage", "documentation", "repository") if one in addresses), "")


@cache
def _addresses() -> Mapping[str, str]:
    """Return the addresses that the installed package names, by their labels in lower case."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        addresses = metadata("cgmigrate").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    pairs = (address.partition(",") for address in addresses)
    return {label.strip().lower(): url.strip() for label, _, url in pairs}
