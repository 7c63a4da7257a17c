"""Access to the API server of the settings: the one module of the command line that loads `kube`.

Loaded on first use: the client of Kubernetes is an extra, and takes as long as a no-op pass.
"""

import os
from typing import Any

from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.cli.lazy_import import load_extra
from fanout.cli.settings import POD_VARIABLE, Settings
from fanout.ports import RecordCreator


def open_listed_objects(settings: Settings) -> Any:
    """Open the inventory of a command, which lists objects. Raises InvalidInput."""
    source = _load(settings, "object_sources").ListedObjects(_connect(settings))
    return _load(settings, "api_inventory").ApiInventory(source, settings.namespace)


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
