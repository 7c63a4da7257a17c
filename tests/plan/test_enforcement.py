"""Whether a branch requires fanout's status, from the rules that a plain writer may read."""

import pytest

from fanout.plan.observation.observed_request import BranchFacts
from fanout.plan.pull_requests.enforcement import check_enforcement


def rules(*contexts: str, protected: bool = True, push: bool = False) -> BranchFacts:
    return BranchFacts(
        commit="1" * 40,
        is_protected=protected,
        required_contexts=frozenset(contexts),
        required_approvals=0,
        may_push=push,
        may_merge=True,
    )


@pytest.mark.parametrize(
    ("facts", "context", "status", "words"),
    [
        (rules(protected=False, push=True), "fanout", "True", "main is not protected"),
        (rules(), "fanout", "True", "does not require the status fanout;"),
        (rules("ci"), "fanout", "True", "does not require the status fanout;"),
        (rules("fanout"), "fanout", "False", "main requires the status fanout"),
        (rules("ci", "fan*"), "fanout", "False", "main requires the status fanout"),
        (rules("*"), "fanout/two", "False", "main requires the status fanout/two"),
        (rules("fanout"), "fanout/two", "True", "does not require the status fanout/two;"),
        (rules("Fanout"), "fanout", "True", "does not require the status fanout;"),
        (rules("fan[o]ut"), "fanout", "Unknown", "by patterns (fan[o]ut)"),
        (rules("fan[o]ut", "fanout"), "fanout", "False", "main requires the status fanout"),
        (rules("fanout", push=True), "fanout", "Unknown", "may push to it"),
    ],
)
def test_rules_that_require_the_status_or_not(facts, context, status, words):
    found = check_enforcement("main", context, facts)
    assert found.not_enforced == status
    assert words in found.sentence
