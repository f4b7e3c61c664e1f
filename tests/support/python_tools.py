"""Running cgmigrate on Python text in tests: text in, text and diagnostics out."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from cgmigrate.documents.python import PythonDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint import rules
from cgmigrate.lint.diagnostics import Applicability, Context
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.edits import apply
from tests.support.plans import Examined, examine

HEADER = "from megatron.core.transformer import TransformerConfig\n"


@dataclass
class Result:
    text: str
    after: str
    examined: Examined

    @property
    def rules(self) -> list[str]:
        return [diagnostic.rule for diagnostic in self.examined.diagnostics]

    @property
    def messages(self) -> str:
        return "\n".join(
            " ".join(
                (
                    diagnostic.rule,
                    diagnostic.message,
                    diagnostic.fix_text,
                    *(text for _, text in diagnostic.reasons),
                    *diagnostic.notes,
                )
            )
            for diagnostic in self.examined.diagnostics
        )


@cache
def _context(source: Release, target: Release) -> Context:
    return Context(source, target, rules.load(), ecosystems.load())


def run(
    text: str, *, path: str = "", source: str = "0.17", target: str = "0.19", unsafe: bool = False, exposed: bool = True
) -> Result:
    """Examine and rewrite a text.

    ``exposed`` applies fixes that are unsafe for the one reason that other code may see the object: most tests judge
    a rewrite by itself, and show all code that there is. tests/test_python_escapes.py judges that reason.
    """
    document = PythonDocument(text, path)
    context = _context(*(Release(*map(int, release.split("."))) for release in (source, target)))
    examined = examine(document, context)
    settings = rewrites(document, examined) if exposed else dict(examined.safe)
    settings |= examined.unsafe if unsafe else {}
    after = apply(text, document.edits(settings)) if settings else text
    assert not settings or document.check(after, settings) == ""
    return Result(text, after, examined)


def rewrites(document: PythonDocument, examined: Examined) -> dict[int, Settings]:
    """All fixes that are right by themselves: safe ones, and those that are unsafe since other code sees the object."""
    unsafe = examined.unsafe.items()
    return {**examined.safe, **{at: own for at, own in unsafe if _only_exposed(document, examined, at)}}


def _only_exposed(document: PythonDocument, examined: Examined, index: int) -> bool:
    """Whether a fix is unsafe only because other code may see its object."""
    reasons = {
        diagnostic.because
        for at in examined.together(index)
        for diagnostic in examined.diagnostics
        if diagnostic.site == at and diagnostic.applicability == Applicability.UNSAFE and diagnostic.because
    }
    risks = {document.risk(at) for at in examined.together(index)}
    return reasons <= {*risks, *(site.elsewhere for site in document.sites)}


def check_noop(text: str, header: str = HEADER, **options: object) -> Result:
    result = run(header + dedent(text), **options)  # type: ignore[arg-type]
    assert result.after == result.text
    return result


def check_fixed(
    before: str, after: str, header: str = HEADER, after_header: str | None = None, **options: object
) -> Result:
    result = run(header + dedent(before), **options)  # type: ignore[arg-type]
    assert result.after == (header if after_header is None else after_header) + dedent(after)
    ast.parse(result.after)
    assert_applicability_agrees(result.examined)
    again = run(result.after, **options)  # type: ignore[arg-type]
    assert again.after == result.after, "a second run changes something"
    return result


def assert_applicability_agrees(plan: Examined) -> None:
    """Every site that is rewritten has a diagnostic, and what the diagnostics of a site say is what is done."""
    assert not plan.safe.keys() & plan.unsafe.keys()
    for sites, applicability in ((plan.safe, Applicability.SAFE), (plan.unsafe, Applicability.UNSAFE)):
        for site in sites:
            said = {diagnostic.applicability for diagnostic in plan.diagnostics if diagnostic.site == site}
            assert applicability in said, f"site {site} is rewritten as {applicability}, its diagnostics say {said}"
            assert Applicability.SAFE not in said or applicability == Applicability.SAFE
