"""Dockerfiles: what is read, rewritten and left as it is, judged by BuildKit's parser and a real bash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.embedded import DockerDocument
from cgmigrate.documents.embedded.instructions import Instructions
from cgmigrate.documents.uses import appearances_in
from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.lint.plan import plan_alone
from cgmigrate.megatron.catalogue import load
from tests.support.docker_judge import commands, instructions, other_words
from tests.support.fixed_files import Run, check_passes, check_rewritten, with_safe_fixes
from tests.support.nightly import examples
from tests.support.yaml_judges import context

HEAD = "FROM nvcr.io/nvidia/pytorch:25.09-py3\n"
TRAIN = "torchrun pretrain_gpt.py"
LOCAL = "--cuda-graph-impl local"

FORMS = {
    "a command": (
        f"RUN {TRAIN} {LOCAL} --cuda-graph-scope attn mlp --bf16\n",
        f"RUN {TRAIN} {LOCAL} --cuda-graph-modules attn mlp --bf16\n",
    ),
    "a command that is a comment": (
        f"RUN # nothing yet\nRUN {TRAIN} --enable-cuda-graph\n",
        f"RUN # nothing yet\nRUN {TRAIN} --cuda-graph-impl local\n",
    ),
    "continued lines": (
        f"RUN --mount=type=cache,target=/c \\\n    cd /opt && \\\n    {TRAIN} \\\n        {LOCAL} \\\n"
        "        --cuda-graph-scope full \\\n        --bf16\nUSER 1\n",
        f"RUN --mount=type=cache,target=/c \\\n    cd /opt && \\\n    {TRAIN} \\\n        {LOCAL} \\\n"
        "        --bf16\nUSER 1\n",
    ),
    "comments and an empty line between continued lines": (
        f"RUN {TRAIN} \\\n# --bf16 is faster\n  --bf16 \\\n\n  # graphs\n  --enable-cuda-graph \\\n  --lr 1\n",
        f"RUN {TRAIN} \\\n# --bf16 is faster\n  --bf16 \\\n\n  # graphs\n  --cuda-graph-impl local \\\n  --lr 1\n",
    ),
    "the last flag of continued lines": (
        f"CMD {TRAIN} {LOCAL} \\\n    --cuda-graph-scope full\nUSER 1\n",
        f"CMD {TRAIN} {LOCAL}\nUSER 1\n",
    ),
    "blanks behind a backslash": (
        f"RUN {TRAIN} \\  \n  {LOCAL} \\ \n  --cuda-graph-scope attn\n",
        f"RUN {TRAIN} \\  \n  {LOCAL} \\ \n  --cuda-graph-modules attn\n",
    ),
    "line breaks of Windows": (
        f"RUN {TRAIN} \\\r\n  {LOCAL} \\\r\n  --cuda-graph-scope full \\\r\n  --bf16\r\nUSER 1\r\n",
        f"RUN {TRAIN} \\\r\n  {LOCAL} \\\r\n  --bf16\r\nUSER 1\r\n",
    ),
    "an array": (
        'CMD ["torchrun", "pretrain_gpt.py", "--enable-cuda-graph", "--cuda-graph-scope", "attn", "mlp", "--bf16"]\n',
        'CMD ["torchrun", "pretrain_gpt.py", "--cuda-graph-impl", "local", "--cuda-graph-modules", "attn", "mlp", '
        '"--bf16"]\n',
    ),
    "the last string of an array": (
        'ENTRYPOINT [ "torchrun","pretrain_gpt.py" , "--cuda-graph-impl","local" ,"--cuda-graph-scope=full" ]\n',
        'ENTRYPOINT [ "torchrun","pretrain_gpt.py" , "--cuda-graph-impl","local" ]\n',
    ),
    "an array of several lines": (
        'ENTRYPOINT ["torchrun", "pretrain_gpt.py", \\\n  "--cuda-graph-impl", "local", \\\n'
        '  "--cuda-graph-scope", "full", \\\n  "--bf16"]\n',
        'ENTRYPOINT ["torchrun", "pretrain_gpt.py", \\\n  "--cuda-graph-impl", "local", \\\n  "--bf16"]\n',
    ),
    "a shell in an array": (
        f'CMD ["bash", "-c", "cd /opt && {TRAIN} --external-cuda-graph --lr $LR"]\n',
        f'CMD ["bash", "-c", "cd /opt && {TRAIN} --cuda-graph-impl transformer_engine --lr $LR"]\n',
    ),
    "arguments of an entry point": (
        'CMD ["--cuda-graph-impl", "local", "--cuda-graph-scope", "attn"]\n',
        'CMD ["--cuda-graph-impl", "local", "--cuda-graph-modules", "attn"]\n',
    ),
    "arguments of an entry point of the same stage": (
        'ENTRYPOINT ["torchrun", "pretrain_gpt.py"]\n'
        'CMD ["--cuda-graph-impl", "local", "--cuda-graph-scope", "attn"]\n',
        'ENTRYPOINT ["torchrun", "pretrain_gpt.py"]\n'
        'CMD ["--cuda-graph-impl", "local", "--cuda-graph-modules", "attn"]\n',
    ),
    "a variable": (
        f'ENV LR=1 \\\n    ARGS="--bf16 \\\n    {LOCAL} --cuda-graph-scope attn"\nRUN {TRAIN} $ARGS\n',
        f'ENV LR=1 \\\n    ARGS="--bf16 \\\n    {LOCAL} --cuda-graph-modules attn"\nRUN {TRAIN} $ARGS\n',
    ),
    "a variable and a command": (
        f'ENV SCOPE="--cuda-graph-scope full_iteration"\nCMD {TRAIN} {LOCAL} ${{SCOPE}} --bf16\n',
        f'ENV SCOPE=""\nCMD {TRAIN} --cuda-graph-impl full_iteration ${{SCOPE}} --bf16\n',
    ),
    "a variable without an equals sign": (
        f"ENV ARGS {LOCAL} --cuda-graph-scope attn --bf16\nRUN {TRAIN} $ARGS\n",
        f"ENV ARGS {LOCAL} --cuda-graph-modules attn --bf16\nRUN {TRAIN} $ARGS\n",
    ),
    "an argument of the build": (
        f'ARG ARGS="{LOCAL} --cuda-graph-scope attn"\nRUN {TRAIN} $ARGS\n',
        f'ARG ARGS="{LOCAL} --cuda-graph-modules attn"\nRUN {TRAIN} $ARGS\n',
    ),
    "a variable of the stage below": (
        f'FROM scratch AS base\nENV ARGS="{LOCAL} --cuda-graph-scope attn"\nFROM base\nRUN {TRAIN} $ARGS\n',
        f'FROM scratch AS base\nENV ARGS="{LOCAL} --cuda-graph-modules attn"\nFROM base\nRUN {TRAIN} $ARGS\n',
    ),
    "a here-document": (
        f"RUN <<EOF\nset -e\n{TRAIN} \\\n  {LOCAL} \\\n  --cuda-graph-scope full\nEOF\nUSER 1\n",
        f"RUN <<EOF\nset -e\n{TRAIN} \\\n  {LOCAL}\nEOF\nUSER 1\n",
    ),
    "a here-document for a shell": (
        f'RUN --mount=type=ssh <<"EOF" bash -exu -o pipefail\nN=1\n{TRAIN} --lr $N --enable-cuda-graph\nEOF\n',
        f'RUN --mount=type=ssh <<"EOF" bash -exu -o pipefail\nN=1\n{TRAIN} --lr $N {LOCAL}\nEOF\n',
    ),
    "a check of health": (
        f"HEALTHCHECK --interval=5m --timeout=3s CMD {TRAIN} --enable-cuda-graph || exit 1\n",
        f"HEALTHCHECK --interval=5m --timeout=3s CMD {TRAIN} --cuda-graph-impl local || exit 1\n",
    ),
    "a trigger": (
        f"ONBUILD RUN {TRAIN} --enable-cuda-graph\n",
        f"ONBUILD RUN {TRAIN} --cuda-graph-impl local\n",
    ),
    "lower case": (f"run {TRAIN} --enable-cuda-graph\n", f"run {TRAIN} --cuda-graph-impl local\n"),
    "a quoted flag": (
        f'RUN {TRAIN} "--enable-cuda-graph" --bf16\n',
        f'RUN {TRAIN} "--cuda-graph-impl" "local" --bf16\n',
    ),
}
ESCAPED = (
    f"# escape=`\nFROM x\nRUN {TRAIN} `\n    {LOCAL} `\n    --cuda-graph-scope full `\n    --bf16\n",
    f"# escape=`\nFROM x\nRUN {TRAIN} `\n    {LOCAL} `\n    --bf16\n",
)
SILENT = {
    "a comment": "# RUN torchrun pretrain_gpt.py --enable-cuda-graph\nRUN true\n",
    "a comment between continued lines": f"RUN {TRAIN} \\\n  # --enable-cuda-graph\n  --bf16\n",
    "a newer command": f"RUN {TRAIN} {LOCAL} --cuda-graph-modules attn\n",
    "Megatron-Bridge's harness": 'CMD ["python", "run.py", "--cuda_graph_scope", "attn,mlp"]\n',
    "a message": 'RUN echo "use --cuda-graph-scope attn"\n',
}
REPORTED = {
    "an array with escapes": 'CMD ["bash", "-c", "torchrun pretrain_gpt.py --enable-cuda-graph --name \\"a b\\""]\n',
    "an override with escapes": 'CMD ["python", "train.py", "++model.cuda_graph_scope=[\\"attn\\"]"]\n',
    "flags of CMD for a script of a shell": (
        'ENTRYPOINT ["sh", "-c", "torchrun pretrain_gpt.py $@ --cuda-graph-impl local --cuda-graph-scope full", "--"]\n'
        'CMD ["--cuda-graph-scope", "attn"]\n'
    ),
    "a file with a dot in the word that ends it": "COPY <<run.sh /run.sh\ntorchrun x.py --enable-cuda-graph\nrun.sh\n",
    "a word in quotes": f'ENV A="--enable-cuda-graph"\nCMD {TRAIN} "$A"\n',
    "a file": "COPY <<EOF /run.sh\ntorchrun pretrain_gpt.py --enable-cuda-graph\nEOF\n",
    "a label": 'LABEL flags="--cuda-graph-scope attn"\n',
    "a script in Python": "RUN <<EOF\n#!/usr/bin/env python3\nrun('--enable-cuda-graph')\nEOF\n",
    "text that is expanded before a shell gets it": (
        f"RUN bash <<EOF\nN=1\n{TRAIN} --lr $N --enable-cuda-graph\nEOF\n"
    ),
    "a script that no shell reads": f"RUN bash -c true <<'EOF'\n{TRAIN} --enable-cuda-graph\nEOF\n",
    "two here-documents": f"RUN <<A <<B\n{TRAIN} --enable-cuda-graph\nA\ntrue\nB\n",
    "the input of Python": "RUN python3 - <<EOF\nrun('--enable-cuda-graph')\nEOF\n",
    "another shell": f'SHELL ["powershell", "-command"]\nRUN {TRAIN} --enable-cuda-graph\n',
    "a shell that does not divide values into words": f'SHELL ["/bin/zsh", "-c"]\nRUN {TRAIN} --enable-cuda-graph\n',
    "a command that is not complete": f"RUN if {TRAIN} --enable-cuda-graph; then true\n",
    "a comment that a backslash continues": f"RUN {TRAIN} \\\n  # a\n  --lr 1 # b \\\n  --enable-cuda-graph\n",
    "a flag that a command computes": f"RUN {TRAIN} $(test $X && echo --enable-cuda-graph)\n",
    "a value from a variable": f"RUN {TRAIN} {LOCAL} --cuda-graph-scope $SCOPE\n",
    "a default": f"RUN {TRAIN} ${{GRAPHS:---cuda-graph-scope attn}}\n",
    "a variable that is set twice": f'ENV A="{LOCAL}"\nENV A="{LOCAL} --cuda-graph-scope attn"\nRUN {TRAIN} $A\n',
    "a value that Docker expands": f'ENV A="{LOCAL} --cuda-graph-scope attn `x`"\nRUN {TRAIN} $A\n',
    "an argument of the build and a command": (
        f'ARG SCOPE="--cuda-graph-scope full_iteration"\nRUN {TRAIN} {LOCAL} $SCOPE\n'
    ),
    "two stages that are built from one": (
        f'FROM x AS base\nENV SCOPE="--cuda-graph-scope full_iteration"\nFROM base\nRUN {TRAIN} {LOCAL} $SCOPE\n'
        f"FROM base\nRUN {TRAIN} $SCOPE\n"
    ),
    "flags of ENTRYPOINT and CMD": (
        'ENTRYPOINT ["torchrun", "pretrain_gpt.py", "--cuda-graph-impl", "local"]\n'
        'CMD ["--cuda-graph-scope", "full_iteration"]\n'
    ),
    "flags of CMD for another stage's ENTRYPOINT": (
        'FROM x AS base\nENTRYPOINT ["torchrun", "pretrain_gpt.py", "--cuda-graph-impl", "local"]\nFROM base\n'
        'CMD ["--cuda-graph-scope", "attn"]\n'
    ),
    "a command that is not read and a variable": (
        f'ENV A="{LOCAL} --cuda-graph-scope attn"\nRUN if {TRAIN} --cuda-graph-scope full $A\n'
    ),
    "a template": f"{{% if graphs %}}\nRUN {TRAIN} --enable-cuda-graph\n{{% endif %}}\n",
    "a line of a template": f"RUN {TRAIN} \\\n{{% if graphs %}}\n  --enable-cuda-graph \\\n{{% endif %}}\n  --bf16\n",
    "the last flag behind a comment": (f"RUN {TRAIN} {LOCAL} \\\n  # the scope\n  --cuda-graph-scope full\nUSER 1\n"),
}


def fixed(text: str) -> str:
    """Return the Dockerfile with all safe fixes."""
    return with_safe_fixes(DockerDocument(text, "/p/Dockerfile"))


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_sets_nothing_deprecated_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "Dockerfile", HEAD + text, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    check_rewritten(project / "Dockerfile", HEAD + before, HEAD + after, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_docker_runs_the_other_words_as_before(before: str, after: str) -> None:
    words = other_words(HEAD + before)
    assert words and words == other_words(HEAD + after)


def test_the_directive_names_the_character_that_continues_a_line() -> None:
    before, after = ESCAPED
    assert fixed(before) == after
    assert other_words(before) == other_words(after) == [["torchrun", "pretrain_gpt.py", "--bf16"]]


@pytest.mark.parametrize("text", REPORTED.values(), ids=REPORTED)
def test_what_cannot_be_read_surely_is_reported_and_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "Dockerfile"
    path.write_text(HEAD + text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == HEAD + text
    assert cgmigrate("check", ".").exit_code == 1


TEXTS = [*(before for before, _ in FORMS.values()), *SILENT.values(), *REPORTED.values()]


@pytest.mark.parametrize("text", [text for text in TEXTS if "{%" not in text])
def test_instructions_are_those_that_docker_reads(text: str) -> None:
    read = [one.name for one in Instructions(HEAD + text).instructions]
    assert read == [name for name, _ in instructions(HEAD + text)]


def test_a_comment_suppresses(project: Path, cgmigrate: Run) -> None:
    text = f"{HEAD}# cgmigrate: ignore[CG101] later\nRUN {TRAIN} \\\n  --bf16 \\\n  --enable-cuda-graph\n"
    (project / "Dockerfile").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output
    cgmigrate("fix", ".")
    assert (project / "Dockerfile").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        f"RUN {TRAIN} \\\n  --bf16 \\\n  --enable-cuda-graph\n",
        'CMD ["torchrun", "pretrain_gpt.py", \\\n  "--enable-cuda-graph"]\n',
        'CMD ["torchrun", "pretrain_gpt.py", "--enable-cuda-graph"]\n',
        f'ENV A="{LOCAL} --cuda-graph-scope attn"\n',
    ],
)
def test_written_suppressions_keep_the_instructions(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "Dockerfile"
    path.write_text(HEAD + text)
    assert cgmigrate("check", ".", "--add-ignore").exit_code == 0
    written = path.read_text()
    assert [name for name, _ in instructions(written)] == [name for name, _ in instructions(HEAD + text)]
    assert list(commands(written)) == list(commands(HEAD + text))
    assert cgmigrate("check", ".").exit_code == 0


# --- generated files ------------------------------------------------------------------------------

OTHERS = ("--bf16", "--num-layers 4", "--lr 1.0e-4", "--te-rng-tracker", "--hidden-size 64")
BACKENDS = ("", LOCAL, "--cuda-graph-impl=none", "--enable-cuda-graph", "--external-cuda-graph")
SCOPES = ("", "full", "full_iteration", "attn", "attn mlp", "moe_router moe_preprocess", "$SCOPE", "unknown")


@st.composite
def flags(draw: st.DrawFn) -> list[str]:
    scope = draw(st.sampled_from(SCOPES))
    own = [draw(st.sampled_from(BACKENDS)), scope and f"--cuda-graph-scope {scope}"]
    return draw(
        st.permutations([*filter(None, own), *draw(st.lists(st.sampled_from(OTHERS), max_size=3, unique=True))])
    )


@st.composite
def instruction(draw: st.DrawFn, number: int, escape: str) -> str:
    """One instruction with flags, or one without."""
    gap = draw(st.sampled_from([" ", " ", f" {escape}\n    ", f" {escape}\n# x --bf16\n  ", f" {escape}\n\n  ", "  "]))
    own = draw(flags())
    form = draw(st.sampled_from(["RUN", "CMD", "HEALTHCHECK CMD", "array", "variable", "former", "here", "other"]))
    words = [TRAIN, *own]
    match form:
        case "array":
            comma = draw(st.sampled_from([", ", ",", f", {escape}\n  "]))
            strings = comma.join(f'"{word}"' for word in " ".join(words).split())
            return f"{draw(st.sampled_from(['RUN', 'CMD', 'ENTRYPOINT']))} [{strings}]\n"
        case "variable" | "former":
            name = f"ARGS{number}"
            value = gap.join(own).replace("$", "") or "--bf16"
            value = f"{name} {value}" if form == "former" else f'{name}="{value}"'
            more = draw(st.sampled_from(["", f"{gap}--enable-cuda-graph", f"{gap}--lr 1"]))
            return f"ENV {value}\nRUN {TRAIN}{more}{gap}${name}\n"
        case "here":
            return f"RUN <<EOF\n{' '.join(words)}\nEOF\n"
        case "other":
            return draw(st.sampled_from(["WORKDIR /x\n", "# --enable-cuda-graph\n", "\n", "USER 1\n", "COPY a b\n"]))
    return f"{form} {gap.join(words)}\n"


@st.composite
def dockerfiles(draw: st.DrawFn) -> str:
    escape = draw(st.sampled_from(["\\", "\\", "`"]))
    count = draw(st.integers(1, 4))
    lines = [draw(instruction(number, escape)) for number in range(count)]
    text = (f"# escape={escape}\n" if escape == "`" else "") + HEAD + "".join(lines)
    return text if draw(st.booleans()) else text.replace("\n", "\r\n")


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=dockerfiles())
def test_docker_runs_generated_files_as_before(text: str) -> None:
    after = fixed(text)
    assert fixed(after) == after
    old, new = instructions(text), instructions(after)
    assert [name for name, _ in old] == [name for name, _ in new]
    plain = [text.replace("\r\n", "\n"), after.replace("\r\n", "\n")]
    assert other_words(plain[0]) == other_words(plain[1])
    assert after.count("\r\n") == after.count("\n") or "\r\n" not in text


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=dockerfiles())
def test_only_flags_change_in_generated_files(text: str) -> None:
    document = DockerDocument(text)
    spans = [use.span for site in document.sites for use in site.written]
    for site in document.sites:
        assert all(text[use.span.start : use.span.end].lstrip("\"'").startswith("--") for use in site.written)
    plan = plan_alone("Dockerfile", DockerDocument(text, "/p/Dockerfile"), context())
    edits = [
        edit for fix in plan.fixes if fix.applicability is Applicability.SAFE for edit in fix.edits_in("Dockerfile")
    ]
    for edit in edits:
        # A deletion may take the blanks, quotes and the end of a line beside a flag along.
        outside = [at for at in range(edit.start, edit.end) if not any(s.start <= at < s.end for s in spans)]
        assert all(text[at] in ' \t\r\n\\`",' for at in outside), text[edit.start : edit.end]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=dockerfiles())
def test_every_deprecated_flag_of_a_generated_file_is_seen(text: str) -> None:
    """No command with a deprecated flag passes."""
    runs = [word for words in commands(text.replace("\r\n", "\n")) for word in words]
    old = [word for word in runs if word.startswith(("--enable-cuda", "--external-cuda", "--cuda-graph-scope"))]
    document = DockerDocument(text)
    seen = [use.key for site in document.sites for use in site.written] + [one.message for one in document.problems]
    assert all(any(word.partition("=")[0] in key for key in seen) for word in old)


WORDS = """RUN ENV ARG CMD FROM ONBUILD HEALTHCHECK SHELL A= [ ] , " ' ` \\ $A ${A $( ( ) = # é <<EOF EOF && ; if fi
torchrun --enable-cuda-graph --cuda-graph-scope attn"""
PIECES = st.sampled_from([*WORDS.split(), " ", " ", "\n", "\n", "\r\n", "\t", "\x00", "# escape=`\n", "FROM a AS "])


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(PIECES, max_size=30).map("".join))
def test_no_text_raises(text: str) -> None:
    document = DockerDocument(text)
    spans = [use.span for use in document.uses]
    assert all(any(span.start <= one.span.start < span.end for span in spans) for one in appearances_in(text, load()))
    after = fixed(text)
    assert fixed(after) == after
    document.comments()
    document.joined_lines()
