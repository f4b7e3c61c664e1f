"""Code in values of a YAML file: scripts and command lines.

The value of these keys is a command line: ``run``, ``script``, ``command``, ``args`` and names that end in these.
Values of other keys are text, and stay; so are lists with a word in each item.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from cgmigrate.documents.braces import brace_problems
from cgmigrate.documents.code import CodeText
from cgmigrate.documents.nesting import NestedText
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.documents.yaml.document import YamlDocument
from cgmigrate.documents.yaml.scalar_code import scalar_code, written_in
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.spans import Span

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SCRIPTS = frozenset(("run", "script", "scripts", "commands", "cmds", "shell"))
"""Last words of keys whose items, if they have several, are commands."""
_COMMANDS = frozenset(("command", "cmd", "entrypoint", "launch", "launcher", "exec"))
_ARGUMENTS = frozenset(("args", "arguments", "argv", "overrides"))
_LISTS_OF_NAMES = frozenset(
    ("supported", "allowed", "known", "valid", "ignored", "deprecated", "removed", "forbidden", "skip", "excluded")
)
"""Words of keys whose values name flags, and set none (`allowed_args`)."""
_FLAG = re.compile(r"--[a-z]+[-_]")
"""Begins a flag of Megatron-LM, or an option of Megatron-Bridge's harness."""
_ARGUMENT = re.compile(r"\s*(?:-|\+{0,2}[\w-]+(?:\.[\w-]+)+=)")
"""Begins arguments without the command: a flag, or an override."""
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|da|a|k)?sh\b")
_OTHERS = re.compile(r"(?:\S*/)?(?:python|pwsh|powershell|cmd|perl|node|ruby)[\d.]*(?: .*\{0\}.*)?")
"""Interpreters of other languages, as GitHub names them."""
_JAVASCRIPT = re.compile(r"\bgithub-script\b")
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
"""What GitHub replaces before a shell gets the text."""
_SCRIPT, _ARGS = "value.sh", "value.args"
_PASSED_ON = "the script gets such flags as its arguments, too"


@dataclass(frozen=True, slots=True)
class _PartValue:
    """A value under a key that says that it is a command line, or an item of it.

    ``around`` is the mapping of the key, ``merged`` are those that it is merged with.
    """

    key: str
    word: str
    node: Node
    around: Node
    is_item: bool
    merged: Sequence[Node] = ()


def parts_of(document: YamlDocument, numbers: Collection[int] | None) -> list[NestedText]:
    """Return the command lines in values: those with some numbers, or those with flags of settings."""
    return parts_in(document.roots, document.text, document.catalogue, numbers)


def parts_in(
    roots: Sequence[Node], text: str, catalogue: Catalogue, numbers: Collection[int] | None
) -> list[NestedText]:
    """Return the command lines in the values of a tree: those with some numbers, or those with flags of settings."""
    names = [one.span.start for one in appearances_in(text, catalogue) if _is_argument(one, text)]
    names += [one.span.start for one in brace_problems(text, catalogue)]
    if not names and numbers is None:
        return []
    parts = []
    merged = _merged(roots) if "<<" in text else {}
    every = (replace(one, merged=merged.get(one.around.start, ())) for one in _values(roots))
    values = sorted(every, key=lambda value: value.node.start)
    for number, value in enumerate(values):
        has_name = any(value.node.start <= name < value.node.end for name in names)
        is_requested = has_name if numbers is None else number in numbers
        part = _part(number, value, text, names) if is_requested else None
        parts += [part] if part is not None else []
    return parts


def _is_argument(name: Appearance, text: str) -> bool:
    """Return whether a name is a flag, or that of an override: ``a.cuda_graph_scope=[]``."""
    is_override = text[max(0, name.span.start - 1) : name.span.start] == "." and text.startswith("=", name.span.end)
    return is_override or _FLAG.match(name.key) is not None


def _merged(roots: Sequence[Node]) -> dict[int, list[Node]]:
    """Return the mappings that are merged with one (``<<``), by where that one begins."""
    result: dict[int, list[Node]] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        stack += [child for child in node.items if child.kind in ("map", "seq")]
        for key, value in node.pairs() if node.kind == "map" else ():
            for one in (value.items if value.kind == "seq" else [value]) if key.value == "<<" else ():
                result.setdefault(node.start, []).append(one.target)
                result.setdefault(one.target.start, []).append(node)
    return {start: [one for one in nodes if one.kind == "map"] for start, nodes in result.items()}


def _values(roots: Sequence[Node]) -> Iterator[_PartValue]:
    """Yield the values that are command lines, and the items of lists of commands."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.kind == "map" and (_is_other_shell(node) or _has_other_default(node)):
            continue
        children = _without_javascript(node) if node.kind == "map" else node.items
        stack += [child for child in children if child.kind in ("map", "seq")]
        for key, value in node.pairs() if node.kind == "map" else ():
            word = _last_word(key)
            if word in _SCRIPTS | _COMMANDS | _ARGUMENTS:
                yield from (
                    _PartValue(key.value, word, one, node, one is not value) for one in _texts(word, value, node)
                )


def _last_word(key: Node) -> str:
    words = _WORDS.findall(key.value) if key.kind == "scalar" and " " not in key.value else []
    lower = [word.lower() for word in words]
    return lower[-1] if lower and _LISTS_OF_NAMES.isdisjoint(lower) else ""


def _texts(word: str, value: Node, around: Node) -> Iterator[Node]:
    """Yield the texts of a value: itself, the commands of a list of commands, or the script of ``bash -c``."""
    is_list = value.kind == "seq" and all(item.kind == "scalar" for item in value.items)
    if value.kind == "scalar":
        yield value
    elif is_list and word in _SCRIPTS:
        yield from value.items
    elif is_list and value.items and (script := _script_in(value.items, word, around)) is not None:
        yield script


def _script_in(items: Sequence[Node], word: str, around: Node) -> Node | None:
    """Return the script among the words of a shell, None if they start another program, or are no such words.

    The words of a container may be in two lists: `command` has the shell, and `args` what it gets.
    """
    before = _command_beside(around) if word in _ARGUMENTS else []
    words = [*before, *items]
    if not _SHELLS.fullmatch(words[0].value):
        return None
    at = next((at for at, item in enumerate(words) if re.fullmatch(r"-[a-z]*c", item.value)), len(words)) + 1
    return words[at] if len(before) <= at < len(words) else None


def _command_beside(mapping: Node) -> list[Node]:
    """Return the words of the command in a mapping, none if it has no such list."""
    values = (value for key, value in mapping.pairs() if _last_word(key) in _COMMANDS)
    items = next((value.items for value in values if value.kind == "seq"), [])
    return items if all(item.kind == "scalar" for item in items) else []


def _is_other_shell(mapping: Node) -> bool:
    """Return whether a key beside it says that the code is for another interpreter than a shell."""
    shell = next((value for key, value in mapping.pairs() if key.value == "shell"), None)
    return shell is not None and shell.kind == "scalar" and _OTHERS.fullmatch(shell.value) is not None


def _has_other_default(mapping: Node) -> bool:
    """Return whether the steps in a mapping run in another interpreter, as GitHub's ``defaults`` say."""
    run = _under("run", _under("defaults", mapping))
    return run is not None and run.kind == "map" and _is_other_shell(run)


def _under(name: str, mapping: Node | None) -> Node | None:
    if mapping is None or mapping.kind != "map":
        return None
    return next((value for key, value in mapping.pairs() if key.value == name), None)


def _without_javascript(mapping: Node) -> list[Node]:
    """Return the values of a mapping, without those that GitHub's action for JavaScript gets."""
    uses = _under("uses", mapping)
    is_javascript = uses is not None and uses.kind == "scalar" and _JAVASCRIPT.search(uses.value) is not None
    return [value for key, value in mapping.pairs() if not (is_javascript and key.value == "with")]


def _part(number: int, value: _PartValue, text: str, names: Sequence[int]) -> NestedText | None:
    if _is_divided(value, text, names):
        return None
    part = _scalar_part(number, value, text, names)
    return replace(part, blocked_by=_PASSED_ON) if part and _gets_flags(value, names) else part


def _gets_flags(value: _PartValue, names: Sequence[int]) -> bool:
    """Return whether a script of ``bash -c`` gets flags of settings as its arguments."""
    words = _under(value.key, value.around) if value.is_item and value.word not in _SCRIPTS else None
    items = words.items if words is not None and words.kind == "seq" else []
    return any(item.start <= name < item.end for item in items if item.start > value.node.start for name in names)


def _scalar_part(number: int, value: _PartValue, text: str, names: Sequence[int]) -> NestedText | None:
    node = value.node
    code = scalar_code(node, text)
    masked = _masked(code, names) if code is not None else None
    if masked is None:
        return None
    code, variables = masked
    is_arguments = _ARGUMENT.match(code.text) is not None
    if value.word in _ARGUMENTS and not value.is_item and not is_arguments:
        return None
    return NestedText(
        number,
        Span(node.start, node.end),
        code,
        _ARGS if is_arguments else _SCRIPT,
        is_whole=not is_arguments and not any(_halves(value)),
        has_comments=node.style == "|",
        escaped=written_in(node),
        written_otherwise=variables,
    )


def _masked(code: CodeText, names: Sequence[int]) -> tuple[CodeText, dict[str, str]] | None:
    """Return code in which GitHub's expressions are variables of a shell, of the same length, and which they are.

    None if the name of a setting is in one.
    """
    variables: dict[str, str] = {}
    text = code.text
    for number, match in enumerate(_EXPRESSION.finditer(code.text)):
        starts = code.starts[match.start() : match.end()]
        if any(starts[0] <= name <= starts[-1] for name in names):
            return None
        variable = "${" + f"{number}".rjust(len(match.group()) - 3, "_") + "}"
        if not variable.startswith("${_") or len(variable) != len(match.group()):
            return None
        variables[variable] = match.group()
        text = text[: match.start()] + variable + text[match.end() :]
    return replace(code, text=text), variables


def _is_divided(value: _PartValue, text: str, names: Sequence[int]) -> bool:
    """Return whether the settings of one command line may be in two values: neither shows what they do.

    Both have flags of settings, or the last flag is one whose values the other part may continue. Two keys with the
    same last word name two commands (`train_cmd`, `eval_cmd`).
    """
    node = value.node
    last = max((name for name in names if node.start <= name < node.end), default=node.end)
    is_begin = value.word in _COMMANDS and not value.is_item and _ARGUMENT.match(node.value) is None
    may_continue = is_begin and "--" not in text[last + 2 : node.end]
    return any(may_continue or any(one.start <= name < one.end for name in names) for one in _halves(value))


def _halves(value: _PartValue) -> Iterator[Node]:
    """Yield the other values beside one that may be parts of the same command line."""
    if value.word not in _COMMANDS | _ARGUMENTS:
        return
    for key, node in (pair for mapping in (value.around, *value.merged) for pair in mapping.pairs()):
        word = _last_word(key)
        is_half = word in _COMMANDS | _ARGUMENTS and word != value.word
        if is_half and (node.start >= value.node.end or node.end <= value.node.start):
            yield node
