"""Generated packages whose code reads YAML keys by name: executed before and after ``fix``, they set the same.

A package that is not rewritten must have a diagnostic. What old YAML files of users give to the new code is counted.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Reader, Rejected
from tests.support.capture_judges import captured_before, captured_by_newest, fix, names_old
from tests.support.generated_interfaces import Package, executed, packages
from tests.support.nightly import NIGHTLY, generated


def problems(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Return the YAML files of which code sets something that captures something else."""
    result = []
    for name, was in before.items():
        will = after[name]
        if not isinstance(was, dict) or not isinstance(will, dict):
            result += [] if isinstance(was, str) else [f"{name}: {was} became {will}"]
            continue
        old, new = ({k: v for k, v in one.items() if k in FIELDS and v is not None} for one in (was, will))
        if old == new:
            continue
        first, second = captured_before(old, Reader.CONFIG), captured_by_newest(new, Reader.CONFIG)
        if first != second and not (isinstance(first, Rejected) and isinstance(second, Rejected)):
            result.append(f"{name}: {old} captured {first}; {new} captures {second}")
    return result


@pytest.fixture
def counts(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Counter[str]]:
    result: Counter[str] = Counter()
    yield result
    with capsys.disabled():
        print(f"\n{request.node.name}:", dict(sorted(result.items())))


@settings(
    max_examples=generated(25, 100),
    derandomize=not NIGHTLY,
    deadline=None,
    phases=list(Phase) if NIGHTLY else [Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(packages())
def test_code_that_reads_keys_sets_the_same(counts: Counter[str], package: Package) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "project"
        package.write(folder)
        (folder / ".git").mkdir()
        (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
        old_configs = Path(shutil.copytree(folder / "configs", folder.parent / "users"))
        code = folder / "graphs/setup.py"
        before = executed(code, folder / "configs")
        done = fix(folder)
        wrong = problems(before, executed(code, folder / "configs"))
        assert not wrong, wrong
        assert not fix(folder).written
        reported = {checked.path for checked in done.results if checked.remaining}
        stays = [path for path in folder.rglob("*.yaml") if names_old(path.read_text())]
        assert all(str(path) in reported for path in stays), stays
        counts["with old names" if stays else "rewritten" if done.written else "nothing to rewrite"] += 1
        if any(path.endswith(".py") for path in done.written):
            users = problems(before, executed(code, old_configs))
            counts["code rewritten; an old file of a user " + ("reads otherwise" if users else "reads the same")] += 1
