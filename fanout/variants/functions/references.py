"""Where Kubernetes' own kinds name other objects: what must follow when those are renamed."""

from collections.abc import Iterator

from fanout.package.edits import get
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions.fields import Field, fitting, places
from fanout.variants.functions.function import Identity, Object, Path, mapping
from fanout.variants.functions.pods import APPS, BATCH, CORE, WORKLOADS

Kind = tuple[str, str]  # group and kind

_RBAC = "rbac.authorization.k8s.io"
_CONFIG_MAP: Kind = ("", "ConfigMap")
_SECRET: Kind = ("", "Secret")
_SERVICE: Kind = ("", "Service")
_CLAIM: Kind = ("", "PersistentVolumeClaim")
_VOLUME: Kind = ("", "PersistentVolume")
_ACCOUNT: Kind = ("", "ServiceAccount")
_STORAGE: Kind = ("storage.k8s.io", "StorageClass")
_NETWORK = frozenset({"networking.k8s.io", "extensions"})
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_PODS: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (CORE, frozenset({"Pod"}), ("spec",)),
    (CORE, frozenset({"PodTemplate"}), ("template", "spec")),
    (CORE, frozenset({"ReplicationController"}), ("spec", "template", "spec")),
    (APPS, WORKLOADS, ("spec", "template", "spec")),
    (BATCH, frozenset({"Job"}), ("spec", "template", "spec")),
    (BATCH, frozenset({"CronJob"}), ("spec", "jobTemplate", "spec", "template", "spec")),
)
_IN_PODS: tuple[tuple[Kind, str], ...] = (
    (_CONFIG_MAP, "volumes/*/configMap/name"),
    (_CONFIG_MAP, "volumes/*/projected/sources/*/configMap/name"),
    (_SECRET, "volumes/*/secret/secretName"),
    (_SECRET, "volumes/*/projected/sources/*/secret/name"),
    (_SECRET, "imagePullSecrets/*/name"),
    (_CLAIM, "volumes/*/persistentVolumeClaim/claimName"),
    (_ACCOUNT, "serviceAccountName"),
    (("scheduling.k8s.io", "PriorityClass"), "priorityClassName"),
    *(
        row
        for containers in ("containers", "initContainers", "ephemeralContainers")
        for row in (
            (_CONFIG_MAP, f"{containers}/*/env/*/valueFrom/configMapKeyRef/name"),
            (_CONFIG_MAP, f"{containers}/*/envFrom/*/configMapRef/name"),
            (_SECRET, f"{containers}/*/env/*/valueFrom/secretKeyRef/name"),
            (_SECRET, f"{containers}/*/envFrom/*/secretRef/name"),
        )
    ),
)
_ELSEWHERE: tuple[tuple[Kind, str, str, str], ...] = (
    (_SERVICE, "apps", "StatefulSet", "spec/serviceName"),
    (_STORAGE, "apps", "StatefulSet", "spec/volumeClaimTemplates/*/spec/storageClassName"),
    (_STORAGE, "", "PersistentVolumeClaim", "spec/storageClassName"),
    (_VOLUME, "", "PersistentVolumeClaim", "spec/volumeName"),
    (_STORAGE, "", "PersistentVolume", "spec/storageClassName"),
    (_SECRET, "", "ServiceAccount", "imagePullSecrets/*/name"),
    (_SECRET, "", "ServiceAccount", "secrets/*/name"),
    (
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "spec/policyName",
    ),
)
_INGRESS: tuple[tuple[Kind, str], ...] = (
    (_SERVICE, "spec/rules/*/http/paths/*/backend/service/name"),
    (_SERVICE, "spec/rules/*/http/paths/*/backend/serviceName"),
    (_SERVICE, "spec/defaultBackend/service/name"),
    (_SERVICE, "spec/backend/serviceName"),
    (_SECRET, "spec/tls/*/secretName"),
    (("networking.k8s.io", "IngressClass"), "spec/ingressClassName"),
    (_CONFIG_MAP, "metadata/annotations/nginx.ingress.kubernetes.io~fastcgi-params-configmap"),
    (_SECRET, "metadata/annotations/nginx.ingress.kubernetes.io~auth-secret"),
    (_SECRET, "metadata/annotations/nginx.ingress.kubernetes.io~auth-tls-secret"),
)


@frozen
class _Reference(Field):
    to: Kind = ("", "")


def _reference(to: Kind, path: str, kinds: frozenset[str], groups: frozenset[str]) -> _Reference:
    parts = tuple(part.replace("~", "/") for part in path.split("/"))
    return _Reference(at=parts, kinds=kinds, groups=groups, to=to)


_REFERENCES: tuple[Field, ...] = (
    *(
        _reference(to, f"{'/'.join(pod)}/{path}", kinds, groups)
        for groups, kinds, pod in _PODS
        for to, path in _IN_PODS
    ),
    *(
        _reference(to, path, frozenset({kind}), frozenset({group}))
        for to, group, kind, path in _ELSEWHERE
    ),
    *(_reference(to, path, frozenset({"Ingress"}), _NETWORK) for to, path in _INGRESS),
)


def references(item: Object) -> Iterator[tuple[Path, str, Identity]]:
    """The names of other objects in this one: where, which name, and of what object."""
    api_version, kind = str(item.get("apiVersion", "")), str(item.get("kind", ""))
    namespace = str(mapping(item.get("metadata")).get("namespace") or "")
    for field in fitting(_REFERENCES, api_version, kind):
        assert isinstance(field, _Reference)
        for path, name in places(item, field.at, ()):
            if isinstance(name, str):
                there, _, bare = name.rpartition("/")  # an annotation may name the namespace too
                yield path, bare, (*field.to, there or namespace, bare)
    yield from _by_kind(item, (group_of(api_version), kind), namespace)


def _by_kind(item: Object, kind: Kind, namespace: str) -> Iterator[tuple[Path, str, Identity]]:
    """References that say themselves what kind or namespace they are about."""
    group, name = kind
    if group == _RBAC and name in ("RoleBinding", "ClusterRoleBinding"):
        yield from _one(item, ("roleRef",), (_RBAC, str(get(item, ("roleRef", "kind")))), namespace)
        for path, subject in places(item, ("subjects", "*"), ()):
            if mapping(subject).get("kind") == "ServiceAccount":
                yield from _one(item, path, _ACCOUNT, namespace)
    elif group == _RBAC and name in ("Role", "ClusterRole"):
        yield from _rules(item, namespace)
    elif (group, name) == ("autoscaling", "HorizontalPodAutoscaler"):
        path = ("spec", "scaleTargetRef")
        target = mapping(get(item, path))
        to = (group_of(str(target.get("apiVersion", ""))), str(target.get("kind")))
        yield from _one(item, path, to, namespace)
    elif (group, name) == ("apiregistration.k8s.io", "APIService"):
        yield from _one(item, ("spec", "service"), _SERVICE, namespace)
    elif (group, name) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        path = ("spec", "conversion", "webhook", "clientConfig", "service")
        yield from _one(item, path, _SERVICE, namespace)
    elif group == "admissionregistration.k8s.io" and name in _WEBHOOKS:
        for path, _ in places(item, ("webhooks", "*", "clientConfig", "service"), ()):
            yield from _one(item, path, _SERVICE, namespace)


def _one(
    item: Object, path: Path, to: Kind, namespace: str
) -> Iterator[tuple[Path, str, Identity]]:
    found = mapping(get(item, path))
    name = found.get("name")
    if isinstance(name, str):
        yield (*path, "name"), name, (*to, str(found.get("namespace") or namespace), name)


def _rules(item: Object, namespace: str) -> Iterator[tuple[Path, str, Identity]]:
    """`resourceNames`: of the kinds that are commonly granted by name."""
    kinds = {"configmaps": _CONFIG_MAP, "secrets": _SECRET, "persistentvolumes": _VOLUME}
    for path, rule in places(item, ("rules", "*"), ()):
        resources = mapping(rule).get("resources")
        for resource in resources if isinstance(resources, list) else ():
            if resource in kinds:
                for at, name in places(rule, ("resourceNames", "*"), path):
                    yield at, str(name), (*kinds[resource], namespace, str(name))
