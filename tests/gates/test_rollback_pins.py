"""Who goes back to which revision, who is skipped and who tries again, by what people said."""

from operator import itemgetter

import pytest
from gates.worlds import at, decided, published, stage, variant

from fanout.api.gate_vocabulary import Action
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.rollback_pins import find_pin
from fanout.values import replace

PUBLISH, ROLLBACK, SKIP, RETRY = (
    Action.PUBLISH,
    Action.ROLLBACK,
    Action.SKIP,
    Action.RETRY,
)
HAVE = (
    variant("p", "prod", published("v2")),
    variant("q", "prod", published("v4", 20)),
)
PROD, PINNED = stage("prod"), stage("prod", pin="v1")
P, P_AND_Q, PROD_WIDE = {"variants": ("p",)}, {"variants": ("p", "q")}, {"stage": "prod"}

#   sentence, rule, decisions, what the stage, its variant p and its variant q go back to
ROWS = [
    ("nobody said anything", PROD, [], "- - -"),
    ("the spec pins the stage", PINNED, [], "v1 v1 v1"),
    ("a person rolls the stage back", PROD, [(ROLLBACK, "v2", PROD_WIDE)], "v2 v2 v2"),
    ("one variant is rolled back", PROD, [(ROLLBACK, "v2", P)], "- v2 -"),
    ("another stage is rolled back", PROD, [(ROLLBACK, "v2", {"stage": "dev"})], "- - -"),
    ("a rollback goes before the spec", PINNED, [(ROLLBACK, "v2", PROD_WIDE)], "v2 v2 v2"),
    ("the rollback stands until what was promoted since may go", PINNED,
     [(ROLLBACK, "v2", PROD_WIDE), (PUBLISH, "v3", PROD_WIDE)], "v2>v3 v2>v3 v2>v3"),
    ("the spec is left when the rollback ends", PINNED,
     [(ROLLBACK, "v2", PROD_WIDE), (PUBLISH, "v4", PROD_WIDE)], "v1 v1 v1"),
    ("the later rollback counts", PROD,
     [(ROLLBACK, "v2", PROD_WIDE), (ROLLBACK, "v1", PROD_WIDE)], "v1 v1 v1"),
    ("the later rollback counts, the stage's over the variant's too", PROD,
     [(ROLLBACK, "v2", P), (ROLLBACK, "v1", PROD_WIDE)], "v1 v1 v1"),
    ("another revision is promoted later", PROD,
     [(ROLLBACK, "v1", PROD_WIDE), (PUBLISH, "v3", PROD_WIDE)], "v1>v3 v1>v3 v1>v3"),
    ("another revision is promoted later, and published since", PROD,
     [(ROLLBACK, "v1", PROD_WIDE), (PUBLISH, "v4", PROD_WIDE)], "- - -"),
    ("two are promoted later", PROD,
     [(ROLLBACK, "v1", PROD_WIDE), (PUBLISH, "v2", PROD_WIDE), (PUBLISH, "v3", PROD_WIDE)],
     "v1>v3 v1>v3 v1>v3"),
    ("another revision was promoted before", PROD,
     [(PUBLISH, "v3", PROD_WIDE), (ROLLBACK, "v1", PROD_WIDE)], "v1 v1 v1"),
    ("the revision that it went back to is promoted", PROD,
     [(ROLLBACK, "v1", PROD_WIDE), (PUBLISH, "v1", PROD_WIDE)], "v1 v1 v1"),
    ("another revision is promoted for one variant of a stage that goes back", PROD,
     [(ROLLBACK, "v1", PROD_WIDE), (PUBLISH, "v3", P)], "v1 v1 v1"),
    ("and for one that was sent further back by itself", PROD,
     [(ROLLBACK, "v2", PROD_WIDE), (ROLLBACK, "v1", P), (PUBLISH, "v3", P)], "v2 v1>v3 v2"),
    ("another revision is promoted for one of two", PROD,
     [(ROLLBACK, "v1", P_AND_Q), (PUBLISH, "v3", P)], "- v1>v3 v1"),
]  # fmt: skip


def standing(rows):
    """Decisions, one per minute, as they stand after all of them.

    What q has published carries out none about another revision than its own.
    """
    decisions = [
        decided(action, when=minute, revision=revision, **about)
        for minute, (action, revision, about) in enumerate(rows)
    ]
    waiting = frozenset(it.name for it in decisions if it.revision != "v4")
    p, q = HAVE
    q = replace(q, published=replace(q.published, waiting=waiting))
    return ActiveDecisions(decisions, at(30), (p, q))


def shown(pin):
    """`v1`, or `v1>v3` where v3 was promoted since and is not taken yet."""
    if pin is None:
        return "-"
    return f"{pin.revision}>{pin.until}" if pin.until else pin.revision


@pytest.mark.parametrize(("_", "rule", "rows", "expected"), ROWS, ids=map(itemgetter(0), ROWS))
def test_rollbacks_and_pins_select_the_variants_that_go_back(_, rule, rows, expected):
    rollbacks = standing(rows).rollbacks
    pins = [find_pin(rule, rollbacks, variant) for variant in ("", "p", "q")]
    assert [shown(pin) for pin in pins] == expected.split()


def test_a_rollback_dated_ahead_is_not_in_force_yet_and_one_that_is_over_is_no_more():
    ahead = decided(ROLLBACK, when=60, revision="v1", stage="prod")
    over = decided(ROLLBACK, revision="v1", stage="prod", expires=at(20))
    decisions = ActiveDecisions([over, ahead], at(30))
    assert decisions.rollbacks.find_pin("prod") is None
    assert [hold.reason for hold in decisions.holds] == ["FromTheFuture"]


def test_a_variant_written_by_hand_is_the_whole_of_its_stage():
    decisions = standing([(ROLLBACK, "v1", P)])
    pins = [find_pin(stage(""), decisions.rollbacks, variant) for variant in ("", "p")]
    assert [pin.revision for pin in pins if pin] == ["v1", "v1"]


#   sentence, decisions, is p skipped at v2, when p was last tried again at v2
ATTEMPTS = [
    ("nobody said anything", [], False, None),
    ("it was skipped", [(SKIP, "v2", P)], True, None),
    ("it was skipped with all of its stage", [(SKIP, "v2", PROD_WIDE)], True, None),
    ("it was skipped at another revision", [(SKIP, "v1", P)], False, None),
    ("another stage was skipped", [(SKIP, "v2", {"stage": "dev"})], False, None),
    ("it is tried again", [(RETRY, "v2", P)], False, 0),
    ("it is tried again twice", [(RETRY, "v2", P), (RETRY, "v2", PROD_WIDE)], False, 1),
    ("it was skipped and is tried again", [(SKIP, "v2", P), (RETRY, "v2", P)], False, 1),
    ("it was tried again and is skipped", [(RETRY, "v2", P), (SKIP, "v2", P)], True, 0),
    ("a rollback says nothing of it", [(ROLLBACK, "v2", P)], False, None),
    ("it was skipped, and went back to it", [(SKIP, "v2", P), (ROLLBACK, "v2", P)], False, None),
    (
        "it was skipped, and all of its stage went back",
        [(SKIP, "v2", P), (ROLLBACK, "v2", PROD_WIDE)],
        False,
        None,
    ),
    ("it went back, and was skipped", [(ROLLBACK, "v2", P), (SKIP, "v2", P)], True, None),
]


@pytest.mark.parametrize(
    ("_", "rows", "skipped", "retried"), ATTEMPTS, ids=map(itemgetter(0), ATTEMPTS)
)
def test_skips_and_retries_select_their_variants(_, rows, skipped, retried):
    decisions = standing(rows)
    assert (decisions.skipped("prod", "p", "v2") is not None) is skipped
    assert decisions.retried_at("prod", "p", "v2") == (None if retried is None else at(retried))


def test_a_decision_without_a_revision_covers_no_variant_and_is_held():
    decisions = [
        decided(action, stage="prod", name=str(action)) for action in (ROLLBACK, SKIP, RETRY)
    ]
    assert [hold.reason for hold in ActiveDecisions(decisions, at(30)).holds] == [
        "DecisionWaits"
    ] * 3
