"""Sets that a pass plans: what is on each branch after it, what holds it, and the next step.

A set writes packages, removes packages, or both. Which packages of variants are written, the step
of each variant tells; here the sets of removals are planned. In a repository with a forge nothing
is removed by a push to the target branch, and in others no package of a stage that requires
approvals. The packages of a stage that are to go are removed on one branch. A forge has a pull
request of it; without one, people approve the tree of its head, and a pass merges it then. Each
variant stays on record until the target branch does not have its package any more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.gate_wording import format_names
from fanout.plan import plan_wording
from fanout.plan.actions import ActionKind, PlanAction, RepositorySubject
from fanout.plan.changes.commit_chain import continue_branch, remove_packages, restore_packages
from fanout.plan.changes.package_removal import (
    PackageRemoval,
    VariantRemoval,
    build_removal_message,
    join_paths,
)
from fanout.plan.commit_statement import CommitStatement
from fanout.plan.decided_variant import DecidedVariant
from fanout.plan.edits.draft_damage import build_faults_hold
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import (
    BranchUpdate,
    PublicationMerge,
    RepositoryState,
    SetState,
)
from fanout.selection.ref_names import SetScope, set_ref
from fanout.values import Value, replace

# Holds by what people did with a branch: its packages stay on it, so that nothing of that is lost.
BRANCH_REASONS = frozenset({Reason.DRAFT_BROKEN, Reason.REQUEST_CLOSED})


class PlannedSet(RepositorySubject, kw_only=True):
    """Set of a stage, or of one variant, in a repository, as a pass leaves its branch.

    Of removals `policy` is the name of the variant if that is written by hand. The branch may be
    merged if `hold`, the first one, is None. It is as observed if `write` is None, unless
    `is_removed`.
    """

    ref: str
    members: tuple[DecidedVariant, ...] = ()  # whose packages it writes, in order of path
    removals: tuple[PackageRemoval, ...] = ()  # packages that it removes, in order of path
    draft: SetState | None = None  # as observed; None: there is none
    write: BranchUpdate | None = None
    is_removed: bool = False  # nothing is to be on it any more, and so the branch goes
    is_declined: bool = False  # a person closed the request, or deleted its branch
    hold: Hold | None = None
    approvers: tuple[str, ...] = ()  # people whose approvals of the removal count

    @property
    def is_current(self) -> bool:
        """Return whether the branch is there, and as it is to be reviewed and merged."""
        is_left = self.write is None and not self.is_removed
        return self.draft is not None and is_left and bool(self.removals)

    def choose_update(self, *, appends: bool) -> BranchUpdate | None:
        """Return the new commits of the branch, or None.

        `appends`: the server refuses to replace a branch, so that it is continued.
        """
        update, present = self.write, self.draft
        # An update on top of commits of people continues the branch already.
        if not appends or update is None or present is None or update.parent == present.commit:
            return update
        return continue_branch(update, present)

    @property
    def merges_branch(self) -> bool:
        """Return whether the pass merges the branch: no forge does it, and nothing holds it."""
        return self.state.forge is None and self.is_current and self.hold is None


class PolicyCleanup(Value):
    """Cleanup of one policy after moves and removals.

    `emptied` and `rediscovered` are the repositories that the policy stops, or starts again, to
    observe.
    """

    removals: tuple[VariantRemoval, ...] = ()
    emptied: frozenset[str] = frozenset()
    rediscovered: frozenset[str] = frozenset()  # after records were lost
    sets: tuple[PlannedSet, ...] = ()  # of removals: those there are, and those written

    @property
    def packages(self) -> Iterator[tuple[VariantRemoval, PackageRemoval]]:
        """Yield each removal from one place, with that of its variant."""
        return ((it, package) for it in self.removals for package in it.packages)


class SetOwner(Value):
    """Policy, or variant written by hand, whose sets of removals are planned."""

    install: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Return the name as the lines of commits have it."""
        return f"{self.namespace}/{self.name}"

    def find_ref(self, stage: str) -> str:
        """Return the ref of the set of removals of a stage."""
        return set_ref(SetScope.REMOVALS, self.install, self.namespace, self.name, stage)


def describe_removing(state: RepositoryState, ref: str) -> str:
    """Describe the branch that removes a package, or its pull request where there is a forge."""
    branch = ref.removeprefix("refs/heads/")
    if state.forge is None:
        return f"branch {branch}"
    facts = state.forge.requests.get(ref)
    if facts is None or facts.request.state is not RequestState.OPEN:
        return f"the pull request of {branch}"
    return f"pull request {facts.request.number} ({facts.request.url})"


def plan_removal_sets(
    owner: SetOwner,
    states_by_repository: Mapping[str, RepositoryState],
    wanted: Iterable[PackageRemoval],
) -> tuple[PlannedSet, ...]:
    """Plan the sets of removals of one policy in all its repositories.

    `wanted` are all its packages that are to go by a branch; a set that removes nothing of these
    is removed. `states_by_repository` is by name of the Repository object.
    """
    wanted_by_draft: dict[tuple[str, str], list[PackageRemoval]] = {}
    places: dict[tuple[str, str], tuple[str, RepositoryState, str]] = {}
    for name, state in sorted(states_by_repository.items()):
        for draft in state.removal_sets:
            if draft.policy == owner.title:
                places.setdefault((state.identity, draft.ref), (name, state, draft.stage))
    for removal in wanted:
        key = removal.state.identity, owner.find_ref(removal.stage)
        places.setdefault(key, (removal.repository, removal.state, removal.stage))
        wanted_by_draft.setdefault(key, []).append(removal)
    plans = (
        _plan_draft(owner, places[key], key[1], wanted_by_draft.get(key, ()))
        for key in sorted(places)
    )
    return tuple(plan for plan in plans if plan is not None)


def add_removals(owner: SetOwner, wanted: Sequence[PackageRemoval]) -> PlannedSet:
    """Plan one set of removals with more packages, at the request of a person.

    `wanted` are of one stage in one repository. What the set removes already, stays.
    """
    first = wanted[0]
    ref, state = owner.find_ref(first.stage), first.state
    draft = state.sets.get(ref)
    paths = {removal.path for removal in wanted}
    present = [
        replace(first, variant="", path=path, tree=tree, reason="", hold=None)
        for path, tree in (draft.removed_trees.items() if draft is not None else ())
        if path not in paths and state.find_tree(path) == tree
    ]
    plan = _plan_draft(owner, (first.repository, state, first.stage), ref, [*wanted, *present])
    assert plan is not None, "a draft that is to remove a package is planned"
    return plan


def _plan_draft(
    owner: SetOwner,
    place: tuple[str, RepositoryState, str],
    ref: str,
    wanted: Sequence[PackageRemoval],
) -> PlannedSet | None:
    """Plan one set of removals; None if there is none, and nothing to write in it.

    If its branch is of others, or they changed what is not in it, nothing is planned but the hold,
    which its pull request says.
    """
    repository, state, stage = place
    draft = state.sets.get(ref)
    present_trees = draft.removed_trees if draft is not None else {}
    staying = [it for it in wanted if it.hold is None or present_trees.get(it.path) == it.tree]
    plan = PlannedSet(
        namespace=owner.namespace,
        policy=owner.name,
        stage=stage,
        repository=repository,
        state=state,
        ref=ref,
        draft=draft,
    )
    ordered = sorted(staying, key=lambda it: it.path)
    if (hold := find_branch_hold(state, ref, repository)) is not None:
        drafted = tuple(it for it in ordered if it.path in present_trees)
        return replace(plan, removals=drafted, hold=hold)
    if not staying:
        return replace(plan, is_removed=True) if draft is not None else None
    statement = CommitStatement(ref=ref, policy=owner.title, stage=stage, base=state.head)
    if draft is None or not draft.is_edited or is_merged(draft, state):
        packages = ordered
        if present_trees != {it.path: it.tree for it in ordered}:
            commits = list(remove_packages(ordered, statement, state.head_time))
            plan = replace(plan, write=BranchUpdate(ref, state.head, tuple(commits)))
    else:
        packages = [it for it in ordered if it.path not in draft.idle_paths]
        # On top of the commits of people.
        statement = replace(statement, base=draft.base)
        floor = max(state.head_time, draft.timestamp)
        added = [it for it in packages if it.path not in draft.removed_trees]
        commits = list(remove_packages(added, statement, floor))
        restored_trees = {
            path: tree
            for path in sorted(draft.removed_trees.keys() - {it.path for it in packages})
            if (tree := state.find_tree(path)) is not None
        }
        if restored_trees:
            subject = f"Keep {join_paths(list(restored_trees))}"
            statement = replace(statement, restored=tuple(restored_trees))
            subjects = "It is" if len(restored_trees) == 1 else "They are"
            body = f"{subjects} not to be removed any more."
            commits.append(restore_packages(subject, statement, restored_trees, floor, body))
        if commits:
            plan = replace(plan, write=BranchUpdate(draft.ref, draft.commit, tuple(commits)))
    holds = [it.hold for it in packages if it.hold is not None]
    if draft is not None:
        holds += filter(None, (find_package_hold(it, draft) for it in packages))
    if not packages:
        # Without a forge a deleted branch is no decision: the next sweep writes it again.
        way = "declare their targets again" if state.forge is None else "close its pull request"
        sentence = f"every package that the branch removes was put back; {way} to keep them"
        actor = plan_wording.format_maintainers(repository)
        holds = [Hold(Reason.EDITED_DOWNSTREAM, sentence, who=actor)]
    return replace(plan, removals=tuple(packages), hold=next(iter(holds), None))


def find_branch_hold(state: RepositoryState, ref: str, repository: str) -> Hold | None:
    """Return the hold of a set of removals whose branch is not what fanout wrote, or None.

    It has nothing but commits of others, or they changed files outside of its packages.
    """
    unmanaged, draft = state.unmanaged_drafts.get(ref), state.sets.get(ref)
    if draft is not None and draft.faults:
        return build_faults_hold(draft.faults, ref, repository)
    if unmanaged is None or not unmanaged.has_commits:
        return None
    branch = ref.removeprefix("refs/heads/")
    return Hold(
        Reason.PATH_TAKEN,
        f"branch {branch} of {repository} has nothing but commits of others; rename or delete it",
        who=plan_wording.format_maintainers(repository),
    )


def find_package_hold(removal: PackageRemoval, draft: SetState) -> Hold | None:
    """Return the hold of a package that people changed, on the branch that removes it or below.

    Where there is a forge, that finds which branches cannot be merged.
    """
    path, state = removal.path, removal.state
    branch = draft.ref.removeprefix("refs/heads/")
    if path in draft.idle_paths and state.find_tree(path) is not None:
        sentence = (
            f"{path} was put back on branch {branch}; to keep it, declare its target again, and to"
            " remove it, delete it on the branch"
        )
    elif (
        state.forge is None
        and draft.is_edited
        and draft.removed_trees.get(path, removal.tree) != removal.tree
    ):
        target = state.branch.removeprefix("refs/heads/")
        sentence = (
            f"{path} changed on {target} since people committed to branch {branch}; delete the"
            " branch, and the next sweep writes it again"
        )
    else:
        return None
    actor = plan_wording.format_maintainers(removal.repository)
    return Hold(Reason.DRAFT_BROKEN, sentence, who=actor)


def is_merged(draft: SetState, state: RepositoryState) -> bool:
    """Return whether the target branch has no package that the draft removes."""
    return bool(draft.removed_trees) and not any(map(state.find_tree, draft.removed_trees))


def build_removal_merges(
    removals: Iterable[tuple[VariantRemoval, PackageRemoval]], sets: Iterable[PlannedSet]
) -> tuple[PublicationMerge, ...]:
    """Build the commits that remove packages from one target branch.

    One for each policy that removes packages by a push, then one for each branch that is merged.
    """
    by_owner: dict[str, list[tuple[VariantRemoval, PackageRemoval]]] = {}
    for variant_removal, removal in removals:
        if removal.is_pushed:
            owner = f"{variant_removal.namespace}/{variant_removal.policy}"
            by_owner.setdefault(owner, []).append((variant_removal, removal))
    merges: list[PublicationMerge] = []
    for owner, pairs in sorted(by_owner.items()):
        packages = sorted((it for _, it in pairs), key=lambda it: it.path)
        due_times = (int(it.due.timestamp()) for it, _ in pairs if it.due is not None)
        merges.append(_build_merge(owner, packages, max([0, *due_times])))
    for it in sets:
        if it.merges_branch:
            assert it.draft is not None, "only a branch that is there is merged"
            merge = _build_merge(it.draft.policy, it.removals, it.draft.timestamp, it.approvers)
            merges.append(replace(merge, more_parents=(it.draft.commit,)))
    return tuple(merges)


def _build_merge(
    owner: str, packages: Sequence[PackageRemoval], timestamp: int, approvers: Iterable[str] = ()
) -> PublicationMerge:
    return PublicationMerge(
        drafts=(),
        message=build_removal_message(packages, owner, approvers),
        # Of the inputs: a pass repeated after an interruption makes the same commit. And never
        # older than its parent: history walks of Git rely on commit times.
        timestamp=max(packages[0].state.head_time, timestamp),
        dropped_paths=tuple(it.path for it in packages),
    )


def set_actions(plan: PlannedSet) -> Iterator[PlanAction]:
    """Yield the actions on a set of removals: its branch changes, or the pass merges it."""
    action = plan.build_action(
        ActionKind.DRAFT_REMOVAL,
        repository=plan.repository,
        ref=plan.ref,
        expected=plan.draft.commit if plan.draft is not None else "",
        detail=format_names(removal.path for removal in plan.removals),
    )
    if plan.merges_branch:
        yield from (it.report(action) for it in plan.removals)
    elif plan.write is not None:
        yield action
    elif plan.is_removed:
        yield replace(
            action, kind=ActionKind.REMOVE_DRAFT, detail="its packages are gone already, or stay"
        )
