"""Sets of a pass in one repository: what goes into it together or not at all.

A pass pushes all its sets at once. Where the server refuses one, the others are pushed without it.
The publication of a variant is one set with its commit, tag and rendering; so are the variants that
share a draft or change places. What is about one path is one set, too.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from fanout.plan.changes.package_removal import VariantRemoval
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.repository_changes import next_publication_tag
from fanout.plan.decided_variant import VariantStep
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.values import replace

SetMember = tuple[str, str]
"""Namespace, and name of a variant or full ref of a set of removals."""
_Token = tuple[str, ...]


@dataclass(slots=True, eq=False)
class ChangeSet:
    """Part of the changes of a repository that is pushed as a whole or not at all.

    `refs` are those that its push writes, but for the branch of renderings, which all sets move.
    Parts that have a token in common are one set.
    """

    members: set[SetMember]
    tokens: set[_Token] = field(default_factory=set)
    refs: set[str] = field(default_factory=set)
    publishes: bool = False  # it moves the target branch, or makes tags

    def add(self, other: "ChangeSet") -> None:
        """Add another part to the set."""
        self.members |= other.members
        self.tokens |= other.tokens
        self.refs |= other.refs
        self.publishes |= other.publishes


def list_sets(plans: Sequence[PolicyPlan], remote: str) -> tuple[ChangeSet, ...]:
    """Return the sets of the pass in the repository with this key of its remote."""
    by_token: dict[_Token, ChangeSet] = {}
    for plan in plans:
        for part in _list_parts(plan, remote):
            part.tokens |= {("member", *member) for member in part.members}
            for earlier in {id(it): it for it in map(by_token.get, part.tokens) if it}.values():
                part.add(earlier)
            by_token.update(dict.fromkeys(part.tokens, part))
    return tuple(dict.fromkeys(by_token.values()))


def keep_members(
    plans: Sequence[PolicyPlan], remote: str, members: Collection[SetMember]
) -> tuple[PolicyPlan, ...]:
    """Return the plans with nothing but what they do for these members in the repository."""

    def is_kept(plan: PolicyPlan, state: RepositoryState | None, name: str) -> bool:
        return _is_at(state, remote) and (plan.namespace, name) in members

    def keep_packages(removal: VariantRemoval) -> VariantRemoval:
        packages = (it for it in removal.packages if _is_at(it.repository_state, remote))
        return replace(removal, packages=tuple(packages))

    kept_plans: list[PolicyPlan] = []
    for plan in plans:
        steps = (
            it
            for it in plan.steps
            if is_kept(plan, it.rendered.observed.repository_state, it.rendered.spec.name)
        )
        removals = (it for it in plan.cleanup.removals if (plan.namespace, it.variant) in members)
        drafts = (it for it in plan.cleanup.sets if is_kept(plan, it.state, it.ref))
        cleanup = replace(
            plan.cleanup, removals=tuple(map(keep_packages, removals)), sets=tuple(drafts)
        )
        kept_plans.append(replace(plan, steps=tuple(steps), cleanup=cleanup))
    return tuple(kept_plans)


def _is_at(state: RepositoryState | None, remote: str) -> bool:
    return state is not None and state.remote.key == remote


def _list_parts(plan: PolicyPlan, remote: str) -> Iterator[ChangeSet]:
    for step in plan.steps:
        variant, observed, spec = step.rendered, step.rendered.observed, step.rendered.spec
        is_pushed = step.step not in (VariantStep.KEEP, VariantStep.MERGE)
        if not is_pushed or not _is_at(observed.repository_state, remote):
            continue
        part = ChangeSet({(plan.namespace, spec.name)}, {("path", spec.path)})
        part.tokens |= {("member", plan.namespace, it) for it in observed.exchange_partners}
        if observed.previous is not None:
            part.tokens.add(("path", observed.previous.path))
        part.tokens |= _shared_drafts([observed.draft])
        if step.step is VariantStep.WRITE:
            part.refs.add(observed.draft_ref)
            if observed.shares_draft:
                part.tokens.add(("draft", observed.draft_ref))
        if step.step is VariantStep.PUBLISH:
            part.refs.add(observed.repository_state.branch)
        if step.step is VariantStep.PUBLISH or observed.is_unrecorded:
            part.publishes = True
            if observed.repository_state.pushes_tags:
                part.refs.add(next_publication_tag(variant))
        yield part
    for _, removal in plan.cleanup.packages:
        if _is_at(removal.repository_state, remote):
            yield ChangeSet(
                {(plan.namespace, removal.variant)},
                {("path", removal.path), *_shared_drafts(removal.drafts)},
                {removal.state.branch} if removal.is_pushed else set(),
                removal.is_pushed,
            )
    for planned_set in plan.cleanup.sets:
        paths: set[_Token] = {("path", it.path) for it in planned_set.removals}
        part = ChangeSet({(plan.namespace, planned_set.ref)}, paths)
        if not _is_at(planned_set.state, remote):
            continue
        if planned_set.merges_branch:
            part.members |= {(plan.namespace, it.variant) for it in planned_set.removals}
            part.refs.add(planned_set.state.branch)
            part.publishes = True
            yield part
        elif planned_set.write or planned_set.is_removed:
            part.refs.add(planned_set.ref)
            yield part


def _shared_drafts(drafts: Sequence[OpenDraft | None]) -> set[_Token]:
    """Return the tokens of drafts whose branches have the packages of several variants."""
    return {("draft", it.ref) for it in drafts if it is not None and it.is_shared}
