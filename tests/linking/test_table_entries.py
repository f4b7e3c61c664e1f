"""Dictionaries in tables of tests: which of them only become attributes of an object."""

from pathlib import Path

import pytest

from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.table_entries import TableEntries, TableSearch
from cgmigrate.linking.python.words import Words

SETTING = '"cuda_graph_scope"'
TABLE = 'ROWS = [(make, {"num_layers": 2, "cuda_graph_scope": []})]\n'
NESTED = 'ROWS = [(make, {"ddp": {"overlap": True}, "model": {"cuda_graph_scope": []}})]\n'
TEST = """
@pytest.mark.parametrize("make,overrides", ROWS)
def test_a(make, overrides):
    config = make()
"""
LOOP = "    for key, value in overrides.items():\n        setattr(config.model, key, value)\n"
LOOP_OF_NESTED = """    for name, own in overrides.items():
        part = getattr(config, name)
        for key, value in own.items():
            setattr(part, key, value)
"""
HELPER = """
def apply(make, overrides=None, *, more=None):
    config = make()
    if overrides:
        for key, value in overrides.items():
            if not hasattr(config.model, key):
                raise ValueError(f"{key} is unknown")
            setattr(config.model, key, value)
    if more is not None:
        for key, value in more.items():
            setattr(config.ddp, key, value)
"""


def entries_in(text: str, folder: Path, **others: str) -> TableEntries | None:
    """Return what is known of the dictionary with the setting in a file of tests."""
    for name, content in {"test_a": text, **others}.items():
        (folder / f"{name}.py").write_text(content)
    files = sorted(map(str, folder.glob("*.py")))
    words = Words(lambda: files)
    modules = Modules({}, list_files=lambda: files, files_with=words.files_with)
    module = modules.read(str(folder / "test_a.py"))
    assert module is not None
    before = text[: text.index(SETTING)]
    position = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
    return TableSearch(module, References(modules), words.files_with).at(position)


@pytest.mark.parametrize(
    "text",
    [
        TABLE + TEST + LOOP,
        NESTED + TEST + LOOP_OF_NESTED,
        TABLE + HELPER + TEST + "    apply(make, overrides)\n",
        TABLE + HELPER + TEST + "    apply(make, more=overrides)\n",
        TABLE.replace("[(make", "[pytest.param(make").replace(")]", ", id='a')]") + TEST + LOOP,
        'OWN = {"cuda_graph_scope": []}\nROWS = [(make, OWN), (make, OWN)]\n' + TEST + LOOP,
        TABLE + TEST + LOOP + LOOP.replace("overrides.items()", '{"a": 1}.items()'),
    ],
    ids=["loop", "nested", "helper", "keyword", "param", "by name", "two loops"],
)
def test_entries_that_only_become_attributes(text: str, tmp_path: Path) -> None:
    entries = entries_in(text, tmp_path)

    assert entries is not None
    assert [one.test.name for one in entries.rows] in (["test_a"], ["test_a", "test_a"])
    assert len(entries.calls) == 1


@pytest.mark.parametrize(
    "text",
    [
        TABLE + TEST,
        TABLE + TEST + LOOP + "    assert overrides\n",
        TABLE + TEST + LOOP + "    assert len(overrides) == 2\n",
        TABLE + TEST + LOOP + "    assert key\n",
        TABLE + TEST + "    overrides = dict(overrides)\n" + LOOP,
        TABLE + TEST + LOOP.replace("setattr(", "assert getattr(config, key) == value\n        setattr("),
        TABLE + TEST + LOOP.replace("key, value)", "key.upper(), value)"),
        TABLE + TEST + LOOP.replace("setattr(config.model", "setattr(config[key]"),
        TABLE + TEST + LOOP + "    print([key for key in ()])\n",
        TABLE + TEST + LOOP + "    def inner(overrides): pass\n",
        TABLE + TEST + "    import json as overrides\n" + LOOP,
        TABLE + TEST + "    match config:\n        case {**overrides}: pass\n" + LOOP,
        TABLE + TEST + LOOP + "    try: pass\n    except OSError as key: pass\n",
        TABLE + TEST + LOOP + "    (lambda: overrides)()\n",
        TABLE
        + TEST
        + LOOP.replace("setattr(", "if not config: raise [OSError, KeyError][value == 1]\n        setattr("),
        TABLE + TEST + LOOP.replace("setattr(", "assert hasattr(make, key)\n        setattr("),
        TABLE + TEST + LOOP + "    assert config.model == make().model\n",
        TABLE + TEST + LOOP + "    print(config)\n",
        TABLE + TEST + LOOP + "    shown = f'{config.model}'\n",
        TABLE + TEST + LOOP + "    assert config.to_dict() == {}\n",
        TABLE + TEST + LOOP + "    config.to_yaml('a')\n",
        TABLE + TEST + LOOP + "    kept.append(config.model)\n",
        TABLE + TEST + LOOP + "    assert config.__dict__\n",
        TABLE + TEST + LOOP + "    own = config.model\n    assert own == make().model\n",
        TABLE + TEST + LOOP + "    own: object = config.model\n",
        TABLE + TEST + LOOP + "    box.config = config\n",
        TABLE + TEST + LOOP + "    assert config.alias\n",
        TABLE + TEST + LOOP + "    assert config.model.shown\n",
        TABLE + TEST + LOOP + "    config.model.fill([])\n",
        TABLE + TEST + LOOP + "    return config\n",
        TABLE + TEST + LOOP + "    def get(): return config\n",
        TABLE + TEST + LOOP + "    assert getattr(config, 'model') == make().model\n",
        TABLE + TEST.replace("config = make()", "configs = [make()]\n    config = configs[0]") + LOOP,
        TABLE + TEST.replace("config = make()", "config = other = make()") + LOOP,
        TABLE + HELPER + TEST + "    apply(make, overrides)\n    apply(other, overrides)\n",
        TABLE + TEST + "    model = config.model\n" + LOOP.replace("config.model", "model"),
        TABLE + HELPER.replace("):\n", "):\n    print(config)\n", 1) + TEST + "    apply(make, overrides)\n",
        TABLE + "def show(c):\n    print(c)\n" + TEST + LOOP + "    show(config)\n",
        TABLE + TEST.replace("overrides):", "overrides, show):") + LOOP + "    show(config)\n",
        TABLE
        + TEST.replace("(make, overrides)", "(make, overrides, config)").replace("    config =", "    _ =")
        + LOOP,
        TABLE + HELPER + TEST.replace("overrides):", "overrides, apply):") + "    apply(make, overrides)\n",
        TABLE + HELPER + TEST + "    from strict import apply\n    apply(make, overrides)\n",
        TABLE + HELPER + "apply = strict(apply)\n" + TEST + "    apply(make, overrides)\n",
        TABLE + TEST + LOOP + "test_a = strict(test_a)\n",
        TABLE + TEST.replace("@pytest", "@strict\n@pytest") + LOOP,
        TABLE + TEST + LOOP + "NAMES = globals()\n",
        TABLE + TEST + LOOP + "@pytest.fixture(autouse=True)\ndef check(overrides): pass\n",
        TABLE + TEST + LOOP + "@pytest.fixture\ndef check(request): return request.module.ROWS\n",
        TABLE + TEST + LOOP + "def pytest_make_parametrize_id(config, val): pass\n",
        TABLE + TEST + LOOP + "COPY = ROWS[0]\n",
        TABLE + "ROWS += [(make, {})]\n" + TEST + LOOP,
        TABLE + "def test_b(): assert ROWS\n" + TEST + LOOP,
        TABLE + "def test_b(ROWS): pass\n" + TEST + LOOP,
        TABLE + TEST.replace("ROWS)", "ROWS, ids=str)") + LOOP,
        TABLE + TEST.replace("ROWS)", "ROWS, indirect=True)") + LOOP,
        TABLE + TEST.replace("ROWS)", "ROWS + ROWS)") + LOOP,
        TABLE + TEST.replace("make,overrides", "make,a,overrides") + LOOP,
        TABLE + HELPER.replace("if overrides:", "if overrides.get('a'):") + TEST + "    apply(make, overrides)\n",
        TABLE + HELPER.replace("def", "@cached\ndef") + TEST + "    apply(make, overrides)\n",
        TABLE + HELPER + TEST + "    apply(make, None, overrides)\n",
        TABLE + HELPER + TEST + "    other(config, overrides)\n",
        TABLE + HELPER + TEST + "    apply(*[make], overrides)\n",
        'ROWS = [(make, {**BASE, "cuda_graph_scope": []})]\n' + TEST + LOOP,
        'OWN = {"cuda_graph_scope": []}\nROWS = [(make, {**OWN})]\n' + TEST + LOOP,
        TABLE + TEST + LOOP + "    with pytest.raises(ValueError): config.finalize()\n",
        TABLE + TEST + LOOP + "    with pytest.warns(DeprecationWarning): config.finalize()\n",
        TABLE + TEST + LOOP + "    try: config.finalize()\n    except AssertionError: pass\n",
        TABLE + TEST.replace("overrides):", "overrides, caplog):") + LOOP,
        TABLE + TEST.replace("test_a", "test_deprecated") + LOOP,
        NESTED + TEST + LOOP,
        NESTED + TEST + LOOP_OF_NESTED.replace("for key", "assert own\n        for key"),
        'ROWS = [(make, {"a": {"model": {"cuda_graph_scope": []}}})]\n' + TEST + LOOP_OF_NESTED,
    ],
)
def test_entries_with_another_use(text: str, tmp_path: Path) -> None:
    assert entries_in(text, tmp_path) is None


IN_CLASS = """
class TestA:
    @pytest.mark.parametrize("make,overrides", ROWS)
    def test_a(self, make, overrides):
        config = make()
        for key, value in overrides.items():
            setattr(config.model, key, value)
"""


def test_a_test_of_a_class(tmp_path: Path) -> None:
    assert entries_in(TABLE + IN_CLASS, tmp_path) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class TestA:", "@strict\nclass TestA:"),
        ("class TestA:", "class TestA(Base):"),
        ("class TestA:", "class TestA(metaclass=Strict):"),
        ("class TestA:", "class TestA:\n    def setup_method(self, method): method()\n"),
        ("        config = make()", "        self.config = config = make()"),
        ("config = make()", "config = self.missing()"),
        ("config.model,", "self.config.model,"),
    ],
)
def test_a_class_that_may_see_its_tests(old: str, new: str, tmp_path: Path) -> None:
    assert entries_in(TABLE + IN_CLASS.replace(old, new), tmp_path) is None


MAKING = """    def get(self, make):
        config = make()
        config.train.iters = 1
        return config
"""


@pytest.mark.parametrize(
    ("old", "new", "is_known"),
    [
        ("", "", True),
        ("        return", "        self.config = config\n        return", False),
        ("        return config", "        return wrap(config)", False),
        ("        return", "        KEPT.append(config)\n        return", False),
        ("        config.train.iters = 1\n", "        config.model.finalize\n", True),
        ("    def get", "    @cached\n    def get", False),
    ],
)
def test_a_method_that_makes_an_object(old: str, new: str, is_known: bool, tmp_path: Path) -> None:
    text = TABLE + IN_CLASS.replace("config = make()", "config = self.get(make)") + "\n" + MAKING.replace(old, new)

    assert (entries_in(text, tmp_path) is not None) is is_known


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest", "def pytest_runtest_call(item): print(item.funcargs)\n"),
        ("conftest", "def pytest_runtest_setup(item): print(item.function.pytestmark)\n"),
        ("conftest", "import pytest\n@pytest.fixture(autouse=True)\ndef check(overrides): pass\n"),
        ("conftest", "import pytest\n@pytest.fixture(autouse=True)\ndef check(request): request.module.apply = 1\n"),
        ("test_b", "def test_b(monkeypatch): monkeypatch.setattr('builtins.setattr', print)\n"),
        ("test_b", "import os, importlib\nfor one in os.listdir('.'): importlib.import_module(one[:-3])\n"),
    ],
)
def test_code_of_other_files_that_may_see_a_test(name: str, text: str, tmp_path: Path) -> None:
    assert entries_in(TABLE + TEST + LOOP, tmp_path, **{name: text}) is None


def test_a_file_that_another_one_names_may_be_imported(tmp_path: Path) -> None:
    text = TABLE + TEST + LOOP

    assert entries_in(text, tmp_path, test_b="from test_a import ROWS\n") is None
    assert entries_in(text, tmp_path, test_b="from test_c import ROWS\n") is not None


@pytest.mark.parametrize("names", ["5", "None", "[1, 2]", 'b"make,overrides"', '("make", ["overrides"])', '""'])
def test_names_that_are_none(names: str, tmp_path: Path) -> None:
    assert entries_in(TABLE + TEST.replace('"make,overrides"', names) + LOOP, tmp_path) is None
