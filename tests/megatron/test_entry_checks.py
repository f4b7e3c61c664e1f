"""Mistakes in a team's entries of the catalogue: each is one sentence with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.rule_data import RuleError
from tests.support.tables import from_table
from tests.support.teams import ENTRY, write_entries

NEW = "summary: The backend that shuffles tokens\nkind: {kind}\nowner: our_package.OurConfig\n{more}sources: [ours]\n"


def error(folder: Path, **entries: str) -> str:
    """The error of a folder with entries, without the path of the folder."""
    with pytest.raises(RuleError) as caught:
        load([write_entries(folder, **entries)])
    return str(caught.value).removeprefix(f"{folder}/settings/")


@from_table
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = ENTRY.replace(old, new, 1)
    assert text != ENTRY
    message = error(tmp_path, shuffle_kernels=text)
    assert message.startswith(f"shuffle_kernels.yaml{reason}")
    assert "\n" not in message


@pytest.mark.parametrize("change", [("kind: choice", "kind: text"), ('"0.18"', '"0.18"\nsince: "0.15"\nuntil: "0.19"')])
def test_an_entry_without_a_mistake_is_accepted(tmp_path: Path, change: tuple[str, str]) -> None:
    assert "shuffle_kernels" in load([write_entries(tmp_path, shuffle_kernels=ENTRY.replace(*change))])


@from_table
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
    new = NEW.format(kind="number", more="{fork}").replace("our_package.OurConfig", "TransformerConfig")
    folder = write_entries(tmp_path, moe_flex_dispatcher_num_sm=new.format(fork="fork: ours\n"))
    load([folder])
    assert "has no moe_flex_dispatcher_num_sm in any release; did you mean moe_flex_dispatcher_num_sms? If a fork" in (
        error(tmp_path, moe_flex_dispatcher_num_sm=new.format(fork=""))
    )


@pytest.mark.parametrize("owner", ["TransformerConfig", "training.Arguments"])
@pytest.mark.parametrize("more", ["", 'until: "0.17"\n'])
def test_a_name_that_no_release_has_is_that_of_a_fork(tmp_path: Path, owner: str, more: str) -> None:
    entry = f"{ENTRY[: ENTRY.index('values')]}sources: [ours]\n{more}".replace("our_package.OurConfig", owner)
    assert f"owner: {owner} has no shuffle_kernels in any release" in error(tmp_path, shuffle_kernels=entry)
    new = NEW.format(kind="choice", more="").replace("our_package.OurConfig", owner)
    assert "shuffle_backend in any release" in error(
        tmp_path, shuffle_kernels=f"{entry}fork: ours\n", shuffle_backend=new
    )
    load([write_entries(tmp_path, shuffle_backend=f"{new}fork: ours\n")])


def test_a_file_with_another_ending_is_not_silently_unread(tmp_path: Path) -> None:
    folder = write_entries(tmp_path, shuffle_kernels=ENTRY)
    (tmp_path / "settings/other_kernels.yml").write_text(ENTRY)
    with pytest.raises(RuleError, match=r"other_kernels.yml: the name of a file of settings ends in .yaml"):
        load([folder])
