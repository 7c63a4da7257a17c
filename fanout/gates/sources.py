"""Cluster objects that variants of several stages read: a new version goes through them in order.

It is taken downstream only when the variants in the stages before that read the object as well are
ready with that version of it. (Design §6, "What counts".)
"""

from collections.abc import Iterable, Mapping

from fanout.api.reasons import Reason
from fanout.gates.answer import State
from fanout.gates.census import Census, Member
from fanout.gates.facts import Draft, Hold, VariantFacts
from fanout.gates.rules import StageRule
from fanout.gates.wording import stage_named

_Readers = Mapping[str, list[Member]]  # by key of the object


class Sources:
    """Who reads which object, stage by stage."""

    def __init__(self, stages: Iterable[StageRule], censuses: Mapping[str, Census]) -> None:
        self._readers = {name: _readers(census) for name, census in censuses.items()}
        self._before: dict[str, tuple[str, ...]] = {}
        if not any(self._readers.values()):
            return
        for rule in stages:  # each after those it waits for
            direct = rule.after.stages if rule.after else ()
            further = (name for stage in direct for name in self._before[stage])
            self._before[rule.name] = tuple(dict.fromkeys([*direct, *further]))

    def awaited(self, stage: str, facts: VariantFacts, draft: Draft) -> Hold | None:
        """The first object that a stage before is not ready with in the draft's version of it."""
        if not draft.reads or not self._before:
            return None
        known = facts.published.reads if facts.published is not None else {}
        for key, version in sorted(draft.reads.items()):
            if known.get(key) == version:
                continue
            for before in self._before[stage]:
                for member in self._readers[before].get(key, ()):
                    if not _ready_with(member, key, version):
                        return _hold(key, before, member)
        return None


def _readers(census: Census) -> _Readers:
    found: dict[str, list[Member]] = {}
    for member in census.members:
        if member.away:
            continue
        published, draft = member.facts.published, member.facts.draft
        keys = {**(published.reads if published else {}), **(draft.reads if draft else {})}
        for key in keys:
            found.setdefault(key, []).append(member)
    return found


def _ready_with(member: Member, key: str, version: str) -> bool:
    published = member.facts.published
    return (
        published is not None
        and published.reads.get(key) == version
        and member.state is State.READY
    )


def _hold(key: str, stage: str, member: Member) -> Hold:
    sentence = (
        f"{key} has changed and goes through the stages in order: {member.facts.name} in"
        f" {stage_named(stage)} is not ready with this version of it"
    )
    return Hold(Reason.SOURCE_AWAITS, sentence, f"whoever waits in {stage_named(stage)}")
