"""Projects that support releases of megatron-core before 0.18 as well are not moved to the new names alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.linking.release_shims import release_shim
from cgmigrate.megatron.catalogue import load
from cgmigrate.project.file_search import FileSearch
from tests.support.files import write
from tests.support.tables import from_table

Command = Callable[..., Result]

SCOPE = "model:\n  megatron:\n    cuda_graph_impl: local\n    cuda_graph_scope: attn\n"
ENABLE = "model:\n  megatron:\n    enable_cuda_graph: true\n"
CODE = "from megatron.core.transformer import TransformerConfig\n\n\ndef config():\n    return TransformerConfig({})\n"
LIBRARY = '[build-system]\nrequires = ["hatchling"]\n\n[project]\nname = "library"\ndependencies = ["{}"]\n'
SHIM = """\
try:
    from megatron.core.transformer.enums import CudaGraphModule
except ImportError:
    CudaGraphModule = None
"""
RANGE = "megatron-core>=0.17"


def fix(cgmigrate: Command, *words: str) -> tuple[str, str]:
    """Return the text of a.yaml after a fix, and the report."""
    result = cgmigrate("fix", *words, ".")
    return Path("a.yaml").read_text(), result.stdout + result.stderr


@from_table
def test_a_range_with_old_releases_is_one_question(
    project: Path, cgmigrate: Command, name: str, text: str, place: str
) -> None:
    write(name, text.replace("{}", RANGE))
    write("a.yaml", SCOPE)
    write("b.yaml", SCOPE)
    after, report = fix(cgmigrate)
    assert after == SCOPE
    question = f"{place} ({RANGE}) admits megatron-core 0.17, which ignores or rejects the new settings"
    assert f"First: {question}; 2 fixes wait for it\n" in report
    assert f"blocked by: {question}\nhelp: to drop the releases before 0.18, add `--raise-pin`" in report
    assert "(see a.yaml:4)\n" in report
    assert "Next: cgmigrate fix --raise-pin --diff .\n" in report
    # This answers it.
    after, report = fix(cgmigrate, "--raise-pin")
    assert after == SCOPE.replace("cuda_graph_scope", "cuda_graph_modules")
    assert Path(name).read_text() == text.replace("{}", "megatron-core>=0.18")
    assert fix(cgmigrate)[0] == after


@from_table
def test_a_requirement_is_raised_or_left_to_a_person(
    project: Path, cgmigrate: Command, before: str, after: str | None
) -> None:
    write("requirements.txt", f"torch\n{before}  # why\n")
    write("a.yaml", SCOPE)
    text, report = fix(cgmigrate, "--raise-pin")
    assert "cuda_graph_modules" in text
    assert Path("requirements.txt").read_text() == f"torch\n{after or before}  # why\n"
    assert (f"note: raise requirements.txt:2 ({before}) to >=0.18 by hand\n" in report) == (after is None)


def test_what_remains_keeps_its_release_behind_a_raised_requirement(project: Path, cgmigrate: Command) -> None:
    write("requirements.txt", f"{RANGE}\n")
    write("a.yaml", SCOPE)
    write("b.yaml", "model:\n  megatron:\n    cuda_graph_impl: local\n    cuda_graph_scope: ${oc.env:SCOPE}\n")
    assert "what remains was written for 0.17: give later runs `--from 0.17`" in fix(cgmigrate, "--raise-pin")[1]


def test_poetry_has_requirements_of_its_own_form(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", '[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\nmegatron-core = ">=0.17"\n')
    write("a.yaml", SCOPE)
    assert fix(cgmigrate)[0] == SCOPE


def application(project: Path, kind: str) -> None:
    """Write an application whose release is decided."""
    pyproject = LIBRARY.replace("{}", RANGE)
    lock = 'version = 1\n\n[[package]]\nname = "megatron-core"\nversion = "0.19.2"\n'
    files = {
        "lock": {"pyproject.toml": pyproject, "uv.lock": lock},
        "exact": {"pyproject.toml": LIBRARY.replace("{}", "megatron-core==0.19.2")},
        "raised": {"pyproject.toml": LIBRARY.replace("{}", "megatron-core>=0.18")},
        "git revision": {
            "pyproject.toml": pyproject + '[tool.uv.sources]\nmegatron-core = {git = "https://x/y", rev = "abc"}\n'
        },
        "no pin": {},
    }
    for name, text in files[kind].items():
        write(name, text)


@pytest.mark.parametrize("kind", ["lock", "exact", "raised", "git revision", "no pin"])
def test_an_application_is_migrated(project: Path, cgmigrate: Command, kind: str) -> None:
    application(project, kind)
    write("a.yaml", SCOPE)
    assert fix(cgmigrate)[0] == SCOPE.replace("cuda_graph_scope", "cuda_graph_modules")


@pytest.mark.parametrize("words", [("--from", "0.17", "--to", "0.19"), ("--to", "0.19")])
def test_a_target_on_the_command_line_decides(project: Path, cgmigrate: Command, words: tuple[str, ...]) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", RANGE))
    write("lib/compat.py", SHIM)
    write("a.yaml", SCOPE)
    assert "cuda_graph_modules" in fix(cgmigrate, *words)[0]


def test_a_target_in_the_configuration_decides(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", RANGE) + '[tool.cgmigrate]\nfrom = "0.17"\nto = "0.19"\n')
    write("a.yaml", SCOPE)
    assert "cuda_graph_modules" in fix(cgmigrate)[0]


def test_a_fix_that_every_release_reads_is_written(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", RANGE))
    write("a.yaml", ENABLE)
    assert fix(cgmigrate)[0] == "model:\n  megatron:\n    cuda_graph_impl: local\n"


def test_a_release_without_the_implementation_withholds_that_fix_too(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", "megatron-core>=0.14"))
    write("a.yaml", ENABLE)
    after, report = fix(cgmigrate)
    assert after == ENABLE
    assert "pyproject.toml:6 (megatron-core>=0.14) admits megatron-core 0.14" in report


def test_a_range_below_the_new_names_needs_no_reason(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", "megatron-core>=0.15,<0.18"))
    write("a.yaml", SCOPE)
    assert "admits megatron-core" not in fix(cgmigrate)[1]


def test_code_is_withheld_as_well(project: Path, cgmigrate: Command) -> None:
    write("pyproject.toml", LIBRARY.replace("{}", RANGE))
    code = CODE.replace("{}", 'cuda_graph_impl="local", cuda_graph_scope="attn"')
    code += "\n\ndef scope(config):\n    return getattr(config, 'cuda_graph_scope')\n"
    write("a.py", code)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert Path("a.py").read_text() == code


@from_table
def test_code_for_several_releases_is_recognised(code: str, line: int, tmp_path: Path) -> None:
    shim = release_shim(FileSearch(str(tmp_path)), [("compat.py", code.encode())], load())
    assert shim == (f"compat.py:{line}" if line else "")


def test_code_for_several_releases_withholds_the_fix(project: Path, cgmigrate: Command) -> None:
    (project / ".git/HEAD").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write("lib/compat.py", SHIM)
    write("conf/a.yaml", SCOPE)
    subprocess.run(["git", "add", "."], check=True)
    report = cgmigrate("fix", "conf").stdout
    assert Path("conf/a.yaml").read_text() == SCOPE
    assert "supports megatron-core 0.17 as well (lib/compat.py:1 is written for several releases)" in report


def test_a_folder_with_a_pin_of_its_own_is_another_project(project: Path, cgmigrate: Command) -> None:
    write("lib/compat.py", SHIM)
    write("examples/requirements.txt", "megatron-core==0.19.2\n")
    write("examples/a.yaml", SCOPE)
    cgmigrate("fix", ".")
    assert "cuda_graph_modules" in Path("examples/a.yaml").read_text()
