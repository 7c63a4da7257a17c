"""ensure-name-substring: give every name in the package a prefix or a suffix.

References to a renamed object are updated. A name that already contains the text
anywhere is left unchanged, and so are the references to it.
"""

from collections.abc import Iterator, Sequence

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.selection.cluster_objects import group_of
from fanout.values import Value
from fanout.variants.functions.field_specs import (
    CORE,
    POD_TEMPLATES,
    FieldSpec,
    fields_of_kind,
    find_fields,
    parse_field_specs,
    walk_path,
)
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Identity,
    Object,
    PackageFacts,
    Path,
    VisibleObject,
    declared_identity,
    is_function_kind,
    mapping,
    parse_data,
    parse_fields,
)
from fanout.variants.functions.kind_scopes import CLUSTER_KINDS, Kind
from fanout.variants.functions.set_namespace import DEPENDS_ON, SERVICE_REFERENCES

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
_POD_SPECS: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (CORE, frozenset({"Pod"}), ("spec",)),
    (CORE, frozenset({"PodTemplate"}), ("template", "spec")),
    *((groups, kinds, (*template, "spec")) for groups, kinds, template in POD_TEMPLATES),
)
_POD_REFERENCES: tuple[tuple[Kind, str], ...] = (
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
_OTHER_REFERENCES: tuple[tuple[Kind, str, str, str], ...] = (
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
_INGRESS_REFERENCES: tuple[tuple[Kind, str], ...] = (
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


class _Reference(FieldSpec):
    referenced_kind: Kind = ("", "")


def _build_reference(
    referenced_kind: Kind, path: str, kinds: frozenset[str], groups: frozenset[str]
) -> _Reference:
    # Paths are written with slashes in the tables, and annotation keys contain one.
    parts = tuple(part.replace("~", "/") for part in path.split("/"))
    return _Reference(
        existing_path=parts, kinds=kinds, groups=groups, referenced_kind=referenced_kind
    )


_REFERENCES: tuple[FieldSpec, ...] = (
    *(
        _build_reference(to, f"{'/'.join(pod)}/{path}", kinds, groups)
        for groups, kinds, pod in _POD_SPECS
        for to, path in _POD_REFERENCES
    ),
    *(
        _build_reference(to, path, frozenset({kind}), frozenset({group}))
        for to, group, kind, path in _OTHER_REFERENCES
    ),
    *(
        _build_reference(to, path, frozenset({"Ingress"}), _NETWORK)
        for to, path in _INGRESS_REFERENCES
    ),
)


def find_references(item: Object) -> Iterator[tuple[Path, str, Identity]]:
    """Yield the references in this object: path, name, and identity of the named object."""
    api_version, kind = str(item.get("apiVersion", "")), str(item.get("kind", ""))
    namespace = str(mapping(item.get("metadata")).get("namespace") or "")
    for field in fields_of_kind(_REFERENCES, api_version, kind):
        assert isinstance(field, _Reference)
        for path, name in walk_path(item, field.existing_path, ()):
            if isinstance(name, str):
                # an annotation may name the namespace too
                named_namespace, _, bare_name = name.rpartition("/")
                yield (
                    path,
                    bare_name,
                    (*field.referenced_kind, named_namespace or namespace, bare_name),
                )
    yield from _kind_references(item, (group_of(api_version), kind), namespace)


def _kind_references(
    item: Object, kind: Kind, namespace: str
) -> Iterator[tuple[Path, str, Identity]]:
    """Yield references that state the kind or namespace of the named object themselves."""
    group, name = kind
    if group == _RBAC and name in ("RoleBinding", "ClusterRoleBinding"):
        yield from _object_reference(
            item, ("roleRef",), (_RBAC, str(get_value(item, ("roleRef", "kind")))), namespace
        )
        for path, subject in walk_path(item, ("subjects", "*"), ()):
            if mapping(subject).get("kind") == "ServiceAccount":
                yield from _object_reference(item, path, _ACCOUNT, namespace)
    elif group == _RBAC and name in ("Role", "ClusterRole"):
        # `resourceNames`, for kinds that are commonly granted by name
        kinds = {"configmaps": _CONFIG_MAP, "secrets": _SECRET, "persistentvolumes": _VOLUME}
        for path, rule in walk_path(item, ("rules", "*"), ()):
            resources = mapping(rule).get("resources")
            for resource in resources if isinstance(resources, list) else ():
                if resource in kinds:
                    for at, granted in walk_path(rule, ("resourceNames", "*"), path):
                        yield at, str(granted), (*kinds[resource], namespace, str(granted))
    elif (group, name) == ("autoscaling", "HorizontalPodAutoscaler"):
        path = ("spec", "scaleTargetRef")
        target = mapping(get_value(item, path))
        referenced_kind = (group_of(str(target.get("apiVersion", ""))), str(target.get("kind")))
        yield from _object_reference(item, path, referenced_kind, namespace)
    elif kind in SERVICE_REFERENCES:
        yield from _object_reference(item, SERVICE_REFERENCES[kind], _SERVICE, namespace)
    elif group == "admissionregistration.k8s.io" and name in _WEBHOOKS:
        for path, _ in walk_path(item, ("webhooks", "*", "clientConfig", "service"), ()):
            yield from _object_reference(item, path, _SERVICE, namespace)


def _object_reference(
    item: Object, path: Path, referenced_kind: Kind, namespace: str
) -> Iterator[tuple[Path, str, Identity]]:
    reference = mapping(get_value(item, path))
    name = reference.get("name")
    if isinstance(name, str):
        yield (
            (*path, "name"),
            name,
            (*referenced_kind, str(reference.get("namespace") or namespace), name),
        )


_NAME: Path = ("metadata", "name")
_MAX_NAME_LENGTH = 253  # characters of an object's name
_MODES = ("prepend", "append")
_NEVER_RENAMED = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("", "Namespace"),
    }
)


class _Config(Value):
    text: str
    append: bool
    fields: tuple[FieldSpec, ...]

    def rename(self, name: str) -> str:
        """Return the name with the text added, unless it contains it."""
        if self.text in name:
            return name
        return f"{name}{self.text}" if self.append else f"{self.text}{name}"

    def find_renamed(self, items: Sequence[VisibleObject]) -> frozenset[Identity]:
        """Return the objects that are renamed."""
        identities = (_with_default_namespace(declared_identity(item.value)) for item in items)
        return frozenset(
            identity
            for identity in identities
            if identity[:2] not in _NEVER_RENAMED
            and identity[3]
            and self.rename(identity[3]) != identity[3]
        )

    def changes(self, visible: VisibleObject, facts: PackageFacts) -> Iterator[Change]:
        item, renamed = visible.value, facts.survey
        if (identity := _with_default_namespace(declared_identity(item))) in renamed:
            yield _NAME, self.rename(identity[3])
        # Only names of objects in the package are followed: a Secret that is created by other
        # means keeps the name by which it is referenced.
        for path, name, referenced in find_references(item):
            if _with_default_namespace(referenced) in renamed:
                new_name = self.rename(name)
                yield (
                    path,
                    f"{referenced[2]}/{new_name}"
                    if "/" in str(get_value(item, path))
                    else new_name,
                )
        if identity[:2] not in _NEVER_RENAMED:
            for path, value in find_fields(self.fields, item):
                if value is MISSING:
                    yield path, self.text
                elif isinstance(value, str) and path != _NAME:
                    yield path, self.rename(value)
        depends = mapping(mapping(item.get("metadata")).get("annotations")).get(DEPENDS_ON)
        if isinstance(depends, str):
            references = depends.split(",")
            for number, reference in enumerate(references):
                # `group/kind/name` or `group/namespaces/namespace/kind/name`
                group, *rest = reference.strip().split("/")
                if len(rest) == 4 and rest[0] == "namespaces":
                    identity = (group, rest[2], rest[1] or "default", rest[3])
                elif len(rest) == 2:
                    identity = _with_default_namespace((group, rest[0], "", rest[1]))
                else:
                    continue
                if identity in renamed:
                    start = reference[: len(reference.rstrip()) - len(identity[3])]
                    references[number] = f"{start}{self.rename(identity[3])}"
            yield ("metadata", "annotations", DEPENDS_ON), ",".join(references)


def _configure(config: Object) -> _Config:
    rows: object = None
    if is_function_kind(config, "EnsureNameSubstring"):
        settings = {key: config[key] for key in ("substring", "editMode") if key in config}
        values = parse_fields(settings, "EnsureNameSubstring", ("substring", "editMode"))
        text, mode = values.get("substring", ""), values.get("editMode") or _MODES[0]
        field_specs, name_fields = config.get("fieldSpecs"), config.get("additionalNameFields")
        if field_specs is not None and name_fields is not None:
            raise InvalidInput(
                "fieldSpecs and additionalNameFields exclude each other",
                remedy="keep additionalNameFields",
            )
        rows = name_fields if field_specs is None else field_specs
    else:
        values = parse_fields(dict(parse_data(config)), "data", _MODES)
        if len(values) != 1:
            raise InvalidInput(
                f"data has {len(values)} entries", remedy="set either prepend or append"
            )
        [(mode, text)] = values.items()
    if mode not in _MODES:
        raise InvalidInput(f"editMode is {mode!r}", remedy="use prepend or append")
    if not text:
        raise InvalidInput(f"the text to {mode} is empty", remedy="write it")
    if len(text) > _MAX_NAME_LENGTH:
        problem = f"the text to {mode} has {len(text):,} characters"
        raise InvalidInput(problem, remedy=f"a name has at most {_MAX_NAME_LENGTH} characters")
    return _Config(text, mode == "append", parse_field_specs(rows, "additionalNameFields"))


def _with_default_namespace(identity: Identity) -> Identity:
    """Return the identity with the namespace that it means: `default`, or none by scope."""
    group, kind, namespace, name = identity
    is_cluster_scoped = (group, kind) in CLUSTER_KINDS
    return group, kind, "" if is_cluster_scoped else namespace or "default", name


ENSURE_NAME_SUBSTRING = CatalogFunction(
    "ensure-name-substring", "1", _configure, _Config.changes, survey=_Config.find_renamed
)
