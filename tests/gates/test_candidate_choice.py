"""Which revision a stage takes next: four rules in their order."""

from operator import itemgetter

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    passed,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.api.gate_vocabulary import Action, OverridableGate
from fanout.api.results import Hold
from fanout.errors import Bug
from fanout.gates.gate_evaluator import choose_candidates, evaluate_gates
from fanout.gates.record_facts import ReviewFacts
from fanout.values import replace

DEV = stage("dev")
PROD = stage("prod", after("dev"), requires=(SIGNED,))
SOAKED = stage("prod", after("dev", soak=60))


def has(revision, when=0):
    return published(revision, when) if revision else None


def build_facts(dev="", prod="", *records, drafted="", stages=(DEV, PROD), **fields):
    """Dev and prod with one variant each: what they have, and the revision prod has a draft of."""
    open_draft = draft(drafted) if drafted else None
    variants = [variant("d", "dev", has(dev)), variant("p", "prod", has(prod), draft=open_draft)]
    return facts(stages, variants, *records, **{"revisions": "v1 v2 v3", **fields})


OK1, OK2 = evidence_of("dev", PASSED, "v1"), evidence_of("dev", PASSED, "v2")
V1 = {("dev", "v1"): passed(1, 5)}
LIFT = decided(Action.PUBLISH, OverridableGate.AFTER, stage="prod", revision="v3")

ROWS = [
    ("nothing is published: the newest", build_facts(), "v3", "v3"),
    ("a stage without after takes the newest", build_facts("v1"), "v3", "v3"),
    (
        "the newest that passes after, though newer ones exist",
        build_facts("v2", "", OK2),
        "v3",
        "v2",
    ),
    (
        "an earlier revision that passed, though dev has moved on",
        build_facts("v2", history=V1),
        "v3",
        "v1",
    ),
    ("steady: what is published and passes stays", build_facts("v3", "v1", history=V1), "v3", "v1"),
    ("the present one while it can still pass", build_facts("v2", drafted="v2"), "v3", "v2"),
    ("the present one, that dev is still to take", build_facts("v2", drafted="v3"), "v3", "v3"),
    (
        "the present one no more when it failed",
        build_facts("v2", "", evidence_of("dev", FAILED, "v2"), drafted="v2"),
        "v3",
        "v3",
    ),
    (
        "the present one no more when dev went past it before it passed",
        build_facts("v2", drafted="v1"),
        "v3",
        "v3",
    ),
    (
        "the newest that passes, rather than a present one that nobody approved",
        build_facts("v2", "", OK2, drafted="v1", history=V1),
        "v3",
        "v2",
    ),
    (
        "the present one while its draft has approvals",
        build_facts("v2", "", OK2, approved("ann"), drafted="v1", history=V1),
        "v3",
        "v1",
    ),
    (
        "not when these are for another tree",
        build_facts(
            "v2", "", OK2, approved("ann", trees=frozenset({"x"})), drafted="v1", history=V1
        ),
        "v3",
        "v2",
    ),
    (
        "not when these come from nobody who may",
        build_facts("v2", "", OK2, approved("eve"), drafted="v1", history=V1),
        "v3",
        "v2",
    ),
    (
        "not when it can pass no more: approvals do not help it",
        build_facts(
            "v2", "", evidence_of("dev", FAILED, "v2"), approved("ann", revision="v2"), drafted="v2"
        ),
        "v3",
        "v3",
    ),
    (
        "never back: what prod has is newer than what passes",
        build_facts("v2", "v2", history=V1),
        "v3",
        "v2",
    ),
    (
        "the present one while its soak runs",
        build_facts(
            "v2", "", drafted="v2", stages=(DEV, SOAKED), history={("dev", "v2"): passed(1)}
        ),
        "v3",
        "v2",
    ),
    (
        "not when its soak was cut short",
        build_facts("v2", "", drafted="v1", stages=(DEV, SOAKED), history=V1),
        "v3",
        "v3",
    ),
    (
        "`after` lifted for the whole stage makes a revision pass",
        build_facts("v2", "", OK2, LIFT),
        "v3",
        "v3",
    ),
    (
        "lifted for one variant it does not steer the stage",
        build_facts("v2", "", OK2, with_spec(LIFT, variants=("p",))),
        "v3",
        "v2",
    ),
    ("no revision is allowed", build_facts("v1", "v1", revisions=""), "", ""),
    (
        "a rule that allows one revision at a time: what is published is older, by its name",
        build_facts("v8", "v8", revisions="v10", history={("prod", "v10"): passed(1, 2)}),
        "v10",
        "v10",
    ),
    (
        "the rule was narrowed below what is published: a candidate to see, not to take",
        build_facts("v9", "v9", revisions="v1 v2"),
        "v2",
        "v2",
    ),
]


@pytest.mark.parametrize(("sentence", "w", "dev", "prod"), ROWS, ids=map(itemgetter(0), ROWS))
def test_candidate(sentence, w, dev, prod):
    assert choose_candidates(w) == {"dev": dev, "prod": prod}
    decision = evaluate_gates(w)
    assert {name: item.candidate for name, item in decision.stages.items()} == choose_candidates(w)


def test_newer_ones_queue_visibly():
    decision = evaluate_gates(build_facts("v2", history=V1))
    assert decision.stages["prod"].queued == ("v2", "v3")
    assert decision.stages["dev"].queued == ()


def test_a_past_revision_is_no_candidate_when_the_published_revision_is_withdrawn():
    history = {("dev", "v1"): passed(1, 5), ("prod", "v1"): passed(1, 5)}
    w = build_facts("abc", "abc", revisions="v2 v1", history=history)
    assert choose_candidates(w) == {"dev": "v2", "prod": "v2"}
    w = build_facts("abc", "abc", revisions="v1", history=history)
    assert choose_candidates(w) == {"dev": "v1", "prod": "v1"}


def test_a_target_that_joins_with_nothing_does_not_take_the_others_back():
    w = build_facts("v2", "v2", history=V1)
    joined = replace(w, variants=(*w.variants, variant("new", "prod")))
    assert choose_candidates(joined)["prod"] == "v2"


def test_a_suspended_variant_with_an_approved_draft_does_not_keep_the_others_back():
    w = build_facts("v2", "v1", OK2, approved("ann"), history=V1)
    asleep = variant("s", "prod", None, draft=draft("v1"), suspended=True)
    assert choose_candidates(replace(w, variants=(*w.variants, asleep)))["prod"] == "v2"


@pytest.mark.parametrize(("by", "candidate"), [("bob", "v2"), ("eve", "v1")])
def test_a_draft_of_which_an_approver_requests_changes_is_replaced(by: str, candidate: str):
    w = build_facts("v2", "", OK2, approved("ann"), drafted="v1", history=V1)
    link = "https://git.example.com/7"
    changes = ReviewFacts(at(2), by, link, "prod", SIGNED.name, "v1", ("p",))
    records = replace(w.records, requested_changes=(changes,))
    assert choose_candidates(w)["prod"] == "v1"
    assert choose_candidates(replace(w, records=records))["prod"] == candidate


def test_a_stage_at_rest_keeps_the_draft_that_was_approved():
    w = build_facts("v2", "", OK2, approved("ann"), drafted="v1", history=V1)
    rest = (DEV, replace(PROD, suspended=True))
    assert choose_candidates(replace(w, stages=rest))["prod"] == "v1"


def test_grants_are_what_is_present_where_no_draft_is():
    p = variant("p", "prod", grant=grant("v2"))
    w = facts((DEV, PROD), [variant("d", "dev", published("v2")), p], revisions="v1 v2 v3")
    assert choose_candidates(w)["prod"] == "v2"


def test_results_of_rendering_do_not_move_candidates():
    w = build_facts("v2", drafted="v2")
    hold = Hold("RenderFailed", "line 3")
    rendered = replace(
        w,
        variants=tuple(
            replace(v, failed=hold, held=hold, draft=v.draft and replace(v.draft, current=False))
            for v in w.variants
        ),
    )
    assert choose_candidates(rendered) == choose_candidates(w)
    decision = evaluate_gates(rendered)
    assert {name: item.candidate for name, item in decision.stages.items()} == choose_candidates(w)


@pytest.mark.parametrize(
    "stages",
    [
        (stage("a", after("b")), stage("b", after("a"))),
        (stage("a", after("nowhere")),),
        (stage("a"), stage("a")),
    ],
    ids=["a cycle", "an unknown stage", "a name used twice"],
)
def test_stages_that_validation_refuses_are_a_bug(stages):
    with pytest.raises(Bug):
        choose_candidates(facts(stages, []))


def test_stages_may_be_written_in_any_order():
    w = build_facts("v2", "", OK2, stages=(PROD, DEV))
    assert list(choose_candidates(w).items()) == [("prod", "v2"), ("dev", "v3")]
    assert evaluate_gates(w).stages["dev"].verdicts["v2"] is PASSED
    assert at(10) == w.now


def test_the_end_of_a_soak_that_changes_the_candidate_alone_is_an_instant():
    """What soaks again is everywhere already, and goes before what has not passed yet."""
    rules = (stage("dev"), stage("eu", after("dev", soak=60)))
    d = variant("d", "dev", published("v1"), draft=draft("v2"))
    e = variant("e", "eu", published("v1"), draft=draft("v2"))
    reports = (evidence_of("dev", PASSED), evidence_of("eu", PASSED))
    history = {("dev", "v1"): passed(80), ("eu", "v1"): passed(2)}
    policy_facts = facts(rules, (d, e), *reports, now=100, history=history, revisions="v1 v2")
    assert evaluate_gates(policy_facts).stages["eu"].candidate == "v2"
    assert evaluate_gates(replace(policy_facts, now=at(140))).stages["eu"].candidate == "v1"
    assert evaluate_gates(policy_facts).stages["eu"].next == at(140)
