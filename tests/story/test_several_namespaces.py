"""Tables of a fleet in which policies of several namespaces have one name."""

from pathlib import Path

import pytest
from fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Return a fleet whose objects are in a second namespace, too, with paths of their own."""
    fleet = Fleet.build(tmp_path)
    directory = fleet.root / "policies"
    for path in sorted(directory.glob("*.yaml")):
        text = path.read_text().replace("metadata: {name:", "metadata: {namespace: lab, name:")
        (directory / f"lab-{path.name}").write_text(text.replace("sites/", "lab/"))
    return fleet


@pytest.mark.parametrize("resource_type", ["policies", "variants", "stages", "targets"])
def test_rows_have_their_namespace_where_there_are_several(fleet: Fleet, resource_type: str):
    both = fleet.run("get", resource_type).out.splitlines()
    assert both[0].startswith("NAMESPACE ")
    assert {line.split()[0] for line in both[1:]} == {"default", "lab"}
    one = fleet.run("get", resource_type, "-n", "lab").out.splitlines()
    assert "NAMESPACE" not in one[0]
    assert len(both) - 1 == 2 * (len(one) - 1)


def test_the_status_of_the_fleet_names_the_namespace(fleet: Fleet):
    both = fleet.run("status").out
    assert "default/monitoring" in both
    assert "lab/monitoring" in both
    assert "lab/monitoring" not in fleet.run("status", "-n", "lab").out
