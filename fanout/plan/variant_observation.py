"""Observation of a variant before selection: publication, draft and obstacles."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.errors import FanoutError
from fanout.gates.candidate_choice import RevisionAges
from fanout.gates.record_facts import DecisionFacts
from fanout.plan import plan_wording
from fanout.plan.changes.next_drafts import DraftLocation
from fanout.plan.commit_statement import PackageVersion
from fanout.plan.edits.merge_disputes import limit_lines, rejected_lines_of_draft
from fanout.plan.move_locations import location_author
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import EMPTY_PATH, OpenDraft, RepositoryState
from fanout.plan.observed_variant import ObservedVariant, VariantContext, missing_branch_hold
from fanout.plan.records.policy_status import PublishedLine, RequestKey, VariantLine
from fanout.selection.path_collisions import PathOwner
from fanout.selection.variant_spec import VariantSpec
from fanout.values import field, replace


class ObservationContext(VariantContext, kw_only=True):
    """Context of a variant beside its repository state and its recorded line."""

    now: datetime
    collision_reasons: Mapping[PathOwner, str] = field(default_factory=dict)  # why not there
    replaces_draft: bool = False  # the draft on its branch is one that another variant leaves
    # tree at the path that is known not to be a publication of it
    unpublished_tree: str | None = None
    move_hold: Hold | None = None  # what is in the way of a move
    # what is at its path was published for another, and is not its own
    taken_hold: Hold | None = None
    keeps_package: bool = False  # it is written by hand, and its package stays when it goes
    # Heads of pull requests on record as merged; the forge may not be asked about them any more.
    merged_heads: Mapping[RequestKey, str] = field(default_factory=dict)
    merges_other_content: bool = False  # what a forge merged of its draft is not what was released


def observe_variant(
    spec: VariantSpec,
    repository_state: RepositoryState,
    status_line: VariantLine | None,
    context: ObservationContext,
    location: DraftLocation,
) -> ObservedVariant:
    """Observe a variant before its candidate is selected.

    `status_line` is None for a variant that is not on record yet. `location` is that of its draft.
    """
    status_line = status_line or VariantLine(
        repository=repository_state.identity, path=spec.path, orphan=context.keeps_package
    )
    if status_line.orphan != context.keeps_package:
        status_line = replace(status_line, orphan=context.keeps_package)
    if (previous := status_line.previous_grant) is not None:
        # The release of the draft that was pushed last counts. A push moves the rendering of the
        # draft on the vendor branch together with the draft.
        is_pushed = repository_state.drafted_renderings.get(spec.path) != previous.rendering
        grant = status_line.grant if is_pushed else previous.grant
        status_line = replace(status_line, grant=grant, previous_grant=None)
    variant = ObservedVariant(
        spec=spec,
        repository_state=repository_state,
        draft_ref=location.ref,
        path_state=repository_state.path_states.get(spec.path, EMPTY_PATH),
        status_line=status_line,
        published=status_line.published,
        draft=location.draft,
        published_for_another=context.taken_hold is not None,
        **{name: getattr(context, name) for name in VariantContext.__struct_fields__},
    )
    if (publication := _unrecorded_publication(variant, context)) is not None:
        variant = replace(variant, published=publication, is_unrecorded=True)
    obstacle = _find_obstacle(variant, context, location.occupant)
    return variant if obstacle is None else replace(variant, obstacle=obstacle)


def _unrecorded_publication(
    variant: ObservedVariant, context: ObservationContext
) -> PublishedLine | None:
    """Return a publication that Git shows and that is not on record yet.

    It occurs when a pass ended between its push and its record, and when a draft was merged
    by hand. Its clocks start now, so nothing can be back-dated.
    """
    tree, grant = variant.path_state.tree, variant.status_line.grant
    draft, now = variant.draft, context.now
    recorded = variant.status_line.published if variant.previous is None else None
    if tree is None or variant.published_for_another:
        return None
    if variant.status_line.granted_place != (variant.repository_state.identity, variant.spec.path):
        # A release for another place is no sign that this tree was published by it.
        grant = None
    is_merged = grant is not None and _is_merged_by_forge(variant, context)
    # What a forge has merged is published even if it changes nothing.
    if not is_merged and recorded is not None and recorded.tree == tree:
        return None
    # A tree that was on the branch before shows no publication. A draft that adopts a package may
    # change nothing in it. Its publication shows in the branch of renderings, which the same push
    # moves.
    if variant.previous is not None:
        is_present = tree == context.unpublished_tree and variant.drafted_rendering is not None
    elif variant.published_rendering is not None:
        is_present = False
    else:
        is_present = variant.may_adopt if draft is None else draft.trailers.onto == tree
    if is_present and not is_merged:
        return None
    # The draft comes before the release: it also has what people added after the
    # release. The release serves where the draft's branch was removed in the push.
    source: PackageVersion
    if draft is not None and draft.tree == tree:
        source, pristine = draft.trailers, draft.trailers.rendered
        is_granted = grant is not None and (grant.revision, grant.digest) == (
            source.revision,
            source.digest,
        )
        rejected = limit_lines(rejected_lines_of_draft(draft))
    elif grant is not None and (is_merged or grant.tree == tree):
        source, is_granted, rejected = grant, True, grant.rejected
        pristine = variant.drafted_rendering or variant.published_rendering or ""
    else:
        return None
    return PublishedLine(
        revision=source.revision,
        commit=source.commit,
        digest=source.digest,
        tree=tree,
        at=now,
        merge=variant.repository_state.head,
        out_of_band=not is_granted,
        pristine=pristine,
        reads=grant.reads if grant is not None and is_granted else {},
        rejected=rejected,
    )


def with_waiting_decisions(
    variants: Sequence[ObservedVariant],
    decisions: Iterable[DecisionFacts],
    revisions: Sequence[str],
) -> tuple[ObservedVariant, ...]:
    """Return the variants, those found published with the decisions that this leaves active.

    As a publication of a pass, one that is found in Git uses up decisions about its own revision
    and those before it. `revisions` are those of the policy, oldest first.
    """
    if not any(it.is_unrecorded for it in variants):
        return tuple(variants)
    ages = RevisionAges(revisions)
    publishes = [it for it in decisions if it.spec.action is Action.PUBLISH]
    observed: list[ObservedVariant] = []
    for variant in variants:
        published, before = variant.published, variant.status_line.published
        if not variant.is_unrecorded or published is None:
            observed.append(variant)
            continue
        waiting = tuple(
            it.name
            for it in publishes
            if ages.is_older(published.revision, it.revision)
            and (before is None or before.at <= it.at or it.name in before.waiting)
        )
        observed.append(replace(variant, published=replace(published, waiting=waiting)))
    return tuple(observed)


def _is_merged_by_forge(variant: ObservedVariant, context: ObservationContext) -> bool:
    """Return whether the forge has merged the variant's draft, and Git shows the merge.

    The tree on the branch is then in force, and what differs from the release is a person's edit,
    whose branch may have been removed by the merge. What the variant has left, or what was written
    after the merge, was not in the request.
    """
    state, draft, tree = variant.repository_state, variant.draft, variant.path_state.tree
    if draft is None and variant.drafted_rendering is None:
        return False
    if variant.draft_ref in state.unmanaged_drafts or context.merges_other_content:
        return False  # what was merged from it are commits of others, or another revision
    merged_head = context.merged_heads.get((state.identity, variant.draft_ref))
    facts = state.find_request(variant.draft_ref)
    if facts is not None and facts.request.state is RequestState.MERGED:
        merged_head = facts.request.head_commit
    if merged_head is None or state.refs.get(variant.draft_ref, merged_head) != merged_head:
        return False
    if draft is None or draft.tree == tree:
        return True
    # Git is listed before the forge is asked: the merge may have come in between.
    recorded = variant.status_line.published
    return tree not in (draft.trailers.onto, recorded.tree if recorded is not None else None)


def unreadable_repository_hold(failure: FanoutError, owner: str) -> Hold:
    """Return the hold of a variant whose repository could not be read."""
    if failure.reason == Reason.INTERNAL_ERROR:
        return Hold(failure.reason, str(failure), who="the operator of fanout")
    return Hold(Reason.REPOSITORY_UNAVAILABLE, str(failure), who=owner)


def _find_obstacle(
    variant: ObservedVariant, context: ObservationContext, occupant: OpenDraft | None
) -> Hold | None:
    """Return the first hold that prevents any draft for this variant.

    `occupant` is another variant's draft in place of its own.
    """
    spec, state = variant.spec, variant.repository_state
    owner = plan_wording.format_maintainers(spec.repository)
    location = f"{spec.repository}:{spec.path}"
    if state.failure is not None:
        return unreadable_repository_hold(state.failure, owner)
    if collision := context.collision_reasons.get((spec.namespace, spec.name)):
        return Hold(Reason.PATH_COLLISION, collision, who=location_author(spec))
    if not state.head:
        is_published = variant.status_line.published is not None
        return missing_branch_hold(state, spec.repository, is_published=is_published)
    if variant.path_state.problem:
        return Hold(
            Reason.INVALID_PATH,
            f"{location}: {variant.path_state.problem}; remove it from the branch or change"
            " downstream.package",
            who=owner,
        )
    if spec.path in state.other_installations:
        return Hold(
            Reason.OTHER_INSTALLATION,
            f"{location} has a draft of installation {state.other_installations[spec.path]}; one"
            " installation owns a path",
            who=plan_wording.ADMINISTRATOR,
        )
    # The path of a variant that waits is occupied by the variant it waits for,
    # which the checks below would report as a fault.
    if context.move_hold is not None or context.wait_hold is not None:
        return context.move_hold
    is_empty = variant.path_state.tree is None
    unmanaged = state.unmanaged_drafts.get(variant.draft_ref)
    if context.taken_hold is not None and not is_empty and not variant.is_moving:
        return context.taken_hold
    if (unmanaged is not None and unmanaged.has_commits) or (
        occupant is not None and not context.replaces_draft
    ):
        ref = variant.draft_ref.removeprefix("refs/heads/")
        sentence = (
            f"branch {ref} has the draft of variant {unmanaged.variant}, and none of {spec.name};"
            " rename or delete it to have the draft written again"
            if unmanaged is not None and unmanaged.variant
            else f"branch {ref} has commits of others and no draft of {spec.name}; rename or delete"
            " it"
        )
    elif variant.is_moving and variant.path_state.tree not in (None, context.unpublished_tree):
        sentence = (
            f"{location} holds a package that is not this variant's; choose another path or remove"
            " it"
        )
    elif not variant.is_unmanaged or variant.may_adopt:
        return None
    elif variant.draft is None and variant.drafted_rendering is None:
        sentence = (
            f"{location} holds a package that fanout did not write; set adoptionPolicy:"
            " AdoptExisting, choose another path or remove it"
        )
    else:
        merge = ""  # its branch was deleted
        if variant.draft is not None:
            branch = variant.draft.ref.removeprefix("refs/heads/")
            merge = f"if it is, merge branch {branch} with a merge commit, else "
        sentence = (
            f"{location} holds a package that is not known to be from its draft;"
            f" {merge}set adoptionPolicy: AdoptExisting or choose another path"
        )
    return Hold(Reason.PATH_TAKEN, sentence, who=owner)
