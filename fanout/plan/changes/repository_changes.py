"""Changes of one pass per repository: drafts, publications, vendor branch, removals."""

from collections.abc import Sequence

from fanout.package.tree_ids import BlobUnion
from fanout.plan.changes.branch_changes import plan_branches
from fanout.plan.changes.package_removal import PackageRemoval, VariantRemoval
from fanout.plan.changes.planned_sets import PlannedSet, build_removal_merges
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.publication_messages import (
    CommitSettings,
    build_publication_message,
    find_grants,
    group_publications,
    split_publication,
)
from fanout.plan.commit_statement import NO_VALUE, PackageStatement, PublicationStatement
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.observation.repository_state import (
    MergedDraft,
    OpenDraft,
    PublicationMerge,
    RepositoryChange,
    RepositoryState,
    StoredTree,
    VendorCommit,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import drafts_prefix, parse_publication_number, tag_ref, vendor_ref
from fanout.values import Value, astuple, field

_RENDERING_STEPS = (VariantStep.WRITE, VariantStep.ADOPT)
_PUBLISHING_STEPS = (VariantStep.PUBLISH, VariantStep.SETTLE, VariantStep.ADOPT)


class _RepositoryWork(Value):
    """Pushes and commits planned for one repository."""

    state: RepositoryState
    steps: list[DecidedVariant] = field(default_factory=list)
    merges: list[PublicationMerge] = field(default_factory=list)
    removals: list[tuple[VariantRemoval, PackageRemoval]] = field(default_factory=list)
    removal_sets: list[PlannedSet] = field(default_factory=list)


def build_changes(
    plans: Sequence[PolicyPlan], settings: CommitSettings, *, appends: bool = False
) -> tuple[RepositoryChange, ...]:
    """Build one change per affected repository, in order of repository identity.

    `appends`: a draft that is written anew continues what is on its branch, for a server that
    refuses to replace it.
    """
    work_by_repository: dict[str, _RepositoryWork] = {}

    def find_work(state: RepositoryState) -> _RepositoryWork:
        return work_by_repository.setdefault(state.key, _RepositoryWork(state))

    for plan in plans:
        for planned in plan.steps:
            # What the forge merges is found by the next pass.
            if planned.step not in (VariantStep.KEEP, VariantStep.MERGE):
                find_work(planned.rendered.observed.repository_state).steps.append(planned)
        for variant_removal, removal in plan.cleanup.packages:
            if removal.repository_state is not None:
                find_work(removal.repository_state).removals.append((variant_removal, removal))
        for removal_set in plan.cleanup.sets:
            find_work(removal_set.state).removal_sets.append(removal_set)
    by_name = {(plan.namespace, plan.name): plan for plan in plans}
    for key, variants in sorted(
        group_publications(plans).items(), key=lambda item: astuple(item[0])
    ):
        if variants[0].observed.repository_state.forge is not None:
            continue
        plan = by_name[key.namespace, key.policy]
        # The time of the release and not of the push: a pass repeated after an interruption makes
        # the same commits.
        timestamp = max(int(grant.at.timestamp()) for grant in find_grants(variants, plan))
        for merged in split_publication(variants):
            merged_drafts: list[MergedDraft] = []
            for variant in merged:
                draft = variant.observed.draft
                assert draft is not None, "only a standing draft is published"
                assert draft.tree is not None, "a draft has its package"
                merged_drafts.append(
                    MergedDraft(
                        commit=draft.commit,
                        path=variant.spec.path,
                        tree=draft.tree,
                        tag=next_publication_tag(variant),
                        last_tag=last_publication_tag(variant),
                        last_commit=last_publication_commit(variant),
                    )
                )
            message = build_publication_message(key, merged, plan, settings)
            work_by_repository[key.repository].merges.append(
                PublicationMerge(tuple(merged_drafts), message, timestamp)
            )
    all_changes = (
        _build_change(work_by_repository[repository], settings, appends=appends)
        for repository in sorted(work_by_repository)
    )
    return tuple(change for change in all_changes if change is not None)


def _build_change(
    work: _RepositoryWork, settings: CommitSettings, *, appends: bool
) -> RepositoryChange | None:
    steps = sorted(work.steps, key=lambda planned: planned.rendered.spec.path)
    state = work.state
    writes = [planned.rendered for planned in steps if planned.step is VariantStep.WRITE]
    # Drafts whose content is on the branch after this pass, and those withdrawn.
    published: list[OpenDraft] = []
    withdrawn = [draft for _, removal in work.removals for draft in removal.drafts]
    for item in work.steps:
        draft, keeps = item.rendered.observed.draft, item.rendered.observed.keeps_draft
        if draft is not None and item.step is VariantStep.REMOVE:
            withdrawn.append(draft)
        elif draft is not None and not keeps and item.step in _PUBLISHING_STEPS:
            published.append(draft)
    branch_changes = plan_branches(
        state, writes, published, withdrawn, work.removal_sets, appends=appends
    )
    rendered_variants = [it.rendered for it in steps if it.step in _RENDERING_STEPS]
    # Removals are a second push, after the one that writes: a ref in both would lose the new
    # draft.
    branches, removed = branch_changes.writes, branch_changes.removed_refs
    vendor = _build_vendor_commit(work, steps, settings.install)
    tagged = _merged_by_hand(steps) if state.pushes_tags else ()
    tags = {next_publication_tag(variant): state.head for variant in tagged}
    merges = (*work.merges, *build_removal_merges(work.removals, work.removal_sets))
    if not (branches or removed or vendor or merges or tags):
        return None
    # All content that may be needed; the writer skips what the repository has.
    blobs = BlobUnion()
    # Variants at one revision share one package object, whose files are added once.
    packages = {id(it.selected.package): it.selected.package for it in rendered_variants}
    for package in filter(None, packages.values()):
        blobs.add({entry.oid: data for entry, data in package.upstream.files.values()})
    for variant in rendered_variants:
        assert variant.rendering is not None, "a draft is rendered before it is written"
        blobs.add(variant.rendering.blobs)
        if variant.merged is not None:
            blobs.add(variant.merged.content.blobs)
    touched = [update.ref for update in branches]
    touched += [*removed, *tags]
    if merges:
        touched.append(state.branch)
        touched += [draft.tag for merge in merges for draft in merge.drafts]
    if vendor:
        touched.append(vendor.ref)
    return RepositoryChange(
        remote=state.remote,
        identity=settings.identity,
        # The server checks a lease only for refs named in the push. A ref created by
        # somebody in between would be overwritten without complaint; hence the explicit
        # "" for refs that must not exist.
        expected={ref: state.refs.get(ref, "") for ref in sorted(touched)},
        blobs=blobs,
        # No draft contains a rendering unchanged in which edits were merged.
        trees=(
            *(
                StoredTree(it.rendering.entries, it.rendering.tree)
                for it in rendered_variants
                if it.merged is not None and it.rendering is not None
            ),
            *branch_changes.trees,
        ),
        branches=branches,
        branch=state.branch if merges else "",
        merges=merges,
        tags=tags,
        pushes_tags=state.pushes_tags,
        vendor=vendor,
        removed_drafts=removed,
        drafts_under=drafts_prefix(settings.install),
    )


def _merged_by_hand(steps: Sequence[DecidedVariant]) -> list[RenderedVariant]:
    """Return the variants whose draft was merged by hand, and has neither tag nor statement."""
    return [
        planned.rendered
        for planned in steps
        if planned.rendered.observed.is_unrecorded
        and planned.step is not VariantStep.ADOPT
        and not planned.rendered.observed.tag
    ]


def last_publication_number(variant: RenderedVariant) -> int:
    """Return the number of the newest publication at the variant's path, or 0 without one.

    The number of a publication on record counts whether its tag is there or not, so that none is
    given twice; also one of the variant that is at the path until this one comes.
    """
    path, state = variant.spec.path, variant.observed.repository_state
    recorded_number = variant.observed.status_line.find_used_number((state.identity, path))
    occupant_number = parse_publication_number(variant.observed.occupant_tag, path)
    return max(state.publication_numbers.get(path, 0), recorded_number, occupant_number)


def last_publication_commit(variant: RenderedVariant) -> str:
    """Return the commit of the newest publication at the variant's path, or "" without one."""
    path, state = variant.spec.path, variant.observed.repository_state
    line = variant.observed.status_line
    # The publication on record counts if it was at the variant's present path.
    recorded = line.published if line.place == (state.identity, path) else None
    number = state.publication_numbers.get(path, 0)
    if recorded is not None and last_publication_number(variant) != number:
        return recorded.merge
    return state.find_publication_commit(path)


def last_publication_tag(variant: RenderedVariant) -> str:
    """Return the tag of the newest publication at the variant's path, or "" without one."""
    number = last_publication_number(variant)
    return tag_ref(variant.spec.path, number) if number else ""


def next_publication_tag(variant: RenderedVariant) -> str:
    """Return the tag of the next publication: the highest number so far plus one."""
    return tag_ref(variant.spec.path, last_publication_number(variant) + 1)


def _build_vendor_commit(
    work: _RepositoryWork, steps: Sequence[DecidedVariant], install: str
) -> VendorCommit | None:
    state = work.state
    put: dict[str, str] = {}
    drop = [path for _, removal in work.removals for path in removal.renderings]
    times = [state.vendor_time, state.head_time]
    for planned in steps:
        variant, step = planned.rendered, planned.step
        path = variant.spec.path
        pending = variant.observed.drafted_rendering
        if step is VariantStep.WRITE:
            assert variant.rendering is not None, "a draft is rendered before it is written"
            put[f"drafts/{path}"] = variant.rendering.tree
            times.append(variant.selected.upstream_time)
        elif pending is not None:
            drop.append(f"drafts/{path}")
            if step in (VariantStep.PUBLISH, VariantStep.SETTLE):
                put[f"published/{path}"] = pending
        if step is VariantStep.ADOPT:
            assert variant.rendering is not None, (
                "what is in force already is known by rendering it"
            )
            put[f"published/{path}"] = variant.rendering.tree
        if variant.observed.is_unrecorded and step is VariantStep.WRITE and pending is not None:
            put[f"published/{path}"] = pending
        elif variant.observed.unfinished_push is not None and step is VariantStep.WRITE:
            # The branch is put back to the renderings from before the interrupted push.
            if variant.observed.unfinished_push.published_tree is not None:
                put[f"published/{path}"] = variant.observed.unfinished_push.published_tree
            else:
                drop.append(f"published/{path}")
    # Unchanged entries are left out, so that a pass without effects writes no
    # commit.
    put = {path: tree for path, tree in put.items() if _pristine_tree(state, path) != tree}
    drop = [path for path in drop if _pristine_tree(state, path) is not None]
    drafts = [plan.draft for plan in work.removal_sets if plan.draft is not None]
    paths = {path for draft in drafts for path in draft.removed_trees}
    drop += [f"published/{path}" for path in sorted(paths & state.obsolete_renderings)]
    statements = _state_publications(steps, state, install)
    # The number used last at each path of which nothing will show it after this pass: a variant
    # leaves the path, or its publication there was reverted and is not on record any more.
    numbers = {it.path: it.used_number for _, it in work.removals if it.used_number}
    for planned in steps:
        is_reverted = planned.rendered.observed.reverted_publication is not None
        if planned.step is VariantStep.ADOPT and is_reverted:
            numbers[planned.rendered.spec.path] = last_publication_number(planned.rendered)
    used_numbers = {
        path: number
        for path, number in sorted(numbers.items())
        if not state.is_number_stated(path, number)
    }
    if not put and not drop and not statements and not used_numbers:
        return None
    return VendorCommit(
        ref=vendor_ref(install),
        parent=state.vendor_head,
        trees_by_path=dict(sorted(put.items())),
        dropped_paths=tuple(sorted(set(drop) - put.keys())),
        message="Keep the pristine renderings\n",
        timestamp=max(times),
        statements=statements,
        used_numbers=used_numbers,
        last_statements=state.last_statements,
    )


def _state_publications(
    steps: Sequence[DecidedVariant], state: RepositoryState, install: str
) -> tuple[PublicationStatement, ...]:
    """Return statements about what this pass publishes, and what it finds merged by hand.

    A draft on a branch of its own needs none where its publication has a tag: the tag leads to
    the draft's commit.
    """
    publications = [
        (planned.rendered, planned.rendered.observed.draft.trailers, "")
        for planned in steps
        if planned.step is VariantStep.PUBLISH and planned.rendered.observed.draft is not None
    ]
    for variant in _merged_by_hand(steps):
        spec, draft, published = variant.spec, variant.observed.draft, variant.observed.published
        assert published is not None, "what was merged by hand is published"
        if draft is not None and draft.tree == published.tree:
            trailers = draft.trailers
        else:  # the draft may not be there any more
            trailers = PackageStatement(
                install=install,
                policy=f"{spec.namespace}/{spec.policy}",
                variant=spec.name,
                stage=spec.stage or NO_VALUE,
                revision=published.revision,
                commit=published.commit,
                digest=published.digest,
                onto=NO_VALUE,
                tree=published.tree,
                rendered=published.pristine,
            )
        publications.append((variant, trailers, state.head))
    return tuple(
        PublicationStatement(
            path=variant.spec.path,
            number=last_publication_number(variant) + 1,
            trailers=trailers,
            merge=merge,
        )
        for variant, trailers, merge in publications
        if variant.observed.shares_draft or not state.pushes_tags
    )


def _pristine_tree(state: RepositoryState, directory: str) -> str | None:
    kind, _, path = directory.partition("/")
    return (state.published_renderings if kind == "published" else state.drafted_renderings).get(
        path
    )
