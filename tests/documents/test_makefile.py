"""Makefiles: what is read, rewritten and left as it is, judged by GNU make."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.embedded import MakeDocument
from cgmigrate.documents.uses import appearances_in
from cgmigrate.lint.plan import plan_alone
from cgmigrate.megatron.catalogue import load
from tests.support.fixed_files import Run, check_passes, check_rewritten, with_safe_fixes
from tests.support.make_judge import commands, other_words
from tests.support.nightly import examples
from tests.support.yaml_judges import context

needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")

TRAIN = "torchrun pretrain_gpt.py"
LOCAL = "--cuda-graph-impl local"
ALL = "all: FORCE\n"

FORMS = {
    "a recipe": (
        f"all:\n\t{TRAIN} {LOCAL} --cuda-graph-scope attn mlp --bf16\n",
        f"all:\n\t{TRAIN} {LOCAL} --cuda-graph-modules attn mlp --bf16\n",
    ),
    "a definition with a comment in it": (
        f"define NOTE\n# a script\necho a\nendef\nall:\n\t$(NOTE)\n\t{TRAIN} --enable-cuda-graph\n",
        f"define NOTE\n# a script\necho a\nendef\nall:\n\t$(NOTE)\n\t{TRAIN} --cuda-graph-impl local\n",
    ),
    "prefixes": (
        f"all:\n\t@-{TRAIN} --enable-cuda-graph\n\t+ @{TRAIN} --external-cuda-graph\n",
        f"all:\n\t@-{TRAIN} --cuda-graph-impl local\n\t+ @{TRAIN} --cuda-graph-impl transformer_engine\n",
    ),
    "continued lines": (
        f"all:\n\t{TRAIN} \\\n\t  {LOCAL} \\\n\t  --cuda-graph-scope full \\\n\t  --bf16\n\ttrue\n",
        f"all:\n\t{TRAIN} \\\n\t  {LOCAL} \\\n\t  --bf16\n\ttrue\n",
    ),
    "the last flag of continued lines": (
        f"all:\n\t{TRAIN} {LOCAL} \\\n    --cuda-graph-scope full\nb:\n\ttrue\n",
        f"all:\n\t{TRAIN} {LOCAL}\nb:\n\ttrue\n",
    ),
    "a command behind a semicolon": (
        f"all: ; {TRAIN} --enable-cuda-graph\n",
        f"all: ; {TRAIN} --cuda-graph-impl local\n",
    ),
    "variables of the shell": (
        f"all:\n\tfor i in 1 2; do \\\n\t  {TRAIN} --enable-cuda-graph --x $$i$${{i}} --y $$(echo 1); \\\n\tdone\n",
        f"all:\n\tfor i in 1 2; do \\\n\t  {TRAIN} --cuda-graph-impl local --x $$i$${{i}} --y $$(echo 1); \\\n\tdone\n",
    ),
    "a line below a comment of a recipe": (
        f"all:\n\t# a \\\n\t{TRAIN} --enable-cuda-graph\n",
        f"all:\n\t# a \\\n\t{TRAIN} --cuda-graph-impl local\n",
    ),
    "a variable of the shell with flags": (
        f'all:\n\tA="{LOCAL} --cuda-graph-scope attn"; {TRAIN} $$A --bf16\n',
        f'all:\n\tA="{LOCAL} --cuda-graph-modules attn"; {TRAIN} $$A --bf16\n',
    ),
    "automatic variables and functions": (
        f"all: x\n\t{TRAIN} --x $@ --y $(firstword $^) --enable-cuda-graph --z $(words a b)\nx:\n",
        f"all: x\n\t{TRAIN} --x $@ --y $(firstword $^) --cuda-graph-impl local --z $(words a b)\nx:\n",
    ),
    "a variable": (
        f"FLAGS = --bf16 {LOCAL} \\\n        --cuda-graph-scope attn  # layers\nall:\n\t{TRAIN} $(FLAGS)\n",
        f"FLAGS = --bf16 {LOCAL} \\\n        --cuda-graph-modules attn  # layers\nall:\n\t{TRAIN} $(FLAGS)\n",
    ),
    "a variable in another one": (
        f"ALL = $(GRAPHS) --bf16\nGRAPHS := --cuda-graph-scope full_iteration\nall:\n\t{TRAIN} {LOCAL} ${{ALL}}\n",
        f"ALL = $(GRAPHS) --bf16\nGRAPHS := \nall:\n\t{TRAIN} --cuda-graph-impl full_iteration ${{ALL}}\n",
    ),
    "a variable that grows": (
        f"A := --bf16\nA += {LOCAL}\nA += --cuda-graph-scope attn\nall:\n\t{TRAIN} $(A)\n",
        f"A := --bf16\nA += {LOCAL}\nA += --cuda-graph-modules attn\nall:\n\t{TRAIN} $(A)\n",
    ),
    "a variable below the recipe": (
        f"all:\n\t{TRAIN} {LOCAL} $(A)\nA = --cuda-graph-scope full_iteration\n",
        f"all:\n\t{TRAIN} --cuda-graph-impl full_iteration $(A)\nA = \n",
    ),
    "a variable of one letter": (
        f"A = {LOCAL} --cuda-graph-scope attn\nall:\n\t{TRAIN} $A --bf16\n",
        f"A = {LOCAL} --cuda-graph-modules attn\nall:\n\t{TRAIN} $A --bf16\n",
    ),
    "a variable that is exported": (
        f"export override FLAGS ?= {LOCAL} --cuda-graph-scope attn\nall:\n\t{TRAIN} $(FLAGS)\n",
        f"export override FLAGS ?= {LOCAL} --cuda-graph-modules attn\nall:\n\t{TRAIN} $(FLAGS)\n",
    ),
    "a define": (
        f"define train\n\t@{TRAIN} --enable-cuda-graph --seed $(1)\n\ttrue\nendef\nall:\n\t$(call train,3)\n",
        f"define train\n\t@{TRAIN} --cuda-graph-impl local --seed $(1)\n\ttrue\nendef\nall:\n\t$(call train,3)\n",
    ),
    "line breaks of Windows": (
        f"A = {LOCAL} \\\r\n  --cuda-graph-scope full \\\r\n  --bf16\r\nall:\r\n\t{TRAIN} $(A)\r\n",
        f"A = {LOCAL} \\\r\n  --bf16\r\nall:\r\n\t{TRAIN} $(A)\r\n",
    ),
    "one shell for a recipe": (
        f'.ONESHELL:\nall:\n\tA="{LOCAL}"\n\t{TRAIN} $$A --cuda-graph-scope full_iteration\n',
        f'.ONESHELL:\nall:\n\tA="--cuda-graph-impl full_iteration"\n\t{TRAIN} $$A\n',
    ),
}
SILENT = {
    "a comment": f"# {TRAIN} --enable-cuda-graph \\\n  --enable-cuda-graph\nall:\n\ttrue\n",
    "a comment behind a value": "A = 1 # --enable-cuda-graph\nall:\n\ttrue\n",
    "a newer command": f"all:\n\t{TRAIN} {LOCAL} --cuda-graph-modules attn\n",
    "Megatron-Bridge's harness": "all:\n\tpython run.py --cuda_graph_impl local --cuda_graph_scope attn,mlp\n",
    "a comment of a recipe": f"all:\n\t# {TRAIN} --enable-cuda-graph\n\ttrue\n",
    "a message": "all:\n\t@echo use --cuda-graph-scope attn\n",
}
REPORTED = {
    "a variable of two recipes": f"A = --enable-cuda-graph\nall:\n\t{TRAIN} $(A)\nb:\n\t{TRAIN} $(A)\n",
    "a variable of two variables": (
        f"A = --enable-cuda-graph\nB = $(A)\nC = $(A)\nall:\n\t{TRAIN} $(B)\n\t{TRAIN} $(C)\n"
    ),
    "a word in quotes": f'A = --enable-cuda-graph\nall:\n\t{TRAIN} "$(A)"\n',
    "a function": f"all:\n\t{TRAIN} $(if $(X),--enable-cuda-graph)\n",
    "a value from a variable": f"S = full\nall:\n\t{TRAIN} {LOCAL} --cuda-graph-scope $(S)\n",
    "a value from elsewhere": f"include a.mk\nall:\n\t{TRAIN} {LOCAL} --cuda-graph-scope $(S)\n",
    "the output of a command": "A != echo --enable-cuda-graph\nall:\n\ttrue\n",
    "a variable of a target": f"all: A = --enable-cuda-graph\nall:\n\t{TRAIN} $(A)\n",
    "a variable that a target changes": f"A = {LOCAL} --cuda-graph-scope attn\nall: A += --x\nall:\n\t{TRAIN} $(A)\n",
    "a variable that is set twice": f"A = {LOCAL}\nA = {LOCAL} --cuda-graph-scope attn\nall:\n\t{TRAIN} $(A)\n",
    "a value at a line": (
        f"A := {LOCAL} --cuda-graph-scope attn\nB := $(A)\nA += --cuda-graph-scope full\nall:\n\t{TRAIN} $(B)\n"
    ),
    "a variable of make and the shell": f"A = {LOCAL} --cuda-graph-scope attn\nall:\n\tA=x; {TRAIN} $(A)\n",
    "a condition": (f"A = {LOCAL}\nifdef X\nA += --cuda-graph-scope full_iteration\nendif\nall:\n\t{TRAIN} $(A)\n"),
    "a define with flags": f"define A\n--enable-cuda-graph\n--bf16\nendef\nall:\n\t{TRAIN} $(A)\n",
    "a define and more flags": f"define A\n{TRAIN} --enable-cuda-graph\nendef\nall:\n\t$(A) --cuda-graph-scope full\n",
    "a define that is evaluated": (f"define A\nall:\n\t{TRAIN} --enable-cuda-graph\nendef\n$(eval $(A))\n"),
    "a call": "$(call rule,--enable-cuda-graph)\nall:\n\ttrue\n",
    "another prefix of recipes": f".RECIPEPREFIX = >\nall:\n> {TRAIN} --enable-cuda-graph\n",
    "another shell": "SHELL = /usr/bin/python3\nall:\n\trun('--enable-cuda-graph')\n",
    "a command that is not complete": f"all:\n\tif {TRAIN} --enable-cuda-graph; then true\n",
    "a make below": 'all:\n\t$(MAKE) -C x FLAGS="--enable-cuda-graph --bf16"\n',
}


def fixed(text: str) -> str:
    """Return the makefile with all safe fixes."""
    return with_safe_fixes(MakeDocument(text, "/p/Makefile"))


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_sets_nothing_deprecated_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "Makefile", text, cgmigrate)


@pytest.mark.parametrize("name", ["Makefile", "makefile", "GNUmakefile", "train.mk"])
def test_makefiles_are_read(project: Path, cgmigrate: Run, name: str) -> None:
    before, after = FORMS["a recipe"]
    (project / name).write_text(before)
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert (project / name).read_text() == after


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    check_rewritten(project / "Makefile", before, after, cgmigrate)


@needs_make
@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_make_runs_the_other_words_as_before(tmp_path: Path, before: str, after: str) -> None:
    old, new = (text.replace("\r\n", "\n") for text in (before, after))
    words = other_words(old, tmp_path, "all")
    assert words and words == other_words(new, tmp_path, "all")


@pytest.mark.parametrize("text", REPORTED.values(), ids=REPORTED)
def test_what_cannot_be_read_surely_is_reported_and_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "Makefile"
    path.write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == text
    assert cgmigrate("check", ".").exit_code == 1


def test_a_comment_suppresses(project: Path, cgmigrate: Run) -> None:
    text = (
        f"A = --enable-cuda-graph # cgmigrate: ignore[CG101] later\nall:\n\t{TRAIN} $(A)\n"
        f"# cgmigrate: ignore[CG101]\nb: ; {TRAIN} --enable-cuda-graph\n"
    )
    (project / "Makefile").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0, result.output
    cgmigrate("fix", ".")
    assert (project / "Makefile").read_text() == text


@needs_make
def test_written_suppressions_keep_the_commands(project: Path, cgmigrate: Run) -> None:
    path = project / "Makefile"
    recipe = f"all:\n\t{TRAIN} $(A)\n\t{TRAIN} \\\n\t  --enable-cuda-graph\n"
    text = f"A = --bf16 \\\n  {LOCAL} --cuda-graph-scope attn\n{recipe}"
    path.write_text(text)
    assert cgmigrate("check", ".", "--add-ignore").exit_code == 0
    assert commands(path.read_text(), project, "all") == commands(text, project, "all")
    assert cgmigrate("check", ".").exit_code == 0


# --- generated files ------------------------------------------------------------------------------

OTHERS = ("--bf16", "--num-layers 4", "--lr 1.0e-4", "--te-rng-tracker", "--seed $$$$", "--name $@", "--x $(words a b)")
BACKENDS = ("", LOCAL, "--cuda-graph-impl=none", "--enable-cuda-graph", "--external-cuda-graph")
SCOPES = ("", "full", "full_iteration", "attn", "attn mlp", "moe_router moe_preprocess", "$(SCOPE)", "unknown")


@st.composite
def flags(draw: st.DrawFn) -> list[str]:
    scope = draw(st.sampled_from(SCOPES))
    own = [draw(st.sampled_from(BACKENDS)), scope and f"--cuda-graph-scope {scope}"]
    return draw(
        st.permutations([*filter(None, own), *draw(st.lists(st.sampled_from(OTHERS), max_size=3, unique=True))])
    )


@st.composite
def makefiles(draw: st.DrawFn) -> str:
    """A makefile: each flag is in a recipe or in a variable, which is set above or below it."""
    variables: list[str] = []
    recipe = []
    for number in range(draw(st.integers(1, 3))):
        gap = draw(st.sampled_from([" ", "  ", " \\\n\t    ", " \\\n  "]))
        prefix = draw(st.sampled_from(["", "@", "-", "@-", "+ "]))
        words = []
        for at, flag in enumerate(draw(flags())):
            form = draw(st.sampled_from(["recipe", "recipe", "variable", "grows", "shared", "choice"]))
            name = {"grows": f"G{number}", "shared": "SHARED"}.get(form, f"V{number}{at}")
            operator = {"grows": "+=", "shared": "+=", "choice": "?="}.get(form, draw(st.sampled_from(["=", ":="])))
            value = flag.replace("$@", "x")
            if form != "recipe":
                variables.append(f"{name} {operator} {value}{draw(st.sampled_from(['', '  # --bf16']))}\n")
            reference = draw(st.sampled_from([f"$({name})", f"${{{name}}}"]))
            word = flag if form == "recipe" else reference
            words += [word] if word not in words else []
        recipe.append(f"\t{prefix}{gap.join([TRAIN, *words])}\n")
    rule = "all:\n" + "".join(recipe)
    variables = [*draw(st.permutations(variables))]
    at = draw(st.integers(0, len(variables)))
    text = "".join([*variables[:at], rule, *variables[at:]])
    return f"# --enable-cuda-graph\nSCOPE = attn\n{text}"


@needs_make
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=makefiles())
def test_make_runs_generated_files_as_before(tmp_path: Path, text: str) -> None:
    after = fixed(text)
    assert fixed(after) == after
    text = text.replace("$$$$", "1")
    assert other_words(text, tmp_path, "all") == other_words(after.replace("$$$$", "1"), tmp_path, "all")


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=makefiles())
def test_only_flags_change_in_generated_files(text: str) -> None:
    document = MakeDocument(text)
    spans = [use.span for site in document.sites for use in site.written]
    plan = plan_alone("Makefile", MakeDocument(text, "/p/Makefile"), context())
    edits = [edit for fix in plan.fixes for edit in fix.edits_in("Makefile")]
    for edit in edits:
        outside = [at for at in range(edit.start, edit.end) if not any(s.start <= at < s.end for s in spans)]
        assert all(text[at] in " \t\n\\" for at in outside), text[edit.start : edit.end]


@needs_make
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=makefiles())
def test_no_deprecated_flag_of_a_generated_file_passes(tmp_path: Path, text: str) -> None:
    runs = [word.partition("=")[0] for words in commands(text, tmp_path, "all") for word in words]
    old = {word for word in runs if word in ("--enable-cuda-graph", "--external-cuda-graph", "--cuda-graph-scope")}
    document = MakeDocument(text)
    seen = [use.key for site in document.sites for use in site.written] + [one.message for one in document.problems]
    assert all(any(word in key for key in seen) for word in old)


WORDS = """A = := += ?= != $(A) ${A} $A $$A $$(A) $( ${ ) } " ' ` \\ : ; # é define endef ifdef endif else include
export torchrun --enable-cuda-graph --cuda-graph-scope attn .ONESHELL: .RECIPEPREFIX SHELL"""
PIECES = st.sampled_from(
    [*WORDS.split(), " ", " ", "\n", "\n", "\n\t", "\n\t", "\r\n", "\x00", "all:\n\t", "define A\n"]
)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(PIECES, max_size=30).map("".join))
def test_no_text_raises(text: str) -> None:
    document = MakeDocument(text)
    spans = [use.span for use in document.uses]
    assert all(any(span.start <= one.span.start < span.end for span in spans) for one in appearances_in(text, load()))
    after = fixed(text)
    assert fixed(after) == after
    document.comments()
    document.joined_lines()
