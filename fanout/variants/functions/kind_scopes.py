"""Scopes of kinds: namespaced or cluster-scoped.

Kubernetes' own kinds are listed. The scope of a custom kind is taken from its
definition, in the package or among the declared objects. Without a definition an
object counts as namespaced if it has a namespace, as the catalog documents.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fanout.selection.cluster_objects import group_of
from fanout.variants.functions.function_interface import PackageFacts, mapping

Kind = tuple[str, str]  # group, kind
CRD_KIND = ("apiextensions.k8s.io", "CustomResourceDefinition")

_CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
_NAMESPACED = {
    "": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate"
    " ReplicationController ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "scheduling.k8s.io": "PodGroup Workload",
    "storage.k8s.io": "CSIStorageCapacity",
}
CLUSTER_KINDS = frozenset(
    (group, kind) for group, row in _CLUSTER_SCOPED.items() for kind in row.split()
)


NAMESPACED_KINDS = frozenset(
    (group, kind) for group, row in _NAMESPACED.items() for kind in row.split()
)


def is_namespaced(group: str, kind: str, namespace: object, facts: PackageFacts) -> bool:
    """Return whether an object of this kind with this `metadata.namespace` is namespaced."""
    if (group, kind) in NAMESPACED_KINDS:
        return True
    if (group, kind) in CLUSTER_KINDS:
        return False
    return facts.scopes.get((group, kind), bool(namespace))


def read_scopes(definitions: Iterable[Mapping[str, Any]]) -> dict[Kind, bool]:
    """Return by kind whether it is namespaced, from CustomResourceDefinitions."""
    scopes = {}
    for item in definitions:
        if (group_of(str(item.get("apiVersion", ""))), item.get("kind")) != CRD_KIND:
            continue
        spec = mapping(item.get("spec"))
        if spec.get("scope") in ("Cluster", "Namespaced"):
            kind = (str(spec.get("group", "")), str(mapping(spec.get("names")).get("kind")))
            scopes[kind] = spec["scope"] == "Namespaced"
    return scopes
