"""Variables of the environment, judged by generated scripts that are run: each site says what it gets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.sites import Document
from cgmigrate.megatron.settings import Missing, Undecided
from tests.support.nightly import examples

NOT_SET = "not set"
RUN = "torchrun --cuda-graph-impl local --site SITE"
PROGRAM = f'#!/bin/sh\nwhile [ "$1" != --site ]; do shift; done\necho "$2 ${{NAME-{NOT_SET}}}"\n'
COMMANDS = st.lists(
    st.sampled_from(
        [
            RUN,
            RUN,
            f"NAME=a {RUN}",
            f"env NAME=b {RUN}",
            f"bash -c '{RUN}'",
            f"bash -c 'NAME=c {RUN}'",
            "export NAME=d",
            "NAME=e",
            "export NAME",
            "unset NAME",
            "set -a",
            "set +a",
            "export NAME=$OTHER",
            "export NAME+=f",
            "declare -x NAME=g",
            "(export NAME=h)",
            f"(export NAME=i; {RUN})",
            "set_up() { export NAME=j; }",
            "type set_up > /dev/null 2>&1 && set_up",
            f'if [ -n "$FLAG" ]; then\n  export NAME=k\n  {RUN}\nfi',
            f'if [ -n "$FLAG" ]; then\n  export NAME=l\nelse\n  {RUN}\nfi',
            f"for at in 1 2; do\n  {RUN}\n  export NAME=m\ndone",
            '[ -z "$FLAG" ] && export NAME=n',
            f"export NAME=o && {RUN}",
            f"NAME=p\nOPTIONS='NAME=q'\nenv $OPTIONS {RUN}",
            f"cat <<EOF > /dev/null\nNAME=r\nEOF\n{RUN}",
        ]
    ),
    min_size=1,
    max_size=6,
)


def numbered(text: str) -> str:
    """The text with a number for each site."""
    first, *others = text.split("SITE")
    return first + "".join(f"{number}{other}" for number, other in enumerate(others))


def read(document: Document, text: str) -> dict[str, object]:
    """The value at each site, by its number."""
    values = {}
    for site in document.sites:
        start = site.written[0].span.start
        number = text[start:].replace("=", " ").split("site")[1].split()[0].strip(")'")
        values[number] = document.variable_at(start, "NAME")
    return values


def check(values: Mapping[str, object], said: str) -> None:
    for line in said.splitlines():
        number, _, actual = line.partition(" ")
        value = values.get(number, Missing.UNKNOWN)
        if value is Missing.ABSENT:
            assert actual == NOT_SET, (number, values)
        elif value is not Missing.UNKNOWN and not isinstance(value, Undecided):
            assert actual == value, (number, values)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("bin")
    (folder / "torchrun").write_text(PROGRAM, encoding="utf-8")
    (folder / "torchrun").chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


@given(lines=COMMANDS)
@settings(max_examples=examples(40), deadline=None)
@example(lines=["export NAME=d", f"(export NAME=i; {RUN})", RUN])
def test_commands_get_what_is_read(path: str, lines: list[str]) -> None:
    text = numbered("\n".join(lines) + "\n")
    values = read(ShellDocument(text), text)
    for flag in ("", "1"):
        environment = {"PATH": path, "FLAG": flag, "OTHER": "other"}
        ran = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, check=False)
        check(values, ran.stdout)
