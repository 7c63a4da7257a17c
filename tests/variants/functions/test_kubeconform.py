"""kubeconform: what does not fit its kind's schema, and what is said of it."""

import copy
import json
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import package, rows, spec
from variants.running import NOBODY, kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.kubernetes_schemas import list_versions, read_schemas
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec
from fanout.variants.function_requests import SchemaRequest
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    spec:
      containers:
      - name: web
        image: web:1
"""
SITE = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: eu}\nspec: {size: 3}\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Site, plural: sites}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer}
              port: {x-kubernetes-int-or-string: true}
              tier: {type: string, enum: [small, large]}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def checked(files, **data):
    """What a validator of the policy says; "" when nothing is wrong."""
    checker = FunctionSpec("kubeconform", config={key: str(value) for key, value in data.items()})
    try:
        rendered(files, validators=(checker,))
    except InvalidInput as error:
        return str(error)
    return ""


FAULTS = [
    ("nothing where all is right", {"web.yaml": WEB}, ""),
    ("a text where a number must be", {"web.yaml": WEB.replace("2", '"2"')},
     "kubeconform: web.yaml:6: Deployment/web: spec.replicas: '2' is not a whole number"),
    ("what is missing", {"web.yaml": WEB.replace("  selector: {matchLabels: {app: web}}\n", "")},
     "kubeconform: web.yaml:5: Deployment/web: spec.selector: required field is missing"),
    ("every fault", {"web.yaml": WEB.replace("2", "x").replace("image: web:1", "image: [1]")},
     ("kubeconform: web.yaml:6: Deployment/web: spec.replicas: 'x' is not a whole number;"
     " kubeconform: web.yaml:12: Deployment/web: spec.template.spec.containers[0].image:"
     " a list is not a string")),
    ("no field more, unless it is strict", {"web.yaml": WEB.replace("image", "imag")}, ""),
    ("a kind without a schema", {"site.yaml": SITE},
     ("kubeconform: site.yaml:2: Site/eu: kind: no schema exists for example.com/v1 Site in"
     " Kubernetes 1.37 or in the package; add its CustomResourceDefinition, or set"
     " ignore_missing_schemas or skip_kinds")),
    ("a version that is served no more",
     {"old.yaml": "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: x}\n"},
     ("kubeconform: old.yaml:2: Ingress/x: kind: no schema exists for extensions/v1beta1 Ingress"
     " in Kubernetes 1.37 or in the package; add its CustomResourceDefinition, or set"
     " ignore_missing_schemas or skip_kinds")),
    ("nothing of a kind that the package defines", {"crd.yaml": CRD, "site.yaml": SITE}, ""),
    ("what such a kind forbids",
     {"crd.yaml": CRD, "site.yaml": SITE.replace("3", "three, port: [], tier: big")},
     ("kubeconform: site.yaml:4: Site/eu: spec.size: 'three' is not a whole number;"
     " kubeconform: site.yaml:4: Site/eu: spec.port: a list is not a whole number or string;"
     " kubeconform: site.yaml:4: Site/eu: spec.tier: 'big' is not one of small, large")),
    ("nothing about what is for tools alone",
     {"fn.yaml": "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nmetadata:\n  name: x\n"
      "  annotations: {config.kubernetes.io/local-config: 'true'}\n"}, ""),
]  # fmt: skip


@pytest.mark.parametrize("odd", ["null", "1", "[1, {a: b}]", "{a: b}", "[[]]", "true", "x"])
@pytest.mark.parametrize("field", ["type: integer", "type: object", "enum: [small, large]"])
def test_a_schema_with_a_field_of_another_type_demands_nothing_by_it(field, odd):
    """It is no schema for an API server, which says so; here it stops nothing."""
    crd = CRD.replace(field, f"{field.partition(':')[0]}: {odd}")
    assert "bug" not in checked({"crd.yaml": crd, "site.yaml": SITE})


@pytest.mark.parametrize(("files", "findings"), rows(FAULTS))
def test_kubeconform_reports_schema_errors(files, findings):
    assert checked(files) == findings


CONFIGURED = [
    ("strict: fields that there are not", {"web.yaml": WEB.replace("image", "imag")},
     {"strict": "true"}, "spec.template.spec.containers[0].imag: unknown field"),
    ("strict: fields that a definition in the package has not",
     {"crd.yaml": CRD, "site.yaml": SITE.replace("3", "3, any: {a: 1}, sice: 4")},
     {"strict": "true"}, "spec.sice: unknown field"),
    ("kinds without a schema may be passed by", {"site.yaml": SITE},
     {"ignore_missing_schemas": "true"}, ""),
    ("kinds may be passed by by name", {"site.yaml": SITE}, {"skip_kinds": "Pod,Site"}, ""),
    ("kinds may be passed by by version and name", {"site.yaml": SITE},
     {"skip_kinds": "example.com/v1/Site"}, ""),
    ("an older Kubernetes", {"web.yaml": WEB}, {"kubernetes_version": "v1.25"}, ""),
    ("a Kubernetes that there is not", {"web.yaml": WEB}, {"kubernetes_version": "1.2"},
     "there are no schemas for Kubernetes 1.2; use a version from 1.25 to 1.37"),
    ("schemas from elsewhere", {}, {"schema_location": "https://example.com"},
     "data.schema_location: schemas are never downloaded"),
    ("a word that is not a boolean", {}, {"strict": "yes please"},
     "data.strict: 'yes please' is not a boolean"),
    ("a misspelt key", {}, {"stric": "true"}, "unknown field data.stric"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "data", "findings"), rows(CONFIGURED))
def test_configured(files, data, findings):
    results = checked(files, **data)
    assert findings in results
    assert bool(findings) == bool(results)


def test_a_validator_checks_the_results_of_the_mutators():
    mutator = "{image: search-replace, configMap: {by-path: spec.replicas, put-value: many}}"
    files = {"Kptfile": kptfile(mutator), "web.yaml": WEB}
    assert "'many' is not a whole number" in checked(files)


def test_changes_of_a_mutator_that_runs_as_validator_are_dropped():
    text = kptfile("{image: set-labels, configMap: {a: b}}").replace("mutators", "validators")
    assert run({"Kptfile": text, "web.yaml": WEB}) == {}


def test_the_first_validator_that_finds_something_is_the_last_that_is_asked():
    text = kptfile("image: kubeval", "image: kubeconform").replace("mutators", "validators")
    with pytest.raises(InvalidInput) as caught:
        rendered({"Kptfile": text, "web.yaml": WEB.replace("2", "x")})
    assert str(caught.value).startswith("kubeval: web.yaml:6")
    assert "kubeconform" not in str(caught.value)


@pytest.mark.parametrize("more", [(), (FunctionSpec("list-setters"),)], ids=["shared", "by target"])
def test_every_variant_is_checked_with_its_own_values(more):
    """What is alike for all targets is judged once; what differs, each time."""
    mark = "    kpt.dev/config-injection: required\n"
    point = f"metadata:\n  name: web\n  annotations:\n{mark}"
    files = {"web.yaml": WEB.replace("metadata:\n  name: web\n", point, 1), "b.yaml": WEB}
    prepared = prepare_package(package(files), RenderLimits())
    outcomes = []
    for size in (3, "x", 4):
        content = {"replicas": size, "selector": {}, "template": {}}
        site = {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "eu", "namespace": "platform"}, "spec": content}  # fmt: skip
        from_cluster = FunctionSpec("kubeconform")
        variant = spec(mutators=more, validators=(from_cluster,), injectors=(InjectorSpec("eu"),))
        inputs = resolve_inputs(prepared, variant, ClusterObjectIndex([site]))
        try:
            NOBODY.run_until_answered(
                lambda memo, it=(variant, inputs): render_variant(prepared, *it, memo)
            )
            outcomes.append("")
        except InvalidInput as error:
            outcomes.append(str(error))
    assert [bool(one) for one in outcomes] == [False, True, False]
    assert "web.yaml:" in outcomes[1]


# ---- against the schemas as they are published ---------------------------------------------------

[PUBLISHED] = find_spec("kubernetes_validate").submodule_search_locations
OURS = read_schemas(SchemaRequest("1.33"))


def oracle(version, strict):
    """A whole validator of JSON Schema over the file that ours was made from."""
    folder = Path(PUBLISHED) / "kubernetes-json-schema" / f"v{version}.0-local{strict}"
    data = json.loads((folder / "_definitions.json").read_text())
    whole = referencing.Resource.from_contents(data)
    registry = referencing.Registry().with_resource("urn:k8s", whole)

    def is_valid(name, item):
        schema = {"$ref": f"urn:k8s#/$defs/{name}"}
        return jsonschema.Draft202012Validator(schema, registry=registry).is_valid(item)

    return is_valid


ORACLES = {strict: oracle("1.33", "-strict" if strict else "") for strict in (True, False)}
KINDS = {
    "apps/v1/Deployment": "io.k8s.api.apps.v1.Deployment",
    "v1/Service": "io.k8s.api.core.v1.Service",
    "networking.k8s.io/v1/Ingress": "io.k8s.api.networking.v1.Ingress",
}
ITEMS = {
    "apps/v1/Deployment": {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                 "template": {"metadata": {}, "spec": {"containers": [
                     {"name": "a", "image": "a:1", "ports": [{"containerPort": 80}],
                      "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                      "livenessProbe": {"httpGet": {"port": "http"}}}]}}},
    },
    "v1/Service": {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
    },
    "networking.k8s.io/v1/Ingress": {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
        "spec": {"rules": [{"host": "a", "http": {"paths": [
            {"path": "/", "pathType": "Prefix",
             "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]},
    },
}  # fmt: skip
ODD = st.sampled_from(["x", 1, 1.5, 2.0, True, [], {}, ["x"], {"a": 1}, [{}], "80"])


def places(value, path=()):
    """All paths to values in an object."""
    yield path
    pairs = value.items() if isinstance(value, dict) else ()
    for key, child in enumerate(value) if isinstance(value, list) else pairs:
        yield from places(child, (*path, key))


@st.composite
def damaged(draw):
    kind = draw(st.sampled_from(sorted(ITEMS)))
    item = copy.deepcopy(ITEMS[kind])
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from([path for path in places(item) if path[1:]]))
        parent = item
        for part in path[:-1]:
            parent = parent[part]
        match draw(st.sampled_from(["put", "drop", "add"])):
            case "put":
                parent[path[-1]] = draw(ODD)
            case "drop":
                del parent[path[-1]]
            case _ if isinstance(parent, dict):
                parent["extra"] = draw(ODD)
    return kind, item


@given(damaged(), st.booleans())
def test_kubeconform_agrees_with_a_complete_json_schema_validator(thing, strict):
    kind, item = thing
    name = OURS._kinds[kind]
    assert name == KINDS[kind]
    assert (OURS.find_faults(item, strict=strict) == []) == ORACLES[strict](name, item)


def test_shipped_schemas_are_published_schemas():
    folders = {path.name for path in (Path(PUBLISHED) / "kubernetes-json-schema").iterdir()}
    assert {f"v{version}.0-local-strict" for version in list_versions()} <= folders
