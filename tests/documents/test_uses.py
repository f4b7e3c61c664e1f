"""The uses of settings in Python code: each appearance of a name with its role."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.documents.command_line_advice import pattern_in_text
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import Role, site_places
from cgmigrate.documents.uses import appearances_in
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.megatron.catalogue import load

WRITE, READ, MENTION = Role


def roles(code: str) -> list[Role]:
    """The roles of the names of a file, in the order of the text."""
    return [use.role for use in PythonDocument(code + "\n").uses]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f(cuda_graph_scope=1)", [WRITE]),
        ("f(cuda_graph_scope=cfg.cuda_graph_scope)", [WRITE, READ]),
        ("f(check_for_nan_in_loss=1)", [WRITE]),
        ("cfg.cuda_graph_scope = 1", [WRITE]),
        ("cfg.cuda_graph_scope += [1]", [WRITE]),
        ("a.cuda_graph_scope, b.cuda_graph_impl = 1, 2", [WRITE, WRITE]),
        ("del cfg.cuda_graph_scope", [WRITE]),
        ("setattr(cfg, 'cuda_graph_scope', 1)", [WRITE]),
        ("setattr(cfg, 'check_for_nan_in_loss', 1)", [WRITE]),
        ("d = {'cuda_graph_scope': 1}", [WRITE]),
        ("d['cuda_graph_scope'] = 1", [WRITE]),
        ("run(['--cuda-graph-scope', 'attn'])", [WRITE]),
        ("run(['--no-check-for-nan-in-loss-and-grad'])", [WRITE]),
        ("run(['model.cuda_graph_scope=[]'])", [WRITE]),
        ("x = cfg.cuda_graph_scope", [READ]),
        ("assert cfg.cuda_graph_scope == cfg.cuda_graph_modules", [READ, READ]),
        ("x = 'attn' in cfg.cuda_graph_scope", [READ]),
        ("x = getattr(cfg, 'cuda_graph_scope', None)", [READ]),
        ("x = hasattr(cfg, 'cuda_graph_scope')", [READ]),
        ("x = d['cuda_graph_scope']", [READ]),
        ("x = d.get('cuda_graph_scope')", [READ]),
        ("x = 'cuda_graph_scope' in d", [READ]),
        ("x = '--cuda-graph-scope' in sys.argv", [READ]),
        ("class A:\n    cuda_graph_scope: str = 'x'", [MENTION]),
        ("class A:\n    cuda_graph_scope = 'x'", [MENTION]),
        ("def f(cuda_graph_scope): pass", [MENTION]),
        ("def cuda_graph_scope(): pass", [MENTION]),
        ("parser.add_argument('--cuda-graph-scope', help='as --cuda-graph-scope')", [MENTION, MENTION]),
        ("NAMES = ['cuda_graph_scope', 'cuda_graph_impl']", [MENTION, MENTION]),
        ("text = f'cuda_graph_scope: {x}'", [MENTION]),
        ("text = f'--cuda-graph-scope {x}'", [MENTION]),
        # Before 3.12, Python does not say where the parts of an f-string are.
        (
            "text = f'cuda_graph_scope={cfg.cuda_graph_scope}'",
            [MENTION, READ if sys.version_info >= (3, 12) else MENTION],
        ),
        ("print(f'cuda_graph_scope={x}')", [MENTION]),
        ("raise ValueError('cuda_graph_scope: no')", [MENTION]),
        ("with raises(E, match='cuda_graph_scope=x'): pass", [MENTION]),
        ("def f():\n    'Set cuda_graph_scope=x.'", [MENTION]),
        ("x = 1  # cuda_graph_scope: no", [MENTION]),
        ("f(\n    1,  # cuda_graph_scope\n)", [MENTION]),
        ("cuda_graph_scope = 1", []),
        ("from a import cuda_graph_scope", []),
        ("enable_cuda_graphs = vision_cuda_graph_scope = _cuda_graph_impl = 1", []),
        ("f(cuda_graph_scope=", []),
    ],
)
def test_roles_in_python(code: str, expected: list[Role]) -> None:
    assert roles(code) == expected


def test_the_settings_of_sites_are_uses() -> None:
    code = """
        config = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=["attn"])
        config.cuda_graph_scope = []
        config.cuda_graph_scope = ["mlp"]
        run(["--cuda-graph-impl", "local"])
        """
    document = PythonDocument(dedent(code))
    assert all(use in document.uses for site in document.sites for use in site.written)
    values = [use.value for use in document.uses if use.setting == "cuda_graph_scope"]
    assert values == [["attn"], [], ["mlp"]]


def test_a_read_underlines_its_object() -> None:
    (use,) = PythonDocument("x = cfg.model.cuda_graph_scope\n").uses
    assert (use.span.start, use.span.end, use.setting) == (4, 30, "cuda_graph_scope")


PIECES = st.sampled_from(
    [
        "cfg.cuda_graph_scope = 1",
        "x = cfg.cuda_graph_impl  # cuda_graph_impl",
        "f(cuda_graph_scope=[a.cuda_graph_impl])",
        'x = f"""\ncuda_graph_scope={cfg.cuda_graph_scope}\n"""',
        "def g(cuda_graph_scope=1):\n    return cuda_graph_scope",
        "class A:\n    cuda_graph_impl: int = 1",
        "y = ['--cuda-graph-scope',  # cuda_graph_scope\n     'attn']",
        "pass",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=8))
def test_roles_do_not_depend_on_what_is_around(pieces: list[str]) -> None:
    expected = [role for piece in pieces for role in roles(piece)]
    assert roles("\n".join(pieces)) == expected


def test_places_of_sites() -> None:
    code = """
        def recipe():
            cfg.model.cuda_graph_impl = "local"
            if x:
                cfg.model.cuda_graph_impl = "none"

        class A:
            def build(self):
                self.config.cuda_graph_impl = "local"
        """
    document = PythonDocument(dedent(code), "/project/a.py")
    places = ["recipe: cfg.model", "recipe: cfg.model (2)", "A.build: self.config"]
    assert site_places(document) == places
    moved = PythonDocument("import os\n" + dedent(code), "/project/a.py")
    assert site_places(moved) == site_places(document)
    yaml = YamlDocument("a:\n  - {cuda_graph_impl: local}\n  - {cuda_graph_impl: none}\n", "/project/a.yaml")
    assert site_places(yaml) == ["a", "a (2)"]


@pytest.mark.parametrize("before", ["", " ", "\\n", "\\t", "\\r\\n", '"', "="])
def test_a_flag_may_follow_a_line_break_as_a_string_has_it(before: str) -> None:
    text = f"{before}--cuda-graph-scope full"
    assert [(one.setting, one.key) for one in appearances_in(text, load())] == [
        ("cuda_graph_scope", "--cuda-graph-scope")
    ]
    assert pattern_in_text(load()).search(text)


def test_a_longer_flag_is_another_one() -> None:
    assert not list(appearances_in("my--cuda-graph-scope full --no-cuda-graph-scope", load()))
