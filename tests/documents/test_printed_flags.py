"""Flags that a script prints: another command may get them, or they are text for people."""

from __future__ import annotations

import pytest

from tests.support.files import write

USED = {
    "a function whose output is expanded": 'graphs() { echo "--external-cuda-graph"; }\npython x.py $(graphs)\n',
    "the same with a backtick": "graphs() { echo --external-cuda-graph; }\npython x.py `graphs`\n",
    "a pipe": 'echo "--external-cuda-graph" | xargs python pretrain_gpt.py\n',
    "a pipe to a shell": 'printf "%s" "python pretrain_gpt.py --external-cuda-graph" | tee log | bash\n',
    "a substitution of a file": "mapfile -t A < <(printf '%s\\n' --external-cuda-graph)\n",
    "a default, once": "python x.py ${X:=--external-cuda-graph}\n",
    "a key that is deleted": "python x.py '~policy.megatron_cfg.external_cuda_graph'\n",
}
FOR_PEOPLE = {
    "a message": 'echo "use --external-cuda-graph"\n',
    "a message in a function": 'usage() { echo "use --external-cuda-graph"; }\nusage\n',
    "a log": 'echo "use --external-cuda-graph" | tee -a log\n',
}


@pytest.mark.parametrize("name", USED)
def test_flags_that_a_command_may_get_are_reported_once(project, cgmigrate, name: str) -> None:
    write("run.sh", USED[name])
    result = cgmigrate("check", "--output-format", "concise", ".")
    assert result.exit_code == 1 and result.output.count("CG011 `") == 1, result.output


@pytest.mark.parametrize("name", FOR_PEOPLE)
def test_messages_are_not(project, cgmigrate, name: str) -> None:
    write("run.sh", FOR_PEOPLE[name])
    assert cgmigrate("check", ".").exit_code == 0
