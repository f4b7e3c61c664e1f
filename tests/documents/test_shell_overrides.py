"""Overrides in scripts: words that a real bash expands, read by Hydra's own parser before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.shell import ShellDocument
from cgmigrate.documents.syntax import document_of, syntax_of
from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.lint.plan import plan_alone
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.types import Reader, Rejected
from tests.support.files import write
from tests.support.nightly import examples
from tests.support.shell_judges import is_valid, recorded
from tests.support.tables import table_of
from tests.support.yaml_judges import context

CONTEXT = context()
PREFIX = "actor.megatron.override_transformer_config."
NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl", "cuda_graph_scope")
NEW_NAMES = ("cuda_graph_impl", "cuda_graph_modules", "inference_cuda_graph_scope")
OTHERS = ("trainer.n_gpus_per_node=8", "data.files=[a,b]", "'data.prompt=a b'", "+algorithm.use_kl=false", "~data.x")
SCOPES = ("full", "full_iteration", "full_iteration_inference", "attn", "[attn,mlp]", "[moe_router]", "[]", "null")


@st.composite
def override(draw: st.DrawFn, name: str, value: str) -> str:
    """One word: plain, quoted as a whole, or with a quoted value."""
    sign = draw(st.sampled_from(["", "+", "++"]))
    form = draw(st.sampled_from(["{}{}={}", "'{}{}={}'", '"{}{}={}"', "{}{}='{}'", '{}{}="{}"']))
    return form.format(sign, PREFIX + name, value)


@st.composite
def pairs(draw: st.DrawFn) -> list[str]:
    backend = draw(
        st.sampled_from(
            [
                *(("cuda_graph_impl", one) for one in ("local", "transformer_engine", "none")),
                *(("enable_cuda_graph", one) for one in ("true", "False")),
                ("external_cuda_graph", "True"),
            ]
        )
    )
    words = [draw(override(*backend))]
    if draw(st.booleans()):
        words.append(draw(override("cuda_graph_scope", draw(st.sampled_from(SCOPES)))))
    return words


@st.composite
def scripts(draw: st.DrawFn) -> str:
    words = draw(st.permutations([*draw(pairs()), *draw(st.lists(st.sampled_from(OTHERS), max_size=4, unique=True))]))
    gap = draw(st.sampled_from([" ", " \\\n    ", "  \\\n  "]))
    if draw(st.booleans()):
        inside = draw(st.sampled_from([" ", "\n    "]))
        return f'ARGS=({inside}{inside.join(words)}\n)\npython -m verl.trainer.main_ppo a=1 "${{ARGS[@]}}"\n'
    return f"# a job\n{gap.join(['python -m verl.trainer.main_ppo', *words])}  # why\necho done\n"


def fixed(text: str, name: str = "a.sh") -> str:
    """Return the file with all of its fixes, which are all unsafe."""
    syntax = syntax_of(name)
    assert syntax
    plan = plan_alone(name, document_of(f"/p/{name}", text, syntax, CONTEXT.catalogue), CONTEXT)
    assert all(fix.applicability is not Applicability.SAFE for fix in plan.fixes)
    edited = plan.edited([fix.id for fix in plan.fixes])
    return edited[0].text if edited else text


def hydra_reads(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings that the overrides of a command set, as Hydra reads them, and its other words."""
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser").OverridesParser.create()
    own: dict[str, Any] = {}
    others = []
    for word in words:
        if PREFIX not in word:
            others.append(word)
            continue
        read = parser.parse_override(word)
        own[read.key_or_group.removeprefix(PREFIX)] = read.value()
    return own, others


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
def test_the_same_is_captured_by_what_hydra_reads(text: str) -> None:
    after = fixed(text)
    assert is_valid(after)
    assert fixed(after) == after
    (before_words,), (after_words,) = recorded(text), recorded(after)
    if after != text:
        check_captures(before_words, after_words)
    else:
        assert before_words == after_words


def check_captures(before_words: list[str], after_words: list[str]) -> None:
    (before, others), (result, rest) = hydra_reads(before_words), hydra_reads(after_words)
    assert others == rest
    was = capture_of({name: before[name] for name in NAMES if name in before}, LAST_OLD, Reader.CONFIG)
    will = capture_of({name: result[name] for name in NEW_NAMES if name in result}, NEWEST, Reader.CONFIG)
    assert isinstance(was, Rejected) or will == was, (before_words, after_words)
    assert result.keys() <= set(NEW_NAMES)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
def test_a_site_has_what_hydra_reads(text: str) -> None:
    (site,) = ShellDocument(text).sites
    own, _ = hydra_reads(recorded(text)[0])
    assert site.own == own
    assert site.path == tuple(PREFIX.rstrip(".").split("."))


# --- forms ----------------------------------------------------------------------------------------

REWRITTEN = table_of(__name__, "REWRITTEN")
LEFT = {
    "a value that the shell computes": "++a.megatron_cfg.cuda_graph_scope=$SCOPE",
    "an override that deletes": "~a.megatron_cfg.cuda_graph_scope",
    "a deletion with a value": "~a.megatron_cfg.cuda_graph_scope=full",
    "another program's option": "engine.enable_cuda_graph=true",
    "a text that is printed": "echo model.cuda_graph_scope=full",
    "a comment": "# ++a.megatron_cfg.cuda_graph_scope=[attn]",
    "twice": "a.megatron_cfg.cuda_graph_scope=full a.megatron_cfg.cuda_graph_scope=[attn]",
    "a part of the word is quoted": "a.megatron_cfg.'cuda_graph_scope'=full",
}


@pytest.mark.parametrize(("before", "after"), REWRITTEN.values(), ids=REWRITTEN)
def test_forms_that_are_rewritten(before: str, after: str) -> None:
    before, after = (one if "\n" in one or "bash" in one else f"python train.py {one}" for one in (before, after))
    assert fixed(before + "\n") == after + "\n"


@pytest.mark.parametrize("line", LEFT.values(), ids=LEFT)
def test_forms_that_are_left(line: str) -> None:
    text = f"{line}\n" if line[0] in "e#" and "engine" not in line else f"python train.py {line} trainer.x=1\n"
    assert fixed(text) == text


def test_the_diagnostic_says_what_is_not_shown(project: Path, cgmigrate: Any) -> None:
    write("run.sh", "python run_grpo.py ++policy.megatron_cfg.external_cuda_graph=true\n")
    result = cgmigrate("check", "run.sh")
    assert result.exit_code == 1
    assert "because: `policy.megatron_cfg.` overrides a configuration that this file does not show" in result.stdout
    assert cgmigrate("fix", "--unsafe-fixes", "run.sh").exit_code == 0
    written = (project / "run.sh").read_text(encoding="utf-8")
    assert written == "python run_grpo.py ++policy.megatron_cfg.cuda_graph_impl=transformer_engine\n"
