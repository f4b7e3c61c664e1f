"""The interface of documents: one file, read in its syntax as sites that can be edited.

A *site* is the settings that configure one model at one place: one mapping, one call, one command line.
A *document* reads a file's text, lists its sites and problems, and turns rewrites into edits. It knows no rules, no
owners and no releases.

To add a syntax, write a subclass of ``Document`` and register it in ``documents/syntax.py``. The caller
uses a document in this order:

1. ``sites``, ``problems`` and ``skipped`` are complete once the document exists. No text raises an exception: one that
   cannot be read is a problem of one of the kinds in ``UNREADABLE``.
2. ``edits`` returns edits for rewrites, and ``check`` reads the edited text again and says whether anything else
   changed. The edits are used only if it says nothing.
3. ``risk``, ``spelled`` and ``quotes`` are for the report; ``comments`` and ``joined_lines`` for suppressions.

All offsets count code points of the decoded text, without a byte order mark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from cgmigrate.documents.comments import Comment, CommentForm, comments_at, lines_of_comments
from cgmigrate.megatron.catalogue import Catalogue, load
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span
from cgmigrate.text.words import WordEnum

PROSE = "a comment, docstring or message"
"""Owner of a name in text for people; reported with ``--verbose`` only."""


HISTORY = "documentation of old names (changelogs, folders of a version, tables and examples of old and new names)"
"""Owner of a name that a page keeps; without ``--verbose`` only their number is reported."""


SEVERAL_RELEASES = "it is written for several releases"
"""How a reason to keep code ends that a test for a release guards."""
TESTS_OLD = "tests deprecated settings"
"""Why the settings in a test stay as they are."""
UNKNOWN_OWNER = "an owner that is not known"


BOTH_NAMES = "code for several releases, which also tests for the new name"
"""Owner of a name that is never reported: there is nothing to do."""


FOLLOWS_USES = "an import, which follows what the file uses"
FOLLOWS_OBJECT = "it asserts what other code sets, and has to change with it"
"""The risk of a fix of code that reads an object; a proof for all code that has the object settles it."""
"""Owner of a name that is never reported: it changes together with what is written below it."""


class Role(WordEnum):
    """What a text does with a setting."""

    WRITE = "write"
    """It sets it: a YAML key, a keyword argument, an assignment, an entry of a dict, a flag."""
    READ = "read"
    """It depends on its value: an attribute, `getattr`, a subscript, a test."""
    MENTION = "mention"
    """It does neither: a field, an option or a parameter of its own, a comment, a message, text that sets it."""


@dataclass(frozen=True, slots=True)
class Use:
    """One appearance of a setting in the text.

    ``setting`` is its name (``cuda_graph_scope``), ``key`` the spelling in the text (``--cuda-graph-scope``,
    ``model.cuda_graph_scope``). ``value`` is that of a setting of a site: plain data, or ``Undecided`` if the text does
    not show it. ``span`` is what a diagnostic underlines: the key and value of a setting, the name of others.
    """

    setting: str
    key: str
    value: object
    span: Span
    role: Role = Role.WRITE


@dataclass(frozen=True, slots=True)
class Origin:
    """What code shows about the owner of a site's settings.

    ``callee`` is the full name of what gets them as keyword arguments, ``object`` the expression whose
    attributes they are; ``imports`` are the modules that the file imports. ``foreign`` says that the callee is
    a class that is not Megatron's, so that the object's name shows nothing.
    """

    callee: str = ""
    object: str = ""
    imports: tuple[str, ...] = ()
    foreign: bool = False
    merged: bool = False
    """Whether they only reach the callee through other code: a dict, or a function that passes keywords on."""
    through: str = ""
    """The name of this function, empty for a dict."""


@dataclass(frozen=True, slots=True)
class Example:
    """The code block of a page of documentation that a site is in, apart from all others.

    ``number`` is that of the block in the page, ``top_level`` are the names at its top.
    """

    number: int
    top_level: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """The part of a file, in a syntax of its own, that a site is in; ``within`` is the part of that one.

    ``number`` is that of the part in the file, ``top_level`` are the names at its top.
    """

    number: int
    top_level: tuple[str, ...]
    within: Inside | None = None


@dataclass(frozen=True, slots=True)
class OverridingCommand:
    """A command line with overrides of settings.

    ``words`` are its other words: as the command gets them if that is known, else as they are written. ``place`` is
    another one for each command line of a file with the same words.
    """

    words: tuple[str, ...]
    place: tuple[int, ...]


WORDS_ALONE = "command"
"""What leads to flags that have no program and no variable before them."""


@dataclass(frozen=True, slots=True)
class Site:
    """The settings that configure one model at one place.

    ``index`` is the position in ``Document.sites`` and identifies the site in rewrites. ``path`` names what encloses
    the settings: keys of mappings, or a prefix of dotted keys. ``written`` are the site's own settings in the order
    of the text, and ``span`` covers them. ``flags`` says that they are command-line flags. ``inherits`` are the
    indices of sites merged into this one, nearest first; of the first ``unordered`` of them it is not known which is
    the nearest. ``alias_paths`` are further paths at which an alias uses the same text. ``neighbours`` are the other
    plain values beside the settings. ``blocked_by`` says why the document cannot edit the site, empty when it can.

    Only code sets the rest. ``origin`` shows the owner. ``overrides`` says that the settings change an object that has
    settings already, so one that is absent does not have its default. ``constructs`` says that they are arguments of
    the call that makes the object, if the callee is a class. ``built`` says that the object was validated before,
    ``of_built_model`` that it is the configuration of a model that is built. ``linked`` are the indices of
    further sites that may have set the same object, and ``uncertain`` says that branches leave open which of them did.
    """

    index: int
    path: tuple[str, ...]
    span: Span
    written: tuple[Use, ...]
    flags: bool = False
    inherits: tuple[int, ...] = ()
    unordered: int = 0
    alias_paths: tuple[tuple[str, ...], ...] = ()
    neighbours: Mapping[str, object] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    """The `_target_`s of the mapping and of those around it, outermost first."""
    blocked_by: str = ""
    origin: Origin | None = None
    overrides: bool = False
    constructs: bool = False
    built: bool = False
    of_built_model: bool = False
    expects_error: bool = False
    """Whether the function around it expects an error, as a test of a refusal does."""
    linked: tuple[int, ...] = ()
    uncertain: bool = False
    later: Settings = field(default_factory=dict)
    """What the code around sets of the object after the call that makes it."""
    overrides_around: bool = False
    """Whether its owner overrides the mapping around it: the site inherits from that one if the file has it."""
    programs: tuple[str, ...] | None = None
    """The scripts and commands that get the flags of a command line, as far as they are known; None elsewhere."""
    scripts: tuple[str, ...] = ()
    """The scripts that a list of arguments in code names; they do not decide whose the flags are."""
    example: Example | None = None
    """The code block of a page that it is in, None for a file that is read as a whole."""
    inside: Inside | None = None
    """The part of the file that it is in, such as a here-document, None for the file itself."""
    commands: tuple[OverridingCommand, ...] = ()
    """The command lines that surely get it, if it consists of overrides."""
    read_back: str = ""
    """Where the code around reads a setting back, which has to change with it; empty if it does not."""
    meets: frozenset[str] = frozenset()
    """By what other files may add words to a command line, or get its words: variables, ``@`` for the arguments of the
    script, and an empty text for what the script computes."""
    elsewhere: str = ""
    """Why its fix is not safe as long as the configuration that it overrides is not known."""

    @property
    def own(self) -> dict[str, object]:
        """The site's own settings; of several with one name the last one."""
        return {written.setting: written.value for written in self.written}

    def written_as(self, name: str) -> str:
        """Return how this site spells a setting: its own key, or a key in the style of its others."""
        for written in self.written:
            if written.setting == name:
                return written.key
        if self.flags:
            dashes = "--" if any(written.key.startswith("--") for written in self.written) else ""
            return dashes + name.replace("_", "-")
        return name


class ProblemKind(WordEnum):
    """What a document reports besides its sites. A rule that explains a kind names its value (``reports:``)."""

    INVALID_YAML = "invalid-yaml"
    INVALID_PYTHON = "invalid-python"
    TEMPLATE = "template"
    """Template markup, which is no YAML until it is rendered."""
    TOO_COMPLEX = "too-complex"
    """Text that needs more nesting or memory than is available."""
    WRITTEN_TWICE = "written-twice"
    COMMAND_LINE_IN_VALUE = "command-line-in-value"
    FULL_ITERATION_TEST = "full-iteration-test"
    """Code that tests whether the scope has a member for the full iteration."""
    MODULE_TEST = "module-test"
    """Code that tests whether the scope has a member that is a module."""
    READ = "read"
    NAME_IN_TEXT = "name-in-text"
    """A string that is the name of a deprecated setting, or writes one."""
    DEFINITION = "definition"
    ENUM_CLASS = "enum-class"
    """The class of the old scope's members, where it is no value of a setting."""
    OTHER_ASSIGNMENT = "other-assignment"
    NAME_IN_DOCUMENTATION = "name-in-documentation"
    """A deprecated name in the text of a page, or in a code block that is not read."""
    UNREAD_KIND = "unread-kind"
    """A deprecated setting in a file of a kind that is not read."""
    GONE_NAME = "gone-name"
    """Code that imports or names what a module of Megatron-LM no longer has."""
    GPT_CLASS = "gpt-class"
    """Code or YAML that names the class of GPT models, or one that builds it."""
    GPT_RECIPE = "gpt-recipe"
    """Code that makes a provider of Megatron-Bridge whose model is a GPT model."""
    CHANGED_CALL = "changed-call"
    """A call that a function of Megatron-LM no longer takes."""
    GONE_KEY = "gone-key"
    """A key that the package which reads the file no longer reads."""
    CHANGED_TYPE = "changed-type"
    """Code that compares an argument of Megatron-LM as if it had the type of before."""
    MOVED_ARGUMENT = "moved-argument"
    OUTGROWN_METHOD = "outgrown-method"
    """A call of which a function of Megatron-LM takes an argument for another one."""


UNREADABLE = frozenset(
    (ProblemKind.INVALID_YAML, ProblemKind.INVALID_PYTHON, ProblemKind.TEMPLATE, ProblemKind.TOO_COMPLEX)
)
"""Problems of a file of which nothing else is known."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a document reports besides its sites: text that cannot be read, or code that reads a deprecated name.

    ``replacement`` is the text to write instead, if it is known, and the document writes it when ``index`` is among the
    rewrites. The indices of problems follow those of the sites; -1 is a problem that is never rewritten.
    ``fix`` describes a fix that does more than write the replacement. ``risk`` says why the fix may change what the
    code does, ``blocked_by`` what prevents a fix, ``advice`` what to write by hand.
    """

    kind: ProblemKind
    span: Span
    message: str
    index: int = -1
    replacement: str = ""
    advice: str = ""
    risk: str = ""
    blocked_by: str = ""
    fix: str = ""
    if_proved: str = ""
    """The text to write instead if a proof for all code that has the object shows that it is right."""
    is_built: bool = False
    """Whether the object was validated before: it has both forms of the settings then, whatever code sets them."""
    argument_of: str = ""
    """The function whose argument the object is, if the fix reads new settings of it; empty otherwise."""
    settings: frozenset[str] = frozenset()
    """The deprecated settings that the code names, as far as that is known."""
    since: Release | None = None
    """The first release for which it is a problem; None if that depends on the settings."""
    until: Release | None = None
    """The first later release for which it is none again."""
    package_since: tuple[str, str] | None = None
    """Another package, and the first of its releases for which it is a problem: the project has to pin such a one."""
    replaced_names: tuple[str, ...] = ()
    """The full names that the fix takes from other modules; where a project replaces one of them, it is unsafe."""

    def concerns(self, source: Release, target: Release) -> bool:
        """Return whether an upgrade from one release to another makes it a problem."""
        if self.since is None:
            return True
        return source < self.since <= target and (self.until is None or target < self.until)

    def at(self, index: int) -> Problem:
        """Return the problem with its index, if it is rewritten."""
        return replace(self, index=index) if self.replacement else self

    @property
    def may_be_proved(self) -> bool:
        """Whether a proof for all code that has the object makes its fix safe."""
        if self.is_built:
            return False
        return bool(self.if_proved) or (bool(self.replacement) and self.risk in ("", FOLLOWS_OBJECT))


class Document:
    """One file, read in its syntax, with the members that do not depend on the syntax.

    A rewrite gives a site other settings. ``rewrites`` are by the index of the site: its own settings afterwards. For
    the index of a problem they are empty, and the problem's replacement is written. Without more, a document has no
    sites, and nothing of it may change.
    """

    comment_form = CommentForm()
    skipped: Sequence[tuple[Use, str]]
    """Names that are not settings or not Megatron's, each with its owner."""
    _again: Document | None
    """The edited text that was checked last, read again."""

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        self.text = text
        self.path = path
        """The absolute path of the file, empty for a text without one."""
        self.catalogue = catalogue or load()
        """The settings that it reads."""
        self.sites: list[Site] = []
        """The sites, each at the position of its index."""
        self.problems: list[Problem] = []
        """What there is to report besides the sites."""
        self.top_level: list[str] = []
        """Names at the top of the file that show its kind: keys in YAML, imported modules in Python."""
        self.builds_on = ""
        """Other files that this one is merged into (``defaults:``), as written; empty when there are none."""
        self._again = None

    def call_instead(self, _index: int, _modules: object, /) -> str:
        """Return the call that sets modules and clears the old scope in place of both settings; empty without one."""
        return ""

    @property
    def edited(self) -> Document | None:
        """The document of the text that was checked last, None if none was right."""
        return self._again

    @property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting in Python code that is no import and no variable, in the order of the text.

        Those of sites are in ``Site.written``, too.
        """
        return ()

    def enclosing(self, _offset: int, /) -> str:
        """Return the class and function around an offset (``Recipe.configure``), empty where there is none."""
        return ""

    def value_beside(self, _index: int, _section: Sequence[str], _keys: Sequence[str], /) -> object:
        """Return a value of the configuration that a site belongs to.

        ``section`` is where the site is in the configuration (``model``), and ``keys`` where the value is
        (``ddp.check_for_nan_in_grad``). Without a section, the value is one of the site's own object. The result is
        plain data, ``Undecided`` or ``Missing``.
        """
        return Missing.UNKNOWN

    def variable_at(self, _offset: int, _name: str, /) -> object:
        """Return the value that a variable of the environment has for the code or configuration at an offset.

        The result is plain data, ``Undecided`` or ``Missing``: absent if nothing in the file sets it.
        """
        return Missing.UNKNOWN

    def risk(self, _index: int, /) -> str:
        """Return why the fix of a site or problem is not safe, empty when it is.

        It is not safe if code that is not followed may see the object: that code may set or read the settings under
        their deprecated names.
        """
        return ""

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites.

        Raises CannotEditError if the text of a site cannot be changed without changing others.
        """
        assert not rewrites, "it has no sites"
        return []

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        return "" if edited == self.text and not rewrites else "the file is not read"

    def quotes(self, rewrites: Mapping[int, Settings]) -> Quotes:
        """Return the settings of rewritten sites, by index and field, as the text that was checked last has them."""
        return quotes_of(self.sites, self._again, rewrites) if self._again else {}

    def spelled(self, _site: int, name: str, value: object) -> str:
        """Return a setting as it would be written at a site, in the syntax of the file; else as an assignment."""
        return f"{name} = {value}"

    def comments(self) -> Sequence[Comment]:
        """Return the comments; see ``comments.Commented``."""
        return comments_at(self.text, self._comments[0])

    def joined_lines(self) -> Sequence[Span]:
        """Return the parts of several lines that no comment can be in; see ``comments.Commented``."""
        return self._comments[1]

    @cached_property
    def _comments(self) -> tuple[list[Span], list[Span]]:
        """The spans of comments, and of the parts of several lines that no comment can be in."""
        if any(problem.kind in UNREADABLE for problem in self.problems):
            return lines_of_comments(self.text, self.comment_form), []
        return self._read_comments()

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        """Return what `_comments` has, for a text that can be read."""
        raise NotImplementedError

    def _in_order(self, edits: list[Edit], rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return edits in the order of the text. Raises CannotEditError if two of them overlap."""
        edits.sort(key=attrgetter("start", "end"))
        if any(one.end > other.start for one, other in pairwise(edits)):
            raise CannotEditError(min(rewrites), "two changes replace the same text")
        return edits


Quotes = Mapping[int, Mapping[str, str]]
"""Index of a site → field → the text of that setting."""


def quotes_of(sites: Sequence[Site], after: Document, edited: Mapping[int, Settings]) -> dict[int, dict[str, str]]:
    """Return the text of each setting of the edited ones among some sites, as ``after`` has it.

    A site that loses all its settings is no site afterwards, so sites are paired by their paths, in order.
    """
    after_by_path = _by_path(site for site in after.sites if site.own)
    result: dict[int, dict[str, str]] = {}
    for path, alike in _by_path(site for site in sites if edited.get(site.index, site.own)).items():
        for site, counterpart in zip(alike, after_by_path[path], strict=False):
            own = edited.get(site.index)
            if own is not None and own.keys() == counterpart.own.keys():
                written = counterpart.written
                result[site.index] = {one.setting: after.text[one.span.start : one.span.end] for one in written}
    return result


def _by_path(sites: Iterable[Site]) -> defaultdict[tuple[str, ...], list[Site]]:
    result: defaultdict[tuple[str, ...], list[Site]] = defaultdict(list)
    for site in sites:
        result[site.path].append(site)
    return result


class CannotEditError(Exception):
    """The text of the site with the index ``site`` cannot be changed; the message says why."""

    def __init__(self, site: int, reason: str) -> None:
        super().__init__(reason)
        self.site = site


def site_places(document: Document) -> list[str]:
    """Return the place of each site, which stays when lines move.

    It is the class and function around the site, and the path to its object. Of several sites with the same place, all
    but the first have a number.
    """
    seen: Counter[str] = Counter()
    result = []
    for site in document.sites:
        around, path = document.enclosing(site.span.start), ".".join(site.path)
        place = f"{around}: {path}" if around else path
        seen[place] += 1
        number = seen[place]
        result.append(f"{place} ({number})".lstrip() if number > 1 else place)
    return result
