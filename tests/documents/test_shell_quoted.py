"""Scripts in quotes, run by a real bash: each command gets the same before and after, whatever the quotes around it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.types import Capture, Reader, Rejected
from tests.documents.test_shell_by_running import fixed
from tests.support.nightly import examples
from tests.support.shell_judges import is_valid, recorded, without_settings
from tests.support.tables import table_of

Run = Callable[..., Result]

RUN = "torchrun pretrain_gpt.py --bf16"
BOTH = "--enable-cuda-graph --cuda-graph-scope attn full_iteration"
STARTERS = (
    'srun() { shift 0; "$@"; }; ssh() { shift; bash -c "$*"; }; sbatch() { bash -c "${1#--wrap=}"; }; '
    'docker() { shift 2; "$@"; }; su() { bash -c "$2"; }; export -f srun ssh sbatch docker su; '
)
"""What the starters of jobs do with their words, for the judge."""
RUNNERS = (
    "bash -c {}", "bash -ec {}", "env X=1 bash -c {}", "eval {}", "srun bash -c {}", "docker exec c bash -c {}",
    "ssh host {}", "sbatch --wrap={}", "su -c {}", "S={}\neval \"$S\"", "S={}\nbash -c \"$S\"",
)  # fmt: skip


def captured(words: Sequence[str], release: Release) -> Capture | Rejected | str:
    """Return what a release captures with the words of a command."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for flag in ("--enable-cuda-graph", "--external-cuda-graph"):
        parser.add_argument(flag, action="store_const", const=True)
    for flag in ("--cuda-graph-impl", "--inference-cuda-graph-scope"):
        parser.add_argument(flag)
    for flag in ("--cuda-graph-scope", "--cuda-graph-modules"):
        parser.add_argument(flag, nargs="+")
    try:
        known, _ = parser.parse_known_args(list(words))
    except (argparse.ArgumentError, SystemExit) as error:
        return str(error)
    return capture_of({k: v for k, v in vars(known).items() if v is not None}, release, Reader.COMMAND_LINE)


def judge(before: str, after: str, variables: str = "") -> None:
    """Fail if a command gets something else, or captures something else."""
    old, new = (recorded(f"{STARTERS}{variables}\n{text}") for text in (before, after))
    # Several flags in one word are none: every program rejects them, before and after.
    is_rejected = [any(" " in word and "cuda-graph" in word for word in words) for words in old]
    old, new = ([one for one, is_one in zip(every, is_rejected, strict=True) if not is_one] for every in (old, new))
    assert [without_settings(words) for words in old] == [without_settings(words) for words in new], (before, after)
    for one, other in zip(old, new, strict=True):
        result = captured(one, LAST_OLD)
        if one != other and not isinstance(result, Rejected | str):
            assert captured(other, NEWEST) == result, (before, after)


# --- any depth and quotes --------------------------------------------------------------------------------

FLAGS = (
    BOTH, "--enable-cuda-graph", "--external-cuda-graph --cuda-graph-scope attn", "--cuda-graph-scope full",
    "--cuda-graph-impl local --cuda-graph-scope full_iteration", "--cuda-graph-impl local", "--cuda-graph-scope mlp",
    "--cuda-graph-impl=local --cuda-graph-scope=attn",
)  # fmt: skip
LINES = (
    RUN + " {0}", 'G="{0}"; ' + RUN + " $G", "G='{0}'\n" + RUN + " $G {1}", 'A=({0} --lr 1)\n' + RUN + ' "${{A[@]}}"',
    "cd /tmp && " + RUN + " {0} || true", "if [ -n \"$X\" ]; then " + RUN + " {0}; else " + RUN + " {1}; fi",
    'export G="{0}"; ' + RUN + " $G", RUN + " \\\n  {0} \\\n  --lr 1", RUN + " {0} $G", RUN + ' "{0}"',
    "# {1}\n" + RUN + " {0}", RUN + " {0} # {1}", 'export H="{1}"',  RUN + " {0} $H", "echo 'x y'", "true | " + RUN,
    'f() {{ ' + RUN + ' "$@" {0}; }}; f {1}', "for x in 1 2; do " + RUN + " {0} --lr $x; done",
)  # fmt: skip


def in_single_quotes(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def in_double_quotes(text: str) -> str:
    for character in '\\"$`':
        text = text.replace(character, "\\" + character)
    return f'"{text}"'


def expanded_by_the_outer_shell(text: str) -> str:
    return in_double_quotes(text).replace("\\$", "$")


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 2)):
            quote = draw(st.sampled_from((in_single_quotes, in_double_quotes, expanded_by_the_outer_shell)))
            lines.append(draw(st.sampled_from(RUNNERS)).format(quote(draw(nested(depth - 1)))))
        else:
            one, other = draw(st.sampled_from(FLAGS)), draw(st.sampled_from(FLAGS))
            lines.append(draw(st.sampled_from(LINES)).format(one, other))
    return draw(st.sampled_from(["\n", "\n", "; "])).join(lines)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=nested(), variable=st.sampled_from(["", "X=1", "export G=--lr", "export X=1 H="]))
def test_each_command_captures_the_same_in_quotes_of_any_depth(text: str, variable: str) -> None:
    text += "\n"
    if not is_valid(text):
        return
    after = fixed(text)
    assert is_valid(after)
    if after != text:
        judge(text, after, variable)


NEW = "--cuda-graph-impl full_iteration"
FORMS = table_of(__name__, "FORMS")


@pytest.mark.parametrize("name", FORMS)
def test_a_script_in_quotes_is_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    (project / "a.sh").write_text(FORMS[name] + "\n")
    cgmigrate("fix", ".")
    assert (project / "a.sh").read_text() == FORMS[name].replace(BOTH, NEW) + "\n"
    judge(FORMS[name] + "\n", (project / "a.sh").read_text())
    assert len(recorded(STARTERS + FORMS[name])) == FORMS[name].count(RUN)


STAY = table_of(__name__, "STAY")


@pytest.mark.parametrize("name", STAY)
def test_a_text_that_may_be_no_script_stays_and_is_reported(project: Path, cgmigrate: Run, name: str) -> None:
    (project / "a.sh").write_text(STAY[name] + "\n")
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert (project / "a.sh").read_text() == STAY[name] + "\n"


def test_flags_that_are_not_read_may_be_in_a_variable() -> None:
    """A value in quotes of depth three, and a command that expands it."""
    text = f"G='--enable-cuda-graph --cuda-graph-scope attn full_iteration'\n{RUN} $G {BOTH}"
    for runner in ("sbatch --wrap={}", "bash -c {}", "bash -c {}"):
        text = runner.format(in_single_quotes(text))
    after = fixed(text + "\n")
    assert after == text + "\n" or judge(text + "\n", after) is None
