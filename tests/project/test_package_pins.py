"""The pins of packages other than megatron-core: on which side of a version they are."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cgmigrate.megatron import packages
from cgmigrate.megatron.rule_data import load_yaml, rules_folder
from cgmigrate.project.pins import package_pins
from cgmigrate.project.pins.package_pins import pin_below, side_of
from cgmigrate.project.pins.version_ranges import is_below
from tests.support.files import write
from tests.support.tables import table_of

TE = "https://github.com/NVIDIA/TransformerEngine.git"
LOCK = 'version = 1\n\n[[package]]\nname = "{}"\nversion = "{}"\nsource = {}\n'
REGISTRY = '{ registry = "https://example.org/simple" }'
OLD = table_of(__name__, "OLD")
OPEN = table_of(__name__, "OPEN")
NEW = [
    ("requirements.txt", "transformer-engine==2.12.0\n"),
    ("requirements.txt", "transformer-engine>=2.12\n"),
    ("requirements.txt", f"transformer-engine @ git+{TE}@release_v2.15\n"),
    ("uv.lock", LOCK.format("transformer-engine", "2.15.0+42b8400", f'{{ git = "{TE}?rev=abc#abc" }}')),
]
SIDES = [*((*one, True) for one in OLD), *((*one, None) for one in OPEN), *((*one, False) for one in NEW)]


@pytest.mark.parametrize(("name", "text", "side"), SIDES)
def test_a_pin_is_below_a_version_above_or_open(project: Path, name: str, text: str, side: bool | None) -> None:
    write(name, text)
    assert side_of(project, "transformer-engine", "2.12") is side


def test_a_build_of_nvidia_counts_as_its_number(project: Path) -> None:
    write("requirements.txt", "torch==2.9.0a0+145a3a7bda.nv25.10\n")
    assert side_of(project, "torch", "2.9.0a0") is False
    write("new/requirements.txt", "torch==2.8.0+cu128\ntorchvision==0.99\n")
    assert side_of(project / "new", "torch", "2.9.0a0") is True


def test_a_lock_file_decides_unless_another_pin_contradicts_it(project: Path) -> None:
    write("uv.lock", LOCK.format("transformer-engine", "2.11.0", REGISTRY))
    write("pyproject.toml", '[project]\ndependencies = ["transformer-engine>=2.3"]\n')
    assert side_of(project, "transformer-engine", "2.12") is True
    assert pin_below(project, "transformer-engine", "2.12") == "`transformer-engine==2.11.0` (uv.lock:5)"
    package_pins._pins_in.cache_clear(), package_pins._nearest.cache_clear()
    write("docker/Dockerfile", "RUN pip install transformer-engine==2.13\n")
    assert side_of(project, "transformer-engine", "2.12") is None
    assert pin_below(project, "transformer-engine", "2.12") == ""


def test_a_lock_file_decides_on_what_an_image_has_but_not_on_what_a_container_installs(project: Path) -> None:
    write("uv.lock", LOCK.format("transformer-engine", "2.11.0", REGISTRY))
    write("Dockerfile", "FROM nvcr.io/nvidia/pytorch:25.09-py3\nRUN uv sync --locked\n")
    assert side_of(project, "transformer-engine", "2.12") is True
    write("lts/uv.lock", LOCK.format("transformer-engine", "2.11.0", REGISTRY))
    write("lts/Dockerfile", f"RUN pip install git+{TE}@b9d690e\n")
    assert side_of(project / "lts", "transformer-engine", "2.12") is None


def test_a_package_that_the_project_does_not_install_itself_has_any_version(project: Path) -> None:
    write("uv.lock", LOCK.format("torch", "2.6.0", REGISTRY))
    write("pyproject.toml", "[tool.uv]\noverride-dependencies = [\n  \"torch; sys_platform == 'never'\",\n]\n")
    assert side_of(project, "torch", "2.9.0a0") is None


def test_the_nearest_folder_with_a_pin_of_the_package_decides(project: Path) -> None:
    write("requirements.txt", "transformer-engine==2.9\ntorch==2.8\n")
    write("new/requirements.txt", "transformer-engine==2.13\n")
    assert side_of(project / "new", "transformer-engine", "2.12") is False
    assert side_of(project / "new", "torch", "2.9.0a0") is True


def test_pins_outside_of_the_checkout_do_not_count(project: Path) -> None:
    write("requirements.txt", "transformer-engine==2.9\n")
    (project / "inner/.git").mkdir(parents=True)
    assert side_of(project / "inner", "transformer-engine", "2.12") is None


VERSIONS = st.sampled_from(["2.6", "2.7.0", "2.7.1", "2.8.0rc1", "2.8.0", "2.9.0a0", "2.9", "2.10.0", "3.0"])
CLAUSES = st.tuples(st.sampled_from(["==", ">=", "<=", "<", ">", "!=", "~="]), VERSIONS).map("".join)
EVERY = [
    Version(f"{major}.{minor}.{micro}{suffix}")
    for major, minor in [*((2, minor) for minor in range(4, 13)), (3, 0), (3, 1)]
    for micro in range(3)
    for suffix in (".dev0", "a0", "a1", "rc1", "", ".post1")
]


@given(st.lists(CLAUSES.filter(lambda clause: clause != "~=3"), min_size=1, max_size=3), VERSIONS)
def test_a_range_is_on_the_side_on_which_all_its_versions_are(clauses: list[str], limit: str) -> None:
    specifier = SpecifierSet(",".join(clauses))
    sides = {version < Version(limit) for version in EVERY if specifier.contains(version, prereleases=True)}
    side = is_below([specifier], limit)
    if side is None:
        # Nothing that the specifier admits may be among a few versions.
        assert len(sides) != 1 or len(clauses) > 1
    else:
        assert sides <= {side}


@pytest.mark.parametrize("name", sorted(packages.names()))
def test_a_package_fits_its_schema(name: str) -> None:
    schema = json.loads((rules_folder() / "packages/schema.json").read_text())
    path = rules_folder() / f"packages/{name}.yaml"
    jsonschema.validate(load_yaml(path.read_text(), str(path)), schema)
    assert packages.package(name).names[0] == name


def test_a_lock_file_decides_before_the_range_of_the_project(project: Path, cgmigrate) -> None:
    write("pyproject.toml", '[project]\nname = "x"\nversion = "1"\ndependencies = ["transformer-engine>=2.9"]\n')
    write("uv.lock", LOCK.format("transformer-engine", "2.11.0+abc", f'{{ git = "{TE}?rev=abc#abc" }}'))
    model = "--num-experts 8 --overlap-moe-expert-parallel-comm --disable-bias-linear"
    graphs = "--cuda-graph-impl transformer_engine --cuda-graph-modules attn"
    write("a.sh", f"torchrun pretrain_gpt.py {model} --overlap-grad-reduce --delay-wgrad-compute \\\n    {graphs}\n")
    findings = json.loads(cgmigrate("check", "--from", "0.19", "--format", "json", "a.sh").stdout)["findings"]
    assert [(one["rule"], one["severity"]) for one in findings] == [("CG440", "error")]
