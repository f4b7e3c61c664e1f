"""The README says what is so: commands, tables, before and after, links."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.support.paths import ROOT
from tests.support.released import RELEASED
from tests.support.tables import from_table

README = (ROOT / "README.md").read_text(encoding="utf-8")
DETAILS = ["docs/rewrites.md", "docs/verify.md", "docs/gates.md", "docs/commands.md"]
"""Pages that say more of what the README names."""
TEXT = "\n".join([README, *((ROOT / name).read_text(encoding="utf-8") for name in DETAILS)])
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md"]
PAGES += [str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def table(heading: str) -> list[list[str]]:
    """Return the body rows of the first table below a heading; no cell may contain ``|``."""
    section = re.split(r"^## ", TEXT.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def cgmigrate(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


def model(cell: str) -> str:
    """Return a mapping of megatron-core's settings, with the code spans of a table's cell as its first pairs."""
    pairs = [*re.findall(r"`([^`]+)`", cell), "tensor_model_parallel_size: 2"]
    return "model:\n" + "".join(f"  {pair}\n" for pair in pairs)


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("recipe.yaml")


@pytest.fixture
def in_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples: in the checkout, their fixes are judged by all that it has, which takes long."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    # Its configuration excludes what the commands name.
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- commands -------------------------------------------------------------------------------------


def test_the_first_command_shows_a_diff_and_writes_nothing(in_copy: Path) -> None:
    venv, install, run = blocks("sh")[0].strip().split(" && ")
    assert (venv, install) == ("python3 -m venv .try", ".try/bin/pip install -q .")

    program, *arguments = shlex.split(run)
    result = cgmigrate(*arguments)

    assert program == ".try/bin/cgmigrate"
    assert result.stdout.startswith("--- a/examples/configs/")
    assert result.exit_code == 1
    for path in (ROOT / "examples").rglob("*.yaml"):
        assert (in_copy / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_the_second_command_installs_what_the_project_declares() -> None:
    line = blocks("sh")[1].strip()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert line.endswith("&& .venv/bin/pytest")
    assert set(re.findall(r"\[(\w+)\]", line)) <= set(project["project"]["optional-dependencies"])
    assert set(re.findall(r"--group (\w+)", line)) <= set(project["dependency-groups"])
    assert f"--python {(ROOT / '.python-version').read_text().strip()} " in line


@pytest.mark.parametrize("command", [block.strip() for block in blocks("sh")[2:]])
def test_other_commands_run(command: str, in_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("examples" if command.endswith(" .") else ".")
    program, *arguments = shlex.split(command)

    result = cgmigrate(*arguments, stdin=blocks("yaml")[0])

    assert program == "cgmigrate"
    if arguments[0] == "verify":
        pytest.importorskip("megatron.core")
        assert result.exit_code == 0, result.output
    else:
        assert result.exit_code == 1, "the examples hold diagnostics"
    assert not isinstance(result.exception, Exception)


def test_ci_runs_the_two_commands() -> None:
    """The script takes them from the README, by the ends of their lines."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    for end in (".venv/bin/pytest", "cgmigrate fix examples/configs --diff"):
        assert len([line for line in README.splitlines() if line.endswith(end)]) == 1
        assert end in script.replace("\\", "")


def test_inline_commands_and_options_exist(in_copy: Path) -> None:
    for name, *arguments in (shlex.split(words) for words in re.findall(r"`cgmigrate ([^`]+)`", TEXT)):
        if name == "explain":
            assert cgmigrate(name, *arguments).exit_code == 0
        else:
            assert name in main.commands
    options = {
        option for command in main.commands.values() for parameter in command.params for option in parameter.opts
    }
    named = set(re.findall(r"`(--[a-z-]+)(?: \w+)?`", TEXT)) - {"--cuda-graph-scope:"}
    assert named <= options


def test_the_hooks_are_those_that_the_repository_offers() -> None:
    (block,) = {block for block in blocks("yaml") if block.startswith("repos:")}
    (repo,) = yaml.safe_load(block)["repos"]
    offered = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    # There is no tag.
    assert subprocess.run(["git", "cat-file", "-e", repo["rev"]], cwd=ROOT, check=False).returncode == 0
    assert {hook["id"] for hook in repo["hooks"]} == {hook["id"] for hook in offered}


# --- what it does ---------------------------------------------------------------------------------


def test_before_becomes_after(recipe: Path) -> None:
    before, after = blocks("yaml")[:2]
    recipe.write_text(before, encoding="utf-8")

    result = cgmigrate("fix", str(recipe))

    assert recipe.read_text(encoding="utf-8") == after
    assert result.exit_code == 0


@pytest.mark.parametrize(("before", "after"), table("What it handles in YAML"))
def test_what_it_handles(before: str, after: str, recipe: Path) -> None:
    recipe.write_text(model(before), encoding="utf-8")

    result = cgmigrate("fix", str(recipe))

    assert recipe.read_text(encoding="utf-8") == model(after)
    assert result.exit_code == 0


@pytest.mark.parametrize(("settings", "why"), table("What it leaves for you"))
def test_what_it_leaves_for_you(settings: str, why: str, recipe: Path) -> None:
    recipe.write_text(model(settings), encoding="utf-8")

    result = cgmigrate("fix", str(recipe))

    assert recipe.read_text(encoding="utf-8") == model(settings)
    assert result.exit_code == 1
    if "--unsafe-fixes" in why:
        cgmigrate("fix", "--unsafe-fixes", str(recipe))
        assert recipe.read_text(encoding="utf-8") == model("")


def test_a_file_with_defaults_is_rewritten_with_unsafe_fixes_only(recipe: Path) -> None:
    text = "defaults: base.yaml\n" + model("`cuda_graph_impl: local` `cuda_graph_scope: [attn]`")
    recipe.write_text(text, encoding="utf-8")

    assert cgmigrate("fix", str(recipe)).exit_code == 1
    assert recipe.read_text(encoding="utf-8") == text
    assert cgmigrate("fix", "--unsafe-fixes", str(recipe)).exit_code == 0
    assert recipe.read_text(encoding="utf-8") == text.replace("cuda_graph_scope", "cuda_graph_modules")


@from_table
def test_what_it_leaves_alone(text: str, recipe: Path) -> None:
    recipe.write_text(text, encoding="utf-8")

    assert cgmigrate("fix", str(recipe)).exit_code == 0
    assert recipe.read_text(encoding="utf-8") == text


def test_command_lines_in_other_values_of_yaml_are_reported_and_left(recipe: Path) -> None:
    text = 'graphs: ["--cuda-graph-scope", "full"]\nnote: |\n  train --cuda-graph-scope full\n'
    recipe.write_text(text, encoding="utf-8")

    result = cgmigrate("fix", str(recipe))

    assert result.exit_code == 1
    assert result.output.count("[CG011]") == 2
    assert recipe.read_text(encoding="utf-8") == text


PYTHON = """\
import os

from megatron.bridge.recipes.common import _pretrain_common
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import CudaGraphScope

"""


def test_python_becomes_what_the_table_says(recipe: Path) -> None:
    rows = table("What it handles in Python")
    assert len(rows) == 4
    for before, after, command in ([cell.strip("`") for cell in row] for row in rows):
        whole = "if {}:\n    pass\n" if before.startswith("cfg.cuda") else "{}\n"
        Path("train.py").write_text(PYTHON + whole.format(before), encoding="utf-8")
        if command != "fix":
            assert cgmigrate("fix", "train.py").exit_code == 1, "the fix is not safe"
        assert cgmigrate(*command.split(), "train.py").exit_code == 0, before
        assert Path("train.py").read_text(encoding="utf-8").endswith("\n" + whole.format(after))


def test_an_unknown_owner_is_a_diagnostic(recipe: Path) -> None:
    recipe.write_text("runtime:\n  enable_cuda_graph: true\n", encoding="utf-8")

    assert "CG006" in cgmigrate("check", str(recipe)).output


def test_from_0_16_full_iteration_asks(recipe: Path) -> None:
    text = model("`cuda_graph_impl: local` `cuda_graph_scope: full_iteration`")
    recipe.write_text(text, encoding="utf-8")

    assert cgmigrate("fix", "--from", "core_v0.16.1", str(recipe)).exit_code == 1
    assert recipe.read_text(encoding="utf-8") == text


# --- exit codes, rules, links ---------------------------------------------------------------------

CLEAN, SOUND, OPEN = "x: 1\n", "model:\n  external_cuda_graph: true\n", "model:\n  cuda_graph_impl: graphs\n"


def test_exit_codes(recipe: Path) -> None:
    def codes(text: str) -> list[int]:
        recipe.write_text(text, encoding="utf-8")
        return [cgmigrate(*command, "recipe.yaml").exit_code for command in (["check"], ["fix", "--diff"], ["fix"])]

    assert [row[0] for row in table("Exit codes")] == ["0", "1", "2", "130"]  # 130: test_program.py
    assert codes(CLEAN) == [0, 0, 0]
    assert codes(SOUND) == [1, 1, 0]
    assert codes(OPEN) == [1, 1, 1]
    recipe.unlink()
    assert [cgmigrate(command, "recipe.yaml").exit_code for command in ("check", "fix")] == [2, 2]
    assert cgmigrate("check", "--no-such-option", ".").exit_code == 2


def test_a_file_that_cannot_be_written_exits_with_2(recipe: Path) -> None:
    recipe.write_text(SOUND, encoding="utf-8")
    recipe.chmod(0o444)

    assert cgmigrate("fix", "recipe.yaml").exit_code == 2


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 160


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]

    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_every_package_is_in_the_contributors_page() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "cgmigrate").glob("*/__init__.py")}

    assert set(re.findall(r"^\| `cgmigrate/(\w+)/`", page, re.MULTILINE)) == packages


def test_the_contributors_page_names_files_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for package, text in re.findall(r"^\| `cgmigrate/(\w+)/` \| (.*) \|$", page, re.MULTILINE):
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", text):
            assert (ROOT / "cgmigrate" / package / name).exists(), f"{package}: {name}"


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    names = {re.match(r"[\w.-]+", requirement)[0] for group in groups for requirement in group}  # type: ignore[index]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    heads = (line.partition(":")[0] for line in page.splitlines() if line.startswith("- **"))
    explained = {name for head in heads for name in re.findall(r"\*\*([^*]+)\*\*", head)}

    assert explained == names


def test_a_copy_without_git_has_the_version_that_was_released_last() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["version"]["fallback-version"] == RELEASED
