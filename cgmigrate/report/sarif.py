"""SARIF 2.1.0, as GitHub's code scanning and editors read it.

Paths are relative to the root of the repository: GitHub hides a diagnostic whose file it cannot match. Only safe fixes
are included, since a reader of SARIF may apply every fix.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cgmigrate import __version__
from cgmigrate.lint.severity import Severity
from cgmigrate.report import Place, Related, Reported, RunReport
from cgmigrate.report.explain import rule_markdown, rule_text
from cgmigrate.report.fix_words import capital, fix_words
from cgmigrate.report.rule_pages import home, public_page_of
from cgmigrate.text.escaping import in_json

if TYPE_CHECKING:
    from cgmigrate.lint.rules import Rule
    from cgmigrate.project.inputs import InputError

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_SEMANTIC = re.compile(r"\d+\.\d+\.\d+")


def render(report: RunReport) -> str:
    """Return the document, with a single run."""
    codes = sorted({reported.diagnostic.rule for reported in report.diagnostics})
    driver: dict[str, Any] = {"name": "cgmigrate", "version": __version__}
    if _SEMANTIC.fullmatch(__version__):
        # A version between two releases (`0.2.1.dev3+g1a2b3c4`) is none.
        driver["semanticVersion"] = __version__
    if address := home():
        driver["informationUri"] = address
    run = {
        "tool": {"driver": {**driver, "rules": [_rule(report.rules[code]) for code in codes]}},
        "invocations": [_invocation(report)],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository"}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(reported, codes) for reported in report.diagnostics],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    page = public_page_of(rule.id)
    return {
        "id": rule.id,
        "name": rule.name,
        **({"helpUri": page} if page else {}),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation.strip()},
        "help": {"text": rule_text(rule), "markdown": rule_markdown(rule)},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {
            "problem.severity": "recommendation" if rule.severity is Severity.NOTE else rule.severity,
            "precision": "high",
            "tags": ["cuda-graphs", "megatron-core"],
        },
    }


def _invocation(report: RunReport) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": not report.failed}
    if report.input_errors:
        invocation["toolExecutionNotifications"] = [_notification(input_error) for input_error in report.input_errors]
    return invocation


def _notification(input_error: InputError) -> dict[str, Any]:
    return {
        "level": "error" if input_error.missing else "warning",
        "message": {"text": f"{input_error.path}: {input_error.reason}"},
    }


def _result(reported: Reported, codes: Sequence[str]) -> dict[str, Any]:
    diagnostic, file = reported.diagnostic, _file(reported)
    is_offered = bool(reported.applied and reported.replacements and not reported.other_files)
    # A fix that is no part of the document is named in words.
    words = (*(() if is_offered else fix_words(reported)), *diagnostic.remarks)
    lines = [diagnostic.message, *(f"{capital(label)}: {text}" for label, text in words)]
    result = {
        "ruleId": diagnostic.rule,
        "ruleIndex": codes.index(diagnostic.rule),
        "level": diagnostic.severity,
        "message": {"text": "\n".join(lines)},
        "locations": [{"physicalLocation": {"artifactLocation": file, "region": _region(reported)}}],
        "partialFingerprints": {"cgmigrate/v2": reported.fingerprint},
    }
    if reported.related:
        result["relatedLocations"] = [_related(number, one) for number, one in enumerate(reported.related, 1)]
    if is_offered:
        replacements = [
            {"deletedRegion": _between(r.start, r.end)} | ({"insertedContent": {"text": r.text}} if r.text else {})
            for r in reported.replacements
        ]
        change = {"artifactLocation": file, "replacements": replacements}
        result["fixes"] = [{"description": {"text": reported.whole_fix}, "artifactChanges": [change]}]
    return result


def _related(number: int, one: Related) -> dict[str, Any]:
    return {
        "id": number,
        "physicalLocation": {"artifactLocation": _file(one), "region": _region(one)},
        "message": {"text": f"{one.rule}: {one.message}"},
    }


def _file(reported: Reported | Related) -> dict[str, str]:
    if reported.in_repository is None:
        return {"uri": Path(os.path.abspath(reported.path)).as_uri()}
    return {"uri": quote(reported.in_repository), "uriBaseId": _ROOT}


def _region(reported: Reported | Related) -> dict[str, int]:
    if reported.start == reported.end:
        return {"startLine": reported.start.line}
    return _between(reported.start, reported.end)


def _between(start: Place, end: Place) -> dict[str, int]:
    return {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}
