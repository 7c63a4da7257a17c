"""The guide about a rollout from a cluster: its objects are applied, and its commands are run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kube.tenants import HASTY_ADMISSION, BeginController, CreateTenant, own
from kube.twin import Twin
from pages import parts
from run_process import Running

pytestmark = pytest.mark.kube

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "rollout-in-a-cluster.md").read_text(
    "utf-8"
)
SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge")}


class Guide:
    """The guide in the namespace of a fleet, whose repositories are those of the page."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        for _, name, content in parts(PAGE):
            path = twin.fleet.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content.replace("namespace: shop", f"namespace: {twin.namespace}"))

    def list_commands(self) -> list[str]:
        blocks: list[str] = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
        return [line for block in blocks for line in block.splitlines()]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the guide in the namespace of the fleet."""
        server, root = self.twin.server, self.twin.fleet.root
        programs = (str(server.programs), str(Path(sys.executable).parent), os.environ["PATH"])
        return subprocess.run(
            ["bash", "-c", line.replace("-n shop", f"-n {self.twin.namespace}")],
            cwd=root,
            env={
                "PATH": os.pathsep.join(programs),
                "KUBECONFIG": str(server.kubeconfig),
                "FANOUT_RECORDS": str(self.twin.fleet.records().path),
                "HOME": str(root),
            },
            text=True,
            capture_output=True,
            check=False,
        )

    def run_until_done(self, controller: Running, line: str) -> None:
        """Run a command until it succeeds, which needs what the controller does meanwhile."""
        controller.until(lambda: self.run(line).returncode == 0)


def test_the_objects_and_commands_of_the_guide_publish_both_stages(
    tenant: CreateTenant, begin: BeginController
):
    twin = tenant(SITES)
    for kind, name in (("UpstreamPolicy", "monitoring"), ("PromotionPolicy", "everything")):
        twin.server.delete(own(twin, kind, name))
    controller = begin(twin, program=("-c", HASTY_ADMISSION))
    guide, edge = Guide(twin), twin.fleet.repos["edge"]
    commands = guide.list_commands()
    assert len(commands) == 9
    for line in commands[:6]:
        done = guide.run(line)
        assert done.returncode == 0, (line, done.stderr)
    controller.until(lambda: edge.tags() == ["sites/ams/v1"])
    explained = guide.run("fanout explain monitoring -n shop")
    assert "VerificationPending" in explained.stdout, explained.stderr
    for line in commands[6:]:
        guide.run_until_done(controller, line)
    assert sorted(edge.tags()) == ["sites/ams/v1", "sites/ber/v1"]
    assert yaml.safe_load(edge.file("main", "sites/ber/settings.yaml"))["data"] == {
        "retention": "7d"
    }
    listed = guide.run("kubectl get evidences,approvals -n shop").stdout
    assert re.search(r"^evidence\S+ .* Recorded +Effective ", listed, flags=re.MULTILINE)
    assert re.search(r"^approval\S+ .* Recorded +Applied ", listed, flags=re.MULTILINE)
    # What the page says about removal.
    twin.server.kubectl("delete", "clusters", "ber", namespace=twin.namespace)
    approval = re.findall(r"`(fanout approve [^`]+ --removals)`", PAGE)[0]
    guide.run_until_done(controller, f"{approval} --context bob -n shop")
    controller.until(lambda: not [it for it in edge.files() if it.startswith("sites/ber/")])
    assert controller.end() == 0
