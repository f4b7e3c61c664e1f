"""Mistakes in a team's entries of the catalogue: each is one sentence with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.rule_data import RuleError
from tests.support.teams import ENTRY, write_entries

NEW = "summary: The backend that shuffles tokens\nkind: {kind}\nowner: our_package.OurConfig\n{more}sources: [ours]\n"


def error(folder: Path, **entries: str) -> str:
    """The error of a folder with entries, without the path of the folder."""
    with pytest.raises(RuleError) as caught:
        load([write_entries(folder, **entries)])
    return str(caught.value).removeprefix(f"{folder}/settings/")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("replaced-by", "replacedby", ":5: the setting: 'replacedby' is not a key; did you mean replaced-by?"),
        (
            "deprecated-in",
            "deprecated_in",
            ":4: the setting: 'deprecated_in' is not a key; did you mean deprecated-in?",
        ),
        ('"0.18"', '"0.18.2"', ":4: deprecated-in: '0.18.2' does not have the form ^[0-9]+\\.[0-9]+$; expected a rel"),
        ('"0.18"', '"0.99"', ":4: deprecated-in: 0.99 is not known yet; the newest release is "),
        ('"0.18"', '"0.18"\nsince: "0.19"', ":4: deprecated-in: 0.18 is before `since` (0.19)"),
        ('"0.18"', '"0.18"\nsince: "0.17"\nuntil: "0.16"', ":6: until: 0.16 is before `since` (0.17)"),
        ("old: slow", "old: fast", ":8: values: fast is listed twice"),
        ("kind: choice", "kind: flag", ":7: values: fast is not a value of a flag; write true, false or null"),
        ("kind: choice", "kind: number", ":7: values: fast is not a value of a number; write a number or null"),
        ("values:", "choices: [fast, quick]\nvalues:", ":9: values: slow is not one of the `choices` (fast, quick)"),
        ("our_package.OurConfig", "TransformerConfg", ":3: owner: TransformerConfg is no class of megatron-core; a"),
        (
            "sources:",
            "keys: {megatron-brige: [a.b]}\nsources:",
            ":9: keys: megatron-brige is not an ecosystem; did you",
        ),
        ("sources:", "no-flag: --no-kernels\nsources:", ":9: --no-kernels is not rewritten with the setting: write an"),
        ("sources:", "kind: flag\nsources:", ":9: the key 'kind' is written twice"),
        ("summary: The kernels that shuffle tokens", "summary: short", ":1: summary: 'short' has fewer than 10 charac"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = ENTRY.replace(old, new, 1)
    assert text != ENTRY
    message = error(tmp_path, shuffle_kernels=text)
    assert message.startswith(f"shuffle_kernels.yaml{reason}")
    assert "\n" not in message


@pytest.mark.parametrize("change", [("kind: choice", "kind: text"), ('"0.18"', '"0.18"\nsince: "0.15"\nuntil: "0.19"')])
def test_an_entry_without_a_mistake_is_accepted(tmp_path: Path, change: tuple[str, str]) -> None:
    assert "shuffle_kernels" in load([write_entries(tmp_path, shuffle_kernels=ENTRY.replace(*change))])


@pytest.mark.parametrize(
    ("kind", "more", "reason"),
    [
        ("choice", "choices: [triton]\n", ":7: values: fused is not one of the choices of shuffle_backend (triton)"),
        ("number", "", ":7: values: fused is not a value of shuffle_backend, which is a number"),
        ("number", "default: true\n", ":4: default: true is not a value of a number; write a number or null"),
        ("number", "default: many\n", ":4: default: many is not a value of a number; write a number or null"),
    ],
)
def test_the_values_are_those_of_the_replacement(tmp_path: Path, kind: str, more: str, reason: str) -> None:
    assert reason in error(tmp_path, shuffle_kernels=ENTRY, shuffle_backend=NEW.format(kind=kind, more=more))


def test_settings_that_replace_each_other_are_an_error(tmp_path: Path) -> None:
    back = ENTRY.replace("shuffle_backend", "shuffle_kernels")
    assert error(tmp_path, shuffle_kernels=ENTRY, shuffle_backend=back) == (
        "shuffle_backend.yaml:5: the settings replace each other in a circle"
    )


def test_the_replacement_of_a_field_of_megatron_is_one_as_well(tmp_path: Path) -> None:
    entry = ENTRY[: ENTRY.index("values")] + 'since: "0.13"\nsources: [ours]\n'
    entry = entry.replace("our_package.OurConfig", "TransformerConfig")
    message = error(tmp_path, moe_deepep_num_sms=entry.replace("shuffle_backend", "moe_flex_dispatcher_num_sm"))
    assert message == (
        "moe_deepep_num_sms.yaml:5: replaced-by: TransformerConfig has no moe_flex_dispatcher_num_sm in any release; "
        "did you mean moe_flex_dispatcher_num_sms?"
    )
    # An entry of its own says that a fork has it.
    new = NEW.format(kind="number", more="").replace("our_package.OurConfig", "TransformerConfig")
    load([write_entries(tmp_path, moe_flex_dispatcher_num_sm=new)])


def test_a_file_with_another_ending_is_not_silently_unread(tmp_path: Path) -> None:
    folder = write_entries(tmp_path, shuffle_kernels=ENTRY)
    (tmp_path / "settings/other_kernels.yml").write_text(ENTRY)
    with pytest.raises(RuleError, match=r"other_kernels.yml: the name of a file of settings ends in .yaml"):
        load([folder])
