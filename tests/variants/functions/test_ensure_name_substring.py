"""ensure-name-substring: which names change, and what follows them."""

import pytest
from variants.builders import rows
from variants.running import configured_by, run

from fanout.errors import InvalidInput
from fanout.selection.variant_spec import FunctionSpec

PREFIX = FunctionSpec("ensure-name-substring", config={"prepend": "dev-"})
SUFFIX = FunctionSpec("ensure-name-substring", config={"append": "-dev"})


def thing(api_version, kind, name="x", body="", namespace=""):
    place = f"  namespace: {namespace}\n" if namespace else ""
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n{place}{body}"


NAMES = [
    ("a prefix", PREFIX, thing("v1", "Secret"), "name: dev-x"),
    ("a suffix", SUFFIX, thing("v1", "Secret"), "name: x-dev"),
    ("a name that has it stays", PREFIX, thing("v1", "Secret", "dev-x"), None),
    ("wherever it has it", PREFIX, thing("v1", "Secret", "a-dev-b"), None),
    ("a Namespace keeps its name", PREFIX, thing("v1", "Namespace"), None),
    ("so does a definition", PREFIX, thing("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
     None),
    ("and an APIService", PREFIX, thing("apiregistration.k8s.io/v1", "APIService"), None),
    ("a custom kind called like one does not", PREFIX, thing("example.com/v1", "Namespace"),
     "name: dev-x"),
    ("an object for tools alone keeps its name", PREFIX, thing("v1", "ConfigMap", body=
     "  annotations: {config.kubernetes.io/local-config: 'true'}\n"), None),
]  # fmt: skip


@pytest.mark.parametrize(("function", "text", "expected"), rows(NAMES))
def test_ensure_name_substring(function, text, expected):
    wanted = {"a.yaml": text.replace("name: x", expected)} if expected else {}
    assert run({"a.yaml": text}, function) == wanted


RBAC = "rbac.authorization.k8s.io"
POD = "spec:\n  template:\n    spec:\n"
DEPLOYMENT = ("apps/v1", "Deployment", "app")


def pod(lines):
    return POD + "".join(f"      {line}\n" for line in lines.split("\n"))


FOLLOWING = [
    ("a mounted ConfigMap", ("v1", "ConfigMap"), DEPLOYMENT,
     pod("volumes:\n- configMap:\n    name: x")),
    ("a projected one", ("v1", "ConfigMap"), DEPLOYMENT,
     pod("volumes:\n- projected:\n    sources:\n    - configMap: {name: x}")),
    ("a variable from a ConfigMap", ("v1", "ConfigMap"), DEPLOYMENT,
     pod("containers:\n- env:\n  - valueFrom: {configMapKeyRef: {name: x, key: a}}")),
    ("all variables from a Secret, of an init container", ("v1", "Secret"), DEPLOYMENT,
     pod("initContainers:\n- envFrom:\n  - secretRef: {name: x}")),
    ("a mounted Secret", ("v1", "Secret"), DEPLOYMENT, pod("volumes:\n- secret: {secretName: x}")),
    ("a pull secret", ("v1", "Secret"), DEPLOYMENT, pod("imagePullSecrets:\n- name: x")),
    ("a service account", ("v1", "ServiceAccount"), DEPLOYMENT, pod("serviceAccountName: x")),
    ("a claim", ("v1", "PersistentVolumeClaim"), DEPLOYMENT,
     pod("volumes:\n- persistentVolumeClaim: {claimName: x}")),
    ("in a CronJob too", ("v1", "Secret"), ("batch/v1", "CronJob", "app"),
     ("spec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n"
      "          imagePullSecrets:\n          - name: x\n")),
    ("and in a Pod", ("v1", "Secret"), ("v1", "Pod", "app"),
     "spec:\n  imagePullSecrets:\n  - name: x\n"),
    ("the Service of a StatefulSet", ("v1", "Service"), ("apps/v1", "StatefulSet", "app"),
     "spec:\n  serviceName: x\n"),
    ("a backend of an Ingress", ("v1", "Service"), ("networking.k8s.io/v1", "Ingress", "app"),
     "spec:\n  rules:\n  - http:\n      paths:\n      - backend:\n          service: {name: x}\n"),
    ("a certificate of an Ingress", ("v1", "Secret"), ("networking.k8s.io/v1", "Ingress", "app"),
     "spec:\n  tls:\n  - secretName: x\n"),
    ("an annotation that names a Secret", ("v1", "Secret"),
     ("networking.k8s.io/v1", "Ingress", "app"),
     "  annotations:\n    nginx.ingress.kubernetes.io/auth-secret: x\n"),
    ("what an autoscaler scales", ("apps/v1", "Deployment"),
     ("autoscaling/v2", "HorizontalPodAutoscaler", "app"),
     "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}\n"),
    ("a Role that is bound", (f"{RBAC}/v1", "Role"), (f"{RBAC}/v1", "RoleBinding", "app"),
     f"roleRef: {{apiGroup: {RBAC}, kind: Role, name: x}}\n"),
    ("a ClusterRole that is bound", (f"{RBAC}/v1", "ClusterRole"),
     (f"{RBAC}/v1", "RoleBinding", "app"),
     f"roleRef: {{apiGroup: {RBAC}, kind: ClusterRole, name: x}}\n"),
    ("a subject", ("v1", "ServiceAccount"), (f"{RBAC}/v1", "RoleBinding", "app"),
     "subjects:\n- kind: ServiceAccount\n  name: x\n"),
    ("an object that may be read", ("v1", "Secret"), (f"{RBAC}/v1", "Role", "app"),
     "rules:\n- resources: [secrets]\n  resourceNames: [x]\n"),
    ("the Service behind a webhook", ("v1", "Service"),
     ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "app"),
     "webhooks:\n- clientConfig:\n    service: {name: x, namespace: default}\n"),
    ("a class of storage", ("storage.k8s.io/v1", "StorageClass"),
     ("v1", "PersistentVolumeClaim", "app"), "spec:\n  storageClassName: x\n"),
]  # fmt: skip


@pytest.mark.parametrize(("named", "referrer", "body"), rows(FOLLOWING))
def test_references_follow(named, referrer, body):
    files = {"a.yaml": thing(*named), "b.yaml": thing(*referrer, body=body)}
    changed_files = run(files, PREFIX)
    changed = body.replace(": x", ": dev-x").replace("[x]", "[dev-x]")
    assert changed_files["b.yaml"] == thing(referrer[0], referrer[1], "dev-app", changed)


STAYING = [
    ("what is not in the package", thing("v1", "Secret", "y"), ""),
    ("what is of another kind", thing("v1", "ConfigMap"), ""),
    ("what is in another namespace", thing("v1", "Secret", namespace="ns"), ""),
    ("what has the text already", thing("v1", "Secret", "dev-x"), "dev-"),
]


@pytest.mark.parametrize(("other", "prefix"), rows(STAYING))
def test_a_reference_stays_to(other, prefix):
    body = pod(f"imagePullSecrets:\n- name: {prefix}x")
    changed_files = run({"a.yaml": other, "b.yaml": thing(*DEPLOYMENT, body=body)}, PREFIX)
    assert changed_files["b.yaml"] == thing("apps/v1", "Deployment", "dev-app", body)


NOTE = "  annotations:\n    config.kubernetes.io/depends-on: {}\n"
DEPENDENCIES = [
    ("one in a namespace", "/namespaces/ns/Secret/x", "/namespaces/ns/Secret/dev-x"),
    ("one without", f"{RBAC}/ClusterRole/r", f"{RBAC}/ClusterRole/dev-r"),
    ("one of several, each by itself", "/namespaces/ns/Secret/y, /namespaces/ns/Secret/x",
     '"/namespaces/ns/Secret/y, /namespaces/ns/Secret/dev-x"'),
    ("none outside the package", "/namespaces/other/Secret/x", "/namespaces/other/Secret/x"),
    ("none that is not supported", "Secret/x", "Secret/x"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "expected"), rows(DEPENDENCIES))
def test_dependencies_follow(before, expected):
    files = {
        "a.yaml": thing("v1", "Secret", namespace="ns"),
        "b.yaml": thing(f"{RBAC}/v1", "ClusterRole", "r"),
        "c.yaml": thing("v1", "Service", "s", NOTE.format(before)),
    }
    assert run(files, PREFIX)["c.yaml"] == thing("v1", "Service", "dev-s", NOTE.format(expected))


def test_a_second_run_changes_nothing():
    files = {"a.yaml": thing("v1", "Secret"), "b.yaml": thing(
        *DEPLOYMENT, body=pod("imagePullSecrets:\n- name: x"))}  # fmt: skip
    once = run(files, PREFIX)
    assert run(once, PREFIX) == {}


OWN = "apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nmetadata:\n  name: c\n"
GADGET = thing("example.com/v1", "Gadget", body="spec:\n  name: inner\n")


def own(lines):
    return {"Kptfile": configured_by("ensure-name-substring"), "config.yaml": f"{OWN}{lines}"}


def local(files):
    text = files["config.yaml"]
    note = "metadata:\n  annotations: {config.kubernetes.io/local-config: 'true'}\n"
    return {**files, "config.yaml": text.replace("metadata:\n", note)}


KINDS = [
    ("it is a prefix where nothing is said", "substring: dev-\n", ("dev-x", "inner")),
    ("or a suffix", "substring: -dev\neditMode: append\n", ("x-dev", "inner")),
    ("further names", "substring: dev-\nadditionalNameFields:\n- path: spec/name\n",
     ("dev-x", "dev-inner")),
    ("under their older name", "substring: dev-\nfieldSpecs:\n- path: spec/name\n",
     ("dev-x", "dev-inner")),
    ("of other kinds", "substring: dev-\nadditionalNameFields: [{path: spec/name, kind: A}]\n",
     ("dev-x", "inner")),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "names"), rows(KINDS))
def test_the_function_s_own_kind_configures_the_names(lines, names):
    changed_files = run({**local(own(lines)), "a.yaml": GADGET})
    assert changed_files == {"a.yaml": GADGET.replace("name: x", f"name: {names[0]}")
                     .replace("name: inner", f"name: {names[1]}")}  # fmt: skip


def test_a_further_field_is_made_where_that_is_asked_for():
    lines = "substring: dev-\nadditionalNameFields: [{path: spec/alias, create: true}]\n"
    text = run({**local(own(lines)), "a.yaml": GADGET})["a.yaml"]
    assert text.endswith("  name: inner\n  alias: dev-\n")


REFUSED = [
    ("nothing", {}, "ensure-name-substring: data has 0 entries"),
    ("both", {"prepend": "a", "append": "b"}, "data has 2 entries"),
    ("something else", {"insert": "a"}, "unknown field data.insert"),
    ("an empty text", {"append": ""}, "the text to append is empty"),
]


@pytest.mark.parametrize(("data", "sentence"), rows(REFUSED))
def test_a_policy_s_configuration_is_refused_that_says(data, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        run({}, FunctionSpec("ensure-name-substring", config=data))


WRONG = [
    ("another mode", "substring: a\neditMode: insert\n", "editMode is 'insert'"),
    ("no text", "editMode: append\n", "the text to append is empty"),
    ("a number", "substring: 1\n", "substring is not a string"),
    (
        "fields twice",
        "substring: a\nfieldSpecs: []\nadditionalNameFields: []\n",
        "exclude each other",
    ),
    ("a field without path", "substring: a\nfieldSpecs: [{}]\n", "additionalNameFields: path"),
]


@pytest.mark.parametrize(("lines", "sentence"), rows(WRONG))
def test_a_malformed_own_kind_is_refused(lines, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        run(own(lines))
