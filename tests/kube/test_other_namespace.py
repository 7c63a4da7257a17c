"""An installation into another namespace, and the connection of a pod there."""

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml
from kube.record_fleet import wait_until
from kube_server import TLS, KubeServer
from kubernetes.config import incluster_config
from pages import parts, run_line, write

from fanout.errors import Denied, InvalidInput
from fanout.kube import api_connection
from fanout.kube.api_connection import ApiConnection, open_pod_connection, read_own_user
from fanout.kube.pending_records import AdmissionCheck

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "operations" / "kubernetes.md").read_text(encoding="utf-8")
ACCOUNT = "system:serviceaccount:gitops:fanout-controller"


@pytest.fixture
def shell(empty_server: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of a reader, with the base and kubectl; it is the working directory."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{empty_server.programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(empty_server.kubeconfig))
    return tmp_path


@pytest.fixture
def pod(empty_server: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory with the files of a service account, as this process reads them in a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    shutil.copy(TLS / "certificate.pem", folder / "ca.crt")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(folder / "ca.crt"))
    monkeypatch.setattr(api_connection, "_POD_NAMESPACE", folder / "namespace")
    host, _, port = empty_server.url.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    return folder


def mount_token(server: KubeServer, pod: Path, namespace: str, account: str) -> None:
    """Write the files of an account, as the kubelet does."""
    token = server.kubectl("create", "token", account, namespace=namespace).stdout
    (pod / "token").write_text(token)
    (pod / "namespace").write_text(namespace)


def run(line: str) -> None:
    code, printed = run_line(line)
    assert code == 0, printed


def install(root: Path) -> None:
    """Run the commands of the section about another namespace."""
    section = PAGE.partition("### Another namespace\n")[2].partition("\n## ")[0]
    for what, name, content in parts(PAGE.partition("## What the controller")[0]):
        if what == "write":
            write(root, name, content)
    (commands,) = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    for line in commands.splitlines():
        if ">" in line:
            command, _, path = line.partition(" > ")
            code, printed = run_line(command)
            assert code == 0, printed
            write(root, path, printed)
        else:
            run(line)


def await_admission(connection: ApiConnection) -> None:
    """Wait until the account may read the admission policies."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/records.fanout.dev"

    def may_read() -> bool:
        try:
            connection.get(path)
        except Denied:
            return False
        return True

    wait_until(may_read, "the account may not read the admission policies")


def test_the_page_installs_into_another_namespace(empty_server, shell, pod):
    install(shell)
    present = empty_server.kubectl("get", "deployments,serviceaccounts", "-A", "-o", "yaml").stdout
    assert {
        it["metadata"]["namespace"]
        for it in yaml.safe_load(present)["items"]
        if it["metadata"]["name"] == "fanout-controller"
    } == {"gitops"}
    mount_token(empty_server, pod, "gitops", "fanout-controller")
    connection = open_pod_connection()
    await_admission(connection)
    problem, since = AdmissionCheck(connection).read()
    assert problem is None
    assert since is not None


def test_the_remedy_names_the_account_of_the_controller(empty_server, shell, pod):
    install(shell)
    mount_token(empty_server, pod, "gitops", "fanout-controller")
    connection = open_pod_connection()
    await_admission(connection)
    # The policies of the base, which are for the account in fanout-system.
    run("kubectl apply --server-side --force-conflicts -f deploy/admission.yaml")
    problem, _ = AdmissionCheck(connection).read()
    assert problem is not None
    assert "differs from the one of this version of fanout" in problem.problem
    (command,) = re.findall("`fanout ([^|]+) [|] ([^`]+)`", problem.remedy)
    code, printed = run_line(f"fanout {command[0]}")
    assert code == 0, printed
    empty_server.kubectl(*command[1].split()[1:], stdin=printed)
    assert AdmissionCheck(connection).read()[0] is None


def test_a_pod_connects_as_its_service_account(empty_server, pod):
    empty_server.kubectl("create", "namespace", "pods")
    empty_server.kubectl("create", "serviceaccount", "runner", namespace="pods")
    mount_token(empty_server, pod, "pods", "runner")
    connection = open_pod_connection()
    user = read_own_user(connection)
    assert user.name == "system:serviceaccount:pods:runner"
    assert "system:serviceaccounts:pods" in user.groups
    assert api_connection.read_pod_namespace() == "pods"
    with pytest.raises(Denied):
        connection.get("/api/v1/secrets")


@pytest.mark.parametrize(
    ("missing", "problem"),
    [("token", "token file does not exist"), ("ca.crt", "certification file does not exist")],
)
def test_a_pod_without_a_file_of_its_account_has_no_connection(empty_server, pod, missing, problem):
    (pod / "token").write_text("token")
    (pod / missing).unlink()
    with pytest.raises(InvalidInput, match=problem) as raised:
        open_pod_connection()
    assert "--kubeconfig" in raised.value.remedy
    assert api_connection.read_pod_namespace() == ""
