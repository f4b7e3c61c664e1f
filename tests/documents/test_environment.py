"""Variables of the environment around a setting: in scripts and configurations."""

from __future__ import annotations

import pytest

from cgmigrate.documents.syntax import document_of, syntax_of
from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.settings import Missing, Undecided

RUN = "torchrun pretrain_gpt.py --cuda-graph-impl local"

SCRIPTS = [
    (f"export NAME=a\n{RUN}", "a"),
    (f"export NAME='a b'\n{RUN}", "a b"),
    (f"export OTHER=1 NAME=a\n{RUN}", "a"),
    (f"declare -x NAME=a\n{RUN}", "a"),
    (f"NAME=a\nexport NAME\n{RUN}", "a"),
    (f"set -a\nNAME=a\n{RUN}", "a"),
    (f"NAME=a\n{RUN}", Missing.ABSENT),
    (f"NAME=a {RUN}", "a"),
    (f"export NAME=b\nNAME=a {RUN}", "a"),
    (f"export NAME=b\nexport NAME=a\n{RUN}", "a"),
    (f"{RUN}\nexport NAME=a", Missing.ABSENT),
    (f"env NAME=a {RUN}", "a"),
    (f"docker run -e NAME=a image {RUN}", "a"),
    (f"docker run --env=NAME=a image {RUN}", "a"),
    (f"docker run --env NAME=a image {RUN}", "a"),
    (f"docker run -eNAME=a image {RUN}", "a"),
    (f"export NAME=a\ndocker run image {RUN}", Missing.ABSENT),
    (f"srun --export=ALL,NAME=a,OTHER=1 {RUN}", "a"),
    (f"export NAME=a\nsrun {RUN}", "a"),
    (f"bash -c 'NAME=a {RUN}'", "a"),
    (f"export NAME=a\nbash -c '{RUN}'", "a"),
    (f"export NAME=$OTHER\n{RUN}", Undecided),
    (f"export NAME=${{NAME:-a}}\n{RUN}", Undecided),
    (f"if [ -n x ]; then\n  export NAME=a\nfi\n{RUN}", Missing.UNKNOWN),
    (f"if [ -n x ]; then\n  export NAME=a\n  {RUN}\nfi", "a"),
    (f"if [ -n x ]; then\n  export NAME=a\nelse\n  {RUN}\nfi", Missing.ABSENT),
    (f"set_up() {{\n  export NAME=a\n}}\nset_up\n{RUN}", Missing.UNKNOWN),
    (f"export NAME=a\nunset NAME\n{RUN}", Missing.UNKNOWN),
    (f'OPTIONS="-e NAME=a"\ndocker run $OPTIONS image {RUN}', Missing.UNKNOWN),
    (f"# export NAME=a\n{RUN}", Missing.ABSENT),
    (f"export NAME=a\necho $NAME\n{RUN}", "a"),
    (f"source settings.sh\n{RUN}", Missing.UNKNOWN),
    (f"source .venv/bin/activate\n{RUN}", Missing.ABSENT),
    ("export NAME=a\nARGS=(--cuda-graph-impl local)\ntorchrun pretrain_gpt.py ${ARGS[@]}", "a"),
    ("ARGS=(--cuda-graph-impl local)\nexport NAME=a\ntorchrun pretrain_gpt.py ${ARGS[@]}", "a"),
    (f"export NAME=a\nsbatch <<EOF\n#!/bin/bash\n{RUN}\nEOF", "a"),
    (f"sbatch <<EOF\n#!/bin/bash\nexport NAME=a\n{RUN}\nEOF", "a"),
]

YAML = [
    ("ENV_VARS: {NAME: a}\nMODEL_ARGS: {--cuda-graph-impl: local}", "a"),
    ("env: {NAME: b}\none: {env: {NAME: a}, MODEL_ARGS: {--cuda-graph-impl: local}}", "a"),
    ("other: {env: {NAME: a}}\none: {MODEL_ARGS: {--cuda-graph-impl: local}}", Missing.ABSENT),
    ("ENV_VARS: {NAME: '${OTHER}'}\nMODEL_ARGS: {--cuda-graph-impl: local}", Undecided),
    ("run: 'echo NAME=a >> $GITHUB_ENV'\nMODEL_ARGS: {--cuda-graph-impl: local}", Missing.UNKNOWN),
    ("env: [{name: NAME, value: a}]\nMODEL_ARGS: {--cuda-graph-impl: local}", Missing.UNKNOWN),
    ("policy: {megatron_cfg: {cuda_graph_impl: local, env_vars: {NAME: a}}}", "a"),
    ("defaults: base.yaml\npolicy: {megatron_cfg: {cuda_graph_impl: local}}", Missing.UNKNOWN),
]


def value(text: str, path: str) -> object:
    syntax = syntax_of(path)
    assert syntax is not None
    document = document_of(path, text, syntax, load())
    return document.variable_at(document.sites[0].written[0].span.start, "NAME")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        *(("run.sh", *case) for case in SCRIPTS),
        *(("job.yaml", *case) for case in YAML),
    ],
)
def test_the_value_of_a_variable(path: str, text: str, expected: object) -> None:
    actual = value(text, path)
    assert isinstance(actual, Undecided) if expected is Undecided else actual == expected
