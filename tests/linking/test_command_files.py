"""Files that have a part in a command line of another file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import run

import pytest
from click.testing import Result

Run = Callable[..., Result]

RUN = "torchrun pretrain_gpt.py"
ATTN = "--cuda-graph-impl local --cuda-graph-scope attn"
FULL = "--cuda-graph-impl local --cuda-graph-scope full_iteration"
TE = "--external-cuda-graph --cuda-graph-scope attn"
MORE = "--cuda-graph-scope mlp"

MEET = {
    "a caller": {"run.sh": f"bash train.sh {MORE}\n", "train.sh": f'{RUN} {FULL} "$@"\n'},
    "a caller of a caller": {
        "run.sh": f"bash wrap.sh {MORE}\n",
        "wrap.sh": 'exec ./train.sh --lr 1 "$@"\n',
        "train.sh": f'{RUN} {FULL} "$@"\n',
    },
    "tox": {"tox.ini": f"[testenv]\ncommands = bash train.sh {MORE}\n", "train.sh": f'{RUN} {ATTN} "$@"\n'},
    "a justfile": {"justfile": f"train:\n    bash train.sh {MORE}\n", "train.sh": f'{RUN} {ATTN} "$@"\n'},
    "code of a page": {"README.md": f"```bash\nbash train.sh {MORE}\n```\n", "train.sh": f'{RUN} {ATTN} "$@"\n'},
    "Python": {
        "run.py": "import subprocess\nsubprocess.run(['bash', 'train.sh', '--cuda-graph-scope', 'mlp'])\n",
        "train.sh": f'{RUN} {FULL} "$@"\n',
    },
    "a variable of a workflow": {
        "ci.yml": f"jobs:\n  t:\n    env:\n      EXTRA_ARGS: {MORE}\n    steps:\n    - run: bash train.sh\n",
        "train.sh": f"{RUN} {ATTN} $EXTRA_ARGS\n",
    },
    "a variable of a makefile": {
        "Makefile": f"export EXTRA = {MORE}\nt:\n\tbash train.sh\n",
        "train.sh": f"{RUN} {ATTN} $EXTRA\n",
    },
    "an exported variable": {
        "run.sh": f"export GRAPHS='{MORE}'\nbash train.sh\n",
        "train.sh": f"{RUN} {ATTN} $GRAPHS\n",
    },
    "a file of flags": {"extra.txt": f"{MORE}\n", "train.sh": f"{RUN} {ATTN} $(cat extra.txt)\n"},
    "a file of flags that is read": {
        "extra.txt": "--cuda-graph-scope\nmlp\n",
        "train.sh": f'mapfile -t MORE < extra.txt\n{RUN} {ATTN} "${{MORE[@]}}"\n',
    },
    "a file that is sourced": {"common": f"GRAPHS='{MORE}'\n", "train.sh": f". common\n{RUN} {ATTN} $GRAPHS\n"},
    "sed": {"mlp.sh": "sed 's/scope attn/scope mlp/' train.sh | bash\n", "train.sh": f"{RUN} {ATTN}\n"},
    "awk": {"off.sh": "awk '{gsub(/--external[^ ]*/, \"\"); print}' train.sh | bash\n", "train.sh": f"{RUN} {TE}\n"},
    "a regular expression": {
        "off.py": "import re\nprint(re.sub(r'--(enable|external)-\\S+', '', open('train.sh').read()))\n",
        "train.sh": f"{RUN} {TE}\n",
    },
    "a script that counts": {"run.sh": f"bash train.sh {FULL}\n", "train.sh": f'{RUN} "$@" --lr $#\n'},
    "a script that shifts": {"run.sh": f"bash train.sh {TE}\n", "train.sh": f'shift\n{RUN} "$@"\n'},
    "a script that cuts a variable": {
        "run.sh": f"export G='{TE}'\nbash train.sh\n",
        "train.sh": f"{RUN} ${{G#*graph }}\n",
    },
    "xargs": {"extra.txt": f"{MORE}\n", "train.sh": f"xargs -a extra.txt {RUN} {ATTN}\n"},
}

APART = {
    "a caller without flags": {"run.sh": "bash train.sh --lr 1\n", "train.sh": f'{RUN} {ATTN} "$@"\n'},
    "a caller of a script that takes none": {
        "run.sh": f"bash train.sh\n{RUN} --cuda-graph-impl local\n",
        "train.sh": f"{RUN} {ATTN}\n",
    },
    "a variable of its own": {
        "other.sh": f'ARGS="--cuda-graph-impl local"\n{RUN} $ARGS\n',
        "train.sh": f"{RUN} {ATTN} $ARGS\n",
    },
    "prose": {
        "README.md": "`train.sh` trains. 0.17 has `--cuda-graph-scope`.\n\n```bash\nbash train.sh --lr 1\n```\n",
        "train.sh": f'{RUN} {ATTN} "$@"\n',
    },
    "sed of another word": {"run.sh": "sed -i 's/--lr 1/--lr 2/' train.sh\n", "train.sh": f"{RUN} --lr 1 {ATTN}\n"},
    "a comment": {"other.sh": f"# as train.sh\n{RUN} --cuda-graph-impl local\n", "train.sh": f'{RUN} {ATTN} "$@"\n'},
    "a number before the flags of a function": {"train.sh": f'f() {{ local n=$1; shift; {RUN} "$@"; }}\nf 8 {ATTN}\n'},
}


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    run(["git", "init", "-q"], cwd=folder, check=True)
    run(["git", "add", "-A"], cwd=folder, check=True)


@pytest.mark.parametrize("name", MEET)
def test_a_command_line_that_another_file_has_a_part_in_is_left(project: Path, cgmigrate: Run, name: str) -> None:
    written(project, MEET[name])
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert {one: (project / one).read_text() for one in MEET[name]} == MEET[name]


@pytest.mark.parametrize("name", APART)
def test_a_command_line_that_others_cannot_meet_is_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    written(project, APART[name])
    cgmigrate("fix", ".")
    after = APART[name] | {"train.sh": APART[name]["train.sh"].replace("-scope attn", "-modules attn")}
    assert {one: (project / one).read_text() for one in after} == after
