"""Rollback: the revision that a command goes back to, and the earlier publications of a pass.

The earlier publication of a pinned variant is written as a new draft. Nothing is rendered for it:
inputs and upstream packages are ignored until the pin is removed (docs/guides/rollback.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.errors import FanoutError, InvalidInput
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.candidate_choice import RevisionAges
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_wording import label_stage
from fanout.gates.rollback_pins import Pin
from fanout.package.package_limits import add_package
from fanout.plan.edits.edit_merge import MergedRendering, PackageFiles
from fanout.plan.history.earlier_publication import (
    EarlierPublication,
    edited_draft_hold,
    missing_base_hold,
    moved_away_hold,
    never_published_hold,
)
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.plan_wording import format_decision_command
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.observation.repository_access import open_one_at_a_time
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import Value, replace
from fanout.variants.render_model import RenderedPackage, RenderInputs

_MAX_PUBLICATIONS = 20_000  # of variants, which may have no pin any more
_MemoKey = tuple[str, ...]


@dataclass(slots=True)
class RollbackSelector:
    """Selects earlier publications; results are kept until the variant is published again."""

    git: GitStore
    _memo: dict[tuple[str, str, str], tuple[_MemoKey, EarlierPublication | None]] = field(
        default_factory=dict
    )

    def choose_publications(
        self, variants: Iterable[ObservedVariant], pins: Mapping[str, Pin]
    ) -> dict[str, SelectedVariant]:
        """Return the pinned variants by name, at the revision of their pin."""
        with open_one_at_a_time(self.git) as open_reader:
            histories = HistoryReader(open_reader)
            return {
                it.spec.name: self._pin_variant(it, pins[it.spec.name], histories)
                for it in _sort_by_repository(it for it in variants if it.spec.name in pins)
            }

    def load_content(self, variant: SelectedVariant) -> RenderedVariant:
        """Return the variant with its earlier content. Raises what Git raises."""
        publication = variant.earlier_publication
        assert publication is not None, "only an earlier publication has earlier content"
        with self.git.reader(variant.observed.repository_state.remote) as reader:
            try:
                pristine, _ = _read_tree(reader, publication.pristine_tree)
                content, files = _read_tree(reader, publication.tree)
            except InvalidInput as error:
                place = f"{variant.spec.repository}:{variant.spec.path}"
                raise add_package(error, place) from error
        merged = None if content == pristine else MergedRendering(content, files)
        return RenderedVariant(variant, pristine, merged)

    def _pin_variant(
        self, variant: ObservedVariant, pin: Pin, histories: HistoryReader
    ) -> SelectedVariant:
        published, state, publication = variant.published, variant.repository_state, None
        if published is not None and published.revision == pin.revision:
            publication = EarlierPublication(
                pin.revision,
                published.commit,
                published.digest,
                published.tree,
                published.pristine or variant.pristine_tree or "",
            )
        elif state.failure is None:
            path, tree = variant.spec.path, variant.package_state.tree or ""
            memo_key = state.identity, path, variant.spec.name
            key = pin.revision, state.find_publication_commit(path), tree
            previous_key, publication = self._memo.get(memo_key, ((), None))
            # The key changes with every publication, so a kept result never outlives one.
            if previous_key != key or (publication is not None and not publication.pristine_tree):
                try:
                    publication = histories.open(variant).find_last(pin.revision)
                except FanoutError as error:
                    return SelectedVariant(
                        variant, revision=pin.revision, is_rollback=True, preparation_failure=error
                    )
                if len(self._memo) >= _MAX_PUBLICATIONS:
                    self._memo.clear()
                self._memo[memo_key] = key, publication
        selected = SelectedVariant(
            variant,
            revision=pin.revision,
            inputs=RenderInputs(publication.digest) if publication is not None else None,
            is_rollback=True,
            earlier_publication=publication,
        )
        if selected.is_in_force or selected.has_current_draft:
            return selected
        spec, location, hold = variant.spec, variant.package_location, None
        merged_tree = variant.path_state.tree if variant.is_unrecorded else None
        drafts = (draft for _, _, draft in variant.open_drafts)
        edited_draft = next((it for it in drafts if it.has_edits and it.tree != merged_tree), None)
        if variant.is_moving:
            hold = moved_away_hold(spec, f"{location.path} in {location.repository}", pin)
        elif publication is None:
            hold = never_published_hold(spec, pin)
        elif edited_draft is not None:
            hold = edited_draft_hold(spec, edited_draft, pin)
        elif not publication.pristine_tree:
            hold = missing_base_hold(spec, pin)
        return replace(selected, revision_hold=hold)


def _sort_by_repository(variants: Iterable[ObservedVariant]) -> list[ObservedVariant]:
    return sorted(variants, key=lambda it: it.repository_state.remote.key)


def _read_tree(reader: ObjectReader, tree: str) -> tuple[RenderedPackage, PackageFiles]:
    tree_files = reader.files(tree)
    entries = {path: entry for path, (entry, _) in tree_files.items()}
    blobs = {entry.oid: data for entry, data in tree_files.values()}
    files = {path: (entry.mode, data) for path, (entry, data) in tree_files.items()}
    return RenderedPackage(tree, entries, blobs), files


class RollbackSubject(Value):
    """Stage of a policy that is rolled back, or a variant written by hand, as a pass saw it."""

    policy: ResolvedPolicy
    stage: str  # "": a variant written by hand
    facts: PolicyFacts | None  # None: the policy was not evaluated
    revisions: tuple[str, ...]  # that the policy allows, in their order

    @property
    def title(self) -> str:
        """Return stage and policy, for people."""
        title = self.policy.title
        return f"{label_stage(self.stage)} of {title}" if self.stage else title


def find_rollback_revision(
    git: GitStore, subject: RollbackSubject, variants: Sequence[RenderedVariant], requested: str
) -> str:
    """Return the revision that a rollback goes back to.

    `requested` if it is given; else the one of an active rollback; else the newest that was
    published there before the newest present one. Raises InvalidInput if it was never published
    there.
    """
    if not variants:
        raise InvalidInput(
            f"{subject.title} has no variants",
            reason="NothingToDo",
            remedy="run `fanout get variants`",
        )
    active = _active_rollbacks(subject, [variant.spec.name for variant in variants])
    # Running the verb again continues an active rollback instead of going back one revision
    # further.
    if not requested and active:
        return active[0].revision
    # All publications of each variant that can be read, newest first.
    with open_one_at_a_time(git) as open_reader:
        histories = HistoryReader(open_reader)
        published = [
            histories.open(it).list_revisions()
            for it in _sort_by_repository(variant.observed for variant in variants)
            if it.repository_state.failure is None
        ]
    ever_published = {revision for revisions in published for revision in revisions}
    ages = RevisionAges(subject.revisions)
    if requested in ever_published:
        return requested
    if requested:
        choices = sorted(ever_published)
        remedy = f"choose one of: {', '.join(choices)}" if choices else "no revision was published"
        raise InvalidInput(
            f"{requested} was never published in {subject.title}",
            reason="NeverPublished",
            remedy=remedy,
        )
    published_now = {it.observed.published.revision for it in variants if it.observed.published}
    present = _find_newest(published_now, ages)
    earlier: set[str] = set()
    for revisions in published:
        for revision in revisions:
            # Where the ages do not compare, the last other one.
            is_other = revision != present and not ages.are_comparable(revision, present)
            if is_other or ages.is_older(revision, present):
                earlier.add(revision)
                break
    if not earlier:
        # A PackageVariant of its own has no stage that a command can name.
        stage = subject.stage if subject.policy.upstream_policy is not None else ""
        command = format_decision_command("suspend", subject.policy.name, stage)
        raise InvalidInput(
            f"nothing was published in {subject.title} before {present or 'now'}",
            reason="NeverPublished",
            remedy=f"to stop later publications, run `{command}`",
        )
    return _find_newest(earlier, ages)


def find_active_rollback(
    subject: RollbackSubject, variants: Sequence[str], revision: str, overrides: Sequence[str]
) -> str:
    """Return the name of the active decision that rolls all of it back to the revision.

    Empty if none. The author does not matter: a second decision would change nothing.
    """
    scopes = variants or [""]
    equal_pins = [
        pin.decision
        for pin in _active_rollbacks(subject, scopes)
        if pin.decision is not None
        and pin.revision == revision
        and set(overrides).issubset(pin.decision.spec.overrides)
    ]
    return equal_pins[0].name if len(equal_pins) == len(scopes) else ""


def _active_rollbacks(subject: RollbackSubject, variants: Iterable[str]) -> list[Pin]:
    """Return the active rollbacks of the stage (variant "") or of variants in it."""
    if (facts := subject.facts) is None:
        return []
    rollbacks = ActiveDecisions(facts.records.decisions, facts.now, facts.variants).rollbacks
    pins = (rollbacks.find_pin(subject.stage, variant) for variant in variants)
    return [pin for pin in pins if pin is not None]


def _find_newest(revisions: Iterable[str], ages: RevisionAges) -> str:
    newest = ""
    for revision in sorted(revisions):
        if not newest or ages.is_older(newest, revision):
            newest = revision
    return newest
