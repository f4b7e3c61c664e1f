"""Pages of documentation in a run: which of them document the past, and how severe their diagnostics are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cgmigrate.lint.severity import Severity

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.megatron.catalogue import Catalogue
    from cgmigrate.project.inputs import InputFile

_VERSION = re.compile(
    r"v?\d+(?:\.\d+)+(?:[._-]?\w+)?|v\d+|versions?|archived?|changelogs?|release[_-]?notes", re.IGNORECASE
)
"""Names of folders whose pages are about former releases."""
_CHANGELOG = re.compile(
    r"(?:changelog|changes|history|news|release[_-]?notes|releases)(?:[._-].*)?\.\w+|.*(?:migrat|upgrad).*",
    re.IGNORECASE,
)
"""Names of pages that list changes."""


def documents_the_past(path: str) -> bool:
    """Return whether a page documents former releases, by its name and the folders around it in its checkout."""
    from cgmigrate.project.checkout import checkout_of

    real = os.path.abspath(path)
    top = checkout_of(os.path.dirname(real)) or os.getcwd()
    *folders, name = os.path.relpath(real, top).split(os.sep)
    return bool(_CHANGELOG.fullmatch(name)) or any(map(_VERSION.fullmatch, folders))


def kept_page(source: InputFile, text: str, catalogue: Catalogue) -> Document:
    """Return the document of a page whose names stay as they are."""
    from cgmigrate.documents.pages import MarkdownDocument

    return MarkdownDocument(text, os.path.abspath(source.path), catalogue, keeps_all=True)


def as_notes(diagnostics: Iterable[LintDiagnostic]) -> tuple[LintDiagnostic, ...]:
    """Return the diagnostics of a page: no job depends on one."""
    return tuple(replace(one, severity=Severity.NOTE) for one in diagnostics)
