"""The page about Kubernetes on a real kube-apiserver: its commands, and what its tables say."""

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml
from kube_server import CONTROLLER, running_kube_server
from pages import play_in_shell

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.kube.finalizers import FINALIZER

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "operations" / "kubernetes.md").read_text(encoding="utf-8")


def test_its_commands_install_the_controller_and_bind_the_roles(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    with running_kube_server(tmp_path / "kubernetes") as server:
        monkeypatch.setenv("PATH", f"{server.programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        assert play_in_shell(PAGE, tmp_path) > 10
        deployment = server.get(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "fanout-controller", "namespace": "fanout-system"},
            }
        )
        spec = deployment["spec"]["template"]["spec"]
        assert f"system:serviceaccount:fanout-system:{spec['serviceAccountName']}" == CONTROLLER
        (name,) = (it["configMap"]["name"] for it in spec["volumes"] if "configMap" in it)
        configuration = server.get(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "fanout-system"},
            }
        )
        (text,) = configuration["data"].values()
        records = FanoutConfiguration.model_validate(yaml.safe_load(text)).records
        assert records in PAGE


def test_its_table_has_the_roles_of_the_base_with_their_verbs():
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


def test_its_table_says_who_creates_which_records():
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


def test_it_names_the_finalizer():
    assert f"`{FINALIZER}`" in PAGE
