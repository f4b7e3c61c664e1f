"""A grammar of YAML texts: the forms in which people write the settings, as hypothesis draws them."""

from __future__ import annotations

import re

from hypothesis import strategies as st

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
            st.lists(st.one_of(NEUTRAL, ABOUT), max_size=1).map(lambda extra: ["  " + line for line in extra])
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
