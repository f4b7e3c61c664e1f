"""The prose check of ci/prose: where it looks, and what it allows."""

import pytest

from tests.support.paths import ROOT
from tests.support.scripts import module_at


@pytest.fixture(scope="module")
def check():
    return module_at(ROOT / "ci/prose/check.py")


def uses(check, source, path="cgmigrate/lint/plan.py"):
    return [(match.line, match.use) for match in check.matches_of(path, source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("files_found = 1\n", [(1, "files_found")]),
        ("class FoundSite:\n    pass\n", [(1, "FoundSite")]),
        ("# what is at\n# hand\nx = 1\n", [(1, "at # hand")]),
        ('"""One.\n\nNobody is\ntold.\n"""\n', [(4, "told")]),
        ('x = f"{x} is left out"\n', [(1, "left out")]),
        ("except_ = FileNotFoundError  # the file was not found\n", []),
        ("from hypothesis import given\n@given(1)\ndef f(): ...\n", []),
        ("foundation = withheld = 1\n", []),
        ("# -h stands for help; a here-document\n", []),
    ],
)
def test_names_comments_and_strings_of_code(check, source, expected):
    assert uses(check, source) == expected


def test_names_of_tests_are_sentences_and_their_strings_are_input(check):
    source = 'def test_the_file_is_found():\n    """Told."""\n    assert "told"\n'
    assert uses(check, source, "tests/lint/test_x.py") == [(2, "Told")]


def test_prose(check):
    assert uses(check, "A line.\nIt cannot be\ntold.\n", "docs/x.md") == [(3, "told"), (2, "cannot be told")]


def test_the_path_of_a_file_is_a_name(check):
    assert uses(check, "", "cgmigrate/cli/telling.py") == [(1, "cgmigrate_cli_telling_py")]
