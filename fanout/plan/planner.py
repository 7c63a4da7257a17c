"""From the step of each variant to actions, and to what the status is to remember.

Pure: the same steps give the same plan, byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from fanout.gates.facts import StageHistory
from fanout.gates.records import Moment
from fanout.plan.actions import Action, Kind, Plan
from fanout.plan.cases import Case
from fanout.plan.clearing import Clearing, Leftovers
from fanout.plan.clearing import actions as clearing_actions
from fanout.plan.departing import Departure
from fanout.plan.departing import actions as departing_actions
from fanout.plan.rejected import bounded, of_draft
from fanout.plan.status import (
    GrantLine,
    LeftPlace,
    Place,
    PublishedLine,
    Status,
    VariantLine,
)
from fanout.plan.steps import Planned, Step
from fanout.values import frozen, replace

_KINDS = {Step.WRITE: Kind.WRITE_DRAFT, Step.PUBLISH: Kind.PUBLISH, Step.REMOVE: Kind.REMOVE_DRAFT}


@frozen
class PolicyPlan:
    """One policy's steps and actions, and its status before and after them."""

    namespace: str
    name: str
    steps: tuple[Planned, ...]
    actions: tuple[Action, ...]
    before: Status
    planned: Status  # with the releases: recorded before anything is pushed
    published: Mapping[str, VariantLine] = field(default_factory=dict)  # once its push has worked
    clearings: tuple[Clearing, ...] = ()
    departures: tuple[Departure, ...] = ()


def plan_policy(
    namespace: str,
    name: str,
    steps: Sequence[Planned],
    before: Status,
    history: Mapping[tuple[str, str], StageHistory],
    moment: Moment,
    leftovers: Leftovers,
) -> PolicyPlan:
    """What to do for one policy, and what to remember of it."""
    lines, published, actions = _of_variants(steps, before, moment)
    for clearing in leftovers.clearings:
        actions += clearing_actions(clearing)
    for departure in leftovers.departures:
        actions += departing_actions(departure)
    about = Action(Kind.RECORD, namespace, name)
    if any(not planned.case.spec.policy for planned in steps):
        about = Action(Kind.RECORD, namespace, "", variant=name)
    actions += _whereabouts(about, leftovers)
    places = (before.places | _places(steps) | leftovers.found) - leftovers.emptied
    removed = {**before.removed, **{it.variant: it.at for it in leftovers.departures}}
    planned_status = replace(
        before,
        variants=lines,
        history=history,
        revisions={**before.revisions, **_pins(steps)},
        places=places,
        removed=removed,
    )
    actions += _verdicts(about, before, planned_status)
    order = list(Kind)
    actions.sort(key=lambda action: (order.index(action.kind), action.stage, action.variant))
    return PolicyPlan(
        namespace,
        name,
        tuple(steps),
        tuple(actions),
        before,
        planned_status,
        published,
        leftovers.clearings,
        leftovers.departures,
    )


def _of_variants(
    steps: Sequence[Planned], before: Status, moment: Moment
) -> tuple[dict[str, VariantLine], dict[str, VariantLine], list[Action]]:
    """The variants' lines before anything is pushed, those once it is, and what is to be done."""
    lines = dict(before.variants)
    arrivals = frozenset(
        (item.case.view.key, item.case.spec.path)
        for item in steps
        if item.step is Step.PUBLISH or item.case.unrecorded
    )
    published: dict[str, VariantLine] = {}
    actions: list[Action] = []
    for planned in steps:
        case = planned.case
        name_of = case.spec.name
        recorded = before.variants.get(name_of)
        if recorded is None and _only_drafted(planned):
            actions += _actions(planned)
            continue
        line = _remembered(planned, moment)
        if line is not recorded:
            recorded = recorded or VariantLine(case.view.key, case.spec.path, orphan=line.orphan)
            differences = _differences(case, recorded, line)
            if differences or replace(line, stage=recorded.stage) != recorded:
                lines[name_of] = line
            actions += differences
        if planned.step is Step.PUBLISH:
            published[name_of] = _arrived(line, case, arrivals, _in_force(case, moment))
        elif case.unrecorded:
            published[name_of] = _arrived(line, case, arrivals, _seen(case, moment))
        actions += _actions(planned)
    return lines, published, actions


def joined(plans: Iterable[PolicyPlan]) -> Plan:
    """One plan for all policies of a pass."""
    return Plan(tuple(action for plan in plans for action in plan.actions))


def _only_drafted(planned: Planned) -> bool:
    """Is there nothing about it but, at most, a draft? Its branch says all of that."""
    line = planned.case.line
    said = (line.grant, line.published, line.left, line.answers, planned.release, planned.answers)
    if planned.case.unrecorded or any(said):
        return False
    return planned.step in (Step.KEEP, Step.WRITE, Step.REMOVE)


def _remembered(planned: Planned, moment: Moment) -> VariantLine:
    """The variant's line as it is to be before anything is pushed."""
    case, line = planned.case, planned.case.line
    if line.stage != case.spec.stage:
        line = replace(line, stage=case.spec.stage)
    if planned.step is Step.ADOPT:
        line = replace(line, grant=None, published=_adopted(case, moment))
    if planned.release:
        line = replace(line, grant=_grant(case, moment))
    return line if line.answers == planned.answers else replace(line, answers=planned.answers)


def _answered(case: Case, recorded: VariantLine, line: VariantLine) -> list[Action]:
    """What machines said, as far as it is said anew or does not count any more."""
    name = case.spec.name
    given = {(it.check, it.digest) for it in line.answers}
    details = [
        f"that check {it.check} of {name} has {it.verdict.value}"
        for it in line.answers
        if it not in recorded.answers
    ]
    details += [
        f"that check {it.check} of {name} is to be answered again"
        for it in recorded.answers
        if (it.check, it.digest) not in given
    ]
    return [_action(Kind.RECORD, case, detail) for detail in details]


def _differences(case: Case, recorded: VariantLine, line: VariantLine) -> list[Action]:
    """What is remembered otherwise and no other action tells of.

    A stage that is not on record yet is written when anything else is.
    """
    found, name = _answered(case, recorded, line), case.spec.name
    published = case.line.published
    if published is not None and _tag_of(recorded) != published.tag and published.tag:
        seen = f"that {name} is published at {published.revision}, as its tag says"
        found.append(_action(Kind.RECORD, case, seen))
    if line.place != recorded.place:
        found.append(_rehomed(case, recorded))
    if line.orphan != recorded.orphan:
        found.append(_action(Kind.RECORD, case, f"the deletionPolicy of {name}"))
    if recorded.stage not in ("", line.stage):
        where = f"in stage {line.stage}" if line.stage else "in no stage"
        found.append(_action(Kind.RECORD, case, f"that {name} is {where} now"))
    return found


def _grant(case: Case, moment: Moment) -> GrantLine:
    assert case.draft is not None, "only a standing draft is released"
    trailers = case.draft.trailers
    grant = GrantLine(
        trailers.revision,
        trailers.commit,
        trailers.digest,
        case.draft.tree or "",
        moment.now,
        reads=_read(case),
        rejected=bounded(of_draft(case.draft)),
        records=moment.records,
    )
    if case.line.place == (case.view.key, case.spec.path):
        return grant
    return replace(grant, repository=case.view.key, path=case.spec.path)


def _read(case: Case) -> Mapping[str, str]:
    """The cluster objects in a draft, which is of the present inputs if it stands."""
    return case.inputs.reads if case.inputs is not None and case.standing else {}


def _adopted(case: Case, moment: Moment) -> PublishedLine:
    """Other inputs that render to the same bytes: in force without a commit."""
    assert case.inputs is not None, "a rendered case has inputs"
    assert case.content is not None, "an adopted case is rendered"
    assert case.rendered is not None, "an adopted case is rendered"
    before = case.published if case.reverted is None else None
    stays = before is not None and before.revision == case.revision
    return PublishedLine(
        revision=case.revision,
        commit=case.upstream_commit,
        digest=case.inputs.digest,
        tree=case.content.tree,
        at=before.at if before and stays else moment.now,
        merge=before.merge if before else case.view.head,
        tag=before.tag if before else "",
        pristine=case.rendered.tree,
        reads=case.inputs.reads,
        heard=before.heard if before and stays else moment.heard,
        since=before.stay(case.revision) if before else None,
        rejected=before.rejected if before and stays else (),
    )


def _seen(case: Case, moment: Moment) -> PublishedLine | None:
    """A publication that nobody has recorded."""
    found, before = case.published, case.line.published
    if found is None:
        return None
    since = before.stay(found.revision) if before is not None else None
    return replace(found, reads=case.reads, heard=moment.heard, since=since)


def _in_force(case: Case, moment: Moment) -> PublishedLine:
    """What is in force once the publication is pushed; the merge's id is filled in then."""
    assert case.draft is not None, "only a standing draft is published"
    trailers = case.draft.trailers
    return PublishedLine(
        revision=trailers.revision,
        commit=trailers.commit,
        digest=trailers.digest,
        tree=case.draft.tree or "",
        at=moment.now,
        pristine=trailers.rendered,
        reads=_read(case),
        heard=moment.heard,
        since=case.published.stay(trailers.revision) if case.published is not None else None,
        rejected=bounded(of_draft(case.draft)),
    )


def _arrived(
    line: VariantLine, case: Case, arrivals: frozenset[Place], published: PublishedLine | None
) -> VariantLine:
    """The line of a variant with a publication; what it leaves is remembered until it goes.

    A place that another variant takes in the same push is not left: nothing is there any more.
    """
    here = case.view.key, case.spec.path
    left = [place for place in line.left if place.place not in arrivals]
    former = case.former
    if former is not None and line.place not in arrivals and former.state.tree is not None:
        taken = case.draft.trailers.onto if case.draft is not None else former.state.tree
        left.append(LeftPlace(former.view.key, former.path, taken))
    return VariantLine(*here, None, published, tuple(left), line.orphan, case.spec.stage)


def _tag_of(line: VariantLine) -> str:
    return line.published.tag if line.published is not None else ""


def _rehomed(case: Case, recorded: VariantLine) -> Action:
    at = f"{case.spec.repository}:{case.spec.path}"
    return _action(Kind.RECORD, case, f"that {case.spec.name} is {at} and not {recorded.path}")


def _actions(planned: Planned) -> list[Action]:
    case, step = planned.case, planned.step
    actions = [_action(Kind.RELEASE, case)] if planned.release else []
    if step in _KINDS:
        actions.append(_action(_KINDS[step], case, _reason(step)))
    if case.unrecorded and case.published is not None:
        seen = f"that {case.spec.name} is published at {case.published.revision}"
        actions.append(_action(Kind.RECORD, case, seen))
    elif step is Step.ADOPT:
        seen = f"that {case.spec.name} is at {case.revision} with its present inputs already"
        actions.append(_action(Kind.RECORD, case, seen))
    if case.draft is not None and step in (Step.SETTLE, Step.ADOPT):
        actions.append(_action(Kind.REMOVE_DRAFT, case, "its content is on the branch"))
    return actions


def _reason(step: Step) -> str:
    return "what it proposes is in force already" if step is Step.REMOVE else ""


def _action(kind: Kind, case: Case, detail: str = "") -> Action:
    spec, draft = case.spec, case.draft
    return Action(
        kind=kind,
        namespace=spec.namespace,
        policy=spec.policy,
        stage=spec.stage,
        variant=spec.name,
        repository=spec.repository,
        path=spec.path,
        revision=case.revision,
        digest=case.inputs.digest if case.inputs else "",
        tree=case.content.tree if case.content else (draft.tree or "" if draft else ""),
        ref=case.ref if kind is not Kind.RECORD else "",
        expected=draft.commit if draft and kind is not Kind.RECORD else "",
        detail=detail,
    )


def _whereabouts(about: Action, leftovers: Leftovers) -> list[Action]:
    """What is remembered of repositories beside drafts."""
    details = [f"that nothing of it is left in {place}" for place in sorted(leftovers.emptied)]
    details += ["that its records begin anew"] if leftovers.found else []
    return [replace(about, detail=detail) for detail in details]


def _pins(steps: Sequence[Planned]) -> dict[str, str]:
    """The commit of every revision in use: a tag seen to move holds its policy. (Design §1.)"""
    return {
        item.case.revision: item.case.upstream_commit
        for item in steps
        if item.step in (Step.WRITE, Step.PUBLISH, Step.ADOPT)
    }


def _places(steps: Sequence[Planned]) -> set[str]:
    """The repositories to which drafts are written."""
    writes = (item.case for item in steps if item.step is Step.WRITE)
    return {case.view.key for case in writes}


def _verdicts(about: Action, before: Status, after: Status) -> list[Action]:
    """One action for each verdict that is to be remembered differently.

    `about` names the policy, or the variant written by hand, which is a stage of its own.
    """
    actions = []
    for key in sorted(before.history.keys() | after.history.keys()):
        past, present = before.history.get(key), after.history.get(key)
        if past == present:
            continue
        stage, revision = key
        whose = f"variant {about.variant}" if about.variant else f"stage {stage}"
        if present is not None and present.passed is not None and present.left is not None:
            what = f"that {whose} has moved on from {revision}"
        elif present is not None and present.passed is not None:
            what = f"that {whose} has passed {revision}"
        else:
            what = f"that {whose} does not pass {revision} any more"
        named = "" if about.variant else stage
        actions.append(replace(about, stage=named, revision=revision, detail=what))
    return actions
