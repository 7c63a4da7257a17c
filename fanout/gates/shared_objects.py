"""Cluster objects shared by variants of several stages, updated stage by stage.

A version is taken downstream only when the variants in the upstream stages that read
the object as well are ready with it. (Design §6, "What counts".)
"""

from collections.abc import Iterable, Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.evaluation_results import VariantState
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.stage_tally import StageTally, TalliedVariant

_Readers = Mapping[str, list[TalliedVariant]]  # by key of the object


class SharedObjects:
    """Readers of each cluster object, by stage."""

    def __init__(self, stage_rules: Iterable[StageRule], tallies: Mapping[str, StageTally]) -> None:
        self._tallies = tallies
        self._readers_by_stage: dict[str, _Readers] = {}  # made on demand
        self._upstream_stages: dict[str, tuple[str, ...]] = {}
        for stage_rule in stage_rules:  # upstream stages first
            direct = stage_rule.after.stages if stage_rule.after else ()
            indirect = (name for stage in direct for name in self._upstream_stages[stage])
            self._upstream_stages[stage_rule.name] = tuple(dict.fromkeys([*direct, *indirect]))

    def find_hold(self, stage: str, variant_facts: VariantFacts, draft: DraftFacts) -> Hold | None:
        """Return the hold for a changed object that upstream stages lack, or None."""
        upstream_stages = self._upstream_stages[stage]
        if not draft.reads or not upstream_stages:
            return None
        published_reads = (
            variant_facts.published.reads if variant_facts.published is not None else {}
        )
        for key, version in sorted(draft.reads.items()):
            # Unchanged content is published already, so it waits for no stage.
            if published_reads.get(key) == version:
                continue
            for upstream in upstream_stages:
                for variant in self._readers(upstream).get(key, ()):
                    if not _is_ready_with(variant, key, version):
                        return _build_hold(key, upstream, variant)
        return None

    def _readers(self, stage: str) -> _Readers:
        if stage not in self._readers_by_stage:
            self._readers_by_stage[stage] = _find_readers(self._tallies[stage])
        return self._readers_by_stage[stage]


def _find_readers(tally: StageTally) -> _Readers:
    readers: dict[str, list[TalliedVariant]] = {}
    for variant in tally.variants:
        if variant.away:
            continue
        publication, draft = variant.facts.published, variant.facts.draft
        keys = {**(publication.reads if publication else {}), **(draft.reads if draft else {})}
        for key in keys:
            readers.setdefault(key, []).append(variant)
    return readers


def _is_ready_with(variant: TalliedVariant, key: str, version: str) -> bool:
    publication = variant.facts.published
    return (
        publication is not None
        and publication.reads.get(key) == version
        and variant.state is VariantState.READY
    )


def _build_hold(key: str, stage: str, variant: TalliedVariant) -> Hold:
    sentence = gate_wording.describe_shared_object(key, variant.facts.name, stage)
    return Hold(Reason.SOURCE_AWAITS, sentence, gate_wording.format_stage_actor([stage]))
