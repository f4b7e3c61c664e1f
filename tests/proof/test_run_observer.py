"""What the observer writes down in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.settings import FIELDS
from cgmigrate.proof.run import observer
from tests.support.files import write
from tests.support.paths import FIXTURES

FOLDER = next(iter(observer.__path__))


def observed(tree: Path, code: str, *, is_requested: bool = True) -> list[dict[str, Any]]:
    """Run a script of a tree under the observer and return the lines of its process."""
    script, out = write(tree / "copy/script.py", code), tree / "out"
    out.mkdir()
    task = {"root": str(tree / "root"), "copy": str(tree / "copy"), "out": str(out), "settings": FIELDS}
    name = write(tree / "task.json", json.dumps({**task, "lines": {"script.py": [7]}, "files": ["data.yaml"]}))
    path = os.pathsep.join([FOLDER, str(FIXTURES / "proving/release")])
    variables = {"CGMIGRATE_OBSERVER": str(name)} if is_requested else {}
    subprocess.run([sys.executable, script], cwd=tree / "copy", env={"PYTHONPATH": path, **variables}, check=True)
    return [json.loads(line) for file in out.iterdir() for line in file.read_text().splitlines()]


def test_without_its_variable_it_does_nothing(tmp_path: Path) -> None:
    assert observed(tmp_path, "import sys\n\nassert 'cgmigrate_observer' in sys.modules\n", is_requested=False) == []


BUILDS = """
from megatron.core.transformer.transformer_config import TransformerConfig

def make():
    return TransformerConfig(enable_cuda_graph=True)

one = make()
one.num_layers = 5
"""


def test_a_configuration_has_its_settings_before_validation_and_its_fields_at_the_end(tmp_path: Path) -> None:
    rows = observed(tmp_path, BUILDS)
    (config,) = (row for row in rows if row["kind"] == "config")
    (values,) = (row["values"] for row in rows if row["kind"] == "values")
    assert (config["name"], config["place"], config["error"]) == ("TransformerConfig", "script.py:make", "")
    assert config["settings"]["enable_cuda_graph"] is True and config["settings"]["cuda_graph_impl"] == "none"
    assert (values["cuda_graph_impl"], values["use_te_rng_tracker"], values["num_layers"]) == ("local", True, 5)
    assert {"kind": "reached", "lines": [["script.py", 7]], "test": ""} in rows


def test_what_stands_for_a_model_in_a_container_is_written_with_it(tmp_path: Path) -> None:
    code = "from types import SimpleNamespace\nfrom megatron.bridge.training.config import ConfigContainer\n"
    code += "config = ConfigContainer(SimpleNamespace(name='x'))\nconfig.model.cuda_graph_scope = ['attn']\n"
    (values,) = (row["values"] for row in observed(tmp_path, code) if row["kind"] == "values")
    assert values == {"model": {"name": "x", "cuda_graph_scope": ["attn"]}, "rng": {"te_rng_tracker": False}}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_has_a_file_of_its_own(tmp_path: Path) -> None:
    code = BUILDS + "import os\nif os.fork() == 0:\n    make()\nelse:\n    os.wait()\n"
    rows = observed(tmp_path, code)
    assert [row["kind"] for row in rows].count("config") == 2
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_file_of_data_counts_once_it_is_opened(tmp_path: Path) -> None:
    write(tmp_path / "copy/data.yaml", "a: 1\n")
    rows = observed(tmp_path, "open('data.yaml').close()\n")
    assert [row["lines"] for row in rows if row["kind"] == "reached"] == [[["data.yaml", 0]]]


def test_a_module_that_is_installed_from_the_tree_is_that_of_the_copy(tmp_path: Path) -> None:
    write(tmp_path / "root/own.py", "raise AssertionError('the tree itself')\n")
    write(tmp_path / "copy/own.py", "")
    observed(tmp_path, f"import sys\n\nsys.path[:0] = [{str(tmp_path / 'root')!r}]\ndel sys.path[1]\nimport own\n")
