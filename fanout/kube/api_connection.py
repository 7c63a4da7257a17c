"""Connection to the API server of a cluster: requests with JSON bodies, and watches.

Of the official client only configuration and transport are used. Its typed and dynamic
clients take five times the processor time and twice the memory for a list of custom objects.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import kubernetes.client
import kubernetes.config
from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from fanout.api.durations import parse_retry_after
from fanout.api.object_meta import GROUP
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Unavailable
from fanout.plan.records.record_listing import ClusterUser

_READING = frozenset({"get", "list", "watch"})
# The admission policies: which verb on a policy a record needs.
_NEEDED_VERB = re.compile(r"needs the verb (\w+) on ")
_ROLES_BY_VERB = {
    "report": "fanout-reporter",
    "approve": "fanout-approver",
    "promote": "fanout-promoter",
    "suspend": "fanout-promoter",
    "override": "fanout-admin",
    "remove": "fanout-admin",
}
# RBAC: which verb of a request is denied, on which resource of which API group.
_DENIED_REQUEST = re.compile(r'cannot (\w+) resource "([\w./-]+)" in API group "([\w.-]*)"')
_ROLES_BY_RECORD = {
    "evidences": "fanout-reporter",
    "approvals": "fanout-approver",
    "decisions": "fanout-promoter",
}
# Those that the controller alone reads or writes.
_CONTROLLER_GROUPS = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "authentication.k8s.io"}
    | {"authorization.k8s.io", "coordination.k8s.io", "events.k8s.io"}
)


def advise_right(message: str) -> str:
    """Return the remedy for the message of a request that the API server denied."""
    if message == "Unauthorized":
        return "check the credentials of the kubeconfig file"
    if needed := _NEEDED_VERB.search(message):
        return _advise_role(_ROLES_BY_VERB.get(needed[1], "fanout-admin"))
    if (denied := _DENIED_REQUEST.search(message)) is None:
        return "have an administrator grant it"
    verb, resource, group = denied.groups()
    if group == GROUP and verb == "create" and resource in _ROLES_BY_RECORD:
        return _advise_role(_ROLES_BY_RECORD[resource])
    if group in _CONTROLLER_GROUPS or verb not in _READING:
        return "apply fanout's Kustomize base, which has the rights of the controller"
    if group == GROUP:
        return _advise_role("fanout-viewer")
    return (
        f"{_advise_role('fanout-reader')}, and give a ClusterRole with this right the label"
        " rbac.fanout.dev/aggregate-to-reader"
    )


def _advise_role(role: str) -> str:
    return f"have an administrator bind the ClusterRole {role}"


CONNECT_TIMEOUT = 10.0  # seconds
READ_TIMEOUT = 90.0  # seconds without a byte
MAX_ATTEMPTS, MAX_WAIT = 5, 5.0  # where the server asks for another attempt; seconds
_DEFAULT_WAIT = 1.0  # seconds, where it asks for it with neither seconds nor a date
CONNECTIONS = 8  # over which many objects are written at once
RETURN_PAUSE = 5.0  # seconds in which the end of an outage is announced once
POOL_SIZE = 32  # connections that are kept: a watch takes one, and writes take others
JSON_TYPE = "application/json"
APPLY_TYPE = "application/apply-patch+yaml"  # server-side apply; JSON is YAML
MERGE_TYPE = "application/merge-patch+json"
PATCH_TYPE = "application/json-patch+json"
FIELD_MANAGER = "fanout"  # of all fields that are written by server-side apply
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_WATCHED_TYPE = "application/json;stream=watch"
_UNSELECTABLE = "field label not supported"
DEFINITIONS_REMEDY = "run `fanout crds | kubectl apply --server-side -f -`"
NOT_SERVED_REMEDY = "install its CustomResourceDefinition, or correct the policy that names it"
RETRY_REMEDY = "none: it is read and decided again"
LISTED_AGAIN_REMEDY = (
    "check the conversion webhook of its CustomResourceDefinition, or the server behind its"
    " APIService; it is listed again until that succeeds"
)


class NotServed(Unavailable):
    """The API server has no such resource or object."""


class WatchExpired(Unavailable):
    """The API server no longer has the changes since a resource version; list again."""


class ApiConnection:
    """Connection to one API server as one user. For several threads at once."""

    def __init__(self, client: Any) -> None:
        """Use a client of the kubernetes library."""
        self._client = client
        self._lock = Lock()
        self._returned_at = -RETURN_PAUSE  # by the monotonic clock
        self._listeners: list[Callable[[], object]] = []  # to the end of an outage

    def get(self, path: str, accept: str = JSON_TYPE) -> Any:
        """Return the JSON value at a path of the API. Raises Denied, NotServed and Unavailable."""
        # A list of 10,000 objects is a tenth of its size when compressed.
        return self._send("GET", path, None, {"Accept": accept, "Accept-Encoding": "gzip"})

    def send(self, method: str, path: str, body: Any = None, content_type: str = JSON_TYPE) -> Any:
        """Send a request that changes something, and return the JSON value of the response.

        Raises what `get` raises, Conflict if the object exists or has changed meanwhile, and
        InvalidInput if the API server refuses the body.
        """
        return self._send(method, path, body, {"Accept": JSON_TYPE, "Content-Type": content_type})

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        """Open a watch; the value iterates over its events until the server ends it.

        Raises what `get` raises, also while events are read; WatchExpired for a forgotten version.
        """
        response = self._open("GET", path, None, {"Accept": _WATCHED_TYPE})
        try:
            if response.status != 200:
                raise _status_error(path, response.status, self._read_body(response))
            yield self._read_events(path, response)
        finally:
            response.response.close()

    def on_return(self, listener: Callable[[], object]) -> None:
        """Call `listener` whenever an outage of the API server has ended, on any thread."""
        with self._lock:
            self._listeners.append(listener)

    def ignore_return(self, listener: Callable[[], object]) -> None:
        """Call `listener` no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def announce_return(self) -> None:
        """Tell all listeners that an outage has ended: somebody who was refused is served again."""
        with self._lock:
            # All watches return one after the other, and each tells.
            if monotonic() < self._returned_at + RETURN_PAUSE:
                return
            self._returned_at = monotonic()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    @property
    def address(self) -> str:
        """URL of the API server."""
        return str(self._client.configuration.host)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        for attempt in range(MAX_ATTEMPTS):
            response = self._open(method, path, body, headers)
            content = self._read_body(response)
            # A server that starts, or has just been given a kind, says when to ask again.
            wait = response.getheader("Retry-After") if response.status in (429, 503) else None
            if wait is None or attempt + 1 == MAX_ATTEMPTS:
                break
            sleep(parse_retry_after(wait, datetime.now(UTC), _DEFAULT_WAIT, MAX_WAIT))
        if not 200 <= response.status < 300:
            raise _status_error(path, response.status, content)
        try:
            return json.loads(content)
        except ValueError as error:
            raise self._no_json(path) from error

    def _read_body(self, response: Any) -> bytes:
        try:
            content: bytes = response.read()
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        return content

    def _open(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        """Return the response to a request before its body. Raises Unavailable without one."""
        try:
            # Reads the token anew if that is due.
            _, url, sent_headers, *_ = self._client.param_serialize(
                method, path, header_params=headers, auth_settings=["BearerToken"]
            )
            # Given here, the body is not walked to look for objects of the library.
            return self._client.call_api(
                method, url, sent_headers, body, _request_timeout=(CONNECT_TIMEOUT, READ_TIMEOUT)
            )
        except (HTTPError, OSError, ConfigException) as error:
            raise self._unreachable(error) from error

    def _read_events(self, path: str, response: Any) -> Iterator[Any]:
        rest = b""
        try:
            for chunk in response.response.stream():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise _status_error(path, status.get("code", 500), json.dumps(status))
                    yield event
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            raise self._no_json(path) from error

    def _unreachable(self, error: Exception) -> Unavailable:
        return _unavailable(f"the API server {self.address} cannot be reached: {error}")

    def _no_json(self, path: str) -> Unavailable:
        return _unavailable(f"the API server {self.address} returned no JSON for {path}")


def open_connection(kubeconfig: Path | None = None, context: str = "") -> ApiConnection:
    """Open a connection as a kubeconfig file describes it. Raises InvalidInput.

    `kubeconfig`: default: as kubectl finds it. `context`: default: the current one of the file.
    """
    configuration = _build_configuration()
    with _translate_kubeconfig_errors(context):
        _load_context(kubeconfig, context).load_and_set(configuration)
    return ApiConnection(kubernetes.client.ApiClient(configuration))


def read_context_namespace(kubeconfig: Path | None = None, context: str = "") -> str:
    """Return the namespace of a context, "" if it names none. Raises InvalidInput."""
    with _translate_kubeconfig_errors(context):
        loader = _load_context(kubeconfig, context)
        return str(loader.current_context["context"].get("namespace") or "")


def _load_context(kubeconfig: Path | None, context: str) -> Any:
    """Load a context of the kubeconfig file. Raises errors of the library."""
    # As `load_kube_config` does; it does not say which namespace the context has.
    location = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    library: Any = kube_config  # which has no types
    if (merged := library.KubeConfigMerger(location).config) is None:
        raise ConfigException(f"there is no file {location}")
    return library.KubeConfigLoader(merged, active_context=context or None)


@contextmanager
def _translate_kubeconfig_errors(context: str) -> Iterator[None]:
    try:
        yield
    except (ConfigException, OSError, ValueError, TypeError) as error:
        subject = f"context {context}" if context else "the kubeconfig file"
        raise InvalidInput(
            f"{subject} cannot be used: {error}",
            reason="InvalidSetting",
            remedy="run `kubectl config get-contexts`, and name one with --context",
        ) from error


def open_pod_connection() -> ApiConnection:
    """Open a connection with the service account of the pod that the process runs in.

    Raises InvalidInput outside a pod.
    """
    configuration = _build_configuration()
    try:
        load: Any = kubernetes.config.load_incluster_config
        load(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise InvalidInput(
            f"the service account of the pod cannot be used: {error}",
            reason="InvalidSetting",
            remedy="name a kubeconfig file with --kubeconfig, or run it in a pod",
        ) from error
    return ApiConnection(kubernetes.client.ApiClient(configuration))


def read_pod_namespace() -> str:
    """Return the namespace of the pod that the process runs in, "" if it is not known."""
    try:
        return _POD_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _build_configuration() -> Any:
    configuration = kubernetes.client.Configuration()
    # A request that fails is repeated by whoever needs its result.
    configuration.retries = False
    configuration.connection_pool_maxsize = POOL_SIZE
    return configuration


def _unavailable(problem: str) -> Unavailable:
    return Unavailable(
        problem,
        reason="ClusterUnavailable",
        remedy="check the address of the kubeconfig file, and that the API server runs",
    )


def _status_error(path: str, status: int, content: bytes | str) -> FanoutError:
    """Build the error for a status that is no success, with the message of the API server."""
    try:
        message = str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"status {status} for {path}"
    match status:
        case 401 | 403:
            return Denied(message, reason="ClusterDenied", remedy=advise_right(message))
        case 404:
            return NotServed(message, reason="ClusterUnavailable", remedy=NOT_SERVED_REMEDY)
        case 409:
            return Conflict(message, reason="ClusterUnavailable", remedy=RETRY_REMEDY)
        case 410:
            return WatchExpired(message, reason="ClusterUnavailable", remedy=RETRY_REMEDY)
        # Of a definition from before the field was selectable: the kind is not as it must be.
        case 400 if message.startswith(_UNSELECTABLE):
            return NotServed(message, reason="ClusterUnavailable", remedy=DEFINITIONS_REMEDY)
        case 400 | 422:
            return InvalidInput(message, reason="InvalidObject", remedy="correct the object")
        case _:
            return _unavailable(message)


_USER_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_USER_REVIEW_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def read_own_user(connection: ApiConnection) -> ClusterUser:
    """Return the user whose credentials the connection has. Raises Denied and Unavailable."""
    review: Any = connection.send("POST", _USER_REVIEW_PATH, _USER_REVIEW)
    user = review["status"]["userInfo"]
    return ClusterUser(user["username"], tuple(user.get("groups", ())))
