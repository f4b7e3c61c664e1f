"""Generated launch scripts, run by a real bash; the words are parsed by Megatron-LM's own parsers before and after."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.shell import ShellDocument
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.types import Capture, Reader, Rejected
from tests.support.fixed_files import with_safe_fixes
from tests.support.nightly import examples
from tests.support.paths import FETCHED
from tests.support.shell_judges import RealParser, is_valid, recorded, without_settings

OLD = FETCHED / "megatron-core-0.17.1"
NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl", "cuda_graph_scope")
NEW_NAMES = ("cuda_graph_impl", "cuda_graph_modules", "inference_cuda_graph_scope")
OTHERS = (
    "--bf16", "--num-layers 4", "--hidden-size 64", "--te-rng-tracker", "--seq-length 128",
    "--no-check-for-nan-in-loss-and-grad", "--lr 1.0e-4", "--init-method-std 0.02",
)  # fmt: skip
SCOPES = (
    "full", "full_iteration", "full_iteration_inference", "attn", "mlp", "attn mlp", "moe_router moe_preprocess",
    "attn full_iteration_inference", "mamba attn", "unknown",
)  # fmt: skip
EXPANSIONS = ("$NAME", "${NAME}", '"$NAME"', "${NAME:-}", '"${NAME:-}"', '${NAME:+"$NAME"}', "${NAME:+$NAME}")
"""How a command may expand a variable with one flag."""
ARRAYS = (*['"${ARGS[@]}"'] * 4, "${ARGS[@]}", "${ARGS[*]}", "$ARGS", '"${ARGS[@]:1}"', '"${ARGS[@]:-}"')


@st.composite
def flags_of_settings(draw: st.DrawFn) -> list[str]:
    backend = draw(st.sampled_from(["", "--cuda-graph-impl local", "--cuda-graph-impl transformer_engine",
                                    "--cuda-graph-impl none", "--enable-cuda-graph", "--external-cuda-graph",
                                    "--cuda-graph-impl=local", "'--enable-cuda-graph'"]))  # fmt: skip
    scope = draw(st.sampled_from(["", *SCOPES]))
    form = draw(st.sampled_from(["{}", "{}", "={}", '"{}"']))
    separator = "" if form[0] == "=" else "  " if form == '"{}"' else " "
    if " " in scope and form != "{}":
        form, separator = "{}", " "
    written = [f"--cuda-graph-scope{separator}{form.format(scope)}"] if scope else []
    return draw(st.permutations([*filter(None, [backend]), *written]))


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A launch script: each flag is in the command, in an array, in a string, in a block that may run, or alone."""
    flags = [*draw(flags_of_settings()), *draw(st.lists(st.sampled_from(OTHERS), max_size=5, unique=True))]
    flags = draw(st.permutations(flags))
    forms = ("command", "array", "append", "string", "block", "alone")
    chosen = [(draw(st.sampled_from(forms)), flag) for flag in flags]
    if draw(st.booleans()):
        chosen = [(chosen[0][0] if chosen else "array", flag) for _, flag in chosen]
    by_form = {form: [flag for one, flag in chosen if one == form] for form in forms}
    by_form["string"] = [flag.replace("'", "").replace('"', "") for flag in by_form["string"]]
    gap = draw(st.sampled_from([" ", " \\\n    ", "  "]))
    in_array = draw(st.sampled_from([" ", "\n    ", "\n  # --cuda-graph-scope full\n    "]))
    lines = ["#!/bin/bash", f"ARGS=({in_array}{in_array.join(by_form['array'])})" if by_form["array"] else "ARGS=()"]
    if by_form["append"]:
        lines.append(f"ARGS+=({' '.join(by_form['append'])})")
    lines.append(f'OPTIONS="{gap.join(by_form["string"])}"')
    alone = [flag for flag in by_form["alone"] if " " not in flag and "'" not in flag]
    by_form["command"] = [*by_form["command"], *(flag for flag in by_form["alone"] if flag not in alone)]
    lines += [f'ALONE{number}="{flag}"' for number, flag in enumerate(alone)]
    if by_form["block"]:
        lines += ['if [ -n "$BLOCK" ]; then', f"  ARGS+=({' '.join(by_form['block'])})", "fi"]
    expanded = [draw(st.sampled_from(EXPANSIONS)).replace("NAME", f"ALONE{number}") for number in range(len(alone))]
    array = draw(st.sampled_from(ARRAYS))
    command = ["torchrun --nproc-per-node 1 pretrain_gpt.py", *by_form["command"], "$OPTIONS", array, *expanded]
    command = [command[0], *draw(st.permutations(command[1:]))]
    if draw(st.sampled_from([True, False, False])):
        lines[1:1] = ["run() {", f"  {gap.join(command)}", "}"]
        lines.append("run")
    else:
        lines.append(gap.join(command))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def parsers() -> Iterator[tuple[RealParser, RealParser]]:
    pytest.importorskip("megatron.training")
    if not OLD.is_dir():
        pytest.skip("the wheel of megatron-core 0.17.1 was not fetched")
    both = (RealParser(OLD), RealParser())
    if not all(parser.works for parser in both):
        pytest.skip("megatron.training cannot be imported")
    yield both
    for parser in both:
        parser.close()


def fixed(text: str) -> str:
    """Return the script with all safe fixes."""
    return with_safe_fixes(ShellDocument(text, "/p/a.sh"))


def captured(arguments: Mapping[str, Any], release: Release) -> Capture | Rejected:
    """What a release captures with the arguments that its own parser returned."""
    own: dict[str, Any] = {}
    names = NAMES if release == LAST_OLD else NEW_NAMES
    for name in names:
        value = arguments.get(name)
        if value not in (None, False, []):
            own[name] = value
    return capture_of(own, release, Reader.COMMAND_LINE)


def others(arguments: Mapping[str, Any]) -> dict[str, Any]:
    names = {*NAMES, *NEW_NAMES, "cuda_graph_scope_deprecated"}
    return {name: value for name, value in arguments.items() if name not in names}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
@example(text='A=()\nA+=(--cuda-graph-scope full)\ntorchrun pretrain_gpt.py --cuda-graph-impl local "${A[@]:-}"\n')
@example(text='A=()\nO="--cuda-graph-impl local --cuda-graph-scope full"\ntorchrun pretrain_gpt.py $O "${A[@]:-}"\n')
@example(text='A=(--seed 1)\ntorchrun pretrain_gpt.py --cuda-graph-impl local --cuda-graph-scope full "${A[@]:1}"\n')
def test_the_real_parsers_capture_the_same(parsers: tuple[RealParser, RealParser], text: str) -> None:
    after = fixed(text)
    assert is_valid(text) and is_valid(after), after
    assert fixed(after) == after
    for variables in ("", "BLOCK=1\n"):
        old, new = recorded(variables + text), recorded(variables + after)
        assert [without_settings(words) for words in old] == [without_settings(words) for words in new]
        if after == text:
            continue
        (before_words,), (after_words,) = old, new
        script = before_words.index("pretrain_gpt.py") + 1
        before = parsers[0].parse(before_words[script:])
        result = parsers[1].parse(after_words[script:])
        assert "refused" not in result or "refused" in before, (after, result)
        if "refused" not in before:
            assert captured(before, LAST_OLD) == captured(result, NEWEST), (text, after)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=scripts())
def test_a_site_has_what_the_real_parser_reads(parsers: tuple[RealParser, RealParser], text: str) -> None:
    sites = ShellDocument(text).sites
    if len(sites) != 1 or sites[0].blocked_by:
        return
    values = [parsers[0].parse(words[words.index("pretrain_gpt.py") + 1 :]) for words in recorded("BLOCK=1\n" + text)]
    read = sites[0].own
    if "refused" in values[0]:
        return
    for name, value in read.items():
        real = values[0][name]
        assert (real if not isinstance(real, list) else list(real)) == value
    for name in NAMES:
        assert name in read or not values[0][name] or values[0][name] == "none", (name, text)


def test_the_parser_accepts_no_abbreviations(parsers: tuple[RealParser, RealParser]) -> None:
    for parser in parsers:
        assert "refused" in parser.parse(["--cuda-graph-imp", "local"])
        assert parser.parse(["--cuda-graph-impl", "local", "--cuda-graph-impl", "none"])["cuda_graph_impl"] == "none"


def test_no_release_accepts_abbreviated_flags() -> None:
    """A word such as `--cuda-graph-sc` is an error for Megatron-LM, so it is no flag of a setting."""
    folders = [Path(folder) / "megatron/training" for folder in (OLD, *sys.path)]
    sources = [path.read_text(encoding="utf-8") for folder in folders if (path := folder / "arguments.py").is_file()]
    if not sources:
        pytest.skip("megatron.training is not installed")
    for text in sources:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        parsers = [call for call in calls if ast.unparse(call.func) == "argparse.ArgumentParser"]
        assert parsers and all("allow_abbrev=False" in ast.unparse(call) for call in parsers)
    (site,) = ShellDocument("torchrun pretrain_gpt.py --cuda-graph-im local --enable-cuda-graph\n").sites
    assert site.own == {"enable_cuda_graph": True}
