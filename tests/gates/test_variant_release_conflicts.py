"""Drafts in which upstream and local changed the same: who may let them go."""

from operator import itemgetter

import pytest
from gates.worlds import BY_HAND, OK, PROD, at, decided, prod, published, reasons_of

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

V1 = {"revision": "v1", "stage": "prod"}
TREE = frozenset({"tree-v1"})
ACCEPTS = [
    ("nobody has decided", {}, False),
    ("a promotion of the stage", {"trees": TREE}, False),
    ("one that names the variant", {"trees": TREE, "variants": ("p",)}, False),
    ("one that accepts conflicts of the whole stage", {"trees": TREE, "accepts": True}, False),
    ("accepted for it", {"trees": TREE, "variants": ("p",), "accepts": True}, True),
    (
        "accepted for another variant",
        {"trees": TREE, "variants": ("q",), "accepts": True},
        False,
    ),
    (
        "accepted for a draft that was rewritten since",
        {"trees": frozenset({"tree-v1-old"}), "variants": ("p",), "accepts": True},
        False,
    ),
    ("accepted before there was a draft", {"variants": ("p",), "accepts": True}, False),
    (
        "accepted until an instant that is over",
        {"trees": TREE, "variants": ("p",), "accepts": True, "expires": at(9)},
        False,
    ),
]


@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "by hand"])
@pytest.mark.parametrize(("_", "is_accepted", "goes"), ACCEPTS, ids=map(itemgetter(0), ACCEPTS))
def test_a_draft_with_merge_conflicts_is_published_once_a_person_has_accepted_them(
    _, is_accepted, goes, automatic
):
    about = dict(is_accepted)
    accepts = about.pop("accepts", False)
    decision = decided(Action.PUBLISH, **V1, **about, accept_conflicts=accepts)
    policy_facts = prod(
        OK, *([decision] if is_accepted else []), rule=PROD if automatic else BY_HAND
    )
    d, p = policy_facts.variants
    policy_facts = replace(
        policy_facts, variants=(d, replace(p, draft=replace(p.draft, conflict_count=2)))
    )
    evaluation = evaluate_gates(policy_facts)
    assert evaluation.variants["p"].publish is goes
    assert (evaluation.variants["p"].state is VariantState.HELD) is not goes
    if not goes:
        assert reasons_of(evaluation, "p")[0] == "MergeConflict"
        assert (
            evaluation.variants["p"].holds[0].message == "2 undecided merge conflicts in its draft"
        )


def test_a_conflict_holds_nobody_else_and_no_rollback():
    policy_facts = prod(OK, decided(Action.PUBLISH, **V1, trees=TREE))
    d, p = policy_facts.variants
    held = replace(p, name="o", draft=replace(p.draft, conflict_count=1))
    evaluation = evaluate_gates(replace(policy_facts, variants=(d, held, p)))
    assert [it.name for it in evaluation.variants.values() if it.publish] == ["p"]
    back = replace(p, published=published("v2", 2), draft=replace(p.draft, conflict_count=1))
    rolled = decided(Action.ROLLBACK, when=3, stage="prod", revision="v1")
    facts_then = replace(prod(OK, rolled, policy_fields={"revisions": "v1 v2"}), variants=(d, back))
    assert evaluate_gates(facts_then).variants["p"].publish
