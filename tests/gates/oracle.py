"""Oracle of a running system: `specification` applied to observations.

Keeps its own clocks, from the passes that put something on record, and shares no rule with the
evaluator but one: which variants a rollback covers.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, floor

from gates.specification import FAILED, PASSED, PENDING, UpstreamState, gate, stage_verdict

from fanout.api.gate_vocabulary import Action, OverridableGate, RolloutStrategy, Verdict
from fanout.gates.gate_evaluation import find_rollbacks
from fanout.gates.gate_facts import PolicyFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import DecisionFacts


class Oracle:
    """The second judge of a running system."""

    def __init__(self) -> None:
        self.since: dict[tuple[str, str], datetime] = {}
        self.left: dict[tuple[str, str], datetime] = {}
        self.begun: dict[tuple[str, str], datetime] = {}  # the present stretch, or the last one
        self.best: dict[tuple[str, str], timedelta] = {}  # the longest of those that are over
        self.carry: dict[tuple[str, str], set[str]] = {}  # who had it when the stretch began

    # ---- variants --------------------------------------------------------------------------------

    def stand(self, facts: PolicyFacts, rule: StageRule, it: VariantFacts) -> Verdict | None:
        """Return the verdict of a variant's publication; None without one."""
        if it.published is None:
            return None
        return self._judge(facts, rule, it)[0]

    def _judge(
        self, facts: PolicyFacts, rule: StageRule, it: VariantFacts
    ) -> tuple[Verdict, datetime]:
        """Return the verdict of a publication, and since when it has it."""
        assert it.published is not None
        retried = self._last(facts, Action.RETRY, it, it.published.revision)
        begun = it.published.at if retried is None else max(it.published.at, retried.at)
        answer, since = PASSED, it.published.at
        if rule.verification:
            answer, since = self._verified(facts, rule, it, retried)
        if answer is FAILED:
            return FAILED, max(since, begun)
        if answer is PENDING:
            deadline = rule.rollout.progress_deadline
            is_late = bool(deadline) and facts.now >= begun + deadline
            return (FAILED, begun + deadline) if is_late else (PENDING, begun)
        ready = max(since + rule.rollout.ready_time, begun)
        return (PASSED, ready) if facts.now >= since + rule.rollout.ready_time else (PENDING, since)

    def _verified(
        self, facts: PolicyFacts, rule: StageRule, it: VariantFacts, retried: DecisionFacts | None
    ) -> tuple[Verdict, datetime]:
        """Return what all reporters together say, and since when, computed after each report."""
        assert it.published is not None
        mine = [
            report
            for report in facts.records.evidence
            if report.spec.stage == rule.name
            and report.spec.revision == it.published.revision
            and (not report.spec.variants or it.name in report.spec.variants)
            and report.at >= it.published.at
        ]
        answer, since = PENDING, it.published.at
        retry = retried.at if retried is not None else None
        steps = [(report.at, mine[: number + 1]) for number, report in enumerate(mine)]
        if retry is not None:
            steps.append((retry, [report for report in mine if report.at <= retry]))
        for moment, reports in sorted(steps, key=lambda step: step[0]):
            says = {report.by: report for report in reports}
            forgets = retry is not None and retry <= moment
            counted = {
                report.spec.status
                for report in says.values()
                if not (forgets and report.spec.status is FAILED and report.at <= retry)
            }
            verdict = PASSED if counted == {PASSED} else PENDING
            verdict = FAILED if FAILED in counted else verdict
            if verdict is not answer:
                answer, since = verdict, moment
        return answer, since

    def skipped(self, facts: PolicyFacts, it: VariantFacts, revision: str) -> bool:
        """Return whether it is skipped in the rollout of the revision."""
        skip = self._last(facts, Action.SKIP, it, revision)
        retry = self._last(facts, Action.RETRY, it, revision)
        decisions = facts.records.decisions
        return skip is not None and (
            retry is None or decisions.index(retry) < decisions.index(skip)
        )

    def counts(self, facts: PolicyFacts, it: VariantFacts, revision: str) -> bool:
        """Return whether it counts for the revision: present, or released before it went away."""
        away = it.offline or it.suspended or self._suspended(facts, it)
        has = {item.revision for item in (it.grant, it.published) if item is not None}
        return (not away or revision in has) and not self.skipped(facts, it, revision)

    def under_way(self, it: VariantFacts) -> bool:
        """Return whether it was released to a revision that it has not published yet."""
        grant, has = it.grant, it.published
        if grant is None:
            return False
        return has is None or (grant.revision, grant.digest) != (has.revision, has.digest)

    def in_flight(self, facts: PolicyFacts, rule: StageRule, it: VariantFacts) -> bool:
        """Released, and neither ready nor failed, at whatever revision."""
        return self.under_way(it) or self.stand(facts, rule, it) is PENDING

    # ---- stages ----------------------------------------------------------------------------------

    def verdict(self, facts: PolicyFacts, rule: StageRule, revision: str) -> Verdict:
        """Of one revision. Once it is on record as passed only failures take it back.

        Those of who had it then: as long as the stage has not moved on it is known who that was.
        """
        key = (rule.name, revision)
        counting, ready, failed = self._stands(facts, rule, revision)
        if key in self.since:
            mine = [it for it in facts.variants if it.stage == rule.name]
            if key not in self.left and not self._moved(facts, key, mine):
                failed &= self.carry[key]
            return FAILED if len(failed & counting) > borne(rule, len(counting)) else PASSED
        return stage_verdict(counting, ready, failed, borne(rule, len(counting)))

    def _stands(
        self, facts: PolicyFacts, rule: StageRule, revision: str
    ) -> tuple[set[str], set[str], set[str]]:
        """Return the variants that count for the revision, are ready with it, and failed it."""
        mine = [it for it in facts.variants if it.stage == rule.name]
        counting = {it.name for it in mine if self.counts(facts, it, revision)}
        at_it = [it for it in mine if it.published and it.published.revision == revision]
        by = {it.name: self.stand(facts, rule, it) for it in at_it}
        ready = {name for name, stand in by.items() if stand is PASSED}
        over = {it.name for it in at_it if mended(it)}  # a failure of other inputs
        failed = {name for name, stand in by.items() if stand is FAILED} - over
        return counting, ready, failed | set(self._rolled_back(facts, rule, revision))

    def _rolled_back(
        self, facts: PolicyFacts, rule: StageRule, revision: str
    ) -> dict[str, DecisionFacts]:
        """Return those that went back without their stage, which count as failed, by name."""
        pins = find_rollbacks(facts)
        return {
            it.name: pins[it.name].decision
            for it in facts.variants
            if it.stage == rule.name
            and it.name in pins
            and pins[it.name].is_by_variant
            and pins[it.name].revision != revision
            and revision not in {has.revision for has in (it.grant, it.published) if has}
        }

    def record(self, facts: PolicyFacts, candidates: Mapping[str, str]) -> None:
        """A pass has put on record what it saw; `candidates` are by stage.

        A stage may pass its candidate before anybody has it: by failures that it tolerates.
        """
        for rule in facts.stages:
            mine = [it for it in facts.variants if it.stage == rule.name]
            seen = {it.published.revision for it in mine if it.published}
            recorded = {it for name, it in self.since if name == rule.name}
            for revision in seen | recorded | {candidates[rule.name]}:
                key, verdict = (rule.name, revision), self.verdict(facts, rule, revision)
                had = {it.name for it in mine if it.published and it.published.revision == revision}
                self.carry[key] = self.carry.get(key, set()) & had
                if verdict is FAILED:
                    for kept in (self.since, self.left, self.begun, self.best):
                        kept.pop(key, None)
                elif verdict is PASSED and key not in self.since:
                    self.since[key] = self.begun[key] = self._first_stretch(facts, rule, revision)
                    self.carry[key] = had
                elif key in self.since:
                    self._go_on(facts, rule, key, had)

    def _go_on(self, facts: PolicyFacts, rule: StageRule, key: tuple[str, str], had: set[str]):
        """The present stretch ends, or another one begins."""
        mine = [it for it in facts.variants if it.stage == rule.name]
        if key not in self.left:
            moved_at = self._moved(facts, key, mine)
            if moved_at is None:
                return
            self.left[key] = moved_at
            self.best[key] = max(self.best.get(key, timedelta(0)), moved_at - self.begun[key])
        counting, ready, failed = self._stands(facts, rule, key[1])
        is_ready = stage_verdict(counting, ready, failed, borne(rule, len(counting))) is PASSED
        before = self.begun[key]
        # A stretch that had ended as it begins would be none: it begins with the pass, or not yet.
        for begun in (max(self._rests_on(facts, rule, key[1]), self.left[key]), facts.now):
            self.begun[key] = begun
            if is_ready and self._moved(facts, key, mine) is None:
                self.carry[key] = had
                del self.left[key]
                return
        self.begun[key] = before

    def _first_stretch(self, facts: PolicyFacts, rule: StageRule, revision: str) -> datetime:
        """Return when a stage that is ready with the revision for the first time became so."""
        at = self._rests_on(facts, rule, revision)
        mine = [it for it in facts.variants if it.stage == rule.name]
        others = [it for it in mine if it.published and it.published.revision != revision]
        return facts.now if any(it.published.at >= at for it in others) else at

    def _rests_on(self, facts: PolicyFacts, rule: StageRule, revision: str) -> datetime:
        """Return the latest event without which the stage would not be ready (decision 0107)."""
        mine = [it for it in facts.variants if it.stage == rule.name]
        events = [self._stands_since(facts, rule, it, revision) or facts.now for it in mine]
        return min(max(events, default=facts.now), facts.now)

    def _stands_since(
        self, facts: PolicyFacts, rule: StageRule, it: VariantFacts, revision: str
    ) -> datetime | None:
        """Return since when a variant counts as it does; None: nothing tells."""
        if self.skipped(facts, it, revision):
            return self._last(facts, Action.SKIP, it, revision).at
        if not self.counts(facts, it, revision):
            stop = self._suspension(facts, it)
            return stop.at if stop is not None else None
        if it.published is None or it.published.revision != revision:
            back = self._rolled_back(facts, rule, revision).get(it.name)
            return back.at if back is not None else None
        return self._judge(facts, rule, it)[1]

    def _moved(
        self, facts: PolicyFacts, key: tuple[str, str], mine: Collection[VariantFacts]
    ) -> datetime | None:
        """Return when the present stretch ended: a variant took another revision in it, or still
        has one that it took since the verdict, and counts again."""
        others = [it for it in mine if it.published and it.published.revision != key[1]]
        moves = [
            it.published.at if it.published.at >= self.begun[key] else facts.now
            for it in others
            if it.published.at >= self.begun[key]
            or (it.published.at >= self.since[key] and self.counts(facts, it, key[1]))
        ]
        return min(moves, default=None)

    def gate(
        self,
        facts: PolicyFacts,
        rule: StageRule,
        revision: str,
        lifted: Collection[OverridableGate],
    ) -> Verdict:
        """`after` of the stage, soak included."""
        if rule.after is None:
            return PASSED
        rules = {it.name: it for it in facts.stages}
        upstream = [
            self._upstream_state(facts, rules[name], revision) for name in rule.after.stages
        ]
        require = rule.after.require if rule.after.at_least is None else rule.after.at_least
        return gate(require, upstream, rule.after.soak_time / timedelta(minutes=1), lifted)

    def _upstream_state(self, facts: PolicyFacts, rule: StageRule, revision: str) -> UpstreamState:
        key, verdict = (rule.name, revision), self.verdict(facts, rule, revision)
        if verdict is PASSED and key not in self.since:
            begun = self._first_stretch(facts, rule, revision)
            return UpstreamState(verdict, (facts.now - begun) / timedelta(minutes=1))
        if key not in self.since or verdict is FAILED:
            return UpstreamState(verdict)
        best = self.best.get(key, timedelta(0))
        if key not in self.left:
            mine = [it for it in facts.variants if it.stage == rule.name]
            moved_at = self._moved(facts, key, mine)
            best = max(best, (facts.now if moved_at is None else moved_at) - self.begun[key])
        return UpstreamState(verdict, best / timedelta(minutes=1))

    def halted(self, facts: PolicyFacts, rule: StageRule, revision: str) -> bool:
        """Return whether more of its variants failed the candidate than the stage tolerates."""
        mine = [it for it in facts.variants if it.stage == rule.name]
        counting = [it for it in mine if self.counts(facts, it, revision)]
        failed = [
            it
            for it in counting
            if it.published
            and it.published.revision == revision
            and self.stand(facts, rule, it) is FAILED
            and not self.under_way(it)
            and not mended(it)
        ]
        return len(failed) > borne(rule, len(counting))

    def budget(self, facts: PolicyFacts, rule: StageRule, revision: str) -> int | None:
        """Return the in-flight limit; None: no limit."""
        mine = [it for it in facts.variants if it.stage == rule.name]
        counting = [it for it in mine if self.counts(facts, it, revision)]
        ready = [
            it
            for it in counting
            if it.published
            and it.published.revision == revision
            and self.stand(facts, rule, it) is PASSED
            and (it.draft is None or not it.draft.current or it.draft.revision != revision)
        ]
        limits = {
            RolloutStrategy.LINEAR: rule.rollout.step,
            RolloutStrategy.EXPONENTIAL: max(1, floor((rule.rollout.factor - 1) * len(ready))),
            RolloutStrategy.ALL_AT_ONCE: None,
        }
        most = rule.rollout.max_in_flight
        if isinstance(most, Fraction):
            most = ceil(most * len(counting))
        bounds = [it for it in (limits[rule.rollout.strategy], most) if it is not None]
        return min(bounds, default=None)

    # ---- decisions -------------------------------------------------------------------------------

    def lifted(self, facts: PolicyFacts, it: VariantFacts, revision: str) -> set[OverridableGate]:
        """Return the overrides by people for the variant's next step to the revision."""
        return {
            override
            for decision in self.ordered(facts, it, revision)
            for override in decision.spec.overrides
        }

    def ordered(self, facts: PolicyFacts, it: VariantFacts, revision: str) -> list[DecisionFacts]:
        """Return the actors who decided to publish it since its last step."""
        return [
            decision
            for decision in facts.records.decisions
            if decision.spec.action is Action.PUBLISH
            and decision.revision == revision
            and _is_about(decision, it)
            and (
                it.published is None
                or it.published.at <= decision.at
                or decision.name in it.published.waiting
            )
        ]

    def _last(
        self, facts: PolicyFacts, action: Action, it: VariantFacts, revision: str
    ) -> DecisionFacts | None:
        decisions = [
            decision
            for decision in facts.records.decisions
            if decision.spec.action is action
            and decision.revision == revision
            and _is_about(decision, it)
        ]
        return decisions[-1] if decisions else None

    def _suspended(self, facts: PolicyFacts, it: VariantFacts) -> bool:
        """Return whether the newest decision about it, its stage or the policy suspends it."""
        return self._suspension(facts, it) is not None

    def _suspension(self, facts: PolicyFacts, it: VariantFacts) -> DecisionFacts | None:
        """Return the decision that suspends it, or its stage, and that nothing newer ends."""
        last: dict[str, DecisionFacts] = {}
        for decision in facts.records.decisions:
            if decision.spec.action in (Action.SUSPEND, Action.RESUME):
                for about in decision.spec.variants or [f"stage {decision.spec.stage}"]:
                    last[about] = decision
        decisions = [last[about] for about in (f"stage {it.stage}", it.name) if about in last]
        return next((each for each in decisions if each.spec.action is Action.SUSPEND), None)


def mended(it: VariantFacts) -> bool:
    """Return whether its inputs differ from those that it may have failed with."""
    draft, has = it.draft, it.published
    if draft is None or has is None or not draft.current:
        return False
    return draft.revision == has.revision and draft.digest != has.digest


def borne(rule: StageRule, counting: int) -> int:
    """Return the failures that the stage tolerates; a share is rounded down."""
    most = rule.rollout.tolerance
    return floor(most * counting) if isinstance(most, Fraction) else most


def _is_about(decision: DecisionFacts, it: VariantFacts) -> bool:
    if decision.spec.variants:
        return it.name in decision.spec.variants
    return decision.spec.stage in ("", it.stage)
