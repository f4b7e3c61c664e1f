"""Whole outputs of commands, as a person sees them.

``python -m tests.report.test_snapshots --update`` in the root of the checkout writes the expected outputs anew.
"""

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from cgmigrate.cli.commands import main
from cgmigrate.megatron.releases import NEWEST
from tests.support.tables import table_of

SNAPSHOTS = Path(__file__).parent / "snapshots"


CASES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = table_of(__name__, "CASES")


@contextmanager
def _project(files: dict[str, str]):
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, text in files.items():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_bytes(text.encode())
            yield
        finally:
            os.chdir(before)


def output_of(name: str) -> str:
    """Return what the command of a case writes to both streams, whatever the newest release is."""
    files, words = CASES[name]
    with _project(files):
        result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    shown = f"$ cgmigrate {' '.join(words)}\n{result.stdout}--- stderr, exit status {result.exit_code}\n{result.stderr}"
    return shown.replace("\x1b", "<ESC>").replace(str(NEWEST), "<newest>")


@pytest.mark.parametrize("name", CASES)
def test_an_output_is_the_expected_one(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    assert output_of(name) == (SNAPSHOTS / f"{name}.txt").read_bytes().decode()


def test_every_expected_output_has_a_case() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(CASES)


if __name__ == "__main__" and "--update" in sys.argv:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CGMIGRATE_CACHE_DIR"] = cache
        for case in CASES:
            (SNAPSHOTS / f"{case}.txt").write_bytes(output_of(case).encode())
