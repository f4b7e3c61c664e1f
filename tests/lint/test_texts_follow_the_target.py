"""No message and no help for a release has a setting, flag or value that this release does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.plan import plan_alone
from cgmigrate.lint.rules import load
from cgmigrate.megatron import catalogue, tables
from cgmigrate.megatron.releases import KNOWN, LAST_OLD, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import LAYER_MODULES
from tests.support.tables import from_table

RULES, OWNERS, SETTINGS = load(), ecosystems.load(), catalogue.load()
SYNTAXES = {"yaml": Syntax.YAML, "python": Syntax.PYTHON}
TARGETS = [release for release in KNOWN if release >= Release(0, 14)]
FULL_ITERATION_IMPLEMENTATION = re.compile(r"cuda.graph.impl\W+full_iteration\b")
WORDS = re.compile(r"(?:--)?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+|\b(?:mlp|moe|mamba)\b")
SINCE = {
    **{module: SCOPE_LIST_SINCE for module in LAYER_MODULES if module != "attn"},
    "full_iteration_inference": LAST_OLD,
}
"""Values of settings that older releases lack."""


def plain(word: str) -> str:
    return word.removeprefix("--").replace("-", "_")


@cache
def names_of(release: Release) -> frozenset[str]:
    """Return all fields and flags of a release, in the spelling of fields."""
    every = tables.load()
    # Nothing is known of Bridges before those of the tables.
    of_bridge = max(release, LAST_OLD)
    fields = {
        name
        for owner in every.classes
        for name in every.fields(owner, of_bridge if owner.startswith(("bridge.", "training.")) else release)
    }
    # Nothing is known of the flags of older releases.
    flags = every.flags(max(release, every.flags_since))
    return frozenset(fields | {plain(flag) for flag in flags})


ALL_OF_TABLES = frozenset().union(*map(names_of, KNOWN))


def absent_words(text: str, before: str, release: Release) -> Iterator[str]:
    """Yield the words of a text that a release does not have, and that the file does not write itself."""
    known = names_of(release) | {
        one.name for one in SETTINGS.settings.values() if one.since <= release and one.name not in ALL_OF_TABLES
    }
    own = {plain(word) for word in WORDS.findall(before)}
    for word in set(WORDS.findall(text)):
        name = plain(word)
        is_new = (
            name in (ALL_OF_TABLES | SETTINGS.name_set)
            and name not in known
            and (word.startswith("--") or "-" not in word)
        )
        is_new = is_new or (name in SINCE and release < SINCE[name] and "-" not in word)
        if is_new and name not in own:
            yield word
    if (
        release < SPLIT_IN
        and FULL_ITERATION_IMPLEMENTATION.search(text)
        and not (FULL_ITERATION_IMPLEMENTATION.search(before))
    ):
        yield "cuda_graph_impl: full_iteration"


def absent_in_diagnostics(text: str, syntax: Syntax, target: Release) -> list[tuple[str, str, str, str]]:
    """Return each word of a diagnostic that the target lacks: target, rule, word, text."""
    context = Context(min(LAST_OLD, target), target, RULES, OWNERS, SETTINGS, assumed_source=False)
    (file,) = plan_alone("", document_of("", text, syntax, SETTINGS), context).files
    return [
        (str(target), one.rule, word, said)
        for one in file.diagnostics
        for said in (one.message, one.help, one.fix_text)
        for word in absent_words(said, text, target)
    ]


EXAMPLES = [
    pytest.param(example, id=f"{rule.id}-{number}")
    for rule in RULES.values()
    for number, example in enumerate(rule.examples)
    if example["syntax"] in SYNTAXES and not {"beside", "size", "repeat", "encoding"} & example.keys()
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_text_about_an_example_has_what_the_target_lacks(example: Mapping[str, Any]) -> None:
    syntax = SYNTAXES[example["syntax"]]
    assert [one for target in TARGETS for one in absent_in_diagnostics(example["before"], syntax, target)] == []


SCOPES = (None, "full", "attn", "mlp", "moe", "full_iteration", "full_iteration_inference", "Attn", "attn, mlp", "[]")
PAIRS = [
    f"full_iteration{separator}{other}" for separator in (",", " ") for other in ("attn", "full_iteration_inference")
]
IMPLEMENTATIONS = (None, "none", "local", "transformer_engine", "megatron")


def _yaml(settings: Mapping[str, str], around: tuple[str, ...]) -> str:
    keys = "".join(f"{'  ' * number}{key}:\n" for number, key in enumerate(around))
    indent = "  " * len(around)
    return keys + "".join(f"{indent}{name}: {value}\n" for name, value in {**settings, "hidden_size": "8"}.items())


def _python(settings: Mapping[str, str]) -> str:
    words = ", ".join(f"{name}={value if value in ('True', '[]') else repr(value)}" for name, value in settings.items())
    return f"from megatron.core.transformer import TransformerConfig\n\nTransformerConfig({words})\n"


def _shell(settings: Mapping[str, str]) -> str:
    words = (f"--{name.replace('_', '-')}{'' if value == 'True' else f' {value}'}" for name, value in settings.items())
    return f"torchrun pretrain_gpt.py --num-layers 2 {' '.join(words)}\n"


def settings_of_old_names() -> Iterator[dict[str, str]]:
    """Yield settings with old names that some release accepts or refuses."""
    for scope in (*SCOPES, *PAIRS):
        named = {} if scope is None else {"cuda_graph_scope": scope}
        yield from ({**named, "cuda_graph_impl": impl} for impl in IMPLEMENTATIONS if impl)
        yield named
        yield from ({**named, boolean: "True"} for boolean in ("enable_cuda_graph", "external_cuda_graph"))


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    ("syntax", "written"),
    [
        (Syntax.YAML, lambda settings: _yaml(settings, ("model",))),
        (Syntax.YAML, lambda settings: _yaml(settings, ("policy", "megatron_cfg"))),
        (Syntax.PYTHON, _python),
        (Syntax.SHELL, _shell),
    ],
    ids=["bridge", "nemo-rl", "python", "shell"],
)
def test_no_text_about_old_names_has_what_the_target_lacks(
    syntax: Syntax, written: Callable[[Mapping[str, str]], str], target: Release
) -> None:
    texts = [written(settings) for settings in settings_of_old_names() if settings]
    assert [one for text in texts for one in absent_in_diagnostics(text, syntax, target)] == []


@pytest.mark.parametrize("target", TARGETS, ids=str)
@from_table
def test_no_text_about_code_has_what_the_target_lacks(code: str, target: Release) -> None:
    text = f"from megatron.core.transformer import TransformerConfig\n\n{code}"
    assert absent_in_diagnostics(text, Syntax.PYTHON, target) == []


def test_the_test_finds_what_a_release_lacks() -> None:
    said = (
        "write `cuda_graph_modules: [attn]` or `--inference-cuda-graph-scope block` or cuda_graph_impl: full_iteration"
    )
    assert len(list(absent_words(said, "", Release(0, 17)))) == 3
    assert not list(absent_words(said, "", Release(0, 18)))
