"""Python code that a release of Megatron-LM no longer takes: which imports, names and calls are reported."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import upgrade_rules
from tests.support.tables import from_table

KINDS = (ProblemKind.GONE_NAME, ProblemKind.CHANGED_CALL, ProblemKind.MOVED_ARGUMENT)


def messages(code: str, path: str = "/nowhere/train.py", minor: int = 16) -> list[str]:
    document = PythonDocument(textwrap.dedent(code), path, catalogue.load((upgrade_rules(),)))
    problems = [
        one for one in document.problems if one.kind in KINDS and one.concerns(Release(0, minor), Release(0, 19))
    ]
    return [one.message + (" [fix]" if one.replacement else "") for one in problems]


@from_table
def test_code_that_goes_on_working_or_is_for_several_releases(code: str) -> None:
    assert messages(code) == []


@from_table
def test_code_that_a_release_does_not_take(code: str, expected: list[str] | None) -> None:
    if expected is None:
        assert any("`MambaModel` of megatron-core" in one for one in messages(code))
    else:
        assert messages(code) == expected


@pytest.mark.parametrize("folder", ["", "src"])
def test_a_package_of_the_project_is_its_own(tmp_path: Path, folder: str) -> None:
    own = tmp_path / folder / "megatron/training/utils.py"
    own.parent.mkdir(parents=True)
    own.write_text("def unwrap_model(): ...\n")
    (tmp_path / "tests").mkdir()
    code = "from megatron.training.utils import unwrap_model\n"
    assert messages(code, str(tmp_path / "tests/test_a.py")) == []
    assert messages(code) != []


REFUSED = (
    "`pretrain` of megatron-core 0.16 calls `{}` with other arguments: it has no parameter `config`, `pg_collection`"
)


@from_table
def test_a_function_that_is_passed_on_is_compared_with_how_it_is_called(code: str, shown: str) -> None:
    refused = [one for one in messages(code, minor=15) if "with other arguments" in one]
    assert refused == ([REFUSED.format(shown)] if shown else [])


def test_a_call_that_is_written_for_the_target_is_right() -> None:
    code = "from megatron.training import pretrain\npretrain(cfg, data, kind, step, model_provider=provider)\n"
    assert messages(code) == []
