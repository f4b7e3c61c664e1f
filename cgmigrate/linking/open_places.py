"""Places outside of a fix that may meet what it changes: each appearance of a name that nothing accounts for.

A fix is safe only if every appearance of the names that it changes is accounted for, in any text of the project:
whatever its kind, encoding, case or notation. Accounted for are comments, prose, megatron-core's own files, keywords
of calls that make an object of their own, keys of other mappings with the same value, flags on other command lines,
and lines of code that a proof followed. Beside names there is code that looks at all entries of an object, at the text
of a file, or at the words of a command line.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, takewhile

from cgmigrate.linking.class_changes import class_changes_in, stand_ins_in
from cgmigrate.linking.command_readers import ASSIGNED, readers_of_words
from cgmigrate.linking.entry_filters import VIEWS, EntryFilter, filters_in, flags_made_in
from cgmigrate.linking.name_appearances import SoughtNames, words_of
from cgmigrate.linking.name_places import CODE, YAML, OpenPlace, PlaceKind, may_run, places_in
from cgmigrate.linking.program_files import JSON_WORDS, YAML_WORDS, DataReaders
from cgmigrate.linking.project_texts import ProjectTexts, project_around
from cgmigrate.linking.python_places import python_places_in
from cgmigrate.linking.text_tools import (
    SHELL,
    TextChange,
    TextPlace,
    name_parts_in,
    name_patterns_in,
    name_tests_in,
    names_from_outside,
    reaches,
    searches_of_objects,
    tools_about,
)
from cgmigrate.linking.value_reads import read_otherwise
from cgmigrate.linking.whole_mappings import ChangedMapping, uses_of_sections, whole_uses_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.file_search import FileSearch
from cgmigrate.project.paths import is_below, is_test
from cgmigrate.project.unread_files import is_report
from cgmigrate.project.untouched import is_result
from cgmigrate.text.remembered import remembered

# --- the texts near a file ------------------------------------------------------------------------


@dataclass(eq=False)
class NearTexts:
    """The texts of a checkout by the file that they can be about; files that the same ones can be about share them."""

    whole: ProjectTexts

    @remembered
    def of(self, own: str) -> ProjectTexts:
        """Return the texts that can be about a file: all, unless it is of a project that is a part of the checkout."""
        top = self.whole.top
        project = project_around(os.path.dirname(own), top)
        if project == top or not is_below(project, top):
            return self.whole
        outside = (one for one in self._programs(project) if names_from_outside(self.whole.text(one), own, top))
        return self._of_part(project, tuple(outside))

    @remembered
    def _of_part(self, project: str, programs: tuple[str, ...]) -> ProjectTexts:
        return ProjectTexts(self.whole.top, FileSearch(project), self.whole.rule_folders, programs)

    @remembered
    def _programs(self, project: str) -> list[str]:
        """Return the programs outside of a project that is a part of the checkout."""
        every = (one for one in self.whole.paths() if may_run(one) and not is_test(one))
        return [one for one in every if not is_below(one, project)]


# --- open places ------------------------------------------------------------

_PAST = (".log", ".orig", ".sarif")
_FOR_OBJECTS = frozenset((PlaceKind.CODE, PlaceKind.TEXT, PlaceKind.OWN))
_ANY_OBJECT = re.compile(r"\b(?:import_module|__import__|getmembers|iter_modules)\((?!\s*[\"'])|\b__all__\b")
"""What code has that goes through the functions of modules."""
_CUTS_NAMES = re.compile(
    r"\br?partition\(\s*[\"'][_-]|\br?split\(\s*[\"'][_-]|\bremoveprefix\(|\[(?:\d+|len\([^()]*\)):\]|\$\{\w+#"
)
_MEGATRON = ("megatron", "mcore", "nemo")
_LOADS = re.compile(r"[\w.]*load\w*\(")
_WORDS_ALONE = re.compile(r"(?:^|[\[,{]|:\s|^\s*-\s)\s*[\"']?-[^\"'\],]*$")
"""Before a flag in YAML that is in a list, or in a text that begins with flags: no command with its program."""
_IS_KEY = re.compile(r"[\"']?\s*:")
_RUNS = re.compile(r"\bsubprocess\b|\bPopen\b|\b(?:os\.(?:exec|spawn)\w+|system)\(")
"""What code has that starts a program."""
_SETS_ANY = re.compile(r"\bsetattr\(\s*[^,()]+,\s*[a-z_]\w*[\s,.\[]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FixOutline:
    """What a fix changes in a file: ``before`` and ``after`` are the settings, ``names`` those that change."""

    path: str
    """Its real path."""
    before: Mapping[str, object]
    after: Mapping[str, object]
    names: frozenset[str]
    accounted: Collection[tuple[str, int]]
    """The lines of files, by their real paths, that it accounts for: those that change with it, or that a proof
    followed."""
    old: str
    """The text of the lines that change."""
    new: str
    is_proved: bool = False
    """Whether a proof followed the object through the code of the project."""
    kept: frozenset[str] = frozenset()
    """The names that stay, and get another value."""
    makers: frozenset[str] = frozenset()
    """The functions and modules through which other code gets a proved object."""
    keys: tuple[str, ...] = ()
    """The keys that lead to the mapping that it changes; none for an object, and for a mapping at the top."""
    sections: frozenset[str] = frozenset()
    """The sections of a configuration that settings move from and to."""
    classes: frozenset[str] = frozenset()
    """The classes of Megatron that the file uses; empty where it is about the keys of a mapping."""

    enums: frozenset[str] = frozenset()
    """The enumerations of Megatron that the file imports, and of which other ones take the place."""

    @property
    def text_change(self) -> TextChange:
        """What it changes in the text of the file."""
        return TextChange(self.path, self.old, self.new, self.names)


@dataclass
class OpenPlaces:
    """The open places of a project; its files are read once, when the first one is needed."""

    top: str
    search: FileSearch
    catalogue: Catalogue
    rule_folders: Sequence[str] = ()
    texts: ProjectTexts = field(init=False)

    def __post_init__(self) -> None:
        self.texts = ProjectTexts(self.top, self.search, self.rule_folders)
        self._readers = DataReaders(self.texts)
        self._near = NearTexts(self.texts).of
        self._without = defaultdict[frozenset[str], set[str]](set)

    def meeting(self, fix: FixOutline) -> OpenPlace | None:
        """Return the first place that can meet an object or a mapping; None if everything is accounted for."""
        for place in self._places_of(fix):
            if _meets_settings(place, fix) and self._is_reached(place, fix) and self._is_read(place, fix):
                return place
        others = (one for one in self._looking_at(fix) if (one.path, one.line) not in fix.accounted)
        # A proof follows what code sets, and not which way it goes.
        return next(chain(self._importing(fix), self._reading_otherwise(fix), others), None)

    def meeting_command(self, fix: FixOutline, *, is_open: bool) -> OpenPlace | None:
        """Return the first place that can meet the words of a command line.

        ``is_open`` says that the line may get more words than it shows: then whatever has the name can be one of them.
        """
        for place in self._places_of(fix):
            is_met = _meets_words(place, is_open=is_open) and self._reaches(place, fix)
            is_met = is_met or (is_open and self._fills(place, fix.path)) or self._joins_attribute(place)
            is_met = is_met or (fix.path.endswith(YAML) and self._joins_words(place, fix))
            # A value that goes may be one that was read over another.
            if is_met or (not fix.after and place.kind is PlaceKind.KEY and self._is_read(place, fix)):
                return place
        return next((OpenPlace(*one) for one in self._looking_at_words(fix, is_open=is_open)), None)

    def _importing(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield the code that imports an enumeration from the file instead of from Megatron."""
        module = re.escape(os.path.basename(os.path.splitext(fix.path.removesuffix("/__init__.py"))[0]))
        for name in sorted(fix.enums):
            imports = re.compile(
                rf"(?:^|\"|\\n)[ \t]*from[ \t]+[\w.]*\b{module}[ \t]+import[ \t]+(?:\([^)]*|[^\n]*)\b{name}\b",
                re.MULTILINE,
            )
            for path in self._near(fix.path).holding((name,)):
                text = self.texts.text(path)
                if path != fix.path and path.endswith((*CODE, ".ipynb")) and (match := imports.search(text)):
                    yield OpenPlace(path, text.count("\n", 0, match.end()) + 1, name)

    def _expecting(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield the data with a setting whose name stays and whose value a fix changes.

        Code holds it against the object, or sets all that it reads on it.
        """
        sought = SoughtNames.of_change(fix.names, self.catalogue)
        words = (*fix.kept, *map(str.upper, fix.kept))
        for path in self._near(fix.path).holding(words) if fix.kept else ():
            for place in self._in_file(path, sought) if path.endswith(SHELL) or not may_run(path) else ():
                if not place.names.isdisjoint(fix.kept) and self._is_set_or_expected(place, fix):
                    yield place

    def _is_set_or_expected(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether code may set what data has on the object, or compare both."""
        if place.kind is PlaceKind.TEXT:
            return bool(self._setters) and place.text.isupper() and self._readers.is_exported(place.text)
        if not self._has_setting(place):
            return False
        return bool(self._setters) or (
            _is_same(place, fix) and any(self._gets(one, fix) for one in self._naming(place.path))
        )

    def _has_setting(self, place: OpenPlace) -> bool:
        """Return whether data sets what a place names; in YAML and JSON a name that is no key is part of a text."""
        if place.kind is PlaceKind.DATA:
            return not place.path.endswith((*YAML, ".json", ".jsonl", ".json5"))
        name = place.text.lower()
        choices = self.catalogue[name].choices if name in self.catalogue else ()
        return place.kind is PlaceKind.KEY and (not choices or place.value in choices)

    @cached_property
    def _setters(self) -> list[str]:
        """The code that sets attributes by names that it reads."""
        code = (one for one in self.texts.holding(("setattr",)) if one.endswith(CODE) and not is_test(one))
        return [one for one in code if not is_part_of_megatron(one) and _SETS_ANY.search(self.texts.text(one))]

    def _reading_otherwise(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield the code that goes another way with the new value of a setting whose name stays."""
        others = frozenset(self.catalogue.captures)
        for name in sorted(fix.kept & fix.before.keys() & fix.after.keys()):
            values = (fix.before[name], fix.after[name])
            for path in self._near(fix.path).holding((name,)) if all(isinstance(one, str) for one in values) else ():
                is_read = path.endswith(CODE) and not is_part_of_megatron(path)
                if not is_read or (is_test(path) and not self._gets(path, fix)):
                    continue
                if place := read_otherwise(self.texts.text(path), name, values, others - {name}):
                    yield OpenPlace(path, *place)

    def _naming(self, path: str) -> Iterator[str]:
        """Yield the code that names a data file, or the folder in which it is."""
        names = (os.path.basename(path), os.path.basename(os.path.dirname(path)))
        return (one for one in self.texts.holding(names) if one.endswith(CODE))

    def _places_of(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield the places with a name that a fix changes, but those that it accounts for; it notes files without."""
        sought, without = SoughtNames.of_change(fix.names, self.catalogue), self._without[fix.names]
        for path in self._near(fix.path).holding(words_of(sought)):
            every = self._in_file(path, sought) if path not in without else ()
            places = [place for place in every if not place.names.isdisjoint(fix.names)]
            for place in places:
                if (path, place.line) not in fix.accounted and (not place.is_in_group or self._cuts_names()):
                    yield place
            without.update(() if places else (path,))

    @remembered
    def _cuts_names(self) -> bool:
        """Return whether code cuts a word from the beginning of names."""
        every = self.texts.holding(("partition(", "split(", "removeprefix(", ":]", "#"))
        return any(may_run(path) and _CUTS_NAMES.search(self.texts.text(path)) for path in every)

    @remembered
    def _in_file(self, path: str, sought: SoughtNames) -> list[OpenPlace]:
        text = self.texts.text(path)
        skipped = is_part_of_megatron(path) or path.lower().endswith(_PAST) or is_report(text.encode())
        find = python_places_in if path.endswith(CODE) else places_in
        return [] if skipped else list(find(path, text, sought))

    def _reaches(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether a place is in a program that names the script, or in a list of flags or of output."""
        if place.kind is PlaceKind.FLAG or (place.kind is PlaceKind.DATA and not place.text.isidentifier()):
            return not place.names.isdisjoint(self.catalogue.deprecated)
        return reaches(self.texts.text(place.path), fix.path)

    def _fills(self, place: OpenPlace, own: str) -> bool:
        """Return whether a file gives a flag to a script, its own or one that it names: by a variable, or in YAML."""
        if place.kind is not PlaceKind.FLAG or place.path == own:
            return False
        lines = self.texts.text(place.path).split("\n")
        before = lines[place.line - 1].partition(place.text)[0]
        if place.path.endswith(YAML) and _WORDS_ALONE.search(before):
            naming = self.texts.holding((os.path.basename(own),))
            return any(one == place.path or one in self._readers.of(YAML_WORDS) for one in naming)
        names = ASSIGNED.findall(before)
        is_named = any(os.path.basename(own) in line for line in lines if not line.lstrip().startswith("#"))
        return is_named and bool(names) and re.search(rf"\$\{{?{names[-1]}\b", self.texts.text(own)) is not None

    def _gets(self, path: str, fix: FixOutline) -> bool:
        """Return whether a test gets what a fix changes: it names what makes it, or goes through all that there is."""
        if not fix.is_proved:
            return reaches(self.texts.text(path), fix.path)
        words = self._words_of(path)
        return words is None or not fix.makers.isdisjoint(words)

    @remembered
    def _words_of(self, path: str) -> frozenset[str] | None:
        """Return the words of a test, None if it goes through all that there is."""
        text = self.texts.text(path)
        return None if _ANY_OBJECT.search(text) else frozenset(_WORD.findall(text))

    def _is_reached(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether the code of a place can get what a fix changes; that of other files always can.

        The objects of a test are no data of the project, unless it gets that, or has code that loads data.
        """
        if place.kind is PlaceKind.OWN:
            return self._gets(place.path, fix)
        if fix.is_proved or fix.classes:
            return True
        if place.kind is PlaceKind.TEXT and place.text.isupper() and place.path.endswith(SHELL):
            return self._readers.is_exported(place.text)
        if not (is_test(place.path) and place.path.endswith(CODE)):
            return True
        # An object has no quotes around a name, a mapping has.
        is_loading = self._readers.is_loading(place.path, any_data=self._is_key(place))
        return is_loading or self._gets(place.path, fix)

    def _is_key(self, place: OpenPlace) -> bool:
        """Return whether code has a name in quotes, as the keys of mappings are, and not as a flag."""
        line = self.texts.text(place.path).split("\n")[place.line - 1]
        is_in_quotes = re.search(rf"[\"'][\w.=-]*{re.escape(place.text)}", line) is not None
        return is_in_quotes and place.kind is not PlaceKind.FLAG

    def _is_read(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether something may read the data in which a place is.

        Any tool may read JSON that says something else, or a schema, which has a mapping as the value of the name.
        Otherwise there has to be code, or a script, that loads such data.
        """
        if place.kind is not PlaceKind.KEY or isinstance(place.value, Mapping) or self._is_named_result(place.path):
            return True
        is_same = _is_same(place, fix) and not self._sets_back(place, fix)
        if place.path.endswith(".json"):
            return not is_same or self._loads(fix.path, JSON_WORDS)
        if is_same or not self._loads(fix.path, YAML_WORDS):
            return False
        return not self._readers.are_alternatives(place.path, fix.path)

    def _sets_back(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether a mapping has the former value of a setting that stays, and not the settings that go.

        Merged over the new text, it is another configuration than over the old one.
        """
        name = place.text.lower()
        gone = fix.before.keys() - fix.after.keys()
        if not gone or fix.after.get(name, fix.before[name]) == fix.before[name]:
            return False
        return not all(name in _block_around(self.texts.text(place.path), place.line) for name in gone)

    @remembered
    def _is_named_result(self, path: str) -> bool:
        """Return whether a file is a result, which is never rewritten, and code or a script names it in its folder."""
        if not is_result(os.path.relpath(path, self.top)):
            return False
        return any(one != path and may_run(one) for one in self.texts.holding(["/".join(path.split(os.sep)[-2:])]))

    @remembered
    def _loads(self, path: str, words: tuple[str, ...]) -> bool:
        project = project_around(os.path.dirname(path), self.top)
        return any(is_below(one, project) for one in self._readers.of(words))

    def _looking_at(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield code that looks at all of a mapping, object or file, and has no name in it."""
        texts = self._near(fix.path)
        if fix.is_proved:
            yield from self._expecting(fix)
        if fix.classes:
            every = ("", *sorted(fix.classes))
            changes = chain.from_iterable(self._class_changes_of(one, texts, is_own=fix.is_proved) for one in every)
            kept = (one for one in changes if not (fix.is_proved and is_test(one.path)))
            yield from (one for one in kept if not _derives(one.text, fix.classes))
        if fix.sections:
            yield from (OpenPlace(*one) for one in uses_of_sections(texts, fix.sections))
        yield from (OpenPlace(*one) for one in searches_of_objects(texts, fix.before, fix.after))
        yield from self._filters_of(fix)
        if not fix.is_proved:
            uses = chain(self._whole_uses_of(fix), self._loaded_by_others(fix))
            places = chain(self._name_parts_of(fix), tools_about(fix.text_change, texts), uses)
            yield from (OpenPlace(*one) for one in places)

    def _looking_at_words(self, fix: FixOutline, *, is_open: bool) -> Iterator[tuple[str, int, str]]:
        texts = self._near(fix.path)
        yield from self._name_parts_of(fix) if is_open else ()
        flags = frozenset(self.catalogue.flags[one] for one in fix.names if one in self.catalogue.flags)
        yield from ((one.path, one.line, one.text) for one, _ in self._tests_of(flags, texts))
        yield from readers_of_words(fix.path, fix.old, texts)
        every = self._every_loop(texts)
        # Megatron's parsed arguments are an object.
        loops = ((path, one) for path, one in every if one.by_truth and self._parses(path))
        yield from ((path, one.line, one.text) for path, one in loops)
        yield from tools_about(fix.text_change, texts)

    def _parses(self, path: str) -> bool:
        text = self.texts.text(path)
        return "megatron" in text and "parse_args" in text

    def _joins_words(self, place: OpenPlace, fix: FixOutline) -> bool:
        """Return whether code that makes a command of a mapping in YAML may add the flag of a place to it.

        It has the flag itself, or has to do with the file that has it, by its name.
        """
        if place.kind is not PlaceKind.FLAG or _IS_KEY.match(self._behind(place)):
            return False
        stem, suffix = os.path.splitext(os.path.basename(place.path))
        in_import = rf"|\b(?:from|import)[ \t]+[\w.]*\b{re.escape(stem)}\b" if suffix in CODE else ""
        named = re.compile(re.escape(stem + suffix) + in_import)
        own, is_code_of_test = self.texts.text(place.path), suffix in CODE and is_test(place.path)
        return any(
            one == place.path or (not is_code_of_test and (named.search(text) or os.path.basename(one) in own))
            for one in self._naming(fix.path)
            if _RUNS.search(text := self.texts.text(one)) and not is_part_of_megatron(one)
        )

    def _behind(self, place: OpenPlace) -> str:
        """Return the text of the line of a place behind it."""
        return self.texts.text(place.path).split("\n")[place.line - 1].partition(place.text)[2]

    def _joins_attribute(self, place: OpenPlace) -> bool:
        """Return whether code joins the name of an attribute, which Megatron's parsed arguments may have."""
        is_part = place.text.startswith("_") or place.text.endswith("_")
        return is_part and place.kind is PlaceKind.CODE and self._parses(place.path)

    def _name_parts_of(self, fix: FixOutline) -> Iterator[TextPlace]:
        every = self._name_parts(fix.names, self._near(fix.path))
        return (one for one in every if one[0] != fix.path)

    @remembered
    def _name_parts(self, names: frozenset[str], texts: ProjectTexts) -> list[TextPlace]:
        return list(name_parts_in(texts, names))

    @remembered
    def _class_changes_of(self, name: str, texts: ProjectTexts, *, is_own: bool) -> list[OpenPlace]:
        """Return what changes a class; without a name, what stands in for any."""
        every = class_changes_in(texts, name, is_own=is_own) if name else stand_ins_in(texts, is_own=is_own)
        return [OpenPlace(*one) for one in every]

    def _filters_of(self, fix: FixOutline) -> Iterator[OpenPlace]:
        """Yield the code that distinguishes names or values of attributes, and scripts that make flags of keys."""
        texts = self._near(fix.path)
        old, new = _changed(fix.before, fix.after), _changed(fix.after, fix.before)
        yield from (one for one, of_object in self._tests_of(fix.names, texts) if of_object or not fix.is_proved)
        for path, one in self._every_loop(texts):
            is_true = one.by_truth and path.endswith(CODE) and not is_test(path)
            is_about = is_true or not (fix.is_proved or (fix.keys and path.endswith(CODE)))
            if is_about and one.distinguishes(fix.names, old, new):
                yield OpenPlace(path, one.line, one.text)

    def _whole_uses_of(self, fix: FixOutline) -> Iterator[TextPlace]:
        """Yield the code that loads the mapping of a fix, or that gets it from such code, and uses all of it."""
        if fix.path.endswith(YAML):
            code = [one for one in self._readers.of(YAML_WORDS) if one.endswith(CODE)]
            project = project_around(os.path.dirname(fix.path), self.top)
            loading = tuple(one for one in code if is_below(one, project))
            pair = (_changed(fix.before, fix.after), _changed(fix.after, fix.before))
            old, new = (frozenset(type(one).__name__ for one in values) for values in pair)
            mapping = ChangedMapping(os.path.basename(fix.path), fix.keys, fix.names, (old, new))
            yield from self._whole_uses_in(loading, mapping)

    def _loaded_by_others(self, fix: FixOutline) -> Iterator[TextPlace]:
        """Yield the code that loads YAML in a project that nowhere names Megatron: another system may get the keys."""
        if fix.path.endswith(YAML) and not self.texts.holding(_MEGATRON):
            for path in self._readers.of(YAML_WORDS):
                if path.endswith(CODE) and (match := _LOADS.search(text := self.texts.text(path))):
                    yield path, text.count("\n", 0, match.start()) + 1, match[0]

    @remembered
    def _whole_uses_in(self, loading: tuple[str, ...], mapping: ChangedMapping) -> list[TextPlace]:
        texts = {path: text for path in loading if "load" in (text := self.texts.text(path))}
        uses = whole_uses_in(texts, mapping, self._code_with)
        return [(path, line, use) for path, line, use, package in uses if not package or self._is_foreign(package)]

    def _code_with(self, words: Iterable[str]) -> dict[str, str]:
        """Return the code of the project that has one of some words."""
        paths = self.texts.holding(words) if words else ()
        return {one: self.texts.text(one) for one in paths if one.endswith(CODE) and not is_part_of_megatron(one)}

    def _is_foreign(self, package: str) -> bool:
        """Return whether a package is neither Megatron's nor one of the standard library or the checkout."""
        known = package.startswith((*_MEGATRON, "omegaconf")) or package in sys.stdlib_module_names
        return not known and package not in self._own_names

    @cached_property
    def _own_names(self) -> frozenset[str]:
        return frozenset(part.removesuffix(".py") for path in self.texts.paths() for part in path.split("/"))

    @remembered
    def _tests_of(self, names: frozenset[str], texts: ProjectTexts) -> list[tuple[OpenPlace, bool]]:
        tests = [(OpenPlace(*one), True) for one in name_tests_in(texts, names)]
        return [*tests, *((OpenPlace(*one), False) for one in name_patterns_in(texts, names))]

    @remembered
    def _every_loop(self, texts: ProjectTexts) -> list[tuple[str, EntryFilter]]:
        return [(path, one) for path in texts.holding((*VIEWS, "--$")) for one in self._loops_in(path)]

    @remembered
    def _loops_in(self, path: str) -> list[EntryFilter]:
        find = filters_in if path.endswith(CODE) else flags_made_in if path.endswith(SHELL) else None
        return list(find(self.texts.text(path))) if find and not is_part_of_megatron(path) else []


def _changed(settings: Mapping[str, object], others: Mapping[str, object]) -> list[object]:
    """Return the values of settings that others have not under the same names."""
    return [value for name, value in settings.items() if name not in others or others[name] != value]


def _meets_settings(place: OpenPlace, fix: FixOutline) -> bool:
    """Return whether a place may set or read what a fix changes in an object or a mapping."""
    if place.kind is PlaceKind.KEYWORD:
        # What a test has as data may be what it expects of the code.
        return not fix.classes and is_test(fix.path) and not is_test(place.path)
    if place.kind is PlaceKind.FLAG and not place.path.endswith(CODE):
        return False
    # No attribute has a hyphen.
    is_flag = place.kind is PlaceKind.CODE and "-" in place.text
    return not fix.is_proved or (place.kind in _FOR_OBJECTS and not is_flag)


def _meets_words(place: OpenPlace, *, is_open: bool) -> bool:
    """Return whether a place may be about words of a command line: it has a flag, and is no command line itself."""
    if place.kind is PlaceKind.FLAG:
        return not place.is_word_of_command
    if place.kind in (PlaceKind.KEYWORD, PlaceKind.OVERRIDE):
        return False
    return "-" in place.text or (is_open and place.kind is not PlaceKind.TEXT)


def _derives(text: str, classes: Collection[str]) -> bool:
    """Return whether code defines a class that derives from one of some classes: its objects are objects of that."""
    return text.startswith("class ") and not set(_WORD.findall(text.partition("(")[2])).isdisjoint(classes)


def _block_around(text: str, line: int) -> str:
    """Return the lines around a line of YAML or JSON up to those that are less indented: those of its mapping."""
    lines = text.split("\n")
    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())

    def is_inside(one: str) -> bool:
        return not one.strip() or len(one) - len(one.lstrip()) >= indent

    above = takewhile(is_inside, reversed(lines[: line - 1]))
    return "\n".join((*above, lines[line - 1], *takewhile(is_inside, lines[line:])))


def _is_same(place: OpenPlace, fix: FixOutline) -> bool:
    """Return whether another mapping has the value that a fix replaces."""
    name = place.text.lower()
    return name in fix.before and type(place.value) is type(fix.before[name]) and place.value == fix.before[name]
