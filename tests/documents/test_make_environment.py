"""Variables that makefiles export to commands, judged by GNU make, which runs the recipes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cgmigrate.documents.embedded.makefile import MakeDocument
from cgmigrate.megatron.settings import Missing, Undecided

RUN = "torchrun pretrain_gpt.py --cuda-graph-impl local"
RULE = f"train:\n\t{RUN}\n"
PROGRAM = '#!/bin/sh\necho "${NAME-not set}"\n'
MAKEFILES = [
    (RULE, Missing.ABSENT),
    (f"export NAME = a\n{RULE}", "a"),
    (f"export NAME := a b\n{RULE}", "a b"),
    (f"{RULE}export NAME = a\n", "a"),
    (f"NAME = a\n{RULE}", Missing.ABSENT),
    (f"NAME = a\nexport NAME\n{RULE}", "a"),
    (f"NAME = a\nexport OTHER NAME\n{RULE}", "a"),
    (f"NAME = a\nexport OTHER\n{RULE}", Missing.ABSENT),
    (f"NAME = a\nexport\n{RULE}", "a"),
    (f"NAME = a\n.EXPORT_ALL_VARIABLES:\n{RULE}", "a"),
    (f"NAMES = a\nexport\n{RULE}", Missing.ABSENT),
    (f"export NAME = b\ntrain:\n\tNAME=a {RUN}\n", "a"),
    (f"train:\n\texport NAME=a; {RUN}\n", "a"),
    (f"train:\n\texport NAME=a\n\t{RUN}\n", Missing.ABSENT),
    (f"export NAME = a\nexport NAME = b\n{RULE}", Missing.UNKNOWN),
    (f"export NAME = a\nunexport NAME\n{RULE}", Missing.UNKNOWN),
    (f"export NAME ?= a\n{RULE}", Missing.UNKNOWN),
    (f"export NAME += a\n{RULE}", Missing.UNKNOWN),
    (f"ifdef FLAG\nexport NAME = a\nendif\n{RULE}", Missing.UNKNOWN),
    (f"NAME = a\nifdef FLAG\nexport NAME\nendif\n{RULE}", Missing.UNKNOWN),
    (f"train: export NAME = a\n{RULE}", Missing.UNKNOWN),
    (f"define SET\nNAME=a\nendef\ntrain:\n\t$(SET) {RUN}\n", Missing.UNKNOWN),
    (f"SET = NAME=a\ntrain:\n\t$(SET) {RUN}\n", Missing.UNKNOWN),
    (f"-include other.mk\n{RULE}", Missing.UNKNOWN),
    (f"OTHER = a\nexport NAME = $(OTHER)\n{RULE}", Undecided),
]
"""Makefiles, and what is read: the text that a command gets, or that the file does not show it."""


@pytest.mark.parametrize(("text", "expected"), MAKEFILES)
def test_a_command_gets_what_is_read(text: str, expected: object, tmp_path: Path) -> None:
    document = MakeDocument(text)
    value = document.variable_at(document.sites[0].written[0].span.start, "NAME")
    assert type(value) is expected if isinstance(expected, type) else value == expected

    if isinstance(value, str) or value is Missing.ABSENT:
        assert what_make_gives(text, tmp_path) == ("not set" if value is Missing.ABSENT else value)


def what_make_gives(text: str, folder: Path) -> str:
    if shutil.which("make") is None:
        pytest.skip("the judge is GNU make")
    program = folder / "torchrun"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (folder / "Makefile").write_text(text)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["make", "-s", "train"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()
