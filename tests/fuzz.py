"""Generated projects through the whole program: `python tests/fuzz.py --minutes N [--seed S]`.

YAML and Python files are drawn from the forms in which people write the settings, with every output format, with
`--add-ignore`, with `fix` and `fix --unsafe-fixes`, and with `defaults:`. Others judge the result: PyYAML and
ruamel.yaml read what was written, libcst compares the trees, and Python files are executed before and after with
classes that record what they get. The captures before and after must be equal wherever a fix is said to be safe.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import itertools
import os
import re
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import cgmigrate.lint.rules
from cgmigrate.cli.commands import main as command
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.lint.examination import settings_of
from cgmigrate.megatron.settings import FIELDS, FLAGS, IMPL, INFERENCE
from cgmigrate.megatron.types import Reader
from cgmigrate.project.options import FORMATS

# As a script, the tests are not on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.yaml_judges import (
    Fixed,
    WrongEditError,
    assert_lossless,
    context,
    essential,
    ruamel,
    same_capture,
    without_settings,
)
from tests.support.yaml_texts import texts

ENUMS = ("CudaGraphScope", "CudaGraphModule")
NAME = re.compile(r"cuda.graph|CudaGraph", re.IGNORECASE)
BATCH = 20
"""Files of one project; a run of the program over all of them costs little more than over one."""


# --- Python files -----------------------------------------------------------------------------------

SCOPES = ["attn", "mlp", "moe_router", "full", "full_iteration", "full_iteration_inference"]
CONDITIONS = st.sampled_from(["x", "y", "not x", "x and y"])
OTHER = st.sampled_from(["num_layers=2", "hidden_size=8", "**other", "name='größer 😀'", "sizes=[1, (2, 3)]"])
BETWEEN = st.sampled_from(
    [
        "# a note",
        "",
        "z = 1  # größer",
        "z = (1,\n     2)",
        "'''cuda_graph_scope in a text'''",
        "z = f'{x}: {y}'",
        "pass",
    ]
)


@st.composite
def truths(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["True", "True", "False", "x", f"True if {draw(CONDITIONS)} else False"]))


@st.composite
def scopes(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(SCOPES), max_size=2, unique=True))
    match draw(st.sampled_from(["enum", "enum", "strings", "string", "none", "lines", "chosen", "item"])):
        case "strings":
            return "[" + ", ".join(f'"{name}"' for name in names) + "]"
        case "string":
            return f"'{names[0]}'" if names else "None"
        case "none":
            return "None"
        case "lines":
            return "[\n" + "".join(f"        CudaGraphScope.{name},\n" for name in names) + "    ]"
        case "chosen":
            return f"[CudaGraphScope.attn] if {draw(CONDITIONS)} else [CudaGraphScope.mlp]"
        case "item":
            return f"[CudaGraphScope.attn if {draw(CONDITIONS)} else CudaGraphScope.mlp]"
    return "[" + ", ".join(f"CudaGraphScope.{name}" for name in names) + "]"


@st.composite
def python_settings(draw: st.DrawFn) -> list[tuple[str, str]]:
    values = {
        "enable_cuda_graph": truths(),
        "external_cuda_graph": truths(),
        "cuda_graph_impl": st.sampled_from(['"local"', "'none'", '"transformer_engine"', "'local' if x else 'none'"]),
        "cuda_graph_scope": scopes(),
    }
    names = draw(st.lists(st.sampled_from([*values, "cuda_graph_scope"]), min_size=1, max_size=3, unique=True))
    return [(name, draw(values[name])) for name in names]


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    pairs = [f"{name}={value}" for name, value in draw(python_settings())]
    parts = draw(st.permutations([*pairs, *draw(st.lists(OTHER, max_size=2, unique=True))]))
    if draw(st.booleans()):
        return ["config = TransformerConfig(" + ", ".join(parts) + draw(st.sampled_from(["", ","])) + ")"]
    ends = [draw(st.sampled_from([",", ",", ",  # why"])) for _ in parts]
    return ["config = TransformerConfig(", *(f"    {part}{end}" for part, end in zip(parts, ends, strict=True)), ")"]


@st.composite
def dicts(draw: st.DrawFn) -> list[str]:
    parts = [f'"{name}": {value}' for name, value in draw(python_settings())]
    parts = draw(st.permutations([*parts, *draw(st.lists(st.just('"hidden_size": 8'), max_size=1))]))
    if draw(st.booleans()):
        return ["config = TransformerConfig(**{" + ", ".join(parts) + "})"]
    return ["config = TransformerConfig(", "    **{", *(f"        {part}," for part in parts), "    }", ")"]


@st.composite
def runs(draw: st.DrawFn) -> list[str]:
    lines = ["cfg = pretrain_config()"]
    for name, value in draw(python_settings()):
        lines += draw(st.lists(BETWEEN, max_size=1))
        line = f"cfg.model.{name} = {value}" + ("" if "\n" in value else draw(st.sampled_from(["", "", "  # why"])))
        if draw(st.integers(0, 4)) == 0:
            # A value of several lines keeps its columns: only what begins a line is indented.
            lines += [f"if {draw(CONDITIONS)}:", "    " + line]
            lines += draw(st.sampled_from([[], ["else:", "    pass"]]))
        else:
            lines.append(line)
    return lines


@st.composite
def words(draw: st.DrawFn) -> list[str]:
    parts = []
    for name, _ in draw(python_settings()):
        value = {"cuda_graph_impl": "local", "cuda_graph_scope": draw(st.sampled_from(SCOPES))}.get(name)
        parts += [f'"{FLAGS[name]}"'] + ([f'"{value}"'] if value else [])
    parts = draw(st.sampled_from([["'--num-layers', '2'"], []])) + parts
    return [f"run([{', '.join(parts)}])"]


def indented(lines: list[str], by: str = "    ") -> list[str]:
    return ["\n".join(by + part if part else "" for part in line.split("\n")) for line in lines]


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        lines += draw(st.lists(BETWEEN, max_size=1))
        form = draw(st.sampled_from(["plain", "plain", "plain", "if", "for", "with", "try"]))
        if form == "plain" or depth:
            lines += draw(st.one_of(calls(), dicts(), runs(), runs(), words()))
            continue
        body = indented(draw(blocks(depth=1)))
        match form:
            case "if":
                lines += [f"if {draw(CONDITIONS)}:", *body, "else:", *indented(draw(blocks(depth=1)))]
            case "for":
                lines += ["for _ in (1, 2):", *body]
            case "with":
                lines += ["with nothing():", *body]
            case "try":
                lines += ["try:", *body, "finally:", "    z = 2"]
    return lines


@st.composite
def python_files(draw: st.DrawFn) -> str:
    enums = "megatron.core.transformer.enums"
    lines = draw(st.sampled_from([[], ['"""What enable_cuda_graph does."""']]))
    lines += [
        "from megatron.core.transformer import TransformerConfig",
        draw(
            st.sampled_from(
                [
                    f"from {enums} import CudaGraphScope",
                    f"from {enums} import AttnMaskType, CudaGraphScope",
                    f"from {enums} import (\n    AttnMaskType,\n    CudaGraphScope,  # graphs\n)",
                ]
            )
        ),
        "from megatron.bridge.recipes.llama import pretrain_config",
        "",
    ]
    body = draw(blocks())
    if draw(st.booleans()):
        body = ["def build():", *indented(body), "", "build()"]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return newline.join("\n".join([*lines, *body]).split("\n")) + draw(st.sampled_from([newline, ""]))


# --- YAML files with `defaults:` ----------------------------------------------------------------------


@st.composite
def yaml_files(draw: st.DrawFn) -> str:
    text = draw(texts())
    if draw(st.integers(0, 3)) == 0 and "---" not in text:
        newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text else "\n"
        text = draw(st.sampled_from(["defaults: base", "defaults: [file0, _self_]"])) + newline + text
    if draw(st.integers(0, 5)) == 0 and "&a0" in text and "child:" not in text:
        newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text else "\n"
        text += newline + newline.join(["heir:", "  megatron_cfg:", "    <<: *a0", ""])
    return text


@st.composite
def shuffled(draw: st.DrawFn) -> str:
    """A file in which something is wrong: pieces of one, in any order."""
    lines = draw(st.one_of(yaml_files(), python_files())).splitlines(keepends=True)
    return "".join(draw(st.permutations(lines))[: draw(st.integers(1, 12))])


# --- the judges ---------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Reads tags that it does not know as what they are written on."""


def _plain(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value  # type: ignore[arg-type]


_Loader.add_multi_constructor("!", _plain)


def yaml_settings(text: str) -> dict[tuple[str, ...], dict[str, object]] | None:
    """The settings at each path, merge keys included, as PyYAML reads them; None where it cannot."""
    settings_at: dict[tuple[str, ...], dict[str, object]] = {}

    def visit(data: object, path: tuple[str, ...]) -> None:
        if len(path) > 30:
            return
        for key, value in data.items() if isinstance(data, dict) else ():
            name, flag = str(key), str(key).startswith("--")
            prefix, _, last = name.rpartition(".")
            last = name[2:].replace("-", "_") if flag else last
            if last in FIELDS:
                boolean = last in FIELDS[:2]
                inner = (*path, *filter(None, prefix.split(".")))
                settings_at.setdefault(inner, {})[last] = (flag if value is None else value) if boolean else value
            visit(value, (*path, name))

    try:
        visit(yaml.load(text, _Loader), ())
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        return None
    return settings_at


def judge_yaml(before: str, after: str, safe: bool) -> None:
    """Refuse a rewrite of a YAML file that says something else than before."""
    document = YamlDocument(before)
    assert_lossless(before, Fixed(after, document, {0: {}}))
    try:
        values = repr(without_settings(ruamel(before)))
    except Exception:  # ruamel.yaml refuses some files that PyYAML reads, with all sorts of errors
        values = ""
    if values and values != repr(without_settings(ruamel(after))):
        raise WrongEditError("ruamel.yaml reads other values")
    was, now = yaml_settings(before), yaml_settings(after)
    if was is None:
        return
    if now is None:
        raise WrongEditError("it can no longer be read")
    readers = {document.sites[index].path: reader for index, (reader, _) in settings_of(document, context()).items()}
    for path in was if safe else ():
        if path in readers:
            same_capture(was[path], now.get(path, {}), readers[path], "/".join(path))


class _Names(type):
    def __getattr__(cls, name: str) -> str:
        return name


class _Enum(metaclass=_Names):
    """An enum any name of which exists; it is its own value."""


class _Recorder:
    def __init__(self, **arguments: object) -> None:
        self.__dict__.update(arguments)


def executed(text: str, x: bool, y: bool) -> list[tuple[Reader, dict[str, object]]]:
    """What the configurations of a Python file hold when it was executed, in the order of their making."""
    made: list[tuple[Reader, dict[str, object]]] = []

    def transformer_config(**arguments: object) -> _Recorder:
        config = _Recorder(**arguments)
        made.append((Reader.CONFIG, config.__dict__))
        return config

    def pretrain_config() -> _Recorder:
        model = _Recorder()
        made.append((Reader.BRIDGE, model.__dict__))
        return _Recorder(model=model)

    def run(arguments: list[str]) -> None:
        made.append((Reader.COMMAND_LINE, flags(arguments)))

    names = dict.fromkeys((*ENUMS, "AttnMaskType"), _Enum)
    modules = {
        "megatron.core.transformer": {"TransformerConfig": transformer_config},
        "megatron.core.transformer.enums": names,
        "megatron.bridge.recipes.llama": {"pretrain_config": pretrain_config},
    }
    scope: dict[str, object] = {"x": x, "y": y, "other": {}, "run": run, "nothing": contextlib.nullcontext}
    with stubbed(modules):
        exec(compile(text, "fuzz", "exec"), scope)
    return made


@contextlib.contextmanager
def stubbed(modules: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Modules that an import gets instead of the installed ones."""
    whole = {".".join(name.split(".")[:end]) for name in modules for end in range(1, name.count(".") + 2)}
    kept = {name: sys.modules.get(name) for name in whole}
    for name in whole:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(modules.get(name, {}))
    try:
        yield
    finally:
        for name, module in kept.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def flags(arguments: list[str]) -> dict[str, object]:
    """Words of a command line as settings and others."""
    options: dict[str, Any] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            options[name] = True if name in FIELDS[:2] else []
        elif isinstance(options.get(name), list):
            options[name].append(word)
    if len(options.get(IMPL, [])) == 1:
        options[IMPL] = options[IMPL][0]
    if len(options.get(INFERENCE, [])) == 1:
        options[INFERENCE] = options[INFERENCE][0]
    return options


def judge_python(before: str, after: str, safe: bool) -> None:
    """Refuse a rewrite of a Python file that does something else, or has lost something, than before."""
    for x, y in itertools.product((True, False), repeat=2):
        try:
            was = executed(before, x, y)
        except Exception:
            break  # a file of shuffled lines
        now = executed(after, x, y)
        if [reader for reader, _ in was] != [reader for reader, _ in now]:
            raise WrongEditError("another number of configurations")
        for (reader, one), (_, other) in zip(was, now, strict=True):
            if rest(one) != rest(other):
                raise WrongEditError(f"other values: {rest(one)}, now {rest(other)}")
            if safe:
                same_capture(only_settings(one), only_settings(other), reader, f"with x={x}, y={y}")
    judge_lines(before, after)
    if shape(before) != shape(after):
        raise WrongEditError("libcst reads another tree")


def rest(attributes: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in attributes.items() if name not in FIELDS}


def only_settings(attributes: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in attributes.items() if name in FIELDS}


def judge_lines(before: str, after: str) -> None:
    """Refuse a text that lacks a line on which no setting is written."""
    left = iter([essential(line).rstrip(")]},") for line in after.splitlines()])
    for line in before.splitlines():
        kept = essential(line).rstrip(")]},")
        if line.lstrip()[:1] in tuple(")]}"):
            continue  # the end of a value of several lines, which may be a setting's; libcst sees what is behind it
        if kept and kept != "pass" and not NAME.search(line) and all(kept != other for other in left):
            raise WrongEditError(f"{line!r} is missing or changed")


class _Rest(cst.CSTTransformer):
    """A tree less the settings, the imports of their classes, `pass`, and empty lines between statements."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        kept = [arg for arg in updated_node.args if not (arg.keyword and arg.keyword.value in FIELDS)]
        plain = cst.SimpleWhitespace("")
        kept = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=plain) for arg in kept]
        return updated_node.with_changes(args=kept, whitespace_before_args=plain)

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.BaseExpression:
        kept = [
            element.with_changes(comma=cst.MaybeSentinel.DEFAULT)
            for element in updated_node.elements
            if not (isinstance(element, cst.DictElement) and _text(element.key) in FIELDS)
        ]
        return updated_node.with_changes(elements=kept, lbrace=cst.LeftCurlyBrace(), rbrace=cst.RightCurlyBrace())

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.BaseExpression:
        words = (*FLAGS.values(), *SCOPES, "none", "local", "transformer_engine", "layer", "block")
        kept = [
            element.with_changes(comma=cst.MaybeSentinel.DEFAULT)
            for element in updated_node.elements
            if _text(element.value) not in words
        ]
        return updated_node.with_changes(
            elements=kept, lbracket=cst.LeftSquareBracket(), rbracket=cst.RightSquareBracket()
        )

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> Any:
        assert not isinstance(updated_node.names, cst.ImportStar)
        kept = [alias for alias in updated_node.names if alias.evaluated_name not in ENUMS]
        if not kept:
            return cst.RemoveFromParent()
        kept = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in kept]
        return updated_node.with_changes(names=kept, lpar=None, rpar=None)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> Any:
        target = updated_node.targets[0].target
        setting = isinstance(target, cst.Attribute) and target.attr.value in FIELDS
        return cst.RemoveFromParent() if setting else updated_node

    def leave_Pass(self, original_node: cst.Pass, updated_node: cst.Pass) -> Any:
        return cst.RemoveFromParent()

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        return updated_node.with_changes(leading_lines=[]) if updated_node.body else cst.RemoveFromParent()


def _text(node: cst.BaseExpression) -> str:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else ""


def shape(text: str) -> str:
    """Return the code of a file without its settings, as libcst writes it; empty if libcst cannot read the file."""
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return ""
    code = module.visit(_Rest()).code
    return "\n".join(line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#"))


# --- projects -----------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What came of the cases so far."""

    cases: int = 0
    rewritten: int = 0
    tracebacks: int = 0
    wrong: int = 0
    again: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return self.tracebacks + self.wrong + self.again

    def note(self, kind: str, why: str, text: str, after: str = "") -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.shown) < 20:
            behind = f"\n--- after\n{after}" if after else ""
            self.shown.append(f"=== {kind}: {why}\n{text}{behind}\n")

    def __str__(self) -> str:
        return (
            f"cases {self.cases:,}, rewritten {self.rewritten:,}, tracebacks {self.tracebacks}, "
            f"wrong edits {self.wrong}, not idempotent {self.again}"
        )


def ran(*words: str) -> tuple[str, str]:
    """Run the program on the working directory: what was raised (empty when nothing) and stderr."""
    result = CliRunner().invoke(command, list(words))
    raised = "" if result.exception is None or isinstance(result.exception, SystemExit) else repr(result.exception)
    return raised, result.stderr


def internal(stderr: str) -> dict[str, str]:
    """The files that an internal error concerns, each with the line that says so; under "" what concerns no file."""
    errors = {}
    for line in stderr.splitlines():
        if "internal error" in line or "please report" in line:
            path = re.match(r"(?:error|note): (file\d+\.\w+): ", line)
            errors[path.group(1) if path else ""] = line
    return errors


def project(files: dict[str, str], number: int, tally: Tally) -> None:
    """One project through the program, in every way in which it is used."""
    unsafe = ["--unsafe-fixes"] if number % 3 == 0 else []
    for words in (
        *(["check", "--format", format, "."] for format in FORMATS),
        ["check", "--statistics", "."],
        ["fix", "--diff", *unsafe, "."],
    ):
        run_and_note_errors(words, files, tally)
    once, fixed = written(["fix", "--format", FORMATS[number % len(FORMATS)], *unsafe, "."], files, tally)
    for name in fixed:
        judge(files[name], once[name], name, not unsafe, tally)
    tally.cases, tally.rewritten = tally.cases + len(files), tally.rewritten + len(fixed)
    twice, more = written(["fix", *unsafe, "."], once, tally)
    for name in more:
        tally.note("again", name, once[name], twice[name])
    commented, changed = written(["check", "--add-ignore", "--reason", "why not", "."], files, tally)
    for name in changed:
        judge_comments(files[name], commented[name], name, tally)


def run_and_note_errors(words: list[str], files: dict[str, str], tally: Tally) -> None:
    """Run the program, and note tracebacks and internal errors."""
    raised, stderr = ran(*words)
    if raised:
        tally.note("tracebacks", f"{words}: {raised}", "\n\n".join(files.values()))
    for name, line in internal(stderr).items():
        tally.note("tracebacks", f"{words}: {line}", files.get(name, ""))


def written(words: list[str], files: dict[str, str], tally: Tally) -> tuple[dict[str, str], list[str]]:
    """Run the program on files; what they hold then, and the names of those that changed."""
    for name, text in files.items():
        Path(name).write_bytes(text.encode())
    run_and_note_errors(words, files, tally)
    now = {name: Path(name).read_bytes().decode() for name in files}
    return now, [name for name in files if now[name] != files[name]]


def judge(before: str, after: str, name: str, safe: bool, tally: Tally) -> None:
    try:
        (judge_python if name.endswith(".py") else judge_yaml)(before, after, safe)
    except Exception as error:
        tally.note("wrong", f"{'fix' if safe else 'fix --unsafe-fixes'}: {error!r}", before, after)


def judge_comments(before: str, after: str, name: str, tally: Tally) -> None:
    """Refuse comments that change what is read."""
    try:
        if name.endswith(".py"):
            fine = ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
        else:
            fine = events(before) == events(after)
    except (SyntaxError, yaml.YAMLError, ValueError):
        fine = False
    if not fine or "cgmigrate: ignore" not in after:
        tally.note("wrong", "--add-ignore changes what is read", before, after)


def events(text: str) -> list[str]:
    return list(map(repr, yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))))


def drawn(strategy: st.SearchStrategy[str], count: int, number: int) -> list[str]:
    """Some texts of a strategy; the same number gives the same texts."""
    texts_drawn: list[str] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(text: str) -> None:
        texts_drawn.append(text)

    draw()
    return texts_drawn[:count]


def utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextlib.contextmanager
def rules_read_once() -> Iterator[None]:
    """Rules read once for all runs: reading them takes longer than checking a small project."""
    load = cgmigrate.lint.rules.load
    cgmigrate.lint.rules.load = functools.cache(load)
    try:
        yield
    finally:
        cgmigrate.lint.rules.load = load


def fuzz(until: Callable[[Tally], bool], first: int = 0) -> Tally:
    """Make projects and run them until it is time."""
    tally = Tally()
    start = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, rules_read_once():
        os.environ.setdefault("CGMIGRATE_CACHE_DIR", os.path.join(folder, "cache"))
        for number in itertools.count(first):
            if until(tally):
                break
            place = Path(folder, f"project-{number}")
            (place / ".git").mkdir(parents=True)
            os.chdir(place)
            try:
                parts = [drawn(yaml_files(), BATCH // 2, number), drawn(python_files(), BATCH // 2, number)]
                parts.append(drawn(shuffled(), BATCH // 5, number))
                named = [(text, ".py" if index == 1 else ".yaml") for index, some in enumerate(parts) for text in some]
                named += [(text, ".py") for text in parts[2]]
                files = {f"file{at}{suffix}": text for at, (text, suffix) in enumerate(named) if utf8(text)}
                for name, text in files.items():
                    Path(name).write_bytes(text.encode())
                project(files, number, tally)
            finally:
                os.chdir(start)
    return tally


def main() -> int:
    """Run for some minutes and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    tally = fuzz(lambda tally: time.monotonic() > end, options.seed * 1_000_000)
    print("\n".join(tally.shown))
    kinds = Counter(line.split(":", 1)[0] for line in tally.shown)
    print(f"seed {options.seed}: {tally}" + (f"; shown: {dict(kinds)}" if kinds else ""))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
