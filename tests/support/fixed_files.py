"""What ``fix`` makes of one file: its safe fixes, and runs of the command on a project that has only this file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.lint.plan import plan_alone
from cgmigrate.text.spans import Span
from tests.support.yaml_judges import context

Run = Callable[..., Result]


def with_safe_fixes(document: Document) -> str:
    """Return the text of a document with all safe fixes."""
    plan = plan_alone(Path(document.path).name, document, context())
    edited = plan.edited([fix.id for fix in plan.fixes if fix.applicability is Applicability.SAFE])
    return edited[0].text if edited else document.text


def known_spans(document: Document) -> list[Span]:
    """Return the parts of a text of which a document says something."""
    written = [use.span for site in document.sites for use in site.written]
    return [*written, *(one.span for one in document.problems), *(use.span for use, _ in document.skipped)]


def check_passes(path: Path, text: str, cgmigrate: Run) -> None:
    """Check that nothing is reported of a text, and that ``fix`` leaves it."""
    path.write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == text


def check_rewritten(path: Path, before: str, after: str, cgmigrate: Run) -> None:
    """Check that a text is reported, what ``fix`` writes, and that nothing is left to report or to write."""
    path.write_bytes(before.encode())
    assert cgmigrate("check", ".").exit_code == 1
    result = cgmigrate("fix", ".")
    assert path.read_bytes().decode() == after, result.output
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output
    cgmigrate("fix", ".")
    assert path.read_bytes().decode() == after
