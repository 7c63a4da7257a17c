"""The earliest instant at which a stage can be reached, and what that rests on."""

from datetime import datetime, timedelta

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    passed,
    published,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, RolloutStrategy
from fanout.api.results import Hold
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.forecast import forecast_stages
from fanout.values import replace

NONE = ()


def whenever(instant: datetime) -> datetime:
    return instant


def on_the_hour(instant: datetime) -> datetime:
    full = instant.replace(minute=0)
    return full if full == instant else full + timedelta(hours=1)


def forecast(it, *, sweeps=whenever, takes=None, revision="v2"):
    declared = {name: timedelta(minutes=number) for name, number in (takes or {}).items()}
    return forecast_stages(it, revision, sweeps, declared)


def minutes(instant):
    return None if instant is None else (instant - at(0)).total_seconds() / 60


def spans(it, **options):
    return {
        name: (minutes(reach.begins), minutes(reach.passes))
        for name, reach in forecast(it, **options).items()
    }


def two(soak=0, number=1, **prod):
    rules = [
        stage("dev", verification=NONE),
        stage("prod", after("dev", soak=soak), verification=NONE, **prod),
    ]
    variants = [variant("d", "dev", published("v1"), draft=draft("v2"))]
    variants += [variant(f"p{it}", "prod", published("v1")) for it in range(number)]
    return facts(rules, variants, revisions="v1 v2", now=10)


NIGHT = PublicationCalendar(
    "night", allow=(build_window("0 2 * * *", "UTC", duration=timedelta(hours=2)),)
)
ONE_BY_ONE = Rollout(strategy=RolloutStrategy.LINEAR)
DOUBLING = Rollout(strategy=RolloutStrategy.EXPONENTIAL)
ROWS = [
    pytest.param(two(), {}, (10, 10), id="nothing is in the way"),
    pytest.param(two(soak=30), {}, (40, 40), id="a soak"),
    pytest.param(two(), {"takes": {"dev": 15, "prod": 5}}, (25, 30), id="verification takes time"),
    pytest.param(two(soak=30), {"takes": {"dev": 15}}, (55, 55), id="a soak after verification"),
    pytest.param(two(), {"sweeps": on_the_hour}, (60, 60), id="the next sweep"),
    pytest.param(two(number=3, rollout=ONE_BY_ONE), {"takes": {"prod": 10}}, (10, 40),
                 id="one after the other"),
    pytest.param(two(number=8, rollout=DOUBLING), {"takes": {"prod": 10}}, (10, 50),
                 id="1, 1, 2, 4"),
    pytest.param(two(number=3, rollout=ONE_BY_ONE), {"takes": {"prod": 10}, "sweeps": on_the_hour},
                 (60, 190), id="one in each sweep"),
]  # fmt: skip


@pytest.mark.parametrize(("it", "options", "expected"), ROWS)
def test_the_earliest(it, options, expected):
    assert spans(it, **options)["prod"] == expected


def test_a_window_opens_first():
    it = replace(two(), calendars=(NIGHT,))
    assert spans(it)["dev"] == (120, 120)
    assert spans(it, sweeps=on_the_hour)["prod"] == (120, 120)


def test_a_passed_stage_is_dated_as_recorded():
    history = {("dev", "v1"): passed(5)}
    it = facts(
        [stage("dev"), stage("prod", after("dev", soak=60))],
        [variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))],
        evidence_of("dev", PASSED), history=history, now=10,
    )  # fmt: skip
    assert spans(it, revision="v1")["prod"] == (65, 65)


def test_the_expected_duration_is_the_median_of_observed_durations():
    it = facts(
        [stage("dev")],
        [variant(name, "dev", published("v1", 0)) for name in "abc"],
        evidence_of("dev", PASSED, when=3, variants=("a",)),
        evidence_of("dev", PASSED, when=5, variants=("b",)),
        evidence_of("dev", PASSED, when=30, variants=("c",)), revisions="v1 v2", now=100,
    )  # fmt: skip
    reach = forecast(it)["dev"]
    assert minutes(reach.passes) == 105
    assert reach.assumptions == ("a variant is ready 5m after publication, as 3 variants before",)


UNSEEN = "checks pass immediately, as no duration is known: e2e"


def test_actions_of_people_are_assumed_to_be_immediate():
    rule = stage("prod", automatic=False, requires=(SIGNED,), verification=(check_rule("e2e"),))
    it = facts([rule], [variant("p", "prod", draft=draft("v2"))], revisions="v1 v2")
    assert forecast(it)["prod"].assumptions == (
        "a promoter promotes as soon as the gate opens (automatic promotion is off)",
        "required checks pass immediately: signed-off",
        UNSEEN,
    )


NEVER = [
    pytest.param({"suspended": True}, "Suspended", id="suspended"),
    pytest.param({"pin": "v1"}, "WouldGoBack", id="pinned"),
    pytest.param({"rollout": Rollout(max_in_flight=0)}, "BudgetExhausted", id="no budget"),
]


@pytest.mark.parametrize(("fields", "reason"), NEVER)
def test_never_without_a_person(fields, reason):
    reach = forecast(two(**fields))["prod"]
    assert (reach.begins, reach.passes) == (None, None)
    assert [str(hold.reason) for hold in reach.holds] == [reason]


def test_a_stage_that_is_not_reached_keeps_those_after_it():
    it = facts(
        [stage("dev", suspended=True), stage("prod", after("dev"))],
        [variant("d", "dev"), variant("p", "prod")], revisions="v2",
    )  # fmt: skip
    assert [str(hold.reason) for hold in forecast(it)["prod"].holds] == ["AfterPending"]


def test_a_quorum_of_two_of_three_is_reached_with_the_second_stage():
    rules = [stage(name, verification=NONE) for name in ("a", "b", "c")]
    rules.append(stage("prod", after("a", "b", "c", at_least=2), verification=NONE))
    variants = [variant(f"v{name}", name) for name in ("a", "b", "c", "prod")]
    it = facts(rules, variants, revisions="v2")
    assert spans(it, takes={"a": 5, "b": 20, "c": 50})["prod"] == (30, 30)


def test_a_soak_that_was_cut_short_is_no_way():
    history = {("dev", "v1"): passed(2, 5)}
    it = facts(
        [stage("dev", verification=NONE), stage("prod", after("dev", soak=60), verification=NONE)],
        [variant("d", "dev", published("v2", 5)), variant("p", "prod")],
        revisions="v1 v2", history=history,
    )  # fmt: skip
    assert spans(it, revision="v1")["prod"] == (None, None)


#   how many are borne, whether it is told
FAILURES = [
    pytest.param(0, True, id="that no stage bears"),
    pytest.param(1, False, id="that the stage bears"),
]


@pytest.mark.parametrize(("borne", "is_told"), FAILURES)
def test_a_failure_is_reported(borne, is_told):
    it = facts(
        [stage("dev", rollout=Rollout(max_failures=borne))],
        [variant("d", "dev", published("v1")), variant("e", "dev")],
        evidence_of("dev", FAILED), decided(Action.PUBLISH, stage="dev", revision="v1"),
    )  # fmt: skip
    assumptions = forecast(it, revision="v1")["dev"].assumptions
    assert ("1 failed variant fixed or skipped immediately" in assumptions) is is_told


def test_a_tolerated_variant_that_cannot_be_rendered_is_not_awaited():
    broken = Hold("RenderFailed", "it cannot be rendered")
    rollout = Rollout(strategy=RolloutStrategy.LINEAR, max_failures=1)
    variants = [variant(name, "dev", draft=draft("v1")) for name in "ab"]
    variants.append(variant("c", "dev", failed=broken))
    it = facts([stage("dev", rollout=rollout, verification=NONE)], variants)
    assert spans(it, revision="v1", takes={"dev": 10})["dev"] == (10, 30)


def test_a_stage_that_has_passed_began_with_its_first_publication():
    it = facts(
        [stage("dev")],
        [variant("d", "dev", published("v1", 2)), variant("e", "dev", published("v1", 4))],
        evidence_of("dev", PASSED, when=7), history={("dev", "v1"): passed(8)},
    )  # fmt: skip
    assert spans(it, revision="v1")["dev"] == (2, 8)


def test_a_stage_that_got_new_inputs_since_began_before_it_had_passed():
    it = facts(
        [stage("dev")], [variant("d", "dev", published("v1", 9))],
        evidence_of("dev", PASSED, when=10), history={("dev", "v1"): passed(8)},
    )  # fmt: skip
    assert spans(it, revision="v1")["dev"] == (8, 8)


GIVEN = "required checks pass immediately: signed-off"
#   variants of prod, whether something is still to be given
REQUIRED = [
    pytest.param([variant("p", "prod", draft=draft("v1"))], (), True, id="nobody has approved"),
    pytest.param([variant("p", "prod", draft=draft("v1"))], ("ann", "bob"), False, id="both have"),
    pytest.param([variant("p", "prod", draft=draft("v1")), variant("q", "prod")], ("ann", "bob"),
                 True, id="both have, and one draft is not written yet"),
    pytest.param([variant("p", "prod", published("v1"))], (), False, id="it is published already"),
]  # fmt: skip


@pytest.mark.parametrize(("variants", "by", "is_told"), REQUIRED)
def test_a_required_check_is_an_assumption_while_it_is_missing(variants, by, is_told):
    it = facts([stage("prod", requires=(SIGNED,))], variants, *map(approved, by))
    assert (GIVEN in forecast(it, revision="v1")["prod"].assumptions) is is_told


def test_a_published_variant_needs_no_promoter():
    it = facts([stage("dev", automatic=False)], [variant("d", "dev", published("v1"))])
    assert forecast(it, revision="v1")["dev"].assumptions == (UNSEEN,)


def test_a_stage_that_goes_back_waits_for_nothing_but_windows():
    back = decided(Action.ROLLBACK, stage="prod", revision="v1", when=5)
    rule = stage("prod", after("dev", soak=60), requires=(SIGNED,), automatic=False)
    it = facts(
        [stage("dev"), rule], [variant("d", "dev"), variant("p", "prod", published("v2", 4))],
        back, revisions="v1 v2",
    )  # fmt: skip
    reach = forecast(it, revision="v1", takes={"prod": 5})["prod"]
    assert (minutes(reach.begins), minutes(reach.passes), reach.assumptions) == (10, 15, ())


def test_a_stage_does_not_come_to_what_is_older_than_it_takes():
    rule = stage("prod", verification=NONE)
    it = facts([rule], [variant("p", "prod", published("v2"))], revisions="v1 v2")
    reach = forecast(it, revision="v1")["prod"]
    assert (reach.begins, reach.passes) == (None, None)
    [hold] = reach.holds
    assert hold.message == "stage prod takes v2, which is newer; automation never downgrades"


def test_a_variant_that_was_sent_back_and_is_borne_stops_nothing():
    back = decided(Action.ROLLBACK, stage="prod", variants=("q",), revision="v1", when=5)
    variants = [variant("p", "prod", published("v1", 1)), variant("q", "prod", published("v1", 1))]
    variants[0] = replace(variants[0], draft=draft("v2"))
    rollout = Rollout(max_failures=1)
    rule = stage("prod", rollout=rollout, verification=NONE, requires=(SIGNED,))
    signed = [approved(by, revision="v2", at=at(6)) for by in ("ann", "bob")]
    it = facts([rule], variants, back, *signed, revisions="v1 v2")
    assert spans(it)["prod"] == (10, 10)
    assert forecast(it)["prod"].assumptions == ()


def test_a_rolled_back_variant_stops_the_stage_until_the_decision_is_withdrawn():
    back = decided(
        Action.ROLLBACK, stage="prod", variants=("q",), revision="v1", when=5, name="decision-x"
    )
    variants = [variant("p", "prod", published("v2", 4)), variant("q", "prod", published("v1", 1))]
    it = facts([stage("prod")], variants, back, revisions="v1 v2")
    reach = forecast(it)["prod"]
    assert (minutes(reach.begins), reach.passes) == (4, None)
    [hold] = reach.holds
    assert str(hold.reason) == "Pinned"
    assert hold.message == "q does not take v2: rolled back to v1 by ann"
    assert hold.who == "ann (fanout withdraw decision-x)"


def test_a_soak_that_was_cut_short_before_a_join_is_reported():
    join = stage("join", after("dev"), verification=NONE, control_flow=True)
    rules = [stage("dev", verification=NONE), join, stage("prod", after("join", soak=60))]
    history = {("dev", "v1"): passed(2, 5), ("join", "v1"): passed(2, 5)}
    it = facts(
        rules, [variant("d", "dev", published("v2", 5)), variant("p", "prod")],
        revisions="v1 v2", history=history,
    )  # fmt: skip
    [hold] = forecast(it, revision="v1")["prod"].holds
    assert str(hold.reason) == "SoakCutShort"
    assert hold.message == "soak of v1 in stage join ended after 3m of 1h; v1 can no longer pass"


def test_a_soak_that_a_person_overrode_is_not_waited_for():
    lifted = decided(Action.PUBLISH, OverridableGate.SOAK, stage="prod", revision="v1")
    rules = [stage("dev"), stage("prod", after("dev", soak=60), verification=NONE)]
    variants = [variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))]
    it = facts(
        rules, variants, evidence_of("dev", PASSED), lifted, history={("dev", "v1"): passed(5)}
    )
    assert spans(it, revision="v1")["prod"] == (10, 10)
