"""The Kustomize base: the files that `fanout crds` prints, and all the others listed."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_operations_pages import refuse_unknown_options

from fanout.cluster.file_cluster import read_configuration

DEPLOY = Path(__file__).parent.parent / "deploy"
PRINTED = [("definitions.yaml", ()), ("admission.yaml", ("--admission",))]


@pytest.mark.parametrize(("name", "options"), PRINTED, ids=[name for name, _ in PRINTED])
def test_a_file_is_what_fanout_prints(name, options):
    command = [sys.executable, "-m", "fanout", "crds", *options]
    printed = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    remedy = f"run `fanout {' '.join(command[3:])} > deploy/{name}`"
    assert (DEPLOY / name).read_text(encoding="utf-8") == printed, remedy


def test_every_file_is_part_of_the_base():
    base = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text(encoding="utf-8"))
    generated = {it for row in base.get("configMapGenerator", ()) for it in row["files"]}
    files = {path.name for path in DEPLOY.iterdir()}
    assert files == {"kustomization.yaml", *base["resources"], *generated}


def read_deployment():
    return yaml.safe_load((DEPLOY / "controller.yaml").read_text(encoding="utf-8"))


def test_the_container_runs_the_image_as_it_is_built():
    spec = read_deployment()["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    refuse_unknown_options(container["args"])
    containerfile = (DEPLOY.parent / "Containerfile").read_text(encoding="utf-8")
    assert f"USER {spec['securityContext']['runAsUser']}:" in containerfile
    assert "requirements/kubernetes.txt" in containerfile
    assert {it["name"] for it in container["volumeMounts"]} == {
        it["name"] for it in spec["volumes"]
    }


def test_the_container_writes_to_volumes_alone():
    spec = read_deployment()["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    volumes = {it["name"]: it for it in spec["volumes"]}
    state = container["args"][container["args"].index("--state-dir") + 1]
    writable = [it["mountPath"] for it in container["volumeMounts"] if not it.get("readOnly")]
    assert sorted(writable) == ["/tmp", state]
    assert all("emptyDir" in volumes[name] for name in ("state", "temporary"))


def test_the_probes_are_at_the_address_of_the_program():
    (container,) = read_deployment()["spec"]["template"]["spec"]["containers"]
    address = container["args"][container["args"].index("--listen") + 1]
    (port,) = container["ports"]
    assert address.endswith(f":{port['containerPort']}")
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")]
    assert [it["path"] for it in probes] == ["/healthz", "/readyz"]
    assert {it["port"] for it in probes} == {port["name"]}


def test_the_configuration_is_one_that_is_read():
    (container,) = read_deployment()["spec"]["template"]["spec"]["containers"]
    path = Path(container["args"][container["args"].index("--config") + 1])
    (mount,) = (it for it in container["volumeMounts"] if it["mountPath"] == str(path.parent))
    assert mount["name"] == "configuration"
    read_configuration(DEPLOY / path.name)
