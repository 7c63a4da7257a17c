"""Sentences about the API server of a cluster, and what it serves."""

from collections.abc import Sequence

from fanout.errors import FanoutError

KUBECONFIG_REMEDY = "run `kubectl config get-contexts`, and name one with --context"
CLUSTER_REMEDY = "check the address of the kubeconfig file, and that the API server runs"
NOT_SERVED_REMEDY = "install its CustomResourceDefinition, or correct the policy that names it"
SERVICE_ACCOUNT_REMEDY = "name a kubeconfig file with --kubeconfig, or run it in a pod"
RETRY_REMEDY = "none: it is read and decided again"
REFUSED_REMEDY = "correct the object"
OTHER_REPOSITORIES = "Repository objects of other namespaces"
MISSING_REMEDY = "create the Secret in the namespace of the Repository"
ROLE_REMEDY = (
    "grant the controller get on it, with a RoleBinding in its namespace to the ClusterRole"
    " fanout-secret-reader"
)
KEYS_REMEDY = "its keys are username and password, or ssh-privatekey and known_hosts"
SECRETS_UNREAD = "fanout reads no Secrets as targets, sources or checks"
SECRETS_REMEDY = "name another kind in the policy"
VERSION_REMEDY = "name a version that is served"
DELETED_MEANWHILE = "it was deleted meanwhile"
DEFINITIONS_REMEDY = "run `fanout crds | kubectl apply --server-side -f -`"


def describe_kubeconfig(context: str, error: Exception) -> str:
    """Say that the kubeconfig file, or a context of it, cannot be used."""
    subject = f"context {context}" if context else "the kubeconfig file"
    return f"{subject} cannot be used: {error}"


def describe_service_account(error: Exception) -> str:
    """Say that the service account of a pod cannot be used."""
    return f"the service account of the pod cannot be used: {error}"


# Secrets without their namespace: policies of others read this about a shared Repository.


def describe_forbidden_secret(name: str) -> str:
    """Say that the controller must not read a Secret."""
    return f"fanout may not read Secret {name}"


def describe_binary_secret(name: str) -> str:
    """Say that a Secret has content that is not text."""
    return f"Secret {name} has content that is not UTF-8 text"


def describe_secret_keys(name: str) -> str:
    """Say that a Secret has no credentials."""
    return f"Secret {name} has neither a password nor a private key"


def describe_unreachable(address: str, error: Exception) -> str:
    """Say that the API server cannot be reached, and why."""
    return f"the API server {address} cannot be reached: {error}"


def describe_no_json(address: str, path: str) -> str:
    """Say that the API server returned something else than JSON."""
    return f"the API server {address} returned no JSON for {path}"


def describe_unserved_kind(kind: str, group: str) -> str:
    """Say that the API server has no resource of a kind."""
    return f"the API server does not serve kind {kind}" + (f" of group {group}" if group else "")


def describe_unserved_version(kind: str, group: str, served: Sequence[str], version: str) -> str:
    """Say that the API server serves a kind in other versions than this one."""
    name = f"kind {kind}" + (f" of group {group}" if group else "")
    return f"the API server serves {name} as {' or '.join(served)}, not as {version}"


def describe_admission(problem: str) -> str:
    """Say that nothing proves who created records, so none is taken in."""
    return f"no record is taken in, because nothing proves who created it: {problem}"


def advise_admission(service_account: str) -> str:
    """Advise how to install the admission policies for the controller's account.

    `service_account`: `namespace/name`, "" for the default one.
    """
    option = f" --service-account {service_account}" if service_account else ""
    return f"run `fanout crds --admission{option} | kubectl apply --server-side -f -`"


def describe_missing(kind: str, name: str) -> str:
    """Say that an object of admission is not installed."""
    return f"{kind} {name} does not exist"


def describe_changed(kind: str, name: str) -> str:
    """Say that an object of admission is not the one that this version of fanout prints."""
    return f"{kind} {name} differs from the one of this version of fanout"


def describe_undated(kind: str, name: str) -> str:
    """Say that an object of admission does not show when it was written."""
    return f"{kind} {name} has no managedFields, so that it may have been changed and put back"


def describe_missing_finalizer(finalizer: str, error: FanoutError) -> str:
    """Say that an object has no finalizer, without which its deletion would leave packages."""
    return f"the finalizer {finalizer} cannot be added, so nothing is written: {error.problem}"


def describe_other_installation(holder: str, lease: str, own: str) -> str:
    """Say that another installation of the cluster writes all statuses."""
    return (
        f"installation {holder} (Lease {lease}) writes the statuses of this cluster and takes its"
        f" records in, and installation {own} does not; stop one of them, which counts as ended a"
        " minute later"
    )
