"""Shell scripts: which flags are sites, what a fix writes, and what stays, judged by a real bash."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.documents.shell import ShellDocument
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.megatron.settings import Missing, Undecided
from tests.support.fixed_files import known_spans
from tests.support.paths import ROOT
from tests.support.shell_judges import is_valid, recorded, without_settings
from tests.support.tables import from_table, table_of

Run = Callable[..., Result]

HEAD = "#!/bin/bash\nset -euo pipefail\n"
LOCAL = "--num-query-groups 8 --cuda-graph-impl local"

FORMS = {
    "the last flag of a continued command": (
        "torchrun pretrain_gpt.py \\\n    --bf16 \\\n    --cuda-graph-impl local \\\n    --cuda-graph-scope full\n",
        "torchrun pretrain_gpt.py \\\n    --bf16 \\\n    --cuda-graph-impl local\n",
    ),
    "a flag amid a continued command": (
        "torchrun pretrain_gpt.py \\\n    --cuda-graph-impl local \\\n    --cuda-graph-scope full \\\n    --bf16\n",
        "torchrun pretrain_gpt.py \\\n    --cuda-graph-impl local \\\n    --bf16\n",
    ),
    "the last two flags of a continued command": (
        "torchrun pretrain_gpt.py --bf16 \\\n  --cuda-graph-impl local \\\n  --cuda-graph-scope full_iteration \\\n\n",
        "torchrun pretrain_gpt.py --bf16 \\\n  --cuda-graph-impl full_iteration \\\n\n",
    ),
    "the last flag of a string of several lines": (
        "bash -c 'torchrun pretrain_gpt.py \\\n    --enable-cuda-graph \\\n    --cuda-graph-scope full'\n",
        "bash -c 'torchrun pretrain_gpt.py \\\n    --cuda-graph-impl local'\n",
    ),
    "the last flag of a text that is run": (
        'CMD="torchrun pretrain_gpt.py \\\\\n  --enable-cuda-graph \\\\\n  --cuda-graph-scope full"\neval "$CMD"\n',
        'CMD="torchrun pretrain_gpt.py \\\\\n  --cuda-graph-impl local"\neval "$CMD"\n',
    ),
    "a flag amid a text that is run": (
        f'CMD="torchrun pretrain_gpt.py {LOCAL} \\\\\n  --cuda-graph-scope full \\\\\n  --bf16"\neval "$CMD"\n',
        f'CMD="torchrun pretrain_gpt.py {LOCAL} \\\\\n  --bf16"\neval "$CMD"\n',
    ),
    "a new flag in a text that is run": (
        f'CMD="torchrun pretrain_gpt.py {LOCAL} \\\\\n  --cuda-graph-scope attn full_iteration_inference \\\\\n'
        '  --bf16"\neval "$CMD"\n',
        f'CMD="torchrun pretrain_gpt.py {LOCAL} \\\\\n  --cuda-graph-modules attn '
        '--inference-cuda-graph-scope block \\\\\n  --bf16"\neval "$CMD"\n',
    ),
    "the last flag in a substitution of several lines": (
        "X=$(python pretrain_gpt.py \\\n    --cuda-graph-impl local      \\\n    --cuda-graph-scope full)\n",
        "X=$(python pretrain_gpt.py \\\n    --cuda-graph-impl local)\n",
    ),
    "the last flag in backticks": (
        "X=`python pretrain_gpt.py --cuda-graph-impl local \\\n    --cuda-graph-scope full`\n",
        "X=`python pretrain_gpt.py --cuda-graph-impl local`\n",
    ),
    "the last flag behind an aligned one": (
        "torchrun pretrain_gpt.py --enable-cuda-graph      \\\n    --cuda-graph-scope full\n",
        "torchrun pretrain_gpt.py --cuda-graph-impl local\n",
    ),
    "several flags on a line": (
        f"torchrun pretrain_gpt.py {LOCAL} --cuda-graph-scope attn mlp --bf16\n",
        f"torchrun pretrain_gpt.py {LOCAL} --cuda-graph-modules attn mlp --bf16\n",
    ),
    "a flag with its value in one word": (
        f"torchrun pretrain_gpt.py {LOCAL} --cuda-graph-scope=attn | cat\n",
        f"torchrun pretrain_gpt.py {LOCAL} --cuda-graph-modules=attn | cat\n",
    ),
    "quotes": (
        "python pretrain_gpt.py '--cuda-graph-impl=local' \"--cuda-graph-scope\" 'full_iteration' --bf16\n",
        "python pretrain_gpt.py '--cuda-graph-impl=full_iteration' --bf16\n",
    ),
    "quotes around a flag without a value": (
        'ARGS=(--te-rng-tracker "--enable-cuda-graph")\ntorchrun pretrain_gpt.py "${ARGS[@]}"\n',
        'ARGS=(--te-rng-tracker "--cuda-graph-impl" "local")\ntorchrun pretrain_gpt.py "${ARGS[@]}"\n',
    ),
    "columns": (
        "torchrun pretrain_gpt.py       \\\n    --external-cuda-graph      \\\n"
        "    --cuda-graph-scope   attn  \\\n    --bf16\n",
        "torchrun pretrain_gpt.py       \\\n    --cuda-graph-impl transformer_engine \\\n"
        "    --cuda-graph-modules attn  \\\n    --bf16\n",
    ),
    "an array with comments": (
        "MODEL_ARGS=(\n    --kv-channels 128\n    --enable-cuda-graph   # faster\n    # --cuda-graph-scope attn\n"
        "    --cuda-graph-scope full\n)\ntorchrun pretrain_gpt.py ${MODEL_ARGS[@]} $@\n",
        "MODEL_ARGS=(\n    --kv-channels 128\n    --cuda-graph-impl local # faster\n    # --cuda-graph-scope attn\n"
        ")\ntorchrun pretrain_gpt.py ${MODEL_ARGS[@]} $@\n",
    ),
    "an array that grows": (
        'ARGS=(--bf16)\nARGS+=( --external-cuda-graph --cuda-graph-scope attn )\npython pretrain_gpt.py "${ARGS[@]}"\n',
        "ARGS=(--bf16)\nARGS+=( --cuda-graph-impl transformer_engine --cuda-graph-modules attn )\n"
        'python pretrain_gpt.py "${ARGS[@]}"\n',
    ),
    "settings of one command in two arrays": (
        'A=(--cuda-graph-impl local)\nB=(\n  --cuda-graph-scope full\n)\npython pretrain_gpt.py "${A[@]}" "${B[@]}"\n',
        'A=(--cuda-graph-impl local)\nB=(\n)\npython pretrain_gpt.py "${A[@]}" "${B[@]}"\n',
    ),
    "a string with a command line": (
        'OPTIONS=" \\\n    --cuda-graph-impl local \\\n    --cuda-graph-scope attn mlp \\\n    --bf16"\n'
        "python pretrain_gpt.py $OPTIONS\n",
        'OPTIONS=" \\\n    --cuda-graph-impl local \\\n    --cuda-graph-modules attn mlp \\\n    --bf16"\n'
        "python pretrain_gpt.py $OPTIONS\n",
    ),
    "the last flag of a string": (
        'OPTIONS="--bf16 --cuda-graph-impl local --cuda-graph-scope full"\npython pretrain_gpt.py $OPTIONS\n',
        'OPTIONS="--bf16 --cuda-graph-impl local"\npython pretrain_gpt.py $OPTIONS\n',
    ),
    "a block that adds all flags": (
        'ARGS=(--bf16)\nif [ -n "${GRAPHS:-}" ]; then\n  ARGS+=(--external-cuda-graph --cuda-graph-scope attn)\nfi\n'
        'torchrun pretrain_gpt.py "${ARGS[@]}"\n',
        'ARGS=(--bf16)\nif [ -n "${GRAPHS:-}" ]; then\n  ARGS+=(--cuda-graph-impl transformer_engine '
        '--cuda-graph-modules attn)\nfi\ntorchrun pretrain_gpt.py "${ARGS[@]}"\n',
    ),
    "branches of which one runs": (
        'if [ -n "${A:-}" ]; then\n  G="--enable-cuda-graph --cuda-graph-scope full"\nelse\n'
        '  G="--cuda-graph-impl none"\nfi\ntorchrun pretrain_gpt.py $G --num-query-groups 8\n',
        'if [ -n "${A:-}" ]; then\n  G="--cuda-graph-impl local"\nelse\n'
        '  G="--cuda-graph-impl none"\nfi\ntorchrun pretrain_gpt.py $G --num-query-groups 8\n',
    ),
    "flags that are appended one by one": (
        'P=${P:-}\nP+=" --mtp-num-layers 1"\nP+=" --external-cuda-graph"\nP+=" --cuda-graph-scope attn"\n'
        'if [ -n "${A:-}" ]; then\n  P+=" --bf16"\nfi\nCMD="python pretrain_gpt.py ${P}"\necho "${CMD}"\neval ${CMD}\n',
        'P=${P:-}\nP+=" --mtp-num-layers 1"\nP+=" --cuda-graph-impl transformer_engine"\n'
        'P+=" --cuda-graph-modules attn"\n'
        'if [ -n "${A:-}" ]; then\n  P+=" --bf16"\nfi\nCMD="python pretrain_gpt.py ${P}"\necho "${CMD}"\neval ${CMD}\n',
    ),
    "a command that branches make": (
        'P="--cuda-graph-impl local"\nP+=" --cuda-graph-scope full"\nif [ -n "${A:-}" ]; then\n'
        '  CMD="python a.py $P"\nelse\n  CMD="python pretrain_gpt.py $P"\nfi\neval $CMD\n',
        'P="--cuda-graph-impl local"\nP+=" "\nif [ -n "${A:-}" ]; then\n'
        '  CMD="python a.py $P"\nelse\n  CMD="python pretrain_gpt.py $P"\nfi\neval $CMD\n',
    ),
    "cases": (
        'A=()\ncase "${GRAPHS:-0}" in\n  1)\n    A+=(\n      --cuda-graph-impl local\n      --cuda-graph-scope full\n'
        "    )\n    ;;\n  *) A+=(--external-cuda-graph) ;;\nesac\ntorchrun pretrain_gpt.py ${A[@]}\n",
        'A=()\ncase "${GRAPHS:-0}" in\n  1)\n    A+=(\n      --cuda-graph-impl local\n'
        "    )\n    ;;\n  *) A+=(--cuda-graph-impl transformer_engine) ;;\nesac\ntorchrun pretrain_gpt.py ${A[@]}\n",
    ),
    "an array that another file uses": (
        "MISC=(\n  --cuda-graph-impl local\n  --cuda-graph-scope full_iteration\n  --te-rng-tracker\n)\n"
        "python pretrain_gpt.py --bf16\n",
        "MISC=(\n  --cuda-graph-impl full_iteration\n  --te-rng-tracker\n)\npython pretrain_gpt.py --bf16\n",
    ),
    "a scope that becomes two flags": (
        "torchrun pretrain_gpt.py \\\n  --cuda-graph-impl local \\\n  --cuda-graph-scope attn "
        "full_iteration_inference \\\n  --bf16\n",
        "torchrun pretrain_gpt.py \\\n  --cuda-graph-impl local \\\n  --cuda-graph-modules attn "
        "--inference-cuda-graph-scope block \\\n  --bf16\n",
    ),
    "a command in a string": (
        "bash -c 'torchrun pretrain_gpt.py --external-cuda-graph --cuda-graph-scope attn'\n",
        "bash -c 'torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine --cuda-graph-modules attn'\n",
    ),
    "CRLF and other letters": (
        'X="größe 日本"\r\ntorchrun pretrain_gpt.py --external-cuda-graph \\\r\n'
        "  --cuda-graph-scope attn \\\r\n  --bf16\r\n",
        'X="größe 日本"\r\ntorchrun pretrain_gpt.py --cuda-graph-impl transformer_engine \\\r\n'
        "  --cuda-graph-modules attn \\\r\n  --bf16\r\n",
    ),
}


STAY = table_of(__name__, "STAY")
SILENT = {
    "a trainer with values of its own",
    "a line of a string that is turned off",
    "a comment",
    "Megatron-Bridge's harness",
    "a message",
    "an option of the script",
    "a newer command",
}


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    path = project / "train.sh"
    path.write_bytes((HEAD + before).encode())
    assert cgmigrate("check", ".").exit_code == 1
    result = cgmigrate("fix", ".")
    assert path.read_bytes().decode() == HEAD + after, result.output
    cgmigrate("fix", ".")
    assert path.read_bytes().decode() == HEAD + after


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("variables", ["", "A=1 GRAPHS=1; "])
def test_bash_passes_on_the_other_words_as_before(before: str, after: str, variables: str) -> None:
    old, new = (text.replace("\r\n", "\n") for text in (before, after))
    assert is_valid(old) and is_valid(new)
    recordings = [recorded(variables + text) for text in (old, new)]
    assert recordings[0] and recordings[0] != [[]]
    # The words of `bash -c` are those of the command that it starts.
    assert [without_settings(words) for words in recordings[0]] == [without_settings(words) for words in recordings[1]]


@pytest.mark.parametrize(("name", "text"), STAY.items(), ids=STAY)
def test_what_cannot_be_followed_or_belongs_to_others_stays(
    project: Path, cgmigrate: Run, name: str, text: str
) -> None:
    path = project / "train.sh"
    path.write_text(HEAD + text)
    result = cgmigrate("check", ".")
    assert (result.exit_code == 0) is (name in SILENT), result.output
    cgmigrate("fix", ".")
    assert path.read_text() == HEAD + text


def test_a_comment_suppresses_in_an_array_and_above_a_command(project: Path, cgmigrate: Run) -> None:
    text = (
        "A=(\n  --external-cuda-graph  # cgmigrate: ignore[CG102] later\n)\ntorchrun pretrain_gpt.py ${A[@]}\n"
        "# cgmigrate: ignore[CG102]\ntorchrun pretrain_vlm.py \\\n  --bf16 \\\n  --external-cuda-graph\n"
    )
    (project / "train.sh").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output
    cgmigrate("fix", ".")
    assert (project / "train.sh").read_text() == text


def test_written_suppressions_keep_the_script_valid(project: Path, cgmigrate: Run) -> None:
    path = project / "train.sh"
    path.write_text("torchrun pretrain_gpt.py \\\n  --external-cuda-graph \\\n  --bf16\n")
    assert cgmigrate("check", ".", "--add-ignore").exit_code == 0
    assert is_valid(path.read_text()) and recorded(path.read_text()) == [
        ["torchrun", "pretrain_gpt.py", "--external-cuda-graph", "--bf16"]
    ]
    assert cgmigrate("check", ".").exit_code == 0


def test_a_file_of_arguments(project: Path, cgmigrate: Run) -> None:
    path = project / "gpt.args"
    path.write_text("# all\n--te-rng-tracker\n--cuda-graph-impl local\n--cuda-graph-scope attn\n--bf16\n")
    cgmigrate("fix", ".")
    assert path.read_text() == ("# all\n--te-rng-tracker\n--cuda-graph-impl local\n--cuda-graph-modules attn\n--bf16\n")


def test_a_script_without_a_suffix(project: Path, cgmigrate: Run) -> None:
    path = project / "launch"
    text = f"#!/usr/bin/env bash\ntorchrun pretrain_gpt.py {LOCAL} --cuda-graph-scope attn\n"
    path.write_text(text)
    path.chmod(0o755)
    assert cgmigrate("check", ".").exit_code == cgmigrate("check", "launch").exit_code == 1
    assert "launch:2" in cgmigrate("explain", "launch:2").output
    assert cgmigrate("fix", ".").exit_code == 0
    assert path.read_text() == text.replace("scope", "modules") and path.stat().st_mode & 0o777 == 0o755
    assert cgmigrate("undo").exit_code == 0
    assert path.read_text() == text


SHOWN = 'S="attn mlp"\n'
COMMAND = "torchrun pretrain_gpt.py --cuda-graph-impl local --cuda-graph-scope $S\n"


@from_table
def test_a_value_is_known_if_the_script_shows_it(text: str, value: list[str] | None) -> None:
    (site,) = ShellDocument(text).sites
    assert (site.own["cuda_graph_scope"] == value) is (value is not None), site.own
    assert isinstance(site.own["cuda_graph_scope"], Undecided) is (value is None)


def test_a_fix_of_flags_that_another_program_gets_is_unsafe(project: Path, cgmigrate: Run) -> None:
    text = 'G="--enable-cuda-graph"\ntorchrun pretrain_gpt.py $G\npython estimate.py $G\n'
    path = project / "train.sh"
    path.write_text(text)
    assert "`estimate.py` gets the same flags" in cgmigrate("check", ".").stdout
    cgmigrate("fix", ".")
    assert path.read_text() == text


def test_a_fix_of_a_flag_with_a_variable_is_unsafe(project: Path, cgmigrate: Run) -> None:
    path = project / "a.sh"
    path.write_text(SHOWN + COMMAND)
    cgmigrate("fix", ".")
    assert path.read_text() == SHOWN + COMMAND
    assert "`$S` has the value" in cgmigrate("check", ".").output
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == SHOWN + COMMAND.replace("scope", "modules")


@from_table
def test_the_script_in_a_computed_folder_shows_whose_the_flags_are(
    project: Path, cgmigrate: Run, text: str, is_rewritten: bool
) -> None:
    path = project / "train.sh"
    path.write_text(text.replace("FLAG", "--enable-cuda-graph"))
    cgmigrate("fix", ".")
    flag = "--cuda-graph-impl local" if is_rewritten else "--enable-cuda-graph"
    assert path.read_text() == text.replace("FLAG", flag)


@from_table
def test_the_scope_full_alone_is_deleted(project: Path, cgmigrate: Run, text: str, after: str, is_safe: bool) -> None:
    path = project / "train.sh"
    path.write_text(text)
    cgmigrate("fix", ".")
    assert path.read_text() == (after if is_safe else text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == after


def test_zsh_does_not_divide_values_into_words(project: Path, cgmigrate: Run) -> None:
    path = project / "train.sh"
    text = "#!/usr/bin/env zsh\nA=--enable-cuda-graph\ntorchrun pretrain_gpt.py $A\n"
    path.write_text(text)
    cgmigrate("fix", ".")
    assert path.read_text() == text and cgmigrate("check", ".").exit_code == 1


@pytest.mark.parametrize("text", ["if [ x ]; then\n--cuda-graph-scope attn", "\0 --cuda-graph-scope", "((", "'" * 9])
def test_text_that_is_no_shell_code_is_reported_and_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.sh"
    path.write_text(f"torchrun pretrain_gpt.py --external-cuda-graph\n{text}")
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert "--external-cuda-graph\n" in path.read_text()


def test_a_run_without_settings_in_scripts_does_not_import_the_grammar(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("torchrun pretrain_gpt.py --bf16\n")
    (tmp_path / "a.yaml").write_text("model:\n  cuda_graph_impl: local\n  hidden_size: 1\n")
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom cgmigrate.cli.commands import main\n"
        "result = CliRunner().invoke(main, ['check', '.'])\nassert result.exit_code == 0, result.output\n"
        "assert not any('tree_sitter' in name for name in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


@from_table
def test_variables_that_multiply_are_followed_up_to_a_limit(text: str) -> None:
    document = ShellDocument(text)
    assert document.sites and (
        len(document.sites) == 1 or all(site.blocked_by or site.linked for site in document.sites)
    )


def test_the_first_flag_of_a_file_of_arguments_is_rewritten(project: Path, cgmigrate: Run) -> None:
    path = project / "train.args"
    path.write_text("--external-cuda-graph\n--cuda-graph-scope attn\n")
    result = cgmigrate("fix", ".")
    assert path.read_text() == "--cuda-graph-impl transformer_engine\n--cuda-graph-modules attn\n", result.output


@from_table
def test_a_variable_of_plain_variables_has_no_further_flags(values: str, is_open: bool) -> None:
    text = f"{values}torchrun pretrain_gpt.py $P --enable-cuda-graph\n"
    value = ShellDocument(text).value_beside(0, [], ["--other"])
    assert value is (Missing.UNKNOWN if is_open else Missing.ABSENT)


BRACES = {
    "after the name": ("--cuda-graph-{impl=local,scope=full}", "--cuda-graph-scope"),
    "before the name": ("--{external,enable}-cuda-graph", "--external-cuda-graph"),
    "new names": ("--cuda-graph-{impl=local,modules=attn}", ""),
    "a variable": ("--cuda-graph-${KIND}", ""),
    "another option": ("--log-{scope,impl}", ""),
}


@pytest.mark.parametrize("name", BRACES)
@from_table
def test_flags_in_braces_are_reported(project: Path, cgmigrate: Run, path: str, text: str, name: str) -> None:
    word, flag = BRACES[name]
    (project / path).write_text(text.format(word=word))
    result = cgmigrate("fix", "--unsafe-fixes", "--diff", ".")
    assert (project / path).read_text() == text.format(word=word)
    assert ("1 diagnostic remains" in result.stderr) is bool(flag)
    checked = cgmigrate("check", ".")
    assert (f"`{word}` expands to several flags in a shell, `{flag}` among them" in checked.stdout) is bool(flag)


@pytest.mark.parametrize(
    "text", ["# use --cuda-graph-{impl,scope}\n", 'echo "use --cuda-graph-{impl,scope}"\n', "x=--cuda-graph-{impl}\n"]
)
def test_braces_in_prose_are_not_reported(project: Path, cgmigrate: Run, text: str) -> None:
    (project / "run.sh").write_text(text)
    assert cgmigrate("check", ".").exit_code == 0


@from_table
@pytest.mark.parametrize("line", ["python pretrain_gpt.py {word} --bf16\n", 'ARGS="--bf16 {word}"\n'])
def test_a_flag_in_an_expansion_says_when_it_counts(
    project: Path, cgmigrate: Run, line: str, word: str, place: str
) -> None:
    (project / "run.sh").write_text(line.format(word=word))
    assert place in cgmigrate("check", ".").stdout


FLAG = "--external-cuda-graph"
NESTED = {
    "one command": lambda levels: "$(" * levels + FLAG + ")" * levels,
    "a command that is started": lambda levels: "python pretrain_gpt.py " + "$(echo " * levels + FLAG + ")" * levels,
    "flags at each level": lambda levels: f"python pretrain_gpt.py {FLAG} $(" * levels + FLAG + ")" * levels,
    "assignments": lambda levels: "x=$(" * levels + FLAG + ")" * levels,
    "quoted": lambda levels: '"$(' * levels + FLAG + ')"' * levels,
    "an override": lambda levels: "python run.py ++a.enable_cuda_graph=" + "$(" * levels + "true" + ")" * levels,
    "defaults": lambda levels: "python pretrain_gpt.py " + "${A:-$(" * levels + FLAG + ")}" * levels,
    "a here-document": lambda levels: "cat <<EOF\n" + "$(" * levels + FLAG + ")" * levels + "\nEOF",
    "blocks": lambda levels: "if true; then\n" * levels + f"python pretrain_gpt.py {FLAG}\n" + "fi\n" * levels,
    "groups": lambda levels: "{ " * levels + f"python pretrain_gpt.py {FLAG}" + "; }" * levels,
}


@pytest.mark.parametrize("make", NESTED.values(), ids=NESTED.keys())
def test_code_that_is_nested_too_deeply_is_reported_in_no_time(make: Callable[[int], str]) -> None:
    start = time.process_time()
    deep = ShellDocument(f"{HEAD}{make(2000)}\n")
    assert time.process_time() - start < 1
    assert [problem.kind for problem in deep.problems] == [ProblemKind.TOO_COMPLEX]
    assert deep.sites == []

    flat = ShellDocument(HEAD + f"{make(15)}\n" * 2)
    assert known_spans(flat) and ProblemKind.TOO_COMPLEX not in [problem.kind for problem in flat.problems]


def test_a_script_that_is_nested_too_deeply_fails_and_stays(project: Path, cgmigrate: Run) -> None:
    script, text = project / "run.sh", f"python pretrain_gpt.py {'$(' * 2000}{FLAG}{')' * 2000}\n"
    script.write_text(text)
    (project / "other.sh").write_text(f"python pretrain_gpt.py {FLAG}\n")
    result = cgmigrate("fix", "--output-format", "concise", ".")
    assert result.exit_code == 1
    assert "run.sh:1:1: CG013" in result.stdout and "nested too deeply" in result.stdout
    assert script.read_text() == text and FLAG not in (project / "other.sh").read_text()


@pytest.mark.parametrize(
    ("words", "is_safe"), [('"${ARGS[@]}"', True), ('"${ARGS[@]:-}"', False), ('"${ARGS[*]}"', False)]
)
def test_an_array_that_loses_its_words_is_no_empty_argument(
    project: Path, cgmigrate: Run, words: str, *, is_safe: bool
) -> None:
    text = f"ARGS=(--cuda-graph-scope full)\ntorchrun pretrain_gpt.py --cuda-graph-impl local {words}\n"
    (project / "run.sh").write_text(text)
    cgmigrate("fix", ".")
    assert ((project / "run.sh").read_text() != text) is is_safe
