"""The page of what is covered: each rule that it names reports what the entry says, in a case of the fixtures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from cgmigrate.lint.rules import load
from cgmigrate.megatron.layer_classes import GPT, HYBRID
from tests.support.paths import FIXTURES, ROOT
from tests.support.scripts import module_at

PARTS = {"entries": 273, "stumbles": 44, "pitfalls": 14, "proxies": 8}
"""How many each part has."""


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    return module_at(ROOT / "docs/coverage_pages.py")


@pytest.mark.parametrize(("part", "count"), PARTS.items())
def test_every_entry_is_there_once(pages: ModuleType, part: str, count: int) -> None:
    ids = Counter(one for entry in pages.entries(part) for one in entry.ids)
    assert sum(ids.values()) == count
    assert max(ids.values()) == 1


@pytest.mark.parametrize("part", PARTS)
def test_an_entry_has_a_case_or_a_reason(pages: ModuleType, part: str) -> None:
    for entry in pages.entries(part):
        assert sum(map(bool, (entry.proof, entry.why, entry.explained))) == 1, entry.ids


def test_lines_of_explain_are_those_of_the_facts_and_the_layers(pages: ModuleType) -> None:
    # The tests of `explain` show each where it applies.
    facts = yaml.safe_load((ROOT / "rules/advice/captures.yaml").read_text(encoding="utf-8"))
    lines = [*(fact["text"] for fact in facts), *(one.name for one in (*GPT, *HYBRID))]
    explained = [entry.explained for part in PARTS for entry in pages.entries(part) if entry.explained]
    assert len(explained) >= 5
    assert not [text for text in explained if not any(line.startswith(text) for line in lines)]


@pytest.mark.parametrize("part", PARTS)
def test_each_case_shows_that_its_rule_reports_something(pages: ModuleType, part: str) -> None:
    cases = {case for entry in pages.entries(part) for case in entry.proof}
    assert cases
    for case in cases:
        expected = FIXTURES / "rules" / case / "expected.txt"
        assert expected.is_file(), case
        # `test_fixtures` runs `check` and compares.
        lines = [line for line in expected.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert Path(case).parts[0] in {line.split()[1] for line in lines}, case


def test_the_page_names_the_rules_that_exist(pages: ModuleType) -> None:
    rules = load()
    codes = {code for part in PARTS for entry in pages.entries(part) for code in entry.rules}
    assert codes <= rules.keys()
    page = pages.coverage_page(rules)
    assert all(f"[{code}](rules/{code}.md)" in page for code in codes)
    assert "not yet" not in page
