"""The check of the placeholders in the messages of a rule; ``megatron.data_schema`` has those of its form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cgmigrate.megatron.data_schema import line_of
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.settings import FIELDS

_PLACEHOLDER = re.compile(r"{(\w+)}")


_FILLED_IN = (*FIELDS, "source", "target", "reason", "refuser")


def check_messages(data: Mapping[str, Any], text: str, path: str) -> None:
    """Check that every placeholder of a message will be filled in. Raises RuleError."""
    cases = data.get("cases")
    for number, case in enumerate(cases or [data]):
        place: list[str | int] = ["cases", number] if cases else []
        for key in ("message", "decide", "help"):
            line = line_of(text, [*place, key])
            for name in _PLACEHOLDER.findall(case.get(key, "")):
                if name not in _FILLED_IN:
                    raise RuleError(f"{path}:{line}: nothing fills in `{{{name}}}`; there are {', '.join(_FILLED_IN)}")
                if name in ("reason", "refuser") and "rejected" not in case.get("when", {}):
                    raise RuleError(f"{path}:{line}: `{{{name}}}` quotes a refusal, so `when` must ask for `rejected`")
