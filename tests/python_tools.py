"""Running cgmigrate on Python text in tests: text in, text and findings out."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from cgmigrate import ecosystems, rules
from cgmigrate.documents.python import PythonDocument
from cgmigrate.edits import apply
from cgmigrate.engine import examine
from cgmigrate.examination import Context, Examination
from cgmigrate.settings import Release

HEADER = "from megatron.core.transformer import TransformerConfig\n"


@dataclass
class Result:
    text: str
    after: str
    examined: Examination

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.examined.findings]

    @property
    def told(self) -> str:
        return "\n".join(
            " ".join(
                (finding.rule, finding.message, finding.fix, *(text for _, text in finding.reasons), *finding.notes)
            )
            for finding in self.examined.findings
        )


@cache
def _context(source: Release, target: Release) -> Context:
    return Context(source, target, rules.load(), ecosystems.load())


def run(text: str, *, path: str = "", source: str = "0.17", target: str = "0.19", unsafe: bool = False) -> Result:
    document = PythonDocument(text, path)
    context = _context(*(Release(*map(int, release.split("."))) for release in (source, target)))
    examined = examine(document, context)
    wanted = {**examined.safe, **(examined.unsafe if unsafe else {})}
    after = apply(text, document.edits(wanted)) if wanted else text
    assert not wanted or document.check(after, wanted) == ""
    return Result(text, after, examined)


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
    again = run(result.after, **options)  # type: ignore[arg-type]
    assert again.after == result.after, "a second run changes something"
    return result
