"""The page about Kubernetes on a real kube-apiserver: its commands, and what its tables say."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_server import CONTROLLER, KubeServer
from pages import play_in_shell

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.kube.finalizers import FINALIZER

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "operations"
PAGE = (PAGES / "kubernetes.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(
    empty_server: KubeServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KubeServer, Path]]:
    """A cluster in which the commands of the page were run, and the directory of its reader."""
    root = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "deploy", root / "deploy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{empty_server.programs}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("KUBECONFIG", str(empty_server.kubeconfig))
        assert play_in_shell(PAGE, root) > 10
        yield empty_server, root


def read_pod(server: KubeServer) -> dict[str, Any]:
    """Return image, account, resources and records repository of the pod of the installation."""
    metadata = {"namespace": "fanout-system"}
    deployment = server.get(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**metadata, "name": "fanout-controller"},
        }
    )
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (name,) = (it["configMap"]["name"] for it in spec["volumes"] if "configMap" in it)
    configuration = server.get(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": name}}
    )
    (text,) = configuration["data"].values()
    return {
        "image": container["image"],
        "account": spec["serviceAccountName"],
        "resources": container["resources"],
        "records": FanoutConfiguration.model_validate(yaml.safe_load(text)).records.url,
    }


def test_the_page_s_commands_install_the_controller_and_bind_the_roles(
    installed: tuple[KubeServer, Path],
):
    server, root = installed
    pod = read_pod(server)
    assert f"system:serviceaccount:fanout-system:{pod['account']}" == CONTROLLER
    assert pod["records"] == "ssh://git@git.example.com/platform/fanout-records.git"
    assert pod["records"] in PAGE
    base = yaml.safe_load((root / "deploy" / "controller.yaml").read_text())
    assert pod["image"] != base["spec"]["template"]["spec"]["containers"][0]["image"]


def test_sizes_and_network_are_applied_after_them(installed: tuple[KubeServer, Path]):
    server, root = installed
    before = read_pod(server)
    sizing = (PAGES / "kubernetes-sizing.md").read_text(encoding="utf-8")
    assert play_in_shell(sizing, root) == 3
    sized = read_pod(server)
    assert sized.pop("resources")["limits"] == {"memory": "4Gi"}
    assert sized == {it: before[it] for it in sized}


def test_the_page_s_table_has_the_roles_of_the_base_with_their_verbs():
    rows = re.findall(r"^\| `(fanout-\w+)` \|.*\|([^|]*)\|$", PAGE, flags=re.MULTILINE)
    named = {name: set(re.findall(r"`(\w+)`", verbs)) for name, verbs in rows}
    documents = yaml.safe_load_all((ROOT / "deploy" / "roles.yaml").read_text(encoding="utf-8"))
    verbs = {
        it["metadata"]["name"]: {
            verb
            for rule in it["rules"]
            if rule["resources"] == ["upstreampolicies", "packagevariants"]
            for verb in rule["verbs"]
        }
        for it in documents
    }
    all_verbs = verbs["fanout-admin"]
    named["fanout-admin"] = all_verbs if "remove" in named["fanout-admin"] else set()
    assert named == verbs


def test_the_page_s_table_has_the_records_that_each_role_creates():
    rows = re.findall(r"^\| `(fanout-\w+)` \|([^|]*)\|", PAGE, flags=re.MULTILINE)
    # The administrator's row says that it may do what all of these may.
    named = {
        name: {f"{it.lower().rstrip('s')}s" for it in re.findall(r"create (\w+)", text)}
        for name, text in rows
        if name != "fanout-admin"
    }
    documents = yaml.safe_load_all((ROOT / "deploy" / "roles.yaml").read_text(encoding="utf-8"))
    created = {
        it["metadata"]["name"]: {
            resource
            for rule in it["rules"]
            if "create" in rule["verbs"]
            for resource in rule["resources"]
        }
        for it in documents
    }
    assert created.pop("fanout-admin") >= set().union(*named.values())
    assert named == created


def test_the_page_names_the_finalizer():
    assert f"`{FINALIZER}`" in PAGE
