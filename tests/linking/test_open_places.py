"""A fix is safe only if every appearance of the names that it changes is accounted for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import run

import pytest
from click.testing import Result

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


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({}, id="nothing else"),
        pytest.param({"main.py": "from recipe import build\n\nbuild()\n"}, id="code that does not read it"),
        pytest.param(
            {"other.py": "args = parser.parse_args()\nprint(args.enable_cuda_graph)\n"}, id="arguments of a program"
        ),
        pytest.param(
            {"main.py": "from recipe import build\n\nbuild().enable_cuda_graphs\n"}, id="a longer name is another one"
        ),
        pytest.param({"NOTES.md": "We set `enable_cuda_graph` in the recipe.\n"}, id="prose"),
        pytest.param({"run.sh": "# enable_cuda_graph is on\npython main.py\n"}, id="a comment"),
        pytest.param({"check.sh": "grep -c num_layers recipe.py\n"}, id="grep for another name"),
        pytest.param({"wide.sh": "sed 's/hidden_size=64/hidden_size=128/' recipe.py > wide.py\n"}, id="sed of another"),
        pytest.param(
            {"eager.py": RECIPE.replace("=True", "=False").replace("build", "eager")}, id="another constructor call"
        ),
        pytest.param({"a.ipynb": notebook("x.enable_cuda_graph", kind="markdown")}, id="prose of a notebook"),
        pytest.param({"a.ipynb": notebook("!torchrun train.py --enable-cuda-graph")}, id="a flag in a notebook"),
    ],
)
def test_what_is_accounted_for_leaves_a_fix_safe(
    tmp_path: Path, others: dict[str, str | bytes], cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"recipe.py": RECIPE, **others}, cgmigrate, monkeypatch)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"main.py": "from recipe import build\n\nprint(build().enable_cuda_graph)\n"}, id="a read"),
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


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({"main.py": LOAD}, True, id="code that loads it"),
        pytest.param({"other.yaml": CONF, "main.py": LOAD}, True, id="another configuration with the same value"),
        pytest.param(
            {"off.yaml": CONF.replace("true", "false"), "main.py": LOAD},
            False,
            id="another configuration with another value",
        ),
        pytest.param({"off.yaml": CONF.replace("true", "false")}, True, id="another one, which no code loads"),
        pytest.param({"golden.json": '{"enable_cuda_graph": true}\n'}, True, id="JSON, which no code loads"),
        pytest.param({"a.json": '{"enable_cuda_graph": true}\n', "main.py": f"import json\n{LOAD}"}, False, id="JSON"),
        pytest.param(
            {"off.yaml": "model:\n  enable_cuda_graph: false\n", "main.py": f"{LOAD}model.update(yaml.safe_load(x))\n"},
            False,
            id="a false that is merged over it",
        ),
        pytest.param({"over.toml": "enable_cuda_graph = false\n"}, False, id="TOML"),
        pytest.param({"over.csv": "Layers,Enable CUDA graph\n8,FALSE\n"}, False, id="a title of a table"),
        pytest.param({"over.csv": "Note\nwe enable CUDA graph here\n"}, True, id="a sentence in a table"),
        pytest.param(
            {"schema.yaml": "^(num|hidden)_: int\n^(enable|use)_: bool\n", "main.py": LOAD},
            False,
            id="a pattern of keys",
        ),
        pytest.param({"notes.yaml": "# enable_cuda_graph is on\nlayers: 2\n"}, True, id="a comment"),
        pytest.param({"run.sh": "grep -q num_layers conf.yaml\n"}, True, id="grep for another key"),
        pytest.param({"run.sh": "git show HEAD:$f | grep -E '[[:alnum:]_]'\n"}, True, id="grep for any line"),
        pytest.param({"run.sh": "while read -r n; do train --lr $n --seed; done < rates.txt\n"}, True, id="a value"),
        pytest.param(
            {"run.sh": "while IFS=': ' read -r k v; do\n  [ $v = true ] && F+=\" --${k//_/-}\"\ndone < $CONF\n"},
            False,
            id="keys as flags",
        ),
        pytest.param({"run.sh": "grep -q 'enable_.*: true' conf.yaml\n"}, False, id="grep for the old line"),
        pytest.param(
            {"main.py": f"{LOAD}print([k for k, v in model.items() if v is True])\n"},
            False,
            id="a loop that tests values",
        ),
        pytest.param({"run.sh": "awk '/_cuda_graph/ {print $2}' conf.yaml\n"}, False, id="awk"),
        pytest.param(
            {"Makefile": "X := $(shell grep -oP 'enable.*graph: \\K\\w+' conf.yaml)\n"},
            False,
            id="a pattern with a gap",
        ),
        pytest.param({"main.py": f"{LOAD}model[kind + '_cuda_graph'] = on\n"}, False, id="a key that is joined"),
        pytest.param({"main.py": f"{LOAD}print(kind + '_layers')\n"}, True, id="another name that is joined"),
        pytest.param({"README.md": "    python main.py model.enable_cuda_graph=false\n"}, False, id="an override"),
        pytest.param({"main.py": LOAD, "outputs/run/conf.yaml": CONF}, True, id="a result"),
        pytest.param(
            {"main.py": f"{LOAD}before = 'outputs/run/conf.yaml'\n", "outputs/run/conf.yaml": CONF},
            False,
            id="a result that code reads",
        ),
        pytest.param(
            {"main.py": f"{LOAD}for key, value in model.items():\n    print('--' + key.replace('_', '-'), value)\n"},
            False,
            id="flags that are spelled from keys",
        ),
    ],
)
def test_keys_of_a_mapping(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"conf.yaml": CONF, **others}, cgmigrate, monkeypatch) is is_safe


LOADER = "import yaml\n\n\ndef load(path):\n    return yaml.safe_load(open(path))\n"
FROM_LOADER = "from load import load\n\nmodel = load(path)['model']\n"
VARIABLES = "for key, value in model.items():\n    print(f'{key.upper()}={value}')\n"
ASKS = "\n\ndef test_it(path):\n    assert load(path)['model'].get('enable_cuda_graph')\n"
HOLDS = """\
class Config:
    def __init__(self, values):
        self.__dict__.update(values)

    def active(self):
        return [key for key, value in vars(self).items() if value]


print(Config(model).active())
"""


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({"tests/test_it.py": f"from load import load\n{ASKS}"}, False, id="a test that loads it"),
        pytest.param(
            {"tests/conftest.py": "from load import load\n", "tests/test_it.py": ASKS.replace("path", "load")},
            False,
            id="a test with a fixture that loads it",
        ),
        pytest.param(
            {"tests/test_it.py": f"from importlib import import_module\n\nload = import_module(NAME).load\n{ASKS}"},
            False,
            id="a test that imports what it computes",
        ),
        pytest.param(
            {
                "main.py": FROM_LOADER,
                "tests/test_it.py": "import subprocess\n\n\ndef test_it():\n"
                "    out = subprocess.check_output(['python', 'main.py'])\n    assert b'enable_cuda_graph' in out\n",
            },
            False,
            id="a test that starts a program which loads it",
        ),
        pytest.param(
            {
                "tests/test_it.py": "from types import SimpleNamespace\n\n\ndef test_it():\n"
                "    assert run(SimpleNamespace(enable_cuda_graph=True))\n"
            },
            True,
            id="a test of its own object",
        ),
        pytest.param(
            {"main.py": f"{LOAD}\n\n{HOLDS}"},
            False,
            id="an object that gets all entries",
        ),
        pytest.param(
            {"show.py": "def show(config):\n    print([k for k, v in config.items() if v])\n"},
            True,
            id="a function that gets another mapping",
        ),
        pytest.param(
            {
                "show.py": "def show(config):\n    print([k for k, v in config.items() if v is True])\n",
                "main.py": f"from show import show\n\n{LOAD}show(model)\n",
            },
            False,
            id="a function that looks for booleans",
        ),
        pytest.param(
            {"show.py": "def show(config):\n    print([k for k in config if isinstance(config[k], (str, bool))])\n"},
            True,
            id="a function that looks for booleans and texts",
        ),
        pytest.param(
            {"tests/test_show.py": "def test_show(config):\n    print([k for k, v in config if v is True])\n"},
            True,
            id="a test that looks for booleans of its own",
        ),
        pytest.param({"run.sh": "ENABLE_CUDA_GRAPH=1\necho $ENABLE_CUDA_GRAPH\n"}, True, id="a variable of a script"),
        pytest.param(
            {"run.sh": "echo $ENABLE_CUDA_GRAPH\n", "env.py": f"{FROM_LOADER}{VARIABLES}"},
            False,
            id="a variable that code makes of a key",
        ),
        pytest.param({"NOTICE": "Serves with our own engine.\n", "load.py": LOADER}, False, id="another system"),
        pytest.param({"run.sh": "export ENABLE_CUDA_GRAPH=1\npython main.py\n"}, False, id="one of the environment"),
        pytest.param({"run.sh": "ENABLE_CUDA_GRAPH=1 python main.py\n"}, False, id="one for a program"),
        pytest.param(
            {"main.py": f"{LOAD}\n\ndef f(names):\n    return 'enable' in names and names['enable']\n"},
            True,
            id="a key of another mapping",
        ),
        pytest.param(
            {"main.py": f"{LOAD}\n\ndef f(path):\n    text = open(path).read()\n    return 'enable_' in text\n"},
            False,
            id="a text with the name",
        ),
        pytest.param({"main.py": f"{LOAD}print(device.startswith('cuda'))\n"}, True, id="the name of a device"),
        pytest.param({"main.py": f"{LOAD}print(key.startswith('cuda'))\n"}, False, id="the beginning of a key"),
    ],
)
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


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({}, True, id="nothing else"),
        pytest.param({"main.py": "from graphs import CONFIG\n"}, True, id="another name"),
        pytest.param({"main.py": "from other import CudaGraphScope\n"}, True, id="another module"),
        pytest.param({"main.py": "from graphs import CONFIG, CudaGraphScope\n"}, False, id="the class"),
        pytest.param(
            {"main.py": "def f():\n    from .graphs import (\n        CudaGraphScope as Scope,\n    )\n"},
            False,
            id="renamed",
        ),
        pytest.param(
            {"look.ipynb": notebook("import os\nfrom graphs import CudaGraphScope\n")}, False, id="a notebook"
        ),
    ],
)
def test_a_class_that_others_import_from_the_file(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"graphs.py": ENUM, **others}, cgmigrate, monkeypatch) is is_safe


SETTINGS = "".join(f"  setting_{number}: {number}\n" for number in range(30))


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({}, True, id="two whole configurations"),
        pytest.param({"run.sh": "python main.py conf.yaml off.yaml\n"}, False, id="a program gets both"),
        pytest.param({"main.py": f"{LOAD}model |= load(argv[1])['model']\n"}, False, id="a program has one by name"),
        pytest.param(
            {"README.md": "    python main.py conf.yaml \\\n        off.yaml\n"}, False, id="a page gives both"
        ),
        pytest.param({"README.md": "- conf.yaml: with graphs\n- off.yaml: without\n"}, True, id="a page lists both"),
    ],
)
def test_configurations_that_are_alternatives(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = CONF.replace("true", "false")
    files = {"conf.yaml": CONF + SETTINGS, "off.yaml": off + SETTINGS, "load.py": LOADER, **others}

    assert is_fixed(tmp_path, files, cgmigrate, monkeypatch) is is_safe


TRAIN = "#!/bin/bash\npython pretrain_gpt.py --num-layers 2 --enable-cuda-graph --te-rng-tracker\n"


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({}, True, id="nothing else"),
        pytest.param({"all.sh": "bash train.sh\n"}, True, id="a script that runs it"),
        pytest.param({"all.sh": "bash -x train.sh 2>&1 | grep -c 'able-cuda-graph'\n"}, False, id="its trace"),
        pytest.param({"all.sh": "sed 's/--enable-cuda-graph//' train.sh > other.sh\n"}, False, id="sed"),
        pytest.param(
            {"all.sh": "sed 's/--num-layers 2/--num-layers 4/' train.sh > other.sh\n"}, True, id="sed of another flag"
        ),
        pytest.param({"args.json": '["--enable-cuda-graph"]\n'}, False, id="old flags in data"),
        pytest.param({"hook.sh": "[[ $word == *graph ]] && unset word\n"}, False, id="words that end in graph"),
        pytest.param({"hook.sh": "[[ $word == *layers ]] && unset word\n"}, True, id="words with another end"),
        pytest.param(
            {"pretrain_gpt.py": "import megatron\n\nargs = parse_args()\nprint(getattr(args, kind + '_cuda_graph'))\n"},
            False,
            id="a joined name of arguments",
        ),
    ],
)
def test_words_of_a_command_line(
    tmp_path: Path, others: dict[str, str], is_safe: bool, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_fixed(tmp_path, {"train.sh": TRAIN, **others}, cgmigrate, monkeypatch) is is_safe


@pytest.mark.parametrize(
    ("others", "is_safe"),
    [
        pytest.param({"all.sh": "bash train.sh --lr 1\n"}, True, id="words of another flag"),
        pytest.param({"all.sh": "G=--enable-cuda\nbash train.sh $G-graph\n"}, False, id="the end of a flag"),
        pytest.param({"all.sh": "G=--enable\nbash train.sh ${G}-cuda-graph\n"}, False, id="the end, with braces"),
        pytest.param(
            {
                "words.yaml": "a: [--enable-cuda-graph]\n",
                "run.py": "import yaml\n\nrun(['bash', 'train.sh', *words])\n",
            },
            False,
            id="words of YAML",
        ),
        pytest.param({"words.yaml": "a: [--enable-cuda-graph]\n"}, True, id="words of YAML that nothing gives to it"),
    ],
)
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
