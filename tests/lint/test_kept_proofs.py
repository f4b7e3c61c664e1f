"""What flow proves is kept for the next command, by all that it depends on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.lint import kept_proofs, planning
from cgmigrate.proof.flow.proofs import Proofs
from tests.support.checkouts import project_of
from tests.support.paths import ROOT

RELEASES = ("--from", "0.17", "--to", "0.19")


def _fixes(result: Any) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("Fixes:")]


@pytest.fixture
def proofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A project of recipes as the working directory; the list has an element for each proof that was made."""
    monkeypatch.setattr(kept_proofs, "_LEAST_SECONDS", 0)
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(project_of(ROOT / "tests/fixtures/linking/base-recipe", tmp_path / "work"))
    made: list[int] = []
    accounted = Proofs.accounted
    monkeypatch.setattr(Proofs, "accounted", lambda self: (made.append(1), accounted(self))[1])
    return made


def test_commands_share_what_was_proved(proofs: list[int], cgmigrate: Callable[..., Any]) -> None:
    first = cgmigrate("fix", "--diff", *RELEASES, ".")
    count = len(proofs)
    again = cgmigrate("fix", "--diff", *RELEASES, ".")
    check = cgmigrate("check", *RELEASES, ".")

    assert count and "\n+" in first.stdout
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)
    assert _fixes(check) == _fixes(first) != []
    assert len(proofs) == count


@pytest.mark.parametrize("name", ["megatron/bridge/recipes/base.py", "new.py", ".gitignore", "notes.txt"])
def test_another_content_of_any_file_is_proved_again(
    proofs: list[int], cgmigrate: Callable[..., Any], name: str
) -> None:
    cgmigrate("fix", "--diff", *RELEASES, ".")
    count = len(proofs)
    with open(name, "a", encoding="utf-8") as file:
        file.write("\n# more\n")
    cgmigrate("fix", "--diff", *RELEASES, ".")

    assert len(proofs) > count


@pytest.mark.parametrize("options", [("--from", "0.16", "--to", "0.19"), (*RELEASES, "--preview")])
def test_other_options_are_proved_again(
    proofs: list[int], cgmigrate: Callable[..., Any], options: tuple[str, ...]
) -> None:
    cgmigrate("fix", "--diff", *RELEASES, ".")
    count = len(proofs)
    cgmigrate("fix", "--diff", *options, ".")

    assert len(proofs) > count


def test_a_record_that_others_may_write_or_that_is_damaged_is_not_used(
    proofs: list[int], cgmigrate: Callable[..., Any], tmp_path: Path
) -> None:
    first = cgmigrate("fix", "--diff", *RELEASES, ".")
    record = next((tmp_path / "cache" / "objects").glob("*.json"))
    for damage in (
        lambda: record.chmod(0o666),
        lambda: record.write_text("{"),
        lambda: record.write_text('{"components": 1}'),
    ):
        count = len(proofs)
        damage()
        again = cgmigrate("fix", "--diff", *RELEASES, ".")
        assert again.stdout == first.stdout
        assert len(proofs) > count


def test_a_large_checkout_is_followed_by_check_once_fix_has_proved_it(
    proofs: list[int], cgmigrate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_MOST_FILES_OF_CODE", 1)

    before = cgmigrate("check", *RELEASES, ".")
    fix = cgmigrate("fix", "--diff", *RELEASES, ".")
    after = cgmigrate("check", *RELEASES, ".")

    assert "not analysed" in before.stderr
    assert "not analysed" not in after.stderr
    assert _fixes(after) == _fixes(fix) != []


def test_few_results_are_kept(proofs: list[int], cgmigrate: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "objects"
    folder.mkdir(parents=True, mode=0o700)
    for number in range(30):
        (folder / f"{number}.json").touch(0o600)
        os.utime(folder / f"{number}.json", (number, number))
    cgmigrate("fix", "--diff", *RELEASES, ".")

    assert proofs
    assert len(list(folder.iterdir())) == 16 and (folder / "29.json").exists()
