"""Defects of other promotion engines, played here: each test names the issue it is reported in.

The docstring says what went wrong there; the name says what is right. The engines of rollouts are
in `test_rollout_budget_peers.py`, what only whole commands can show in `tests/story/test_peers.py`.
"""

import pytest
from gates.worlds import (
    BY_HAND,
    FAILED,
    PASSED,
    PENDING,
    SIGNED_PROD,
    after,
    approved,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    later,
    passed,
    prod,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, Require
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation

SOAK = 60
QA, UAT, LAB = stage("qa"), stage("uat"), stage("lab")


def there_in(names: str, **has) -> list:
    """A variant for each stage, published at v1 unless said otherwise."""
    return [variant(name[0], name, has.get(name, published("v1"))) for name in names.split()]


def ok(*names: str, revision: str = "v1", when: float = 1):
    return [evidence_of(name, PASSED, revision, when=when) for name in names]


def behind(*names: str, require: Require = Require.ALL, soak: float = SOAK):
    """Stage prod behind these."""
    return stage("prod", after(*names, require=require, soak=soak))


P = variant("p", "prod", draft=draft("v1"))


def goes(decision: PolicyEvaluation) -> bool:
    return decision.variants["p"].publish


# ---- Kargo ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("require", "history", "expected"),
    [
        pytest.param(
            Require.ALL, {("qa", "v1"): passed(2), ("uat", "v1"): passed(2)}, True,
            id="All: that it soaked in a stage that is not listed does no harm",
        ),
        pytest.param(
            Require.ALL, {("qa", "v1"): passed(2)}, False,
            id="All: that it soaked in a stage that is not listed stands for none that is",
        ),
        pytest.param(
            Require.ANY, {}, False,
            id="Any: that it soaked in a stage that is not listed is no help",
        ),
        pytest.param(
            Require.ANY, {("uat", "v1"): passed(2)}, True,
            id="Any: one that is listed is enough",
        ),
    ],
)  # fmt: skip
def test_kargo_4586_soak_counts_in_listed_stages_alone(require, history, expected):
    """Soak was looked up over all stages there are: All waited for ever, one of several went."""
    past = {**history, ("lab", "v1"): passed(0)}
    rules = (LAB, QA, UAT, behind("qa", "uat", require=require))
    it = facts(
        rules,
        [*there_in("lab qa uat"), P],
        *ok("lab", "qa", "uat", when=3),
        now=2 + SOAK,
        history=past,
    )
    assert goes(evaluate_gates(it)) is expected


def test_kargo_4586_the_end_of_a_soak_is_a_next_instant():
    """The end of a soak was found by a poll every five minutes, or by a restart."""
    it = later(facts((QA, behind("qa")), [*there_in("qa"), P], *ok("qa")), 11)
    assert evaluate_gates(it).next == at(1 + SOAK)
    assert not goes(evaluate_gates(later(it, 1 + SOAK - 0.1)))
    assert goes(evaluate_gates(later(it, 1 + SOAK)))


def test_kargo_3731_verified_here_and_soaked_there_is_neither():
    """One list held who had verified, another who had soaked, and stages were mixed up."""
    rules = (QA, UAT, behind("qa", "uat", require=Require.ANY))
    past = {("qa", "v1"): passed(0)}
    reports = [evidence_of("qa", FAILED, when=2), *ok("uat", when=69)]
    it = facts(rules, [*there_in("qa uat"), P], *reports, now=70, history=past)
    assert not goes(evaluate_gates(it))


def join(name: str, *upstreams: str, soak: float = 0):
    return stage(name, after(*upstreams, soak=soak), verification=(), control_flow=True)


def test_kargo_6360_a_soak_behind_a_stage_that_only_joins_ends():
    """Nothing is ever in such a stage, so nothing ever soaked there and what follows starved."""
    rules = (QA, join("gate", "qa"), behind("gate"))
    it = later(facts(rules, [*there_in("qa"), P], *ok("qa")), 10)
    assert evaluate_gates(it).next == at(1 + SOAK)
    assert goes(evaluate_gates(later(it, 1 + SOAK)))


def test_kargo_4376_an_override_at_the_stage_itself_passes_the_joint_before_it():
    """What a person allowed at a stage that only joins reached nobody behind it."""
    rules = (QA, join("gate", "qa"), behind("gate", soak=0))
    order = decided(Action.PUBLISH, OverridableGate.AFTER, stage="prod", revision="v1")
    it = facts(rules, [variant("q", "qa", draft=draft("v1")), P], order)
    assert goes(evaluate_gates(it))


def test_kargo_5144_a_failure_after_success_closes_the_gate():
    """Once verified was verified for good: a second run that failed withdrew nothing."""
    it = facts((QA, behind("qa", soak=0)), [*there_in("qa"), P], *ok("qa"))
    assert goes(evaluate_gates(it))
    withdrawn = later(it, 20, evidence_of("qa", FAILED, when=15))
    assert not goes(evaluate_gates(withdrawn))
    assert reasons_of(evaluate_gates(withdrawn), "p") == ["AfterFailed"]
    assert ("qa", "v1") not in evaluate_gates(withdrawn).history, "nor does its soak go on"


def test_kargo_7032_what_is_queued_does_not_overtake_what_is_not_verified():
    """While health was unknown the next promotion began before the one before was verified."""
    it = facts([QA], [variant("q", "qa", published("v1", 5))], revisions="v1 v2", serialize=True)
    decision = evaluate_gates(it).stages["qa"]
    assert (decision.candidate, decision.queued) == ("v1", ("v2",))
    verified = later(it, 20, evidence_of("qa", PASSED, when=15))
    assert evaluate_gates(verified).stages["qa"].candidate == "v2"


def test_kargo_7032_nor_do_drafts_that_stood_already():
    """The same, where v2 was drafted before somebody took back what was said of v1."""
    one, other = (variant(name, "qa", published("v1"), draft=draft("v2")) for name in "qr")
    reports = (
        evidence_of("qa", PASSED, variants=("r",)),
        evidence_of("qa", PENDING, variants=("q",)),
    )
    it = facts([QA], [one, other], *reports, revisions="v1 v2", serialize=True)
    assert reasons_of(evaluate_gates(it), "q") == ["Serialized"]
    assert reasons_of(evaluate_gates(it), "r") == ["Serialized"]
    verified = later(it, 20, evidence_of("qa", PASSED, when=15))
    assert evaluate_gates(verified).stages["qa"].released == ("q", "r")


def test_kargo_7032_what_was_overtaken_counts_as_verified_for_nobody():
    """What had been overtaken was taken for verified with what overtook it."""
    rules = (QA, behind("qa", soak=0))
    it = facts(
        rules, [*there_in("qa", qa=published("v2", 5)), P], *ok("qa", revision="v2", when=6),
        revisions="v1 v2",
    )  # fmt: skip
    assert evaluate_gates(it).stages["prod"].candidate == "v2"
    assert not goes(evaluate_gates(it)), "its draft is of v1, which nobody has verified"


def test_kargo_4238_a_soak_that_was_over_when_the_stage_moved_on_stands():
    """A soak that was over was written nowhere: what had left the stage could not go on."""
    rules = (QA, behind("qa"))
    it = later(facts(rules, [*there_in("qa"), variant("p", "prod")], *ok("qa")), 10 + SOAK + 5)
    past = evaluate_gates(it).history
    moved = facts(
        rules, [*there_in("qa", qa=published("v2", 10 + SOAK + 6)), P], *ok("qa"),
        now=500, revisions="v1 v2", history=past,
    )  # fmt: skip
    assert evaluate_gates(moved).stages["prod"].candidate == "v1"
    assert goes(evaluate_gates(moved))


def test_kargo_5342_releases_faster_than_the_soak_are_reported_with_the_way_out():
    """A quick stage replaced what was soaking, and what follows never got anything."""
    rules = (QA, behind("qa"))
    soaked_a_little = {("qa", f"v{n}"): passed(10 * n, 10 * n + 10) for n in (1, 2, 3)}
    it = facts(
        rules, [*there_in("qa", qa=published("v4", 41)), variant("p", "prod", draft=draft("v4"))],
        *ok("qa", revision="v4", when=42), revisions="v1 v2 v3 v4", now=45, history=soaked_a_little,
    )  # fmt: skip
    [starving] = [hold for hold in evaluate_gates(it).holds if hold.reason == "Starving"]
    assert "inFlight: Serialize" in f"{starving.message} {starving.who}"


@pytest.mark.parametrize("rule", [BY_HAND, behind("dev")], ids=["by hand", "automatic"])
def test_kargo_3100_a_soak_binds_people_as_it_binds_automation(rule):
    """The question was whether a soak holds a person too: one gate for all who ask."""
    soaking = stage("prod", after("dev", soak=SOAK), automatic=rule.automatic)
    order = decided(Action.PUBLISH, stage="prod", revision="v1")
    it = prod(*ok("dev"), order, rule=soaking)
    assert not goes(evaluate_gates(it))
    assert "SoakRunning" in reasons_of(evaluate_gates(it), "p")


def test_kargo_4373_an_approval_of_what_the_rule_allows_no_more_publishes_nothing_and_says_so():
    """What was approved could not be promoted after its source was dropped, and nobody knew why."""
    it = prod(
        *ok("dev"),
        approved("ann"),
        approved("bob"),
        rule=SIGNED_PROD,
        policy_fields={"revisions": "v2"},
    )
    assert not goes(evaluate_gates(it))
    assert evaluate_gates(it).stages["prod"].candidate == "v2"
    assert reasons_of(evaluate_gates(it), "p"), "it waits by name"


def test_kargo_2365_what_is_listed_is_what_may_go():
    """The list of what can be promoted, and the check when it was, disagreed."""
    rules = (QA, behind("qa", soak=0))
    it = facts(
        rules, [*there_in("qa", qa=published("v2", 5)), P], *ok("qa"), revisions="v1 v2",
        history={("qa", "v1"): passed(1, 5)},
    )  # fmt: skip
    decision = evaluate_gates(it)
    assert decision.stages["prod"].eligible == ("v1", "v2")
    assert goes(decision), "v1 is eligible, it is the candidate, and it goes"


# ---- GitOps Promoter -----------------------------------------------------------------------------

BARE = {"verification": ()}
A, B = stage("a", **BARE), stage("b", after("a"), **BARE)


def test_promoter_ordering_without_any_checks_stages_still_go_in_their_order():
    """Without a check anywhere no environment waited for the one before: all merged at once."""
    open_ = [variant("a", "a", draft=draft("v1")), variant("b", "b", draft=draft("v1"))]
    first = evaluate_gates(facts((A, B), open_))
    assert (first.variants["a"].publish, first.variants["b"].publish) == (True, False)
    then = facts((A, B), [variant("a", "a", published("v1")), open_[1]])
    assert evaluate_gates(then).variants["b"].publish


def test_promoter_ordering_a_stage_without_checks_in_between_keeps_its_place():
    """Behind an environment without checks the next one waited for nobody at all."""
    rules = (stage("dev"), stage("mid", after("dev"), **BARE), stage("prod", after("mid")))
    open_ = [variant("m", "mid", draft=draft("v1")), P]
    waiting = evaluate_gates(facts(rules, [variant("d", "dev", published("v1")), *open_]))
    assert (waiting.variants["m"].publish, goes(waiting)) == (False, False)
    opened = evaluate_gates(
        facts(rules, [variant("d", "dev", published("v1")), *open_], *ok("dev"))
    )
    assert (opened.variants["m"].publish, goes(opened)) == (True, False)


def test_promoter_1109_a_newer_revision_does_not_leave_the_gate_pending():
    """After a newer commit the status of the one before stayed pending for ever."""
    rules = (QA, behind("qa", soak=0))
    drafts = [variant("q", "qa", published("v1"), draft=draft("v2")), P]
    it = facts(rules, drafts, *ok("qa"), revisions="v1 v2")
    assert goes(evaluate_gates(it)), "v1 has passed, whatever is drafted since"
    newer = facts(
        rules, [variant("q", "qa", published("v2", 5)), variant("p", "prod", draft=draft("v2"))],
        *ok("qa", revision="v2", when=6), revisions="v1 v2",
    )  # fmt: skip
    assert goes(evaluate_gates(newer))


def test_promoter_1319_a_revision_that_changes_nothing_is_verified_like_any_other():
    """A change without a difference skipped health, and what follows merged past it."""
    same = draft("v2", "")
    it = facts(
        (QA, behind("qa", soak=0)),
        [variant("q", "qa", published("v1"), draft=same), variant("p", "prod", draft=draft("v2"))],
        *ok("qa"), revisions="v1 v2",
    )  # fmt: skip
    decision = evaluate_gates(it)
    assert decision.stages["qa"].verdicts["v2"] == "pending"
    assert not goes(decision)
    assert decision.variants["q"].publish


def test_promoter_duplicated_answers_that_contradict_each_other_hold():
    """Two statuses under one key were an error there as well: neither is believed here."""
    reports = [*ok("qa"), evidence_of("qa", FAILED, by="another")]
    it = facts((QA, behind("qa", soak=0)), [*there_in("qa"), P], *reports)
    assert not goes(evaluate_gates(it))
    assert "Contradiction" in reasons_of(evaluate_gates(it), "q")
