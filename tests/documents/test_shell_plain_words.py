"""Words of a script that are counted, picked, cut or compared: the fix is not safe, and has one reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.shell_judges import recorded

Run = Callable[..., Result]

RUN = "torchrun pretrain_gpt.py"
FLAGS = "--cuda-graph-impl local --cuda-graph-scope full_iteration"
NEW = "--cuda-graph-impl full_iteration"
ARRAY, STRING = f"A=({FLAGS} --lr 1)\n", f'A="{FLAGS} --lr 1"\n'
SHOW = 'torchrun pretrain_gpt.py "{}"\n'

NOT_PLAIN = {
    "a number of words": f'set -- {FLAGS}\n{RUN} "$@"\n{SHOW.format("$#")}',
    "a number of elements": f'{ARRAY}{RUN} "${{A[@]}}"\n{SHOW.format("${#A[@]}")}',
    "a length": f"{STRING}{RUN} $A\n{SHOW.format('${#A}')}",
    "shift": f'set -- {FLAGS} --lr 1\nshift 2\n{RUN} "$@"\n',
    "a prefix": f"{STRING}{RUN} ${{A#*graph}}\n",
    "a suffix": f"{STRING}{RUN} ${{A%graph*}}\n",
    "a part": f"{STRING}{RUN} $A\n{SHOW.format('${A:0:20}')}",
    "a pattern": f"{STRING}{RUN} ${{A//local/none}}\n",
    "a test": f'{STRING}if [[ "$A" == *local* ]]; then {RUN} --bf16; fi\n{RUN} $A\n',
    "case": f'{STRING}case "$A" in *local*) {RUN} --bf16 ;; esac\n{RUN} $A\n',
    "a loop": f'{ARRAY}for a in "${{A[@]}}"; do {RUN} "$a"; done\n{RUN} "${{A[@]}}"\n',
    "another program": f"{STRING}{RUN} $(echo $A | tr _ -)\n",
    "a string": f'{STRING}read -r a b c <<< "$A"\n{RUN} $c\n{RUN} $A\n',
    "a second name": f"{STRING}B=$A\n{RUN} $B\n{SHOW.format('${#B}')}",
    "an indirect name": f"{STRING}B=A\nC=$(echo ${{!B}} | wc -w)\n{RUN} $A $C\n",
    "arguments of a function that counts": f'f() {{ {RUN} "$@" $#; }}\nf {FLAGS}\n',
    "a changed element": f'{ARRAY}A[1]=none\n{RUN} "${{A[@]}}"\n',
    "case of letters": f"{STRING}{RUN} $A {SHOW.format('${A^^}')}",
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_a_script_that_does_more_with_words_than_pass_them_on_is_left(project: Path, cgmigrate: Run, name: str) -> None:
    path, text = project / "train.sh", NOT_PLAIN[name]
    path.write_text(text)
    old, new = (" ".join(" ".join(words) for words in recorded(one)) for one in (text, text.replace(FLAGS, NEW)))
    assert old.replace(FLAGS, NEW) != new, "the case does not show what it is about"
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert path.read_text() == text


PLAIN = {
    "text for people": f'{STRING}echo "with $A"\n{RUN} $A\n',
    "a variable that may be empty": f'{STRING}[ -n "$A" ] && {RUN} $A\n',
    "an exported variable": f"export {STRING}{RUN} ${{A}}\n",
    "a declaration": f'declare -a A\n{ARRAY}{RUN} "${{A[@]}}"\n',
    "a default": f'{ARRAY}{RUN} "${{A[@]:-}}" ${{B:+x}}\n',
    "a loop around the command": f'{ARRAY}for x in 1 2; do {RUN} "${{A[@]}}" $x; done\n',
    "a branch around the command": f'{STRING}case "$1" in a) {RUN} $A ;; esac\nif [ $# -gt 0 ]; then {RUN} $A; fi\n',
    "a function that passes its arguments on": f'f() {{ {RUN} "$@"; }}\nf {FLAGS}\n',
    "a second program of Megatron-LM": f"{STRING}{RUN} $A\ntorchrun pretrain_mamba.py $A\n",
    "a launcher": f"{STRING}torchrun launch.py pretrain_gpt.py $A\n",
    "a name in a text": f'{STRING}# A is long: ${{#A}}\necho "A is set"\n{RUN} $A\n',
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_script_that_passes_words_on_is_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(PLAIN[name])
    cgmigrate("fix", ".")
    assert path.read_text() == PLAIN[name].replace(FLAGS, NEW)
