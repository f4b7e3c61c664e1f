"""What holds for every YAML text: fixed once is fixed, nothing else is touched, ruamel.yaml agrees, nothing raises.

Texts are drawn from a grammar of the forms in which people write the settings, and taken from the
shared corpus of public configurations where that is at hand.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking.inheritance import components, effective_in
from cgmigrate.linking.ownership import load as load_ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.plan import examine
from cgmigrate.lint.rules import load as load_rules
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import FIELDS, Settings, Undecided
from cgmigrate.text.edits import apply
from cgmigrate.text.encoding import decode
from tests.support.paths import CORPUS

NAME = re.compile("|".join(word for field in FIELDS for word in (field, field.replace("_", "-"))))
BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


class Fixed(NamedTuple):
    """One text, fixed: the result, its sites before, and the settings that the engine decided on."""

    text: str
    before: YamlDocument
    wanted: dict[int, Settings]


@functools.cache
def context() -> Context:
    return Context(LAST_OLD, NEWEST, load_rules(), load_ecosystems())


def fix(text: str) -> Fixed:
    document = YamlDocument(text)
    examined = examine(document, context())
    wanted = {**examined.safe, **examined.unsafe}
    after = apply(text, document.edits(wanted))
    assert document.check(after, wanted) == ""
    return Fixed(after, document, wanted)


# --- the judges -------------------------------------------------------------------------------------


def assert_fixed_well(text: str) -> Fixed:
    fixed = fix(text)
    assert_idempotent(fixed)
    assert_lossless(text, fixed)
    assert_ruamel_agrees(text, fixed)
    return fixed


def assert_idempotent(fixed: Fixed) -> None:
    assert fix(fixed.text).text == fixed.text


def assert_lossless(text: str, fixed: Fixed) -> None:
    """Every line that holds no setting and no comment on one is there, in order, with its line break."""
    if not fixed.wanted:
        assert fixed.text == text
        return
    before = lines_of(text)
    settings_on = lines_with_settings(text, fixed.before)
    kept = [
        line for number, line in enumerate(before) if line[0] and number not in settings_on and not NAME.search(line[0])
    ]
    after = iter(lines_of(fixed.text))
    for content, ending in kept:
        # What becomes the last line takes over whether it has a line break.
        assert any(other == content and {ending, end} in ({ending}, {ending, ""}) for other, end in after), (
            f"{content!r} is missing or changed"
        )


def lines_of(text: str) -> list[tuple[str, str]]:
    """The lines that are not blank, and their line breaks."""
    breaks = list(BREAK.finditer(text))
    starts = [0, *(found.end() for found in breaks)]
    ends = [*(found.start() for found in breaks), len(text)]
    endings = [*(found.group() for found in breaks), ""]
    found = zip(starts, ends, endings, strict=True)
    return [(essential(text[at:end]), ending) for at, end, ending in found if text[at:end].strip()]


def essential(line: str) -> str:
    """A line less what may change beside a setting.

    That is a comma or closing bracket in a flow collection, ``{}`` for an emptied mapping, and what moves up
    behind a dash.
    """
    code, hash_, comment = line.rstrip().partition(" #")
    code = re.sub(r"[\s,{}\[\]]+$", "", code)
    code = re.sub(r"[{\[]\s+|\s+(?=[}\]])", lambda found: found.group().strip(), code)
    return re.sub(r"^[\s\-]+", "", code) + hash_ + comment


def lines_with_settings(text: str, document: YamlDocument) -> set[int]:
    """Numbers, among the lines that are not blank, of those a setting stands on."""
    numbers: list[int] = []
    number, at, starts = -1, 0, [0, *(found.end() for found in BREAK.finditer(text))]
    for at, end in zip(starts, [*starts[1:], len(text)], strict=True):
        number += bool(text[at:end].strip())
        numbers.append(number)
    spans = [written.span for site in document.sites for written in site.written]
    return {
        numbers[line]
        for span in spans
        for line, at in enumerate(starts)
        if at < span.end and (starts[line + 1] if line + 1 < len(starts) else len(text) + 1) > span.start
    }


def ruamel(text: str) -> list[Any]:
    loader = YAML(typ="safe", pure=True)
    loader.allow_duplicate_keys = True
    return list(loader.load_all(text))


def without_settings(data: Any, above: tuple[int, ...] = ()) -> Any:
    """Loaded data less the settings; where it contains itself, how many levels up."""
    if isinstance(data, (dict, list)) and id(data) in above:
        return f"<{len(above) - above.index(id(data))} levels up>"
    above = (*above, id(data))
    match data:
        case dict():
            return {
                key: without_settings(value, above)
                for key, value in data.items()
                if not (isinstance(key, str) and is_setting(key))
            }
        case list():
            return [without_settings(item, above) for item in data]
    return data


def is_setting(key: str) -> bool:
    return key.rpartition(".")[2] in FIELDS or (key.startswith("--") and key[2:].replace("-", "_") in FIELDS)


def assert_ruamel_agrees(text: str, fixed: Fixed) -> None:
    try:
        before = ruamel(text)
    except Exception:
        return  # not for ruamel.yaml, which raises all sorts: custom tags, wrong merges, `!!bool` of nothing
    after = ruamel(fixed.text)
    assert repr(without_settings(before)) == repr(without_settings(after))
    settled: dict[int, Settings] = {}
    for component in components(fixed.before.sites):
        settled |= effective_in(fixed.before.sites, component, fixed.wanted)
    for site in fixed.before.sites:
        mapping = at_path(after, site.path) if len(after) == 1 and site.path else None
        decided = settled[site.index]
        if mapping is None or site.blocked_by or any(isinstance(value, Undecided) for value in decided.values()):
            continue
        assert settings_in(mapping) == decided


def at_path(documents: list[Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    data = documents[0]
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return None
        data = data[name]
    return data if isinstance(data, dict) else None


def settings_in(mapping: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in mapping.items():
        name = str(key).lstrip("-").replace("-", "_") if str(key).startswith("--") else str(key)
        if name in FIELDS:
            boolean = name in FIELDS[:2]
            flag = str(key).startswith("--")
            # ruamel.yaml reads YAML 1.2, where `yes` and `no` are words.
            value = {"yes": True, "on": True, "no": False, "off": False}.get(str(value).lower(), value)
            found[name] = (flag if value is None else bool(value)) if boolean else value
    return found


# --- the grammar ------------------------------------------------------------------------------------

TRUTHS = st.sampled_from(["true", "false", "True", "FALSE", "yes", "No", "on", "off", "1", "0", "", "~", "!!bool true"])
IMPLEMENTATIONS = st.sampled_from(["local", "none", "transformer_engine", '"local"', "'none'", "full_iteration"])
NAMES = st.sampled_from(["attn", "mlp", "moe_router", "full", "full_iteration", "full_iteration_inference"])
NEUTRAL = st.sampled_from(["# note", "# größer 😀", "#", "# a, b: [c]"])
ABOUT = st.sampled_from(["# enable_cuda_graph: because", "# cuda_graph_scope, see the guide", "# cuda-graph-impl"])
ODD_PAIRS = st.sampled_from(
    [
        ["lr: 1.0e-4"],
        ["name: 'größer 😀'  # a name"],
        ["text: |", "  # no comment", "", "  x: y"],
        ["folded: >-", "    one", "    two"],
        ['quoted: "two', '  lines"'],
        ["list:", "- 1", "# between", "- 2  # two"],
        ["list:", "  - [1, 2]", "  - {a: 1}"],
        ["sub:", "    deep: {x: [y, {z: 1}]}"],
        ["empty:"],
        ["interpolated: ${oc.env:HOME}"],
        ["? complex", ": value"],
        ["!tag tagged: !tag value"],
    ]
)


@st.composite
def scope_values(draw: st.DrawFn) -> str:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    form = draw(st.sampled_from(["plain", "quoted", "flow", "bracket", "spaces", "null"]))
    match form:
        case "plain":
            return names[0]
        case "quoted":
            return f'"{",".join(names)}"'
        case "flow":
            return "[" + ", ".join(names) + "]"
        case "bracket":
            return "'[" + " ".join(names) + "]'"
        case "spaces":
            return '"' + " ".join(names) + '"'
    return "null"


@st.composite
def setting_pairs(draw: st.DrawFn) -> list[tuple[str, str]]:
    choices = {
        "enable_cuda_graph": TRUTHS,
        "external_cuda_graph": TRUTHS,
        "cuda_graph_impl": IMPLEMENTATIONS,
        "cuda_graph_scope": scope_values(),
        "cuda_graph_modules": scope_values(),
    }
    names = draw(st.lists(st.sampled_from([*choices, "cuda_graph_scope"]), min_size=1, max_size=3, unique=True))
    return [(name, draw(choices[name])) for name in names]


def spelled(name: str, style: str) -> str:
    match style:
        case "flag":
            return "--" + name.replace("_", "-")
        case "single":
            return f"'{name}'"
        case "double":
            return f'"{name}"'
    return name


@st.composite
def block_lines(draw: st.DrawFn) -> list[str]:
    """The pairs of a block mapping, one of them or more a setting."""
    style = draw(st.sampled_from(["plain", "plain", "flag", "single", "double"]))
    groups: list[list[str]] = []
    for name, value in draw(setting_pairs()):
        key = spelled(name, style)
        before = draw(st.lists(st.one_of(NEUTRAL, ABOUT), max_size=1))
        behind = draw(st.sampled_from(["", "", "  # why", "\t# tab", " "]))
        if value.startswith("[") and draw(st.booleans()):
            indent = draw(st.sampled_from(["", "  ", "   "]))
            items = [f"{indent}- {item}" for item in value[1:-1].split(", ")]
            if draw(st.booleans()):
                items.insert(1, draw(NEUTRAL))
            groups.append([*before, f"{key}:{behind}", *items])
        elif value and draw(st.integers(0, 7)) == 0:
            groups.append([*before, f"{key}:{behind}", f"    {value}"])
        else:
            groups.append([*before, f"{key}: {value}{behind}".rstrip("\0")])
    pairs = draw(st.lists(ODD_PAIRS, max_size=2, unique_by=lambda lines: lines[0].split(":")[0]))
    groups += [draw(st.lists(NEUTRAL, max_size=1)) + lines for lines in pairs]
    groups += draw(st.lists(st.just([""]), max_size=2))
    order = draw(st.permutations(groups))
    return [line for group in order for line in group]


@st.composite
def flow_lines(draw: st.DrawFn) -> list[str]:
    """A flow mapping, on one line or on several, as JSON or not."""
    json = draw(st.booleans())
    parts: list[str] = []
    for name, value in draw(setting_pairs()):
        if json:
            value = value if value.lower() in ("true", "false", "null") or value[:1] in "[\"1'" else f'"{value}"'
            parts.append(f'"{name}":{draw(st.sampled_from(["", " "]))}{value}')
        else:
            parts.append(f"{name}: {value}".rstrip())
    parts += draw(st.lists(st.sampled_from(['"x": 1', '"y": "a, b"', '"z": [1, {"w": 2}]']), max_size=2, unique=True))
    parts = draw(st.permutations(parts))
    comma = draw(st.sampled_from(["", "", ","]))
    match draw(st.sampled_from(["one", "spaced", "lines", "ragged"])):
        case "one":
            return ["{" + ", ".join(parts) + comma + "}"]
        case "spaced":
            return ["{ " + ", ".join(parts) + " }"]
        case "ragged":
            return ["{" + parts[0] + ("," if parts[1:] else ""), "   " + ", ".join(parts[1:]) + "}"]
    lines = ["{"]
    for at, part in enumerate(parts):
        lines += draw(
            st.lists(st.one_of(NEUTRAL, ABOUT), max_size=1).map(lambda found: ["  " + line for line in found])
        )
        last = at == len(parts) - 1
        lines.append("  " + part + (comma if last else ",") + draw(st.sampled_from(["", "", "  # why"])))
    return [*lines, "}"]


@st.composite
def sections(draw: st.DrawFn, number: int) -> list[str]:
    """One site in a top-level key of its own."""
    owner = draw(st.sampled_from(["megatron_cfg", "MODEL_ARGS", "override_transformer_config"]))
    name = f"section_{number}"
    indent = " " * draw(st.integers(1, 4))
    anchor = draw(st.sampled_from(["", "", f" &a{number}"]))
    behind = draw(st.sampled_from(["", "", "  # a section"]))
    form = draw(st.sampled_from(["block", "block", "flow", "list", "dotted"]))
    if form == "block":
        body = [indent + line if line else "" for line in draw(block_lines())]
        return [f"{name}:", f"{indent}{owner}:{anchor}{behind}", *(indent + line for line in body)]
    if form == "flow":
        first, *rest = draw(flow_lines())
        return [f"{name}:", f"{indent}{owner}:{anchor} {first}", *(indent * 2 + line for line in rest)]
    if form == "list":
        lines = draw(block_lines())
        dash = draw(st.sampled_from(["- ", "-   ", "- - "]))
        while lines and (not lines[0] or lines[0].startswith(("#", "!", "?"))):
            lines = lines[1:]
        # A list item needs a pair on its first line.
        if not lines or (lines[0].startswith((":", " ", "-")) and not lines[0].startswith("--")):
            lines = ["x: 1"]
        pad = " " * len(dash)
        return [
            f"{name}:",
            f"{indent}{dash}{lines[0]}",
            *(f"{indent}{pad}{line}" if line else "" for line in lines[1:]),
        ]
    return [f"{name}_{number}.{owner}.{key}: {value}" for key, value in draw(setting_pairs())]


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = draw(st.lists(NEUTRAL, max_size=1))
    if draw(st.integers(0, 5)) == 0:
        lines.insert(0, "---")
    for number in range(draw(st.integers(1, 3))):
        lines += draw(sections(number)) + draw(st.lists(st.sampled_from(["", "# between"]), max_size=2))
    anchors = re.findall(r"&(a\d)", "\n".join(lines))
    if anchors and draw(st.booleans()):
        merge = draw(st.sampled_from([f"*{anchors[0]}", "[" + ", ".join("*" + anchor for anchor in anchors) + "]"]))
        lines += ["child:", "  megatron_cfg:", f"    <<: {merge}"]
        lines += [f"    {key}: {value}" for key, value in draw(st.one_of(st.just([]), setting_pairs()))]
        lines += ["    y: 2"]
    if anchors and draw(st.booleans()):
        lines += [f"again: {{megatron_cfg: *{anchors[0]}}}"]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return newline.join(lines) + draw(st.sampled_from([newline, newline, "", newline * 2]))


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


@settings(quick, max_examples=300)
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


@settings(quick, max_examples=1500)
@given(st.lists(st.one_of(FRAGMENTS, FRAGMENTS, FRAGMENTS, st.text(max_size=3)), max_size=25).map("".join))
def test_no_text_raises(text: str) -> None:
    fixed = fix(text)
    assert_idempotent(fixed)
    assert_ruamel_agrees(text, fixed)


@settings(quick, max_examples=150)
@given(st.text())
def test_no_text_without_settings_changes(text: str) -> None:
    assert fix(text).text == text


@settings(quick, max_examples=25)
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
            changed += bool(assert_fixed_well(text).wanted)
        except AssertionError as error:
            raise AssertionError(f"{path.relative_to(CORPUS)}: {error}") from error
    print(f"{changed} of {len(paths)} files changed")
    assert changed
