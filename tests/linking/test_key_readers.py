"""YAML fixes that concern other files: code that reads a key by its name, files that the file names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cgmigrate.project.file_search import FileSearch
from tests.support.checkouts import staged
from tests.support.files import write
from tests.support.tables import from_table, table_of

LEGACY = "model:\n  transformer_config:\n    external_cuda_graph: true\n    cuda_graph_scope: [attn]\n"
READERS = table_of(__name__, "READERS")
MOVED = table_of(__name__, "MOVED")
"""Code that can have the new name."""
SPELLINGS = table_of(__name__, "SPELLINGS")
OTHER_LINES = table_of(__name__, "OTHER_LINES")
TEXTS = table_of(__name__, "TEXTS")
"""Files that read a key on line 2."""
NO_READERS = table_of(__name__, "NO_READERS")
PARTS = table_of(__name__, "PARTS")
NO_PARTS = table_of(__name__, "NO_PARTS")
NEW_NAMES = table_of(__name__, "NEW_NAMES")


@pytest.mark.parametrize("code", READERS.values(), ids=READERS)
@pytest.mark.parametrize("tracked", [True, False])
def test_a_key_that_code_reads_by_name_is_no_safe_fix(project: Path, cgmigrate, code: str, tracked: bool) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / "src/setup.py", "import os\n" + code)
    if tracked:
        staged(project)
    result = cgmigrate("fix", "configs/a.yaml" if tracked else ".")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    assert "src/setup.py:" in result.stdout
    assert cgmigrate("fix", "--unsafe-fixes", "configs/a.yaml").exit_code == 0
    assert "cuda_graph_impl: transformer_engine" in path.read_text()


@pytest.mark.parametrize("code", MOVED.values(), ids=MOVED)
def test_code_that_names_a_key_changes_with_it(project: Path, cgmigrate, code: str) -> None:
    path, setup = write(project / "configs/a.yaml", LEGACY), write(project / "src/setup.py", code)
    staged(project)
    assert cgmigrate("fix", "configs/a.yaml").exit_code == 1
    assert (path.read_text(), setup.read_text()) == (LEGACY, code)
    assert cgmigrate("fix", ".").exit_code == 0
    assert "cuda_graph_modules: [attn]" in path.read_text()
    assert setup.read_text() == code.replace("cuda_graph_scope", "cuda_graph_modules")


@pytest.mark.parametrize("code", NEW_NAMES.values(), ids=NEW_NAMES)
def test_a_key_that_no_code_reads_beside_its_new_name_is_no_safe_fix(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / "src/setup.py", "import os\n" + code)
    staged(project)
    result = cgmigrate("fix", "configs/a.yaml")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    assert "src/setup.py:" in result.stdout


OWN_VALUES = table_of(__name__, "OWN_VALUES")
NO_OWN_VALUES = table_of(__name__, "NO_OWN_VALUES")


@pytest.mark.parametrize("code", OWN_VALUES.values(), ids=OWN_VALUES)
def test_a_name_that_code_gives_a_value_of_its_own_is_not_written(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / "src/setup.py", code)
    staged(project)
    result = cgmigrate("fix", "configs/a.yaml")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    assert re.search(r"src/setup.py:[1-3]", result.stdout)


@pytest.mark.parametrize("code", NO_OWN_VALUES.values(), ids=NO_OWN_VALUES)
def test_code_that_gives_a_name_no_value_of_its_own_is_no_obstacle(project: Path, cgmigrate, code: str) -> None:
    write(project / "configs/a.yaml", LEGACY)
    write(project / "src/setup.py", code)
    staged(project)
    assert "code sets" not in cgmigrate("fix", "configs/a.yaml").stdout


@pytest.mark.parametrize("code", OTHER_LINES.values(), ids=OTHER_LINES)
def test_a_key_that_code_reads_in_another_spelling_is_no_safe_fix(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "a.yaml", LEGACY)
    write(project / "run.py", code)
    staged(project)
    assert "run.py:" in cgmigrate("fix", "a.yaml").stdout
    assert path.read_text() == LEGACY


@pytest.mark.parametrize("code", SPELLINGS.values(), ids=SPELLINGS)
def test_a_key_that_code_respells_is_no_safe_fix(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "a.yaml", LEGACY)
    write(project / "run.py", "import os\n" + code)
    staged(project)
    assert "run.py:2" in cgmigrate("fix", "a.yaml").stdout
    assert path.read_text() == LEGACY


@pytest.mark.parametrize(("name", "text"), TEXTS.values(), ids=TEXTS)
def test_a_key_that_another_file_reads_is_no_safe_fix(project: Path, cgmigrate, name: str, text: str) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / name, text)
    staged(project)
    stdout = " ".join(cgmigrate("fix", ".").stdout.split())
    assert f"{name}:2 also uses `external_cuda_graph` and may set or read the same setting" in stdout
    assert path.read_text() == LEGACY


@pytest.mark.parametrize(("name", "text"), NO_READERS.values(), ids=NO_READERS)
def test_other_files_leave_a_fix_safe(project: Path, cgmigrate, name: str, text: str) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / name, text)
    staged(project)
    assert cgmigrate("fix", "configs").exit_code == 0
    assert "cuda_graph_impl: transformer_engine" in path.read_text()


TWO = """
transformer_config:
  enable_cuda_graph: true
other:
  transformer_config:
    external_cuda_graph: true
    cuda_graph_scope: attn
"""


@pytest.mark.parametrize("code", PARTS.values(), ids=PARTS)
def test_code_that_reads_a_key_by_a_part_of_its_name_makes_a_fix_unsafe(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "configs/a.yaml", TWO)
    write(project / "src/setup.py", "import os\n" + code)
    staged(project)
    assert "src/setup.py:2" in cgmigrate("fix", "configs").stdout
    assert path.read_text().count("cuda_graph_impl") < 2


@pytest.mark.parametrize("code", NO_PARTS.values(), ids=NO_PARTS)
def test_other_parts_leave_a_fix_safe(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "configs/a.yaml", TWO)
    write(project / "src/setup.py", "import os\n" + code)
    staged(project)
    assert cgmigrate("fix", "configs").exit_code == 0
    assert path.read_text().count("cuda_graph_impl") == 2


def test_a_folder_with_a_pin_of_its_own_is_a_project_of_its_own(project: Path, cgmigrate) -> None:
    own, shared = write(project / "bench/one/a.yaml", LEGACY), write(project / "bench/two/a.yaml", LEGACY)
    write(project / "bench/one/requirements.txt", "megatron-core==0.19.2\n")
    write(project / "src/setup.py", READERS["a constant"])
    staged(project)
    cgmigrate("fix", ".")
    assert ("cuda_graph_impl" in own.read_text(), shared.read_text()) == (True, LEGACY)
    write(project / "bench/one/setup.py", READERS["a constant"])
    own.write_text(LEGACY)
    staged(project)
    assert "bench/one/setup.py:1 also uses" in cgmigrate("fix", ".").stdout
    assert own.read_text() == LEGACY


def test_megatron_core_itself_is_no_reader(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    core = project / "megatron/core"
    write(core / "package_info.py", "MAJOR = 0\n")
    write(
        core / "transformer/transformer_config.py",
        "class TransformerConfig:\n    cuda_graph_scope: str\n    cuda_graph_modules: list\n    cuda_graph_impl: str\n",
    )
    staged(project)
    cgmigrate("fix", "a.yaml")
    assert "cuda_graph_impl: transformer_engine" in path.read_text()


def test_a_key_that_is_spelled_as_a_flag_is_not_read_by_its_name(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", "MODEL_ARGS:\n  --external-cuda-graph: true\n  --cuda-graph-scope: attn\n")
    write(project / "setup.py", 'scope = config["cuda_graph_scope"]\n')
    cgmigrate("fix", ".")
    assert "--cuda-graph-impl: transformer_engine" in path.read_text()


@from_table
def test_a_file_that_names_other_files_is_no_safe_fix(project: Path, cgmigrate, line: str) -> None:
    text = f"{line}\n{LEGACY}"
    if line.startswith("{"):
        text = '{"extends": "base.yaml", "transformer_config": {"external_cuda_graph": true}}\n'
    path = write(project / "a.yaml", text)
    write(project / "common.yaml", "x: 1\n")
    result = cgmigrate("fix", ".")
    assert (result.exit_code, path.read_text()) == (1, text)
    assert "CG004" in result.stdout


@from_table
def test_a_file_that_names_no_other_file_with_settings_is_rewritten(project: Path, cgmigrate, line: str) -> None:
    path = write(project / "a.yaml", f"{line}\n{LEGACY}")
    write(project / "common.yaml", "x: 1\n")
    cgmigrate("fix", ".")
    assert "cuda_graph_impl: transformer_engine" in path.read_text()


@pytest.mark.parametrize("tracked", [True, False])
def test_a_file_that_another_one_extends_is_no_safe_fix(project: Path, cgmigrate, tracked: bool) -> None:
    path = write(project / "base.yaml", LEGACY)
    write(project / "runs/a.yaml", "extends: ../base.yaml\nmodel:\n  transformer_config:\n    cuda_graph_impl: none\n")
    if tracked:
        staged(project)
    result = cgmigrate("fix", "--output-format", "concise", "base.yaml" if tracked else ".")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    reasons = " ".join(cgmigrate("check", "base.yaml" if tracked else ".").stdout.split())
    assert ("cgmigrate fix base.yaml runs/a.yaml" if tracked else "a loader may replace the mapping") in reasons


UNREAD = {
    "python-2": ('print config["cuda_graph_scope"]\n', 1),
    "a template": ("import {{ module }}\nscope = cfg.cuda_graph_scope\n", 2),
    "latin-1": ('# caf\xe9\nscope = config["cuda_graph_scope"]\n'.encode("latin-1"), 2),
    "nested": ("(" * 3000 + 'config["cuda_graph_scope"]' + ")" * 3000, 1),
}


@pytest.mark.parametrize(("code", "line"), UNREAD.values(), ids=UNREAD)
def test_code_that_is_not_read_may_read_a_key(project: Path, cgmigrate, code: str | bytes, line: int) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / "src/setup.py", code)
    staged(project)
    result = cgmigrate("fix", "configs/a.yaml")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    assert f"src/setup.py:{line} also uses `cuda_graph_scope`" in result.stdout
    assert cgmigrate("fix", "--unsafe-fixes", "configs/a.yaml").exit_code == 0


def test_the_text_of_an_editor_is_fixed_like_a_file(project: Path, cgmigrate) -> None:
    write(project / "configs/a.yaml", LEGACY)
    edited = "# a line that is not saved\n" + LEGACY
    staged(project)
    assert "cuda_graph_impl" in cgmigrate("fix", "--stdin-filename", "configs/a.yaml", "-", text=edited).stdout
    write(project / "src/setup.py", READERS["a constant"])
    staged(project)
    assert cgmigrate("fix", "--stdin-filename", "configs/a.yaml", "-", text=edited).stdout == edited


def test_code_that_is_not_read_and_names_no_key_prevents_nothing(project: Path, cgmigrate) -> None:
    path = write(project / "configs/a.yaml", LEGACY)
    write(project / "src/a.py", 'print config["num_layers"]\n')
    staged(project)
    assert cgmigrate("fix", "configs/a.yaml").exit_code == 0
    assert "cuda_graph_modules: [attn]" in path.read_text()


def test_a_key_that_an_interpolation_of_the_file_reads_is_no_safe_fix(project: Path, cgmigrate) -> None:
    text = LEGACY + "log:\n  graphs: ${model.transformer_config.external_cuda_graph}\n"
    path = write(project / "a.yaml", text)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, path.read_text()) == (1, text)
    assert "a.yaml:6 also uses `external_cuda_graph`" in result.stdout
    assert cgmigrate("fix", "--unsafe-fixes", ".").exit_code == 0


def test_a_null_that_other_code_reads_is_no_safe_fix(project: Path, cgmigrate) -> None:
    text = "policy:\n  megatron_cfg:\n    num_layers: 2\n    cuda_graph_scope: null\n"
    path = write(project / "a.yaml", text)
    write(project / "run.py", "options = Own(**config['megatron_cfg'])\nmodel.scope = options.cuda_graph_scope\n")
    staged(project)
    assert "run.py:2 also uses `cuda_graph_scope`" in cgmigrate("fix", ".").stdout
    assert path.read_text() == text


FALSE = "model:\n  tensor_model_parallel_size: 2\n  external_cuda_graph: false\n"
TURNS_ON = table_of(__name__, "TURNS_ON")


@pytest.mark.parametrize("code", TURNS_ON.values(), ids=TURNS_ON)
def test_a_false_that_may_turn_off_what_code_turns_on_is_no_safe_fix(project: Path, cgmigrate, code: str) -> None:
    path = write(project / "a.yaml", FALSE)
    write(project / "train.py", code)
    assert (
        "train.py:1 also uses `external_cuda_graph` and may set it to true for the same "
        "configuration, which this false turns off" in cgmigrate("fix", ".").stdout
    )
    assert path.read_text() == FALSE


@pytest.mark.parametrize("code", TURNS_ON.values(), ids=TURNS_ON)
def test_a_new_implementation_beside_a_flag_that_code_turns_on_is_no_safe_fix(
    project: Path, cgmigrate, code: str
) -> None:
    text = "model:\n  tensor_model_parallel_size: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    path = write(project / "a.yaml", text)
    write(project / "train.py", code)
    assert (
        "train.py:1 also uses `external_cuda_graph` and may set or read the same setting"
        in cgmigrate("fix", ".").stdout
    )
    assert path.read_text() == text
    write(project / "train.py", "")
    cgmigrate("fix", ".")
    assert "cuda_graph_impl: full_iteration" in path.read_text()


def test_only_compiled_code_has_no_text(project: Path) -> None:
    write(project / ".gitattributes", "*.ipynb -diff\n")
    write(project / "a.ipynb", "cuda_graph_scope")
    for name in ("a.bin", "__pycache__/a.pyc"):
        write(project / name, "\0cuda_graph_scope")
    staged(project)
    expected = [str(project / name) for name in ("a.bin", "a.ipynb")]
    assert FileSearch(str(project)).holding(["cuda_graph_scope"]) == expected
