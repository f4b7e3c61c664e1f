"""What is searched for readers of names: the project around the paths, in and outside of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.project import file_search
from cgmigrate.project.checkout import project_of
from cgmigrate.project.file_search import FileSearch
from tests.support.files import write
from tests.support.tables import from_table

MODEL = """\
model:
  num_layers: 2
  hidden_size: 64
  num_attention_heads: 4
  enable_cuda_graph: true
"""
READER = "import yaml\n\nif yaml.safe_load(open('conf/model.yaml'))['model']['enable_cuda_graph']:\n    print('pad')\n"
SHELL = "if grep -q 'enable_cuda_graph: true' conf/model.yaml; then echo pad; fi\n"


def is_withheld(folder: Path, cgmigrate, *paths: str) -> bool:
    cgmigrate("fix", *paths)
    return (folder / "conf/model.yaml").read_text() == MODEL


@pytest.mark.parametrize("paths", [["."], ["conf"], ["conf/model.yaml"]])
@pytest.mark.parametrize(("reader", "text"), [("src/main.py", READER), ("src/run.sh", SHELL), (None, "")])
@pytest.mark.parametrize("mark", ["", "pyproject.toml", "cgmigrate.toml"])
def test_outside_of_git_all_paths_have_one_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cgmigrate,
    paths: list[str],
    reader: str | None,
    text: str,
    mark: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "conf/model.yaml", MODEL)
    if reader:
        write(tmp_path / reader, text)
    if mark:
        write(tmp_path / mark, "")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        paths = [f"../{path}" for path in paths]
    assert is_withheld(tmp_path, cgmigrate, *paths) is bool(reader)


@from_table
def test_a_program_that_git_ignores_reads_keys(
    tmp_path: Path, monkeypatch, cgmigrate, name: str, is_read: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path / ".gitignore", "local/\n*_local.py\nbuild/\n.venv/\nenv/\nclone/\noutputs/\n")
    write(tmp_path / "conf/model.yaml", MODEL)
    write(tmp_path / name, READER)
    write(tmp_path / "env/pyvenv.cfg", "")
    (tmp_path / "clone/.git").mkdir(parents=True)
    assert is_withheld(tmp_path, cgmigrate, ".") is is_read


def test_a_program_that_is_not_tracked_yet_reads_keys(tmp_path: Path, monkeypatch, cgmigrate) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path / "conf/model.yaml", MODEL)
    write(tmp_path / "main.py", READER)
    assert is_withheld(tmp_path, cgmigrate, "conf")


def test_the_root_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a/b/c"
    inner.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir("/")
    assert project_of(str(inner)) == str(inner)
    monkeypatch.chdir(tmp_path / "a")
    assert project_of(str(inner)) == str(tmp_path / "a")
    (tmp_path / "a/b/setup.cfg").write_text("")
    assert project_of(str(inner)) == str(tmp_path / "a/b")
    # A file in the home folder does not make all of it one project.
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(tmp_path / "a/b"))
    assert project_of(str(inner)) == str(inner)
    (tmp_path / "a/.git").mkdir()
    assert project_of(str(inner)) == str(tmp_path / "a")


def test_a_baseline_reads_no_key(tmp_path: Path, monkeypatch, cgmigrate) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path / "conf/model.yaml", MODEL)
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    assert "model.enable_cuda_graph" in (tmp_path / "known.json").read_text()
    assert not is_withheld(tmp_path, cgmigrate, ".")


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("is_in_git", [False, True])
def test_files_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_git: bool, is_small: bool) -> None:
    monkeypatch.setattr(file_search, "_MOST_FILES", 500 if is_small else 0)
    if is_in_git:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("run.sh", "tools/run.sh", "tools/my_run.sh", "src/main.py"):
        write(tmp_path / name, "enable_cuda_graph\n")
    write(tmp_path / "node_modules/run.sh" if not is_in_git else tmp_path / "other.txt", "cuda_graph_scope\n")
    top = str(tmp_path)
    search = FileSearch(top)

    def names(paths: list[str]) -> list[str]:
        return sorted(str(Path(one).relative_to(top)) for one in paths)

    assert names(search.named("run.sh")) == ["run.sh", "tools/run.sh"]
    assert names(search.named("tools/run.sh")) == ["tools/run.sh"]
    assert names(search.holding(["enable_cuda_graph"], "*.sh")) == ["run.sh", "tools/my_run.sh", "tools/run.sh"]
    assert names(search.holding(["Enable_CUDA_graph", "none"], "*.py", any_case=True)) == ["src/main.py"]
    assert names(search.holding(["enable_cuda_graph"])) == ["run.sh", "src/main.py", "tools/my_run.sh", "tools/run.sh"]


@pytest.mark.parametrize("most_files", [500, 0])
def test_what_git_tracks_is_searched_also_where_it_would_ignore_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_files: int
) -> None:
    monkeypatch.setattr(file_search, "_MOST_FILES", most_files)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path / ".gitignore", "run.sh\n")
    write(tmp_path / "run.sh", "enable_cuda_graph\n")
    write(tmp_path / "new.sh", "enable_cuda_graph\n")
    subprocess.run(["git", "add", "-f", "run.sh"], cwd=tmp_path, check=True)
    every = FileSearch(str(tmp_path)).holding(["enable_cuda_graph"])
    assert sorted(Path(one).name for one in every) == ["new.sh", "run.sh"]
