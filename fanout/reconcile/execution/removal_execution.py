"""Removal of orphaned variants, or of their leftovers, that a person requested.

The person's Decision is recorded first; then a pass is executed that does nothing but these
removals. After an interruption the variants are still on record, and the command can be repeated.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from fanout.api.git_repository import ForgeType, Repository
from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Conflict, FanoutError, InvalidInput, Unavailable
from fanout.gates.gate_rules import find_approvals
from fanout.gates.gate_wording import NEXT_SWEEP, REMOVAL_SWEEP_AWAITED
from fanout.gates.record_facts import RecordPosition
from fanout.gates.removal_gate import OrphanedVariant, group_by_level
from fanout.groups import group_pairs
from fanout.plan.actions import ActionResult
from fanout.plan.changes.package_removal import (
    DraftIndex,
    PackageRemoval,
    VariantRemoval,
    complete_removal,
    removal_due_since,
)
from fanout.plan.changes.planned_sets import (
    PlannedSet,
    PolicyCleanup,
    SetOwner,
    add_removals,
    find_branch_hold,
    is_merged,
    plan_removal_sets,
)
from fanout.plan.changes.policy_plan import join_plans, plan_policy
from fanout.plan.changes.publication_messages import CommitSettings
from fanout.plan.changes.repository_changes import build_changes
from fanout.plan.evidence.review_approvals import index_removal_approvals
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.observation.observed_request import ForgeState
from fanout.plan.observation.repository_state import RefListingRequest, RepositoryState
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.reconcile.execution.plan_execution import execute_plan
from fanout.reconcile.observation.repository_access import build_remote, list_read_refs
from fanout.reconcile.observation.repository_observer import RepositoryObserver
from fanout.reconcile.ownership.path_ownership import find_emptied_repositories, trailer_owner
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult
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
from fanout.reconcile.world import World
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.target_selection import usable_repositories
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import replace

# Of these nobody knows what stands in the status, or which targets there are.
_BLOCKING_REASONS = (
    Reason.RECORD_UNREADABLE,
    Reason.RECORDS_LOST,
    Reason.RECORDS_REWOUND,
    Reason.INTERNAL_ERROR,
)


def remove_by_level(
    world: World,
    policy_result: PolicyResult,
    declared: DeclaredObjects,
    confirmed_removals: Sequence[PackageRemoval],
    reason: str,
    at: datetime,
) -> Iterator[tuple[tuple[PackageRemoval, ...], tuple[ActionResult, ...]]]:
    """Remove orphaned variants level by level, each after the previous.

    Then leftovers of present ones.

    Yields the removals of each level when it is done, and the outcomes about drafts whose branches
    the server does not let anybody delete. Where a removal waits for a review, the levels after it
    are left to later sweeps. Raises as `find_removals`, Conflict when people have
    changed more than `confirmed_removals` has, or another process writes, and Unavailable when a
    repository does not take a removal; the command can be repeated then.
    """
    confirmed_names = {removal.variant for removal in confirmed_removals}
    confirmed_trees = {tree for removal in confirmed_removals for tree in removal.edits.values()}
    orphans = [
        OrphanedVariant(it.name, it.stage)
        for it in policy_result.orphans
        if it.name in confirmed_names
    ]
    leftover_names = confirmed_names - {it.name for it in orphans}
    levels = [{it.name for it in level} for level in group_by_level(policy_result.rules, orphans)]
    for level_names in (*levels, leftover_names) if leftover_names else levels:
        names = sorted(level_names)
        # Read again for each level: pushes of the levels before it take time, and people may edit
        # in between.
        removals = find_removals(world, policy_result, declared, names, reason)
        for removal in removals:
            # Compared by tree: the person confirmed the loss of exactly these edits.
            later_edits = [it for it, tree in removal.edits.items() if tree not in confirmed_trees]
            if later_edits:
                raise Conflict(
                    f"{later_edits[0]} changed during the removal",
                    remedy="review it, then run the command again",
                )
        report = _execute(world, build_removal_pass(world, policy_result, removals, at))
        merged = {
            (it.action.repository, it.action.path)
            for it in report.outcomes
            if it.action.merges_branch
        }
        undeletable = report.undeletable_drafts
        if merged:
            # Their packages have left the branch, and so do they leave the status.
            remaining = find_removals(world, policy_result, declared, names, reason)
            remaining_pass = build_removal_pass(world, policy_result, remaining, at)
            undeletable += _execute(world, remaining_pass).undeletable_drafts
            removals = tuple(
                replace(it, awaits_review=False) if (it.repository, it.path) in merged else it
                for it in removals
            )
        yield removals, undeletable
        if any(removal.awaits_review for removal in removals):
            return
    # Repositories that have nothing of the policy any more leave the records.
    key = policy_result.resolved_policy.records_key
    status = world.records.read([key])[key].status
    named = {it.observed.repository_state.identity for it in policy_result.variants}
    occupied = named | {it.repository for it in status.variants.values()}
    candidates = status.draft_repositories - occupied
    places = [
        (it.state.identity, it.path)
        for it in confirmed_removals
        if it.repository_state is not None and it.state.identity in candidates
    ]
    states = [it for _, it in _read_states(world, policy_result, declared, places).values()]
    if emptied := find_emptied_repositories(
        trailer_owner(policy_result.resolved_policy), status, states, named
    ):
        _execute(world, build_removal_pass(world, policy_result, (), at, emptied))


def _execute(world: World, pass_plan: PassPlan) -> PassReport:
    """Execute a pass of removals and return its report; raises what keeps it from being done."""
    report = execute_plan(world, pass_plan)
    for outcome in report.failed_outcomes:
        raise Unavailable(outcome.problem, reason=outcome.reason)
    if report.lost_race is not None:
        raise report.lost_race
    [before], [after] = pass_plan.policies, report.pass_plan.policies
    if after.error is not None and after.error is not before.error:
        raise after.error
    return report


def find_removals(
    world: World,
    policy_result: PolicyResult,
    declared: DeclaredObjects,
    variants: Sequence[str],
    reason: str,
) -> tuple[PackageRemoval, ...]:
    """Return the removals of the variants, one per location.

    Of a present variant, its leftovers. `reason`: why, as its author says.

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
    places = [location.place for _, location in locations]
    repository_states = _read_states(world, policy_result, declared, places)
    drafts = {name: DraftIndex.build(state) for name, (_, state) in repository_states.items()}
    removals: list[PackageRemoval] = []
    for variant, location in locations:
        name, path = location.place
        repository_name, state = repository_states.get(name, ("", None))
        status_line = policy_result.status.variants.get(variant)
        keeps_package = resolved_policy.orphans_packages or (
            status_line is not None and status_line.orphan
        )
        if state is None and not keeps_package:
            raise InvalidInput(
                describe_unusable_place(variant, path, name),
                reason="UnknownRepository",
                remedy=REPOSITORY_REMEDY,
            )
        stage = orphan_stages.get(variant, status_line.stage if status_line is not None else "")
        removals.append(
            complete_removal(
                PackageRemoval(
                    variant=variant,
                    stage=stage,
                    reason=" ".join(reason.split()),
                    repository_state=state,
                    repository=repository_name,
                    path=path,
                    keeps_package=keeps_package,
                    left_line=location.left_line,
                ),
                trailer_owner(resolved_policy),
                location.status_line,
                drafts.get(name, DraftIndex()),
                needs_approvals=bool(find_approvals(policy_result.rules, stage)),
                is_orphaned=variant in orphan_stages,
            )
        )
    return tuple(removals)


def _find_locations(policy_result: PolicyResult, variant: str) -> list[VariantLocation]:
    """Return the locations to clear, without those that another variant occupies by now."""
    status_line = policy_result.status.variants.get(variant)
    orphan = next((it for it in policy_result.orphans if it.name == variant), None)
    if orphan is None and (status_line is None or not status_line.left):
        if policy_result.error is not None:
            raise policy_result.error
        present_variants = {it.spec.name for it in policy_result.variants}
        if status_line is None and variant not in present_variants:
            raise InvalidInput(
                f"{policy_result.title} has no variant {variant} without a target",
                reason="NotFound",
                remedy="run `fanout get targets`; variants without a target have TargetGone",
            )
        raise InvalidInput(
            f"{variant} left no other package, and its target still exists: it would be created"
            " again",
            reason="NothingToDo",
            remedy="to remove the package, remove the target from the policy first",
        )
    locations = find_leftovers(status_line) if orphan is None else orphan.locations
    occupied_places = {
        it.place for name, it in policy_result.status.variants.items() if name != variant
    }
    return [location for location in locations if location.place not in occupied_places]


def _read_states(
    world: World,
    policy_result: PolicyResult,
    declared: DeclaredObjects,
    places: Sequence[PackagePlace],
) -> dict[str, tuple[str, RepositoryState]]:
    """Return name and present state of a declared repository at each place.

    Of several at one place the first that can be read, as its URL may have a Repository for each
    team, with a Secret that only that team has. Raises the failure of the first if none can.
    """
    # At each place the Repositories that the policy names come first.
    policy = policy_result.resolved_policy
    usable = usable_repositories(policy.namespace, declared.repositories)
    own = {it.metadata.name: it for it in policy.repositories.values()}
    in_order = (*own.values(), *(usable[name] for name in sorted(usable)))
    by_place = group_pairs((repository_place(it), it) for it in in_order)
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
    if unusable_declaration := next(declared.find_unusable_own(PackageVariant, namespace), ""):
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


def build_removal_pass(
    world: World,
    policy_result: PolicyResult,
    removals: Sequence[PackageRemoval],
    now: datetime,
    emptied: frozenset[str] = frozenset(),
) -> PassPlan:
    """Build the pass that does nothing but these removals.

    `emptied`: repositories that have nothing of the policy any more. `now` decides which approvals
    of a removal have expired. Raises InvalidInput if a branch that removes packages has commits of
    others that are not fanout's to continue.
    """
    policy, setup, status = policy_result.resolved_policy, world.setup, policy_result.status
    orphan_names = {orphan.name for orphan in policy_result.orphans}
    owner = trailer_owner(policy).partition("/")[2]
    variant_removals = tuple(
        VariantRemoval(
            namespace=policy.namespace,
            policy=owner,
            stage=packages[0].stage,
            variant=name,
            packages=tuple(packages),
            due=removal_due_since(name, status.variants.get(name), status.removed, now)
            if name in orphan_names
            else None,
        )
        for name, packages in group_pairs((it.variant, it) for it in removals).items()
    )
    key = policy.records_key
    policy_state = world.records.read([key])[key]
    plan = plan_policy(
        policy.namespace,
        policy.name,
        (),
        policy_state.status,
        policy_state.status.history,
        RecordPosition(now),
        PolicyCleanup(
            removals=variant_removals,
            emptied=emptied,
            sets=tuple(_plan_sets(policy_result, removals, setup.install, now)),
        ),
    )
    writing = CommitSettings(setup.install, setup.identity)
    return PassPlan(
        now=now,
        policies=(replace(policy_result, policy_state=policy_state),),
        plans=(plan,),
        plan=join_plans([plan]),
        changes=build_changes([plan], writing),
        writing=writing,
    )


def _plan_sets(
    policy_result: PolicyResult, removals: Sequence[PackageRemoval], install: str, now: datetime
) -> Iterator[PlannedSet]:
    """Plan the branches that remove packages after a review, and those that have done it.

    One that people approved is merged if it removes these packages and no others.
    """
    policy, rules = policy_result.resolved_policy, policy_result.rules
    owner = SetOwner(install, policy.namespace, policy.name)
    wanted = group_pairs(  # by repository and ref of the branch
        ((it.state.key, owner.find_ref(it.stage)), it) for it in removals if it.awaits_review
    )
    states = {it.repository: it.state for it in removals if it.repository_state is not None}
    for name, state in states.items():
        unasked = (it for it in state.removal_sets if (state.key, it.ref) not in wanted)
        merged = {it.ref: it for it in unasked if is_merged(it, state)}
        yield from plan_removal_sets(owner, {name: replace(state, sets=merged)}, ())
    if not wanted:
        return
    reviews = RemovalReviews(
        owner=owner,
        lines={},
        decisions=(),
        stage_rules=rules,
        approvals=index_removal_approvals(
            build_gate_records(policy_result.records, now), states.values(), rules, now
        ),
    )
    for (_, ref), group in wanted.items():
        if (branch_hold := find_branch_hold(group[0].state, ref, group[0].repository)) is not None:
            raise InvalidInput(branch_hold.message, reason=branch_hold.reason)
        [plan] = reviews.complete_plans([add_removals(owner, group)])
        if plan.merges_branch:
            holds = filter(None, map(reviews.find_hold, plan.removals))
            others = Hold(Reason.SWEEP_AWAITED, REMOVAL_SWEEP_AWAITED, NEXT_SWEEP)
            has_others = len(plan.removals) > len(group)
            plan = replace(plan, hold=others if has_others else next(holds, None))
        yield plan


def _read_state(world: World, repository: Repository, paths: Sequence[str]) -> RepositoryState:
    remote, install = build_remote(repository), world.setup.install
    branch = full_branch_name(repository)
    request = RefListingRequest(remote, list_read_refs(branch, install))
    listing = world.git.list_refs([request])[remote.key]
    state = RepositoryObserver(world.git, install).read_state(remote, branch, listing, paths)
    if state.failure is not None:
        raise state.failure
    if repository.spec.forge.type is ForgeType.NONE:
        return state
    # That there is a forge is all that counts here; it is not asked.
    return replace(state, forge=ForgeState(host=""))
