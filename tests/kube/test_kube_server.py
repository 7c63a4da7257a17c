"""The kube-apiserver of the tests: who may do what, and that it ends with whoever started it.

That it stops and starts with its objects is in `test_controller.py`.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kube_server import GROUPS, KubeError, KubeServer
from servers.supervised import await_end, list_children

pytestmark = pytest.mark.kube

TESTS = Path(__file__).parents[1]
HOLD = """
import sys, time
from pathlib import Path
from kube_server import running_kube_server
with running_kube_server(Path(sys.argv[1]) / "kubernetes") as server:
    print(*(it.pid for it in server.supervisors), flush=True)
    time.sleep(600)
"""


def settings(namespace: str, name: str = "settings", **data: str):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.mark.parametrize("user", GROUPS)
def test_the_server_knows_who_asks_and_the_groups(kube_server: KubeServer, user: str):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    user_info = kube_server.create(review, by=user)["status"]["userInfo"]
    assert user_info["username"] == user
    assert set(user_info["groups"]) == {*GROUPS[user], "system:authenticated"}
    whoami = kube_server.kubectl("auth", "whoami", "-o", "jsonpath={.status..username}", by=user)
    assert whoami.stdout == user


def test_people_may_do_what_a_role_of_their_group_allows(
    kube_server: KubeServer, kube_namespace: str
):
    kube_server.create(settings(kube_namespace, color="green"))
    kube_server.kubectl("create", "role", "readers", "--verb=get", "--resource=configmaps",
                        namespace=kube_namespace)  # fmt: skip
    kube_server.kubectl("create", "rolebinding", "readers", "--role=readers", "--group=platform",
                        namespace=kube_namespace)  # fmt: skip
    read = kube_server.get(settings(kube_namespace), by="alice")
    assert read["data"] == {"color": "green"}
    with pytest.raises(KubeError) as denied:
        kube_server.get(settings(kube_namespace), by="carol")
    assert denied.value.status == 403
    assert denied.value.message == (
        'configmaps "settings" is forbidden: User "carol" cannot get resource "configmaps" in API '
        f'group "" in the namespace "{kube_namespace}"'
    )


def test_objects_are_applied_patched_listed_and_deleted(
    kube_server: KubeServer, kube_namespace: str
):
    kube_server.create(settings(kube_namespace, "first", color="green"))
    kube_server.apply(settings(kube_namespace, "second", color="blue"))
    kube_server.apply(settings(kube_namespace, "second", shape="round"), manager="others")
    kube_server.patch(settings(kube_namespace, "first"), {"data": {"color": "red"}})
    with pytest.raises(KubeError, match="already exists"):
        kube_server.create(settings(kube_namespace, "first"))
    data = {
        it["metadata"]["name"]: it.get("data")
        for it in kube_server.list("v1", "ConfigMap", kube_namespace)
    }
    assert data == {"first": {"color": "red"}, "second": {"color": "blue", "shape": "round"}}
    kube_server.delete(settings(kube_namespace, "first"))
    listed = kube_server.kubectl("get", "configmaps", "-o", "name", namespace=kube_namespace)
    assert listed.stdout == "configmap/second\n"


def test_the_servers_end_with_a_test_run_that_is_killed(tmp_path: Path):
    """SIGKILL runs no cleanup."""
    run = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        supervisors = run.stdout.readline().split()
        servers = [child for pid in supervisors for child in list_children(int(pid))]
        assert len(servers) == 2, "etcd and the API server"
        run.send_signal(signal.SIGKILL)
        run.wait()
    await_end([*supervisors, *servers])
