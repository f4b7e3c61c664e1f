# ruff: noqa: E501
"""Python code that a release of Megatron-LM no longer takes: which imports, names and calls are reported."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import upgrade_rules

KINDS = (ProblemKind.GONE_NAME, ProblemKind.CHANGED_CALL, ProblemKind.MOVED_ARGUMENT)
TE = "megatron.core.transformer.custom_layers.transformer_engine"
GONE = f"`{TE}` of megatron-core 0.17 has no `TENorm`, which `megatron.core.extensions.transformer_engine` has"
INITIALIZE = "from megatron.training.initialize import initialize_megatron\n"
CALL = "`initialize_megatron` of megatron-core 0.18 has no parameter `args_defaults`"


def messages(code: str, path: str = "/nowhere/train.py", minor: int = 16) -> list[str]:
    document = PythonDocument(textwrap.dedent(code), path, catalogue.load((upgrade_rules(),)))
    problems = [
        one for one in document.problems if one.kind in KINDS and one.concerns(Release(0, minor), Release(0, 19))
    ]
    return [one.message + (" [fix]" if one.replacement else "") for one in problems]


@pytest.mark.parametrize(
    "code",
    [
        "from megatron.core.utils import unwrap_model\n",
        "from .utils import unwrap_model\n",
        f"try:\n    from {TE} import TENorm\nexcept ImportError:\n    from megatron.core.extensions.x import TENorm\n",
        f"if is_new:\n    pass\nelif version < '0.17':\n    from {TE} import TENorm\n",
        f"from contextlib import suppress\nwith suppress(ImportError):\n    from {TE} import TENorm\n",
        INITIALIZE + "initialize_megatron()\n",
        INITIALIZE + "def train(initialize_megatron):\n    initialize_megatron(args_defaults={})\n",
        INITIALIZE + "run = lambda initialize_megatron: initialize_megatron(args_defaults={})\n",
        INITIALIZE + "def initialize_megatron(args_defaults): ...\ninitialize_megatron(args_defaults={})\n",
        INITIALIZE + "def run():\n    if version >= '0.18':\n        return\n    initialize_megatron(args_defaults={})\n",
        INITIALIZE + "assert version < '0.18'\ninitialize_megatron(args_defaults={})\n",
        INITIALIZE + "@mark.skipif(version >= '0.18', reason='')\ndef test():\n    initialize_megatron(args_defaults={})\n",
        INITIALIZE + "NEW = V(mc.__version__) >= V('0.18')\nif NEW:\n    pass\nelse:\n    initialize_megatron(args_defaults={})\n",
        INITIALIZE + "def run():\n    if hasattr(initialize, 'x'):\n        initialize_megatron(args_defaults={})\n",
        "from megatron.core import mpu\ndef run(mpu):\n    mpu.is_inside_encoder()\n",
        "TEXT = 'megatron.core.utils.unwrap_model'\n",
        "NEW_NAMES = {'megatron.training.utils.unwrap_model': 'megatron.core.utils.unwrap_model'}\n",
        "import megatron.training.utils as tu\ntu.unwrap_model = mine\n",
        f"if package_info.MINOR >= 17:\n    pass\nelse:\n    from {TE} import TENorm\n",
        f"if USES_NEW:\n    from mine import TENorm\nelse:\n    from {TE} import TENorm\n",
        INITIALIZE + "try:\n    initialize_megatron(args_defaults={})\nexcept TypeError:\n    initialize_megatron()\n",
        INITIALIZE + "initialize_megatron, other = wrap(initialize_megatron)\ninitialize_megatron(args_defaults={})\n",
    ],
)  # fmt: skip
def test_code_that_goes_on_working_or_is_for_several_releases(code: str) -> None:
    assert messages(code) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"from {TE} import TENorm\n", [GONE + " [fix]"]),
        (f"from {TE} import (\n    TENorm as Norm,  # of layers\n)\n", [GONE + " [fix]"]),
        (f"from {TE.replace('.custom', '.' + chr(92) + chr(10) + '    custom')} import TENorm\n", [GONE]),
        (f"try:\n    from {TE} import TENorm\nexcept ImportError as e:\n    raise ImportError('install') from e\n", [GONE + " [fix]"]),
        (f"try:\n    from {TE} import TENorm\n    HAVE = True\nexcept ImportError:\n    HAVE = False\n", [GONE]),
        (f"if is_te_min_version('1.9'):\n    from {TE} import TENorm\n", [GONE + " [fix]"]),
        (f"import {TE} as te\nte.TENorm()\n", ["megatron-core 0.17 has no module `megatron.core.transformer.custom_layers.transformer_engine`", GONE]),
        ("from megatron.core.transformer.custom_layers import transformer_engine\n", ["`megatron.core.transformer.custom_layers` of megatron-core 0.17 has no `transformer_engine`"]),
        ("importlib.import_module('megatron.legacy.data')\n", ["megatron-core 0.17 has no module `megatron.legacy.data`"]),
        ("@patch('megatron.training.utils.unwrap_model')\ndef test(): ...\n", ["`megatron.training.utils` of megatron-core 0.18 has no `unwrap_model`, which `megatron.core.utils` has"]),
        (INITIALIZE + "initialize_megatron(args_defaults={})\n", [CALL]),
        (INITIALIZE + "start = functools.partial(initialize_megatron, args_defaults={})\n", [CALL]),
        (INITIALIZE + "try:\n    initialize_megatron(args_defaults={})\nexcept Exception:\n    log()\n    raise\n", [CALL]),
        (INITIALIZE + "initialize_megatron(*words, **{'args_defaults': {}})\n", []),
        ("from megatron.training.utils import get_batch_on_this_cp_rank\nget_batch_on_this_cp_rank(batch)\n",
         ["`megatron.training.utils` of megatron-core 0.18 has no `get_batch_on_this_cp_rank`, which `megatron.core.utils` has [fix]",
          "`get_batch_on_this_cp_rank` of megatron-core 0.18 needs `is_hybrid_cp`"]),
        ("from megatron.core.models.mamba import MambaModel\nclass Mine(MambaModel):\n    def __init__(self):\n        super().__init__(config, spec, 1, 2, True, 0.5)\n", None),
    ],
)  # fmt: skip
def test_code_that_a_release_does_not_take(code: str, expected: list[str] | None) -> None:
    if expected is None:
        assert any("`MambaModel` of megatron-core" in one for one in messages(code))
    else:
        assert messages(code) == expected


@pytest.mark.parametrize("folder", ["", "src"])
def test_a_package_of_the_project_is_its_own(tmp_path: Path, folder: str) -> None:
    own = tmp_path / folder / "megatron/training/utils.py"
    own.parent.mkdir(parents=True)
    own.write_text("def unwrap_model(): ...\n")
    (tmp_path / "tests").mkdir()
    code = "from megatron.training.utils import unwrap_model\n"
    assert messages(code, str(tmp_path / "tests/test_a.py")) == []
    assert messages(code) != []


PRETRAIN = "from megatron.training import pretrain\n"
PROVIDER = PRETRAIN + "def model_provider(pre_process=True, post_process=True): ...\n"
RUN = "pretrain(data, model_provider, kind, step)\n"
REFUSED = (
    "`pretrain` of megatron-core 0.16 calls `{}` with other arguments: it has no parameter `config`, `pg_collection`"
)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (PRETRAIN + "def model_provider(pre_process=True, post_process=True, **more): ...\n" + RUN, ""),
        (PROVIDER + RUN, "model_provider"),
        (PRETRAIN + "def model_provider(builder, pre_process=True, post_process=True): ...\n"
         "pretrain(data, partial(model_provider, build), kind, step)\n", "partial(model_provider, build)"),
        (PROVIDER + f"def run(model_provider): {RUN}", ""),
        (PROVIDER + f"def main():\n    model_provider = make()\n    {RUN}", ""),
        (PROVIDER + "model_provider = accepts_anything(model_provider)\n" + RUN, ""),
        (PROVIDER + "from mine import model_provider\n" + RUN, ""),
        (PROVIDER + f"for model_provider in providers:\n    {RUN}", ""),
        (PROVIDER + "class model_provider: ...\n" + RUN, ""),
        (PROVIDER.replace("def", "@accepts_anything\ndef") + RUN, ""),
    ],
)  # fmt: skip
def test_a_function_that_is_passed_on_is_compared_with_how_it_is_called(code: str, shown: str) -> None:
    refused = [one for one in messages(code, minor=15) if "with other arguments" in one]
    assert refused == ([REFUSED.format(shown)] if shown else [])


def test_a_call_that_is_written_for_the_target_is_right() -> None:
    code = "from megatron.training import pretrain\npretrain(cfg, data, kind, step, model_provider=provider)\n"
    assert messages(code) == []
