"""A flag that becomes two words: scripts in which the number of words counts, judged by a real bash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from click.testing import Result

from cgmigrate.documents.shell import ShellDocument
from tests.support.shell_judges import recorded

Run = Callable[..., Result]

FLAG = "--external-cuda-graph"
NEW = ["--cuda-graph-impl", "transformer_engine"]
RUN = "torchrun pretrain_gpt.py"
STRING = f'CG="{FLAG}"\n'
ARRAY = f"ARGS=({FLAG} --bf16)\n"

STAY = {
    "quotes around a default": f'{STRING}{RUN} "${{CG:-}}"\n',
    "quotes in an alternative": f'{STRING}{RUN} ${{CG:+"$CG"}}\n',
    "quotes around another variable": f'{STRING}ALL=$CG\n{RUN} "$ALL"\n',
    "quotes around another variable with an alternative": f'{STRING}ALL="${{CG}}"\n{RUN} "${{ALL:-}}"\n',
    "an element of an array": f'{STRING}ARGS=(--bf16 "${{CG-}}")\n{RUN} "${{ARGS[@]}}"\n',
    "an array without an index": f"{ARRAY}{RUN} $ARGS\n",
    "an array without an index, in quotes": f'{ARRAY}{RUN} "${{ARGS}}"\n',
    "an array without an index in a string": f'{ARRAY}ALL="--bf16 $ARGS"\n{RUN} $ALL\n',
    "one element": f'{ARRAY}{RUN} "${{ARGS[1]}}" "${{ARGS[0]}}"\n',
    "the rest of an array": f'{ARRAY}{RUN} "${{ARGS[@]:1}}"\n',
    "an element that is deleted": f"{ARRAY}unset 'ARGS[0]'\n{RUN} \"${{ARGS[@]}}\"\n",
    "another separator": f"IFS=$'\\n\\t'\n{STRING}{RUN} $CG\n",
    "another separator in a function": f'{STRING}run() {{\n  local IFS=,\n  {RUN} $CG "$@"\n}}\nrun --bf16\n',
    "an argument with a number": f"run() {{ {RUN} --name $1 $2 --lr $3; }}\n{STRING}run a $CG 1\n",
    "an argument with a number, of a function with a keyword": (
        f'function run {{\n  local flag="$1" lr=$2\n  shift 2\n  {RUN} "$flag" --lr $lr "$@"\n}}\nrun {FLAG} 1 --bf16\n'
    ),
    "a loop over words": f"{STRING}for flag in $CG --bf16; do\n  {RUN} $flag\ndone\n",
}


@pytest.mark.parametrize("name", STAY)
def test_a_script_in_which_the_number_of_words_counts_stays(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(STAY[name])
    cgmigrate("fix", ".")
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == STAY[name]
    assert cgmigrate("check", ".").exit_code == 1
    replaced = STAY[name].replace(FLAG, " ".join(NEW))
    words = [[word if word != FLAG else NEW for word in command] for command in recorded(STAY[name])]
    flat = [[part for word in command for part in (word if isinstance(word, list) else [word])] for command in words]
    assert recorded(replaced) != flat, "the case does not show what it is about"


CHANGE = {
    "a test": f'{STRING}if [ -n "$CG" ]; then echo "with $CG"; fi\n[[ -z "${{CG:-}}" ]] || {RUN} $CG\n',
    "text for people": f'{STRING}echo "$CG"\n{RUN} ${{CG:-}} $CG\n',
    "code for the shell": f'CMD="{RUN} {FLAG}"\neval "$CMD"\n',
    "a part of a text": f'{STRING}bash -c "{RUN} $CG"\n{RUN} $CG\n',
    "a default of an array": f'{ARRAY}{RUN} "${{ARGS[@]:-}}" "${{ARGS[@]+x}}"\n',
    "a separator for one command": f'IFS=, read -r one two <<< "a,b"\n{STRING}{RUN} $CG\n',
    "a separator with a blank": f"IFS=$' \\t\\n'\n{STRING}{RUN} $CG\n",
    "arguments before the flags": f'run() {{\n  local name=$1; shift\n  {RUN} --name $name "$@"\n}}\nrun a {FLAG}\n',
    "arguments of a script": f"{RUN} $1 {FLAG}\n",
}


@pytest.mark.parametrize("name", CHANGE)
def test_other_scripts_are_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(CHANGE[name])
    cgmigrate("fix", ".")
    assert path.read_text() == CHANGE[name].replace(FLAG, " ".join(NEW))
    before = [" ".join(command).replace(FLAG, " ".join(NEW)) for command in recorded(CHANGE[name])]
    assert [" ".join(command) for command in recorded(path.read_text())] == before


def test_many_variables_take_time_linear_in_their_number() -> None:
    def seconds(count: int) -> float:
        names = "".join(
            f'A{at}="{FLAG} $A{at - 1}"\nB{at}=({FLAG})\nrun $A{at} "${{B{at}[@]}}"\n' for at in range(count)
        )
        start = process_time()
        ShellDocument(f"run() {{ {RUN} $1; }}\n{names}")
        return process_time() - start

    seconds(10)
    assert seconds(400) < 5 * seconds(200) + 0.2
