"""A fix is safe only if every appearance of the names that it changes is accounted for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import run

import pytest
from click.testing import Result

from tests.support.tables import from_table

Run = Callable[..., Result]

RECIPE = """\
from megatron.core.transformer.transformer_config import TransformerConfig


def build():
    return TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4, enable_cuda_graph=True)
"""
CONF = "model:\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n  enable_cuda_graph: true\n"


def notebook(source: str, kind: str = "code") -> str:
    """Return a notebook with one cell."""
    return json.dumps({"cells": [{"cell_type": kind, "source": [source]}]})


def is_fixed(folder: Path, texts: Mapping[str, str | bytes], cgmigrate: Run, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether `fix` changes the first of some files of a checkout."""
    for path, content in {"NOTICE": "Trains with Megatron.\n", **texts}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    for words in (("init", "-q"), ("add", "-A")):
        run(("git", *words), cwd=folder, check=True)
    monkeypatch.chdir(folder)
    cgmigrate("fix", ".")
    name, text = next(iter(texts.items()))
    return (folder / name).read_text(encoding="utf-8") != text


MAIN = "from recipe import build\n\n"


@from_table
def test_what_is_accounted_for_leaves_a_fix_safe(
    tmp_path: Path, others: dict[str, str | bytes], cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"recipe.py": RECIPE, **others}, cgmigrate, monkeypatch)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"main.py": "from recipe import build\n\nprint(build().enable_cuda_graph)\n"}, id="a read"),
        pytest.param(
            {"sum.sh": 'echo "$SUM  recipe.py" | sha256sum -c\n'}, id="the digest of a file that a text names"
        ),
        pytest.param(
            {
                "names.py": "TEXT = 'graphs: {cfg.enable_cuda_graph}'\n",
                "main.py": "from names import TEXT\nfrom recipe import build\n\nprint(TEXT.format(cfg=build()))\n",
            },
            id="a text that a program has",
        ),
        pytest.param(
            {"main.py": "from recipe import build\n\n[k for k in vars(build()) if k.endswith('_cuda_graph')]\n"},
            id="a part of the name",
        ),
        pytest.param(
            {"main.py": f"{MAIN}print({{str(v): k for k, v in vars(build()).items()}}.get('True'))\n"}, id="a copy"
        ),
        pytest.param(
            {"main.py": "from recipe import build\n\n[k for k, v in vars(build()).items() if v is True]\n"},
            id="a filter by value",
        ),
        pytest.param({"main.py": f"{MAIN}print(vars(build())['ENABLE_CUDA_GRAPH'.lower()])\n"}, id="capital letters"),
        pytest.param({"main.py": f"{MAIN}print(snake(build(), 'enableCudaGraph'))\n"}, id="camel case"),
        pytest.param(
            {"main.py": f"{MAIN}print(getattr(build(), NAMES[0] + '_cuda_graph'))\n"}, id="a name that is joined"
        ),
        pytest.param(
            {"main.py": f"{MAIN}print(getattr(build(), '%s_cuda_graph' % kind))\n"}, id="a name that is filled in"
        ),
        pytest.param({"tools.py": "changed(made, enable_cuda_graph=False)\n"}, id="a keyword of a call with an object"),
        pytest.param(
            {"main.py": f"{MAIN}[f.name for f in fields(o) if getattr(o, f.name) != f.default]\n"},
            id="what has no default",
        ),
        pytest.param(
            {"main.py": f"{MAIN}print(re.findall(r'\\benable_cuda_graph=(\\w+)', repr(build())))\n"}, id="a pattern"
        ),
        pytest.param(
            {"check.sh": "# v\xe9rifie\npython -c 'build().enable_cuda_graph'\n".encode("latin-1")}, id="latin-1"
        ),
        pytest.param({".gitignore": ".env\n", ".env": "FIELDS=enable_cuda_graph\n"}, id="a file that git ignores"),
        pytest.param({"columns.txt": "num_layers\nenable_cuda_graph\n"}, id="a list of names"),
        pytest.param({"report.md": "Graphs: ${enable_cuda_graph}\n"}, id="a template of a page"),
        pytest.param({"check.sh": "grep -c 'graph=True' recipe.py\n"}, id="grep for the old text"),
        pytest.param({"usage.rst": ">>> build().enable_cuda_graph\nTrue\n"}, id="a doctest"),
        pytest.param({"a.ipynb": notebook("config = replace(config, enable_cuda_graph=False)")}, id="a notebook"),
        pytest.param({"a.ipynb": notebook("%%writefile o.yaml\nenable_cuda_graph: 1")}, id="a file of a notebook"),
        pytest.param({"run.sh": "python - <<EOF\nprint(cfg.enable_cuda_graph)\nEOF\n"}, id="code in a script"),
        pytest.param({"recipe.py.j2": "cfg.enable_cuda_graph = {{ graphs }}\n"}, id="code in a template"),
        pytest.param({"page.html": "{% if cfg.enable_cuda_graph %}graphs{% endif %}\n"}, id="a template"),
        pytest.param({"variant.sh": "sed 's/enable_cuda_graph=True//' recipe.py > eager.py\n"}, id="sed"),
        pytest.param(
            {
                "patch.py": "from megatron.core.transformer.transformer_config import TransformerConfig\n\n"
                "TransformerConfig.__init__ = lambda self, **kw: None\n",
                "main.py": "import patch\nimport recipe\n",
            },
            id="a method that is replaced",
        ),
        pytest.param(
            {
                "megatron/core/transformer/transformer_config.py": "class TransformerConfig:\n"
                "    def __init__(self, num_layers, hidden_size, num_attention_heads, enable_cuda_graph=False):\n"
                "        pass\n"
            },
            id="a copy of the class without the new name",
        ),
    ],
)
def test_an_open_place_makes_the_fix_of_an_object_unsafe(
    tmp_path: Path, others: dict[str, str | bytes], cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_fixed(tmp_path, {"recipe.py": RECIPE, **others}, cgmigrate, monkeypatch)


LOAD = "import yaml\n\nmodel = yaml.safe_load(open('conf.yaml'))['model']\n"


@from_table
def test_keys_of_a_mapping(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"conf.yaml": CONF, **others}, cgmigrate, monkeypatch) is is_safe


LOADER = "import yaml\n\n\ndef load(path):\n    return yaml.safe_load(open(path))\n"


@from_table
def test_which_code_gets_a_mapping(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"conf.yaml": CONF, "load.py": LOADER, **others}

    assert is_fixed(tmp_path, files, cgmigrate, monkeypatch) is is_safe


ENUM = """\
from megatron.core.transformer.enums import CudaGraphScope
from megatron.core.transformer.transformer_config import TransformerConfig

CONFIG = TransformerConfig(
    num_layers=2,
    hidden_size=64,
    num_attention_heads=4,
    cuda_graph_impl="transformer_engine",
    cuda_graph_scope=[CudaGraphScope.attn],
)
"""


@from_table
def test_a_class_that_others_import_from_the_file(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"graphs.py": ENUM, **others}, cgmigrate, monkeypatch) is is_safe


SETTINGS = "".join(f"  setting_{number}: {number}\n" for number in range(30))


@from_table
def test_configurations_that_are_alternatives(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = CONF.replace("true", "false")
    files = {"conf.yaml": CONF + SETTINGS, "off.yaml": off + SETTINGS, "load.py": LOADER, **others}

    assert is_fixed(tmp_path, files, cgmigrate, monkeypatch) is is_safe


TRAIN = "#!/bin/bash\npython pretrain_gpt.py --num-layers 2 --enable-cuda-graph --te-rng-tracker\n"


@from_table
def test_words_of_a_command_line(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"train.sh": TRAIN, **others}, cgmigrate, monkeypatch) is is_safe


@from_table
@pytest.mark.parametrize("words", ["$@", "${@}", "${@:2}"])
def test_words_of_a_command_line_that_may_get_more(
    tmp_path: Path, others: dict[str, str], is_safe: bool, words: str, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = TRAIN.replace("--te-rng-tracker", f'--te-rng-tracker "{words}"')

    assert is_fixed(tmp_path, {"train.sh": train, **others}, cgmigrate, monkeypatch) is is_safe


def test_a_false_that_may_override_another_file_stays(
    tmp_path: Path, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "overlay.yaml": 'data:\n  hidden-dropout: "0.0"\n  enable-cuda-graph: "false"\n',
        "model.yaml": CONF,
        "main.py": LOAD.replace("conf.yaml", "model.yaml"),
    }

    assert not is_fixed(tmp_path, files, cgmigrate, monkeypatch)


EXPECTED = {
    "tests/expected.yaml": CONF.partition("\n")[2].replace("  ", ""),
    "tests/test_build.py": "import yaml\n\nmade.assert_called_once_with(**yaml.safe_load(open('expected.yaml')))\n",
}


@pytest.mark.parametrize(("others", "is_safe"), [({}, True), ({"recipe.py": RECIPE}, False)], ids=["alone", "a call"])
def test_what_a_test_expects_of_code_stays_with_the_code(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {**EXPECTED, **others}, cgmigrate, monkeypatch) is is_safe
