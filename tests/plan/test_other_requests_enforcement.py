"""Whether a branch requires fanout's status, from the rules that a plain writer may read."""

import pytest

from fanout.plan.observation.observed_request import BranchFacts
from fanout.plan.pull_requests.other_requests import check_enforcement


def rules(*contexts: str, protected: bool = True, push: bool = False) -> BranchFacts:
    return BranchFacts(
        commit="1" * 40,
        is_protected=protected,
        required_contexts=frozenset(contexts),
        may_push=push,
    )


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
    enforcement = check_enforcement("main", context, facts)
    assert (enforcement.not_enforced, enforcement.message) == (status, sentence.format(context))


def test_patterns_that_fanout_cannot_compare():
    enforcement = check_enforcement("main", "fanout", rules("fan[o]ut", "ci"))
    assert enforcement.not_enforced == "Unknown"
    assert enforcement.message == (
        "the branch main requires statuses by patterns (ci, fan[o]ut); add the status fanout by its"
        " name"
    )
