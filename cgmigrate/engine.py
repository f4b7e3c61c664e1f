"""Site + rules → findings and fixes, each fix checked for soundness before anybody sees it.

A fix is sound when the settings before, read by the source release, capture what the settings
after capture, read by the target release. All sites that share text (through anchors and merge
keys) are fixed together or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cgmigrate.advice import advice_for
from cgmigrate.capture import Capture, Reader, Rejected, capture_of, in_words
from cgmigrate.choices import CannotChooseError, combined, first_branches, has_choice, undecided, variants
from cgmigrate.documents import (
    CannotEditError,
    Document,
    Problem,
    Site,
    Written,
    same,
)
from cgmigrate.ecosystems import Owner, Owners
from cgmigrate.examination import SAFE, UNSAFE, Context, Examination, Finding, Reason, SiteCase, reader_name
from cgmigrate.inheritance import components, effective, effective_in, own_after
from cgmigrate.rules import Case, Rule, State, matching_case
from cgmigrate.settings import (
    DEPRECATED,
    ENABLE,
    EXTERNAL,
    IMPL,
    INFERENCE,
    LAST_OLD,
    MODULES,
    SCOPE,
    SPLIT_IN,
    Choice,
    Release,
    Settings,
    Undecided,
    names_in,
)
from cgmigrate.telling import OR_UNSAFE, findings_of, place_of


def examine(document: Document, context: Context) -> Examination:
    """Return what there is to say about a document and how its sites should be written."""
    result = Examination(left_alone=list(document.left_alone))
    merged = effective(document.sites)
    asked = Owners(document.top_level, context.ecosystems)
    owners = [asked.of(site, merged[site.index].keys()) for site in document.sites]
    sites = _laid_over(document.sites, owners)
    sites, chosen = _choose(document, sites, owners, context)
    merged = effective(sites)
    cases: dict[int, SiteCase] = {}
    for site, owner in zip(sites, owners, strict=True):
        if owner.ecosystem is None:
            result.findings += _owner_unknown(site, document, context)
        elif owner.ecosystem.reader is None and not owner.conflict:
            result.left_alone += [(written, owner.ecosystem.name) for written in site.written]
        else:
            cases[site.index] = _case_of(site, owner, merged[site.index], document, context)
    problems = [
        (_held(problem, context), rule) for problem in document.problems if (rule := _rule_of(problem, context))
    ]
    fine = _decide(document, sites, cases, chosen, context, result, {p.index: {} for p, _ in problems if p.becomes})
    for problem, rule in problems:
        result.findings.append(_told_problem(problem, rule, document, context, result, fine))
    for case in cases.values():
        result.findings += findings_of(case, document, context, result)
    result.findings = [_with_help(finding, context) for finding in result.findings]
    result.findings.sort(key=lambda finding: (finding.span.start, finding.rule))
    return result


def settings_of(document: Document, context: Context) -> dict[int, tuple[Reader, Settings]]:
    """Each site that has a reader, by index: the reader, and the settings that it gets (merged ones included)."""
    merged = effective(document.sites)
    asked = Owners(document.top_level, context.ecosystems)
    owners = [asked.of(site, merged[site.index].keys()) for site in document.sites]
    merged = effective(_laid_over(document.sites, owners))
    return {
        site.index: (owner.ecosystem.reader, merged[site.index])
        for site, owner in zip(document.sites, owners, strict=True)
        if owner.ecosystem is not None and owner.ecosystem.reader is not None
    }


def _case_of(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
    """A site of a known owner under examination."""
    assert owner.ecosystem is not None
    reader = owner.ecosystem.reader or Reader.CONFIG
    case = _examine_site(site, reader, before, owner.conflict, document, context)
    if owner.ecosystem.laid_over and not site.inherits and _unsets(case):
        case.risk("it is laid over settings that this file does not hold, and a false may undo one of them")
    return case


def _unsets(case: SiteCase) -> bool:
    """Whether a boolean that is false would be deleted, which matters where something lies below."""
    final = case.final or case.before
    return any(case.before.get(name) is False and name not in final for name in (ENABLE, EXTERNAL))


def _laid_over(sites: Sequence[Site], owners: Sequence[Owner]) -> list[Site]:
    """Let a site that its ecosystem lays over the mapping around it inherit from that mapping's site."""
    by_path = {site.path: site.index for site in sites}
    result = list(sites)
    for site, owner in zip(sites, owners, strict=True):
        below = by_path.get(site.path[:-1])
        if owner.ecosystem is not None and owner.ecosystem.laid_over and below not in (None, site.index):
            result[site.index] = replace(site, inherits=(*site.inherits, below))
    return result


def _with_help(finding: Finding, context: Context) -> Finding:
    """A finding without a fix and without help of its own gets that of its rule."""
    if finding.safety or finding.help:
        return finding
    rule = context.rules.get(finding.rule)
    return replace(finding, help=rule.help) if rule else finding


def _rule_of(problem: Problem, context: Context) -> Rule | None:
    """The rule that explains a problem; None when it is not selected or not yet true of the target."""
    rule = context.rules.get(problem.rule)
    return rule if rule is not None and rule.deprecated_in <= context.target else None


def _held(problem: Problem, context: Context) -> Problem:
    return replace(problem, becomes="") if problem.span in context.held else problem


def _told_problem(
    problem: Problem, rule: Rule, document: Document, context: Context, result: Examination, fine: bool
) -> Finding:
    """A finding about what is no site; what it becomes is written like the fix of a site.

    ``fine`` says that all that can be written was tried together and is right.
    """
    told = Finding(rule.id, rule.severity, problem.span, problem.message, site=problem.index)
    if not problem.becomes:
        return replace(told, blocked_by=problem.blocked_by, help=problem.advice)
    risk = problem.risk
    if context.source >= SPLIT_IN:
        risk = risk or f"the code already runs on megatron-core {context.source}, where it does something else"
    risk = risk or document.exposed(problem.index)
    if not fine and (reason := _trouble(document, {problem.index: {}})):
        blocked_by = f"the text cannot be changed safely: {reason}"
        return replace(told, blocked_by=blocked_by, help=f"write `{problem.becomes}` by hand")
    (result.unsafe if risk else result.safe)[problem.index] = {}
    return replace(told, fix=problem.fix or f"write `{problem.becomes}`", safety=UNSAFE if risk else SAFE, because=risk)


def _if_megatrons(advice: str) -> str:
    return f"if it is megatron-core's, {advice}" if advice else ""


def _owner_unknown(site: Site, document: Document, context: Context) -> list[Finding]:
    rule = context.rules["CG006"]
    message = "whose `{}` this is cannot be told from here (DeepSpeed, TensorRT-LLM and others have one, too)"
    if site.origin is not None:
        whose = site.origin.callee or site.origin.object
        owner = f"`{whose}`" if whose else "what gets it"
        message = f"whose `{{}}` this is cannot be told: {owner} is not known as Megatron's"
    return [
        Finding(
            rule.id,
            rule.severity,
            written.span,
            message.format(written.key),
            help=_if_megatrons(advice_for(document, site, written, site.own)),
        )
        for written in site.written
        if site.origin is None or written.field in DEPRECATED
    ]


# --- one site -------------------------------------------------------------------------------------


def _examine_site(
    site: Site, reader: Reader, before: Settings, conflict: str, document: Document, context: Context
) -> SiteCase:
    case = SiteCase(site, document, reader, before, _source_for(before, context))
    for reason in filter(None, (conflict, site.fixed_in_place)):
        case.block(reason)
    if any(written.span in context.held for written in site.written):
        case.block("it is to stay as it is")
    undecided = [written for written in site.written if isinstance(written.value, Undecided)]
    if site.origin is not None and not DEPRECATED & set(before):
        # Code computes values all the time; that is worth a word only where an old name has to be migrated.
        undecided = []
    if copied := _copied_from(undecided):
        case.told.append(_copy_finding(context.rules["CG003"], copied, undecided))
    elif undecided:
        rule = context.rules["CG003"]
        for written in undecided:
            assert isinstance(written.value, Undecided)
            message = f"`{written.key}` has {written.value.reason}, so what is captured cannot be known from here"
            advice = advice_for(document, site, written, before)
            case.told.append(Finding(rule.id, rule.severity, written.span, message, help=advice))
    if any(isinstance(value, Undecided) for value in before.values()):
        case.block("a value beside it is computed when the file is used")
        case.hits = _hits_of_names(case, context)
        return case
    _apply_rules(case, context)
    _name_none(case, document)
    if site.overrides:
        _keep_overriding(case, context)
    _risk_readers(case, context)
    for code, merged_with in (("CG004", document.builds_on or context.names_files), ("CG010", context.merged_into)):
        if merged_with and any(hit.fix for _, hit in case.hits):
            case.risk(_merge_risk(code, merged_with), code)
            # A mapping that only merges another shows no setting: the finding is at the mapping that it merges.
            if case.site.written:
                case.told.append(_merged_finding(context.rules[code], merged_with, case))
    return case


def _risk_readers(case: SiteCase, context: Context) -> None:
    """A key that code reads by its name has to change together with that code."""
    if case.site.origin is not None or not any(hit.fix for _, hit in case.hits):
        return
    for written in case.site.written:
        place = context.key_readers.get(written.field)
        if place and written.key.rpartition(".")[2] == written.field:
            case.risk(f"code reads or sets `{written.field}` by its name ({place}), and has to change together with it")


def _name_none(case: SiteCase, document: Document) -> None:
    """Where a condition chooses between true and false, false needs a name, too: the implementation ``none``."""
    written = document.sites[case.site.index].own
    if IMPL in case.before or not any(isinstance(written.get(name), Choice) for name in (ENABLE, EXTERNAL)):
        return
    if case.final is not None and IMPL not in case.final:
        case.final = {**case.final, IMPL: "none"}
    if case.site.overrides:
        case.risk("the implementation is set elsewhere, if at all: where it is, false left it on, and `none` does not")


def _merged_finding(rule: Rule, other: str, case: SiteCase) -> Finding:
    """What to say of a site whose other half may stand in another file."""
    written = place_of(rule, case.site) or case.site.written[0]
    message = _merge_risk(rule.id, other)
    advice = f"migrate these files together by hand{OR_UNSAFE} each as if it stood alone"
    return Finding(rule.id, rule.severity, written.span, message, help=advice)


def _merge_risk(code: str, other: str) -> str:
    direction = "is merged with" if code == "CG004" else "is merged into"
    return f"the file {direction} `{other}`, and cgmigrate does not rewrite files together yet"


def _keep_overriding(case: SiteCase, context: Context) -> None:
    """A site that changes an object must go on saying what it said: leaving a setting out keeps an older value."""
    own, final = case.site.own, dict(case.final or {})
    if context.target < SPLIT_IN or case.blocked:
        return
    elsewhere = "is set elsewhere, if at all"
    if SCOPE in own and SCOPE not in final:
        if own[SCOPE] is None and MODULES in case.before:
            case.risk("it resets the deprecated setting of an object on which it may be set")
            case.final = final
            return
        final.setdefault(MODULES, [])
        if IMPL not in final and not names_in(final[MODULES]):
            case.risk(
                f"the implementation {elsewhere}; where it is `local` with the scope full_iteration, "
                "this line turned the full iteration off"
            )
    if IMPL not in final and any(own.get(name) is False for name in (ENABLE, EXTERNAL)):
        case.risk(
            f"the implementation {elsewhere}, and false turned it off: to keep that, write `cuda_graph_impl` none"
        )
    case.final = final


_DOTTED = re.compile(r"[A-Za-z_][\w.]*")


def _copied_from(undecided: Sequence[Written]) -> str:
    """The object of which settings are copied one by one, empty when there is no one such object."""
    objects: set[str] = set()
    for written in undecided:
        assert isinstance(written.value, Undecided)
        owner, dot, name = written.value.text.rpartition(".")
        objects.add(owner if dot and name == written.field and _DOTTED.fullmatch(owner) else "")
    return objects.pop() if len(objects) == 1 and len(undecided) > 1 else ""


def _copy_finding(rule: Rule, copied: str, undecided: Sequence[Written]) -> Finding:
    """One diagnostic for settings that are copied together, so that they go on being consistent."""
    written = next((written for written in undecided if written.field in DEPRECATED), undecided[0])
    *first, last = (f"`{other.field}`" for other in undecided)
    names = f"{', '.join(first)} and {last}"
    message = f"{names} are copied from `{copied}`, whose values are not known here"
    advice = (
        "copy `cuda_graph_impl`, `cuda_graph_modules` and `inference_cuda_graph_scope`, and no deprecated setting, "
        f"once `{copied}` is written with the new names"
    )
    return Finding(rule.id, rule.severity, written.span, message, help=advice)


def _source_for(settings: Settings, context: Context) -> Release:
    """The release that reads the settings now: one that knows their names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return context.target if new and context.source < SPLIT_IN <= context.target else context.source


def _hits_of_names(case: SiteCase, context: Context) -> list[tuple[Rule, Case]]:
    """The deprecated names of a site that cannot be evaluated, so that none of them goes unsaid."""
    decided = {name: value for name, value in case.before.items() if not isinstance(value, Undecided)}
    state = State(decided, reader_name(case.reader), case.source, context.target)
    found = [(rule, matching_case(rule, state)) for rule in context.rules.values() if rule.id.startswith("CG1")]
    return [(rule, hit) for rule, hit in found if hit is not None]


def _apply_rules(case: SiteCase, context: Context) -> None:
    """Let each migrating rule rewrite the settings once, in order, until none holds any more."""
    reader = reader_name(case.reader)
    current, done = dict(case.before), set[tuple[str, int]]()
    rules = [rule for rule in context.rules.values() if rule.migrates and rule.available_in <= context.target]
    progress = True
    while progress:
        progress = False
        for rule in rules:
            hit = matching_case(rule, State(current, reader, case.source, context.target))
            if hit is None or (rule.id, id(hit)) in done:
                continue
            done.add((rule.id, id(hit)))
            case.hits.append((rule, hit))
            if hit.fix is None:
                case.block(hit.decide, rule.id)
                continue
            current = hit.fix.apply(current)
            if hit.fix.unsafe:
                case.risk(hit.fix.unsafe, rule.id)
            progress = True
    case.final = current


# --- values that are chosen by conditions ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What sites that share settings become, whichever branches of their values are taken."""

    wanted: Mapping[int, Settings]
    risks: Mapping[int, Sequence[Reason]]


def _choose(
    document: Document, sites: list[Site], owners: Sequence[Owner], context: Context
) -> tuple[list[Site], dict[int, _Chosen]]:
    """Settle values with conditions: sites as for the first branches where all can be migrated alike, else undecided.

    What the former become is returned by the index of each site.
    """
    chosen: dict[int, _Chosen] = {}
    if not any(map(has_choice, sites)):
        return sites, chosen
    result = list(sites)
    for component in components(sites):
        if not any(has_choice(sites[index]) for index in component):
            continue
        try:
            answer = _over_all_branches(document, sites, component, owners, context)
        except CannotChooseError as error:
            for index in component:
                result[index] = undecided(sites[index], str(error))
        else:
            for index in component:
                result[index] = first_branches(sites[index])
                chosen[index] = answer
    return result, chosen


def _over_all_branches(
    document: Document, sites: Sequence[Site], component: Sequence[int], owners: Sequence[Owner], context: Context
) -> _Chosen:
    """Examine sites once for each combination of branches. Raises CannotChooseError where these do not agree."""
    if any((eco := owners[i].ecosystem) is None or eco.reader is None or owners[i].conflict for i in component):
        raise CannotChooseError
    if fixed := next(filter(None, (sites[index].fixed_in_place for index in component)), ""):
        raise CannotChooseError(fixed)
    found: list[dict[int, Settings]] = []
    risks: dict[int, list[Reason]] = {index: [] for index in component}
    options = variants(sites, component)
    for variant in options:
        merged = effective(variant.sites)
        cases = {i: _case_of(variant.sites[i], owners[i], merged[i], document, context) for i in component}
        group = list(cases.values())
        if blocked := next((case.blocked for case in group if case.blocked), None):
            raise CannotChooseError(f"where {variant.told}: {blocked.text}")
        if why := _order_matters(group):
            raise CannotChooseError(why)
        own = _proposed(variant.sites, component, group, context)
        if blocked := next((case.blocked for case in group if case.blocked), None):
            raise CannotChooseError(f"where {variant.told}: {blocked.text}")
        found.append(own)
        for index, case in cases.items():
            risks[index] += [risk for risk in case.risks if risk not in risks[index]]
    return _Chosen(combined(sites, component, options, found), risks)


# --- all sites together ---------------------------------------------------------------------------


def _decide(
    document: Document,
    sites: Sequence[Site],
    cases: Mapping[int, SiteCase],
    chosen: Mapping[int, _Chosen],
    context: Context,
    result: Examination,
    beside: Mapping[int, Settings],
) -> bool:
    """Choose the settings that sites get, component by component of sites that share text.

    Returns whether all that is chosen, and what is written ``beside`` the sites, could be written together;
    else each was tried alone.
    """
    candidates: list[tuple[list[SiteCase], dict[int, Settings]]] = []
    for component in components(sites):
        group = [cases[index] for index in component if index in cases]
        answer = chosen.get(component[0])
        changed = any(case.final is not None and _differs(case.final, case.before) for case in group)
        if not changed and answer is None:
            continue
        strangers = [index for index in component if index not in cases]
        blocked = [case for case in group if case.blocked]
        if blocked or strangers:
            line = document.text.count("\n", 0, (blocked[0].site if blocked else sites[strangers[0]]).span.start)
            for case in group:
                case.block(f"it shares settings with the mapping on line {line + 1}, which cannot be rewritten")
            continue
        if why := _order_matters(group):
            for case in group:
                case.block(why)
            continue
        wanted = _proposed(sites, component, group, context)
        if answer is not None:
            wanted = dict(answer.wanted)
            for case in group:
                case.risks += [risk for risk in answer.risks[case.site.index] if risk not in case.risks]
        wanted = {index: own for index, own in wanted.items() if _differs(own, document.sites[index].own)}
        if not any(case.blocked for case in group):
            candidates.append((group, wanted))
    together = {**beside, **{index: own for _, wanted in candidates for index, own in wanted.items()}}
    fine = not together or not _trouble(document, together)
    if fine:
        result.quotes |= document.quotes(together)
    for group, wanted in candidates:
        if not fine:
            if _cannot_be_written(document, wanted, group):
                result.by_hand |= wanted
                continue
            result.quotes |= document.quotes(wanted)
        _add_exposure(document, group)
        safe = not any(case.risks for case in group)
        for case in group:
            if not safe and not case.risks:
                case.risk("it shares settings with a mapping whose rewrite is not safe")
        (result.safe if safe else result.unsafe).update(wanted)
        result.together |= dict.fromkeys(wanted, tuple(wanted))
    return fine


def _add_exposure(document: Document, group: Sequence[SiteCase]) -> None:
    """A rewrite is safe only where no other code sets or reads the same object."""
    for case in group:
        if reason := document.exposed(case.site.index):
            case.risk(reason)


def _proposed(
    sites: Sequence[Site], component: Sequence[int], group: Sequence[SiteCase], context: Context
) -> dict[int, Settings]:
    """The own settings that the cases of one component ask for, each checked for what is captured then."""
    finals = {case.site.index: case.final for case in group if case.final is not None}
    wanted = own_after(sites, component, finals)
    after = effective_in(sites, component, wanted)
    for case in group:
        _check_soundness(case, after[case.site.index], context)
    return wanted


def _order_matters(group: Sequence[SiteCase]) -> str:
    """Why sites between which branches lie cannot be rewritten one by one, empty when they can.

    They can where the old and the new settings correspond one to one, whichever sites ran: modules under
    another name, or sites that set everything themselves.
    """
    unsure = [case for case in group if case.site.uncertain]
    if not unsure:
        return ""
    why = "which settings hold here depends on the branches and loops above"
    names = {name for case in group for name in case.site.own}
    scopes = [names_in(case.site.own.get(SCOPE)) for case in group]
    if names & {ENABLE, EXTERNAL, INFERENCE} or any("full_iteration_inference" in scope for scope in scopes):
        return why
    if all("full_iteration" not in scope for scope in scopes):
        return ""
    return "" if all({IMPL, SCOPE} <= set(case.site.own) for case in unsure) else why


def _differs(left: Settings, right: Settings) -> bool:
    return left.keys() != right.keys() or any(not same(left[name], right[name]) for name in left)


def _check_soundness(case: SiteCase, after: Settings, context: Context) -> None:
    """Compare captures; say in words what would change where they differ."""
    was = capture_of(case.before, case.source, case.reader)
    will = capture_of(after, context.target, case.reader)
    reader = case.reader.value
    if isinstance(was, Rejected):
        text = f"{reader} ({case.source}) refuses it as it is ({was.reason.rstrip('.')}): what was meant?"
        case.block(text, help=_help_for(was, case.before, case, context))
    elif isinstance(will, Rejected):
        text = f"{reader} ({context.target}) would refuse the result ({will.reason.rstrip('.')})"
        case.block(text, help=_help_for(will, after, case, context))
    elif case.reader.validates_as_bridge and (other := _bridge_order(case, was, context)):
        case.risk(other)
    elif was != will:
        now, then = in_words(was, will)
        case.risk(
            f"megatron-core {case.source} captures {now}; after the rewrite {context.target} would capture {then}"
        )
    elif case.source >= SPLIT_IN and (old := _older_meaning(case)) is not None and old != was:
        before, now = in_words(old, was) if isinstance(old, Capture) else (_refused(old), str(was))
        case.risk(
            f"up to megatron-core {LAST_OLD} this captured {before}; {case.source} captures {now}: which is meant?"
        )


def _help_for(verdict: Rejected, settings: Settings, case: SiteCase, context: Context) -> str:
    """What to write instead of settings that are refused: the help of the rule about this refusal."""
    state = State(settings, reader_name(case.reader), case.source, context.target, verdict.code)
    hits = (matching_case(rule, state) for rule in context.rules.values() if not rule.migrates)
    found = next((hit.help for hit in hits if hit is not None and "rejected" in hit.when), "")
    return found or f"write settings that {case.reader.value} accepts"


def _bridge_order(case: SiteCase, was: Capture, context: Context) -> str:
    """Why it is open what a boolean captures through Megatron-Bridge, empty when it is not.

    The order of reading changed in Bridge 0.6, which also runs with older releases of megatron-core.
    """
    boolean = next((name for name in (ENABLE, EXTERNAL) if case.before.get(name) is True), "")
    now = capture_of(case.before, context.target, case.reader)
    contradicts = bool(boolean) and case.before.get(IMPL) == "none"
    if not contradicts or case.source == context.target or not isinstance(now, Capture) or now == was:
        return ""
    first, second = in_words(was, now)
    return (
        f"Megatron-Bridge up to 0.5 captures {first}; since 0.6 it clears the scope under `none` "
        f"before megatron-core reads `{boolean}`, and captures {second}: which is meant?"
    )


def _older_meaning(case: SiteCase) -> Capture | Rejected | None:
    """What 0.17 made of settings that only use names it knows; None for others."""
    if MODULES in case.before or INFERENCE in case.before or case.before.get(IMPL) == "full_iteration":
        return None
    return capture_of(case.before, LAST_OLD, case.reader)


def _refused(verdict: Rejected) -> str:
    return f"nothing: it was refused ({verdict.reason})"


def _cannot_be_written(document: Document, wanted: Mapping[int, Settings], group: Sequence[SiteCase]) -> bool:
    """Try the edits of one group; on failure block it."""
    reason = _trouble(document, wanted)
    if reason:
        for case in group:
            case.block(f"the text cannot be changed safely: {reason}")
    return bool(reason)


def _trouble(document: Document, wanted: Mapping[int, Settings]) -> str:
    """Try the edits on the text and read it again; return what is wrong, empty when nothing."""
    from cgmigrate.edits import OverlapError, apply

    try:
        return document.check(apply(document.text, document.edits(wanted)), wanted)
    except CannotEditError as error:
        return str(error)
    except OverlapError as error:
        return f"two changes meet: {error}"
