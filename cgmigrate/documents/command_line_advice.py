"""Deprecated names in command lines that are not rewritten, and what to write by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.catalogue import FLAG_BEGINS, Catalogue
from cgmigrate.megatron.settings import ENABLE, IMPL, INFERENCE, LAYER_MODULES, MODULES, SCOPE
from cgmigrate.text.spans import Span

_PATH = re.compile(r"(?<![\w.])[+~]{0,2}(?:\w+\.)+\Z")
"""The keys in front of the last one of an override."""
_SCOPE = rf"(?:full_iteration(?:_inference)?|{'|'.join(LAYER_MODULES)})(?![\w-])"
_VALUES = re.compile(rf"[\s=:]+[\"'\[]*{_SCOPE}(?:[\s,\"']+{_SCOPE})*")
_OFF = re.compile(r"[\s=:`|]+(?:[Ff]alse|0)\b")
_WHOLE_LAYERS = re.compile(r"[\s=:]+[\"']?full(?![\w-])")
"""A value for which nothing is written now."""


@lru_cache(maxsize=8)
def pattern_in_text(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of deprecated names in a command line; other systems have an option `enable_cuda_graph`."""
    names, flags = catalogue.alternatives(deprecated=True), catalogue.alternatives(deprecated=True, flags=True)
    return re.compile(
        rf"{FLAG_BEGINS}(?:{flags})(?![\w-])"
        rf"|(?<![\w.])[+~]{{0,2}}(?:\w+\.)+(?!{ENABLE})(?:{names})="
        rf"|(?<![\w.])[+~]{{0,2}}(?:\w+\.)*(?:model|megatron|transformer_config)\w*\.{ENABLE}="
    )


def by_hand(name: str, catalogue: Catalogue, text: str = "", end: int = 0) -> str:
    """Return what to write for a deprecated name in a command line, as a flag or an override like it.

    In the ``text``, the name ends at an offset; its value may follow.
    """
    flag = name.startswith("-")
    key = name if flag else next(one for one in _endings(name) if one in catalogue.by_key)
    prefix = name.removesuffix(key)

    def spelled(setting: str, value: str) -> str:
        return f"`{catalogue[setting].flag} {value}`" if flag else f"`{prefix}{setting}={value}`"

    old = catalogue[catalogue.by_key[key]]
    if not old.captures:
        return f"write {' or '.join(spelled(new, '…') for new in old.replaced_by)}" if old.replaced_by else ""
    if (_OFF if old.name != SCOPE else _WHOLE_LAYERS).match(text, end):
        return "delete it: it is the default" if old.name == SCOPE else f"write {spelled(IMPL, 'none')}, the default"
    match old.name:
        case "enable_cuda_graph":
            return f"write {spelled(IMPL, 'local')}"
        case "external_cuda_graph":
            return f"write {spelled(IMPL, 'transformer_engine')}"
    return f"write {_scope_by_hand(_values(text, end), spelled, is_flag=flag)}"


def _endings(name: str) -> Iterator[str]:
    """Yield an override's name without more and more of the keys in front: a setting may have its section in it."""
    parts = name.lstrip("+~").split(".")
    return (".".join(parts[at:]) for at in range(len(parts)))


def _scope_by_hand(values: Sequence[str], spelled: Callable[[str, str], str], *, is_flag: bool) -> str:
    """Return what to write for the values of a scope, and for any value if they are not known."""

    def modules(*names: str) -> str:
        return spelled(MODULES, " ".join(names) if is_flag else f"[{','.join(names)}]")

    match values:
        case ["full_iteration"]:
            return f"{spelled(IMPL, values[0])} in place of it and of the former implementation"
        case ["full_iteration_inference"]:
            return spelled(INFERENCE, "block")
        case [_, *_] if set(values) <= set(LAYER_MODULES):
            return modules(*values)
    return (
        f"{spelled(IMPL, 'full_iteration')} for full_iteration, {spelled(INFERENCE, 'block')} for "
        f"full_iteration_inference, and modules as in {modules('attn')}"
    )


def _values(text: str, at: int) -> list[str]:
    """Return the values of the scope at an offset of a text: `` attn mlp``, ``=[attn,mlp]``."""
    match = _VALUES.match(text, at)
    return re.findall(r"\w+", match.group()) if match else []


def instead_of_key(name: str, catalogue: Catalogue) -> str:
    """Return what to write for a deprecated key or attribute in a text that is not read."""
    new = [f"`{one}`" for one in catalogue[name].replaced_by]
    return f"rewrite it by hand with {' or '.join(new)}" if new else f"delete `{name}` by hand"


def override_start(text: str, start: int) -> int:
    """Return where the word of an override with a name at an offset begins: ``++model.cuda_graph_scope=[]``."""
    before = _PATH.search(text[max(0, start - 200) : start])
    return start - len(before.group()) if before else start


# --- words with braces ----------------------------------------------------------------------------

_BRACES = re.compile(rf"{FLAG_BEGINS}--([\w-]*)\{{([\w=.-]*(?:,[\w=.-]*)+)\}}([\w-]*)", re.ASCII)
_BEFORE_LIST = re.compile(r"\{(?<=[\w-]\{)", re.ASCII)
"""Matches the brace of such a word; it is far cheaper than the pattern, and most scripts have none."""


def brace_problems(text: str, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield the words with braces that a shell expands to deprecated flags; ``key_in_braces`` reads them again."""
    if not _BEFORE_LIST.search(text):
        return
    for match in _BRACES.finditer(text):
        if key := key_in_braces(match.group(), catalogue):
            message = f"`{match.group()}` expands to several flags in a shell, `{key}` among them; it is not rewritten"
            advice = by_hand(key, catalogue)
            yield Problem(ProblemKind.COMMAND_LINE_IN_VALUE, Span(*match.span()), message, advice=advice)


def key_in_braces(word: str, catalogue: Catalogue) -> str:
    """Return the first deprecated flag that a shell expands a word with braces to, empty if there is none."""
    match = _BRACES.fullmatch(word)
    parts = match[2].split(",") if match else []
    flags = (f"--{match[1]}{part}{match[3]}".partition("=")[0] for part in parts if match)
    return next((flag for flag in flags if catalogue.by_key.get(flag, "") in catalogue.deprecated), "")
