"""Command lines in values of YAML files: which are read, what a fix writes, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.megatron.catalogue import load
from tests.support.fixed_files import Run, check_passes, check_rewritten, with_safe_fixes
from tests.support.nightly import examples
from tests.support.shell_judges import is_valid, recorded, without_settings

TRAIN = "torchrun pretrain_gpt.py"
LOCAL = "--cuda-graph-impl local"

FORMS = {
    "a literal block": (
        f"jobs:\n  a:\n    steps:\n      - run: |\n          set -e\n          {TRAIN} \\\n            {LOCAL} \\\n"
        "            --cuda-graph-scope full\n          # done\n      - uses: x  # y\n",
        f"jobs:\n  a:\n    steps:\n      - run: |\n          set -e\n          {TRAIN} \\\n            {LOCAL}\n"
        "          # done\n      - uses: x  # y\n",
    ),
    "the last line of a literal block": (
        f"script: |-\n    A=(\n        {LOCAL}\n        --cuda-graph-scope full\n    )\n\n    {TRAIN} ${{A[@]}}\n"
        "key: 1\n",
        f"script: |-\n    A=(\n        {LOCAL}\n    )\n\n    {TRAIN} ${{A[@]}}\nkey: 1\n",
    ),
    "line breaks of Windows": (
        f"run: |\r\n  {TRAIN} \\\r\n    {LOCAL} \\\r\n    --cuda-graph-scope full \\\r\n    --bf16\r\nkey: 1\r\n",
        f"run: |\r\n  {TRAIN} \\\r\n    {LOCAL} \\\r\n    --bf16\r\nkey: 1\r\n",
    ),
    "a block without a line break at its end": (
        f"run: |\n  {TRAIN} --enable-cuda-graph",
        f"run: |\n  {TRAIN} {LOCAL}",
    ),
    "a folded block": (
        f"command: >-\n  {TRAIN}\n  {LOCAL}\n  --cuda-graph-scope full\n  --bf16\nkey: 1\n",
        f"command: >-\n  {TRAIN}\n  {LOCAL}\n  --bf16\nkey: 1\n",
    ),
    "a plain scalar": (
        f"cmd: {TRAIN} {LOCAL} --cuda-graph-scope attn mlp --bf16 # x\n",
        f"cmd: {TRAIN} {LOCAL} --cuda-graph-modules attn mlp --bf16 # x\n",
    ),
    "a plain scalar of several lines": (
        f"cmd: {TRAIN}\n  {LOCAL}\n  --cuda-graph-scope full\n\nkey: 1\n",
        f"cmd: {TRAIN}\n  {LOCAL}\n\nkey: 1\n",
    ),
    "quotes": (
        f"a: {{cmd: '{TRAIN} --x ''a b'' --external-cuda-graph'}}\n"
        f'entrypoint: "{TRAIN} --x \\"a b\\" --enable-cuda-graph"\n',
        f"a: {{cmd: '{TRAIN} --x ''a b'' --cuda-graph-impl transformer_engine'}}\n"
        f'entrypoint: "{TRAIN} --x \\"a b\\" {LOCAL}"\n',
    ),
    "a script in double quotes": (
        f'run: "cd /x\\n{TRAIN} --path \\"$P\\" --enable-cuda-graph\\nls\\n"\n',
        f'run: "cd /x\\n{TRAIN} --path \\"$P\\" {LOCAL}\\nls\\n"\n',
    ),
    "expressions of GitHub": (
        f"steps:\n- run: {TRAIN} ${{{{ matrix.flags }}}} --lr ${{{{env.LR}}}} --enable-cuda-graph\n",
        f"steps:\n- run: {TRAIN} ${{{{ matrix.flags }}}} --lr ${{{{env.LR}}}} {LOCAL}\n",
    ),
    "arguments in a scalar": (
        f"extra_args: {LOCAL} --cuda-graph-scope attn mlp --bf16\nEXTRA_ARGS: --external-cuda-graph --bf16\n",
        f"extra_args: {LOCAL} --cuda-graph-modules attn mlp --bf16\n"
        "EXTRA_ARGS: --cuda-graph-impl transformer_engine --bf16\n",
    ),
    "a script of a shell in a list": (
        f"command: [bash, -lc, 'cd /x && {TRAIN} --enable-cuda-graph']\n"
        f"x:\n  command:\n  - /bin/sh\n  - -c\n  - |\n    {TRAIN} \\\n      --enable-cuda-graph\n",
        f"command: [bash, -lc, 'cd /x && {TRAIN} {LOCAL}']\n"
        f"x:\n  command:\n  - /bin/sh\n  - -c\n  - |\n    {TRAIN} \\\n      {LOCAL}\n",
    ),
    "a script of a shell in two lists": (
        f"a:\n  command: [/bin/bash, -lc]\n  args: ['{TRAIN} --enable-cuda-graph']\nb:\n  args:\n  - -c\n  - |\n"
        f"    ls\n    {TRAIN} {LOCAL} --cuda-graph-scope attn\n  command:\n  - sh\n",
        f"a:\n  command: [/bin/bash, -lc]\n  args: ['{TRAIN} {LOCAL}']\nb:\n  args:\n  - -c\n  - |\n    ls\n"
        f"    {TRAIN} {LOCAL} --cuda-graph-modules attn\n  command:\n  - sh\n",
    ),
    "a list of commands": (
        f"train:\n  script:\n    - cd x\n    - {TRAIN} --enable-cuda-graph\n    - |\n      {TRAIN} {LOCAL} "
        "--cuda-graph-scope attn\n",
        f"train:\n  script:\n    - cd x\n    - {TRAIN} {LOCAL}\n    - |\n      {TRAIN} {LOCAL} "
        "--cuda-graph-modules attn\n",
    ),
    "a here-document in a script": (
        f"run: |\n  cat > x.sh <<'EOF'\n  {TRAIN} \\\n    {LOCAL} \\\n    --cuda-graph-scope full\n  EOF\n",
        f"run: |\n  cat > x.sh <<'EOF'\n  {TRAIN} \\\n    {LOCAL}\n  EOF\n",
    ),
    "settings and a command line": (
        f"model:\n  num_layers: 2\n  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn]\nrun: {TRAIN} "
        "--enable-cuda-graph\n",
        f"model:\n  num_layers: 2\n  cuda_graph_impl: transformer_engine\n  cuda_graph_modules: [attn]\nrun: {TRAIN} "
        f"{LOCAL}\n",
    ),
    "two commands": (
        f"train_cmd: {TRAIN} --enable-cuda-graph\neval_cmd: {TRAIN} {LOCAL} --cuda-graph-scope attn\n",
        f"train_cmd: {TRAIN} {LOCAL}\neval_cmd: {TRAIN} {LOCAL} --cuda-graph-modules attn\n",
    ),
    "an alias of a script": (
        f"a: &a\n  run: &r {TRAIN} --enable-cuda-graph\nb: *a\nc:\n  run: *r\n",
        f"a: &a\n  run: &r {TRAIN} {LOCAL}\nb: *a\nc:\n  run: *r\n",
    ),
}
SILENT = {
    "newer flags": f"run: {TRAIN} {LOCAL} --cuda-graph-modules attn\n",
    "Megatron-Bridge's harness": "run: python run.py --cuda_graph_scope attn,mlp\nargs: [--cuda_graph_scope, attn]\n",
    "a comment": f"run: |\n  # {TRAIN} --enable-cuda-graph\n  ls\n",
    "a message": "run: echo 'use --cuda-graph-scope attn'\n",
}
REPORTED = {
    "a description": ("description: use --cuda-graph-scope attn\n", "is not read as a command line"),
    "arguments that begin as prose": ("args: use --cuda-graph-scope attn\n", "is not read as a command line"),
    "a list of names": ("allowed_args: [--external-cuda-graph, --bf16]\n", "is not read as a command line"),
    "code of another program in two lists": (
        "command: [python]\nargs: [-c, 'x(\"--external-cuda-graph\")']\n",
        "is not read as a command line",
    ),
    "another interpreter": (
        f"run: |\n  x('{TRAIN} --external-cuda-graph')\nshell: python\n",
        "is not read as a command line",
    ),
    "a value that is computed": (
        f"run: {TRAIN} {LOCAL} --cuda-graph-scope ${{{{ matrix.scope }}}}\n",
        "${{ matrix.scope }}",
    ),
    "a flag in an expression": (
        f"run: {TRAIN} ${{{{ matrix.x && '--external-cuda-graph' || '' }}}}\n",
        "is not read as a command line",
    ),
    "a script of a shell that gets flags, too": (
        f"command: [sh, -c, '{TRAIN} $@ {LOCAL} --cuda-graph-scope full', --, --cuda-graph-scope, attn]\n",
        "the script gets such flags as its arguments",
    ),
    "both parts of one command line as text": (
        "launcher: torchrun pretrain_gpt.py --external-cuda-graph\nargs: --cuda-graph-scope attn --bf16\n",
        "is not read as a command line",
    ),
    "a list with a word in each item": (
        "command: [torchrun, pretrain_gpt.py]\nargs:\n- --external-cuda-graph\n- --bf16\n",
        "is not read as a command line",
    ),
    "parts that are merged": (
        f"a: &a\n  command: {TRAIN} {LOCAL} --cuda-graph-scope attn\nb:\n  <<: *a\n  args: --cuda-graph-scope mlp\n",
        "is not read as a command line",
    ),
    "a shell for all steps": (
        f"defaults:\n  run:\n    shell: pwsh\njobs:\n  a:\n    steps:\n    - run: {TRAIN} --external-cuda-graph\n",
        "is not read as a command line",
    ),
    "JavaScript": (
        f"- uses: actions/github-script@v7\n  with:\n    script: |\n      run(`{TRAIN} --external-cuda-graph`)\n",
        "is not read as a command line",
    ),
    "a blank with a backslash": (
        f"run: >-\n  {TRAIN} {LOCAL} \\\n  --cuda-graph-scope full \\\n  --bf16\n",
        "a backslash in front of a blank",
    ),
    "escapes": ('run: "torchrun x.py \\x2d-lr 1 --external-cuda-graph"\n', "is not read as a command line"),
    "a tag": ("run: !x torchrun x.py --external-cuda-graph\n", "is not read as a command line"),
}


def fixed(text: str) -> str:
    """Return the file with all safe fixes."""
    return with_safe_fixes(document_of("/p/a.yaml", text, Syntax.YAML, load()))


def other_values(value: Any) -> Any:
    """Return what a file contains without the flags of settings in its texts and lists."""
    if isinstance(value, dict):
        return {key: other_values(one) for key, one in value.items() if "cuda_graph" not in key}
    if isinstance(value, list):
        return [other_values(one) for one in value]
    if not isinstance(value, str):
        return value
    # What follows a flag on the next line is no value of it.
    return [word for line in value.replace("\\\n", " ").splitlines() for word in _other_words(line)]


def _other_words(text: str) -> list[str]:
    return without_settings([word.strip("\"'") for word in text.split()])


def texts(value: Any) -> Iterator[str]:
    """Yield the texts in a file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_sets_nothing_deprecated_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "a.yaml", text, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    check_rewritten(project / "a.yaml", before, after, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_yaml_reads_all_else_as_before(before: str, after: str) -> None:
    old, new = yaml.safe_load(before), yaml.safe_load(after)
    assert old != new
    assert other_values(old) == other_values(new)
    assert all(map(is_valid, texts(new))) or not all(map(is_valid, texts(old)))


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_the_settings_afterwards_are_read_at_the_same_places(before: str, after: str) -> None:
    """A comparison of both forms, as `verify` makes it, finds each command line in the rewritten file, too."""
    old, new = (document_of("/p/a.yaml", text, Syntax.YAML, load()).sites for text in (before, after))
    assert [site.path for site in old] == [site.path for site in new]
    assert not any(load().deprecated & site.own.keys() for site in new)


@pytest.mark.parametrize(("text", "why"), REPORTED.values(), ids=REPORTED)
def test_what_is_not_certain_is_reported_and_stays(project: Path, cgmigrate: Run, text: str, why: str) -> None:
    path = project / "a.yaml"
    path.write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert why in result.output, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == text
    assert cgmigrate("check", ".").exit_code == 1


def test_a_comment_in_a_script_suppresses(project: Path, cgmigrate: Run) -> None:
    (project / "a.yaml").write_text(f"run: |\n  # cgmigrate: ignore[CG101] later\n  {TRAIN} --enable-cuda-graph\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("text", [before for before, _ in FORMS.values()], ids=FORMS)
def test_written_suppressions_keep_the_values(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.yaml"
    path.write_bytes(text.encode())
    result = cgmigrate("check", ".", "--add-ignore")
    assert result.exit_code == 0, result.output
    new = yaml.safe_load(path.read_bytes())
    lines = [
        [line.partition("  # cgm")[0] for line in one.splitlines() if "# cgm" not in line[:12]] for one in texts(new)
    ]
    assert lines == [one.splitlines() for one in texts(yaml.safe_load(text))]
    assert cgmigrate("check", ".").exit_code == 0


# --- generated files ---------------------------------------------------------------------------------

FLAGS = st.sampled_from(
    [
        "--enable-cuda-graph", "--external-cuda-graph", LOCAL, "--cuda-graph-scope full", "--cuda-graph-scope attn mlp",
        "--cuda-graph-scope=attn", "--cuda-graph-scope full_iteration", "--bf16", "--lr 1.0e-4", "--path $HOME/x",
        "'a b'", "--cuda-graph-scope $S", '"--enable-cuda-graph"', "--x it's", '--json {"a":1}',
    ]
)  # fmt: skip


@st.composite
def values(draw: st.DrawFn, indent: str) -> str:
    """A value with a command line, in one of YAML's styles."""
    flags = draw(st.lists(FLAGS, min_size=1, max_size=6))
    words = [TRAIN, *flags]
    match draw(st.sampled_from(["|", "|-", ">", ">-", "plain", "single", "double", "lines", "commands"])):
        case "|" | "|-" as style:
            gap = draw(st.sampled_from([" ", f" \\\n{indent}    "]))
            return f"{style}\n{indent}  cd x\n{indent}  {gap.join(words)}\n{indent}  ls\n"
        case ">" | ">-" as style:
            return f"{style}\n{indent}  " + f"\n{indent}  ".join(words) + "\n"
        case "plain":
            return draw(st.sampled_from([" ", f"\n{indent}  "])).join(words) + "\n"
        case "single":
            return "'" + " ".join(words).replace("'", "''") + "'  # x\n"
        case "double":
            return '"' + " ".join(words).replace('"', '\\"') + '"\n'
        case "lines":
            return (
                "".join(f"\n{indent}  - " + draw(st.sampled_from(["{}", '"{}"'])).format(flag) for flag in flags) + "\n"
            )
    return f"\n{indent}- cd x\n{indent}- {' '.join(words)}\n"


@st.composite
def files(draw: st.DrawFn) -> str:
    keys = draw(
        st.lists(st.sampled_from(["run", "script", "command", "args", "cmd", "note", "extra_args"]), unique=True)
    )
    text = "name: x\njob:\n" + "".join(f"  {key}: {draw(values('  '))}" for key in keys) + "  end: 1  # y\n"
    return text if draw(st.booleans()) else text.replace("\n", "\r\n")


def loaded(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files())
def test_only_flags_change_in_generated_files(text: str) -> None:
    old, after = loaded(text), fixed(text)
    new = loaded(after)
    assert fixed(after) == after
    assert (old is None) == (new is None)
    assert other_values(old) == other_values(new)
    assert after.count("\r\n") == after.count("\n") or "\r\n" not in text
    assert text == after or old is not None
    assert text.count("#") == after.count("#")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files())
def test_a_real_bash_runs_generated_scripts_as_before(text: str) -> None:
    old, new = loaded(text), loaded(fixed(text))
    for one, other in zip(texts(old), texts(new), strict=False) if old != new else ():
        if one != other and is_valid(one) and "\n" in one:
            assert is_valid(other)
            assert [*map(without_settings, recorded(one))] == [*map(without_settings, recorded(other))]


WORDS = """run: args: script: - [ ] { } , " ' | > >- |2 & * ! # \\ ${{ }} : ? é &a *a !t bash -c torchrun x.py a
--enable-cuda-graph --cuda-graph-scope attn full --cuda-graph-impl local cuda_graph_scope: model:"""
PIECES = st.sampled_from([*WORDS.split(), " ", " ", " ", "\n", "\n  ", "\n- ", "\r\n", "\t"])


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(PIECES, max_size=30).map("".join))
def test_no_text_raises(text: str) -> None:
    document = document_of("/p/a.yaml", text, Syntax.YAML, load())
    after = fixed(text)
    assert fixed(after) == after
    document.comments()
    document.joined_lines()
