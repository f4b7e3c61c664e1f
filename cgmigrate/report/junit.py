"""JUnit XML for Jenkins and GitLab: a suite for each file with diagnostics, a case for each diagnostic.

The case of an error or a warning fails, that of a note passes.

Many pipelines fail on a report without cases, so a clean run has one case that passes. A path that could not be read is
a case with an error, so that a run that read nothing does not look clean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from cgmigrate.lint.severity import Severity
from cgmigrate.report import Report, Reported
from cgmigrate.report.full import one
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from cgmigrate.project.inputs import InputError

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return the document."""
    suites = [_suite(path, list(diagnostics)) for path, diagnostics in groupby(report.diagnostics, lambda r: r.named)]
    unread = [input_error for input_error in report.input_errors if input_error.missing]
    if unread:
        suites.append(_suite_of_unread(unread))
    if not suites:
        suites = [_counts("testsuite", "cgmigrate", 1, 0, 0)]
        ElementTree.SubElement(suites[0], "testcase", name="No diagnostics", classname="cgmigrate")
    total = [sum(int(suite.attrib[key]) for suite in suites) for key in ("tests", "failures", "errors")]
    root = _counts("testsuites", "cgmigrate", *total)
    root.extend(suites)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(tag: str, name: str, tests: int, failures: int, errors: int) -> ElementTree.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors)}
    return ElementTree.Element(tag, {"name": _legal(in_line(name)), **counts})


def _suite(path: str, diagnostics: Sequence[Reported]) -> ElementTree.Element:
    failures = sum(reported.diagnostic.severity is not Severity.NOTE for reported in diagnostics)
    suite = _counts("testsuite", path, len(diagnostics), failures, 0)
    suite.set("package", "org.cgmigrate")
    for reported in diagnostics:
        # The identity: GitLab keeps only the first of several cases with the same name, and compares two runs by it.
        name = in_line(f"{reported.diagnostic.rule} {reported.diagnostic.place}".rstrip())
        classname = in_line(re.sub(r"\.\w+$", "", path))
        case = ElementTree.SubElement(
            suite, "testcase", name=_legal(f"org.cgmigrate.{name}"), classname=_legal(classname)
        )
        place = f"line {reported.start.line}, column {reported.start.column}"
        message = _legal(f"{place}, {reported.diagnostic.message}")
        text = _legal(one(reported).rstrip("\n"))
        if reported.diagnostic.severity is Severity.NOTE:
            ElementTree.SubElement(case, "system-out").text = text
            continue
        failure = ElementTree.SubElement(case, "failure", type=reported.diagnostic.severity, message=message)
        failure.text = text
    return suite


def _suite_of_unread(input_errors: Sequence[InputError]) -> ElementTree.Element:
    suite = _counts("testsuite", "paths that could not be read", len(input_errors), 0, len(input_errors))
    for input_error in input_errors:
        case = ElementTree.SubElement(suite, "testcase", name=_legal(in_line(input_error.path)), classname="cgmigrate")
        ElementTree.SubElement(case, "error", type="error", message=_legal(input_error.reason))
    return suite


def _legal(text: str) -> str:
    """Return the text without the characters that XML cannot contain, such as control characters."""
    return _NOT_XML.sub("\ufffd", in_text(text))
