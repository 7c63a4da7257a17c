"""Observation of the variants of one policy, at their paths and previous locations.

A variant whose path changed is observed at the new one. Activity at the previous or
granted path is recorded first: a pass may have ended between a push and its record, and
a person may have merged a draft there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.api.package_variant import OnConflict
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.errors import Bug
from fanout.package.merge.merge_conflicts import NO_CHOICES, ConflictChoices
from fanout.plan.changes.next_drafts import DraftLocation, locate_draft
from fanout.plan.edits.merge_disputes import winners_of_variant
from fanout.plan.move_locations import (
    AbandonedLocation,
    MisplacedDraft,
    draft_branch_hold,
    exchange_partners,
    location_author,
    occupied_path_hold,
)
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import (
    EMPTY_PATH,
    ObservedPath,
    OpenDraft,
    RepositoryState,
)
from fanout.plan.observed_variant import ObservedVariant, lost_leftover_hold
from fanout.plan.plan_wording import NEXT_RUN, format_maintainers
from fanout.plan.records.policy_status import RecordedStatus, VariantLine
from fanout.plan.variant_observation import ObservationContext, observe_variant
from fanout.ports import GitStore
from fanout.reconcile.edits.edit_detection import DownstreamEditDetector
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.memo.policy_memo import VariantMemo
from fanout.reconcile.observation.repository_access import open_one_at_a_time
from fanout.reconcile.observation.upstream_packages import find_origin
from fanout.reconcile.ownership.path_ownership import (
    PathOwnership,
    find_emptied_repositories,
    trailer_owner,
)
from fanout.reconcile.ownership.publisher_check import find_publisher_hold
from fanout.reconcile.records.lost_records import (
    RecordBaseline,
    compare_with_publication,
    mark_missing_records,
)
from fanout.reconcile.records.publication_recovery import (
    find_interrupted_publication,
    has_other_content,
    is_unrecorded_publication,
    recover_replaced_draft,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, repository_key
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.ref_names import tag_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import Value, replace


class _Move(Value):
    """Previous location, state of the new path, and hold of a moving variant."""

    previous: ObservedPath | None = None
    # tree at the new path that is known to be no publication of it
    unpublished_tree: str | None = None
    partners: frozenset[str] = frozenset()
    hold: Hold | None = None


_NO_MOVE = _Move()
_DraftPlace = tuple[str, tuple[str, str]]  # repository identity, `OpenDraft.key`
# Winners of conflicts that no person decides.
_DEFAULT_CHOICES: Mapping[OnConflict, ConflictChoices] = {
    OnConflict.HOLD: NO_CHOICES,
    OnConflict.UPSTREAM_WINS: ConflictChoices(default_side=ConflictWinner.UPSTREAM),
    OnConflict.LOCAL_WINS: ConflictChoices(default_side=ConflictWinner.LOCAL),
}


@dataclass(slots=True)
class VariantObserver:
    """Observes the variants of one policy, or one hand-written variant."""

    _: KW_ONLY
    git: GitStore
    install: str
    now: datetime
    resolved_policy: ResolvedPolicy
    status: RecordedStatus
    path_ownership: PathOwnership
    resolutions: Sequence[DecisionSpec]
    edit_detector: DownstreamEditDetector
    variant_memo: VariantMemo
    record_baseline: RecordBaseline
    _misplaced_drafts: dict[str, list[MisplacedDraft]] = field(default_factory=dict)
    # Those drafts by repository and key: what has their branches from now on replaces them.
    _departing_drafts: dict[_DraftPlace, OpenDraft] = field(default_factory=dict)
    _wanted_places: dict[str, PackagePlace] = field(default_factory=dict)
    # Context of all variants; most have no other.
    _shared_context: ObservationContext = field(init=False)
    _histories: HistoryReader = field(init=False)  # while the variants are observed

    def __post_init__(self) -> None:
        declaration = self.resolved_policy.declaration
        self._shared_context = ObservationContext(
            now=self.now,
            collision_reasons=self.path_ownership.index.policy_paths.refusals,
            may_adopt=self.resolved_policy.adopts_existing,
            keeps_package=self.resolved_policy.upstream_policy is None
            and self.resolved_policy.orphans_packages,
            choices=_DEFAULT_CHOICES[declaration.spec.on_conflict] if declaration else NO_CHOICES,
            merged_heads={
                key: line.head
                for key, line in self.status.requests.items()
                if line.state == RequestState.MERGED
            },
        )

    def observe_variants(self) -> tuple[ObservedVariant, ...]:
        """Observe every variant of the policy, in the policy's order."""
        variants = self.resolved_policy.variants
        specs = {spec.name: spec for spec in variants}
        places = self.resolved_policy.place_by_variant
        self._wanted_places = {name: (places[name], spec.path) for name, spec in specs.items()}
        # Drafts of this policy's variants that are not at their variant's path.
        owner = trailer_owner(self.resolved_policy)
        for repository_place, located in self.path_ownership.repository_by_place.items():
            state = located.state
            are_shared = self.resolved_policy.shares_drafts(has_forge=state.forge is not None)
            for draft in state.drafts:
                variant = draft.trailers.variant
                wanted_place = self._wanted_places.get(variant)
                if wanted_place is None or draft.trailers.policy != owner:
                    continue
                # Most drafts are at their path, on the variant's own branch, as they are to be.
                if wanted_place == (repository_place, draft.path) and (
                    not (draft.is_shared or are_shared)
                    or self._locate_draft(specs[variant], state).key == draft.key
                ):
                    continue
                misplaced_draft = MisplacedDraft(state, located.repository, draft.path, draft)
                self._misplaced_drafts.setdefault(variant, []).append(misplaced_draft)
                self._departing_drafts[repository_place, draft.key] = draft
        self.variant_memo.retain(self._wanted_places)
        variant_by_name: dict[str, ObservedVariant] = {}
        # `onConflict` can change while spec, status line and repository state stay the same.
        choices, lines = self._shared_context.choices, self.status.variants
        for spec in variants:
            state, name = self._get_state(spec), spec.name
            memoized = self.variant_memo.find_observed(spec, state, lines.get(name))
            if memoized and memoized.choices is choices and self._is_memoizable(name):
                variant_by_name[name] = memoized
        # Ordered by repository, because only one mirror reader is open at a time.
        changed = sorted(
            (spec for spec in variants if spec.name not in variant_by_name),
            key=lambda spec: self._wanted_places[spec.name],
        )
        with open_one_at_a_time(self.git) as open_reader:
            self._histories = HistoryReader(open_reader)
            variant_by_name.update((spec.name, self._observe_or_hold(spec)) for spec in changed)
        return tuple([variant_by_name[spec.name] for spec in variants])

    def find_emptied_repositories(self) -> frozenset[str]:
        """Return recorded repositories that no longer contain anything of the policy."""
        owner, ownership = trailer_owner(self.resolved_policy), self.path_ownership
        states = (it.state for it in ownership.repository_by_place.values())
        return find_emptied_repositories(owner, self.status, states, ownership.named_places)

    def _locate_draft(self, spec: VariantSpec, repository_state: RepositoryState) -> DraftLocation:
        is_shared = self.resolved_policy.shares_drafts(has_forge=repository_state.forge is not None)
        return locate_draft(spec, repository_state, self.install, is_shared=is_shared)

    def _get_state(self, spec: VariantSpec) -> RepositoryState:
        return self.path_ownership.repository_states[
            repository_key(self.resolved_policy.repositories[spec.name])
        ]

    def _observe_or_hold(self, spec: VariantSpec) -> ObservedVariant:
        """Observe the variant; an internal error holds this variant alone.

        The variant is then held like one whose repository cannot be read, and its records stay.
        """
        repository_state = self._get_state(spec)
        status_line = self.status.variants.get(spec.name)
        try:
            with BARRIER:
                variant = self._observe_where_published(spec, repository_state, status_line)
                if is_unrecorded_publication(variant):
                    # It was pushed, and its pass ended before recording it. Its clocks start now,
                    # because no record has its time. Not from the present draft, which may be of a
                    # later revision: the newest tag leads to the merge, and that to the draft.
                    published = self._histories.open(variant).find_newest(self.now)
                    if published is not None:
                        line = replace(variant.status_line, published=published)
                        variant = replace(variant, published=published, status_line=line)
                    open_reader, line = self._histories.open_reader, variant.status_line
                    variant = mark_missing_records(variant, self.record_baseline, open_reader)
                    earlier_renderings = find_interrupted_publication(
                        spec, repository_state, line, self.install, open_reader
                    )
                    if earlier_renderings is not None:
                        variant = replace(variant, unfinished_push=earlier_renderings)
                variant = self._add_history(variant)
                if self._is_memoizable(spec.name):
                    return self.variant_memo.store_observed(status_line, variant)
                return variant
        except Bug as error:
            remote, branch = repository_state.remote, repository_state.branch
            unreadable = RepositoryState(remote=remote, branch=branch, refs={}, failure=error)
            location = self._locate_draft(spec, unreadable)
            return observe_variant(spec, unreadable, status_line, self._shared_context, location)

    def _is_memoizable(self, name: str) -> bool:
        """Return True if spec, status line and repository state alone determine the variant."""
        return not (
            self._departing_drafts
            or self.resolutions
            or name in self._misplaced_drafts
            or (self.resolved_policy.namespace, name) in self._shared_context.collision_reasons
            or name in self.path_ownership.occupants
            or name in self.status.removed
        )

    def _observe_where_published(
        self, spec: VariantSpec, repository_state: RepositoryState, status_line: VariantLine | None
    ) -> ObservedVariant:
        """Observe the variant at its path, or at an earlier one with an unrecorded publication."""
        wanted_place = self._wanted_places[spec.name]
        if repository_state.failure is not None:
            return self._observe_at(spec, repository_state, status_line)
        if status_line is None or self._was_removed(spec.name, status_line):
            return self._observe_at(spec, repository_state, None)
        published = status_line.published
        if (
            status_line.repository not in self.path_ownership.repository_by_place
            and published is not None
            and published.merge
            and status_line.path == spec.path
        ):
            # A repository under a new URL still has the recorded publication at its tag. Treating
            # this as a move would wait for the old address forever.
            commit = repository_state.refs.get(f"refs/tags/{published.tag}")
            if not published.tag:
                commit = repository_state.find_publication_commit(spec.path)
            if commit == published.merge:
                former, key = status_line.repository, repository_state.identity
                if (grant := status_line.grant) is not None and grant.repository == former:
                    grant = replace(grant, repository=key)
                left_lines = tuple(
                    replace(it, repository=key) if it.repository == former else it
                    for it in status_line.left
                )
                status_line = replace(status_line, repository=key, grant=grant, left=left_lines)
        # The granted path first: a grant is newer than the recorded publication, so a push that was
        # not recorded most likely went there.
        for place in (status_line.granted_place, status_line.place):
            located = self.path_ownership.repository_by_place.get(place[0]) if place else None
            if place is None or place == wanted_place or located is None or located.state.failure:
                continue
            previous_spec = replace(spec, path=place[1], repository=located.repository)
            variant = self._observe_at(previous_spec, located.state, status_line)
            if variant.is_unrecorded:
                previous_location = f"{located.repository}:{place[1]}"
                sentence = (
                    f"{spec.name} moves from {previous_location} to {spec.repository}:{spec.path}"
                    f" after the publication at {previous_location} is recorded"
                )
                return replace(
                    variant,
                    obstacle=None,
                    wait_hold=Hold(Reason.PATH_CHANGED, sentence, who=NEXT_RUN),
                    misplaced_drafts=(),
                    abandoned=(),
                )
        if status_line.published is None and status_line.place != wanted_place:
            grant = status_line.grant if status_line.granted_place == wanted_place else None
            status_line = VariantLine(
                repository=wanted_place[0], path=wanted_place[1], grant=grant, left=status_line.left
            )
        return self._observe_at(spec, repository_state, status_line)

    def _was_removed(self, name: str, status_line: VariantLine) -> bool:
        """Return True if the variant was removed and the pass ended before recording it.

        Such a variant starts without a status line.
        """
        removed_at = self.status.removed.get(name)
        located = self.path_ownership.repository_by_place.get(status_line.repository)
        if removed_at is None or located is None or located.state.failure is not None:
            return False
        published, grant = status_line.published, status_line.grant
        # A release of the same instant or later is one of the variant that came back.
        has_returned = grant is not None and grant.at >= removed_at
        return (
            not has_returned
            and (published is None or published.at <= removed_at)
            and located.state.path_states.get(status_line.path, EMPTY_PATH).tree is None
        )

    def _observe_at(
        self, spec: VariantSpec, repository_state: RepositoryState, status_line: VariantLine | None
    ) -> ObservedVariant:
        """Observe the variant at the path of the spec, with what its other locations still have.

        `status_line`: what is recorded of it, which may be about another path.
        """
        wanted_place = repository_state.identity, spec.path
        published = status_line.published if status_line is not None else None
        leftovers = () if status_line is None else tuple(self._find_leftovers(spec, status_line))
        move, path_hold = _NO_MOVE, None
        if status_line is not None and published is not None and status_line.place != wanted_place:
            # Without a look at the package's publisher: a move adopts no existing package.
            move = self._plan_move(spec, repository_state, status_line, leftovers)
        else:
            path_hold = find_publisher_hold(
                self.git,
                self.install,
                self.resolved_policy,
                spec,
                repository_state,
                published,
                self.path_ownership.index.all_policies,
            )
        earlier_renderings = find_interrupted_publication(
            spec, repository_state, status_line, self.install, self._histories.open_reader
        )
        is_plain = (
            move is _NO_MOVE and not leftovers and path_hold is None and earlier_renderings is None
        )
        if is_plain and self._is_memoizable(spec.name):
            return self._observe_in(self._shared_context, spec, repository_state, status_line)
        draft_place = repository_state.identity, self._locate_draft(spec, repository_state).key
        # An orphaned variant's draft is replaced, or waited for if people edited it.
        other_draft, waiting_hold = self._departing_drafts.get(draft_place), None
        if other_draft is not None and other_draft.trailers.variant == spec.name:
            other_draft = None
        if other_draft is not None and other_draft.has_edits:
            waiting_hold = draft_branch_hold(other_draft)
        # The recorded tag of the partner of an exchange that is at the place now.
        partner_lines = (self.status.variants[it] for it in move.partners)
        occupant_tag = next(
            (it.published.tag for it in partner_lines if it.place == wanted_place and it.published),
            "",
        )
        hold, occupant = move.hold, self.path_ownership.occupants.get(spec.name)
        if (
            occupant is not None
            and not move.partners
            and wanted_place == self._wanted_places[spec.name]
        ):
            is_own = occupant.owner == (spec.namespace, spec.name)
            if is_own or occupant.is_undeclared:
                hold = hold or occupied_path_hold(spec, occupant)
            else:
                waiting_hold = occupied_path_hold(spec, occupant)
        winners = winners_of_variant(self.resolutions, spec.stage, spec.name)
        context = replace(
            self._shared_context,
            choices=replace(self._shared_context.choices, by_key=winners),
            previous=move.previous,
            misplaced_drafts=tuple(
                it
                for it in self._misplaced_drafts.get(spec.name, ())
                if (it.repository_state.identity, it.draft.key) != draft_place
            ),
            abandoned=leftovers,
            exchange_partners=move.partners,
            replaces_draft=other_draft is not None and not other_draft.has_edits,
            occupant_tag=occupant_tag,
            unpublished_tree=move.unpublished_tree,
            move_hold=hold,
            wait_hold=waiting_hold,
            taken_hold=path_hold,
            unfinished_push=earlier_renderings,
        )
        return self._observe_in(context, spec, repository_state, status_line)

    def _observe_in(
        self,
        context: ObservationContext,
        spec: VariantSpec,
        repository_state: RepositoryState,
        status_line: VariantLine | None,
    ) -> ObservedVariant:
        """Observe the variant; a merge that left out what was released publishes no release."""
        location = self._locate_draft(spec, repository_state)
        variant = observe_variant(spec, repository_state, status_line, context, location)
        head = context.merged_heads.get((repository_state.identity, variant.draft_ref), "")
        if not has_other_content(variant, head, self._histories):
            return variant
        context = replace(context, merges_other_content=True)
        return observe_variant(spec, repository_state, status_line, context, location)

    def _find_leftovers(
        self, spec: VariantSpec, status_line: VariantLine
    ) -> Iterator[AbandonedLocation]:
        for line in status_line.left:
            located = self.path_ownership.repository_by_place.get(line.repository)
            if located is None or located.state.failure is not None:
                continue
            state = located.state
            location = ObservedPath(state, located.repository, line.path)
            is_changed = location.path_state.tree != line.tree
            yield AbandonedLocation(
                line,
                location,
                has_other_owner=self.path_ownership.other_owner(spec.name, line.place) is not None,
                has_lost_history=bool(is_changed and state.head and line.merge)
                and not self._histories.open_reader(state.remote).contains(state.head, line.merge),
            )

    def _plan_move(
        self,
        spec: VariantSpec,
        repository_state: RepositoryState,
        status_line: VariantLine,
        leftovers: Sequence[AbandonedLocation],
    ) -> _Move:
        located = self.path_ownership.repository_by_place.get(status_line.repository)
        if located is None or located.state.failure is not None:
            error = located.state.failure if located is not None else None
            detail = f": {error}" if error else ", for which the namespace has no Repository"
            sentence = (
                f"{spec.name} is at {status_line.path} in {status_line.repository}{detail}; declare"
                " the Repository with this URL and branch so that the package can move"
            )
            return _Move(hold=Hold(Reason.PATH_CHANGED, sentence, who=location_author(spec)))
        previous_location = ObservedPath(located.state, located.repository, status_line.path)
        other_owner = self.path_ownership.other_owner(spec.name, status_line.place)
        if other_owner is not None:
            namespace, variant = other_owner
            is_near = namespace == spec.namespace
            owner = f"variant {variant}" if is_near else "a variant in another namespace"
            sentence = (
                f"the former path {status_line.path} of {spec.name} belongs to {owner} now, but"
                f" {spec.name} is not at its new path yet; merge its draft by hand"
            )
            hold = Hold(Reason.PATH_TAKEN, sentence, who=format_maintainers(spec.repository))
            return _Move(previous_location, hold=hold)
        wanted_place = repository_state.identity, spec.path
        for leftover in leftovers:
            if leftover.left_place.place == wanted_place:
                sentence = (
                    f"{spec.repository}:{spec.path}, the former path of {spec.name}, was edited"
                    " since; copy the edits to its present path and remove the package, or choose"
                    " another path"
                )
                who = format_maintainers(spec.repository)
                hold = Hold(Reason.EDITED_DOWNSTREAM, sentence, who=who)
                if leftover.has_lost_history:
                    hold = lost_leftover_hold(leftover)
                tree = leftover.left_place.tree
                return _Move(previous_location, tree, hold=hold if leftover.is_edited else None)
        # With `deletionPolicy: Orphan` the old package stays, so two variants cannot exchange
        # paths.
        if not self.resolved_policy.orphans_packages:
            occupants = self.path_ownership.occupants
            if partners := exchange_partners(spec.name, self._wanted_places, occupants):
                present_tree = repository_state.path_states.get(spec.path, EMPTY_PATH).tree
                return _Move(previous_location, present_tree, partners)
        return _Move(previous_location)

    def _add_history(self, variant: ObservedVariant) -> ObservedVariant:
        """Add what commits tell of the variant: downstream edits, replaced drafts, its origin."""
        if variant.published is not None and not variant.is_unrecorded:
            variant = compare_with_publication(variant, self.record_baseline, self._histories)
            variant = self.edit_detector.add_edits(variant, self._histories)
            published, state = variant.published, variant.package_location.repository_state
            if variant.is_removed_by_hand and state.head and published and published.merge:
                reader = self._histories.open_reader(state.remote)
                # The publication of the removed package may not be in the branch any more.
                is_lost = not reader.contains(state.head, published.merge)
                variant = replace(variant, has_lost_history=is_lost)
        variant = recover_replaced_draft(variant, self._histories, self.now)
        if not variant.is_unrecorded:
            is_adoption = variant.is_unmanaged and variant.may_adopt and variant.obstacle is None
            return find_origin(variant, self.resolved_policy, self.git) if is_adoption else variant
        published, state, path = variant.published, variant.repository_state, variant.spec.path
        if not (number := state.publication_numbers.get(path, 0)) or published is None:
            return variant
        # Its pass ended before it recorded the tag or the statement.
        reader = self._histories.open_reader(state.remote)
        commit, tree = state.find_publication_commit(path), variant.path_state.tree
        if not reader.has(commit) or reader.paths(commit, [path])[path].tree != tree:
            return variant
        # The same push may have advanced the branch.
        tag = tag_ref(path, number)
        return replace(variant, tag=tag, published=replace(published, merge=commit))
