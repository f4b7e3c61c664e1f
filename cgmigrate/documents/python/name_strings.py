"""Deprecated names as text: keys of ``getattr`` and dicts, flags, lists of names, and text that writes settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cgmigrate.documents.python.flag_uses import is_defined
from cgmigrate.documents.python.name_resolution import SCOPE_CLASS
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.read_messages import (
    THREE,
    advice,
    deprecation_of,
    flag_advice,
    kind_of,
    meaning,
    replacement_of,
    string_advice,
    through_getattr,
    through_hasattr,
)
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.use_owners import FIELDS_SET, HUGGING_FACE
from cgmigrate.documents.python.use_report import Message, UseReplacement, UseReport
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.megatron.catalogue import Catalogue, Setting
from cgmigrate.megatron.settings import ENABLE, MODULES, SCOPE

_OUTPUT_FUNCTIONS = frozenset(
    (
        *("print", "print_rank_0", "warn", "warning", "warn_once", "warning_once"),
        *("info", "debug", "error", "exception", "log"),
    )
)


def is_for_people(ancestors: Iterable[ast.AST]) -> bool:
    """Whether a string is a statement of its own, or part of one that raises, prints or logs.

    ``ancestors`` are the nodes around it, the nearest first.
    """
    for number, around in enumerate(ancestors):
        if isinstance(around, ast.stmt):
            return isinstance(around, (ast.Raise, ast.Assert)) or (number == 0 and isinstance(around, ast.Expr))
        if isinstance(around, ast.Call) and is_output(around):
            return True
    return False


def is_output(call: ast.Call) -> bool:
    """Return whether a call prints or logs, or makes an error or a warning."""
    last = dotted(call.func).rpartition(".")[2]
    return last in _OUTPUT_FUNCTIONS or last.endswith(("Error", "Warning"))


_PATH = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*")


@lru_cache(maxsize=8)
def _writes(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of text that sets a deprecated setting: a name with a value, or a flag.

    A flag without a value in a text for people has words behind it, and in a command line the next flag or its end.
    """
    names = catalogue.alternatives(deprecated=True)
    with_flag = [catalogue[name] for name in sorted(catalogue.deprecated) if catalogue[name].flag]
    flags = [one.flag.removeprefix("--") for one in with_flag]
    with_value, alone = ([one.flag for one in with_flag if one.is_flag is is_flag] for is_flag in (False, True))
    return re.compile(
        rf"(?<![\w-])(?:--)?({names}|(?<=--)(?:{'|'.join(flags)}))(?:[ ]*=(?!=)|[\"']?:[ ]*(?:$|[\[{{\"'\w]))"
        rf"|(?<![\w-])((?:{'|'.join(with_value)})(?= )|(?:{'|'.join(alone)})(?=\s+-|\s*(?:\Z|[\\;&|>\n])))"
    )


@dataclass(frozen=True)
class NameStrings:
    """Reports such strings."""

    source: PythonSource
    report: UseReport

    def add(self, node: ast.Constant, text: str) -> None:
        """Report a string if it names a deprecated setting."""
        catalogue = self.source.catalogue
        # Code that makes a command line may add the dashes.
        flag = catalogue.by_key.get(f"--{text.removeprefix('--')}", "") if "-" in text else ""
        if flag in catalogue.deprecated:
            has_dashes = text.startswith("-")
            is_key = self._is_key(node)
            what = "it is a deprecated flag" if has_dashes else "with dashes, it is a deprecated flag"
            what += ", and command lines with the new flags do not have it" if has_dashes and is_key else ""
            help_ = flag_advice(flag) if catalogue[flag].captures else ""
            # A flag with hyphens is Megatron-LM's, whatever else the file shows.
            reads = is_key or not (has_dashes and self._is_said(node))
            self._report(node, flag, f"`{text}` is in a string; {what}", help_, reads=reads)
            return
        name = text.rpartition(".")[2] if _PATH.fullmatch(text) else text
        if name in catalogue.deprecated or text == SCOPE_CLASS:
            self._name(node, name, text)
        elif not is_for_people(self.source.ancestors(node)):
            self._other_text(node, text)

    def _name(self, node: ast.Constant, name: str, text: str) -> None:
        above = self.source.parent(node)
        if self._is_other_setting(name):
            self._other_setting(node, self.source.catalogue[name], text, above)
            return
        match above:
            case ast.Call(func=func, args=[owner, *more]) if dotted(func) == "getattr" and owner is not node:
                self._report(node, name, through_getattr(name, kind_of(owner), len(more) > 1), reads=True)
            case ast.Call(func=func, args=[owner, *_]) if dotted(func) == "hasattr" and owner is not node:
                self._report(node, name, through_hasattr(name, kind_of(owner)), reads=True)
            case _ if _is_own_option(node, above):
                self.report.skip(node, name, FIELDS_SET)
            case _ if _is_list_of_names(above):
                message = f"a list of names has `{name}`: code that copies or accepts these names misses the new ones"
                help_ = f"add the three new names to this list: {THREE}; not fixed: what the list is for is not known"
                self._report(node, name, message, help_, reads=True)
            case _:
                is_key = self._is_key(node)
                # A mapping has what is written to it: only a configuration that is built loses the value.
                since = None if name == SCOPE_CLASS else self.source.catalogue[name].deprecated_in
                if is_key and since:
                    said = f"the key `{text}` has the name of a setting that megatron-core {since} deprecates"
                else:
                    said = f"`{text}` is in a string; {meaning(name)}"
                help_ = "" if name == SCOPE_CLASS else string_advice(name, text, is_key=is_key)
                self._report(node, name, said, help_, reads=is_key)

    def _other_setting(self, node: ast.Constant, setting: Setting, text: str, above: ast.AST | None) -> None:
        """Report the name of a setting on which the capture model does not depend."""
        if _is_own_option(node, above):
            self.report.skip(node, setting.name, FIELDS_SET)
            return
        if setting.name in self._names_of_hugging_face:
            self.report.skip(node, setting.name, HUGGING_FACE)
            return
        of_attribute = isinstance(above, ast.Call) and dotted(above.func) in ("getattr", "hasattr")
        reads = of_attribute or _is_list_of_names(above) or self._is_key(node)
        self._report(node, setting.name, f"`{text}` is in a string; {deprecation_of(setting)}", reads=reads)

    @cached_property
    def _names_of_hugging_face(self) -> frozenset[str]:
        """The names that the file looks up in a configuration of Hugging Face, or pairs with what replaces them."""
        catalogue, names = self.source.catalogue, set[str]()
        for one in walk(self.source.tree):
            match one:
                case ast.Subscript(value=owner, slice=ast.Constant(value=str() as name)):
                    pass
                case ast.Call(
                    func=ast.Attribute(value=owner, attr="get" | "pop"), args=[ast.Constant(value=str() as name), *_]
                ):
                    pass
                case ast.Tuple(elts=[ast.Constant(value=str() as name), ast.Constant(value=new)]) if name in catalogue:
                    names |= {name} if new in catalogue[name].replaced_by else set()
                    continue
                case _:
                    continue
            if name in catalogue and self.report.owners.is_of_hugging_face(owner):
                names.add(name)
        return frozenset(names)

    def _is_other_setting(self, name: str) -> bool:
        setting = self.source.catalogue.get(name)
        return setting is not None and not setting.captures

    def _other_text(self, node: ast.Constant, text: str) -> None:
        """Report text that names the old class as a type, or writes settings (an f-string that makes a recipe)."""
        above = self.source.parent(node)
        if SCOPE_CLASS in text and isinstance(above, (ast.Subscript, ast.AnnAssign, ast.arg, ast.BinOp)):
            message = Message(ProblemKind.ENUM_CLASS, f"an annotation uses `{SCOPE_CLASS}`", advice=advice(SCOPE_CLASS))
            self.report.add(node, message)
        elif match := _writes(self.source.catalogue).search(text):
            written = match.group(1) or match.group(2).removeprefix("--")
            text = f"this string writes `{written}`; the code that reads it has to accept the new name"
            by_key = self.source.catalogue.by_key
            name = by_key.get(written) or by_key[f"--{written}"]
            help_ = f"write the new names ({THREE}) if megatron-core 0.18 or later reads it"
            # A flag with hyphens is Megatron-LM's, whatever else the file shows.
            is_flag = "-" in written
            self._report(node, name, text, "" if self._is_other_setting(name) else help_, reads=is_flag)

    def _modules(self, node: ast.Constant) -> UseReplacement | None:
        """Return the name of the modules in place of that of the scope, where `getattr` gets it."""
        written, above = self.source.of(node), self.source.parent(node)
        is_read = isinstance(above, ast.Call) and dotted(above.func) == "getattr" and above.args[:1] != [node]
        quote = written[:1]
        if not is_read or written != f"{quote}{SCOPE}{quote}":
            return None
        return UseReplacement(f"{quote}{MODULES}{quote}", if_proved=True)

    def _report(self, node: ast.Constant, name: str, text: str, help_: str = "", *, reads: bool = False) -> None:
        """Report a string; in a file without Megatron only one by which code ``reads`` a setting that may be its."""
        owners = self.report.owners
        is_of_others = name == ENABLE and not owners.starts_megatron
        if not owners.megatron and (not reads or is_of_others or owners.is_another_system()):
            self.report.skip(node, name, owners.of_unrelated_name())
            return
        other = self.source.catalogue[name] if self._is_other_setting(name) else None
        help_ = help_ or (replacement_of(other) if other else advice(name))
        self.report.add(node, Message(ProblemKind.NAME_IN_TEXT, text, self._modules(node), help_), anywhere=True)

    def _is_said(self, node: ast.Constant) -> bool:
        """Whether a string defines an option of a parser of the file, or is for people."""
        return is_defined(self.source.parent(node)) or is_for_people(self.source.ancestors(node))

    def _is_key(self, node: ast.Constant) -> bool:
        """Whether a string is a key that code looks up: ``in``, a subscript, ``.get``."""
        match self.source.parent(node):
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
                return left is node
            case ast.Subscript(slice=key):
                return key is node
            case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[first, *_]):
                return first is node
        return False


def _is_list_of_names(above: ast.AST | None) -> bool:
    """Whether an expression is a list, tuple or set of strings, which code copies or accepts by name."""
    return isinstance(above, (ast.List, ast.Tuple, ast.Set)) and all(
        isinstance(member, ast.Constant) and isinstance(member.value, str) for member in above.elts
    )


def _is_own_option(node: ast.AST, above: ast.AST | None) -> bool:
    """Whether code looks for a name in pydantic's set of fields that were set: a current name of the project's own."""
    match above:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[fields]) if left is node:
            return dotted(fields).rpartition(".")[2].endswith("fields_set")
    return False
