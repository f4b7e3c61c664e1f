"""Command lines in JSON files are rewritten as those in YAML are, and every other byte stays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.documents.json.tree import json_roots
from cgmigrate.documents.yaml.tree import Node
from tests.support.files import write

ARRAY = '["--num-layers", "2", {flags}, "--bf16"]'
OLD = '"--cuda-graph-impl", "local", "--cuda-graph-scope", "full"'
CASES = {
    "a list on one line": ('{"args": ' + ARRAY.format(flags=OLD) + "}", {OLD: '"--cuda-graph-impl", "local"'}),
    "a list of several lines": (
        '{\n  "args": [\n    "--external-cuda-graph",\n    "--bf16"\n  ]\n}\n',
        {'"--external-cuda-graph"': '"--cuda-graph-impl",\n    "transformer_engine"'},
    ),
    "the last item": (
        '{\n\t"args": [\n\t\t"--cuda-graph-impl=local",\n\t\t"--cuda-graph-scope=full"\n\t]\n}\n',
        {',\n\t\t"--cuda-graph-scope=full"': ""},
    ),
    "comments and a last comma": (
        '// Visual Studio Code\n{"args": [/* old */ "--external-cuda-graph", "--bf16",],}\n',
        {'"--external-cuda-graph"': '"--cuda-graph-impl", "transformer_engine"'},
    ),
    "a script": (
        '{"command": ["bash", "-c", "torchrun pretrain_gpt.py --external-cuda-graph \\"$X\\" && echo \\"\\t\\""]}',
        {"--external-cuda-graph": "--cuda-graph-impl transformer_engine"},
    ),
    "a command": (
        '{"entrypoint": "python pretrain_gpt.py --enable-cuda-graph", "working_dir": "."}\r\n',
        {"--enable-cuda-graph": "--cuda-graph-impl local"},
    ),
    "two lists of a container": (
        '{"command": ["torchrun", "pretrain_gpt.py"], "args": ["--enable-cuda-graph", "--cuda-graph-scope", "attn"]}',
        {'"--enable-cuda-graph"': '"--cuda-graph-impl", "local"', "scope": "modules"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_line_is_rewritten(project: Path, cgmigrate, name: str) -> None:
    text, changes = CASES[name]
    (project / "job.json").write_bytes(text.encode())
    result = cgmigrate("fix", ".")
    expected = text
    for old, new in changes.items():
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert (project / "job.json").read_bytes().decode() == expected, result.output
    assert cgmigrate("check", ".").exit_code == 0


STAY = {
    "a key": ('{"cuda_graph_scope": "full"}', "names `cuda_graph_scope`"),
    "prose": ('{"text": "write --cuda-graph-scope full"}', "left unchanged"),
    "a list that is no command line": ('{"flags": ["--cuda-graph-scope", "attn"]}', "CG011"),
    "the harness": ('{"args": ["--cuda_graph_scope", "attn,mlp"]}', "left unchanged"),
    "no JSON": ('{"args": ["--enable-cuda-graph", {{ x }}]}', "left unchanged"),
}


@pytest.mark.parametrize("name", STAY)
def test_other_text_stays_and_is_named(project: Path, cgmigrate, name: str) -> None:
    text, reported = STAY[name]
    write("a.json", text)
    assert reported in cgmigrate("check", "-v", ".").output
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "a.json").read_text() == text


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
)


def plain(node: Node, text: str) -> object:
    """The text of each node as Python's own reader reads it, put together by our tree."""
    if node.kind == "seq":
        return [plain(one, text) for one in node.items]
    if node.kind == "map":
        return {json.loads(text[key.start : key.end]): plain(value, text) for key, value in node.pairs()}
    return json.loads(text[node.start : node.end])


@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_the_tree_is_what_json_reads(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (root,) = json_roots(text)
    assert plain(root, text) == json.loads(text)
    with_comments = re.sub(r"(?m)$", " // a [comment}", text) if indent else text + "/* { */"
    (root,) = json_roots(with_comments)
    assert plain(root, with_comments) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1 2}', "[1,,2]", '{"a"}', "[" * 600 + "]" * 600, '"\n"', "/"])
def test_other_text_has_no_tree(text: str) -> None:
    assert json_roots(text) == []


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            '{"args": {"cuda-graph-scope": "full", "external-cuda-graph": true}}',
            ["cuda-graph-scope", "external-cuda-graph"],
        ),
        ('{"args": {"cuda-graph-impl": "local"}, "text": "cuda-graph-scope: full"}', []),
        ('{"args": {"cuda_graph_scope": "full"}}', []),
        ('[{"cuda-graph-scope"\n: ["attn"]}, "cuda-graph-scope"]', ["cuda-graph-scope"]),
    ],
)
def test_keys_that_are_flags_without_dashes_are_reported(project: Path, cgmigrate, text: str, keys: list[str]) -> None:
    (project / "job.json").write_text(text)
    result = cgmigrate("check", "--output-format", "concise", ".")
    named = re.findall(r"`([\w-]+)` is a key of an object", result.stdout)
    assert named == keys
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "job.json").read_text() == text
