"""Patterns agree with git, whatever they hold, and no pattern takes long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cgmigrate.project.ignore_files import Patterns
from cgmigrate.project.patterns import MAX_LENGTH, PatternError, parse, valid
from tests.support.nightly import examples
from tests.support.tables import table_of

PIECES = table_of(__name__, "PIECES")
PIECES += [
    "\\*",
    "\\",
    " ",
    "!",
    "#",
    ".",
    "-",
    "[[:nothing:]]",
    "[c-a]",
    "***",
    "[\\]a]",
    "[a\\-c]",
    "/**/",
    "**/",
    "/**",
]
NAMES = st.lists(
    st.sampled_from(["a", "b", "ab", "ba", "a.b", "c", "-", "*", "A", "a b", "]", "!", "#a", "a*b"]),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patterns")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def ignored(checkout: Path, lines: list[str], paths: list[str]) -> list[str]:
    """The paths that git ignores, none of which exists."""
    (checkout / ".gitignore").write_text("".join(line + "\n" for line in lines))
    names = "".join(path + "\0" for path in paths)
    done = subprocess.run(
        ["git", "-c", "core.ignorecase=false", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=checkout,
        input=names.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return [path for path in done.stdout.decode().split("\0") if path]


@settings(deadline=None, max_examples=examples(300), derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join), min_size=1, max_size=3),
    st.lists(NAMES.map("/".join), min_size=1, max_size=12, unique=True),
)
@example(["a*a*b"], ["aab", "aaab", "ab", "a/a/b", "acacb", "acacbc"])
@example(["a/**/b", "!a/c/b"], ["a/b", "a/c/b", "a/c/d/b", "x/a/b"])
@example(["**/a/**/b/**/c"], ["a/b/c", "a/a/b/x/b/c", "x/a/b/x/c", "a/b/c/d"])
@example(["a/**", "**"], ["a", "a/b", "b"])
def test_patterns_agree_with_git(checkout: Path, lines: list[str], paths: list[str]) -> None:
    covered = Patterns.of(valid(lines))
    assert [path for path in paths if covered.covers(path)] == ignored(checkout, lines, paths)


HOSTILE = {
    "stars": ("*a" * 200 + "*b", "a" * 255),
    "stars in folders": ("/".join(["*a*a*a*b"] * 20), "/".join(["a" * 100] * 20)),
    "folders": ("**/a/" * 200 + "b", "/".join(["a"] * 1000)),
    "both": ("**/*a*a*a*b/" * 50 + "c", "/".join(["a" * 50] * 60)),
    "questions": ("*?*?*?*?*?*?*?*?*?*?*?b", "a" * 255),
    "classes": ("*[!b]" * 100 + "*b", "a" * 255),
    "only stars": ("*" * 4000 + "b", "a" * 255),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pattern_ends(name: str) -> None:
    pattern, path = HOSTILE[name]
    assert Patterns([pattern]).covers(path) is False
    assert Patterns([pattern]).covers(path.rpartition("/")[0] + "/x") is False


@pytest.mark.parametrize("line", ["!", "/", "//", "!/", "a" * (MAX_LENGTH + 1)])
def test_a_pattern_that_matches_no_path(line: str) -> None:
    with pytest.raises(PatternError):
        parse(line)
    assert list(valid([line, "a"])) == [parse("a")]


@pytest.mark.parametrize("line", ["", " ", "# a", "#"])
def test_a_line_without_a_pattern(line: str) -> None:
    assert parse(line) is None


def test_a_name_that_is_not_utf8_is_matched() -> None:
    assert Patterns(["*.yaml"]).covers(os.fsdecode(b"\xff.yaml"))
