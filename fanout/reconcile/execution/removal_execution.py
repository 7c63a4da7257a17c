"""Removal of orphaned variants, or of their leftovers, that a person requested.

The person's Decision is recorded first; then repositories are pushed, and the status
drops the variants last. After an interruption the variants are still on record, and the
command can be repeated.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from fanout.api.git_repository import ForgeType, Repository
from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import Reason
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Conflict, FanoutError, InvalidInput, Unavailable
from fanout.gates.gate_rules import find_approvals
from fanout.gates.removal_gate import OrphanedVariant, group_by_level
from fanout.plan.evidence.removal_approvals import index_removal_approvals
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.observation.forge_state import ForgeState
from fanout.plan.observation.repository_state import RefListingRequest, RepositoryState, SetState
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.plan.push_refusals import refuses_force
from fanout.plan.records.policy_records import StatusChange
from fanout.plan.records.policy_status import RecordedStatus, changed_lines
from fanout.plan.removal.removal_drafts import RemovalDraftOwner, add_removals, find_branch_hold
from fanout.plan.removal.removal_plan import (
    PackageRemoval,
    build_removal_change,
    draft_removal,
    removal_draft_owner,
)
from fanout.reconcile.observation.listing_requests import list_downstream_refs
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.observation.repository_observer import RepositoryObserver
from fanout.reconcile.ownership.path_ownership import find_emptied_repositories, trailer_owner
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.removal.orphaned_variants import (
    REPOSITORY_REMEDY,
    VariantLocation,
    describe_unusable_place,
    find_drafts,
    find_leftovers,
    locate_orphan,
)
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    full_branch_name,
    repository_place,
)
from fanout.reconcile.selection.policy_settings import orphans_packages
from fanout.reconcile.world import World
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.target_selection import usable_repositories
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, replace

# Of these nobody knows what stands in the status, or which targets there are.
_BLOCKING_REASONS = (
    Reason.RECORD_UNREADABLE,
    Reason.RECORDS_LOST,
    Reason.RECORDS_REWOUND,
    Reason.INTERNAL_ERROR,
)


class RemovalRequest(Value):
    """Request of a person to remove something: reason and time."""

    reason: str
    at: datetime


def remove_by_level(
    world: World,
    policy_result: PolicyResult,
    declared: DeclaredObjects,
    confirmed_removals: Sequence[PackageRemoval],
    request: RemovalRequest,
) -> Iterator[tuple[PackageRemoval, ...]]:
    """Remove orphaned variants level by level, each after the previous.

    Then leftovers of present ones.

    Yields the removals of each level when it is done. Where one waits for a review, the
    levels after it are left to later sweeps. Raises as `find_removals` and `execute_removals`, and
    Conflict when people have changed more than `confirmed_removals` has.
    """
    confirmed_names = {removal.variant for removal in confirmed_removals}
    confirmed_trees = {tree for removal in confirmed_removals for tree in removal.edits.values()}
    orphans = [
        OrphanedVariant(orphan.name, orphan.stage)
        for orphan in policy_result.orphans
        if orphan.name in confirmed_names
    ]
    leftover_names = confirmed_names - {orphan.name for orphan in orphans}
    levels = [
        {orphan.name for orphan in level} for level in group_by_level(policy_result.rules, orphans)
    ]
    for level_names in (*levels, leftover_names) if leftover_names else levels:
        # Read again for each level: pushes of the levels before it take time, and people may edit
        # in between.
        removals = find_removals(world, policy_result, declared, sorted(level_names), request.at)
        for removal in removals:
            # Compared by tree: the person confirmed the loss of exactly these edits.
            later_edits = [it for it, tree in removal.edits.items() if tree not in confirmed_trees]
            if later_edits:
                raise Conflict(
                    f"{later_edits[0]} changed during the removal",
                    remedy="review it, then run the command again",
                )
        execute_removals(world, policy_result, removals, request)
        lines = policy_result.status.variants.items()
        remaining_lines = {name: line for name, line in lines if name not in level_names}
        policy_result = replace(
            policy_result,
            status=replace(policy_result.status, variants=remaining_lines),
            orphans=tuple(it for it in policy_result.orphans if it.name not in level_names),
        )
        yield removals
        if any(removal.awaits_review for removal in removals):
            return


def find_removals(
    world: World,
    policy_result: PolicyResult,
    declared: DeclaredObjects,
    variants: Sequence[str],
    now: datetime,
) -> tuple[PackageRemoval, ...]:
    """Return the removals of the variants, one per location.

    Of a present variant, its leftovers. `now` decides which approvals of a removal have expired.

    Raises InvalidInput when the target exists and nothing is left behind, or nothing is on
    record. Upstream is not read, so a tag that moved there does not prevent a removal;
    unreadable records do. Also raises errors of the repositories, and InvalidInput when a
    repository is not declared any more; with `deletionPolicy: Orphan` only the status
    changes then.
    """
    resolved_policy = policy_result.resolved_policy
    locations = [
        (name, location) for name in variants for location in _find_locations(policy_result, name)
    ]
    if policy_result.error is not None and policy_result.error.reason in _BLOCKING_REASONS:
        raise policy_result.error
    orphan_stages = {orphan.name: orphan.stage for orphan in policy_result.orphans}
    # At each place the Repositories that the policy names come first.
    usable = usable_repositories(resolved_policy.namespace, declared.repositories)
    own = {it.metadata.name: it for it in resolved_policy.repositories.values()}
    by_place: dict[str, list[Repository]] = {}
    for repository in (*own.values(), *(usable[name] for name in sorted(usable))):
        by_place.setdefault(repository_place(repository), []).append(repository)
    places = [location.place for _, location in locations]
    repository_states = _read_states(world, by_place, places)
    removals: list[PackageRemoval] = []
    for variant, location in locations:
        name, path = location.place
        repository_name, state = repository_states.get(name, ("", None))
        status_line = policy_result.status.variants.get(variant)
        stage = status_line.stage if status_line is not None else ""
        orphan = orphans_packages(resolved_policy) or (
            status_line is not None and status_line.orphan
        )
        if state is None and not orphan:
            raise InvalidInput(
                describe_unusable_place(variant, path, name),
                reason="UnknownRepository",
                remedy=REPOSITORY_REMEDY,
            )
        stage = orphan_stages.get(variant, stage)
        removals.append(
            PackageRemoval(
                variant=variant,
                owner=trailer_owner(resolved_policy),
                status_line=location.status_line,
                path=path,
                repository_state=state,
                keeps_package=orphan,
                moved_tree=location.moved_tree,
                keeps_drafts=variant not in orphan_stages,
                repository=repository_name,
                stage=stage,
                needs_approvals=bool(find_approvals(policy_result.rules, stage)),
            )
        )
    return _mark_approved(policy_result, removals, world.setup.install, now)


def _mark_approved(
    policy_result: PolicyResult, removals: Sequence[PackageRemoval], install: str, now: datetime
) -> tuple[PackageRemoval, ...]:
    """Return the removals, those with their branch that need not wait because people approved it.

    The branch must remove these packages and no others.
    """
    awaiting: dict[tuple[RemovalDraftOwner, str, str], list[PackageRemoval]] = {}
    for removal in removals:
        state = removal.repository_state
        if removal.awaits_review and state is not None and state.forge is None:
            key = removal_draft_owner(removal, install), removal.stage, state.key
            awaiting.setdefault(key, []).append(removal)
    if not awaiting:
        return tuple(removals)
    rules, records = policy_result.rules, build_gate_records(policy_result.records, now)
    states = [group[0].repository_state for group in awaiting.values()]
    approvals = index_removal_approvals(records, filter(None, states), rules, now)
    branches: dict[int, str] = {}  # by removal
    for (owner, stage, _), group in awaiting.items():
        reviews = RemovalReviews(
            owner=owner, lines={}, decisions=(), stage_rules=rules, approvals=approvals
        )
        drafted = [draft_removal(it, "") for it in group]
        drafted = [replace(it, hold=reviews.find_hold(it)) for it in drafted]
        state, repository = drafted[0].repository_state, drafted[0].repository
        if find_branch_hold(state, owner.find_ref(stage), repository) is not None:
            continue
        plan = add_removals(owner, drafted)
        if plan.draft is not None and plan.merges_branch and len(plan.packages) == len(group):
            branches |= {id(it): plan.draft.commit for it in group}
    return tuple(replace(it, approved_branch=branches.get(id(it), "")) for it in removals)


def _find_locations(policy_result: PolicyResult, variant: str) -> list[VariantLocation]:
    """Return the locations to clear, without those that another variant occupies by now."""
    status_line = policy_result.status.variants.get(variant)
    orphan = next(
        (candidate for candidate in policy_result.orphans if candidate.name == variant), None
    )
    if orphan is None and (status_line is None or not status_line.left):
        raise policy_result.error or _not_removable_error(policy_result, variant)
    locations = find_leftovers(status_line) if orphan is None else orphan.locations
    occupied_places = {
        it.place for name, it in policy_result.status.variants.items() if name != variant
    }
    return [location for location in locations if location.place not in occupied_places]


def _read_states(
    world: World, by_place: Mapping[str, Sequence[Repository]], places: Sequence[PackagePlace]
) -> dict[str, tuple[str, RepositoryState]]:
    """Return name and present state of a declared repository at each place.

    Of several at one place the first that can be read, as its URL may have a Repository for each
    team, with a Secret that only that team has. Raises the failure of the first if none can.
    """
    states: dict[str, tuple[str, RepositoryState]] = {}
    for name in dict.fromkeys(name for name, _ in places if name in by_place):
        paths = [path for place_name, path in places if place_name == name]
        failures: list[FanoutError] = []
        for repository in by_place[name]:
            state = run_isolated(partial(_read_state, world, repository, paths))
            if not isinstance(state, FanoutError):
                states[name] = repository.metadata.name, state
                break
            failures.append(state)
        else:
            raise failures[0]
    return states


def find_undeclared_variant(
    world: World, declared: DeclaredObjects, namespace: str, name: str
) -> PolicyResult | None:
    """Return the result of a hand-written variant whose object is gone.

    None if it is not on record.

    Raises InvalidInput while a declaration cannot be read, because it may be that object.
    """
    unusable_declaration = next(declared.find_unusable_own(PackageVariant, namespace), "")
    if unusable_declaration:
        raise InvalidInput(
            f"{name} may be declared in {unusable_declaration}, which cannot be read",
            reason=Reason.INVALID_OBJECT,
            remedy="correct it; `fanout validate` reports every error",
        )
    resolved_policy = ResolvedPolicy(
        namespace=namespace, name=name, upstream_policy=None, package_variant=None, upstream=None
    )
    policy_state = world.records.read([resolved_policy.records_key])[resolved_policy.records_key]
    status = policy_state.status
    if name not in status.variants:
        return None
    policy_state.check_readable()
    orphan = locate_orphan(name, status.variants[name], {}, {})
    return PolicyResult(
        resolved_policy=resolved_policy, policy_state=policy_state, status=status, orphans=(orphan,)
    )


def find_places(policy_result: PolicyResult) -> Iterator[tuple[str, PackagePlace]]:
    """Yield variants with the places where they are published, released or drafted."""
    for name, status_line in policy_result.status.variants.items():
        yield name, status_line.place
    owner = trailer_owner(policy_result.resolved_policy)
    for name, place, _ in find_drafts(owner, policy_result.repository_states):
        yield name, place


def execute_removals(
    world: World,
    policy_result: PolicyResult,
    removals: Sequence[PackageRemoval],
    request: RemovalRequest,
) -> None:
    """Push the removals, then drop the variants from the status.

    Raises Conflict when a push or the status lost a race, and what Git raises; repeat it
    then.
    """
    setup = world.setup
    removals_by_state: dict[str, list[PackageRemoval]] = {}
    for removal in removals:
        state = removal.repository_state
        removals_by_state.setdefault(state.key if state else "", []).append(removal)
    when = int(request.at.timestamp())
    builders = [
        partial(build_removal_change, group, setup.install, setup.identity, request.reason, when)
        for group in removals_by_state.values()
    ]
    changes = [(build, change) for build in builders if (change := build()) is not None]
    # Repositories one after the other: a failure leaves the rest on record for the next run.
    for build, change in changes:
        push_result = world.git.change([change])[change.remote.key]
        if isinstance(push_result, FanoutError) and refuses_force(push_result):
            continued = build(appends=True)
            assert continued is not None, "it writes the same branches"
            push_result = world.git.change([continued])[change.remote.key]
        if isinstance(push_result, FanoutError):
            raise push_result
        remaining_refs = set(change.removed_drafts) - set(push_result.removed_refs)
        if remaining_refs:
            raise Unavailable(
                f"branch {min(remaining_refs).removeprefix('refs/heads/')} was not deleted",
                reason="RemoteFailed",
                remedy="run the command again",
            )
    key = policy_result.resolved_policy.records_key
    policy_state = world.records.read([key])[key]
    status = _remove_from_status(policy_result, removals, policy_state.status)
    if lines := changed_lines(policy_state.status, status):
        world.records.put_status({key: StatusChange(policy_state.head, lines)}, request.at)


def _remove_from_status(
    policy_result: PolicyResult, removals: Sequence[PackageRemoval], status: RecordedStatus
) -> RecordedStatus:
    """Return the status without the removed variants, and without emptied repositories.

    A variant stays on record until the last of its packages has left its branch.
    """
    waiting = {removal.variant for removal in removals if removal.awaits_review}
    removals = [removal for removal in removals if removal.variant not in waiting]
    variants = dict(status.variants)
    for removal in removals:
        line = variants.pop(removal.variant, None)
        if line is not None and removal.keeps_drafts:
            variants[removal.variant] = replace(line, left=())
    removed_variants = {removal.variant for removal in removals if not removal.keeps_drafts}
    emptied = _find_emptied(policy_result, removals, removed_variants) if removed_variants else ()
    return replace(
        status, variants=variants, draft_repositories=status.draft_repositories.difference(emptied)
    )


def _without_drafts(
    sets: Mapping[str, SetState], keys: Collection[tuple[str, str]]
) -> Mapping[str, SetState]:
    return {
        ref: replace(
            state, drafts={path: it for path, it in state.drafts.items() if it.key not in keys}
        )
        for ref, state in sets.items()
    }


def _find_emptied(
    policy_result: PolicyResult,
    removals: Sequence[PackageRemoval],
    removed_variants: Collection[str],
) -> frozenset[str]:
    """Return repositories that contain nothing of the policy after the removals."""
    lines = policy_result.status.variants.items()
    remaining_lines = {name: it for name, it in lines if name not in removed_variants}
    removed_keys = {draft.key for removal in removals for draft in removal.removed_drafts}
    repository_states = [
        replace(state, sets=_without_drafts(state.sets, removed_keys))
        for removal in removals
        if (state := removal.repository_state) is not None
    ]
    status = replace(policy_result.status, variants=remaining_lines)
    named_keys = (variant.observed.repository_state.identity for variant in policy_result.variants)
    return find_emptied_repositories(
        trailer_owner(policy_result.resolved_policy), status, repository_states, named_keys
    )


def _not_removable_error(policy_result: PolicyResult, variant: str) -> InvalidInput:
    present_variants = {variant.spec.name for variant in policy_result.variants}
    if variant in present_variants or variant in policy_result.status.variants:
        return InvalidInput(
            f"{variant} left no other package, and its target still exists: it would be created"
            " again",
            reason="NothingToDo",
            remedy="to remove the package, remove the target from the policy first",
        )
    return InvalidInput(
        f"{policy_result.title} has no variant {variant} without a target",
        reason="NotFound",
        remedy="run `fanout get targets`; variants without a target have TargetGone",
    )


def _read_state(world: World, repository: Repository, paths: Sequence[str]) -> RepositoryState:
    remote, install = build_remote(repository), world.setup.install
    listing = world.git.list_refs(
        [RefListingRequest(remote, list_downstream_refs(repository, install))]
    )[remote.key]
    observer = RepositoryObserver(world.git, install)
    repository_state = observer.read_state(remote, full_branch_name(repository), listing, paths)
    if repository_state.failure is not None:
        raise repository_state.failure
    if repository.spec.forge.type is ForgeType.NONE:
        return repository_state
    # That there is a forge is all that counts here; it is not asked.
    return replace(repository_state, forge=ForgeState(host=""))
