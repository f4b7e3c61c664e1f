"""Flags that a program of the project defines by itself keep their names; those of Megatron's programs do not."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.tables import from_table

FLAGS = "--cuda-graph-scope attn --tensor-model-parallel-size 2"
OF_MEGATRON = "#!/bin/bash\ntorchrun pretrain_gpt.py --external-cuda-graph --cuda-graph-scope attn\n"
PARSER = 'import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument("--cuda-graph-scope")\n'
TABLE = (
    'OPTIONS = {"cuda_graph_scope": str}\n\ndef add(parser):\n    for name, kind in OPTIONS.items():\n'
    '        parser.add_argument("--" + name.replace("_", "-"), type=kind)\n'
)

OWN = {
    "python": {"team/train.py": PARSER, "run.sh": f"python team/train.py {FLAGS}"},
    "its folder is computed": {"team/train.py": PARSER, "run.sh": f'torchrun "$HERE/train.py" {FLAGS}'},
    "a module": {"team/train.py": PARSER, "run.sh": f"torchrun -m team.train {FLAGS}"},
    "an array": {"team/train.py": PARSER, "run.sh": f'ARGS=({FLAGS})\npython team/train.py "${{ARGS[@]}}"'},
    "a program that is not known": {"team/train.py": PARSER, "run.sh": f'$LAUNCH "$PROGRAM" {FLAGS}'},
    "slurm": {"train.py": PARSER, "job.sbatch": f"#!/bin/bash\nsrun python train.py {FLAGS}"},
    "imported": {
        "team/train.py": "from team.options import parser\n",
        "team/options.py": PARSER,
        "run.sh": f"python team/train.py {FLAGS}",
    },
    "imported from its package": {
        "team/train.py": "from .options import parser\n",
        "team/options/__init__.py": "from .graphs import parser\n",
        "team/options/graphs.py": PARSER,
        "run.sh": f"python team/train.py {FLAGS}",
    },
    "from a folder of the search path": {
        "train.py": 'import sys\n\nsys.path.append("lib")\nfrom options import parser\n',
        "lib/options.py": PARSER,
        "run.sh": f"python train.py {FLAGS}",
    },
    "imported by a computed name": {
        "train.py": 'from importlib import import_module\n\nimport_module(f"options_{kind}")\n',
        "options_gpt.py": PARSER,
        "run.sh": f"python train.py {FLAGS}",
    },
    "a table": {"train.py": f"from options import add\n{TABLE}", "run.sh": f"python train.py {FLAGS}"},
    "click": {
        "train.py": 'import click\n\n@click.command()\n@click.option("--cuda-graph-scope/--none")\ndef main(): ...\n',
        "run.sh": f"python train.py {FLAGS}",
    },
    "tyro": {
        "train.py": "import tyro\n\nclass Options:\n    cuda_graph_scope: str = ''\n\ntyro.cli(Options)\n",
        "run.sh": f"python train.py {FLAGS}",
    },
    "fire": {
        "train.py": "import fire\n\ndef main(cuda_graph_scope): ...\n\nfire.Fire(main)\n",
        "run.sh": f"python train.py {FLAGS}",
    },
    "sys.argv": {
        "train.py": 'import sys\n\nscope = sys.argv[sys.argv.index("--cuda-graph-scope") + 1]\n',
        "run.sh": f"python train.py {FLAGS}",
    },
    "getopt": {
        "train.py": 'import getopt, sys\n\ngetopt.getopt(sys.argv[1:], "", ["cuda-graph-scope="])\n',
        "run.sh": f"python train.py {FLAGS}",
    },
    "docopt": {
        "train.py": '"""Usage: train.py [--cuda-graph-scope=<at>]"""\nfrom docopt import docopt\n\ndocopt(__doc__)\n',
        "run.sh": f"python train.py {FLAGS}",
    },
    "a script": {
        "run.sh": f"./train.sh {FLAGS}",
        "train.sh": '#!/bin/bash\ncase "$1" in\n  --cuda-graph-scope) SCOPE=$2; shift ;;\nesac\n',
    },
    "a script of a shell": {
        "run.sh": f"bash train.sh {FLAGS}",
        "train.sh": '#!/bin/bash\nif [[ "$1" == "--cuda-graph-scope" ]]; then SCOPE=$2; fi\n',
    },
    "a list in code": {
        "team/train.py": PARSER,
        "run.py": (
            "import subprocess\n\nsubprocess.run(\n    ['python', 'team/train.py', '--cuda-graph-scope', 'attn',"
            " '--tensor-model-parallel-size', '2']\n)\n"
        ),
    },
}
"""Projects with flags of their own, by what they have to be recognised by."""

OF_OTHERS = {
    "no parser": {"run.sh": OF_MEGATRON},
    "a parser of another program": {"tools/infer.py": PARSER, "run.sh": OF_MEGATRON},
    "a program that imports no parser": {
        "tools/infer.py": PARSER,
        "pretrain_own.py": "from megatron.training import pretrain\n",
        "run.sh": OF_MEGATRON.replace("pretrain_gpt", "pretrain_own"),
    },
    "a list of arguments": {
        "pretrain_gpt.py": "import launch\n",
        "launch.py": 'import subprocess\n\nsubprocess.run(["other", "--cuda-graph-scope", "attn"])\n',
        "run.sh": OF_MEGATRON,
    },
    "another spelling": {
        "pretrain_gpt.py": PARSER.replace("--cuda-graph-scope", "--cuda_graph_scope"),
        "run.sh": OF_MEGATRON,
    },
    "a test": {"tests/test_run.py": PARSER, "run.sh": OF_MEGATRON.replace("pretrain_gpt.py", "$PROGRAM")},
}
"""Projects whose flags are Megatron's."""


def fixed(project: Path, files: Mapping[str, str]) -> tuple[str, str]:
    """Return the output of a fix of a new project, and the flags that its launcher then has."""
    from click.testing import CliRunner

    from cgmigrate.cli.commands import main

    for name, text in files.items():
        write(project / name, text)
    for words in (["init", "-q", "."], ["add", "."]):
        subprocess.run(["git", "-C", str(project), *words], check=True)
    result = CliRunner().invoke(main, ["fix", "--from", "0.17", str(project)])
    launcher = next(project / name for name in files if name.startswith(("run.", "job.")))
    return result.output, launcher.read_text()


@pytest.mark.parametrize("files", OWN.values(), ids=OWN)
def test_a_flag_of_the_project_stays(files: Mapping[str, str], tmp_path: Path) -> None:
    output, launcher = fixed(tmp_path, files)
    assert "cuda-graph-scope" in launcher, output
    assert "cuda-graph-modules" not in launcher
    assert "unsafe" in output


@pytest.mark.parametrize("files", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_flag_of_megatron_is_rewritten(files: Mapping[str, str], tmp_path: Path) -> None:
    output, launcher = fixed(tmp_path, files)
    assert "--cuda-graph-modules attn" in launcher, output
    assert "cuda-graph-scope" not in launcher


# --- programs that read the values -----------------------------------------------------------------------

PARSED = "from megatron.training import get_args\nfrom megatron.training.arguments import parse_args\n\n"
STARTED = "#!/bin/bash\ntorchrun train.py --enable-cuda-graph --tensor-model-parallel-size 2\n"

READ = {
    "before it is checked": "args = parse_args()\nif args.enable_cuda_graph:\n    args.te_rng_tracker = True\n",
    "with a default": 'args = parse_args()\ngraphs = getattr(args, "enable_cuda_graph", True)\n',
    "of a call": "graphs = get_args().enable_cuda_graph\n",
    "under another name": "flags_of_run = parse_args()\ngraphs = flags_of_run.enable_cuda_graph\n",
    "of an attribute": "def run(self):\n    return self.args.enable_cuda_graph\n",
    "of a namespace": "def run(space: Namespace):\n    return space.enable_cuda_graph\n",
    "of a dict": 'graphs = vars(parse_args())["enable_cuda_graph"]\n',
    "with get": 'graphs = vars(get_args()).get("enable_cuda_graph")\n',
    "as a name": 'args = get_args()\nknown = "enable_cuda_graph" in args\n',
    "of a parameter": "def tweak(margs):\n    return margs.enable_cuda_graph\n",
    "of a tuple": "ns, _ = parser.parse_known_args()\ngraphs = ns.enable_cuda_graph\n",
    "of another name for it": "args = parse_args()\na = args\ngraphs = a.enable_cuda_graph\n",
    "of a copy": "import copy\n\nold = copy.deepcopy(get_args())\ngraphs = old.enable_cuda_graph\n",
    "of each name": 'on = [n for n in ("enable_cuda_graph", "external_cuda_graph") if getattr(get_args(), n)]\n',
    "by a constant": 'KEY = "enable_cuda_graph"\ngraphs = getattr(get_args(), KEY)\n',
    "of keywords": "def f(*, enable_cuda_graph=False, **rest): ...\n\nf(**vars(get_args()))\n",
    "of a record": "class Run:\n    enable_cuda_graph: bool = False\n\nRun(**vars(get_args()))\n",
    "by default": "def extra(parser):\n    parser.set_defaults(enable_cuda_graph=True)\n",
    "updated": "vars(get_args()).update(enable_cuda_graph=False)\n",
    "in code of another release": "args = get_args()\nprint 'x', args.enable_cuda_graph\n",
    "that are set": "args = parse_args()\nif args.debug:\n    args.enable_cuda_graph = False\n",
    "of a configuration": "def run(config):\n    return config.enable_cuda_graph\n",
    "by name": 'def run(config):\n    return getattr(config, "enable_cuda_graph", False)\n',
    "of one that the arguments make": (
        "config = core_transformer_config_from_args(get_args())\nif config.enable_cuda_graph:\n    pass\n"
    ),
}
"""Programs that use the value of a flag, by how they do."""

NOT_READ = {
    "of its own": "class Run:\n    def run(self):\n        return self.enable_cuda_graph\n",
    "for one": "TransformerConfig(num_layers=2, enable_cuda_graph=False)\n",
    "in prose": '"""Sets enable_cuda_graph."""\n',
    "another flag": "args = get_args()\ngraphs = args.external_cuda_graph\n",
}


@pytest.mark.parametrize("use", READ.values(), ids=READ)
@pytest.mark.parametrize("module", ["train.py", "team/graphs.py"])
def test_a_flag_that_its_program_reads_stays(use: str, module: str, tmp_path: Path) -> None:
    importing = {} if module == "train.py" else {"train.py": "from team.graphs import *\n"}
    output, launcher = fixed(tmp_path, {**importing, module: PARSED + use, "run.sh": STARTED})
    assert launcher == STARTED, output
    assert "may read `enable_cuda_graph` of the parsed arguments, and has to change with it" in output.replace(
        "\n", " "
    )


@pytest.mark.parametrize("use", NOT_READ.values(), ids=NOT_READ)
def test_a_flag_that_its_program_does_not_read_is_rewritten(use: str, tmp_path: Path) -> None:
    output, launcher = fixed(tmp_path, {"train.py": PARSED + use, "run.sh": STARTED})
    assert "--cuda-graph-impl local" in launcher, output


def test_a_flag_that_another_program_reads_is_rewritten(tmp_path: Path) -> None:
    other = {"tools/infer.py": PARSED + READ["of a call"], "train.py": "from megatron.training import pretrain\n"}
    output, launcher = fixed(tmp_path, {**other, "run.sh": STARTED})
    assert "--cuda-graph-impl local" in launcher, output


def test_a_scope_that_a_program_sets_stays(tmp_path: Path) -> None:
    program = PARSED + "args = get_args()\nargs.cuda_graph_scope = ['full_iteration']\n"
    output, launcher = fixed(tmp_path, {"train.py": program, "run.sh": f"torchrun train.py {FLAGS}"})
    assert "--cuda-graph-scope attn" in launcher, output


@from_table
def test_a_launcher_may_start_any_program(launching: str, tmp_path: Path) -> None:
    other = {"train.py": PARSED + READ["of a call"], "launch.py": f"import subprocess\n{launching}"}
    script = STARTED.replace("torchrun train.py", "python launch.py")
    output, launcher = fixed(tmp_path, {**other, "run.sh": script})
    assert launcher == script, output


ARGUMENTS = "def add(parser):\n    parser.add_argument('--cuda-graph-modules', dest='cuda_graph_modules')\n"


@pytest.mark.parametrize(("file", "stays"), [("my_hooks.py", True), ("arguments.py", False)])
def test_a_file_that_a_fork_adds_to_megatron_counts(file: str, stays: bool, tmp_path: Path) -> None:
    tree = {f"megatron/training/{name}": "" for name in ("training.py", "global_vars.py")}
    tree |= {"megatron/training/arguments.py": ARGUMENTS, "train.py": "from megatron.training import pretrain\n"}
    tree[f"megatron/training/{file}"] = tree.get(f"megatron/training/{file}", "") + PARSED + READ["of a call"]
    output, launcher = fixed(tmp_path, {**tree, "run.sh": STARTED})
    assert (launcher == STARTED) is stays, output


CHANGED = {
    "the implementation": "args = parse_args()\nif args.cuda_graph_impl == 'local':\n    print('x')\n",
    "the scope": "args = parse_args()\nprint(args.cuda_graph_scope)\n",
    "a word": "import sys\n\nif 'local' in sys.argv:\n    print('x')\n",
    "a word by its place": "import sys\n\nprint(sys.argv[sys.argv.index('--cuda-graph-impl') + 1])\n",
    "the number of words": "import sys\n\nprint(len(sys.argv))\n",
    "words under another name": "from sys import argv\n\nwords = argv[1:]\n",
    "a text of all words": "import sys\n\nprint('impl local' in ' '.join(sys.argv))\n",
}
NOT_CHANGED = {
    "the modules of a configuration": "def run(config):\n    print(config.cuda_graph_modules)\n",
    "the program": "import sys\n\nprint(sys.argv[0])\n",
    "all words": "import sys\n\nprint(' '.join(sys.argv))\nparse_args(sys.argv[1:])\n",
    "a word that is added": "import sys\n\nsys.argv += ['--bf16']\nsys.argv.append('--x')\n",
}
LOCAL = "#!/bin/bash\ntorchrun train.py --cuda-graph-impl local --cuda-graph-scope full_iteration\n"


@pytest.mark.parametrize("use", CHANGED.values(), ids=CHANGED)
@pytest.mark.parametrize("module", ["train.py", "team/graphs.py"])
def test_a_program_that_depends_on_what_changes_keeps_its_flags(use: str, module: str, tmp_path: Path) -> None:
    importing = {} if module == "train.py" else {"train.py": "from team.graphs import *\n"}
    output, launcher = fixed(tmp_path, {**importing, module: PARSED + use, "run.sh": LOCAL})
    assert launcher == LOCAL, output


@pytest.mark.parametrize("use", NOT_CHANGED.values(), ids=NOT_CHANGED)
def test_a_program_that_depends_on_nothing_that_changes(use: str, tmp_path: Path) -> None:
    output, launcher = fixed(tmp_path, {"train.py": PARSED + use, "run.sh": LOCAL})
    assert "--cuda-graph-impl full_iteration" in launcher, output


def test_an_implementation_that_stays_may_be_read(tmp_path: Path) -> None:
    script = LOCAL.replace("full_iteration", "attn")
    output, launcher = fixed(tmp_path, {"train.py": PARSED + CHANGED["the implementation"], "run.sh": script})
    assert launcher == script.replace("scope", "modules"), output
