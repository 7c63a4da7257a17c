"""Events of a running system: actions of people, machines and crashes.

The rules of the machine that test_gate_evaluator_model.py checks; which events come, and when, is
drawn.
"""

from datetime import datetime
from fractions import Fraction

from gates.executor import Place, Seen, System
from gates.oracle import Oracle
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    after,
    approved,
    at,
    decided,
    evidence_of,
    stage,
    with_spec,
)
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fanout.api.gate_vocabulary import (
    GATE_ACTIONS,
    Action,
    OverridableGate,
    Require,
    RolloutStrategy,
)
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_rules import ApprovalRule
from fanout.values import replace

SOAK = 30
SIGNED = ApprovalRule("signed-off", 1, frozenset({"ann", "bob"}), ("sre",))
STAGES = ("dev", "eu", "us", "prod")
TARGETS = {"d1": "dev", "d2": "dev", "e1": "eu", "e2": "eu", "u1": "us", "p1": "prod"}
TARGETS |= {"p2": "prod", "p3": "prod"}
HOURS = tuple(  # every even hour is open
    build_window(f"0 {hour} * * *", "UTC", duration=at(60) - at(0)) for hour in range(0, 24, 2)
)
ROLLOUTS = st.sampled_from(
    [
        Rollout(),
        Rollout(max_in_flight=1),
        Rollout(max_in_flight=Fraction(1, 2), max_failures=1),
        Rollout(strategy=RolloutStrategy.LINEAR, min_ready=at(5) - at(0)),
        Rollout(strategy=RolloutStrategy.EXPONENTIAL, progress_deadline=at(40) - at(0)),
        Rollout(max_failures=Fraction(1, 3)),
    ]
)
LIFTS = [
    OverridableGate.AFTER,
    OverridableGate.SOAK,
    OverridableGate.REQUIRES,
    OverridableGate.WINDOW,
    OverridableGate.BUDGET,
]
VARIANTS = st.sampled_from(list(TARGETS))


class Events(RuleBasedStateMachine):
    """One policy of four stages, lived through."""

    @initialize(
        rollout=ROLLOUTS,
        require=st.sampled_from([Require.ALL, Require.ANY]),
        serialize=st.booleans(),
        windows=st.booleans(),
        days=st.integers(0, 9),
    )
    def begin(self, rollout, require, serialize, windows, days):
        """Four stages; what they require and how they roll out is drawn, and how far they are."""
        rules = (
            stage("dev", rollout=rollout),
            stage("eu", after("dev", soak=SOAK)),
            stage("us", after("dev")),
            stage(
                "prod",
                after("eu", "us", require=require, soak=SOAK),
                requires=(SIGNED,),
                rollout=rollout,
            ),
        )
        self.system = System(rules, serialize)
        self.system.calendars = (PublicationCalendar("office", allow=HOURS),) if windows else ()
        self.system.places = {name: Place(of) for name, of in TARGETS.items()}
        self.oracle = Oracle()
        self.system.noticed = self._record
        self.system.publishes = self.judge_publication
        for _ in range(days):
            self.a_good_day()
            self.time_passes_to_the_next_instant()

    def _record(self, seen: Seen) -> None:
        candidates = {name: view.candidate for name, view in seen.decision.stages.items()}
        self.oracle.record(seen.facts, candidates)

    # ---- what happens ----------------------------------------------------------------------------

    @rule(sweep=st.booleans(), effects=st.none() | st.integers(0, 12))
    def a_pass(self, sweep, effects):
        """A pass; with `effects` it crashes after so many."""
        seen = self.system.look(sweep=sweep)
        self.judge_releases(seen)
        self.system.carry_out(seen, effects)

    @rule()
    def a_few_passes(self):
        """As a running program makes them."""
        for _ in range(4):
            self.a_pass(True, None)

    @rule()
    def a_good_day(self):
        """Report every publication as good, and approve every draft."""
        self.a_pass(True, None)
        self.all_evidence_passes()
        self.approve("ann", False)
        self.a_pass(True, None)

    @rule(effects=st.none() | st.integers(0, 12))
    def two_at_once(self, effects):
        """Two processes see the same; the second is late with what it does."""
        first, second = self.system.look(), self.system.look()
        self.judge_releases(first)
        self.system.carry_out(first, effects)
        self.system.carry_out(second)

    @rule(minutes=st.sampled_from([1, 5, 29, 30, 60]))
    def time_passes(self, minutes):
        """Let time pass without another event."""
        self.system.now += minutes

    @rule()
    def time_passes_to_the_next_instant(self):
        """The program sleeps until then."""
        wake = self.system.look().decision.next
        if wake is not None:
            self.system.now = minutes(wake)

    @precondition(lambda self: len(self.system.revisions) < 5)
    @rule()
    def a_new_revision(self):
        """Upstream releases."""
        self.system.revisions.append(f"v{len(self.system.revisions) + 1}")

    @rule(
        of=st.sampled_from(STAGES),
        verdict=st.sampled_from([PASSED, PASSED, PASSED, FAILED, PENDING]),
        by=st.sampled_from(["ci", "ci", "ann"]),
        one=st.booleans(),
        which=VARIANTS,
    )
    def evidence(self, of, verdict, by, one, which):
        """Report evidence about a publication of a stage, or of one variant in it."""
        mine = {name: it for name, it in self.system.places.items() if it.stage == of}
        chosen = [name for name in mine if not one or name == which]
        for revision in sorted({mine[n].published.revision for n in chosen if mine[n].published}):
            self.report(of, verdict, revision, by, (which,) if one else ())

    @rule()
    def all_evidence_passes(self):
        """Report every publication as good."""
        for of in self.system.rules:
            mine = [it for it in self.system.places.values() if it.stage == of and it.published]
            for revision in sorted({it.published.revision for it in mine}):
                self.report(of, PASSED, revision, "ci")

    @rule(by=st.sampled_from(["ann", "bob"]), revoke=st.booleans())
    def approve(self, by, revoke):
        """Approve all drafts of prod, or revoke a person's approvals."""
        mine = [it for it in self.system.approvals if it.by == by and not it.spec.revokes]
        if revoke and mine:
            back = approved(by, revision=mine[-1].spec.revision, at=at(self.system.now))
            self.system.approvals.append(with_spec(back, revokes=mine[-1].name))
            return
        places = self.system.places.values()
        drafts = [it.draft for it in places if it.stage == "prod" and it.draft]
        for revision in sorted({it.revision for it in drafts}):
            trees = frozenset(it.tree for it in drafts if it.revision == revision)
            self.system.approvals.append(
                approved(by, revision=revision, trees=trees, at=at(self.system.now))
            )

    @rule(
        action=st.sampled_from([Action.PUBLISH, Action.PUBLISH, *GATE_ACTIONS]),
        lifts=st.sets(st.sampled_from(LIFTS), max_size=2),
        of=st.sampled_from(STAGES),
        which=st.none() | VARIANTS,
        older=st.booleans(),
    )
    def decide(self, action, lifts, of, which, older):
        """A person decides about a stage or a variant, mostly about its candidate."""
        if which is not None:
            of = TARGETS[which]
        seen = self.system.look()
        revision = seen.decision.stages[of].candidate
        if action is Action.ROLLBACK or older:
            had = [it.packages for it in self.system.places.values() if it.stage == of]
            revision = min([name for packages in had for name in packages], default=revision)
        fields = {"stage": of, "variants": (which,) if which else (), "revision": revision}
        if action is Action.PUBLISH:
            drafts = [
                it.draft
                for name, it in self.system.places.items()
                if it.stage == of and which in (None, name) and it.draft
            ]
            fields["trees"] = frozenset(it.tree for it in drafts if it.revision == revision)
        overrides = lifts if action is Action.PUBLISH else ()
        self.system.decisions.append(decided(action, *overrides, when=self.system.now, **fields))

    @precondition(lambda self: self.system.decisions)
    @rule(data=st.data())
    def withdraw(self, data):
        """A decision is taken back, as if it had not been made."""
        decisions = self.system.decisions
        decisions.remove(data.draw(st.sampled_from(decisions)))

    @rule(which=VARIANTS, what=st.sampled_from(["inputs", "suspended", "offline", "gone"]))
    def a_target_changes(self, which, what):
        """Its inputs, its spec or its status; or it goes, and comes back as another time."""
        place = self.system.places.get(which)
        if place is None:
            self.system.places[which] = Place(TARGETS[which], inputs=9)
        elif what == "inputs":
            place.inputs += 1
        elif what == "gone":
            del self.system.places[which]
        else:
            setattr(place, what, not getattr(place, what))

    @rule(of=st.sampled_from(STAGES), rollout=ROLLOUTS)
    def the_policy_is_edited(self, of, rollout):
        """Change the rollout, and for prod the stage that follows it."""
        self.system.rules[of] = replace(self.system.rules[of], rollout=rollout)
        if of == "prod" and "last" not in self.system.rules:
            self.system.rules["last"] = stage("last", after("prod"))
            self.system.places["l1"] = Place("last")

    def report(self, of, verdict, revision, by, variants=()) -> None:
        """Evidence, recorded now."""
        self.system.evidence.append(
            evidence_of(of, verdict, revision, when=self.system.now, by=by, variants=variants)
        )

    def judge_releases(self, seen: Seen) -> None:
        """Called with each pass before it is carried out."""

    def judge_publication(self, seen: Seen, name: str) -> None:
        """Called before each publication."""


def minutes(when: datetime) -> int:
    """At how many minutes from the beginning that is."""
    return int((when - at(0)).total_seconds() // 60)
