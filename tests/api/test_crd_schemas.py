"""The CustomResourceDefinitions are what apiextensions.k8s.io/v1 takes, as far as can be said."""

import json
from pathlib import Path

import pytest
import yaml

from fanout.api.crd_schemas import build_crds
from fanout.api.validators.object_validation import validate_object

HERE = Path(__file__).parent

CRDS = {crd["spec"]["names"]["kind"]: crd for crd in build_crds()}
SCHEMAS = {
    kind: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind, crd in CRDS.items()
}
FORBIDDEN = {
    "$ref", "$defs", "definitions", "title", "const", "prefixItems", "propertyNames",
    "patternProperties", "discriminator", "uniqueItems", "anyOf", "oneOf", "allOf", "not",
}  # fmt: skip


def nodes(schema, path="root"):
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from nodes(schema[inner], f"{path}.{inner}")


ALL = [(f"{kind} {path}", node) for kind, schema in SCHEMAS.items() for path, node in nodes(schema)]


@pytest.mark.parametrize("kind", CRDS)
def test_a_schema_is_structural(kind):
    for path, node in nodes(SCHEMAS[kind]):
        assert not FORBIDDEN & node.keys(), path
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, path
        else:
            assert isinstance(node.get("type"), str), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if node.get("type") == "array":
            assert "items" in node, path
        if node.get("type") == "object":
            structural_keys = {
                "properties",
                "additionalProperties",
                "x-kubernetes-preserve-unknown-fields",
            }
            assert structural_keys & node.keys() or path.endswith((".metadata", ".report")), path
        assert set(node.get("required", ())) <= set(node.get("properties", {})), path


@pytest.mark.parametrize("kind", CRDS)
def test_lists_are_sets_of_scalars_or_maps_by_required_keys(kind):
    for path, node in nodes(SCHEMAS[kind]):
        if node.get("x-kubernetes-list-type") == "set":
            assert node["items"]["type"] == "string", path
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"]["required"], path


@pytest.mark.parametrize("kind", CRDS)
def test_every_list_map_and_text_has_a_bound(kind):
    for path, node in nodes(SCHEMAS[kind]):
        if path in ("root.apiVersion", "root.kind"):  # of the API server itself
            continue
        if node.get("type") == "array":
            assert "maxItems" in node, path
        if node.get("type") == "string":
            assert {"maxLength", "enum", "format"} & node.keys(), path
        if "additionalProperties" in node or "x-kubernetes-preserve-unknown-fields" in node:
            assert "maxProperties" in node, path


def bounded(value, field):
    """The example policy with this value of a field of its only target's template."""
    data = yaml.safe_load((HERE / "examples" / "upstream-policy.yaml").read_text())
    data["spec"]["targets"][0]["template"][field] = value
    return [(it.field, it.problem, it.remedy) for it in validate_object(data)[1]]


def test_validation_names_what_exceeds_a_bound():
    labels = {f"l{number}": "x" for number in range(501)}
    path = "spec.targets[0].template"
    assert bounded(labels, "labels") == [
        (f"{path}.labels", "has more than 500 entries", "write fewer")
    ]
    injectors = [{"name": f"i{number}"} for number in range(65)]
    assert bounded(injectors, "injectors") == [
        (f"{path}.injectors", "has more than 64 entries", "write fewer")
    ]


def test_a_default_is_not_written_where_a_rule_asks_who_wrote_the_field():
    stage = SCHEMAS["UpstreamPolicy"]["properties"]["spec"]["properties"]["stages"]["items"]
    assert "default" not in stage["properties"]["after"]["properties"]["require"]
    assert "default" not in stage["properties"]["rollout"]["properties"]["step"]
    assert stage["properties"]["rollout"]["properties"]["strategy"]["default"] == "AllAtOnce"


def test_defaults_have_the_type_of_their_field():
    types = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}
    for path, node in ALL:
        if "default" in node:
            assert isinstance(node["default"], types[node["type"]]), path


def test_names_follow_the_conventions():
    assert {kind: crd["metadata"]["name"] for kind, crd in CRDS.items()} == {
        "Repository": "repositories.fanout.dev",
        "UpstreamPolicy": "upstreampolicies.fanout.dev",
        "PackageVariant": "packagevariants.fanout.dev",
        "PromotionPolicy": "promotionpolicies.fanout.dev",
        "Evidence": "evidences.fanout.dev",
        "Approval": "approvals.fanout.dev",
        "Decision": "decisions.fanout.dev",
    }
    short = {
        kind: crd["spec"]["names"]["shortNames"]
        for kind, crd in CRDS.items()
        if "shortNames" in crd["spec"]["names"]
    }
    assert short == {
        "Repository": ["frepo"],
        "UpstreamPolicy": ["upol"],
        "PackageVariant": ["pvar"],
        "PromotionPolicy": ["ppol"],
        "Evidence": ["evid"],
        "Approval": ["appr"],
        "Decision": ["deci"],
    }
    for crd in CRDS.values():
        (version,) = crd["spec"]["versions"]
        assert crd["spec"]["names"]["categories"] == ["fanout"]
        assert crd["spec"]["scope"] == "Namespaced"
        assert version["subresources"] == {"status": {}}
        # As for built-in kinds, columns of the wide output come after the age.
        columns = [
            (it["name"], it.get("priority", 0)) for it in version["additionalPrinterColumns"]
        ]
        assert [name for name, priority in columns if not priority][-1] == "Age"
        assert [it[1] for it in columns] == sorted(it[1] for it in columns)


def test_a_number_or_a_share_is_int_or_string():
    stages = SCHEMAS["UpstreamPolicy"]["properties"]["spec"]["properties"]["stages"]
    rollout = stages["items"]["properties"]["rollout"]["properties"]
    assert rollout["maxInFlight"]["x-kubernetes-int-or-string"] is True
    assert rollout["factor"]["minimum"] == 1
    assert rollout["factor"]["exclusiveMinimum"] is True


def test_a_record_never_changes():
    for kind in ("Evidence", "Approval", "Decision"):
        rules = SCHEMAS[kind]["properties"]["spec"]["x-kubernetes-validations"]
        assert "self == oldSelf" in [rule["rule"] for rule in rules]


def test_the_same_models_give_the_same_text():
    assert json.dumps(build_crds()) == json.dumps(list(CRDS.values()))
