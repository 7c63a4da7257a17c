"""Variants whose target no longer exists: their locations and their removal.

They are found in records and among drafts. A target that exists but yields no variant,
for example because of a failing expression, is not gone. What was declared but cannot
be read may contain a target; keeping a variant a day too long costs nothing, so removal
then waits (docs/concepts/removal.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Action
from fanout.api.object_meta import GROUP
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.api.upstream_policy import REMOVAL_LIMIT, UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import StageRule, find_approvals
from fanout.gates.gate_wording import append_actor, describe_hold, format_removal_command
from fanout.gates.percentages import Amount
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.removal_gate import (
    OrphanedVariant,
    RemovalEvaluation,
    RemovalFacts,
    evaluate_removals,
)
from fanout.plan.changes.package_removal import (
    DraftIndex,
    PackageRemoval,
    VariantRemoval,
    complete_removal,
    removal_due_since,
)
from fanout.plan.changes.planned_sets import BRANCH_REASONS, describe_removing
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant, lost_history_hold, missing_branch_hold
from fanout.plan.plan_wording import AUTHOR, TARGET_GONE
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.records.policy_status import PreviousLocationLine, RecordedStatus, VariantLine
from fanout.ports import GitStore
from fanout.reconcile.ownership.path_ownership import may_remove, trailer_owner
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.cluster_objects import group_of
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.variant_spec import TargetFailure, variant_digest
from fanout.values import Value, replace

INSTALLATION_TIME = timedelta(minutes=10)  # in which a policy may come before the kind it selects
RESTORATION_TIME = timedelta(hours=1)  # to restore the objects of a definition that was deleted


def find_removal_doubt(
    declared: DeclaredObjects, policy: UpstreamPolicy | None, now: datetime
) -> Hold | None:
    """Return why missing targets of a policy cannot be considered gone; None if they can.

    A hand-written variant (None) has no targets, and nor has a policy that is being deleted.
    """
    if policy is None or policy.is_being_deleted:
        return None
    # Expressions that fail are not among these: their targets are present, by their keys.
    if source := next(declared.find_unusable_targets(policy), ""):
        sentence = f"a target may be in a declaration that cannot be used: {source}"
        owner = "the owner of the objects (`fanout validate` reports their errors)"
        return Hold(Reason.INVALID_OBJECT, sentence, owner)
    # A definition that is deleted takes all its objects with it. Whoever restores it restores them
    # afterwards, and none of them was removed by a person.
    created = policy.metadata.creation_timestamp
    for entry in policy.spec.targets:
        if (selector := entry.object_selector) is None or created is None:
            continue
        defined = declared.definition_times.get((group_of(selector.api_version), selector.kind))
        if defined is None or defined < created + INSTALLATION_TIME:
            continue
        until = defined + RESTORATION_TIME
        if now < until:
            sentence = (
                f"kind {selector.kind} was defined again after the policy was created; a restore"
                f" can still add its objects until {format_instant(until)}"
            )
            who = "nobody (opens automatically), or whoever restores the objects"
            return Hold(Reason.TARGETS_UNCERTAIN, sentence, who, until=until)
    return None


class VariantLocation(Value):
    """Location at which something of a variant exists."""

    place: PackagePlace
    status_line: VariantLine | None = None
    left_line: PreviousLocationLine | None = None  # of a place that the variant has left
    removed_by: str = ""  # the branch, or its pull request, that removes the package; "": none


class OrphanLocations(Value):
    """Variant whose target is gone, with all its locations."""

    name: str
    stage: str  # as recorded
    status_line: VariantLine | None
    locations: tuple[VariantLocation, ...]


def find_orphans(
    resolved_policy: ResolvedPolicy,
    status: RecordedStatus,
    repository_states: Sequence[RepositoryState],
) -> tuple[OrphanLocations, ...]:
    """Return variants on record or drafted that none of the policy's targets yields."""
    if not resolved_policy.is_complete or (
        resolved_policy.upstream_policy is None and not resolved_policy.is_being_deleted
    ):
        return ()
    names = {variant.name for variant in resolved_policy.variants}
    stages_by_variant: dict[str, dict[PackagePlace, str]] = {}
    for name, place, stage in find_drafts(
        trailer_owner(resolved_policy),
        repository_states,
        # With `deletionPolicy: Orphan` a draft with a person's commits stays with them.
        includes_edited=not resolved_policy.orphans_packages,
    ):
        if name not in names:
            stages_by_variant.setdefault(name, {}).setdefault(place, stage)
    # The name of a variant ends with a digest of its target. So a failing target protects its
    # variant even though the failure left no name for it.
    failed_digests = {
        variant_digest(resolved_policy.namespace, resolved_policy.name, it.target)
        for it in resolved_policy.failures
    }
    branches = {
        (state.identity, path): describe_removing(state, draft.ref)
        for state in repository_states
        for draft in state.removal_sets
        if draft.policy == resolved_policy.title
        for path in draft.removed_trees
    }
    return tuple(
        locate_orphan(name, status.variants.get(name), stages_by_variant.get(name, {}), branches)
        for name in sorted((status.variants.keys() - names) | stages_by_variant.keys())
        if name.rpartition("-")[2] not in failed_digests and may_remove(resolved_policy, name)
    )


def locate_orphan(
    name: str,
    status_line: VariantLine | None,
    stage_by_place: Mapping[PackagePlace, str],
    branches: Mapping[PackagePlace, str],
) -> OrphanLocations:
    """Return the variant with its locations.

    `stage_by_place` has the stage of each of its drafts, `branches` what removes a package.
    """
    location_by_place: dict[PackagePlace, VariantLocation] = {}
    if status_line is not None:
        location_by_place[status_line.place] = VariantLocation(status_line.place, status_line)
        if status_line.granted_place is not None:
            place, line = status_line.granted_place, replace(status_line, published=None)
            location_by_place.setdefault(place, VariantLocation(place, line))
        location_by_place |= {it.place: it for it in find_leftovers(status_line)}
    for place in stage_by_place:
        location_by_place.setdefault(place, VariantLocation(place))
    stage = status_line.stage if status_line is not None else ""
    draft_stages = (draft_stage for draft_stage in stage_by_place.values() if draft_stage)
    return OrphanLocations(
        name,
        stage or next(draft_stages, ""),
        status_line,
        tuple(
            replace(it, removed_by=branches.get(it.place, "")) for it in location_by_place.values()
        ),
    )


def find_leftovers(status_line: VariantLine | None) -> tuple[VariantLocation, ...]:
    """Return the locations a variant has moved from where a package of it remains."""
    return tuple(
        VariantLocation(left_line.place, left_line=left_line)
        for left_line in (status_line.left if status_line else ())
    )


def find_drafts(
    owner: str, repository_states: Iterable[RepositoryState], *, includes_edited: bool = True
) -> Iterator[tuple[str, PackagePlace, str]]:
    """Yield variant, place and stage of each draft of a policy."""
    for repository_state in repository_states:
        for draft in repository_state.drafts:
            trailers = draft.trailers
            if trailers.policy == owner and (includes_edited or not draft.has_edits):
                stage = "" if trailers.stage == NO_VALUE else trailers.stage
                yield trailers.variant, (repository_state.identity, draft.path), stage


class PlannedRemovals(Value):
    """Removal of all orphans of a policy in one pass."""

    evaluation: RemovalEvaluation = RemovalEvaluation()
    due: tuple[VariantRemoval, ...] = ()
    # packages that go by branches, also those that are held
    drafted: tuple[PackageRemoval, ...] = ()


def plan_removals(
    inputs: PolicyInputs,
    status: RecordedStatus,
    orphans: Sequence[OrphanLocations],
    facts: PolicyFacts,
    reviews: RemovalReviews,
    git: GitStore,
    *,
    publish: bool,
) -> PlannedRemovals:
    """Return the removal decision about the orphans, and the removals of this pass.

    Without `publish` the pass only updates drafts.
    """
    if not orphans:
        return PlannedRemovals()
    confirmations = read_confirmations(active_records(inputs.policy_state.records))
    confirmed = frozenset[str]().union(*(it.spec.variants for it in confirmations))
    drafts = {it.key: DraftIndex.build(it) for it in inputs.path_ownership.own_states}
    removals_by_name = {
        it.name: VariantRemoval(
            namespace=inputs.resolved_policy.namespace,
            policy=trailer_owner(inputs.resolved_policy).partition("/")[2],
            variant=it.name,
            stage=it.stage,
            packages=_build_removals(inputs, it, facts.stages, drafts),
            due=removal_due_since(it.name, it.status_line, status.removed, facts.now),
        )
        for it in orphans
    }
    gate_inputs = tuple(
        _build_gate_input(
            inputs,
            it,
            removals_by_name[it.name].packages,
            reviews,
            # Whoever confirms a removal knows that the package is gone.
            git if it.name not in confirmed else None,
        )
        for it in orphans
    )
    resolved_policy = inputs.resolved_policy
    policy = resolved_policy.upstream_policy
    limit: Amount = Fraction(1)  # deleted by its name, so nobody has to ask
    if policy is not None:
        limit = REMOVAL_LIMIT if policy.spec.removal_limit is None else policy.spec.removal_limit
    # Targets that failed are there, too.
    present = {it.target for it in resolved_policy.variants}
    present |= {it.target for it in resolved_policy.failures}
    evaluation = evaluate_removals(
        RemovalFacts(
            facts=facts,
            present_count=len(present),
            orphaned=gate_inputs,
            limit=limit,
            confirmations=confirmations,
            safety_hold=inputs.removal_doubt,
            is_deleted=resolved_policy.is_being_deleted,
            keeps_packages=resolved_policy.orphans_packages,
        )
    )
    drafted = tuple(
        it
        for removal in removals_by_name.values()
        for it in _draft_removals(
            removal.packages, evaluation.holds.get(removal.variant, ()), publish=publish
        )
    )
    names = [it for it in evaluation.removable if publish and it in removals_by_name]
    due = tuple(removals_by_name[it] for it in names)
    return PlannedRemovals(evaluation, due=due, drafted=drafted)


# A removal with one of these ends, also where a branch for it is reviewed; others delay it.
_ENDING_REASONS = frozenset({Reason.SUSPENDED, Reason.EDITED_DOWNSTREAM})


def _draft_removals(
    removals: Sequence[PackageRemoval], holds: Sequence[Hold], *, publish: bool
) -> Iterator[PackageRemoval]:
    """Yield the packages of one orphan that go by a branch, unless its removal ends."""
    reasons = {hold.reason for hold in holds}
    # Nobody wants it any more; but a PromotionPolicy that cannot be read closes the window, too.
    is_unwanted = Reason.AUTOMATION_OFF in reasons and Reason.WINDOW_CLOSED not in reasons
    if is_unwanted or not _ENDING_REASONS.isdisjoint(reasons):
        return
    hold = next((it for it in holds if it.reason not in BRANCH_REASONS), None)
    if hold is None and not publish:
        sentence = "this pass only writes drafts; a sweep removes the package"
        hold = Hold(Reason.SWEEP_AWAITED, sentence)
    yield from (replace(it, hold=hold) for it in removals if it.awaits_review)


def _build_removals(
    inputs: PolicyInputs,
    orphan: OrphanLocations,
    stage_rules: Sequence[StageRule],
    drafts: Mapping[str, DraftIndex],
) -> tuple[PackageRemoval, ...]:
    """Return the removal at each location that no other variant occupies.

    `drafts` is by key of the repository.
    """
    owner = trailer_owner(inputs.resolved_policy)
    needs_approvals = bool(find_approvals(stage_rules, orphan.stage))
    removals = []
    for location in orphan.locations:
        # Another variant was published there since; removing the path would remove its package.
        if inputs.path_ownership.other_owner(orphan.name, location.place) is not None:
            continue
        repository = inputs.path_ownership.repository_by_place.get(location.place[0])
        removals.append(
            complete_removal(
                PackageRemoval(
                    variant=orphan.name,
                    stage=orphan.stage,
                    reason=TARGET_GONE,
                    repository_state=repository.state if repository is not None else None,
                    repository=repository.repository if repository is not None else "",
                    path=location.place[1],
                    keeps_package=inputs.resolved_policy.orphans_packages,
                    left_line=location.left_line,
                ),
                owner,
                location.status_line,
                drafts[repository.state.key] if repository is not None else DraftIndex(),
                needs_approvals=needs_approvals,
            )
        )
    return tuple(removals)


def _build_gate_input(
    inputs: PolicyInputs,
    orphan: OrphanLocations,
    removals: Sequence[PackageRemoval],
    reviews: RemovalReviews,
    git: GitStore | None,
) -> OrphanedVariant:
    published = orphan.status_line.published if orphan.status_line is not None else None
    edited = {what: tree for removal in removals for what, tree in removal.edits.items()}
    return OrphanedVariant(
        orphan.name,
        orphan.stage,
        published_at=published.at if published is not None else None,
        local_edits=tuple(edited),
        trees=frozenset(edited.values()),
        held=_unreachable_hold(inputs, orphan, removals)
        or (_lost_branch_hold(removals, git) if git is not None else None)
        # Why the branch that removes a package cannot be, or is not to be merged.
        or next(filter(None, (reviews.find_hold(it) for it in removals if it.awaits_review)), None),
    )


def _lost_branch_hold(removals: Sequence[PackageRemoval], git: GitStore) -> Hold | None:
    """Return the hold of a package that is not as it was, on a branch that is gone or rewritten.

    It may be on a branch of another name, or come back with the history: its variant is not
    forgotten.
    """
    for removal in removals:
        state, published = removal.repository_state, removal.published
        if state is None or published is None or removal.path_state.tree == published.tree:
            continue
        if not state.head:
            return missing_branch_hold(state, removal.repository, is_published=True)
        if not published.merge:
            continue
        with git.reader(state.remote) as reader:
            if not reader.contains(state.head, published.merge):
                return lost_history_hold(
                    state, removal.repository, removal.path, published.tag, published.merge
                )
    return None


def _unreachable_hold(
    inputs: PolicyInputs, orphan: OrphanLocations, removals: Sequence[PackageRemoval]
) -> Hold | None:
    """Return the hold if a repository of the orphan cannot be read or is not declared."""
    for removal in removals:
        state = removal.repository_state
        if state is not None and (failure := state.failure) is not None:
            return Hold(str(failure.reason), str(failure), "the owner of the repository")
    known = inputs.path_ownership.repository_by_place
    missing_places = [it.place for it in orphan.locations if it.place[0] not in known]
    if not missing_places or all(removal.keeps_package for removal in removals):
        return None
    name, path = missing_places[0]
    advice, declaration = REPOSITORY_REMEDY, inputs.resolved_policy.declaration
    if declaration is not None and declaration.is_being_deleted:
        meta, kind = declaration.metadata, declaration.kind.lower()
        change = '{"spec": {"deletionPolicy": "Orphan"}}'
        advice = (
            "to leave the package as it is, run `kubectl patch"
            f" {kind}.{GROUP} {meta.name} -n {meta.namespace} --type=merge -p '{change}'`; or"
            " declare the Repository again with this URL and branch, which cannot be done in a"
            " namespace that is being deleted"
        )
    sentence = f"{describe_unusable_place(orphan.name, path, name)}; {advice}"
    return Hold(Reason.UNKNOWN_REPOSITORY, sentence, AUTHOR)


def describe_unusable_place(variant: str, path: str, repository: str) -> str:
    """Describe a package in a Git repository that no Repository of its namespace names."""
    return f"{variant} is at {path} in {repository}, for which the namespace has no Repository"


REPOSITORY_REMEDY = (
    "declare the Repository again with this URL and branch, or set deletionPolicy: Orphan to leave"
    " the package as it is"
)


def read_confirmations(records: Iterable[RecordEntry]) -> tuple[DecisionFacts, ...]:
    """Return the removals that people confirmed, in the order of the records."""
    return tuple(
        DecisionFacts(it.name, it.at, it.by, it.spec, order, frozenset(it.spec.trees))
        for order, it in enumerate(records)
        if isinstance(it.spec, DecisionSpec) and it.action is Action.CONFIRM_REMOVAL
    )


def find_confirmed_trees(
    variant: ObservedVariant, confirmations: Sequence[DecisionFacts]
) -> frozenset[str] | None:
    """Return the edited trees that a person has let go, where the variant was before it moved.

    None if nobody has decided since the move that what it left is removed.
    """
    if variant.published is None:
        return None
    name, at = variant.spec.name, variant.published.at
    later = (it for it in reversed(confirmations) if at <= it.at)
    return next((it.trees for it in later if name in it.spec.variants), None)


def describe_orphans(
    resolved_policy: ResolvedPolicy,
    orphans: Sequence[OrphanLocations],
    removal_decision: RemovalEvaluation,
) -> tuple[TargetFailure, ...]:
    """Return for each orphan the failure that is reported to people."""
    failures = []
    for orphan in orphans:
        name, locations = orphan.name, orphan.locations
        holds = removal_decision.holds.get(name)
        hold = append_actor(describe_hold(holds[0]), holds[0].who) if holds else ""
        branches = [it.removed_by for it in locations if it.removed_by]
        command = f"fanout remove {resolved_policy.name} {name} --reason WHY"
        if holds is None:
            consequence = f"to remove it, run `{command}`"
        elif branches and not (holds and holds[0].reason == Reason.REQUEST_CLOSED):
            detail = f"; {hold}" if hold else ""
            consequence = f"it is removed by {branches[0]}{detail}"
        else:
            consequence = f"it stays: {hold}" if holds else "the next sweep removes it"
        places = [f"{path} in {repository}" for repository, path in (it.place for it in locations)]
        sentence = f"variant {name} ({', '.join(places)}) has no target any more; {consequence}"
        failures.append(TargetFailure(name, Reason.TARGET_GONE, sentence))
    return tuple(failures)


def summarize_orphans(
    policy: str, orphans: Sequence[OrphanLocations], removal_decision: RemovalEvaluation
) -> tuple[str, str, str]:
    """Return reason, sentence and remedy for the policy that has these orphans.

    The remedy is "" where nobody has to confirm the removal.
    """
    orphan_count = f"{pluralize(len(orphans), 'variant')} without a target"
    limit = removal_decision.limit
    holds = (hold for it in orphans for hold in removal_decision.holds.get(it.name, ()))
    unreachable = [it for it in holds if it.reason == Reason.UNKNOWN_REPOSITORY]
    # No confirmation lets a package go whose repository is not declared.
    if len(unreachable) == len(orphans):
        return Reason.UNKNOWN_REPOSITORY, f"{orphan_count}: {unreachable[0].message}", ""
    if limit is None:
        return Reason.TARGET_GONE, orphan_count, ""
    edited = " --edited" if find_edited(removal_decision) else ""
    command = format_removal_command(policy, f"--all-gone{edited}")
    return limit.reason, f"{orphan_count}: {limit.message}", f"to confirm, run `{command}`"


def find_edited(removal_decision: RemovalEvaluation) -> frozenset[str]:
    """Return the names of the variants whose removal would delete edits that nobody let go."""
    edited, held = Reason.EDITED_DOWNSTREAM, removal_decision.holds.items()
    return frozenset(name for name, holds in held if any(it.reason == edited for it in holds))


def add_removal_hold(decision: PolicyEvaluation, removals: PlannedRemovals) -> PolicyEvaluation:
    """Return the policy decision with the hold of its removals, and when that can change."""
    return replace(
        decision,
        holds=(*decision.holds, *filter(None, (removals.evaluation.limit,))),
        next=min(filter(None, (decision.next, removals.evaluation.next)), default=None),
    )
