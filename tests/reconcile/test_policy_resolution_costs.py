"""Costly policies of one namespace, with real evaluations: passes of others, and of their own."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from reconcile.builders import EDGE_URL, NOW, parsed

from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.evaluation_budget import MAX_NEW_EXCESSES
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.memo.resolution_memo import ResolutionMemo
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

SPINS = "string(target.spec.many.all(a, target.spec.many.all(b, a + b >= {})))"
CHEAP = "[target.metadata.namespace].map(it, it + '-x')[0]"  # by a child process, too
CLUSTER = {"apiVersion": "example.com/v1", "kind": "Cluster"}


@pytest.fixture
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(WorkerLimits(cpu=60, wall_seconds=60), Counters()) as opened:
        yield opened


def policy(namespace: str, name: str, *texts: str) -> UpstreamPolicy:
    template = {
        "stage": "dev",
        "downstream": {"repository": "edge", "package": name},
        "labelExprs": [{"key": "abc"[it], "valueExpr": text} for it, text in enumerate(texts)],
    }
    made: UpstreamPolicy = parsed(
        "UpstreamPolicy",
        name,
        namespace=namespace,
        upstream={"repository": "edge", "package": "web", "revision": {"latest": True}},
        targets=[{"objectSelector": CLUSTER, "template": template}],
        stages=[{"name": "dev"}],
    )
    return made


def test_sound_policies_behind_costly_ones_of_their_namespace_have_their_values_in_later_passes(
    sandbox: ProcessSandbox,
):
    number = 3 * MAX_NEW_EXCESSES
    spaces = ("tenant", "zone")
    site = {**CLUSTER, "spec": {"many": list(range(1000))}}
    objects = {(it, "ams"): {**site, "metadata": {"name": "ams", "namespace": it}} for it in spaces}
    declared = DeclaredObjects(
        repositories=tuple(
            parsed("Repository", "edge", namespace=it, url=EDGE_URL) for it in spaces
        ),
        policies=(
            *(
                policy("tenant", f"costly-{it}", *(SPINS.format(-it - more) for more in (0, 99)))
                for it in range(number)
            ),
            *(policy(it, "sound", CHEAP) for it in spaces),
        ),
        objects=DeclaredObjects().objects.with_objects({("example.com", "Cluster"): objects}, {}),
    )
    budgets = BudgetStore()
    memo = ResolutionMemo(sandbox, budgets)

    def resolve(passes: int) -> dict[str, ResolvedPolicy]:
        """Make one more pass, over what is declared as before."""
        budgets.begin_pass(NOW + timedelta(seconds=passes), declared.declarations)
        return {it.title: it for it in memo.resolve(declared).policies}

    before = 0
    for passes in range(3):
        resolved = resolve(passes)
        assert [it.labels["a"] for it in resolved["zone/sound"].variants] == ["zone-x"]
        [failure] = resolved["tenant/sound"].failures
        assert failure.reason == "LimitExceeded"
        # The others of the policies that were first are no reason to wait any more.
        first = passes * MAX_NEW_EXCESSES
        names = ", ".join(
            f"UpstreamPolicy/costly-{it}" for it in range(first, first + MAX_NEW_EXCESSES)
        )
        assert (
            f"left for the next pass, because texts of {names} exceeded limits" in failure.problem
        )
        evaluations = sandbox._expressions._counters.read()["evaluations"]
        assert evaluations - before <= MAX_NEW_EXCESSES + 3
        before = evaluations
    resolved = resolve(3)
    assert [it.labels["a"] for it in resolved["tenant/sound"].variants] == ["tenant-x"]
