"""The pages for operators of a cluster, on a real kube-apiserver."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from fleet import Fleet
from kube.tenants import (
    HASTY_ADMISSION,
    OWN,
    BeginController,
    CreateTenant,
    condition,
    exists,
    own,
)
from kube.twin import Twin
from kube_server import KubeServer
from pages import parts
from run_process import PATIENCE

from fanout.git.mirror import create_bare

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "operations"
HASTY = ("-c", HASTY_ADMISSION)


def read_page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def command_of(page: str, words: str) -> str:
    """Return the one line of a block that has these words."""
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", read_page(page), flags=re.DOTALL)
    (line,) = (it for block in blocks for it in block.splitlines() if words in it)
    return line


def run_as(twin: Twin, line: str, by: str = "admin") -> str:
    """Run a line of a page as a user, in the namespace and about the policy of the fleet."""
    line = line.replace("-n shop", f"-n {twin.namespace}").replace("POLICY", "monitoring")
    server = twin.server
    configuration = server.kubeconfig.read_text().replace(
        '"current-context": "admin"', f'"current-context": "{by}"'
    )
    kubeconfig = twin.fleet.root / f"kubeconfig-{by}"
    kubeconfig.write_text(configuration)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=twin.fleet.root,
        env={
            "PATH": f"{server.programs}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(twin.fleet.root),
        },
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def packages(twin: Twin) -> list[str]:
    return [it for it in twin.fleet.repos["edge"].files() if it.endswith("/Kptfile")]


def delete_namespace(twin: Twin) -> None:
    """Delete the namespace and its objects: no controller manager does it here."""
    twin.server.kubectl("delete", "namespace", twin.namespace, "--wait=false")
    path = f"/apis/{OWN}/namespaces/{twin.namespace}"
    for kind in ("upstreampolicies", "promotionpolicies", "repositories"):
        twin.server.ask("DELETE", f"{path}/{kind}")


@pytest.mark.parametrize("words", ['"deletionPolicy": "Orphan"', '"finalizers": null'])
def test_a_namespace_that_is_deleted_goes_and_its_packages_stay(
    tenant: CreateTenant, begin: BeginController, words: str
):
    twin = tenant()
    controller = begin(twin, program=HASTY)
    controller.until(lambda: packages(twin))
    published = packages(twin)
    delete_namespace(twin)
    controller.until(
        lambda: condition(twin, "UpstreamPolicy", "monitoring", "Stalled").get("status") == "True"
    )
    removal = twin.ask("remove", "monitoring", "--all-gone", "--reason", "it closes")
    assert removal.code == 2
    assert "has no Repository" in removal.err
    # The status advises nothing that does not work in such a namespace.
    shown = condition(twin, "UpstreamPolicy", "monitoring", "Ready")
    assert shown["reason"] == "UnknownRepository"
    assert "fanout remove" not in shown["message"]
    [advised] = re.findall(r"`(kubectl .*?)`", shown["message"])
    is_advised = "deletionPolicy" in words
    run_as(twin, advised if is_advised else command_of("kubernetes-troubleshooting", words))
    controller.until(lambda: not exists(twin, "UpstreamPolicy", "monitoring"))
    assert packages(twin) == published


def test_a_policy_that_lost_its_finalizer_goes_on_when_it_is_created_again(
    tenant: CreateTenant, begin: BeginController
):
    twin = tenant()
    controller = begin(twin, program=HASTY)
    controller.until(lambda: packages(twin))
    twin.server.delete(own(twin, "UpstreamPolicy", "monitoring"))
    run_as(twin, command_of("kubernetes-troubleshooting", '"finalizers": null'))
    controller.until(lambda: not exists(twin, "UpstreamPolicy", "monitoring"))
    before = twin.fleet.repos["edge"].refs()
    twin.apply()
    controller.until(
        lambda: (
            condition(twin, "UpstreamPolicy", "monitoring", "Ready").get("reason") == "Progressing"
        )
    )
    assert twin.fleet.repos["edge"].refs() == before


def test_a_deleted_policy_goes_when_somebody_confirms_it(
    tenant: CreateTenant, begin: BeginController
):
    twin = tenant()
    controller = begin(twin, program=HASTY)
    controller.until(lambda: packages(twin))
    published = packages(twin)
    twin.server.delete(own(twin, "UpstreamPolicy", "monitoring"))
    ready = partial(condition, twin, "UpstreamPolicy", "monitoring", "Ready")
    controller.until(lambda: ready().get("reason") == "TooManyRemovals")
    command = f"fanout remove monitoring --all-gone --reason WHY -n {twin.namespace}"
    assert ready()["message"].endswith(f"; to confirm, run `{command}`")
    assert packages(twin) == published
    # The page has the same command, with a context.
    page = command_of("kubernetes", "--all-gone")
    assert sorted(page.replace("POLICY", "monitoring").split()) == sorted(
        [*command.replace(twin.namespace, "shop").split(), "--context", "production"]
    )
    removal = twin.ask("remove", "monitoring", "--all-gone", "--reason", "it closes")
    assert removal.code == 0, removal.err
    controller.until(lambda: not exists(twin, "UpstreamPolicy", "monitoring"))
    assert packages(twin) == []


def test_an_approval_needs_kubectl_alone(tenant: CreateTenant, begin: BeginController):
    twin = tenant()
    approval = {"name": "signed-off", "approval": {"atLeast": 1, "from": ["sre"]}}
    twin.server.patch(
        own(twin, "UpstreamPolicy", "monitoring"),
        {"spec": {"stages": [{"name": "dev", "requires": [approval]}, {"name": "prod"}]}},
    )
    sre = {"group": "sre", "subjects": ["user:alice"]}
    twin.server.patch(own(twin, "PromotionPolicy", "everything"), {"spec": {"approvers": [sre]}})
    controller = begin(twin, program=HASTY)
    line = command_of("kubernetes-secrets", "kubectl get packagevariants.fanout.dev")
    controller.until(lambda: "drafts/" in run_as(twin, line, by="alice"))
    branch, tree = run_as(twin, line, by="alice").split()
    path = branch.removeprefix("drafts/default/").rpartition("/")[0]
    assert tree == twin.fleet.repos["edge"].git("rev-parse", f"{branch}:{path}").strip()
    (text,) = (it for _, name, it in parts(read_page("kubernetes-secrets")) if "approval" in name)
    manifest = yaml.safe_load(text)
    manifest["metadata"] |= {
        "namespace": twin.namespace,
        "annotations": {"fanout.dev/by": "alice"},
    }
    manifest["spec"]["trees"] = [tree]
    (twin.fleet.root / "work").mkdir()
    (twin.fleet.root / "work" / "approval.yaml").write_text(yaml.safe_dump(manifest))
    run_as(twin, command_of("kubernetes-secrets", "kubectl create -f work"), by="alice")
    controller.until(lambda: packages(twin))


def test_a_suspension_of_everything_is_not_about_later_policies(
    tenant: CreateTenant, begin: BeginController
):
    twin = tenant()
    controller = begin(twin, program=HASTY)
    assert "`fanout suspend --all -n shop" in read_page("kubernetes-troubleshooting")
    assert twin.ask("suspend", "--all", "--reason", "an incident").code == 0
    controller.until(
        lambda: condition(twin, "UpstreamPolicy", "monitoring", "Suspended").get("status") == "True"
    )
    policy = twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))
    twin.server.create({**own(twin, "UpstreamPolicy", "later"), "spec": policy["spec"]})
    controller.until(lambda: condition(twin, "UpstreamPolicy", "later", "Ready"))
    assert not condition(twin, "UpstreamPolicy", "later", "Suspended")


def test_a_server_without_any_definition_is_named(empty_server: KubeServer, tmp_path: Path):
    fleet = Fleet.build(tmp_path / "fleet")
    line = ("--kubeconfig", str(empty_server.kubeconfig), "--context", "admin")
    problems = fleet.run("plan", *line, "--records", str(tmp_path), "--new-records", files=False)
    assert problems.code != 0
    assert "does not serve kind Repository of group fanout.dev" in " ".join(problems.err.split())


def test_a_pod_that_exits_has_the_code_of_the_table(empty_server: KubeServer, tmp_path: Path):
    page = read_page("kubernetes-troubleshooting")
    rows = re.findall(r"^\| the pod exits with code (\d) \| `([^`]+)` \|", page, flags=re.MULTILINE)
    create_bare(tmp_path / "records.git")
    records = ("--records", str(tmp_path / "records.git"))

    def exit_controller(user: str, *options: str) -> tuple[str, str]:
        """Return the exit code of a controller that cannot begin, and the message of the page."""
        line = (
            sys.executable,
            "-m",
            "fanout",
            "controller",
            "--kubeconfig",
            empty_server.kubeconfig,
        )
        done = subprocess.run(
            [*line, "--context", user, *options],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        problems = [it for _, it in rows if it.strip("… ") in done.stdout + done.stderr]
        assert problems, done.stdout + done.stderr
        return str(done.returncode), *problems

    codes = [exit_controller("admin"), exit_controller("admin", *records)]
    definitions = str(ROOT / "deploy" / "definitions.yaml")
    empty_server.kubectl("apply", "--server-side", "-f", definitions)
    empty_server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    codes.append(exit_controller("carol", *records))
    empty_server.kubectl("delete", "--wait=false", "-f", definitions)
    assert sorted(codes) == sorted(rows)
    assert len(rows) == 3
