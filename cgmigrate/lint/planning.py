"""Planning the files of a run: a file alone, or together with those that it is merged with."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from cgmigrate.documents.syntax import SHEBANG_BYTES, Syntax, document_of, syntax_of_file
from cgmigrate.lint.examination import ExaminedFile, examine
from cgmigrate.lint.file_contexts import FileContexts
from cgmigrate.lint.open_fixes import with_open_places
from cgmigrate.lint.pages import documents_the_past, kept_page
from cgmigrate.lint.plan import Plan, has_proposals, make_plan
from cgmigrate.lint.related_files import RelatedFiles
from cgmigrate.lint.rows_of_tests import rows_of
from cgmigrate.lint.withholding import Limits, Support
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import SCOPE
from cgmigrate.megatron.types import Reader
from cgmigrate.project.inputs import InputFile
from cgmigrate.project.options import RunOptions, release_words
from cgmigrate.project.paths import is_below, shown_path

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument
    from cgmigrate.documents.sites import Document, Problem
    from cgmigrate.linking.key_groups import KeyGroup
    from cgmigrate.linking.merged_files import MergedEntry, MergedSites
    from cgmigrate.lint.python_objects import ProvedSites
    from cgmigrate.lint.suppressions import SuppressionComments


_OWNER_OF_OBJECTS = "megatron.bridge"
"""The package whose objects are followed."""
_MOST_FILES_OF_CODE = 64
"""Files of code with settings; the objects of a checkout with more are followed only by ``fix``: that takes a while."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file of a run, or one that is merged with such a file, as it was read."""

    source: InputFile
    document: Document
    bom: bool = False
    comments: SuppressionComments | None = None
    """Its suppressions; None where there are none or they are ignored."""

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.source.path


@dataclass(frozen=True, slots=True)
class Planned:
    """Files with their plan, in the same order."""

    files: Sequence[OpenedFile]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of a run."""

    paths: Sequence[str]
    """The paths of the command line: no other file is written."""
    options: RunOptions
    contexts: FileContexts
    related: RelatedFiles
    one_by_one: bool
    """Whether the edits of each fix alone are needed."""
    _by_real_path: dict[str, InputFile] = field(default_factory=dict)
    _is_in_run: dict[str, bool] = field(default_factory=dict)
    """By path; each file is looked for several times."""
    _code: dict[str, tuple[OpenedFile, ExaminedFile]] = field(default_factory=dict)
    """Files of code, by their real paths."""
    _objects: dict[str, Mapping[str, ProvedSites]] = field(default_factory=dict)
    """What is proved for the files of code of a checkout, by its root."""

    def open(self, source: InputFile) -> OpenedFile:
        """Return a file as it was read; it is parsed unless that was done for a file that is merged with it.

        Raises UnicodeDecodeError.
        """
        from cgmigrate.text.encoding import decode

        text, bom = decode(source.data)
        document = self.related.parsed(source)
        if document is None and source.syntax.is_documentation and documents_the_past(source.path):
            document = kept_page(source, text, self.contexts.catalogue_of(source.path))
        if document is None:
            document = document_of(source.path, text, source.syntax, self.contexts.catalogue_of(source.path))
        return self._opened(source, document, bom=bom)

    def _opened(self, source: InputFile, document: Document, *, bom: bool) -> OpenedFile:
        """Return a file with its suppressions."""
        if "cgmigrate:" not in document.text or self.options.strict:
            return OpenedFile(source, document, bom)
        from cgmigrate.lint.suppressions import SuppressionComments

        return OpenedFile(source, document, bom, SuppressionComments(document))

    def plan(self, file: OpenedFile) -> Planned:
        """Return the plan of a file and of those that are merged with it."""
        examined = self._examined(file)
        if file.source.syntax.is_documentation:
            return self._plan([file], [examined])
        if (planned := self._with_key_group(file, examined)) is not None:
            return planned
        if file.source.syntax is not Syntax.YAML:
            return self._plan_code(file, examined)
        if self._may_be_merged(file, examined) and (group := self._merged(file, examined)) is not None:
            return group
        if has_proposals(examined) or (file.document.builds_on and examined.has_fixes):
            examined = replace(examined, relations=self.related.of(file.path, file.document))
        return self._plan([file], [examined])

    def _plan(
        self,
        files: Sequence[OpenedFile],
        examined: Sequence[ExaminedFile],
        merge: MergedSites | None = None,
        keys: KeyGroup | None = None,
    ) -> Planned:
        limits = [self._limits(file) for file in files]
        examined = [self._with_own_options(file, one) for file, one in zip(files, examined, strict=True)]
        # The text of an editor has other lines than its file. Code, and what is no file, is all that is seen.
        own = files[0].path if self.options.stdin else ""
        if not own or (files[0].source.syntax is not Syntax.PYTHON and os.path.exists(own)):
            examined = with_open_places(examined, self.related, own)
        return Planned(files, make_plan(examined, limits, self.one_by_one, merge, keys))

    def _with_own_options(self, file: OpenedFile, examined: ExaminedFile) -> ExaminedFile:
        """Return a file with the options that programs of the project define, as far as its flags may be theirs."""
        deprecated = file.document.catalogue.deprecated
        flags = [site for site in file.document.sites if site.flags and deprecated & site.own.keys()]
        if not flags:
            return examined
        options, files = self.related.own_options(file.path), self.related.command_files(file.path)
        both = ((one.index, options.of(one) or files.of(one, file.path)) for one in flags)
        reasons = {index: reason for index, reason in both if reason}
        names = (*file.document.catalogue.new_names, SCOPE)
        reads = {one.index: places for one in flags if (places := options.reads_of(one, names))}
        return replace(examined, relations=replace(examined.relations, own_options=reasons, option_reads=reads))

    def _limits(self, file: OpenedFile) -> Limits:
        options = self.contexts.options_of(file.path).options
        return Limits(
            partial(self.contexts.selects, file.path),
            partial(_is_fixable, options),
            file.comments,
            self.outside(file.path),
            is_in_run=self.is_in_run(file.path),
            command=self._command,
            support=partial(self._support, file),
            is_unwritten_page=file.source.syntax.is_documentation and not options.docs,
            pinned_up_to=partial(_pinned_up_to, file.path),
        )

    def _support(self, file: OpenedFile) -> Support | None:
        """Return the older releases that a file or its project has to run on, None if there are none."""
        path = file.path
        resolution = self.contexts.resolution(path)
        if self.options.target is None and (installed := _installed(file.document.text)):
            return installed
        releases = tuple(release for release in resolution.may_run_on if release < SPLIT_IN)
        if not releases or resolution.target < SPLIT_IN or self.options.raise_pin:
            return None
        if resolution.pin:
            return Support(releases, resolution.target_from, is_requirement=True)
        shim = self.related.release_shim(path)
        return Support(releases, f"{shim} is written for several releases") if shim else None

    def is_in_run(self, path: str) -> bool:
        """Return whether a file is one of the run."""
        sources = self._sources
        if path not in self._is_in_run:
            self._is_in_run[path] = os.path.realpath(path) in sources
        return self._is_in_run[path]

    def outside(self, path: str) -> str:
        """Return the real path of a file if a link leads out of the paths; empty for files in them, and for stdin."""
        if not self.is_in_run(path) or self.options.stdin:
            return ""
        real = os.path.realpath(path)
        return "" if any(is_below(real, os.path.realpath(top)) for top in self.paths) else real

    def _command(self, paths: Iterable[str]) -> str:
        """Return the command that fixes some files together."""
        words = release_words(self.options.source, self.options.target)
        return shlex.join(["cgmigrate", "fix", *words, *sorted(paths)])

    @property
    def _sources(self) -> Mapping[str, InputFile]:
        """The files of the run by their real paths."""
        if not self._by_real_path:
            self._by_real_path.update({os.path.realpath(item.path): item for item in self.related.sources})
            self._is_in_run.update(dict.fromkeys((item.path for item in self.related.sources), True))
        return self._by_real_path

    # --- objects of code --------------------------------------------------------------------------

    def _plan_code(self, file: OpenedFile, examined: ExaminedFile) -> Planned:
        """Return the plan of a file of code, and of those whose fixes are proved only together with its own."""
        proved = self._proved(file, examined)
        if proved is None:
            relations = replace(examined.relations, is_followed=not self._is_unfollowed(file.path))
            return self._plan([file], [replace(examined, relations=relations)])
        from cgmigrate.linking.merged_files import MergedSites

        real = os.path.realpath(file.path)
        # A file that imports nothing of Megatron has other diagnostics if a proof shows that it works with it.
        file, examined = self._code[real] if _unowned(file) is not None else (file, examined)
        pairs = [(file, examined) if path == real else self._code[path] for path in proved[real].files]
        for opened, _ in pairs:
            proved[real].use_setters(opened.document)
        every = [proved[os.path.realpath(opened.path)].added_to(one, is_guarded=True) for opened, one in pairs]
        return self._plan([opened for opened, _ in pairs], every, MergedSites((), True) if len(pairs) > 1 else None)

    def _proved(self, file: OpenedFile, examined: ExaminedFile) -> Mapping[str, ProvedSites] | None:
        """Return what is proved for the files of code around a file; None if nothing is for this one."""
        from cgmigrate.project.checkout import checkout_of

        if file.source.syntax is not Syntax.PYTHON:
            return None
        real = os.path.realpath(file.path)
        top = checkout_of(os.path.dirname(real))
        deprecated = file.document.catalogue.deprecated
        has_objects = any(
            one.reader is Reader.BRIDGE and deprecated & one.before.keys() for one in examined.cases.values()
        )
        has_objects = has_objects or any(problem.may_be_proved for problem, _ in examined.problems)
        has_objects = has_objects or bool(rows_of(examined))
        if top is None or self.options.stdin or not (has_objects or _unowned(file) is not None):
            return None
        if top not in self._objects:
            # A proof that ends with an error is not tried again for each file of the checkout: that takes as long.
            self._objects[top] = {}
            self._objects[top] = self._proofs(top, file)
        return self._objects[top] if real in self._objects[top] else None

    def _is_unfollowed(self, path: str) -> bool:
        """Return whether this run skips the proofs of the checkout of a file."""
        from cgmigrate.project.checkout import checkout_of

        every = self.contexts.unfollowed
        return bool(every) and checkout_of(os.path.dirname(os.path.realpath(path))) in every

    def _follows(self, top: str, seeds: Sequence[str]) -> bool:
        """Return whether the objects of a checkout are followed that has some files of code with settings.

        If that takes a minute, only ``fix`` of a folder with such files does it: a hook gets single files.
        """
        count = len(seeds)
        folders = [os.path.join(os.path.realpath(one), "") for one in self.paths or ["."] if os.path.isdir(one)]
        if count <= _MOST_FILES_OF_CODE or (
            (self.options.rewrite or self.options.follow)
            and any(seed.startswith(folder) for folder in folders for seed in seeds)
        ):
            return True
        self.contexts.unfollowed.append(top)
        self.contexts.notes.append(
            f"only `fix` follows objects across {count} files of code, which takes a minute: run "
            f"`cgmigrate fix {shlex.quote(shown_path(top))}` to get the fixes that it proves as safe"
        )
        return False

    def _proofs(self, top: str, file: OpenedFile) -> Mapping[str, ProvedSites]:
        """Return what is proved for the files of code in a checkout, by their real paths."""
        search = self.related.search(top)
        seeds = list(map(os.path.realpath, search.holding(sorted(file.document.catalogue.captures), "*.py")))
        if os.path.realpath(file.path) not in seeds:
            # Of a file that git ignores, the users are not known.
            return {}
        from cgmigrate.lint.kept_proofs import is_kept, kept, key_of

        self._open_code(seeds)
        contexts = {path: (one.context.source, one.context.target) for path, (_, one) in self._code.items()}
        own = contexts.get(os.path.realpath(file.path))
        every = [self.contexts.options_of(path).options for path in self._code]
        outer_writer = self._outer_writer(top, file)
        key = key_of(search, every, (self.paths, sorted(contexts.items()), own, outer_writer))
        if not (is_kept(key) or self._follows(top, seeds)):
            return {}
        # Only a run that follows objects needs the evaluator, which takes time to import.
        from cgmigrate.lint.python_objects import Checkout, FixStyle, proved_sites

        options = self.contexts.options_of(file.path).options
        files = {path: one for path, (_, one) in self._code.items() if contexts[path] == own}
        proved = proved_sites(
            files,
            Checkout(
                seeds,
                lambda: map(os.path.realpath, search.holding(("def ", "class ", "import "), "*.py")),
                partial(with_open_places, related=self.related),
                partial(kept, key),
            ),
            outer_writer,
            FixStyle(options.explicit, options.setters),
        )
        if options.setters and not any(one.setters for one in proved.values()):
            self.contexts.notes.append(
                "attributes are written, not calls: `setters` in the configuration lists no function of the checkout "
                "that sets the modules of any object, clears its old scope, and does nothing else"
            )
        return proved

    def _open_code(self, seeds: Iterable[str]) -> None:
        """Open the files of code of a checkout, by their real paths."""
        for path in dict.fromkeys(seeds):
            try:
                opened = self._member(path)
            except (OSError, UnicodeDecodeError):
                continue
            if (document := _unowned(opened)) is not None:
                opened = self._opened(opened.source, document.working_with(_OWNER_OF_OBJECTS), bom=opened.bom)
            self._code[path] = opened, self._examined(opened)

    def _outer_writer(self, top: str, file: OpenedFile) -> str:
        """Return what sets settings of objects of code from outside of it, with its place; empty if nothing does."""
        from cgmigrate.lint.relations import DATA, MODEL, data_words, data_writer, override_writer

        catalogue = file.document.catalogue
        deprecated = sorted(catalogue.deprecated)
        release = self.contexts.context(file.path).source
        search = self.related.search(top)
        return data_writer(
            search.holding(data_words(catalogue), *DATA), self._document_of, catalogue, release
        ) or override_writer(search.holding([f"{MODEL}.{name}=" for name in deprecated]), catalogue)

    def _document_of(self, path: str) -> Document | None:
        try:
            return self._member(path).document
        except Exception:
            # What is wrong with it is reported when it is its turn; the guard searches its text.
            return None

    # --- merged files -----------------------------------------------------------------------------

    def _may_be_merged(self, file: OpenedFile, examined: ExaminedFile) -> bool:
        """Return whether a file has settings that may have to change together with those of other files."""
        deprecated = file.document.catalogue.deprecated
        if any(deprecated & site.own.keys() for site in file.document.sites) or has_proposals(examined):
            return True
        if not examined.cases:
            return False
        return self.related.inherits_settings(file.path, file.document)

    def _merged(self, file: OpenedFile, examined: ExaminedFile) -> Planned | None:
        """Return the plan of the files that a file is merged with; None if it has to be planned alone."""
        from cgmigrate.linking.merged_files import CannotLinkError

        try:
            members = self.related.members(file.path, file.document)
        except CannotLinkError:
            return None
        if len(members.paths) == 1:
            return None
        files = [file if path == os.path.realpath(file.path) else self._member(path) for path in members.paths]
        every = [self._examined(one) for one in files]
        if any(one.context != examined.context for one in every):
            # Files of different projects are not loaded together.
            self.related.refuse(members, file.path, "they are of projects with other releases or rules")
            return None
        return self._plan(files, [self._related(one) for one in every], members.merge)

    # --- key groups -------------------------------------------------------------------------------

    def _with_key_group(self, file: OpenedFile, examined: ExaminedFile) -> Planned | None:
        """Return the plan of the files of a key group; None if a file is no part of one that can move."""
        from cgmigrate.lint.key_groups import CannotMoveError

        if self.options.stdin or not self._may_share_keys(file, examined):
            return None
        keys = self.related.key_group(file.path, self._document_of)
        if keys is None or keys.reason or len(keys.members) == 1:
            return None
        try:
            return self._moved(keys, file, examined)
        except CannotMoveError:
            self.related.no_key_group(file.path)
            return None

    def _moved(self, keys: KeyGroup, file: OpenedFile, examined: ExaminedFile) -> Planned:
        """Return the plan of a key group. Raises CannotMoveError."""
        from cgmigrate.lint.key_groups import CannotMoveError

        merged = self._merged_data(keys)
        if merged is None:
            raise CannotMoveError("it is not known how its files are merged")
        paths, merge, alone = merged
        files = [file if path == os.path.realpath(file.path) else self._member(path) for path in paths]
        every = [examined if one is file else self._examined(one) for one in files]
        if any(one.context != examined.context for one in every):
            raise CannotMoveError("its files are of projects with other releases or rules")
        of_files = [self._related(one, keys, path in alone) for one, path in zip(every, paths, strict=True)]
        return self._plan(files, of_files, merge, keys)

    def _may_share_keys(self, file: OpenedFile, examined: ExaminedFile) -> bool:
        """Return whether a file has settings whose keys code may copy, or code that may copy them."""
        deprecated = file.document.catalogue.deprecated
        if file.source.syntax is Syntax.PYTHON:
            return any(name in file.document.text for name in deprecated)
        return not file.source.syntax.is_documentation and any(deprecated & site.own.keys() for site in examined.sites)

    def _merged_data(self, keys: KeyGroup) -> tuple[list[str], MergedSites, frozenset[str]] | None:
        """Return the files of a group with those that they are merged with, and which are merged with none.

        None if a merge is not known.
        """
        from cgmigrate.linking.merged_files import CannotLinkError, MergedSites

        paths: list[str] = []
        entries: list[MergedEntry] = []
        deep, alone = True, set[str]()
        for path in keys.data:
            if path in paths:
                continue
            document = self.related.merged.files.document(path)
            try:
                members = self.related.members(path, document) if document else None
            except CannotLinkError:
                return None
            entries += members.merge.shifted(len(paths)) if members else []
            own = list(members.paths) if members else [path]
            paths += own
            alone.update(own if len(own) == 1 else [])
            deep = deep and (members is None or members.merge.deep)
        return [*paths, *keys.code], MergedSites(entries, deep), frozenset(alone)

    def _related(self, file: ExaminedFile, keys: KeyGroup | None = None, is_alone: bool = False) -> ExaminedFile:
        """Return a file of a set or a key group with its other relations."""
        from cgmigrate.documents.nesting import outer_of
        from cgmigrate.documents.yaml import YamlDocument
        from cgmigrate.lint.key_groups import with_key_places

        if not isinstance(outer_of(file.document), YamlDocument):
            return with_key_places(file, keys.names) if keys else file
        relations = self.related.of(file.path, file.document) if is_alone else self.related.overriding(file.path)
        return replace(file, relations=relations)

    def _member(self, path: str) -> OpenedFile:
        from cgmigrate.project.paths import openable_path
        from cgmigrate.text.files import read_bytes

        source = self._sources.get(path)
        if source is None:
            data = read_bytes(path)
            syntax = syntax_of_file(path, data[:SHEBANG_BYTES]) or Syntax.YAML
            source = InputFile(openable_path(path, os.getcwd()), syntax, data)
        return self.open(source)

    def _examined(self, file: OpenedFile) -> ExaminedFile:
        examined = examine(file.path, file.document, self.contexts.context(file.path))
        if any(problem.argument_of for problem, _ in examined.problems):
            return replace(
                examined, problems=tuple((self._with_callers(file, one), rule) for one, rule in examined.problems)
            )
        return examined

    def _with_callers(self, file: OpenedFile, problem: Problem) -> Problem:
        """Return a problem with its risk if another file may give its function an object without the new settings."""
        caller = self.related.caller_with_old_object(problem.argument_of, file.path) if problem.argument_of else ""
        if not caller:
            return problem
        risk = f"{shown_path(caller)} may call `{problem.argument_of}` with an object that has only the old settings"
        return replace(problem, risk=problem.risk or risk)


def _is_fixable(options: RunOptions, rule: str) -> bool:
    return (not options.fixable or rule.startswith(options.fixable)) and not rule.startswith(options.unfixable)


def _pinned_up_to(path: str, package: str, newest: Release) -> str:
    from pathlib import Path

    from cgmigrate.project.pins.package_pins import pinned_up_to

    return pinned_up_to(Path(path).parent, package, newest)


@lru_cache(maxsize=64)
def _installed(text: str) -> Support | None:
    """Return the older release that a command in a text installs, None if none does."""
    from cgmigrate.project.pins.dockerfiles import read_commands
    from cgmigrate.project.pins.requirement import admitted

    for requirement in read_commands(text):
        releases = admitted(requirement.ranges or ()).releases
        if releases and max(releases) < SPLIT_IN:
            return Support((max(releases),), f"line {requirement.line}", is_installed=True)
    return None


def _unowned(file: OpenedFile) -> PythonDocument | None:
    """Return a file of code that imports neither Megatron nor a system with settings of the same names; else None."""
    from cgmigrate.documents.python import PythonDocument

    document = file.document
    return document if isinstance(document, PythonDocument) and document.is_of_unknown_owner else None
