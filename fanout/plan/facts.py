"""From what the pass observed to what the gate engine is told."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from fanout.api.people import person
from fanout.api.reasons import Reason
from fanout.calendar.windows import Calendar
from fanout.gates.answer import PolicyDecision
from fanout.gates.facts import (
    Draft,
    Grant,
    Hold,
    PolicyFacts,
    Published,
    StageHistory,
    VariantFacts,
)
from fanout.gates.instants import from_the_future
from fanout.gates.records import Action, Approval, Decision, Evidence, Moment, Override, Records
from fanout.gates.rules import StageRule, Verdict
from fanout.plan.about import NOTHING, Abouts
from fanout.plan.book import ACCEPT_RECORDS, Recorded
from fanout.plan.cases import Case
from fanout.plan.disputes import RESOLVE, Resolution, read
from fanout.plan.observation import OpenDraft
from fanout.plan.seen import UNSEEN, Seen
from fanout.plan.status import DraftLine, instant
from fanout.plan.trailers import NONE
from fanout.values import frozen, replace

CONFIRM_REMOVAL = "ConfirmRemoval"
_NOT_THE_GATES = frozenset(
    {RESOLVE, CONFIRM_REMOVAL, ACCEPT_RECORDS}
)  # what these decide no gate asks about


@frozen
class Question:
    """What the gates are to judge: one policy, or one variant written by hand."""

    name: str
    rules: tuple[StageRule, ...]
    revisions: tuple[str, ...]
    records: Records
    history: Mapping[tuple[str, str], StageHistory]
    now: datetime
    suspended: bool = False
    sweep: bool = True
    resolutions: tuple[Resolution, ...] = ()
    serialize: bool = False
    calendars: tuple[Calendar, ...] = ()
    finishing: frozenset[str] = frozenset()  # the calendars that let a rollout go on to its end
    unread: bool = False  # a calendar may be missing
    heard: str = ""  # what is published now was not there when that was said
    about: Abouts = field(default_factory=dict)  # by variant
    drafts: Mapping[str, DraftLine] = field(default_factory=dict)  # by variant, when written


@frozen
class Told:
    """What the gates were told of a variant, and what that came from."""

    case: Case
    rest: tuple[object, ...]
    facts: VariantFacts


Known = dict[str, Told]
"""By variant"""


def facts(
    question: Question,
    cases: Sequence[Case],
    seen: Mapping[str, Seen],
    *,
    chosen: bool = True,
    known: Known | None = None,
) -> PolicyFacts:
    """What the evaluator may look at.

    `seen` has, by variant, what people and machines have seen of it. Before candidates are chosen
    nobody can say what is in the way of a draft, and nobody asks. `known` is kept from pass to
    pass, and added to: what is told of a case that is the very same is not put together again.
    """
    return PolicyFacts(
        name=question.name,
        stages=question.rules,
        variants=tuple(
            _as_told(case, seen.get(case.spec.name, UNSEEN), question, known, chosen=chosen)
            for case in cases
        ),
        revisions=question.revisions,
        records=question.records,
        history=question.history,
        now=question.now,
        suspended=question.suspended,
        serialize=question.serialize,
        calendars=question.calendars,
        finishing=question.finishing,
        unread=question.unread,
        sweep=question.sweep,
    )


def _as_told(
    case: Case, seen: Seen, question: Question, known: Known | None, *, chosen: bool
) -> VariantFacts:
    name = case.spec.name
    if known is None:
        return _variant(case, seen, question, chosen=chosen)
    rest = (
        seen,
        question.about.get(name, NOTHING),
        question.records.removals.get(name),
        question.resolutions,
        question.drafts.get(name),
    )
    before = known.get(name)
    if before is not None and before.case is case and before.rest == rest:
        return before.facts
    found = _variant(case, seen, question, chosen=chosen)
    if not case.unrecorded:  # what is seen for the first time is seen now
        known[name] = Told(case, rest, found)
    return found


def _disputed(case: Case, question: Question) -> int:
    """How many conflicts of the open draft nobody has decided, by word or by a commit."""
    draft, spec = case.draft, case.spec
    if draft is None or case.choices.otherwise is not None:
        return 0
    about = (it for it in question.resolutions if it.is_about(spec.stage, spec.name))
    if any(not it.choices and it.revision == draft.trailers.revision for it in about):
        return 0
    if draft.trailers.conflicts == NONE:
        return 0
    found = read(draft.trailers.conflicts)
    known = case.choices.by_key.keys() | draft.settled
    return sum(not it.decided and it.key not in known for it in found)


def _authors(case: Case, draft: OpenDraft) -> frozenset[str]:
    """Who has changed what is in the draft: there, or upstream in the commit that it is made of."""
    upstream = case.package.upstream if case.package is not None else None
    if upstream is None or upstream.revision.name != draft.trailers.revision:
        return draft.people
    return draft.people | {person(upstream.author)}


def _unclear(case: Case) -> Hold | None:
    """Fail closed: a target of which nobody can say whether it is offline gets nothing."""
    if not case.spec.unclear:
        return None
    who = "the policy's author: offlineWhen; or whoever owns the target"
    return Hold(Reason.EXPRESSION_ERROR, case.spec.unclear, who=who)


def _failed(case: Case) -> Hold | None:
    if case.failure is None:
        return None
    who = "whoever maintains the upstream package"
    return Hold(case.failure.reason, str(case.failure), who=who)


def _variant(case: Case, seen: Seen, question: Question, *, chosen: bool) -> VariantFacts:
    spec, known, draft, grant = case.spec, case.published, case.draft, case.line.grant
    disputed = _disputed(case, question)
    standing = draft is not None and chosen and case.standing
    about, line = question.about.get(spec.name, NOTHING), question.drafts.get(spec.name)
    return VariantFacts(
        name=spec.name,
        stage=spec.stage,
        target=spec.target,
        priority=spec.priority,
        group=about.group,
        published=Published(
            revision=known.revision,
            digest=known.digest,
            tree=known.tree,
            at=known.at,
            commits=seen.published | ({known.merge} if known.merge else frozenset()),
            reads=case.reads,
            undone=case.undone,
            heard=question.heard if case.unrecorded else known.heard,
            since=known.since,
        )
        if known
        else None,
        draft=Draft(
            revision=draft.trailers.revision,
            digest=draft.trailers.digest,
            tree=draft.tree or "",
            current=standing,
            disputed=disputed,
            adopts=case.foreign,
            reads=case.inputs.reads if case.inputs is not None and standing else {},
            authors=_authors(case, draft),
            moves=case.moves,
            commits=seen.drafted | {draft.commit},
            written=line.at if line is not None and line.digest == draft.trailers.digest else None,
        )
        if draft and not case.unrecorded
        else None,
        grant=Grant(grant.revision, grant.digest, grant.at) if grant and case.granted else None,
        suspended=spec.suspended,
        readings=seen.readings,
        answers=case.line.answers,
        offline=spec.offline,
        depends_on=about.depends_on,
        variables=about.variables,
        held=(case.hold or _unclear(case)) if chosen else None,
        failed=_failed(case),
        removed=question.records.removals.get(spec.name),
    )


def foreseen(facts_before: PolicyFacts, decision: PolicyDecision) -> PolicyFacts:
    """The facts as this pass will leave them: what it publishes is published.

    Drafts follow these, so that after one pass they are up to date. (Design §3.)
    """
    moment = facts_before.records.moment(facts_before.now)
    return replace(
        facts_before,
        variants=tuple(
            _published(variant, moment) if decision.variants[variant.name].publish else variant
            for variant in facts_before.variants
        ),
        history=decision.history,
    )


def _published(variant: VariantFacts, moment: Moment) -> VariantFacts:
    assert variant.draft is not None, "only a standing draft is published"
    draft = variant.draft
    return replace(
        variant,
        published=Published(
            draft.revision, draft.digest, draft.tree, moment.now, heard=moment.heard
        ),
        draft=None,
        grant=None,
    )


def records(found: Sequence[Recorded], now: datetime) -> Records:
    """Records as the gates know them, in the order in which they were recorded.

    A removal that is dated ahead of `now` is no step yet.
    """
    return Records(
        evidence=tuple(_evidence(item) for item in found if item.kind == "Evidence"),
        approvals=tuple(_approval(item) for item in found if item.kind == "Approval"),
        decisions=tuple(
            _decision(item)
            for item in found
            if item.kind == "Decision" and item.spec["action"] not in _NOT_THE_GATES
        ),
        removals={
            name: item.at
            for item in found
            if item.kind == "Decision"
            and item.spec["action"] == CONFIRM_REMOVAL
            and not from_the_future(item.at, now)
            for name in item.spec["variants"]
        },
    )


def with_removals(said: Records, removed: Mapping[str, datetime]) -> Records:
    """The same, with the removals that no person decided: they are steps alike."""
    if not removed:
        return said
    both = dict(said.removals)
    for name, at in removed.items():
        both[name] = max(at, both.get(name, at))
    return replace(said, removals=both)


def _evidence(item: Recorded) -> Evidence:
    spec = item.spec
    return Evidence(
        name=item.name,
        at=item.at,
        by=person(item.by),
        stage=spec.get("stage", ""),
        check=spec["check"],
        status=Verdict(spec["status"]),
        revision=spec.get("revision", ""),
        commit=spec.get("commit", ""),
        variants=tuple(spec.get("variants", ())),
        link=spec.get("link", ""),
        withdrawn=item.withdrawn,
    )


def _approval(item: Recorded) -> Approval:
    spec = item.spec
    return Approval(
        name=item.name,
        at=item.at,
        by=person(item.by),
        stage=spec.get("stage", ""),
        check=spec["check"],
        revision=spec.get("revision", ""),
        trees=frozenset(spec.get("trees", ())),
        variants=tuple(spec.get("variants", ())),
        revokes=spec.get("revokes", ""),
    )


def _decision(item: Recorded) -> Decision:
    spec = item.spec
    return Decision(
        name=item.name,
        at=item.at,
        by=person(item.by),
        action=Action(spec["action"]),
        stage=spec.get("stage", ""),
        variants=tuple(spec.get("variants", ())),
        revision=spec.get("revision", ""),
        trees=frozenset(spec.get("trees", ())),
        overrides=frozenset(Override(item) for item in spec.get("overrides", ())),
        accept_conflicts=spec.get("acceptConflicts", False),
        reason=spec.get("reason", ""),
        expires=instant(spec["expires"]) if spec.get("expires") else None,
    )
