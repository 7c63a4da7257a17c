"""Removals of one pass: of variants without a target, and of what moves have left behind.

The instant of a removal is on record before anything is pushed: decisions made until then do not
count for a variant that comes back (docs/concepts/removal.md).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from fanout.gates.gate_wording import format_names
from fanout.plan.actions import ActionKind, ActionSubject, PlanAction
from fanout.plan.observation.repository_state import OpenDraft, PublicationMerge
from fanout.plan.records.policy_status import VariantLine
from fanout.plan.removal.package_removal import PackageRemoval, build_removal_message
from fanout.plan.removal.removal_drafts import RemovalDraftPlan
from fanout.values import Value, replace


class VariantRemoval(ActionSubject, kw_only=True):
    """Removal of one variant, or of what it has left, from all its places.

    `stage` is as recorded.
    """

    packages: tuple[PackageRemoval, ...]
    # first time at which it was due; None: the variant stays, and what it left behind goes
    due: datetime | None = None

    @property
    def awaits_review(self) -> bool:
        """Return whether a package of the variant leaves its branch after a review."""
        return any(it.awaits_review for it in self.packages)


class PolicyCleanup(Value):
    """Cleanup of one policy after moves and removals.

    `emptied` and `rediscovered` are the repositories that the policy stops, or starts again, to
    observe.
    """

    removals: tuple[VariantRemoval, ...] = ()
    emptied: frozenset[str] = frozenset()
    rediscovered: frozenset[str] = frozenset()  # after records were lost
    removal_drafts: tuple[RemovalDraftPlan, ...] = ()  # those there are, and those written

    @property
    def packages(self) -> Iterator[tuple[VariantRemoval, PackageRemoval]]:
        """Yield each removal from one place, with that of its variant."""
        return ((it, package) for it in self.removals for package in it.packages)


def removal_due_since(
    variant: str, status_line: VariantLine | None, removed: Mapping[str, datetime], now: datetime
) -> datetime:
    """Return when the removal was first due: now, or in a pass that was cut off.

    `removed` has recorded removals by variant name; one that a publication followed is
    over.
    """
    recorded = removed.get(variant)
    published = status_line.published if status_line is not None else None
    if recorded is None or (published is not None and published.at > recorded):
        return now
    return recorded


def removal_actions(removal: VariantRemoval) -> Iterator[PlanAction]:
    """Yield the actions of the removal of one variant."""
    record_action = removal.build_action(ActionKind.RECORD)
    for it in removal.packages:
        if it.is_pushed:
            yield replace(
                record_action,
                kind=ActionKind.REMOVE_PACKAGE,
                repository=it.repository,
                path=it.path,
                tree=it.tree,
                detail=it.reason,
            )
    # One action per draft: several places may be in one repository.
    packages_by_draft: dict[tuple[str, str], tuple[PackageRemoval, OpenDraft]] = {}
    for it in removal.packages:
        for draft in it.drafts:
            packages_by_draft.setdefault((it.repository, draft.ref), (it, draft))
    for it, draft in packages_by_draft.values():
        yield replace(
            record_action,
            kind=ActionKind.REMOVE_DRAFT,
            repository=it.repository,
            path=it.path,
            ref=draft.ref,
            expected=draft.commit,
            detail=it.reason,
        )
    if removal.due is None:
        for it in removal.packages:
            if it.left_line is not None and not it.tree:
                detail = f"that {removal.variant} has left {it.repository}:{it.path}"
                yield replace(record_action, repository=it.repository, path=it.path, detail=detail)
    elif not any(it.tree for it in removal.packages):
        is_left = any(it.keeps_package and it.path_state.tree for it in removal.packages)
        remainder = "its package stays on the branch" if is_left else "nothing of it is on a branch"
        drafts = {draft.ref for it in removal.packages for draft in it.kept_drafts}
        names = format_names(ref.removeprefix("refs/heads/") for ref in drafts)
        edits = f", and so does what people committed to {names}" if drafts else ""
        detail = f"that {removal.variant} is gone with its target; {remainder}{edits}"
        yield replace(record_action, detail=detail)


def build_removal_commits(
    removals: Iterable[tuple[VariantRemoval, PackageRemoval]],
) -> tuple[PublicationMerge, ...]:
    """Build one commit per policy that removes packages from one branch."""
    removals_by_owner: dict[str, list[tuple[VariantRemoval, PackageRemoval]]] = {}
    for variant_removal, removal in removals:
        if removal.is_pushed:
            owner = f"{variant_removal.namespace}/{variant_removal.policy}"
            removals_by_owner.setdefault(owner, []).append((variant_removal, removal))
    return tuple(
        PublicationMerge(
            drafts=(),
            message=build_removal_message((package for _, package in pairs), owner),
            # Of the inputs: a pass repeated after an interruption makes the same commit. And never
            # older than its parent: history walks of Git rely on commit times.
            timestamp=max(
                [
                    pairs[0][1].state.head_time,
                    *(int(it.due.timestamp()) for it, _ in pairs if it.due is not None),
                ]
            ),
            dropped_paths=tuple(sorted(package.path for _, package in pairs)),
        )
        for owner, pairs in sorted(removals_by_owner.items())
    )
