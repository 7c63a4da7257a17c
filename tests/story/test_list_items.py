"""A package whose objects are the items of a List, from the first draft to a merged bump."""

from pathlib import Path

import yaml
from companies import company
from fleet import POLICY, Fleet

LISTED = """\
# everything in one file
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web # theirs
  spec:
    replicas: 1
    paused:   false # as it is
# the settings
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: listed
    annotations:
      kpt.dev/config-injection: required
  data:
    retention: 15d # an example
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: tool
    annotations: {config.kubernetes.io/local-config: "true"}
"""
FUNCTIONS = "      pipeline: {mutators: [{image: set-labels, configMap: {team: edge}}]}\n"
FILE = "sites/ams/all.yaml"


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.release("v2", {"all.yaml": LISTED, "deployment.yaml": None, "settings.yaml": None})
    made.write("policy.yaml", POLICY.replace("      injectors:", f"{FUNCTIONS}      injectors:"))
    made.settle()
    assert made.published() == {"sites/ams": "v2"}
    return made


def test_each_item_is_drafted_as_an_object(fleet: Fleet):
    labelled = LISTED.replace("# theirs\n", "# theirs\n    labels:\n      team: edge\n")
    injected = "required\n      kpt.dev/injected-resource: ams\n    labels:\n      team: edge\n"
    expected = labelled.replace("required\n", injected).replace("15d", '"7d"')
    assert fleet.repos["edge"].file("main", FILE) == expected


def test_an_edit_in_one_item_survives_a_bump_and_a_new_value(fleet: Fleet):
    edge = fleet.repos["edge"]
    text = edge.file("main", FILE)
    edge.commit("main", {FILE: text.replace("replicas: 1", "replicas: 5 # by hand")})
    fleet.release("v3", {"all.yaml": LISTED.replace("  false", "  true")})
    fleet.site("ams", "dev", "edge", retention="60d")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/ams": "v3"}
    merged = text.replace("replicas: 1", "replicas: 5 # by hand").replace("  false", "  true")
    assert edge.file("main", FILE) == merged.replace("7d", "60d")


def test_printed_objects_lack_items_that_are_for_tools_alone(fleet: Fleet):
    result = fleet.run("render", "sites/ams")
    assert result.code == 0
    [whole] = yaml.safe_load_all(result.out)
    assert [item["metadata"]["name"] for item in whole["items"]] == ["web", "listed"]


def test_a_list_that_cannot_be_taken_apart_fails_its_variant_by_name(fleet: Fleet):
    fleet.release("v3", {"all.yaml": f"{LISTED}- {{name: x}}\n"})
    fleet.later(minutes=1).sweep()
    assert "all.yaml:26: items[3] of the List is not an object" in fleet.condition("sites/ams")[1]
    assert fleet.published() == {"sites/ams": "v2"}
