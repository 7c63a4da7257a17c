"""Selection of the earlier publication for pinned variants, written as a new draft.

Nothing is rendered for them: inputs and upstream packages are ignored until the pin is
removed (docs/guides/rollback.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.errors import FanoutError, InvalidInput
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
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.mirror_access import open_one_at_a_time
from fanout.reconcile.rollback.publication_history import HistoryReader
from fanout.values import replace
from fanout.variants.render_model import RenderedPackage, RenderInputs

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


def list_published_revisions(
    git: GitStore, variants: Iterable[ObservedVariant]
) -> Sequence[Sequence[str]]:
    """Return the revisions of all publications of each variant that can be read, newest first."""
    with open_one_at_a_time(git) as open_reader:
        histories = HistoryReader(open_reader)
        return [
            histories.open(it).list_revisions()
            for it in _sort_by_repository(variants)
            if it.repository_state.failure is None
        ]


def _sort_by_repository(variants: Iterable[ObservedVariant]) -> list[ObservedVariant]:
    return sorted(variants, key=lambda it: it.repository_state.remote.key)


def _read_tree(reader: ObjectReader, tree: str) -> tuple[RenderedPackage, PackageFiles]:
    tree_files = reader.files(tree)
    entries = {path: entry for path, (entry, _) in tree_files.items()}
    blobs = {entry.oid: data for entry, data in tree_files.values()}
    files = {path: (entry.mode, data) for path, (entry, data) in tree_files.items()}
    return RenderedPackage(tree, entries, blobs), files
