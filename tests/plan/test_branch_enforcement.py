"""Whether a branch requires fanout's status, from the rules that a plain writer may read."""

import pytest

from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.pull_requests.branch_enforcement import check_enforcement, requires_status
from fanout.values import replace


def rules(*contexts: str, protected: bool = True, push: bool = False, app: str = "") -> BranchFacts:
    return BranchFacts(
        is_protected=protected,
        required_statuses=frozenset(RequiredStatus(it, app) for it in contexts),
        may_push=push,
    )


FANOUT = ForgeIdentity("fanout-app[bot]", frozenset({"fanout-app"}))
UNREQUIRED = (
    "the branch main does not require the status {}; add it to the statuses that its protection"
    " requires"
)
REQUIRED = "the branch main requires the status {}"


@pytest.mark.parametrize(
    ("facts", "context", "status", "sentence"),
    [
        (rules(protected=False, push=True), "fanout", "True",
         ("the branch main is not protected: who may write to the repository can merge and push"
         " without the status {}")),
        (rules(), "fanout", "True", UNREQUIRED),
        (rules("ci"), "fanout", "True", UNREQUIRED),
        (rules("fanout"), "fanout", "False", REQUIRED),
        (rules("ci", "fan*"), "fanout", "False", REQUIRED),
        (rules("*"), "fanout/two", "False", REQUIRED),
        (rules("fanout"), "fanout/two", "True", UNREQUIRED),
        (rules("Fanout"), "fanout", "True", UNREQUIRED),
        (rules("fan[o]ut", "fanout"), "fanout", "False", REQUIRED),
        (rules("fanout", push=True), "fanout", "Unknown",
         ("the branch main requires the status {} for merging, but fanout's account, and perhaps"
         " others, may push to it; forbid pushes to it")),
    ],
)  # fmt: skip
def test_rules_that_require_the_status_or_not(facts, context, status, sentence):
    enforcement = check_enforcement("main", context, facts, FANOUT)
    assert (enforcement.not_enforced, enforcement.message) == (status, sentence.format(context))


def test_patterns_that_fanout_cannot_compare():
    enforcement = check_enforcement("main", "fanout", rules("fan[o]ut", "ci"), FANOUT)
    assert enforcement.not_enforced == "Unknown"
    assert enforcement.message == (
        "the branch main requires statuses by patterns (ci, fan[o]ut); add the status fanout by its"
        " name"
    )


HIDDEN = (
    "{} is hidden from fanout's account; let it read the rules of the branch, or see to it that"
    " they require the status fanout"
)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            replace(rules(), is_protected=None),
            HIDDEN.format("whether the branch main is protected"),
        ),
        (
            replace(rules(), required_statuses=None),
            HIDDEN.format("which statuses the branch main requires"),
        ),
        (
            replace(rules("fanout"), may_push=None),
            (
                "the branch main requires the status fanout for merging, but who may push to it is"
                " hidden from fanout's account; forbid pushes to it"
            ),
        ),
    ],
    ids=["protection", "statuses", "pushes"],
)
def test_a_hidden_rule_is_named_and_is_no_answer(facts, sentence):
    enforcement = check_enforcement("main", "fanout", facts, FANOUT)
    assert (enforcement.not_enforced, enforcement.message) == ("Unknown", sentence)


def test_a_status_of_another_app_is_not_the_status_of_fanout():
    facts = rules("fanout", app="ci-app")
    enforcement = check_enforcement("main", "fanout", facts, FANOUT)
    assert (enforcement.not_enforced, enforcement.message) == (
        "True",
        (
            "the branch main requires the status fanout of ci-app, which fanout's account is not:"
            " no status of fanout counts; require it of fanout's account"
        ),
    )
    own = check_enforcement("main", "fanout", rules("fanout", app="Fanout-App"), FANOUT)
    assert own.not_enforced == "False"


def test_statuses_that_are_hidden_are_not_set_on_requests_of_others():
    assert not requires_status(None, "fanout", FANOUT)
