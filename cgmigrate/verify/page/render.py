"""Renders the templates of this folder with Jinja2, which escapes all text that they show.

Jinja2 is imported only where a page is written: a check or a fix needs none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from cgmigrate.verify.page.escaping import visible

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """The environment of the templates. Raises ModuleNotFoundError where Jinja2 is not installed."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("cgmigrate.verify.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _finalized(value: Any) -> Any:
    """What an expression puts into the page, before it is escaped; what is HTML already stays."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def rendered(template: str, **values: object) -> str:
    """The template with its values."""
    return str(environment().get_template(template).render(**values))
