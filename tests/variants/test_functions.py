"""What each in-process function changes in which object."""

import pytest
from variants.builders import rows
from variants.functions import changes, function_config, meta, thing

from fanout.errors import InvalidInput
from fanout.package.merge.merge_units import is_local_config
from fanout.variants.function_registry import FUNCTIONS_BY_NAME, find_function
from fanout.variants.functions.function_interface import PackageFacts
from fanout.variants.functions.kind_scopes import CLUSTER_KINDS, NAMESPACED_KINDS

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
        "a kind that is called like a built-in one is not it",
        thing("example.com/v1", "Node", **meta(namespace="old")),
        {"metadata.namespace": "new"},
    ),
    (
        "nor is one in a group that is called like one of Kubernetes",
        thing("gateway.networking.k8s.io/v1", "Ingress"),
        {},
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
    assert changes("set-namespace", function_config(namespace="new"), item) == expected


SCOPES = [
    ("a definition says that the kind has no namespace", False, meta(namespace="old"), {}),
    ("a definition says that it has one", True, {}, {"metadata.namespace": "new"}),
    ("nobody defines the kind, and the object names a namespace", None, meta(namespace="old"),
     {"metadata.namespace": "new"}),
    ("nobody defines the kind, and the object names none", None, {}, {}),
    ("nobody defines the kind, and the object names an empty one", None, meta(namespace=""), {}),
]  # fmt: skip


@pytest.mark.parametrize(("scope", "fields", "expected"), rows(SCOPES))
def test_set_namespace_of_a_custom_kind(scope, fields, expected):
    facts = PackageFacts(scopes={} if scope is None else {("example.com", "Gadget"): scope})
    gadget = thing("example.com/v1", "Gadget", **fields)
    assert changes("set-namespace", function_config(namespace="new"), gadget, facts) == expected


def test_built_in_kinds_of_kubernetes_need_no_definition():
    assert not NAMESPACED_KINDS & CLUSTER_KINDS
    for group, kind in NAMESPACED_KINDS:
        item = thing(f"{group}/v1" if group else "v1", kind)
        field_changes = changes("set-namespace", function_config(namespace="new"), item)
        assert field_changes == {"metadata.namespace": "new"}


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
    facts = PackageFacts(namespaced=frozenset({("apps", "Deployment", "old", "db")}))
    note = "config.kubernetes.io/depends-on"
    item = thing("v1", "Service", **meta(namespace="new", annotations={note: text}))
    wanted = {f"metadata.annotations.{note}": expected} if expected else {}
    assert changes("set-namespace", function_config(namespace="new"), item, facts) == wanted


MATCHERS = [
    ("only what was in the named namespace moves", meta(namespace="old"), True),
    ("what was elsewhere stays", meta(namespace="other"), False),
    ("nothing written means default, which is not the named one", meta(), False),
]


def test_accounts_of_foreign_namespaces_move_unless_a_matcher_keeps_them():
    accounts = [
        {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        for name, namespace in [("ours", "old"), ("prometheus", "monitoring")]
    ]
    binding = thing(RBAC, "ClusterRoleBinding", subjects=accounts)
    ours, theirs = "subjects.0.namespace", "subjects.1.namespace"
    every = function_config(namespace="new")
    assert changes("set-namespace", every, binding) == {ours: "new", theirs: "new"}
    matched = function_config(namespace="new", namespaceMatcher="old")
    assert changes("set-namespace", matched, binding) == {ours: "new"}


@pytest.mark.parametrize(("fields", "moves"), rows(MATCHERS))
def test_set_namespace_with_a_matcher(fields, moves):
    config = function_config(namespace="new", namespaceMatcher="old")
    assert bool(changes("set-namespace", config, thing("v1", "Service", **fields))) is moves


CONFIGURATIONS = [
    ("a ConfigMap's data.namespace", function_config(namespace="new"), "new"),
    (
        "a SetNamespace object",
        {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "SetNamespace", "namespace": "new"},
        "new",
    ),
    (
        "the package context's name",
        {**function_config(name="new"), "metadata": {"name": "kptfile.kpt.dev"}},
        "new",
    ),
    (
        "the name in any other ConfigMap is refused",
        {**function_config(name="new"), "metadata": {"name": "other"}},
        None,
    ),
    ("nothing at all is refused", function_config(), None),
    ("an upper-case name is refused", function_config(namespace="New"), None),
    ("a name that is too long is refused", function_config(namespace="n" * 64), None),
    ("a number is refused", function_config(namespace=7), None),
    ("another kind is refused", {"apiVersion": "v1", "kind": "Service"}, None),
]


@pytest.mark.parametrize(("config", "namespace"), rows(CONFIGURATIONS))
def test_configuration_of_set_namespace(config, namespace):
    if namespace:
        field_changes = changes("set-namespace", config, thing("v1", "Service"))
        assert field_changes == {"metadata.namespace": namespace}
    else:
        with pytest.raises(InvalidInput):
            FUNCTIONS_BY_NAME["set-namespace"].configure(config)


REFUSED = [
    ("labels: none given", "set-labels", function_config()),
    ("labels: a number", "set-labels", function_config(tier=1)),
    ("annotations: none given", "set-annotations", function_config()),
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
        FUNCTIONS_BY_NAME[name].configure(config)


IMAGES = [
    ("set-labels", "set-labels"),
    ("set-labels:v0.2.0", "set-labels"),
    ("ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0", "set-labels"),
    ("gcr.io/kpt-fn/set-labels@sha256:0123", "set-labels"),
    ("registry.example.com/set-labels:v0.2.0", None),
    ("kubeconform", "kubeconform"),
    ("starlark", None),
    ("", None),
]


@pytest.mark.parametrize(("image", "name"), IMAGES)
def test_images_of_the_catalog_run_in_process(image, name):
    function = find_function(image)
    assert (function.name if function else None) == name


@pytest.mark.parametrize(
    ("value", "local"), [("true", True), ("false", False), (True, True), (None, False)]
)
def test_local_configuration(value, local):
    note = {"config.kubernetes.io/local-config": value}
    assert is_local_config(thing("v1", "ConfigMap", **meta(annotations=note))) is local
