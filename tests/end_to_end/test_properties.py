"""Properties of every YAML text: fixed once is fixed, nothing else is touched, ruamel.yaml agrees, nothing raises.

Texts are drawn from a grammar of the forms in which people write the settings, and taken from the
shared corpus of public configurations if that is available.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cgmigrate.megatron.settings import FIELDS
from cgmigrate.text.encoding import decode
from tests.support.nightly import examples
from tests.support.paths import CORPUS
from tests.support.yaml_judges import NAME, assert_fixed_well, assert_idempotent, assert_ruamel_agrees, fix
from tests.support.yaml_texts import texts

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

# Texts that were once damaged, misread or not read at all.
KEPT_COMMENTS = """\
- enable_cuda_graph: false  # c
  # about hidden
  hidden: 1
  num_attention_heads: 3
- {
    cuda_graph_scope: full, # the scope
    # about hidden
    hidden: 1 }
"""
EMPTIED = """\
policy:
  megatron_cfg:  # the model
    # a note
    enable_cuda_graph: false
    # another
    cuda_graph_scope: full  # gone
  override_transformer_config: &x
    cuda_graph_scope: full
again: *x
"""
LAST_LINES = "x: 1\nmodel:\n  tp: 1\n  cuda_graph_scope: full\ncuda_graph_scope: full"
JSON_TEXT = """\
{"megatron_cfg": {
  "cuda_graph_impl": "local",
  "cuda_graph_scope": ["full_iteration_inference", "attn"],
  "enable_cuda_graph": false
}, "b": {"cuda_graph_impl":"local","cuda_graph_scope":["attn","full_iteration_inference"]}}
"""
DASHES_IN_COMMENTS = """\
megatron_cfg:
  cuda_graph_impl: local
  cuda_graph_scope:  # parts: some
    - attn
    -  # all - of it
      full_iteration_inference  # inference
    # tail
"""
TAGS_AND_ANCHORS = """\
a: &a
  &k key: !!null
  megatron_cfg: !!map
    &l other: &v
    enable_cuda_graph: !!bool "yes"
    cuda_graph_scope: !<tag:yaml.org,2002:str> attn
b: [*k, *l, *v]
"""


@settings(quick, max_examples=examples(300))
@given(texts())
@example(KEPT_COMMENTS)
@example(EMPTIED)
@example(LAST_LINES)
@example(JSON_TEXT)
@example(DASHES_IN_COMMENTS)
@example(TAGS_AND_ANCHORS)
@example("megatron_cfg: &m {enable_cuda_graph: true, <<: {<<: *m}}\n")
@example("megatron_cfg: &m {enable_cuda_graph: true, b: *m}\n")
@example("a: &a {enable_cuda_graph: true}\nb: &b {cuda_graph_scope: full_iteration}\nmegatron_cfg: {<<: [*a, *b]}\n")
def test_a_text_is_fixed_once_and_nothing_else_in_it(text: str) -> None:
    assert_fixed_well(text)


# --- any text at all --------------------------------------------------------------------------------

FRAGMENTS = st.sampled_from(
    [
        *FIELDS,
        "--cuda-graph-scope",
        "megatron_cfg:",
        "model.cuda_graph_scope: ",
        ": ",
        ":\n  ",
        "\n",
        "\n  ",
        "\r",
        "\u2028",
        "- ",
        "? ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a",
        "<<: ",
        "<<: *a",
        "!!bool ",
        "!x ",
        "! ",
        "# ",
        "'",
        '"',
        "|\n  ",
        ">-\n",
        "true",
        "null",
        "full",
        "full_iteration",
        "local",
        "---\n",
        "...\n",
        "%YAML 1.1\n---\n",
        "\ufeff",
        "😀",
        "${x}",
        "{{ x }}",
        "\t",
    ]
)


@settings(quick, max_examples=examples(1500))
@given(st.lists(st.one_of(FRAGMENTS, FRAGMENTS, FRAGMENTS, st.text(max_size=3)), max_size=25).map("".join))
def test_no_text_raises(text: str) -> None:
    fixed = fix(text)
    assert_idempotent(fixed)
    assert_ruamel_agrees(text, fixed)


@settings(quick, max_examples=examples(150))
@given(st.text())
def test_no_text_without_settings_changes(text: str) -> None:
    assert fix(text).text == text


@settings(quick, max_examples=examples(25))
@given(texts())
def test_the_same_text_gives_the_same_result(text: str) -> None:
    assert fix(text)[0::2] == fix(text)[0::2]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"{CORPUS} is not here")
def test_the_corpus_is_fixed_once_and_nothing_else_in_it() -> None:
    paths = sorted(CORPUS.rglob("*.yaml"))
    changed = 0
    for path in paths:
        text, _ = decode(path.read_bytes())
        if not NAME.search(text):
            continue
        try:
            changed += bool(assert_fixed_well(text).rewrites)
        except AssertionError as error:
            raise AssertionError(f"{path.relative_to(CORPUS)}: {error}") from error
    print(f"{changed} of {len(paths)} files changed")
    assert changed
