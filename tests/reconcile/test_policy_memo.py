"""The memo of policies that had nothing to do: what may change and what ends it."""

from datetime import timedelta

import pytest
from gates.worlds import facts
from reconcile.builders import EDGE_URL, NOW, UPSTREAM_URL, parsed, resolved, tags, variant_name

from fanout.api.results import Hold
from fanout.errors import Unavailable
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.observation.repository_state import Remote, RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus, parse_status
from fanout.reconcile.memo.policy_memo import PolicyMemo
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.ownership.path_ownership import (
    PathOwnershipIndex,
    PolicyPaths,
    find_former_repositories,
)
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.selection.policy_resolution import repository_key, repository_place
from fanout.values import replace

KEY = ("platform", "monitoring", True)
OTHER = RecordsKey("platform", "logging")
STATE = PolicyRecords(head="a" * 40)
REPOSITORY = parsed("Repository", "edge", url=EDGE_URL)
PLACE = repository_place(REPOSITORY)


def policy():
    name = variant_name("ams")
    return resolved("ams", repositories={name: REPOSITORY}, place_by_variant={name: PLACE})


POLICY = policy()
PROMOTION = parsed("PromotionPolicy", "automatic", policies=["*"])
EDGE = RepositoryState(remote=Remote(EDGE_URL), branch="refs/heads/main", refs={})
NOTHING = PolicyPlan(
    namespace="platform",
    name="monitoring",
    steps=(),
    actions=(),
    recorded=RecordedStatus(),
    planned=RecordedStatus(),
)


def ownership(policies=(POLICY,), records=None, repository_state=EDGE, stray=()):
    policy_paths = PolicyPaths.build(policies, records or {})
    index = PathOwnershipIndex(
        all_policies=policies,
        policy_paths=policy_paths,
        former_by_policy=find_former_repositories([POLICY], policies, policy_paths, ()),
    )
    return index.for_policy(POLICY, {repository_key(REPOSITORY): repository_state}, stray)


def policy_inputs(**fields):
    values = {
        "resolved_policy": POLICY,
        "policy_state": STATE,
        "path_ownership": ownership(),
        "listings": {UPSTREAM_URL: tags("v1")},
        "promotions": (),
        "is_sweep": True,
    }
    return PolicyInputs(**{**values, **fields})


def result(next_check=None, **fields):
    policy_facts = replace(facts([], []), now=NOW)
    decision = replace(evaluate_gates(policy_facts), next=next_check)
    return PolicyResult(
        resolved_policy=resolved("ams"),
        policy_state=STATE,
        facts=policy_facts,
        decision=decision,
        **fields,
    )


def memo(stored, plan=NOTHING, inputs=None):
    made = PolicyMemo()
    made.begin_pass([KEY])
    made.store(inputs or policy_inputs(), stored, plan, publish=True)
    return made


def find(made, inputs=None, later=timedelta(), *, publish=True):
    made.begin_pass([KEY])
    return made.find_result(inputs or policy_inputs(), NOW + later, publish=publish)


def records(path):
    status = parse_status({"variant/x": {"repository": PLACE, "path": path}})
    return {OTHER: PolicyRecords(head="b" * 40, status=status)}


EQUAL = [
    ("nothing changed", {}),
    ("an equal listing of upstream", {"listings": {UPSTREAM_URL: tags("v1")}}),
    ("one more repository", {"listings": {UPSTREAM_URL: tags("v1"), "other": tags()}}),
    ("another policy at another path", {"path_ownership": ownership(records=records("x"))}),
]
CHANGED = [
    ("resolved again", {"resolved_policy": policy()}),
    ("another tag", {"listings": {UPSTREAM_URL: tags("v1", "v2")}}),
    ("a tag that moved", {"listings": {UPSTREAM_URL: tags(v1="e" * 40)}}),
    ("upstream does not answer", {"listings": {UPSTREAM_URL: Unavailable("no answer")}}),
    ("another state", {"path_ownership": ownership(repository_state=replace(EDGE, head="f" * 40))}),
    ("a draft elsewhere", {"path_ownership": ownership(stray=(replace(EDGE, head="e" * 40),))}),
    (
        "another policy at its path",
        {"path_ownership": ownership(records=records(POLICY.variants[0].path))},
    ),
    ("a record of its own", {"policy_state": PolicyRecords(head="d" * 40)}),
    ("no sweep", {"is_sweep": False}),
    ("a dependency", {"dependency_holds": (Hold("DependencyPending", "other is Verifying"),)}),
    ("a promotion policy", {"promotions": (PROMOTION,)}),
    ("a promotion policy that cannot be read", {"all_promotions_read": False}),
    ("a file that cannot be read", {"removal_doubt": "it may declare a target"}),
]


@pytest.mark.parametrize("inputs", [row[1] for row in EQUAL], ids=[row[0] for row in EQUAL])
def test_a_result_is_reused_where_its_policy_depends_on_the_same(inputs):
    stored = result()
    assert find(memo(stored), policy_inputs(**inputs)) is stored


@pytest.mark.parametrize("inputs", [row[1] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_a_result_is_not_reused_with_other_inputs_of_its_policy(inputs):
    assert find(memo(result()), policy_inputs(**inputs)) is None


def test_a_result_depends_on_what_its_own_secret_shows_of_upstream():
    upstream = parsed("Repository", "blueprints", url=UPSTREAM_URL, secretRef={"name": "token"})
    private = replace(POLICY, upstream=upstream)

    def inputs(*names):
        listings = {UPSTREAM_URL: tags("v1"), build_remote(upstream).key: tags(*names)}
        return policy_inputs(resolved_policy=private, listings=listings)

    stored = result()
    made = memo(stored, inputs=inputs("v1"))
    assert find(made, inputs("v1")) is stored
    assert find(made, inputs("v1", "v2")) is None


def test_a_result_is_not_reused_in_another_kind_of_pass():
    assert find(memo(result()), publish=False) is None


def test_a_result_is_not_reused_where_a_declared_object_reads_otherwise():
    made = memo(result())
    made.drop([KEY])
    assert find(made) is None


def test_no_policy_is_memoized_while_a_repository_fails():
    failing = ownership(repository_state=replace(EDGE, failure=Unavailable("no answer")))
    inputs = policy_inputs(path_ownership=failing)
    assert find(memo(result(), inputs=inputs), inputs) is None


HOUR = timedelta(hours=1)
CLOCKS = [
    ("before its next check", NOW + HOUR, HOUR / 2, True),
    ("at its next check", NOW + HOUR, HOUR, False),
    ("much later without one", None, 1000 * HOUR, True),
    ("after the clock was set back", None, -HOUR, False),
]


@pytest.mark.parametrize(
    ("next_check", "later", "reused"), [row[1:] for row in CLOCKS], ids=[row[0] for row in CLOCKS]
)
def test_a_result_holds_until_its_next_check(next_check, later, reused):
    assert (find(memo(result(next_check)), later=later) is not None) == reused


def test_a_result_with_work_or_a_failure_is_not_kept():
    status = replace(RecordedStatus(), revisions={"v1": "a" * 40})
    assert find(memo(result(), replace(NOTHING, planned=status))) is None
    assert find(memo(result(), None)) is None
    assert find(memo(result(error=Unavailable("no answer")))) is None


def test_a_policy_that_is_gone_is_forgotten():
    made = memo(result())
    made.begin_pass([])
    assert made.is_complete()
    assert find(made) is None
