"""Cluster objects shared by variants of several stages, updated stage by stage.

A version is taken downstream only when the variants in the upstream stages that read
the object as well are ready with it (docs/concepts/rollouts.md).
"""

from collections.abc import Iterable, Mapping

from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import label_stage
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
                if upstream not in self._readers_by_stage:
                    self._readers_by_stage[upstream] = _find_readers(self._tallies[upstream])
                for variant in self._readers_by_stage[upstream].get(key, ()):
                    publication = variant.facts.published
                    if (
                        publication is None
                        or publication.reads.get(key) != version
                        or variant.state is not VariantState.READY
                    ):
                        sentence = (
                            f"{key} changed; {variant.facts.name} in {label_stage(upstream)} is not"
                            " ready with the new version"
                        )
                        actor = gate_wording.format_stage_actor([upstream])
                        return Hold(Reason.SOURCE_AWAITS, sentence, actor)
        return None


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
