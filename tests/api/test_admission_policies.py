"""The admission policies as `fanout crds --admission` prints them, and their page."""

import re
from pathlib import Path

from pages import run_line

from fanout.api.admission_policies import (
    DEFAULT_SERVICE_ACCOUNT,
    VERBS,
    VERBS_BY_ACTION,
    build_admission_policies,
)
from fanout.api.gate_vocabulary import Action

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "admission.md"


def test_each_action_needs_verbs_that_the_page_names():
    rows = re.findall(r"^\| Decision `(\w+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {action: tuple(re.findall(r"`(\w+)`", verbs)) for action, verbs in rows}
    assert listed == {str(action): verbs for action, verbs in VERBS_BY_ACTION.items()}
    assert set(VERBS_BY_ACTION) == set(Action)
    assert {verb for verbs in VERBS_BY_ACTION.values() for verb in verbs} < set(VERBS)


def test_each_policy_fails_closed_and_its_binding_denies():
    documents = build_admission_policies(DEFAULT_SERVICE_ACCOUNT)
    policies = [it for it in documents if it["kind"] == "ValidatingAdmissionPolicy"]
    assert [it["metadata"]["name"] for it in policies] == [
        "records.fanout.dev",
        "packagevariants.fanout.dev",
    ]
    assert {it["spec"]["failurePolicy"] for it in policies} == {"Fail"}
    bindings = [it["spec"] for it in documents if it not in policies]
    assert bindings == [
        {"policyName": it["metadata"]["name"], "validationActions": ["Deny"]} for it in policies
    ]


def test_the_controller_may_have_another_account():
    code, output = run_line("fanout crds --admission --service-account gitops/rollouts")
    assert code == 0
    assert "== 'system:serviceaccount:gitops:rollouts'" in output
    assert "fanout-controller" not in output


def test_a_service_account_is_refused_where_it_is_none_or_has_no_effect():
    code, output = run_line('fanout crds --admission --service-account "x\'y"')
    assert (code, output.count("is not a service account")) == (1, 1)
    code, output = run_line("fanout crds --service-account a/b")
    assert (code, output.count("has no effect without --admission")) == (1, 1)
