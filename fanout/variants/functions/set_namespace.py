"""everything in a package that names its namespace names another one."""

import re
from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions.config import check_inline, is_own_kind
from fanout.variants.functions.function import (
    Change,
    Facts,
    InProcess,
    Object,
    Path,
    kinds_only,
    mapping,
)
from fanout.variants.functions.scope import is_namespaced

CONTEXT_NAME = "kptfile.kpt.dev"  # the package context can be this function's configuration
DEPENDS_ON = "config.kubernetes.io/depends-on"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})
_SERVICES: dict[tuple[str, str], Path] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        *("spec", "conversion", "webhook", "clientConfig", "service", "namespace"),
    ),
    ("apiregistration.k8s.io", "APIService"): ("spec", "service", "namespace"),
}


@frozen
class _Config:
    namespace: str
    matcher: str  # "": whatever the namespace was

    def replaces(self, old: object) -> bool:
        """Is this the namespace to be replaced? One that is not written is `default`."""
        return old != self.namespace and self.matcher in ("", old or "default")


def _configure(config: Object) -> _Config:
    if is_own_kind(config, "SetNamespace"):
        values, key = config, "namespace"
    else:
        check_inline(config, ("namespace", "namespaceMatcher"))
        values = mapping(config.get("data"))
        named = mapping(config.get("metadata")).get("name")
        key = "name" if named == CONTEXT_NAME and not values.get("namespace") else "namespace"
    namespace = values.get(key)
    if namespace is not None and not isinstance(namespace, str):
        raise InvalidInput(f"{key} is not text", remedy="put the value in quotes")
    if not namespace or not _LABEL.match(namespace):
        problem = f"{namespace!r} is no name for a namespace" if namespace else f"no {key} is given"
        raise InvalidInput(
            problem,
            remedy="lower case letters, digits and dashes, at most 63, none at either end a dash",
        )
    matcher = values.get("namespaceMatcher") or ""
    if not isinstance(matcher, str):
        raise InvalidInput("namespaceMatcher is not text")
    return _Config(namespace, matcher)


def _changes(config: _Config, item: Object, facts: Facts) -> Iterator[Change]:
    kind = (group_of(str(item.get("apiVersion", ""))), str(item.get("kind", "")))
    meta = mapping(item.get("metadata"))
    if is_namespaced(*kind, meta.get("namespace"), facts):
        if config.replaces(meta.get("namespace")):
            yield ("metadata", "namespace"), config.namespace
    elif kind == ("", "Namespace"):
        if config.replaces(meta.get("name")):
            yield ("metadata", "name"), config.namespace
    elif kind in _SERVICES:
        yield from _service(config, item, _SERVICES[kind])
    if kind[1] in _BINDINGS and kind[0] == "rbac.authorization.k8s.io":
        yield from _subjects(config, item.get("subjects"))
    depends = mapping(meta.get("annotations")).get(DEPENDS_ON)
    if depends and facts.namespaced:
        yield from _dependencies(config, str(depends), facts)


def _service(config: _Config, item: Object, path: Path) -> Iterator[Change]:
    value: object = item
    for key in path:
        value = mapping(value).get(key)
    if value and config.replaces(value):
        yield path, config.namespace


def _subjects(config: _Config, subjects: object) -> Iterator[Change]:
    """Only service accounts have a namespace, and only one that is written can be replaced."""
    for index, subject in enumerate(subjects if isinstance(subjects, list) else ()):
        fields = mapping(subject)
        namespace = fields.get("namespace")
        if fields.get("kind") == "ServiceAccount" and namespace and config.replaces(namespace):
            yield ("subjects", index, "namespace"), config.namespace


def _dependencies(config: _Config, text: str, facts: Facts) -> Iterator[Change]:
    """Follow the objects of the package that this one waits for: group/namespaces/ns/kind/name."""
    references = text.split(",")
    for index, reference in enumerate(references):
        parts = reference.strip().split("/")
        if len(parts) != 5 or parts[1] != "namespaces":
            continue
        group, _, namespace, kind, name = parts
        if (group, kind, namespace, name) in facts.namespaced and config.replaces(namespace):
            references[index] = reference.replace(
                f"/namespaces/{namespace}/", f"/namespaces/{config.namespace}/"
            )
    changed = ",".join(references)
    if changed != text:
        yield ("metadata", "annotations", DEPENDS_ON), changed


def _heeds(config: _Config, item: Object, facts: Facts) -> Iterator[object]:
    """Where one namespace is to be replaced, also those that there are."""
    yield config.matcher
    yield from kinds_only(config, item, facts)
    yield bool(mapping(item.get("metadata")).get("namespace"))
    if config.matcher:
        meta = mapping(item.get("metadata"))
        yield from (meta.get("namespace"), meta.get("name"), item.get("subjects"))
        kind = (group_of(str(item.get("apiVersion", ""))), str(item.get("kind", "")))
        yield item.get("spec") if kind in _SERVICES else None


SET_NAMESPACE = InProcess(
    "set-namespace",
    "2",
    _configure,
    _changes,
    heeds=_heeds,
    copies=lambda name, _text: name != "namespaceMatcher",
    by_scope=True,
)
