"""Whether a branch requires fanout's status, from the rules that a plain writer may read."""

import pytest

from fanout.plan import plan_wording
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


UNREQUIRED = plan_wording.describe_unrequired_status
REQUIRED = plan_wording.describe_required_status


@pytest.mark.parametrize(
    ("facts", "context", "status", "describe"),
    [
        (rules(protected=False, push=True), "fanout", "True",
         plan_wording.describe_unprotected_branch),
        (rules(), "fanout", "True", UNREQUIRED),
        (rules("ci"), "fanout", "True", UNREQUIRED),
        (rules("fanout"), "fanout", "False", REQUIRED),
        (rules("ci", "fan*"), "fanout", "False", REQUIRED),
        (rules("*"), "fanout/two", "False", REQUIRED),
        (rules("fanout"), "fanout/two", "True", UNREQUIRED),
        (rules("Fanout"), "fanout", "True", UNREQUIRED),
        (rules("fan[o]ut", "fanout"), "fanout", "False", REQUIRED),
        (rules("fanout", push=True), "fanout", "Unknown", plan_wording.describe_allowed_push),
    ],
)  # fmt: skip
def test_rules_that_require_the_status_or_not(facts, context, status, describe):
    enforcement = check_enforcement("main", context, facts)
    assert (enforcement.not_enforced, enforcement.message) == (status, describe("main", context))


def test_patterns_that_fanout_cannot_compare():
    enforcement = check_enforcement("main", "fanout", rules("fan[o]ut", "ci"))
    assert enforcement.not_enforced == "Unknown"
    assert enforcement.message == plan_wording.describe_required_patterns(
        "main", "fanout", ["ci", "fan[o]ut"]
    )
