"""A controller whose admission policies are deleted, and applied again."""

from functools import partial

import pytest
from kube.record_fleet import decision, is_refused, wait_until
from kube.tenants import DEPLOY, HASTY_ADMISSION, await_handled, condition, request_pass

pytestmark = pytest.mark.kube


def test_every_policy_says_that_nothing_proves_authors(tenant, begin):
    first, second = tenant(), tenant()
    server = first.server
    controller = begin(first, program=("-c", HASTY_ADMISSION))
    for twin in (first, second):
        controller.until(twin.fleet.repos["edge"].tags)
        await_handled(controller, twin, "first")
        assert not condition(twin, "UpstreamPolicy", "monitoring", "AdmissionMissing")
    server.kubectl("delete", "validatingadmissionpolicybinding", "records.fanout.dev")
    try:
        for twin in (first, second):
            request_pass(twin, "second")
            missing = partial(condition, twin, "UpstreamPolicy", "monitoring", "AdmissionMissing")
            controller.until(missing)
            assert "ValidatingAdmissionPolicyBinding records.fanout.dev" in missing()["message"]
            assert "fanout crds --admission" in missing()["message"]
        forged = decision(first.namespace, by="bob")
        wait_until(lambda: not is_refused(server, forged), "the policies are still in force")
        created = server.create(forged, by="alice")
        controller.until(lambda: server.get(created).get("status"))
    finally:
        line = ("apply", "--server-side", "--force-conflicts", "-f")
        server.kubectl(*line, str(DEPLOY / "admission.yaml"))
    for number, twin in enumerate((first, second)):
        missing = partial(condition, twin, "UpstreamPolicy", "monitoring", "AdmissionMissing")

        def is_over(twin=twin, missing=missing) -> bool:
            nonlocal number
            number += 1
            request_pass(twin, f"again {number}")
            return not missing()

        controller.until(is_over)
    wait_until(lambda: is_refused(server, decision(first.namespace, by="bob")), "not in force")
    # What was said meanwhile never counts, and what is said now does.
    first.fleet.release("v2")
    request_pass(first, "third")
    controller.until(lambda: "sites/ams/v2" in first.fleet.repos["edge"].tags())
    assert "record" not in server.get(created)["status"]
    kept = server.create(decision(first.namespace), by="alice")
    controller.until(lambda: server.get(kept).get("status", {}).get("record"))
    first.fleet.release("v3")
    await_handled(controller, first, "fourth")
    assert "sites/ams/v3" not in first.fleet.repos["edge"].tags()
    assert controller.end() == 0
