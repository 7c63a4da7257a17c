"""Declared objects of a command, from the files of `-f` or a cluster: opening, checking names.

A misspelled name is an error that lists what exists, and never a policy with nothing to do.

This is the one module of the command line that loads `kube`, on its first use: the client of
Kubernetes is an extra, and takes as long as a no-op pass.
"""

import os
import sys
from collections.abc import Collection, Iterable
from typing import Any

from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cli.lazy_import import load_extra
from fanout.cli.process_exit import not_found
from fanout.cli.settings import POD_VARIABLE, STANDARD_INPUT, Settings
from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_cache import ManifestCache
from fanout.declared.declared_objects import DeclaredObjects, own_kind
from fanout.errors import InvalidInput
from fanout.gates.gate_wording import format_names
from fanout.ports import Inventory, RecordCreator

_NO_FILES = "check -f and FANOUT_FILES"


def build_not_found(
    object_type: str, missing: Iterable[str], existing_names: Iterable[str]
) -> InvalidInput:
    """Build the error for missing names of an object type; the remedy names existing ones."""
    existing = format_names(set(existing_names))
    return not_found(
        "there is " + " and ".join(f"no {object_type} {name}" for name in missing),
        f"there are: {existing}" if existing else "none exists",
    )


def check_declared(settings: Settings, declared: DeclaredObjects) -> None:
    """Raise InvalidInput if no object is declared, or none in the namespace of the settings."""
    namespace = settings.namespace
    # Those in which a fanout object is declared, valid or not.
    kinds = (declared.repositories, declared.policies, declared.variants, declared.promotions)
    namespaces = {item.metadata.namespace for kind in kinds for item in kind}
    namespaces |= {key.namespace for key in declared.left_out}
    if not (namespaces or declared.unread or declared.faults or len(declared.objects)):
        places = " and ".join(map(str, settings.files))
        remedy = f"files end in .yaml, .yml or .json; {_NO_FILES}"
        if settings.uses_cluster:
            places, remedy = "the cluster", "create objects of fanout.dev in it"
        raise InvalidInput(f"{places}: no objects", reason="NoFiles", remedy=remedy)
    if namespace and namespace not in namespaces and not declared.unread:
        if settings.uses_cluster:
            # It exists: kubectl knows it, and this may be the default of the context.
            raise not_found(
                f"namespace {namespace} has no objects of fanout",
                f"use -A, or -n with one of: {format_names(namespaces)}",
            )
        raise build_not_found("namespace", [namespace], namespaces)


def are_policies_unread(declared: DeclaredObjects, namespace: str) -> bool:
    """Return whether there may be policies in a namespace, or in any (""), that are not read."""
    kind = own_kind(UpstreamPolicy)
    return any(
        it.kind in (None, kind) and (not namespace or it.namespace in ("", namespace))
        for it in declared.unread
    )


def check_policies(names: Collection[str], declared: DeclaredObjects, namespace: str) -> None:
    """Raise InvalidInput unless each name is a policy or a variant written by hand.

    The remedy lists what exists. A policy that is declared with errors is reported as such.
    """
    objects = [*declared.policies, *declared.variants]
    usable = {it.metadata.name for it in objects if namespace in ("", it.metadata.namespace)}
    missing = sorted(set(names) - usable)
    broken = {key.name: key for key in declared.left_out if namespace in ("", key.namespace)}
    # A policy that is declared with errors is not misspelled; its error says what to do.
    for name in missing:
        if name in broken:
            raise InvalidInput(
                f"{broken[name].kind} {name} has an error",
                reason="InvalidObject",
                remedy="run `fanout validate`",
            )
    if missing:
        raise build_not_found("policy", missing, usable)


def open_inventory(settings: Settings) -> Inventory:
    """Open what objects are read from: a cluster, or the files of `-f`. Raises InvalidInput."""
    if settings.uses_cluster:
        source = _load(settings, "object_sources").ListedObjects(_connect(settings))
        module = _load(settings, "api_inventory")
        inventory: Inventory = module.ApiInventory(source, settings.namespace)
        return inventory
    return open_files(settings, ManifestCache(settings.state_dir / "parsed"))


def open_files(settings: Settings, parse_cache: ManifestCache | None = None) -> FileCluster:
    """Open the files of `-f`; `-` is read from standard input at once.

    Raises InvalidInput.

    `parse_cache`: cache of files that earlier commands parsed; without it no cache is written.
    """
    files = settings.require_files()
    if STANDARD_INPUT not in files:
        return FileCluster(files, cache=parse_cache)
    # Standard input can be read once only, and the files may be read again by a later pass.
    paths = [path for path in files if path != STANDARD_INPUT]
    return FileCluster(paths, stdin=sys.stdin.buffer.read(), cache=parse_cache)


def open_record_creator(settings: Settings) -> RecordCreator | None:
    """Open what creates records as objects of a cluster; None for files and the controller."""
    if not settings.uses_cluster or settings.is_controller:
        return None
    creator: RecordCreator = _load(settings, "pending_records").RecordCreation(_connect(settings))
    return creator


def open_watched_cluster(settings: Settings) -> Any:
    """Open the `fanout.kube.api_cluster.ApiCluster` of a controller. Raises InvalidInput."""
    connection = _connect(settings)
    return _load(settings, "api_cluster").ApiCluster(connection, find_default_namespace(settings))


def find_default_namespace(settings: Settings) -> str:
    """Return the namespace that kubectl would use: of the context, or of the pod.

    Raises InvalidInput if the kubeconfig file or the context cannot be used.
    """
    connections = _load(settings, "api_connection")
    namespace: str = (
        connections.read_pod_namespace()
        if _uses_pod(settings)
        else connections.read_context_namespace(settings.kubeconfig, settings.context)
    )
    return namespace or DEFAULT_NAMESPACE


def _connect(settings: Settings) -> Any:
    """Open the connection to the API server of the settings. Raises InvalidInput.

    Where no context and no kubeconfig file is named, a pod's service account has precedence.
    """
    connections = _load(settings, "api_connection")
    if _uses_pod(settings):
        return connections.open_pod_connection()
    return connections.open_connection(settings.kubeconfig, settings.context)


def _load(settings: Settings, module: str) -> Any:
    option = "--context" if settings.names_cluster else "without -f"
    if settings.is_controller:
        option = "fanout controller"
    return load_extra(f"kube.{module}", "kubernetes", option)


def _uses_pod(settings: Settings) -> bool:
    is_named = settings.context or settings.kubeconfig
    return not is_named and bool(os.environ.get(POD_VARIABLE))
