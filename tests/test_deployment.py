"""The Kustomize base: the files that `fanout crds` prints, and all the others listed."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
