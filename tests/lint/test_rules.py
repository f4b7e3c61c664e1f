"""Rules: the schema, the examples of every rule, and clear errors for a rule that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from cgmigrate import megatron
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.conditions import ConditionState
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.kinds import KINDS, CheckKind, rule_for
from cgmigrate.lint.rule_tests import FileExample, failures_of
from cgmigrate.lint.rules import RuleKind, load, matching_case, read
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder, upgrade_rules
from cgmigrate.megatron.settings import FIELDS, Undecided
from tests.support.plans import examine
from tests.support.tables import from_table

RULES = load()
OWNERS = ecosystems.load()
EXAMPLES = [(rule.id, number, example) for rule in RULES.values() for number, example in enumerate(rule.examples)]


@pytest.mark.parametrize("path", sorted(rules_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_a_rule_that_ships_fits_the_schema_and_its_file_name(path: Path) -> None:
    rule = read(path, checked=True)
    assert path.stem == f"{rule.id}-{rule.name}"


@pytest.mark.parametrize("path", sorted((rules_folder() / "ecosystems").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_ecosystem_fits_its_schema(path: Path) -> None:
    schema = json.loads((rules_folder() / "ecosystems/schema.json").read_text())
    jsonschema.validate(load_yaml(path.read_text(), str(path)), schema)


def test_ids_and_names_are_distinct() -> None:
    names = [rule.name for rule in RULES.values()]
    assert len(set(names)) == len(names)


def test_every_rule_has_an_example_that_it_reports() -> None:
    assert {rule for rule in RULES if not any(shown for _, shown in _examples(rule))} == set()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_an_example_that_it_does_not_report(rule: str) -> None:
    texts = [text for text, shown in _examples(rule) if not shown]
    assert texts
    assert all("cuda_graph" in text or "cuda-graph" in text or "CudaGraph" in text for text in texts)


def _examples(rule: str) -> list[tuple[str, bool]]:
    """The texts of a rule's examples, and whether the rule reports them."""
    return [(example["before"], example.get("reported", True)) for example in RULES[rule].examples]


@pytest.mark.parametrize(("rule", "number", "example"), EXAMPLES, ids=[f"{i}-{n}" for i, n, _ in EXAMPLES])
def test_an_example_is_what_happens(rule: str, number: int, example: dict) -> None:
    assert failures_of(RULES[rule], example, RULES) == []


def test_a_command_reports_nothing_of_an_example_that_no_rule_rewrites(project: Path, cgmigrate) -> None:
    quiet = [(rule, example) for rule, _, example in EXAMPLES if not example.get("reported", True)]
    assert len(quiet) >= len(RULES)
    for number, (rule, example) in enumerate(quiet):
        names = {"python": "a.py", "yaml": "a.yaml", "markdown": "a.md", "shell": "a.sh", "toml": "a.toml"}
        path = Path(str(number), names[example["syntax"]])
        path.parent.mkdir()
        path.write_bytes(FileExample(example).content(example["before"]))
        for name, text in example.get("beside", {}).items():
            (path.parent / name).write_text(text)
        releases = [word for name in ("from", "to") if name in example for word in (f"--{name}", example[name])]
        result = cgmigrate("check", *releases, str(path))
        assert rule not in result.stdout
        assert "after" in example or result.exit_code == 0, result.stdout


def test_every_rejection_code_has_a_rule() -> None:
    import re

    source = "".join(path.read_text() for path in Path(megatron.__file__).parent.glob("*.py"))
    codes = set(re.findall(r'Rejected(?:Error)?\(\s*"([a-z-]+)"', source)) | {"bad-impl", "bad-value"}
    shown: set[str] = set()
    for rule in RULES.values():
        for case in rule.cases:
            rejected = case.when.get("rejected", [])
            shown |= {rejected} if isinstance(rejected, str) else set(rejected)
    assert codes == shown


def test_conditions_and_fixes_name_settings_only() -> None:
    for rule in RULES.values():
        for case in rule.cases:
            if case.fix:
                renamed = {rename.to for rename in case.fix.rename.values()}
                assert {*case.fix.set, *case.fix.remove, *case.fix.rename, *case.fix.drop} | renamed <= set(FIELDS)


GOOD = """\
id: TEAM001
name: our-rule
summary: we do not use graphs in inference
fields: [inference_cuda_graph_scope]
when:
  inference_cuda_graph_scope: block
message: our servers run eagerly
explanation: The servers of this team run without graphs, so the block scope is a mistake here.
sources: [the team's runbook]
"""


def load_text(tmp_path: Path, text: str) -> dict:
    (tmp_path / "rule.yaml").write_text(text)
    return load([tmp_path])


def test_a_team_adds_its_own_rules(tmp_path: Path) -> None:
    rules = load_text(tmp_path, GOOD)
    document = YamlDocument("megatron_cfg:\n  cuda_graph_impl: local\n  inference_cuda_graph_scope: block\n")
    (diagnostic,) = examine(document, Context(LAST_OLD, NEWEST, rules, OWNERS)).diagnostics
    assert (diagnostic.rule, diagnostic.message) == ("TEAM001", "our servers run eagerly")


@from_table
def test_a_wrong_rule_is_reported_with_file_line_and_what_is_expected(
    tmp_path: Path, wrong: str, right: str, line: int, expected: str
) -> None:
    assert wrong in GOOD
    with pytest.raises(RuleError) as error:
        load_text(tmp_path, GOOD.replace(wrong, right, 1))
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'rule.yaml'}:{line}: "), message
    assert expected in message


def test_an_id_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="CG101 is already defined in"):
        load_text(tmp_path, GOOD.replace("TEAM001", "CG101"))


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="not a folder of rules"):
        load([tmp_path / "nowhere"])


@pytest.mark.parametrize("path", sorted(rules_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_a_rule_that_ships_says_its_kind(path: Path) -> None:
    assert "kind" in load_yaml(path.read_text(encoding="utf-8"), str(path))


def test_kinds_of_the_schema_are_those_of_the_loader() -> None:
    schema = json.loads((rules_folder() / "schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["kind"]["enum"] == [str(kind) for kind in RuleKind]


def test_a_rule_without_a_kind_is_a_companion(tmp_path: Path) -> None:
    assert load_text(tmp_path, GOOD)["TEAM001"].kind is RuleKind.COMPANION
    assert load_text(tmp_path, GOOD.replace("name:", "kind: ecosystem\nname:"))["TEAM001"].kind is RuleKind.ECOSYSTEM


def test_one_rule_reports_each_kind_of_problem_and_check() -> None:
    every = load([Path(upgrade_rules())]).values()
    reported = [rule.reports for rule in every if rule.reports]
    assert sorted(reported) == sorted(str(kind) for kind in KINDS)
    schema = json.loads((rules_folder() / "schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["reports"]["enum"] == [str(kind) for kind in KINDS]


def test_a_rule_reports_a_kind_or_has_conditions() -> None:
    assert all(bool(rule.reports) is not bool(rule.cases) for rule in RULES.values())


def test_rules_about_files_are_always_enabled() -> None:
    assert {rule_for(kind, RULES).kind for kind in CheckKind} == {RuleKind.FILE}


def test_a_second_rule_for_a_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="CG603 already reports read "):
        load_text(tmp_path, GOOD.replace("name:", "reports: read\nname:"))


@pytest.mark.parametrize(
    ("range_", "reported"),
    [
        ("since: '0.18'", {"0.18", "0.19"}),
        ("until: '0.18'", {"0.16", "0.17", "0.18"}),
        ("since: '0.17'\nuntil: '0.18'", {"0.17", "0.18"}),
        ("since: '0.18'\nuntil: '0.18'", {"0.18"}),
        ("deprecated-in: '0.18'", {"0.18", "0.19"}),
    ],
)
def test_a_rule_is_silent_outside_its_range(tmp_path: Path, range_: str, reported: set[str]) -> None:
    rule = GOOD.replace("inference_cuda_graph_scope", "cuda_graph_impl").replace(": block", ": local")
    rules = load_text(tmp_path, rule.replace("when:", f"{range_}\nwhen:"))
    document = YamlDocument("megatron_cfg:\n  cuda_graph_impl: local\n")
    codes = {
        str(target): [one.rule for one in examine(document, Context(target, target, rules, OWNERS)).diagnostics]
        for target in (Release(0, minor) for minor in range(16, 20))
    }
    assert {target for target, reports in codes.items() if "TEAM001" in reports} == reported


@from_table
def test_a_case_after_one_that_is_unknown(tmp_path: Path, advice: str, matched: list[str | None]) -> None:
    cases = (
        "cases:\n"
        f"  - {{when: {{cuda_graph_impl: local}}, message: local, {advice}}}\n"
        f"  - {{when: {{inference_cuda_graph_scope: block}}, message: block, {advice}}}\n"
    )
    before, _, after = GOOD.partition("when:")
    rule = load_text(tmp_path, before + cases + after[after.index("explanation") :])["TEAM001"]
    computed = Undecided("${oc.env:IMPL}", "an interpolation")
    messages = []
    for impl in ("none", computed, "local"):
        state = ConditionState(
            {"cuda_graph_impl": impl, "inference_cuda_graph_scope": "block"}, "config", LAST_OLD, NEWEST
        )
        case = matching_case(rule, state)
        messages.append(case and case.message)
    assert messages == matched


def test_what_is_for_people_is_read_when_it_is_requested() -> None:
    for path, lazily in ((Path(rule.path), rule) for rule in load().values()):
        whole = read(path)
        assert lazily.about is None and whole.about is not None
        assert (lazily.explanation, lazily.sources, lazily.examples) == (
            whole.explanation,
            whole.sources,
            whole.examples,
        )
        # Conditions are functions, and do not compare.
        parts = [[replace(case, condition=always) for case in rule.cases] for rule in (lazily, whole)]
        assert parts[0] == parts[1]
        assert replace(lazily, cases=()) == replace(whole, cases=(), about=None)


def always(_state: object) -> bool:
    return True


def test_the_rules_that_ship_are_read_once(tmp_path: Path) -> None:
    one, other = load(), load()
    assert one == other and one is not other and all(one[name] is other[name] for name in one)
    one.clear()
    assert load() == other
    assert load([tmp_path]).keys() == other.keys()
