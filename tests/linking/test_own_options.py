"""Flags that a program of the project defines by itself keep their names; those of Megatron's programs do not."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.tables import from_table, table_of

FLAGS = "--cuda-graph-scope attn --tensor-model-parallel-size 2"

OWN = table_of(__name__, "OWN")
"""Projects with flags of their own, by what they have to be recognised by."""

OF_OTHERS = table_of(__name__, "OF_OTHERS")
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

READ = table_of(__name__, "READ")
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
