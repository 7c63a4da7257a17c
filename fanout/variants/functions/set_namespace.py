"""set-namespace: set the namespace in every field of a package that names it."""

import re
from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.values import Value
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Object,
    PackageFacts,
    Path,
    VisibleObject,
    check_inline_names,
    group_kind,
    is_function_kind,
    kind_values,
    mapping,
)
from fanout.variants.functions.kind_scopes import is_namespaced

CONTEXT_NAME = "kptfile.kpt.dev"  # the package context can be this function's configuration
DEPENDS_ON = "config.kubernetes.io/depends-on"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
# Fields that name a Service with its namespace.
SERVICE_REFERENCES: dict[tuple[str, str], Path] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        *("spec", "conversion", "webhook", "clientConfig", "service"),
    ),
    ("apiregistration.k8s.io", "APIService"): ("spec", "service"),
}


class _Config(Value):
    namespace: str
    matcher: str  # "": any namespace is replaced

    def replaces(self, old: object) -> bool:
        """Return whether this namespace is to be replaced; an absent one is `default`."""
        return old != self.namespace and self.matcher in ("", old or "default")

    def changes(self, visible: VisibleObject, facts: PackageFacts) -> Iterator[Change]:
        item = visible.value
        kind, meta = group_kind(item), mapping(item.get("metadata"))
        if is_namespaced(*kind, meta.get("namespace"), facts):
            if self.replaces(meta.get("namespace")):
                yield ("metadata", "namespace"), self.namespace
        elif kind == ("", "Namespace"):
            if self.replaces(meta.get("name")):
                yield ("metadata", "name"), self.namespace
        elif kind in SERVICE_REFERENCES:
            path = (*SERVICE_REFERENCES[kind], "namespace")
            value = get_value(item, path)
            if value and value is not MISSING and self.replaces(value):
                yield path, self.namespace
        if kind[1] in _BINDINGS and kind[0] == "rbac.authorization.k8s.io":
            # Only service accounts with an explicit namespace.
            subjects = item.get("subjects")
            for index, subject in enumerate(subjects if isinstance(subjects, list) else ()):
                fields = mapping(subject)
                namespace = fields.get("namespace")
                if (
                    fields.get("kind") == "ServiceAccount"
                    and namespace
                    and self.replaces(namespace)
                ):
                    yield ("subjects", index, "namespace"), self.namespace
        if (depends := mapping(meta.get("annotations")).get(DEPENDS_ON)) and facts.namespaced:
            yield from self.dependency_changes(str(depends), facts)

    def dependency_changes(self, text: str, facts: PackageFacts) -> Iterator[Change]:
        """Yield the change of a depends-on annotation with the namespaces replaced.

        Only references to objects of the package are changed.
        """
        references = text.split(",")
        for index, reference in enumerate(references):
            parts = reference.strip().split("/")
            if len(parts) != 5 or parts[1] != "namespaces":
                continue
            group, _, namespace, kind, name = parts
            if (group, kind, namespace, name) in facts.namespaced and self.replaces(namespace):
                references[index] = reference.replace(
                    f"/namespaces/{namespace}/", f"/namespaces/{self.namespace}/"
                )
        if (new_text := ",".join(references)) != text:
            yield ("metadata", "annotations", DEPENDS_ON), new_text

    def depends_on(self, visible: VisibleObject) -> Iterator[object]:
        """Yield the kind, whether a namespace is set, and with a matcher the namespaces."""
        yield self.matcher
        yield from kind_values(self, visible)
        item = visible.value
        meta = mapping(item.get("metadata"))
        # Without a matcher the old namespace is overwritten whatever it is, so it may differ
        # between variants of one template; that there is one decides the scope of undefined kinds.
        yield bool(meta.get("namespace"))
        if self.matcher:
            yield from (meta.get("namespace"), meta.get("name"), item.get("subjects"))
            yield item.get("spec") if group_kind(item) in SERVICE_REFERENCES else None


def _configure(config: Object) -> _Config:
    if is_function_kind(config, "SetNamespace"):
        values, key = config, "namespace"
    else:
        check_inline_names(config, ("namespace", "namespaceMatcher"))
        values = mapping(config.get("data"))
        config_name = mapping(config.get("metadata")).get("name")
        key = "name" if config_name == CONTEXT_NAME and not values.get("namespace") else "namespace"
    if (namespace := values.get(key)) is not None and not isinstance(namespace, str):
        raise InvalidInput(f"{key} is not a string", remedy="put the value in quotes")
    if not namespace or not _LABEL.match(namespace):
        raise InvalidInput(
            f"{namespace!r} is not a valid namespace name" if namespace else f"{key} is missing",
            remedy="use at most 63 lower case letters, digits and dashes, with no dash at either"
            " end",
        )
    matcher = values.get("namespaceMatcher") or ""
    if not isinstance(matcher, str):
        raise InvalidInput("namespaceMatcher is not a string")
    return _Config(namespace, matcher)


SET_NAMESPACE = CatalogFunction(
    "set-namespace",
    "2",
    _configure,
    _Config.changes,
    depends_on=_Config.depends_on,
    passes_through=lambda name, _text: name != "namespaceMatcher",
    uses_scopes=True,
)
