"""The variants that nothing asks for any more, where something of them is, and whether they go.

They are known by what is on record and by their drafts. A target that is there and came to nothing,
as one with a failing expression, is not gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.api.upstream_policy import REMOVAL_LIMIT
from fanout.gates.answer import PolicyDecision
from fanout.gates.facts import Hold, PolicyFacts
from fanout.gates.removal import Confirmation, Gone, RemovalFacts, Removals, removals
from fanout.gates.wording import counted
from fanout.plan.book import Recorded
from fanout.plan.departing import Departure, going_since
from fanout.plan.facts import CONFIRM_REMOVAL
from fanout.plan.observation import RepositoryView
from fanout.plan.removal import Removal, path_of
from fanout.plan.status import Place, Status, VariantLine
from fanout.plan.trailers import NONE
from fanout.reconcile.look import orphans
from fanout.reconcile.names import Named
from fanout.reconcile.places import owner_of
from fanout.reconcile.whereabouts import Known
from fanout.selection.model import TargetFailure
from fanout.selection.naming import variant_digest
from fanout.values import frozen, replace


@frozen
class Spot:
    """A place where something of a variant is."""

    place: Place
    line: VariantLine | None = None
    taken: str = ""  # the tree that the variant took along when it left


@frozen
class GoneVariant:
    """A variant whose target is gone, and where something of it is."""

    name: str
    stage: str  # as recorded
    line: VariantLine | None
    spots: tuple[Spot, ...]


@frozen
class Asked:
    """What beside places says whether a variant that is gone may go."""

    facts: PolicyFacts
    records: Sequence[Recorded]  # those that stand
    doubt: str = ""  # why nobody can be sure that a target is gone
    act: bool = True  # False: the pass keeps drafts up to date and no more


def gone_variants(
    named: Named, status: Status, views: Iterable[RepositoryView]
) -> tuple[GoneVariant, ...]:
    """All that is on record or drafted for a policy and that none of its targets asks for."""
    if named.policy is None or not named.complete:
        return ()
    drafts = _drafts(owner_of(named), views, given_up=orphans(named))
    failed = {variant_digest(named.namespace, named.name, it.target) for it in named.failures}
    names = (status.variants.keys() | drafts.keys()) - {variant.name for variant in named.variants}
    return tuple(
        gone_variant(name, status.variants.get(name), drafts.get(name, {}))
        for name in sorted(names)
        if name.rpartition("-")[2] not in failed
    )


def gone_variant(name: str, line: VariantLine | None, drafts: Mapping[Place, str]) -> GoneVariant:
    """The variant with its places; `drafts` has the stage by the place of each of its drafts."""
    spots: dict[Place, Spot] = {}
    if line is not None:
        spots[line.place] = Spot(line.place, line)
        if line.granted_place is not None:
            granted = Spot(line.granted_place, replace(line, published=None))
            spots.setdefault(line.granted_place, granted)
        spots |= {spot.place: spot for spot in left_behind(line)}
    for place in drafts:
        spots.setdefault(place, Spot(place))
    stage = line.stage if line is not None else ""
    stages = (said for said in drafts.values() if said)
    return GoneVariant(name, stage or next(stages, ""), line, tuple(spots.values()))


def left_behind(line: VariantLine | None) -> tuple[Spot, ...]:
    """The places that a variant left, with a package of it that is still there."""
    return tuple(Spot(left.place, taken=left.tree) for left in (line.left if line else ()))


def _drafts(
    owner: str, views: Iterable[RepositoryView], *, given_up: bool
) -> dict[str, dict[Place, str]]:
    """The stage by place of each draft, by variant.

    `given_up`: a draft with a person's commits is left to them, and is no sign of a variant.
    """
    found: dict[str, dict[Place, str]] = {}
    for name, place, stage in drafted(owner, views, edited=not given_up):
        found.setdefault(name, {}).setdefault(place, stage)
    return found


def drafted(
    owner: str, views: Iterable[RepositoryView], *, edited: bool = True
) -> Iterator[tuple[str, Place, str]]:
    """Variant, place and stage of each draft of a policy; or without those that people edited."""
    for view in views:
        for draft in view.drafts.values():
            trailers = draft.trailers
            if trailers.policy == owner and (edited or not draft.carries):
                stage = "" if trailers.stage == NONE else trailers.stage
                yield trailers.variant, (view.key, path_of(draft.ref)), stage


def departures(
    named: Named, status: Status, known: Known, found: Sequence[GoneVariant], asked: Asked
) -> tuple[Removals, tuple[Departure, ...]]:
    """Which of them go in this pass, what holds the others, and what is to be done."""
    if not found:
        return Removals(), ()
    going = {it.name: _removals(named, known, it) for it in found}
    facts = asked.facts
    policy = named.policy
    assert policy is not None, "only a policy has targets"
    answer = removals(
        RemovalFacts(
            policy=named.name,
            stages=facts.stages,
            present=_present(named),
            gone=tuple(_gone(it, going[it.name], known) for it in found),
            now=facts.now,
            limit=REMOVAL_LIMIT if (limit := policy.spec.removal_limit) is None else limit,
            confirmations=confirmations(asked.records),
            decisions=facts.records.decisions,
            suspended=facts.suspended,
            sweep=facts.sweep,
            calendars=facts.calendars,
            unread=facts.unread,
            doubt=_doubt(asked.doubt),
        )
    )
    by_name = {it.name: it for it in found} if asked.act else {}
    return answer, tuple(
        _departure(named, by_name[name], going[name], status, facts.now)
        for name in answer.now
        if name in by_name
    )


def _present(named: Named) -> int:
    """How many targets are there, those included that came to nothing."""
    return len({it.target for it in named.variants} | {it.target for it in named.failures})


def _departure(
    named: Named,
    gone: GoneVariant,
    going: tuple[Removal, ...],
    status: Status,
    now: datetime,
) -> Departure:
    at = going_since(gone.name, gone.line, status.removed, now)
    return Departure(named.namespace, named.name, gone.name, gone.stage, going, at)


def _removals(named: Named, known: Known, gone: GoneVariant) -> tuple[Removal, ...]:
    """What is to go, place by place; where another is on record nothing of it is left."""
    me = named.namespace, gone.name
    owner, orphan = owner_of(named), orphans(named)
    found = []
    for spot in gone.spots:
        if known.held.get(spot.place, me) != me:
            continue
        there = known.places.get(spot.place[0])
        found.append(
            Removal(
                gone.name,
                owner,
                spot.line,
                spot.place[1],
                there.view if there is not None else None,
                orphan,
                spot.taken,
                repository=there.repository if there is not None else "",
            )
        )
    return tuple(found)


def _gone(gone: GoneVariant, going: Sequence[Removal], known: Known) -> Gone:
    published = gone.line.published if gone.line is not None else None
    edited = {what: tree for removal in going for what, tree in removal.edited.items()}
    return Gone(
        gone.name,
        gone.stage,
        since=published.at if published is not None else None,
        edited=tuple(edited),
        trees=frozenset(edited.values()),
        held=_unreachable(gone, going, known),
    )


def _unreachable(gone: GoneVariant, going: Sequence[Removal], known: Known) -> Hold | None:
    """Why what it has cannot be removed: its repository is not to be had."""
    for removal in going:
        if removal.view is not None and removal.view.failure is not None:
            failure = removal.view.failure
            return Hold(str(failure.reason), str(failure), "whoever keeps the repository")
    missing = [spot.place for spot in gone.spots if spot.place[0] not in known.places]
    if not missing or all(removal.orphan for removal in going):
        return None
    name, path = missing[0]
    return Hold(
        Reason.UNKNOWN_REPOSITORY,
        f"it is {path} in {name}, and no Repository that may be used is there: declare it again"
        " with this url and branch, or give it up with deletionPolicy: Orphan",
        "the policy's author",
    )


def _doubt(sentence: str) -> Hold | None:
    if not sentence:
        return None
    return Hold(Reason.INVALID_OBJECT, sentence, "whoever keeps the files: fanout validate")


def confirmations(records: Iterable[Recorded]) -> tuple[Confirmation, ...]:
    """What people have said may go, in the order in which it was recorded."""
    return tuple(
        Confirmation(
            at=item.at,
            by=item.by,
            variants=frozenset(item.spec["variants"]),
            trees=frozenset(item.spec.get("trees", ())),
        )
        for item in records
        if item.kind == "Decision" and item.spec["action"] == CONFIRM_REMOVAL
    )


def told(named: Named, found: Sequence[GoneVariant], answer: Removals) -> tuple[TargetFailure, ...]:
    """What people are told of each, by name."""
    return tuple(
        TargetFailure(named.name, it.name, Reason.TARGET_GONE, _sentence(named, it, answer))
        for it in found
    )


def summary(found: Sequence[GoneVariant], answer: Removals) -> tuple[str, str]:
    """Reason and sentence for the policy that has them."""
    about = f"{counted(len(found), 'variant')} without a target"
    if answer.limit is not None:
        return answer.limit.reason, f"{about}: {answer.limit.sentence}"
    return Reason.TARGET_GONE, about


def _sentence(named: Named, gone: GoneVariant, answer: Removals) -> str:
    places = ", ".join(f"{spot.place[1]} in {spot.place[0]}" for spot in gone.spots)
    holds = answer.holds.get(gone.name)
    about = f"variant {gone.name} ({places}) has no target any more"
    if holds is None:
        remove = f"fanout remove {named.name} {gone.name} --reason WHY"
        return f"{about}; it is kept as it is until somebody removes it: {remove}"
    if not holds:
        return f"{about}; the next sweep removes it"
    who = f"; who can act: {holds[0].who}" if holds[0].who else ""
    return f"{about}; it is kept for now: {holds[0].sentence}{who}"


def with_hold(decision: PolicyDecision, answer: Removals) -> PolicyDecision:
    """The policy's decision with what holds its removals, and when that can change."""
    holds = (*decision.holds, answer.limit) if answer.limit is not None else decision.holds
    instants = [at for at in (decision.next, answer.next) if at is not None]
    return replace(decision, holds=holds, next=min(instants, default=None))
