"""Removal of variants: of each from its places, with its package, its drafts and its rendering.

Of a variant without a target everything goes. With `deletionPolicy: Delete` the package is removed
from the branch; with `Orphan` it stays unmanaged, and so do drafts with edits. Of a variant that
has moved, what it left at a former place goes. Tags stay.

The instant of a removal is on record before anything is pushed: decisions made until then do not
count for a variant that comes back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.commit_trailers import Trailer
from fanout.api.results import Hold
from fanout.gates.gate_wording import format_names
from fanout.groups import group_pairs
from fanout.plan.actions import ActionKind, ActionSubject, PlanAction
from fanout.plan.commit_text import disarm_references
from fanout.plan.observation.repository_state import OpenDraft, RepositoryPath, RepositoryState
from fanout.plan.records.policy_status import PreviousLocationLine, PublishedLine, VariantLine
from fanout.selection.ref_names import parse_publication_number
from fanout.values import Value, field, replace

_MAX_NAMED = 2  # packages named in one commit subject


class PackageRemoval(RepositoryPath, kw_only=True):
    """Removal of one variant from one place.

    `hold` keeps its package from joining a branch that people review; it stays in a branch that
    removes it already.
    """

    variant: str
    stage: str = ""  # as recorded; "": none
    reason: str = ""  # why it goes, as a sentence without its full stop
    tree: str = ""  # of the package that leaves the target branch; "": none does
    published: PublishedLine | None = None  # its publication; None: not known
    awaits_review: bool = False  # the package leaves by a branch that people review
    hold: Hold | None = None
    drafts: tuple[OpenDraft, ...] = ()  # several where its path was changed
    renderings: tuple[str, ...] = ()  # directories of the branch of renderings
    # what is lost of people's edits: description to tree or commit id
    edits: Mapping[str, str] = field(default_factory=dict)
    keeps_package: bool = False  # with `deletionPolicy: Orphan`
    kept_drafts: tuple[OpenDraft, ...] = ()  # which have edits, and stay with the package
    left_line: PreviousLocationLine | None = None  # of a variant that has moved
    used_number: int = 0  # of the last publication there, if nothing will show it; else 0

    @property
    def state(self) -> RepositoryState:
        """Return the state of the repository, which is declared."""
        assert self.repository_state is not None, "its repository is declared"
        return self.repository_state

    @property
    def is_pushed(self) -> bool:
        """Return whether a push removes the package from the target branch."""
        return bool(self.tree) and not self.awaits_review

    def report(self, action: PlanAction) -> PlanAction:
        """Return an action of the same policy that reports the removal of the package."""
        return replace(
            action,
            kind=ActionKind.REMOVE_PACKAGE,
            variant=self.variant,
            repository=self.repository,
            path=self.path,
            tree=self.tree,
            detail=self.reason,
        )


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


class DraftIndex(Value):
    """Drafts of one repository, looked up by the variants and paths that leave it."""

    # by policy, as trailers name it, and name of the variant
    by_variant: Mapping[tuple[str, str], Sequence[OpenDraft]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)  # by path

    @classmethod
    def build(cls, state: RepositoryState | None) -> "DraftIndex":
        """Build the index of a repository; of one that is not declared, an empty one."""
        drafts = state.drafts if state is not None else []
        by_variant = group_pairs(((it.trailers.policy, it.trailers.variant), it) for it in drafts)
        return cls(by_variant, Counter(draft.path for draft in drafts))


def is_reviewed(state: RepositoryState, *, needs_approvals: bool) -> bool:
    """Return whether packages leave the target branch by a branch that people review.

    `needs_approvals`: the stage of the packages requires approvals of a change.
    """
    return state.forge is not None or needs_approvals


def complete_removal(
    removal: PackageRemoval,
    owner: str,
    status_line: VariantLine | None,
    drafts: DraftIndex,
    *,
    needs_approvals: bool,
    is_orphaned: bool = True,
) -> PackageRemoval:
    """Return the removal of a variant from a place with what it removes there.

    `owner` is the policy as trailers have it. `status_line`: None if nothing was ever released
    there. `drafts` are those of the repository. A variant that is not orphaned has moved, and its
    drafts stay.
    """
    state, path, present_tree = removal.repository_state, removal.path, removal.path_state.tree
    keeps_package, pristine_tree = removal.keeps_package, removal.pristine_tree
    published = status_line.published if status_line is not None else None
    grant = status_line.grant if status_line is not None else None
    own_drafts = drafts.by_variant.get((owner, removal.variant), ()) if is_orphaned else ()
    # The tree of the unedited package: the pristine rendering, so that edits which later revisions
    # merged still count as edits. The recorded status knows it also where the branch of renderings
    # is lost or was changed.
    recorded_tree = pristine_tree
    if removal.left_line is not None:
        recorded_tree = removal.left_line.tree
    elif published is not None:
        recorded_tree = published.pristine or pristine_tree or published.tree
    if not recorded_tree and grant is not None and present_tree == grant.tree:
        # The pass ended before recording it, or a person merged the draft.
        recorded_tree = grant.tree
    # A draft that changed nothing is no sign of a publication: its tree was there before.
    drafted_trees = [it.tree for it in own_drafts if it.trailers.onto != it.tree]
    expected_tree = recorded_tree or (present_tree if present_tree in drafted_trees else None)
    tree = (present_tree or "") if expected_tree and not keeps_package else ""
    awaits_review = (
        state is not None and bool(tree) and is_reviewed(state, needs_approvals=needs_approvals)
    )
    # A draft stays until its package is removed if nothing else shows that this is fanout's.
    keeps_drafts = awaits_review and not recorded_tree
    removed_drafts = tuple(
        it for it in own_drafts if not keeps_drafts and not (keeps_package and it.has_edits)
    )
    edits = {f"the package {path}": tree} if tree and tree != expected_tree else {}
    for draft in removed_drafts:
        if draft.has_edits:
            edits[f"the draft {draft.ref.removeprefix('refs/heads/')}"] = draft.commit
    renderings = []
    if state is not None:
        if path in state.published_renderings and not awaits_review:
            renderings.append(f"published/{path}")
        own_count = sum(draft.path == path for draft in own_drafts)
        has_other_draft = drafts.counts.get(path, 0) > own_count
        is_drafted = is_orphaned and path in state.drafted_renderings
        if is_drafted and not keeps_drafts and not has_other_draft:
            renderings.append(f"drafts/{path}")
    return replace(
        removal,
        tree=tree,
        published=published,
        awaits_review=awaits_review,
        drafts=removed_drafts,
        renderings=tuple(renderings),
        used_number=find_used_number(state, path, status_line, removal.left_line)
        if state is not None and not awaits_review
        else 0,
        edits=edits,
        kept_drafts=tuple(it for it in own_drafts if keeps_package and it.has_edits),
    )


def find_used_number(
    state: RepositoryState,
    path: str,
    status_line: VariantLine | None,
    left_line: PreviousLocationLine | None,
) -> int:
    """Return the number used last at a path that a variant leaves, if nothing will show it; else 0.

    `left_line`: of a place that the variant has left before.
    """
    number = state.publication_numbers.get(path, 0)
    if status_line is not None:
        number = max(number, status_line.find_used_number((state.identity, path)))
    if left_line is not None:
        number = max(number, parse_publication_number(left_line.tag, path))
    return 0 if state.is_number_stated(path, number) else number


def join_paths(paths: Sequence[str]) -> str:
    """Return the paths of packages, or their number, for the subject of a commit."""
    return " and ".join(paths) if len(paths) <= _MAX_NAMED else f"{len(paths)} packages"


def build_removal_message(
    removals: Iterable[PackageRemoval], owner: str, approvers: Iterable[str] = ()
) -> str:
    """Build the message of the commit that removes packages of one policy from a branch."""
    ordered = sorted(removals, key=lambda it: it.path)
    paths, reasons = [it.path for it in ordered], {it.reason for it in ordered}
    parts = [f"Remove {join_paths(paths)}"]
    if len(reasons) > 1:
        parts.append("\n".join(f"* {it.path}: {it.reason}" for it in ordered))
    else:
        if len(paths) > _MAX_NAMED:
            parts.append("\n".join(f"* {path}" for path in paths))
        reason = reasons.pop().strip()
        end = "" if reason.endswith((".", "!", "?")) else "."
        parts.append(f"{reason[:1].upper()}{reason[1:]}{end}")
    trailers = [f"{Trailer.POLICY.value}: {owner}"]
    variants = dict.fromkeys(it.variant for it in ordered)
    trailers += [f"{Trailer.VARIANT.value}: {variant}" for variant in variants]
    trailers += [f"{Trailer.APPROVED_BY.value}: {name}" for name in approvers]
    return "\n\n".join([disarm_references("\n\n".join(parts)), "\n".join(trailers)]) + "\n"


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
    yield from (it.report(record_action) for it in removal.packages if it.is_pushed)
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
