"""A model of the running system: anything happens in any order, and what must hold holds.

Passes, races and crashes between any two effects; revisions, evidence, approvals, decisions,
targets and rules that come, change and go; and time. After each step the evaluator is asked what
it says of its own answers, and each publication and release is judged by `oracle`.

A plain run tries a little, always the same; `make soak` goes on for MINUTES from SEED.
"""

import os
from time import monotonic

import pytest
from gates.events import TARGETS, Events, minutes
from gates.executor import Place, Seen
from gates.worlds import FAILED, PASSED, approved, at, evidence_of
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState
from fanout.gates.gate_evaluation import find_rollbacks
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.values import replace

WAVES = 3
"""No stage has more variants than that, so no rollout takes more steps."""


class Running(Events):
    """A policy of four stages, lived through."""

    steps = 0

    # ---- what must hold --------------------------------------------------------------------------

    @invariant()
    def the_answers_after_a_step_hold(self):
        """All that is asked of the answers, which change nothing, is asked of the same ones."""
        Running.steps += 1
        facts, _ = self.system.observe()
        decision = self.system.evaluate(facts)
        self._nothing_waits_without_a_reason(facts, decision)
        # The first look clears drafts of what is in force away; from the second on all are equal.
        again, _ = self.system.observe()
        decision = self.system.evaluate(again)
        settled = replace(again, history=decision.history)
        decision = self.system.evaluate(settled)
        self._the_next_instant_is_honest(settled, decision)
        self._what_would_open_the_gate_opens_it(settled, decision)

    def _nothing_waits_without_a_reason(self, facts: PolicyFacts, decision: PolicyEvaluation):
        """Everything that is not ready says why, and the policy how it can go on."""
        for it in facts.variants:
            item = decision.variants[it.name]
            if item.state is not VariantState.READY and not item.publish and not item.release:
                assert item.holds, (it, item)
            assert all(hold.message and hold.who for hold in item.holds), item
        unready = [it for it in decision.variants.values() if it.state is not VariantState.READY]
        holds = [hold for it in unready for hold in it.holds]
        goes = any(it.publish or it.release for it in unready)
        rollbacks = find_rollbacks(facts)
        assert not unready or goes or decision.next or any(hold.who for hold in holds)
        for name, view in decision.stages.items():
            wanted = self.oracle.gate(facts, self.system.rules[name], view.candidate, ())
            overridden = any(
                it.spec.action is Action.PUBLISH and it.spec.overrides
                for it in self.system.decisions
            )
            # A stage without variants can be rolled back as well.
            pinned = any(rollbacks.get(it.name) for it in facts.variants) or any(
                it.spec.action is Action.ROLLBACK for it in self.system.decisions
            )
            assert overridden or pinned or view.gate is wanted, (name, view, wanted)

    def _the_next_instant_is_honest(self, settled: PolicyFacts, decision: PolicyEvaluation):
        """What is decided stays so until then, when nothing else happens."""
        end = decision.next or at(self.system.now + 10_000)
        assert end > settled.now
        for moment in (end - (end - settled.now) / 2, end - (at(1) - at(0)) / 60):
            then = evaluate_gates(replace(settled, now=moment.replace(microsecond=0)))
            for name, item in decision.variants.items():
                other = then.variants[name]
                assert (other.state, other.release, other.publish) == (
                    item.state, item.release, item.publish
                ), (name, item, other, moment)  # fmt: skip

    def _what_would_open_the_gate_opens_it(self, settled: PolicyFacts, decision: PolicyEvaluation):
        """Do what a variant waits for, when it is one thing alone, and see."""
        for name, item in decision.variants.items():
            reasons = {str(hold.reason) for hold in item.holds}
            if len(reasons) == 1 and not item.publish:
                self._try(settled, name, reasons.pop(), item)

    def _try(self, facts: PolicyFacts, name: str, reason: str, item) -> None:
        of, records = self._of(facts, name), facts.records
        if reason in ("SoakRunning", "WindowClosed") and item.holds[0].until:
            ends = max(hold.until for hold in item.holds)
            view = evaluate_gates(replace(facts, now=ends)).variants[name]
            assert reason not in {hold.reason for hold in view.holds} or view.holds[0].until > ends
        elif reason == "ApprovalMissing":
            trees = frozenset({of.draft.tree})
            more = [
                approved(by, revision=of.draft.revision, trees=trees, at=facts.now)
                for by in ("ann", "bob")
            ]
            said_so = replace(records, approvals=(*records.approvals, *more))
            assert evaluate_gates(replace(facts, records=said_so)).variants[name].publish, item
        elif reason == "VerificationPending" and item.state is VariantState.VERIFYING:
            more = [
                replace(
                    evidence_of(of.stage, PASSED, of.published.revision, by=by, variants=(name,)),
                    at=facts.now,
                )
                for by in ("ci", "ann")
            ]
            records_after = replace(records, evidence=(*records.evidence, *more))
            view = evaluate_gates(replace(facts, records=records_after)).variants[name]
            assert view.state is VariantState.READY or view.holds[0].reason != reason, (item, view)

    def teardown(self):
        """When events stop and everybody answers, everything comes to be published everywhere."""
        if not hasattr(self, "system"):
            return
        self._make_peace()
        system = self.system
        # For each wave one pass publishes and one sees that it is ready; each stage writes drafts
        # first, and then waits for a soak or a window.
        rounds = len(system.rules) * 2 * (WAVES + 2)
        if system.serialize:  # each revision waits until the one before it is through
            rounds *= len(system.revisions)
        for _ in range(rounds):
            self.all_evidence_passes()
            self.approve("ann", False)
            before = system.look()
            self.judge_releases(before)
            if system.carry_out(before):
                continue
            newest = system.revisions[-1]
            has = [it.published.revision for it in system.places.values() if it.published]
            ready = all(it.state is VariantState.READY for it in before.decision.variants.values())
            if ready and has == [newest] * len(system.places):
                return
            wake = system.look().decision.next
            assert wake is not None, before
            system.now = minutes(wake)
        pytest.fail(f"not through in {rounds} passes: {system.look().decision}")

    def _make_peace(self) -> None:
        """Nobody stops anything any more, and who said that it failed says that it passed."""
        system = self.system
        system.decisions.clear()
        for name, of in TARGETS.items():
            system.places.setdefault(name, Place(of, inputs=9))
        for place in system.places.values():
            place.suspended = place.offline = False
        for of in system.rules:
            for revision in system.revisions:
                self.report(of, PASSED, revision, "ann")

    # ---- the second judge ------------------------------------------------------------------------

    def judge_publication(self, seen: Seen, name: str) -> None:
        """Did the gate hold for exactly this draft when the pass looked?"""
        facts, it = seen.facts, self._of(seen.facts, name)
        of, draft = self.system.rules[it.stage], it.draft
        grant = self.system.places[name].grant
        assert grant is not None, f"{name} is published and was not released"
        assert (grant.revision, grant.digest) == (draft.revision, draft.digest)
        lifted = self.oracle.lifted(facts, it, draft.revision)
        pin = find_rollbacks(facts).get(name)
        if facts.calendars and OverridableGate.WINDOW not in lifted:
            assert self.system.now // 60 % 2 == 0, f"{name} is published while windows are closed"
        if pin is not None:
            assert pin.revision == draft.revision
            return
        assert self.oracle.gate(facts, of, draft.revision, lifted) is PASSED, (name, draft)
        assert not self.oracle.halted(facts, of, draft.revision), (name, draft)
        if of.requires and OverridableGate.REQUIRES not in lifted:
            revoked = {a.spec.revokes for a in facts.records.approvals}
            assert any(
                draft.tree in a.trees and a.name not in revoked for a in facts.records.approvals
            ), f"{name} is published without approval"
        if not facts.sweep:
            assert self.oracle.ordered(facts, it, draft.revision)

    def judge_releases(self, seen: Seen) -> None:
        """Are those that are released within the budget, counted one by one?"""
        facts = seen.facts
        rollbacks = find_rollbacks(facts)
        for name, view in seen.decision.stages.items():
            of = self.system.rules[name]
            flying = {
                it.name
                for it in facts.variants
                if it.stage == name
                and self.oracle.in_flight(facts, of, it)
                and not self.oracle.skipped(facts, it, view.candidate)
            }
            budget = self.oracle.budget(facts, of, view.candidate)
            for released in view.released:
                it = self._of(facts, released)
                free = budget is None or len(flying) < budget
                broken = self.oracle.stand(facts, of, it) is FAILED
                lifted = OverridableGate.BUDGET in self.oracle.lifted(facts, it, view.candidate)
                back = rollbacks.get(released) is not None
                assert free or released in flying or broken or lifted or back, (released, flying)
                flying.add(released)

    def _of(self, facts: PolicyFacts, name: str):
        return next(it for it in facts.variants if it.name == name)


def try_out(steps: int, examples: int, number: int) -> int:
    """Live through so many lives; how many steps that were."""
    Running.steps = 0
    machine = seed(number)(type("Running", (Running,), {}))
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=how)
    return Running.steps


def test_a_running_system(record_property):
    """Some lives are always the same, also after a change of this file; `make soak` has others."""
    if "SEED" not in os.environ:
        for number in range(3):
            record_property("steps", try_out(steps=25, examples=25, number=number))
        return
    number, until = int(os.environ["SEED"]), monotonic() + 60 * float(os.environ["MINUTES"])
    while monotonic() < until:
        print(f"seed {number}: ", end="", flush=True)
        steps = try_out(steps=60, examples=30, number=number)
        print(f"{steps:,} steps", flush=True)
        record_property("steps", steps)
        number += 1
