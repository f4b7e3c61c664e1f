"""Here-documents in scripts: which are read, what a fix writes, and what stays, judged by a real bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.shell import ShellDocument, parts_of
from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.documents.uses import appearances_in
from cgmigrate.megatron.catalogue import load
from tests.support.fixed_files import Run, check_passes, check_rewritten, known_spans, with_safe_fixes
from tests.support.nightly import examples
from tests.support.shell_judges import is_valid, recorded, without_settings

TRAIN = "torchrun pretrain_gpt.py"
LOCAL = "--cuda-graph-impl local"
HEAD = "#!/bin/bash\n"
PRELUDE = "sbatch() { bash; }\nssh() { bash; }\nexport NODES=2\n"
"""Other programs that get a script as their input run it in the tests."""

FORMS = {
    "a script that is written to a file": (
        f"cat > run.sh <<'EOF'\n{TRAIN} \\\n    {LOCAL} \\\n    --cuda-graph-scope full \\\n    --lr $LR\nEOF\n"
        "bash run.sh\n",
        f"cat > run.sh <<'EOF'\n{TRAIN} \\\n    {LOCAL} \\\n    --lr $LR\nEOF\nbash run.sh\n",
    ),
    "a redirection behind the delimiter": (
        f'cat <<"EOF" >"$PWD/run.sbatch"\n{TRAIN} --enable-cuda-graph\nEOF\nbash run.sbatch\n',
        f'cat <<"EOF" >"$PWD/run.sbatch"\n{TRAIN} {LOCAL}\nEOF\nbash run.sbatch\n',
    ),
    "the last flag of a script": (
        f"bash -ex <<\\EOF\n{TRAIN} \\\n  {LOCAL} \\\n  --cuda-graph-scope full\nEOF\n",
        f"bash -ex <<\\EOF\n{TRAIN} \\\n  {LOCAL}\nEOF\n",
    ),
    "a text without anything to expand": (
        f"ssh -p 22 host bash -s <<EOF\n{TRAIN} --enable-cuda-graph --bf16\nEOF\n",
        f"ssh -p 22 host bash -s <<EOF\n{TRAIN} {LOCAL} --bf16\nEOF\n",
    ),
    "a job, with variables of both shells": (
        f"sbatch -N 4 <<EOF\n{HEAD}#SBATCH -N $NODES\n{TRAIN} --nnodes $NODES --node-rank \\$SLURM_NODEID "
        f"--path \\\\x {LOCAL} --cuda-graph-scope attn mlp\nEOF\n",
        f"sbatch -N 4 <<EOF\n{HEAD}#SBATCH -N $NODES\n{TRAIN} --nnodes $NODES --node-rank \\$SLURM_NODEID "
        f"--path \\\\x {LOCAL} --cuda-graph-modules attn mlp\nEOF\n",
    ),
    "lines that the outer shell joins": (
        f"sbatch <<EOF\n{HEAD}{TRAIN} \\\n    --nnodes $NODES \\\n    {LOCAL} \\\n    --cuda-graph-scope full\nls\n"
        "EOF\n",
        f"sbatch <<EOF\n{HEAD}{TRAIN} \\\n    --nnodes $NODES \\\n    {LOCAL}\nls\nEOF\n",
    ),
    "lines that the inner shell joins": (
        f"bash <<EOF\n{TRAIN} \\\\\n    {LOCAL} \\\\\n    --cuda-graph-scope full \\\\\n    --node \\${{NODES}}\nEOF\n",
        f"bash <<EOF\n{TRAIN} \\\\\n    {LOCAL} \\\\\n    --node \\${{NODES}}\nEOF\n",
    ),
    "a launcher": (
        f"env A=1 bash -euo pipefail <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        f"env A=1 bash -euo pipefail <<'EOF'\n{TRAIN} {LOCAL}\nEOF\n",
    ),
    "a script without a suffix": (
        f"cat > run <<'EOF'\n{HEAD}{TRAIN} --enable-cuda-graph\nEOF\nbash run\n",
        f"cat > run <<'EOF'\n{HEAD}{TRAIN} {LOCAL}\nEOF\nbash run\n",
    ),
    "a file whose name a variable holds": (
        f'job="$(mktemp -t XXXXXX.sh)"\ncat > "${{job}}" <<\'EOF\'\n{TRAIN} --enable-cuda-graph\nEOF\nbash $job\n',
        f'job="$(mktemp -t XXXXXX.sh)"\ncat > "${{job}}" <<\'EOF\'\n{TRAIN} {LOCAL}\nEOF\nbash $job\n',
    ),
    "a script inside a script": (
        f"bash <<'A'\nbash <<'B'\n{TRAIN} --enable-cuda-graph\nB\n{TRAIN} {LOCAL} --cuda-graph-scope attn\nA\n",
        f"bash <<'A'\nbash <<'B'\n{TRAIN} {LOCAL}\nB\n{TRAIN} {LOCAL} --cuda-graph-modules attn\nA\n",
    ),
    "flags in the script, and in its here-document": (
        f"bash <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n{TRAIN} --external-cuda-graph\n",
        f"bash <<'EOF'\n{TRAIN} {LOCAL}\nEOF\n{TRAIN} --cuda-graph-impl transformer_engine\n",
    ),
    "a text that is not ASCII": (
        f"# é\nbash <<'EOF'\n# ö\n{TRAIN} --enable-cuda-graph # ü\nEOF\n",
        f"# é\nbash <<'EOF'\n# ö\n{TRAIN} {LOCAL} # ü\nEOF\n",
    ),
    "a flag in quotes": (
        f'bash <<EOF\n{TRAIN} --x \\$A "--enable-cuda-graph" --y \\`hostname\\`\nEOF\n',
        f'bash <<EOF\n{TRAIN} --x \\$A "--cuda-graph-impl" "local" --y \\`hostname\\`\nEOF\n',
    ),
}
"""Here-documents of shell code, before and after."""
SILENT = {
    "newer flags": f"bash <<'EOF'\n{TRAIN} {LOCAL} --cuda-graph-modules attn\nEOF\n",
    "a comment": f"bash <<'EOF'\n# {TRAIN} --enable-cuda-graph\ntrue\nEOF\n",
    "newer settings in an unknown text": f"cat > notes.txt <<EOF\n{LOCAL}\nEOF\n",
    "an option of another program": "cat > notes.txt <<EOF\nrun.py --cuda_graph_scope attn,mlp\nEOF\n",
    "another system's setting": "cat > trt.yaml <<EOF\nenable_cuda_graph: true\nbackend: $B\nEOF\n",
}
REPORTED = {
    "a pipe": (
        f"cat <<'EOF' | bash\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "it goes through several commands",
    ),
    "tabs in front of lines": (
        f"bash <<-'EOF'\n\t{TRAIN} --enable-cuda-graph\n\tEOF\n",
        "the shell takes the tabs in front of its lines away",
    ),
    "the shell of a user of another machine": (
        f"ssh host <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "program or file that gets it",
    ),
    "a name that a variable gets in two places": (
        f"job=a.sh\n[ $1 ] && job=a.txt\ncat > $job <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "its file name does not show",
    ),
    "a name that a variable gets as it is read": (
        f"job=a.sh\nread job\ncat > $job <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "its file name does not show",
    ),
    "a file of a variable that is edited": (
        f"job=$(mktemp XXX.sh)\ncat > $job <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\nsed -i 1d $job\n",
        "line 6 changes the file",
    ),
    "a program that is not known": (
        f"run-it <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "program or file that gets it",
    ),
    "a command of a shell that reads no input": (
        f"bash run.sh <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "program or file that gets it",
    ),
    "a script behind the delimiter": (
        f"bash <<'EOF' run.sh\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "program or file that gets it",
    ),
    "a file of another kind": (
        f"cat > notes.txt <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "does not show that it is shell",
    ),
    "a name that is computed": (
        f"cat > $F <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "does not show that it is shell",
    ),
    "several commands": (f"cat <<'EOF' | sed s/a/b/ | bash\n{TRAIN} --enable-cuda-graph\nEOF\n", "several commands"),
    "YAML": (
        "cat > conf.yaml <<'EOF'\nmodel:\n  num_layers: 2\n  cuda_graph_scope: full\nEOF\n",
        "does not show that it is shell",
    ),
    "Python": (
        "python3 - --x <<'EOF'\nfrom megatron.core.transformer import TransformerConfig\n"
        "config = TransformerConfig(num_layers=2, enable_cuda_graph=True, lr=1)\nEOF\n",
        "program or file that gets it",
    ),
    "a job that is no script": (f"sbatch <<EOF\n{TRAIN} --external-cuda-graph\nEOF\n", "does not begin as a script"),
    "a job in Python": (
        "sbatch <<EOF\n#!/usr/bin/env python3\nrun('--external-cuda-graph')\nEOF\n",
        "does not begin as a script",
    ),
    "a variable with flags of the outer script": (
        f'GRAPHS="--cuda-graph-scope full_iteration"\nALL="--bf16 $GRAPHS"\nbash <<EOF\n'
        f"{TRAIN} --enable-cuda-graph $ALL\nEOF\n",
        "`$ALL`, which has flags of settings in the script around it, is expanded in it",
    ),
    "a variable that the script exports": (
        f"export GRAPHS='--cuda-graph-scope full_iteration'\nbash <<'EOF'\n{TRAIN} --enable-cuda-graph $GRAPHS\nEOF\n",
        "`$GRAPHS`, which has flags of settings in the script around it, is expanded in it",
    ),
    "a variable that both shells have": (
        f"bash <<EOF\nARGS=x\n{TRAIN} --enable-cuda-graph $ARGS\nEOF\n",
        "the shell expands `$ARGS` in it, which its own code sets, too",
    ),
    "a variable between quotes": (
        f"bash <<EOF\n{TRAIN} {LOCAL} --cuda-graph-scope '$SCOPE'\nEOF\n",
        "the shell expands `$SCOPE` between its quotes",
    ),
    "the output of a command": (
        f'bash <<EOF\n{TRAIN} --enable-cuda-graph $(cat "$F")\nEOF\n',
        'the shell expands `$(cat "$F")` in it',
    ),
    "a comment that the outer shell continues": (
        f"bash <<EOF\n# a \\\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "a backslash joins lines of it",
    ),
    "a file that is edited afterwards": (
        f"cat > x.sh <<'EOF'\n{TRAIN} \\\n  {LOCAL} \\\n  --cuda-graph-scope full \\\n  --bf16\nEOF\nsed -i 3d x.sh\n",
        "line 8 changes the file that it is written to",
    ),
    "a file that a filter reads": (
        f"cat > \"$D/x.sh\" <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\ncat ${{D}}/x.sh | awk 'NR!=2' | bash\n",
        "line 5 changes the file that it is written to",
    ),
    "a file with a computed name that is edited": (
        f"F=x.sh\ncat > x.sh <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\nsed -i s/e/x/ \"$F\"\n",
        "line 6 changes the file that it is written to",
    ),
    "another input": (f"bash <<'EOF' < x.sh\n{TRAIN} --enable-cuda-graph\nEOF\n", "program or file that gets it"),
    "another descriptor": (f"bash 3<<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n", "program or file that gets it"),
    "a script that the grammar does not cover": (
        f"bash <<EOF 2>&1 | tee log\n{TRAIN} --enable-cuda-graph\nEOF\n",
        "cannot parse line 2 as shell",
    ),
    "a blank with a backslash": (
        f"bash <<'EOF'\n{TRAIN} {LOCAL} \\ --cuda-graph-scope full \\  --bf16\nEOF\n",
        "a backslash in front of a blank",
    ),
    "Python of Megatron that the shell expands": (
        "python <<EOF\nfrom megatron.core.transformer import TransformerConfig\n"
        "TransformerConfig(num_layers=$N, enable_cuda_graph=True)\nEOF\n",
        "`enable_cuda_graph` is part of a here-document",
    ),
    "several here-documents": (f"cat <<A - <<B\nx\nA\n{TRAIN} --enable-cuda-graph\nB\n", ""),
    "a value of the outer shell": (
        f"bash <<EOF\n{TRAIN} {LOCAL} --cuda-graph-scope $SCOPE\nEOF\n",
        "the shell computes",
    ),
}


def fixed(text: str) -> str:
    """Return the script with all safe fixes."""
    return with_safe_fixes(document_of("/p/a.sh", text, Syntax.SHELL, load()))


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_sets_nothing_deprecated_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "a.sh", HEAD + text, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    check_rewritten(project / "a.sh", HEAD + before, HEAD + after, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_a_real_bash_runs_the_other_words_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_valid(before) and is_valid(after)
    old, new = recorded(PRELUDE + before), recorded(PRELUDE + after)
    assert old and [*map(without_settings, old)] == [*map(without_settings, new)]


@pytest.mark.parametrize(("text", "why"), REPORTED.values(), ids=REPORTED)
def test_what_is_not_certain_is_reported_and_stays(project: Path, cgmigrate: Run, text: str, why: str) -> None:
    path = project / "a.sh"
    path.write_text(HEAD + text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert why in result.output, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == HEAD + text
    assert cgmigrate("check", ".").exit_code == 1


def test_a_newer_flag_in_a_text_is_no_option_of_another_program(project: Path, cgmigrate: Run) -> None:
    (project / "a.sh").write_text(f"cat > notes.txt <<'EOF'\n{LOCAL}\n--cuda_graph_scope attn\nEOF\n")
    output = " ".join(cgmigrate("check", ".", "-v").output.split())
    assert "a text that is not read as a command line: a.sh:2" in output, output
    assert output.count("spelled with underscores") == 1


def test_comments_in_a_heredoc_suppress(project: Path, cgmigrate: Run) -> None:
    text = f"bash <<'EOF'\n# cgmigrate: ignore[CG101] later\n{TRAIN} --enable-cuda-graph\nEOF\n"
    (project / "a.sh").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("text", [before for before, _ in FORMS.values()])
def test_written_suppressions_keep_the_code(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.sh"
    path.write_text(HEAD + text)
    result = cgmigrate("check", ".", "--add-ignore")
    assert result.exit_code == 0, result.output
    assert is_valid(path.read_text())
    assert cgmigrate("check", ".").exit_code == 0


# --- generated texts ---------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        f"{TRAIN} --enable-cuda-graph", f"{TRAIN} \\\n  {LOCAL} \\\n  --cuda-graph-scope full", "",
        "ls \\$A \\\\ \\` '", "$ {a} \\a",
        f"{TRAIN} --lr $LR {LOCAL} --cuda-graph-scope attn mlp --bf16", f"A=({LOCAL}\n--cuda-graph-scope full)",
        f"{TRAIN} \\$B \\\\\n  --external-cuda-graph", "\techo \"$X\" \\\\$Y \\\\\\$Z", "# it's --enable-cuda-graph \\",
        f"{TRAIN} ${{A[@]}} --enable-cuda-graph --path \\${{P}}/x", f"{TRAIN} --x '$Q' --enable-cuda-graph",
    ]
)  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A script with here-documents."""
    result = [HEAD]
    for number in range(draw(st.integers(1, 3))):
        dash = draw(st.sampled_from(["", "", "-"]))
        lines = "\n".join(draw(st.lists(LINES, max_size=4))).split("\n")
        body = "".join(("\t" * draw(st.integers(0, 2)) if dash else "") + f"{line}\n" for line in lines)
        form = draw(st.sampled_from(["bash <<{}{}", f"cat > f{number}.sh <<{{}}{{}}", "cat <<{}{} | bash -s"]))
        quote = draw(st.sampled_from(["", "'", '"']))
        end = draw(st.sampled_from(["", "\t"])) if dash else ""
        result.append(f"{form.format(dash, quote + 'EOF' + quote)}\n{body}{end}EOF\n")
    return "".join(result)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
def test_the_text_of_a_part_is_what_a_real_bash_passes_on(text: str) -> None:
    """Each variable has its own name behind a dollar sign as its value."""
    document = ShellDocument(text)
    for part in parts_of(document, range(len(document.heredocs))):
        start = text.rindex("<<", 0, part.span.start)
        word = text[start : text.index("EOF", start)]
        body = text[part.span.start : part.span.end]
        quote = word[-1] if word[-1] in "'\"" else ""
        values = "".join(f"{name}='${name}'\n" for name in ("A", "B", "LR", "X", "Y", "Z", "P", "Q"))
        script = f"{values}cat {word}EOF{quote}\n{body}EOF\n"
        passed = subprocess.run(["bash"], input=script.encode(), capture_output=True, check=True).stdout.decode()
        expected = part.code.text if quote else part.code.text.replace("${A[@]}", "$A")
        assert passed.replace("\\\n", "") == expected.replace("\\\n", "")


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
def test_a_real_bash_runs_generated_scripts_as_before(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    after = fixed(text)
    assert fixed(after) == after
    assert not is_valid(text) or is_valid(after)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("run"))
        run = "".join(f"\n[ -f f{number}.sh ] && . ./f{number}.sh\n" for number in range(3))
        old, new = recorded(text + run), recorded(after + run)
    assert [*map(without_settings, old)] == [*map(without_settings, new)]


WORDS = """cat bash > x.sh <<EOF <<-EOF <<'EOF' <<\\EOF EOF | ; && ( ) $( ` " ' \\ $A ${A } # if fi é tee - torchrun x
--enable-cuda-graph --cuda-graph-scope attn cuda_graph_scope: x.yaml python"""
PIECES = st.sampled_from([*WORDS.split(), " ", " ", "\n", "\n", "\nEOF\n", "\r\n", "\t", "\x00"])


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(PIECES, max_size=40).map("".join))
def test_no_text_raises(text: str) -> None:
    document = document_of("/p/a.sh", text, Syntax.SHELL, load())
    spans = known_spans(document)
    assert all(any(span.start <= one.span.start < span.end for span in spans) for one in appearances_in(text, load()))
    after = fixed(text)
    assert fixed(after) == after
    document.comments()
    document.joined_lines()
    for site in document.sites:
        document.enclosing(site.span.start)
