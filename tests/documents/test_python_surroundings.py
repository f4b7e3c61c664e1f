"""What surrounds a setting in code: the same call or object, and the rest of its configuration."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.megatron.settings import Missing, Undecided

LOSS = ("rerun_state_machine", "check_for_nan_in_loss")
SET = "cfg.rerun_state_machine.check_for_nan_in_loss = False"
HEAD = """
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer, DistributedDataParallelConfig, RerunStateMachineConfig
from megatron.core.transformer import TransformerConfig

"""


def beside(code: str, keys: tuple[str, ...] = LOSS, section: tuple[str, ...] = ("model",), site: int = 0) -> object:
    """The value that surrounds a site in the body of a function."""
    body = indent(dedent(code).strip("\n"), "    ")
    document = PythonDocument(f"{HEAD}def recipe(parameter, flag):\n{body}\n")
    return document.value_beside(site, section, keys)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("TransformerConfig(cuda_graph_impl='local', check=False)", False),
        ("TransformerConfig(cuda_graph_impl='local', check=-1.5)", -1.5),
        ("TransformerConfig(cuda_graph_impl='local', check=['a', 'b'])", ["a", "b"]),
        ("TransformerConfig(cuda_graph_impl='local', check=flag)", Undecided),
        ("TransformerConfig(cuda_graph_impl='local')", Missing.ABSENT),
        ("TransformerConfig(parameter, cuda_graph_impl='local')", Missing.UNKNOWN),
        ("TransformerConfig(cuda_graph_impl='local', **parameter)", Missing.UNKNOWN),
        ("TransformerConfig(cuda_graph_impl='local', check=False, **parameter)", False),
        ("make_config(cuda_graph_impl='local')", Missing.UNKNOWN),
        ("change(TransformerConfig(cuda_graph_impl='local', check=False))", Missing.UNKNOWN),
        ("GPTModel(TransformerConfig(cuda_graph_impl='local', check=False))", False),
        ("c = TransformerConfig(cuda_graph_impl='local')\nc.check = False", False),
        ("c = TransformerConfig(cuda_graph_impl='local', check=True)\nc.check = False", False),
        ("c = TransformerConfig(cuda_graph_impl='local')\nchange(c)", Missing.UNKNOWN),
        ("c = TransformerConfig(cuda_graph_impl='local')\nif flag:\n    c.check = False", Missing.UNKNOWN),
        ("{'cuda_graph_impl': 'local', 'check': False}", False),
        ("{'cuda_graph_impl': 'local'}", Missing.ABSENT),
        ("{'check': False, 'cuda_graph_impl': 'local', **parameter}", Missing.UNKNOWN),
        ("{**parameter, 'cuda_graph_impl': 'local', 'check': False}", False),
        ("TransformerConfig(check=True, **{'cuda_graph_impl': 'local'})", True),
        ("dict(cuda_graph_impl='local', check=False)", False),
    ],
)
def test_value_of_the_same_object(code: str, value: object) -> None:
    read = beside(code, ("check",), ())
    assert isinstance(read, Undecided) if value is Undecided else read == value and type(read) is type(value)


@pytest.mark.parametrize(
    ("after", "value"),
    [
        (SET, False),
        (
            f"cfg.rerun_state_machine.check_for_nan_in_loss = True\n{SET}",
            False,
        ),
        ("setattr(cfg.rerun_state_machine, 'check_for_nan_in_loss', False)", False),
        ("cfg.rerun_state_machine = RerunStateMachineConfig(check_for_nan_in_loss=False)", False),
        ("cfg.rerun_state_machine = RerunStateMachineConfig()", Missing.ABSENT),
        ("rerun = cfg.rerun_state_machine\nrerun.check_for_nan_in_loss = False", False),
        (f"{SET}\nprint(cfg)\nreturn cfg", False),
        (f"{SET}\nassert cfg.model.x", False),
        (f"{SET}\ncfg.validate()", False),
        (f"{SET}\nsetup(cfg.model)", False),
        (f"setup(cfg)\n{SET}", False),
        ("cfg.rerun_state_machine.check_for_nan_in_loss = flag", Undecided),
        (f"{SET}\nsetup(cfg)", Missing.UNKNOWN),
        (f"{SET}\nsetup(config=cfg)", Missing.UNKNOWN),
        (f"{SET}\nsetup(*cfg)", Missing.UNKNOWN),
        (f"{SET}\nsetup([cfg])", Missing.UNKNOWN),
        (f"{SET}\nother.config = cfg", Missing.UNKNOWN),
        (f"{SET}\nlater = lambda: change(cfg)", Missing.UNKNOWN),
        (f"{SET}\ndef later():\n    cfg.x = 1", Missing.UNKNOWN),
        (f"if flag:\n    {SET}", Missing.UNKNOWN),
        ("for cfg.rerun_state_machine in parameter:\n    pass", Missing.UNKNOWN),
        (f"if flag:\n    return cfg\n{SET}", Missing.UNKNOWN),
        ("del cfg.rerun_state_machine.check_for_nan_in_loss", Missing.UNKNOWN),
        ("cfg.rerun_state_machine.check_for_nan_in_loss |= False", Missing.UNKNOWN),
        ("pass", Missing.UNKNOWN),
    ],
)
def test_the_last_write_in_a_straight_line_counts(after: str, value: object) -> None:
    read = beside(f"cfg = base_config()\ncfg.model.cuda_graph_impl = 'local'\n{after}")
    assert isinstance(read, Undecided) if value is Undecided else read is value


def test_a_write_before_the_site_counts() -> None:
    assert (
        beside("parameter.rerun_state_machine.check_for_nan_in_loss = False\nparameter.model.cuda_graph_impl = 'local'")
        is False
    )


def test_a_write_in_the_branch_of_the_site_counts() -> None:
    code = """
        if flag:
            parameter.model.cuda_graph_impl = "local"
            parameter.rerun_state_machine.check_for_nan_in_loss = False
        """
    assert beside(code) is False


NESTED = """
    return ConfigContainer(
        model=GPTModelProvider(cuda_graph_impl="local"),
        ddp=DistributedDataParallelConfig(check_for_nan_in_grad=True),
        RERUN
    )
    """


@pytest.mark.parametrize(
    ("rerun", "value"),
    [
        ("rerun_state_machine=RerunStateMachineConfig(check_for_nan_in_loss=False)", False),
        ("rerun_state_machine=RerunStateMachineConfig()", Missing.ABSENT),
        ("rerun_state_machine=None", Missing.ABSENT),
        ("rerun_state_machine=dict(check_for_nan_in_loss=False)", False),
        ("rerun_state_machine=rerun()", Missing.UNKNOWN),
        ("rerun_state_machine=parameter", Missing.UNKNOWN),
        ("", Missing.ABSENT),
        ("**parameter", Missing.UNKNOWN),
    ],
)
def test_nested_constructors_are_one_configuration(rerun: str, value: object) -> None:
    assert beside(NESTED.replace("RERUN", rerun)) is value
    assert beside(NESTED.replace("RERUN", rerun), ("ddp", "check_for_nan_in_grad")) is True


def test_a_nested_constructor_and_a_later_assignment() -> None:
    code = NESTED.replace("return", "cfg =").replace("RERUN", "") + SET
    assert beside(dedent(code).replace("    cfg.rerun", "cfg.rerun")) is False


def test_objects_with_names_of_their_own() -> None:
    code = """
        model = GPTModelProvider(cuda_graph_impl="local")
        rerun = RerunStateMachineConfig(check_for_nan_in_loss=False)
        return ConfigContainer(model=model, rerun_state_machine=rerun)
        """
    assert beside(code) is False
    assert beside(code.replace("model=model", "other=model")) is Missing.UNKNOWN


def test_nested_dicts() -> None:
    code = """
        return {"model": {"cuda_graph_impl": "local"}, "rerun_state_machine": {"check_for_nan_in_loss": False}}
        """
    assert beside(code) is False
    assert beside(code.replace('"model"', '"other"')) is Missing.UNKNOWN


def test_a_second_name_for_the_model() -> None:
    code = """
        cfg = base_config()
        model = cfg.model
        model.cuda_graph_impl = "local"
        cfg.rerun_state_machine.check_for_nan_in_loss = False
        """
    assert beside(code) is False
    assert beside(dedent(code) + "model = other()\n") is Missing.UNKNOWN


@pytest.mark.parametrize(
    ("code", "keys", "value"),
    [
        ("['--cuda-graph-impl', 'local', '--check']", "--check", True),
        ("['--cuda-graph-impl', 'local', '--size', '5', '--bf16']", "--size", "5"),
        ("['--cuda-graph-impl', 'local', '--sizes', '5', '6']", "--sizes", ["5", "6"]),
        ("['--cuda-graph-impl', 'local', '--size=5']", "--size", "5"),
        ("['--cuda-graph-impl', 'local', '--size', flag]", "--size", Undecided),
        ("['--cuda-graph-impl', 'local']", "--check", Missing.ABSENT),
        ("['--cuda-graph-impl', 'local', *parameter]", "--check", Missing.UNKNOWN),
        ("parameter += ['--cuda-graph-impl', 'local']", "--check", Missing.UNKNOWN),
        ("parameter.extend(['--cuda-graph-impl', 'local'])", "--check", Missing.UNKNOWN),
    ],
)
def test_flags_of_one_list(code: str, keys: str, value: object) -> None:
    read = beside(code, (keys,), ())
    assert isinstance(read, Undecided) if value is Undecided else read == value and type(read) is type(value)


def test_overrides_of_one_list() -> None:
    code = "run(['a.model.cuda_graph_impl=local', '++a.rerun_state_machine.check_for_nan_in_loss=false', 'a.b=$X'])"
    assert beside(code) is False
    assert isinstance(beside(code, ("b",)), Undecided)
    assert beside(code, ("c",)) is Missing.UNKNOWN
    assert beside(code, section=("other",)) is Missing.UNKNOWN


def test_code_at_the_top_of_a_file_and_in_a_class() -> None:
    text = (
        HEAD
        + "c = TransformerConfig(cuda_graph_impl='local')\nc.check = 1\nclass A:\n    d = {'cuda_graph_impl': 'x'}\n"
    )
    document = PythonDocument(text)
    assert [document.value_beside(site, (), ("check",)) for site in range(2)] == [1, Missing.UNKNOWN]
