# ruff: noqa: E501 - source text on one line reads better than split
"""Python files: real text in, real text out. No-op cases first."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.text.edits import apply
from tests.support.python_tools import HEADER, check_fixed, check_noop, run
from tests.support.tables import from_table

ENUMS = "from megatron.core.transformer.enums import CudaGraphScope\n"
BOTH = HEADER + ENUMS
BRIDGE = "from megatron.bridge.recipes.common import _pretrain_common\n"

# --- nothing to do ----------------------------------------------------------------------------------


@from_table
def test_other_names_are_no_settings(text: str) -> None:
    assert not check_noop(text).examined.diagnostics


@from_table
def test_the_keyword_of_something_else_is_left_alone(text: str) -> None:
    result = check_noop(text)
    assert not result.examined.safe and result.rules in ([], ["CG006"])


@from_table
def test_a_file_without_megatron_has_no_diagnostics(text: str) -> None:
    result = check_noop(text, header="")
    assert not result.examined.diagnostics
    assert result.examined.skipped


def test_an_unknown_callee_is_reported() -> None:
    result = check_noop('base = WorkloadBaseConfig(cuda_graph_impl="none", cuda_graph_scope=["full_iteration"])')
    assert set(result.rules) == {"CG006"}


@from_table
def test_megatron_core_is_recognised_by_its_files(
    tmp_path: Path, files: tuple[str, ...], path: str, theirs: bool
) -> None:
    for name in files:
        name = name.replace("megatron/core", "vendor/renamed") if path.startswith("vendor") else name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    text = "from megatron.core.transformer import TransformerConfig\n\nTransformerConfig(enable_cuda_graph=True)\n"
    result = run(text, path=str(tmp_path / path))
    assert [owner for _, owner in result.examined.skipped if owner.startswith("megatron-core itself")] == (
        ["megatron-core itself, which defines these names: upgrade it instead"] if theirs else []
    )
    assert bool(result.examined.diagnostics) is not theirs


def test_a_package_named_megatron_inside_another_is_not_megatrons(tmp_path: Path) -> None:
    path = tmp_path / "backends/megatron/core/engine.py"
    path.parent.mkdir(parents=True)
    text = "options.enable_cuda_graph = True\n"
    assert PythonDocument(text, str(path)).top_level == ["megatron.core"]
    (tmp_path / "backends/__init__.py").touch()
    assert PythonDocument(text, str(path)).top_level == []


def test_computed_values_are_reported() -> None:
    result = check_noop("config = TransformerConfig(enable_cuda_graph=flag, cuda_graph_scope=args.scope)")
    assert result.rules.count("CG003") == 2


@from_table
def test_code_for_several_releases_is_left_and_reported(text: str) -> None:
    result = check_noop(text)
    assert result.examined.diagnostics
    assert "several releases" in result.messages or "another release" in result.messages


def test_targets_before_the_split_change_nothing() -> None:
    assert check_noop('config.cuda_graph_scope = ["attn"]', target="0.17").examined.diagnostics == ()


# --- keyword arguments ------------------------------------------------------------------------------


def test_keywords_of_a_config() -> None:
    check_fixed(
        'config = TransformerConfig(num_layers=2, enable_cuda_graph=True, cuda_graph_scope="attn,mlp")\n',
        'config = TransformerConfig(num_layers=2, cuda_graph_impl="local", cuda_graph_modules=["attn", "mlp"])\n',
    )


def test_a_keyword_goes_with_its_line_and_comment() -> None:
    check_fixed(
        """\
        config = TransformerConfig(
            num_layers=2,
            enable_cuda_graph=False,  # not yet
            hidden_size=8,  # small
        )
        """,
        """\
        config = TransformerConfig(
            num_layers=2,
            hidden_size=8,  # small
        )
        """,
    )


@from_table
def test_a_keyword_goes_with_its_comma(before: str, after: str) -> None:
    check_fixed(before + "\n", after + "\n")


def test_a_keyword_is_added_in_the_layout_of_the_call() -> None:
    check_fixed(
        """\
        config = TransformerConfig(
            cuda_graph_impl="local",
            cuda_graph_scope=["attn", "full_iteration_inference"],
            hidden_size=8,
        )
        """,
        """\
        config = TransformerConfig(
            cuda_graph_impl="local",
            cuda_graph_modules=["attn"],
            inference_cuda_graph_scope="block",
            hidden_size=8,
        )
        """,
    )
    check_fixed(
        "c = TransformerConfig(cuda_graph_impl='local', cuda_graph_scope='attn,full_iteration_inference', x=1)\n",
        "c = TransformerConfig(cuda_graph_impl='local', cuda_graph_modules=['attn'], "
        "inference_cuda_graph_scope='block', x=1)\n",
    )


@from_table
def test_callees_that_are_configurations(header: str, callee: str) -> None:
    check_fixed(
        f'c = {callee}(cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"])\n',
        f'c = {callee}(cuda_graph_impl="transformer_engine", cuda_graph_modules=["attn"])\n',
        header=header,
    )


def test_partial_and_run_config() -> None:
    check_fixed(
        "make = partial(TransformerConfig, external_cuda_graph=True)\n",
        'make = partial(TransformerConfig, cuda_graph_impl="transformer_engine")\n',
        header=HEADER + "from functools import partial\n",
    )
    check_fixed(
        "c = run.Config(llm.GPTConfig, external_cuda_graph=False, hidden=1)\n",
        "c = run.Config(llm.GPTConfig, hidden=1)\n",
        header="import nemo_run as run\nfrom nemo.collections import llm\n",
    )


# --- dicts ------------------------------------------------------------------------------------------


def test_a_dict_that_is_spread_into_a_config() -> None:
    check_fixed(
        "c = TransformerConfig(**{'enable_cuda_graph': True, 'cuda_graph_scope': 'full_iteration', 'x': 1})\n",
        "c = TransformerConfig(**{'cuda_graph_impl': 'full_iteration', 'x': 1})\n",
    )
    check_fixed(
        "c = TransformerConfig(**dict(external_cuda_graph=True, cuda_graph_scope=['attn']))\n",
        "c = TransformerConfig(**dict(cuda_graph_impl='transformer_engine', cuda_graph_modules=['attn']))\n",
    )


def test_a_dict_that_is_only_ever_spread_into_a_config() -> None:
    check_fixed(
        'kw = {"cuda_graph_impl": "local", "cuda_graph_scope": ["attn"]}\nc = TransformerConfig(**kw)\n',
        'kw = {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn"]}\nc = TransformerConfig(**kw)\n',
    )
    for use in ('kw.pop("cuda_graph_scope")', "kw.pop(name)", "print(kw)", "for name in kw: pass"):
        check_noop(
            f'kw = {{"cuda_graph_impl": "local", "cuda_graph_scope": ["attn"]}}\n{use}\nc = TransformerConfig(**kw)\n'
        )


def test_a_dict_without_a_known_owner_is_reported() -> None:
    assert check_noop('options = {"enable_cuda_graph": True}').rules == ["CG006"]
    assert check_noop('options = {"cuda_graph_impl": "local", "cuda_graph_scope": ["attn"]}').rules == ["CG006"]


def test_computed_values_of_new_names_are_no_news() -> None:
    assert check_noop("config.cuda_graph_impl = args.impl\nconfig.cuda_graph_modules = other.modules").rules == []


# --- runs of assignments ----------------------------------------------------------------------------


def test_a_pair_becomes_a_pair() -> None:
    check_fixed(
        """\
        def recipe():
            cfg = _pretrain_common()
            # CUDA Graph
            cfg.model.cuda_graph_impl = "none"
            cfg.model.cuda_graph_scope = "full"  # "attn" another day
            cfg.model.cuda_graph_warmup_steps = 3
            return cfg
        """,
        """\
        def recipe():
            cfg = _pretrain_common()
            # CUDA Graph
            cfg.model.cuda_graph_impl = "none"
            cfg.model.cuda_graph_modules = []  # "attn" another day
            cfg.model.cuda_graph_warmup_steps = 3
            return cfg
        """,
        header=BRIDGE,
    )


def test_none_with_full_iteration_stays_off() -> None:
    check_fixed(
        """\
        cfg.model.cuda_graph_impl = "none"
        cfg.model.cuda_graph_scope = ["full_iteration"]
        """,
        """\
        cfg.model.cuda_graph_impl = "none"
        cfg.model.cuda_graph_modules = []
        """,
        header=BRIDGE,
    )


def test_local_with_full_iteration() -> None:
    check_fixed(
        """\
        cfg.model.cuda_graph_impl = "local"
        print(cfg)
        cfg.model.cuda_graph_scope = ["full_iteration"]
        """,
        """\
        cfg.model.cuda_graph_impl = "full_iteration"
        print(cfg)
        cfg.model.cuda_graph_modules = []
        """,
        header=BRIDGE,
    )


def test_a_statement_that_goes_leaves_pass() -> None:
    text = "if x:\n    cfg.model.external_cuda_graph = False  # off\nif y:\n    f()\n    cfg.b.external_cuda_graph = False  # off\n"
    document = PythonDocument(text)
    assert apply(text, document.edits({0: {}, 1: {}})) == "if x:\n    pass  # off\nif y:\n    f()\n"


def test_half_of_a_pair_is_not_guessed() -> None:
    assert "elsewhere" in check_noop('cfg.model.cuda_graph_scope = "full"', header=BRIDGE).messages
    assert "elsewhere" in check_noop('cfg.model.cuda_graph_scope = ["full_iteration"]', header=BRIDGE).messages
    assert "elsewhere" in check_noop("cfg.model.enable_cuda_graph = False", header=BRIDGE).messages


def test_modules_alone_are_renamed() -> None:
    check_fixed('cfg.model.cuda_graph_scope = ["attn"]\n', 'cfg.model.cuda_graph_modules = ["attn"]\n', header=BRIDGE)


def test_objects_that_are_bound_anew_are_others() -> None:
    check_noop(
        """\
        cfg.model.cuda_graph_impl = "local"
        cfg = other()
        cfg.model.cuda_graph_scope = ["full_iteration"]
        """,
        header=BRIDGE,
    )


def test_different_objects_are_different_sites() -> None:
    check_fixed(
        """\
        a.model.cuda_graph_impl = "transformer_engine"
        b.model.cuda_graph_impl = "local"
        a.model.cuda_graph_scope = ["attn"]
        b.model.cuda_graph_scope = ["full_iteration"]
        """,
        """\
        a.model.cuda_graph_impl = "transformer_engine"
        b.model.cuda_graph_impl = "full_iteration"
        a.model.cuda_graph_modules = ["attn"]
        b.model.cuda_graph_modules = []
        """,
        header=BRIDGE,
    )


def test_a_branch_builds_on_what_surely_ran() -> None:
    check_fixed(
        """\
        cfg.model.cuda_graph_impl = "local"
        cfg.model.cuda_graph_scope = ["full_iteration"]
        if moe:
            cfg.model.cuda_graph_impl = "transformer_engine"
            cfg.model.cuda_graph_scope = ["moe_router"]
        """,
        """\
        cfg.model.cuda_graph_impl = "full_iteration"
        cfg.model.cuda_graph_modules = []
        if moe:
            cfg.model.cuda_graph_impl = "transformer_engine"
            cfg.model.cuda_graph_modules = ["moe_router"]
        """,
        header=BRIDGE,
    )


def test_a_half_overridden_pair_is_completed() -> None:
    check_fixed(
        """\
        config.cuda_graph_impl = "local"
        config.cuda_graph_scope = ["full_iteration"]
        if layers:
            config.cuda_graph_scope = ["attn"]
        """,
        """\
        config.cuda_graph_impl = "full_iteration"
        config.cuda_graph_modules = []
        if layers:
            config.cuda_graph_modules = ["attn"]
            config.cuda_graph_impl = "local"
        """,
    )


def test_after_a_branch_nothing_is_known() -> None:
    check_noop(
        """\
        cfg.model.cuda_graph_impl = "none"
        if x:
            cfg.model.cuda_graph_impl = "local"
        cfg.model.cuda_graph_scope = ["full_iteration"]
        """,
        header=BRIDGE,
    )


def test_a_branch_that_returns_changes_nothing_behind_it() -> None:
    check_fixed(
        """\
        def f(cfg, x):
            cfg.model.cuda_graph_impl = "none"
            if x:
                cfg.model.cuda_graph_impl = "transformer_engine"
                return cfg
            cfg.model.cuda_graph_scope = ["full_iteration"]
            return cfg
        """,
        """\
        def f(cfg, x):
            cfg.model.cuda_graph_impl = "none"
            if x:
                cfg.model.cuda_graph_impl = "transformer_engine"
                return cfg
            cfg.model.cuda_graph_modules = []
            return cfg
        """,
        header=BRIDGE,
    )


def test_a_setting_assigned_twice_is_reported() -> None:
    result = check_noop(
        'cfg.model.cuda_graph_impl = "transformer_engine"\n'
        'cfg.model.cuda_graph_scope = "full"\ncfg.model.cuda_graph_scope = ["attn"]\n',
        header=BRIDGE,
    )
    assert "assigned twice" in result.messages


def test_one_undecided_statement_holds_all_of_its_object() -> None:
    result = check_noop(
        """\
        cfg.model.cuda_graph_impl = "transformer_engine"
        cfg.model.cuda_graph_scope = ["attn"]
        if args.scope:
            cfg.model.cuda_graph_scope = args.scope
        """,
        header=BRIDGE,
    )
    assert "CG003" in result.rules


@from_table
def test_a_key_beside_a_dict_that_is_spread(before: str, after: str) -> None:
    call = "def f(base, more):\n    return TransformerConfig(**{})\n"
    check_fixed(call.replace("{}", before), call.replace("{}", after), unsafe=True)


def test_a_syntax_error_is_reported_at_its_line() -> None:
    document = PythonDocument("import megatron\nx = 1\ncuda_graph_scope = = 2\n", "x.py")
    (problem,) = document.problems
    assert document.text[problem.span.start : problem.span.end] == "cuda_graph_scope = = 2"


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), (["attn", "mlp"], "[attn,mlp]")])
def test_a_value_of_an_override_is_spelled_as_hydra_reads_it(value: object, text: str) -> None:
    document = PythonDocument("launch(['model.cuda_graph_scope=[attn]'])\n", "x.py")
    assert document.spelled(0, "cuda_graph_modules", value) == f'"model.cuda_graph_modules={text}"'


def test_setattr() -> None:
    check_fixed(
        'setattr(cfg.model, "cuda_graph_impl", "transformer_engine")\nsetattr(cfg.model, "cuda_graph_scope", ["attn"])\n',
        'setattr(cfg.model, "cuda_graph_impl", "transformer_engine")\nsetattr(cfg.model, "cuda_graph_modules", ["attn"])\n',
        header=BRIDGE,
    )


def test_a_setting_of_setattr_is_spelled_as_a_call() -> None:
    document = PythonDocument('setattr(cfg.model, "cuda_graph_scope", ["attn"])\n', "x.py")
    spelled = document.spelled(0, "cuda_graph_modules", ["attn"])
    assert spelled == 'setattr(cfg.model, "cuda_graph_modules", ["attn"])'


@from_table
def test_the_path_of_a_site_is_the_object_that_has_the_settings(code: str, path: tuple[str, ...]) -> None:
    (site,) = PythonDocument(code, "x.py").sites
    assert site.path == path


def test_a_built_object_is_not_changed_silently() -> None:
    result = check_noop(
        'config = TransformerConfig(hidden_size=8)\nconfig.cuda_graph_scope = ["attn"]\n',
    )
    assert "silently ignores" in result.messages
    result = check_noop("config = TransformerConfig(hidden_size=8)\nconfig.enable_cuda_graph = True\n")
    assert "built" in result.messages


def test_a_built_object_gets_enum_members() -> None:
    check_fixed(
        "config = TransformerConfig(hidden_size=8)\nconfig.cuda_graph_scope = [CudaGraphScope.attn]\n",
        "config = TransformerConfig(hidden_size=8)\nconfig.cuda_graph_modules = [CudaGraphModule.attn]\n",
        header=BOTH,
        after_header=BOTH.replace("CudaGraphScope", "CudaGraphModule"),
    )


@from_table
def test_a_setting_that_is_read_back_is_not_rewritten(read: str) -> None:
    result = check_noop(
        f"""\
        def f(cfg):
            cfg.model.cuda_graph_impl = "local"
            cfg.model.cuda_graph_scope = ["full_iteration"]
            {read}
                cfg.rerun_state_machine.check_for_nan_in_loss = False
        """,
        header=BRIDGE + ENUMS,
    )
    assert "change together" in result.messages


def test_the_help_of_a_withheld_read_is_what_its_fix_would_write() -> None:
    result = check_noop(
        """\
        def f(cfg):
            cfg.model.cuda_graph_scope = [CudaGraphScope.attn]
            print(CudaGraphScope.attn in cfg.model.cuda_graph_scope)
        """,
        header=BRIDGE + ENUMS,
    )
    (read,) = [diagnostic for diagnostic in result.examined.diagnostics if diagnostic.rule == "CG602"]
    assert read.help == "write `CudaGraphModule.attn in cfg.model.cuda_graph_modules`"


def test_what_is_read_before_or_elsewhere_is_not() -> None:
    check_fixed(
        """\
        def f(cfg):
            print(cfg.model.cuda_graph_scope)
            cfg.model.cuda_graph_impl = "none"
            cfg.model.cuda_graph_scope = "full"

        def g(cfg):
            print(cfg.model.cuda_graph_scope)
        """,
        """\
        def f(cfg):
            print(cfg.model.cuda_graph_scope)
            cfg.model.cuda_graph_impl = "none"
            cfg.model.cuda_graph_modules = []

        def g(cfg):
            print(cfg.model.cuda_graph_scope)
        """,
        header=BRIDGE,
    )


def test_a_class_of_the_file_may_have_defaults_of_its_own() -> None:
    result = check_noop(
        """\
        class Mine(TransformerConfig):
            cuda_graph_scope: str = "attn"

        config = Mine(cuda_graph_scope="full")
        """
    )
    assert "elsewhere" in result.messages


def test_a_name_that_is_bound_again_is_nobodys() -> None:
    check_noop(
        'TransformerConfig = make()\nc = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=["attn"])\n'
    )


def test_an_object_made_by_another_system() -> None:
    result = check_noop(
        "config = deepspeed.inference.DeepSpeedInferenceConfig()\nconfig.enable_cuda_graph = True\n",
        header=HEADER + "import deepspeed\n",
    )
    assert not result.examined.diagnostics


# --- enum members and imports -----------------------------------------------------------------------


@from_table
def test_the_import_follows(header: str, after: str) -> None:
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.attn, CudaGraphScope.mlp])\n',
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_modules=[CudaGraphModule.attn, CudaGraphModule.mlp])\n',
        header=HEADER + header,
        after_header=HEADER + after,
    )


def test_the_import_of_a_full_iteration_goes() -> None:
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.full_iteration])\n',
        'c = TransformerConfig(cuda_graph_impl="full_iteration")\n',
        header=BOTH,
        after_header=HEADER,
    )


def test_the_comment_of_an_import_goes_with_its_name() -> None:
    enums = "from megatron.core.transformer.enums import (\n    AttnMaskType,\n{})\n"
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.full_iteration])\n',
        'c = TransformerConfig(cuda_graph_impl="full_iteration")\n',
        header=HEADER + enums.format("    CudaGraphScope,  # graphs\n"),
        after_header=HEADER + enums.format(""),
    )


def test_both_classes_where_the_old_one_is_still_used() -> None:
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.attn])\nprint(list(CudaGraphScope))\n',
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_modules=[CudaGraphModule.attn])\nprint(list(CudaGraphScope))\n',
        header=BOTH,
        after_header=BOTH.replace("CudaGraphScope", "CudaGraphModule, CudaGraphScope"),
    )


def test_an_alias_and_a_module() -> None:
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CGS.attn])\n',
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_modules=[CudaGraphModule.attn])\n',
        header=HEADER + "from megatron.core.transformer.enums import CudaGraphScope as CGS\n",
        after_header=HEADER + "from megatron.core.transformer.enums import CudaGraphModule\n",
    )
    check_fixed(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[enums.CudaGraphScope.attn])\n',
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_modules=[enums.CudaGraphModule.attn])\n',
        header=HEADER + "from megatron.core.transformer import enums\n",
    )


@from_table
def test_other_classes_of_that_name_are_left(header: str) -> None:
    result = check_noop(
        'c = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.attn])\n',
        header=HEADER + header,
    )
    assert "CG003" in result.rules


# --- lists of words ---------------------------------------------------------------------------------


def test_the_keys_of_flags_are_the_flags_and_their_values_as_argparse_reads_them() -> None:
    text = 'run(["--enable-cuda-graph", "--cuda-graph-scope", "attn", "--cuda-graph-impl", "local"])\n'
    (site,) = PythonDocument(text, "x.py").sites
    assert [written.key for written in site.written] == [
        "--enable-cuda-graph",
        "--cuda-graph-scope",
        "--cuda-graph-impl",
    ]
    assert [written.value for written in site.written] == [True, ["attn"], "local"]


def test_flags() -> None:
    check_fixed(
        'argv = ["--bf16", "--enable-cuda-graph", "--cuda-graph-scope", "attn", "mlp", "--x"]\n',
        'argv = ["--bf16", "--cuda-graph-impl", "local", "--cuda-graph-modules", "attn", "mlp", "--x"]\n',
        header="",
    )
    check_fixed(
        """\
        argv = [
            "--cuda-graph-impl", "local",
            "--cuda-graph-scope", "full_iteration",
            "--bf16",
        ]
        """,
        """\
        argv = [
            "--cuda-graph-impl", "full_iteration",
            "--bf16",
        ]
        """,
        header="",
    )


def test_flags_with_computed_words_are_reported() -> None:
    assert "CG003" in check_noop('argv = ["--cuda-graph-scope", scope]', header="").rules


def test_override_strings() -> None:
    check_fixed(
        'overrides = ["model.cuda_graph_impl=local", "++model.cuda_graph_scope=[full_iteration]", "x=1"]\n',
        'overrides = ["model.cuda_graph_impl=full_iteration", "++model.cuda_graph_modules=[]", "x=1"]\n',
        header=BRIDGE,
    )


def test_a_file_that_does_not_parse() -> None:
    result = check_noop("def (:\n  enable_cuda_graph = 1")
    assert result.rules == ["CG009"]


def test_text_before_a_setting_may_be_wide() -> None:
    check_fixed(
        'print("größe 🚀"); x = "ä"\nc = TransformerConfig("ü", cuda_graph_impl="local", cuda_graph_scope="full", y="é")\n',
        'print("größe 🚀"); x = "ä"\nc = TransformerConfig("ü", cuda_graph_impl="local", cuda_graph_modules=[], y="é")\n',
    )


def test_line_ends_are_kept() -> None:
    text = (
        HEADER
        + 'a.config.cuda_graph_impl = "local"\na.config.cuda_graph_scope = ["attn", "full_iteration_inference"]\n'
    )
    crlf = run(text.replace("\n", "\r\n")).after
    assert crlf.replace("\r\n", "\n") == run(text).after and crlf.count("\n") == crlf.count("\r\n")
