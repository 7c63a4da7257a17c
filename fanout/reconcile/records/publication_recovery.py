"""Recovery of publications from repositories: unrecorded ones, and interrupted pushes.

Records can start empty while repositories still hold publications; the tag leads to the
merged draft, whose trailers describe it. Git's file backend moves the refs of an atomic
push one by one, so a server crash can leave only the rendering branch moved. A
publication that no status line reports and no commit of the published branch ever
contained did not happen.
"""

from datetime import datetime

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.package.kptfile import KPTFILE
from fanout.plan.changes.next_drafts import find_draft
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.history.earlier_publication import EarlierPublication, is_other_state
from fanout.plan.observation.repository_state import EMPTY_PATH, PristineRenderings, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import PublishedLine, VariantLine
from fanout.ports import ObjectReader
from fanout.reconcile.history.publication_history import (
    MAX_BRANCH_COMMITS,
    HistoryReader,
    PublicationHistory,
    walk_branch,
)
from fanout.reconcile.observation.repository_access import OpenReader
from fanout.reconcile.observation.upstream_packages import find_upstream_lock
from fanout.selection.variant_spec import VariantSpec
from fanout.values import replace


def is_unrecorded_publication(variant: ObservedVariant) -> bool:
    """Return True if the rendering branch shows a publication that is not on record."""
    path, repository_state = variant.spec.path, variant.repository_state
    return (
        variant.published is None
        and variant.status_line.grant is None
        and variant.previous is None
        and not variant.published_for_another
        and variant.path_state.tree is not None
        and path in repository_state.published_renderings
        and path in repository_state.publication_numbers
    )


def has_other_content(
    variant: ObservedVariant, recorded_head: str, histories: HistoryReader
) -> bool:
    """Return whether a forge merged a released draft, and the branch has another revision.

    A rebase leaves out commits with several parents, and a merge may be reverted before a pass
    sees it. What people changed in the released content is no other content. `recorded_head` is
    the head of the merged request on record, or "". Raises what `open_reader` raises.
    """
    state, tree, published = variant.repository_state, variant.path_state.tree, variant.published
    draft, grant = variant.draft, variant.status_line.grant
    if not variant.is_unrecorded or tree is None or published is None or grant is None:
        return False
    if tree in (grant.tree, draft.tree if draft is not None else grant.tree):
        return False
    history = histories.open(variant)
    reader = history.reader
    facts = state.forge.requests.get(variant.draft_ref) if state.forge is not None else None
    head = facts.request.head_commit if facts is not None else recorded_head
    if (
        head
        and reader.has(head)
        and reader.paths(head, (variant.spec.path,))[variant.spec.path].tree == tree
    ):
        return False
    lock, released_lock = (find_upstream_lock(reader, it) for it in (tree, published.pristine))
    if lock is None or released_lock is None:
        return False
    if is_other_state(lock, released_lock):
        return True
    # The same revision with other inputs.
    recorded = variant.status_line.published
    trailers = history.find_merge_since(recorded.merge if recorded is not None else "")
    return (
        trailers is not None
        and trailers.revision == published.revision
        and trailers.digest != published.digest
    )


def recover_replaced_draft(
    variant: ObservedVariant, histories: HistoryReader, now: datetime
) -> ObservedVariant:
    """Return the variant with the publication of a draft that a person merged by hand.

    Its branch has another content: the person has edited what was merged and not the branch, or a
    pass wrote a newer draft in its place. Without a commit of the draft on the target branch, as
    after a squash, the content shows which draft it was.
    """
    state, tree, published = variant.repository_state, variant.path_state.tree, variant.published
    draft = variant.draft
    if tree is None or variant.is_moving or not _may_be_replaced(variant):
        return variant
    history = histories.open(variant)
    merged = _find_merged_draft(variant, tree, history)
    pristine_tree = merged.pristine_tree if merged is not None else history.find_drafted(tree)
    if not variant.is_unrecorded:
        if merged is None:
            return variant
        lock, merged_lock = (find_upstream_lock(history.reader, it) for it in (tree, pristine_tree))
        if lock is None or (
            is_other_state(lock, merged_lock)
            if merged_lock is not None
            else lock.commit != merged.commit
        ):
            return variant
        published = PublishedLine(
            revision=merged.revision,
            commit=merged.commit,
            digest=merged.digest,
            tree=tree,
            at=now,
            merge=state.head,
            out_of_band=True,  # what is on record is the release of the newer draft
        )
    assert published is not None, "a recovered publication is on record or in Git"
    # The package seemed to be nobody's.
    is_taken = variant.obstacle is not None and variant.obstacle.reason == Reason.PATH_TAKEN
    return replace(
        variant,
        published=replace(published, pristine=pristine_tree),
        is_unrecorded=True,
        reverted_publication=None,
        obstacle=None if variant.is_unmanaged and is_taken else variant.obstacle,
        # Commits by people may be on the newer draft: one that is shared waits for the next pass.
        draft=None if variant.shares_draft else draft,
        keeps_draft=draft is not None
        and draft.has_edits
        and not history.reader.contains(state.head, draft.commit),
        unfinished_push=PristineRenderings(variant.published_rendering, pristine_tree or None),
    )


def _find_merged_draft(
    variant: ObservedVariant, tree: str, history: PublicationHistory
) -> EarlierPublication | None:
    """Return the draft of which a person made the package with this tree, or None."""
    recorded, draft, is_first = variant.status_line.published, variant.draft, variant.is_unmanaged
    trailers = history.find_merge_since(recorded.merge if recorded is not None else "")
    # Drafts of two variants at one path may be equal, and the other one may have published its own.
    is_of_another = is_first and variant.published_rendering is not None
    if trailers is None and draft is None and not is_of_another:
        # The branch of the draft is gone, and the vendor branch has its rendering still. Nothing
        # tells which edits a later draft had, so it is compared with the rendering before it.
        drafts, rendering = variant.repository_state.drafts, variant.drafted_rendering
        if rendering is None or any(it.path == variant.spec.path for it in drafts):
            return None
        onto = pristine = NO_VALUE
        if recorded is not None and not is_first:
            onto, pristine = recorded.tree, recorded.pristine or recorded.tree
        is_content = tree == rendering or _is_content_of(
            history.reader, tree, rendering, onto, pristine, is_first=is_first
        )
        return history.describe_drafted(tree, rendering) if is_content else None
    if trailers is None and draft is not None and not is_of_another:
        drafted, onto = draft.trailers, draft.trailers.onto
        is_content = _is_content_of(
            history.reader, tree, drafted.tree, onto, onto, is_first=is_first
        )
        trailers = drafted if is_content else None
    if trailers is None:
        return None
    return EarlierPublication(
        trailers.revision, trailers.commit, trailers.digest, tree, trailers.rendered
    )


def _is_content_of(
    reader: ObjectReader, tree: str, drafted: str, replaced: str, pristine: str, *, is_first: bool
) -> bool:
    """Return whether a package is what fanout drafted on the tree that it replaced, with edits.

    `pristine` is what the draft was made from: what it changes is what differs between the two.

    Its Kptfile is that of the draft, or names the upstream state to which the draft takes it, and
    no file that the draft changes is as it was before. Others may clone the same state: if the
    draft is the first of its variant and the Kptfile another one, all other files are the draft's.
    """
    trees = (tree, drafted, replaced)
    if not all(it == NO_VALUE or reader.has(it) for it in (*trees, pristine)):
        return False
    try:
        present, new, old, base = (
            reader.entries(it) if it != NO_VALUE else {} for it in (*trees, pristine)
        )
    except InvalidInput:  # a package may not have it, so that fanout did not write it
        return False
    changed = {it for it in new.keys() | base.keys() if new.get(it) != base.get(it)}
    if KPTFILE not in changed or any(present.get(it) == old.get(it) for it in changed):
        return False
    edited = {it for it in changed if present.get(it) != new.get(it)}
    if KPTFILE not in edited:
        return True
    is_whole = len(changed) > 1 and edited == {KPTFILE}
    if is_first and not is_whole:
        return False
    lock, new_lock, old_lock = (
        find_upstream_lock(reader, it) if it != NO_VALUE else None for it in trees
    )
    return (
        lock is not None
        and new_lock is not None
        and not is_other_state(lock, new_lock)
        and (old_lock is None or is_other_state(old_lock, new_lock))
    )


def _may_be_replaced(variant: ObservedVariant) -> bool:
    """Return whether the package in force may be of a draft that is not there any more.

    It looks reverted then, or unmanaged if it was the first one, unless its release is on record.
    """
    published, draft = variant.published, variant.draft
    if not variant.is_unrecorded:
        if not variant.is_unmanaged:
            return variant.reverted_publication is not None
        # A draft that adopts the package has it as its base.
        return variant.status_line.grant is not None or (
            draft.trailers.onto != variant.path_state.tree
            if draft is not None
            else variant.drafted_rendering is not None and not variant.may_adopt
        )
    assert published is not None, "a publication without a record is in Git"
    return draft is not None and (draft.trailers.revision, draft.trailers.digest) != (
        published.revision,
        published.digest,
    )


def find_interrupted_publication(
    spec: VariantSpec,
    repository_state: RepositoryState,
    status_line: VariantLine | None,
    install: str,
    open_reader: OpenReader,
) -> PristineRenderings | None:
    """Return the renderings at a path before an interrupted publication.

    None if there is no such publication, which is nearly always decided without reading a
    mirror. Raises what `open_reader` raises.
    """
    path, head = spec.path, repository_state.head
    rendered = repository_state.published_renderings.get(path)
    if rendered is None or repository_state.failure is not None:
        return None
    location = repository_state.identity, path
    published_line = (
        status_line.published if status_line is not None and status_line.place == location else None
    )
    # The recorded publication has this rendering, so its push was complete.
    if published_line is not None and published_line.pristine in ("", rendered):
        return None
    draft = find_draft(spec, repository_state, install)
    if draft is not None and draft.trailers.rendered not in ("", rendered):
        return None  # of the variant that was at the path before
    grant = (
        status_line.grant
        if status_line is not None and status_line.granted_place == location
        else None
    )
    present_tree = repository_state.path_states.get(path, EMPTY_PATH).tree
    if grant is not None:
        expected_tree = grant.tree
    elif draft is not None and draft.trailers.rendered == rendered:
        expected_tree = draft.tree or ""
    elif published_line is None and present_tree is None:
        expected_tree = ""
    else:
        return None
    if expected_tree and present_tree == expected_tree:
        return None  # in force, but not recorded yet
    reader = open_reader(repository_state.remote)
    # Back to before the rendering moved from `drafts/` to `published/`.
    published, drafted = f"published/{path}", f"drafts/{path}"
    for commit in walk_branch(reader, repository_state.vendor_head):
        states = reader.paths(commit.oid, (published, drafted))
        if states[published].tree != rendered:
            break
    else:
        return None
    if states[drafted].tree != rendered:
        return None
    for count, commit in enumerate(walk_branch(reader, head), start=1):
        tree = reader.paths(commit.oid, (path,))[path].tree
        was_published = tree is not None and expected_tree in ("", tree)
        # Where the history exceeds the limit, a person decides.
        if was_published or count == MAX_BRANCH_COMMITS:
            return None
    return PristineRenderings(states[published].tree, rendered)
