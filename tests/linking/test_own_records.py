"""Parameters whose annotation is a class of the project's own with the names of settings."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from pathlib import Path

from cgmigrate.proof.flow.modules import Modules
from cgmigrate.linking.python.own_objects import own_parameters

RECORD = "class Preset:\n    cuda_graph_scope: str | None = None\n"
READER = "from records import Preset\n\n\ndef is_full(preset: Preset):\n    return preset.cuda_graph_scope == 'full'\n"


def _records(folder: Path, **files: str) -> frozenset[str]:
    """Return the parameters of the function of `READER` that are records, beside some files."""
    for name, text in {"records": RECORD, "reader": READER, **files}.items():
        (folder / f"{name}.py").write_text(text)
    paths = [str(path) for path in folder.iterdir()]

    def files_with(words: Collection[str]) -> Iterable[str]:
        return [path for path in paths if any(word in Path(path).read_text() for word in words)]

    modules = Modules({}, lambda _path, text: ast.parse(text), lambda: paths, files_with)
    module = modules.read(str(folder / "reader.py"))
    assert module is not None
    function = module.bindings["is_full"]
    assert isinstance(function, ast.FunctionDef)
    return own_parameters(function, module, modules)[0]


def test_an_annotation_with_a_class_of_the_project_says_that_a_parameter_is_a_record(tmp_path: Path) -> None:
    assert _records(tmp_path) == {"preset"}


def test_an_object_of_a_class_that_derives_from_a_record_may_be_a_model(tmp_path: Path) -> None:
    provider = "from records import Preset as Own\n\n\nclass Tuned(GPTModelProvider, Own):\n    pass\n"

    assert _records(tmp_path, tuned=provider) == frozenset()


def test_a_class_of_a_test_counts_as_well(tmp_path: Path) -> None:
    fake = "import records\n\n\nclass Fake(Model, records.Preset):\n    pass\n"

    assert _records(tmp_path, test_tuned=fake) == frozenset()
