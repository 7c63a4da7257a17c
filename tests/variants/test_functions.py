"""What each in-process function changes in which object."""

import pytest
from variants.builders import rows

from fanout.errors import InvalidInput
from fanout.variants.functions.function import Facts, is_local
from fanout.variants.functions.registry import FUNCTIONS, find


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


def thing(api_version, kind, **rest):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **rest}


NOTHING_KNOWN = Facts()


def changes(name, config, item, facts=NOTHING_KNOWN):
    """What the function changes, as {path with dots: value}."""
    function = FUNCTIONS[name]
    found = function.changes(function.configure(config), item, facts)
    return {".".join(map(str, path)): value for path, value in found}


def meta(**fields):
    return {"metadata": {"name": "x", **fields}}


RBAC = "rbac.authorization.k8s.io/v1"
SUBJECTS = [
    {"kind": "User", "name": "eve", "namespace": "old"},
    {"kind": "ServiceAccount", "name": "app", "namespace": "old"},
    {"kind": "ServiceAccount", "name": "app"},
]
WEBHOOK = {"conversion": {"webhook": {"clientConfig": {"service": {"namespace": "old"}}}}}
CRD = "apiextensions.k8s.io/v1"
HOOK_PATH = "spec.conversion.webhook.clientConfig.service.namespace"

NAMESPACES = [
    (
        "a namespaced object moves",
        thing("v1", "Service", **meta(namespace="old")),
        {"metadata.namespace": "new"},
    ),
    ("one that names no namespace gets one", thing("v1", "Service"), {"metadata.namespace": "new"}),
    (
        "one that is there already stays as it is",
        thing("v1", "Service", **meta(namespace="new")),
        {},
    ),
    ("a cluster-scoped object gets none", thing("v1", "Node"), {}),
    ("nor does a class of storage", thing("storage.k8s.io/v1", "StorageClass"), {}),
    ("the Namespace itself is renamed", thing("v1", "Namespace"), {"metadata.name": "new"}),
    (
        "a custom resource counts as namespaced",
        thing("example.com/v1", "Gadget"),
        {"metadata.namespace": "new"},
    ),
    (
        "a kind that is called like a built-in one is not it",
        thing("example.com/v1", "Node"),
        {"metadata.namespace": "new"},
    ),
    (
        "service accounts of a RoleBinding move with it, users and unplaced ones do not",
        thing(RBAC, "RoleBinding", subjects=SUBJECTS),
        {"metadata.namespace": "new", "subjects.1.namespace": "new"},
    ),
    (
        "a ClusterRoleBinding has only its subjects changed",
        thing(RBAC, "ClusterRoleBinding", subjects=SUBJECTS),
        {"subjects.1.namespace": "new"},
    ),
    (
        "subjects that are no list are left alone",
        thing(RBAC, "ClusterRoleBinding", subjects="all"),
        {},
    ),
    (
        "the conversion webhook of a CRD is found in the new namespace",
        thing(CRD, "CustomResourceDefinition", spec=WEBHOOK),
        {HOOK_PATH: "new"},
    ),
    ("a CRD without webhook stays", thing(CRD, "CustomResourceDefinition", spec={}), {}),
    (
        "the service behind an APIService too",
        thing("apiregistration.k8s.io/v1", "APIService", spec={"service": {"namespace": "old"}}),
        {"spec.service.namespace": "new"},
    ),
    (
        "a local APIService has no service",
        thing("apiregistration.k8s.io/v1", "APIService", spec={}),
        {},
    ),
]


@pytest.mark.parametrize(("item", "expected"), rows(NAMESPACES))
def test_set_namespace(item, expected):
    assert changes("set-namespace", config_map(namespace="new"), item) == expected


def test_a_definition_in_the_package_says_that_its_kind_has_no_namespace():
    facts = Facts(cluster_kinds=frozenset({("example.com", "Gadget")}))
    gadget = thing("example.com/v1", "Gadget")
    assert changes("set-namespace", config_map(namespace="new"), gadget, facts) == {}


DEPENDENCIES = [
    (
        "a dependency on an object of the package follows it",
        "apps/namespaces/old/Deployment/db",
        "apps/namespaces/new/Deployment/db",
    ),
    ("one outside the package stays", "apps/namespaces/other/Deployment/db", None),
    ("a cluster-scoped one has nothing to follow", "/Namespace/old", None),
    (
        "each of several is looked at by itself",
        "apps/namespaces/old/Deployment/db,/namespaces/old/Service/gone",
        "apps/namespaces/new/Deployment/db,/namespaces/old/Service/gone",
    ),
]


@pytest.mark.parametrize(("text", "expected"), rows(DEPENDENCIES))
def test_set_namespace_follows_dependencies(text, expected):
    facts = Facts(namespaced=frozenset({("apps", "Deployment", "old", "db")}))
    note = "config.kubernetes.io/depends-on"
    item = thing("v1", "Service", **meta(namespace="new", annotations={note: text}))
    wanted = {f"metadata.annotations.{note}": expected} if expected else {}
    assert changes("set-namespace", config_map(namespace="new"), item, facts) == wanted


MATCHERS = [
    ("only what was in the named namespace moves", meta(namespace="old"), True),
    ("what was elsewhere stays", meta(namespace="other"), False),
    ("nothing written means default, which is not the named one", meta(), False),
]


@pytest.mark.parametrize(("fields", "moves"), rows(MATCHERS))
def test_set_namespace_with_a_matcher(fields, moves):
    config = config_map(namespace="new", namespaceMatcher="old")
    assert bool(changes("set-namespace", config, thing("v1", "Service", **fields))) is moves


CONFIGURATIONS = [
    ("a ConfigMap's data.namespace", config_map(namespace="new"), "new"),
    (
        "a SetNamespace object",
        {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "SetNamespace", "namespace": "new"},
        "new",
    ),
    (
        "the package context's name",
        {**config_map(name="new"), "metadata": {"name": "kptfile.kpt.dev"}},
        "new",
    ),
    (
        "the name in any other ConfigMap is refused",
        {**config_map(name="new"), "metadata": {"name": "other"}},
        None,
    ),
    ("nothing at all is refused", config_map(), None),
    ("an upper-case name is refused", config_map(namespace="New"), None),
    ("a name that is too long is refused", config_map(namespace="n" * 64), None),
    ("a number is refused", config_map(namespace=7), None),
    ("another kind is refused", {"apiVersion": "v1", "kind": "Service"}, None),
]


@pytest.mark.parametrize(("config", "namespace"), rows(CONFIGURATIONS))
def test_configuration_of_set_namespace(config, namespace):
    if namespace:
        found = changes("set-namespace", config, thing("v1", "Service"))
        assert found == {"metadata.namespace": namespace}
    else:
        with pytest.raises(InvalidInput):
            FUNCTIONS["set-namespace"].configure(config)


TERM = {"labelSelector": {"matchLabels": {"env": "old", "app": "x"}}}
OTHER_TERM = {"labelSelector": {"matchLabels": {"app": "x"}}}
POD = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "topologySpreadConstraints": [TERM, OTHER_TERM],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [OTHER_TERM, TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": TERM}],
            }
        },
    },
}
ANTI = "spec.template.spec.affinity.podAntiAffinity"
REQUIRED = f"{ANTI}.requiredDuringSchedulingIgnoredDuringExecution"

LABELS = [
    ("every object gets them", thing("example.com/v1", "Gadget"), {"metadata.labels.env": "prod"}),
    ("one that has them stays", thing("v1", "Secret", **meta(labels={"env": "prod"})), {}),
    (
        "another value is replaced",
        thing("v1", "Secret", **meta(labels={"env": "dev"})),
        {"metadata.labels.env": "prod"},
    ),
    (
        "the pods of a Service are chosen by them",
        thing("v1", "Service", spec={"selector": {"app": "x"}}),
        {"metadata.labels.env": "prod", "spec.selector.env": "prod"},
    ),
    (
        "a Service that chooses no pods goes on choosing none",
        thing("v1", "Service", spec={}),
        {"metadata.labels.env": "prod"},
    ),
    (
        "a workload's selector and its pods get them",
        thing(
            "apps/v1",
            "StatefulSet",
            spec={
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            },
        ),
        {
            "metadata.labels.env": "prod",
            "spec.selector.matchLabels.env": "prod",
            "spec.template.metadata.labels.env": "prod",
            "spec.volumeClaimTemplates.0.metadata.labels.env": "prod",
        },
    ),
    (
        "affinities and spreading that asked for the label get its new value, others stay",
        thing("apps/v1", "Deployment", spec={"template": POD}),
        {
            "metadata.labels.env": "prod",
            "spec.template.metadata.labels.env": "prod",
            "spec.template.spec.topologySpreadConstraints.0.labelSelector.matchLabels.env": "prod",
            f"{REQUIRED}.1.labelSelector.matchLabels.env": "prod",
            f"{ANTI}.preferredDuringSchedulingIgnoredDuringExecution.0.podAffinityTerm.labelSelector"
            ".matchLabels.env": "prod",
        },
    ),
    (
        "the jobs and pods of a CronJob get them",
        thing(
            "batch/v1",
            "CronJob",
            spec={"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}},
        ),
        {
            "metadata.labels.env": "prod",
            "spec.jobTemplate.metadata.labels.env": "prod",
            "spec.jobTemplate.spec.template.metadata.labels.env": "prod",
        },
    ),
    (
        "a budget's selector is not narrowed",
        thing("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"app": "x"}}}),
        {"metadata.labels.env": "prod"},
    ),
    (
        "a network policy goes on meaning the pods it meant, under their new label",
        thing(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": {"matchLabels": {"env": "dev"}},
                "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "y"}}}]}],
                "egress": [{"to": [{"podSelector": {"matchLabels": {"env": "dev"}}}]}],
            },
        ),
        {
            "metadata.labels.env": "prod",
            "spec.podSelector.matchLabels.env": "prod",
            "spec.egress.0.to.0.podSelector.matchLabels.env": "prod",
        },
    ),
    (
        "a custom kind's spec is its own affair",
        thing("example.com/v1", "Deployment", spec={"selector": {"matchLabels": {"app": "x"}}}),
        {"metadata.labels.env": "prod"},
    ),
]


@pytest.mark.parametrize(("item", "expected"), rows(LABELS))
def test_set_labels(item, expected):
    assert changes("set-labels", config_map(env="prod"), item) == expected


ANNOTATIONS = [
    ("every object gets them", thing("v1", "Secret"), {"metadata.annotations.team": "edge"}),
    (
        "pods of a workload too",
        thing("apps/v1", "Deployment", spec={"template": {"spec": {"a": 1}}}),
        {"metadata.annotations.team": "edge", "spec.template.metadata.annotations.team": "edge"},
    ),
    (
        "jobs and pods of a CronJob too",
        thing(
            "batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": {"spec": {"a": 1}}}}}
        ),
        {
            "metadata.annotations.team": "edge",
            "spec.jobTemplate.metadata.annotations.team": "edge",
            "spec.jobTemplate.spec.template.metadata.annotations.team": "edge",
        },
    ),
]


@pytest.mark.parametrize(("item", "expected"), rows(ANNOTATIONS))
def test_set_annotations(item, expected):
    assert changes("set-annotations", config_map(team="edge"), item) == expected


EXTRA = [
    (
        "a further field is made where that is asked for",
        {"path": "data/notes", "kind": "Gadget", "create": True},
        {},
        {"data.notes.team": "edge"},
    ),
    ("and else only extended", {"path": "data/notes", "kind": "Gadget"}, {}, {}),
    (
        "where it is there it is extended",
        {"path": "data/notes"},
        {"data": {"notes": {"a": "b"}}},
        {"data.notes.team": "edge"},
    ),
    (
        "a path goes into lists",
        {"path": "pods[]/notes", "create": True},
        {"pods": [{"a": 1}, {"a": 1}]},
        {"pods.0.notes.team": "edge", "pods.1.notes.team": "edge"},
    ),
    ("other groups are not meant", {"path": "data/notes", "group": "apps", "create": True}, {}, {}),
    (
        "other versions are not meant",
        {"path": "data/notes", "version": "v2", "create": True},
        {},
        {},
    ),
]


@pytest.mark.parametrize(("row", "content", "expected"), rows(EXTRA))
def test_additional_annotation_fields(row, content, expected):
    config = {
        "apiVersion": "fn.kpt.dev/v1alpha1",
        "kind": "SetAnnotations",
        "annotations": {"team": "edge"},
        "additionalAnnotationFields": [row],
    }
    item = thing("example.com/v1", "Gadget", **content)
    wanted = {"metadata.annotations.team": "edge", **expected}
    assert changes("set-annotations", config, item) == wanted


REFUSED = [
    ("labels: none given", "set-labels", config_map()),
    ("labels: a number", "set-labels", config_map(tier=1)),
    ("annotations: none given", "set-annotations", config_map()),
    (
        "annotations: an unknown key of a further field",
        "set-annotations",
        {
            "apiVersion": "fn.kpt.dev/v1alpha1",
            "kind": "SetAnnotations",
            "annotations": {"a": "b"},
            "additionalAnnotationFields": [{"path": "a", "regexp": ".*"}],
        },
    ),
    (
        "annotations: a further field without path",
        "set-annotations",
        {
            "apiVersion": "fn.kpt.dev/v1alpha1",
            "kind": "SetAnnotations",
            "annotations": {"a": "b"},
            "additionalAnnotationFields": [{"kind": "Gadget"}],
        },
    ),
]


@pytest.mark.parametrize(("name", "config"), rows(REFUSED))
def test_a_configuration_that_is_not_understood_is_refused(name, config):
    with pytest.raises(InvalidInput):
        FUNCTIONS[name].configure(config)


IMAGES = [
    ("set-labels", "set-labels"),
    ("set-labels:v0.2.0", "set-labels"),
    ("ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0", "set-labels"),
    ("gcr.io/kpt-fn/set-labels@sha256:0123", "set-labels"),
    ("registry.example.com/set-labels:v0.2.0", None),
    ("kubeconform", None),
    ("", None),
]


@pytest.mark.parametrize(("image", "name"), IMAGES)
def test_which_images_run_in_process(image, name):
    found = find(image)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("value", "local"), [("true", True), ("false", False), (True, True), (None, False)]
)
def test_local_configuration(value, local):
    note = {"config.kubernetes.io/local-config": value}
    assert is_local(thing("v1", "ConfigMap", **meta(annotations=note))) is local
