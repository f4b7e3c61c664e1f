"""What surrounds a setting, judged by the programs themselves, which are run, and by PyYAML, which loads the files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from textwrap import indent
from typing import Any, ClassVar

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.megatron.settings import Missing, Undecided
from tests.support.nightly import examples

NOT_WRITTEN = "not written"
LOSS = ("checks", "loss")


class Model:
    def __init__(self, cuda_graph_impl: str = "none") -> None:
        self.cuda_graph_impl = cuda_graph_impl


class Checks:
    def __init__(self, loss: object = NOT_WRITTEN) -> None:
        self.loss = loss


class Container:
    made: ClassVar[list[Container]] = []

    def __init__(self, model: Model | None = None, checks: Checks | None = None) -> None:
        self.model, self.checks = model or Model(), checks or Checks()
        self.made.append(self)


def change(thing: object) -> None:
    """What another function may do with any object that it gets."""
    for inner in (thing, getattr(thing, "checks", None)):
        if isinstance(inner, Checks):
            inner.loss = "changed"


@contextmanager
def checks() -> Iterator[Checks]:
    yield Checks("entered")


STATEMENTS = st.sampled_from(
    [
        "cfg.model.cuda_graph_impl = 'SITE'",
        "model.cuda_graph_impl = 'SITE'",
        "if flag:\n    cfg.model.cuda_graph_impl = 'SITE'\n    cfg.checks.loss = False",
        "if flag:\n    cfg.checks.loss = False\nelse:\n    cfg.model.cuda_graph_impl = 'SITE'",
        "for at in range(2):\n    cfg.checks.loss = at\n    cfg.model.cuda_graph_impl = 'SITE'",
        "while flag:\n    cfg.model.cuda_graph_impl = 'SITE'\n    break\n    cfg.checks.loss = 5",
        "cfg.model = Model(cuda_graph_impl='SITE')",
        "cfg = Container(model=Model(cuda_graph_impl='SITE'), checks=Checks(loss=False))",
        "cfg = Container(model=Model(cuda_graph_impl='SITE'))",
        "made = Model(cuda_graph_impl='SITE')\ncfg = Container(model=made, checks=mine)",
        "return Container(model=Model(cuda_graph_impl='SITE'), checks=mine)",
        "mine = Checks(loss=True)",
        "mine.loss = 3",
        "cfg = Container()",
        "model = cfg.model",
        "mine = cfg.checks",
        "other = cfg",
        "other.checks.loss = 4",
        "cfg.checks.loss = True",
        "cfg.checks.loss = False",
        "cfg.checks = Checks(loss=1)",
        "cfg.checks = Checks()",
        "cfg.checks = mine",
        "setattr(cfg.checks, 'loss', 2)",
        "cfg.checks.loss = flag",
        "cfg.checks.loss, cfg.x = 7, 8",
        "change(cfg)",
        "change(cfg.checks)",
        "change(cfg.model)",
        "change(mine)",
        "change([cfg])",
        "items = [cfg]",
        "items[0].checks.loss = 6",
        "if flag:\n    cfg.checks.loss = True",
        "if flag:\n    return cfg",
        "for cfg.checks.loss in (1, 2):\n    pass",
        "with checks() as cfg.checks:\n    pass",
        "try:\n    cfg.checks.loss = nothing\nexcept NameError:\n    cfg.checks.loss = False",
        "def later():\n    cfg.checks.loss = 9",
        "later()",
        "[cfg for cfg in (Container(),)]",
        "print(cfg.checks.loss)",
        "assert cfg.model",
    ]
)


def program_of(statements: list[str]) -> str:
    """A function of statements, each site with a value of its own."""
    numbered = [statement.replace("SITE", f"site {at}") for at, statement in enumerate(statements)]
    return "def recipe(cfg, flag):\n" + indent("\n".join([*numbered, "return cfg"]), "    ") + "\n"


def results_of(program: str) -> list[tuple[str, object]]:
    """The settings of all configurations that a program leaves, for both values of its flag."""
    results: list[tuple[str, object]] = []
    for flag in (True, False):
        Container.made.clear()
        names: dict[str, Any] = {"Model": Model, "Checks": Checks, "Container": Container}
        names |= {"change": change, "checks": checks, "print": lambda *_: None}
        exec(compile(program, "program", "exec"), names)
        # A program that fails leaves no configuration.
        with suppress(NameError, AttributeError):
            names["recipe"](Container(), flag)
            results += [(made.model.cuda_graph_impl, made.checks.loss) for made in Container.made]
    return results


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=7))
@example(["cfg = Container(model=Model(cuda_graph_impl='SITE'), checks=Checks(loss=False))", "change(cfg.model)"])
@example(["mine = Checks(loss=True)", "made = Model(cuda_graph_impl='SITE')\ncfg = Container(model=made, checks=mine)"])
def test_a_value_is_what_the_program_leaves(statements: list[str]) -> None:
    program = program_of(statements)
    document = PythonDocument(program)
    results = results_of(program)
    for site in document.sites:
        value = document.value_beside(site.index, ("model",), LOSS)
        if value is Missing.UNKNOWN or isinstance(value, Undecided):
            continue
        expected = NOT_WRITTEN if value is Missing.ABSENT else value
        left = [loss for impl, loss in results if impl == site.own["cuda_graph_impl"]]
        assert all(type(loss) is type(expected) and loss == expected for loss in left), program


def test_many_values_are_known() -> None:
    known = 0
    for write in ("cfg.checks.loss = False", "cfg.checks = Checks(loss=1)", "setattr(cfg.checks, 'loss', 2)"):
        document = PythonDocument(program_of(["cfg.model.cuda_graph_impl = 'SITE'", write]))
        known += not isinstance(document.value_beside(0, ("model",), LOSS), Missing)
    assert known == 3


SCALARS = st.sampled_from(["true", "false", "5", "0.5", "text", "null", "[1, 2]"])
CHECKS = st.one_of(
    st.builds("checks: {{loss: {}}}".format, SCALARS),
    st.builds("<<: [*one, *two]\n    checks: {{other: {}}}".format, SCALARS),
    st.sampled_from(
        ["checks: {}", "checks:", "other: 1", "<<: *one", "<<: *two", "<<: [*one, *two]", "<<: [*two, *one]"]
    ),
    st.builds("<<: *one\n    checks: {{<<: *inner, other: {}}}".format, SCALARS),
)


def differ(one: str, inner: str, lines: str) -> bool:
    """Whether versions of PyYAML give a configuration other values: the two that it merges have different ones."""
    return one != inner and "[" in lines.split("\n")[0] and "checks:" not in lines


@settings(max_examples=examples(200), deadline=None)
@given(SCALARS, SCALARS, st.lists(CHECKS, min_size=1, max_size=3))
@example("true", "false", ["<<: [*one, *two]"])
@example("true", "true", ["<<: [*two, *one]"])
def test_a_value_is_what_pyyaml_loads(one: str, inner: str, configurations: list[str]) -> None:
    text = f"one: &one {{checks: {{loss: {one}}}}}\ntwo: &two {{a: 1, checks: &inner {{loss: {inner}}}}}\nall:\n"
    for number, lines in enumerate(configurations):
        text += f"  - model: {{cuda_graph_impl: site {number}}}\n    {lines}\n"
    document = YamlDocument(text)
    loaded = yaml.safe_load(text)["all"]
    for site in document.sites:
        if "cuda_graph_impl" not in site.own:
            continue
        configuration = next(one for one in loaded if one["model"]["cuda_graph_impl"] == site.own["cuda_graph_impl"])
        section = configuration.get("checks") or {}
        number = int(str(site.own["cuda_graph_impl"]).split()[1])
        is_known = not differ(one, inner, configurations[number])
        expected = section.get("loss", Missing.ABSENT) if is_known else Missing.UNKNOWN
        value = document.value_beside(site.index, ("model",), LOSS)
        assert value == expected and type(value) is type(expected), text
