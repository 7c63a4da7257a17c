"""Connection to the API server of a cluster: GET requests that return JSON.

Of the official client only configuration and transport are used. Its typed and dynamic
clients take five times the processor time and twice the memory for a list of custom objects.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from time import sleep
from typing import Any

import kubernetes.client
import kubernetes.config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from fanout.errors import Denied, FanoutError, InvalidInput, Unavailable
from fanout.kube import kube_wording as wording

CONNECT_TIMEOUT = 10.0  # seconds
READ_TIMEOUT = 90.0  # seconds without a byte
MAX_ATTEMPTS, MAX_WAIT = 5, 5.0  # where the server asks for another attempt; seconds
_JSON = "application/json"


class NotServed(Unavailable):
    """The API server has no such resource."""


class ApiConnection:
    """Connection to one API server as one user. For several threads at once."""

    def __init__(self, client: Any) -> None:
        """Use a client of the kubernetes library, which `close` closes."""
        self._client = client

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = _JSON) -> Any:
        """Return the JSON value at a path of the API.

        Raises Denied without permission, NotServed if there is no such resource, and
        Unavailable if the server gives no usable response.
        """
        call = self._client.param_serialize(
            "GET",
            path,
            query_params=list((query or {}).items()),
            # A list of 10,000 objects is a tenth of its size when compressed.
            header_params={"Accept": accept, "Accept-Encoding": "gzip"},
            auth_settings=["BearerToken"],
        )
        for attempt in range(MAX_ATTEMPTS):
            response = self._call(call)
            content = response.read()
            # A server that starts, or has just been given a kind, says when to ask again.
            wait = response.getheader("Retry-After") if response.status in (429, 503) else None
            if wait is None or attempt + 1 == MAX_ATTEMPTS:
                break
            sleep(min(float(wait) if wait.isdecimal() else 1.0, MAX_WAIT))
        if response.status != 200:
            raise _status_error(path, response.status, content)
        try:
            return json.loads(content)
        except ValueError as error:
            raise _unavailable(wording.describe_no_json(self.address, path)) from error

    def _call(self, call: tuple[Any, ...]) -> Any:
        """Return the response to a serialized request. Raises Unavailable if there is none."""
        try:
            response = self._client.call_api(
                *call, _request_timeout=(CONNECT_TIMEOUT, READ_TIMEOUT)
            )
            response.read()
        except (HTTPError, OSError) as error:
            raise _unavailable(wording.describe_unreachable(self.address, error)) from error
        return response

    @property
    def address(self) -> str:
        """URL of the API server."""
        return str(self._client.configuration.host)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def open_connection(kubeconfig: Path | None = None, context: str = "") -> ApiConnection:
    """Open a connection as a kubeconfig file describes it.

    `kubeconfig`: default: as kubectl finds it, from KUBECONFIG or ~/.kube/config. `context`:
    default: the current one of the file. Raises InvalidInput if the file or the context is
    missing or unusable.
    """
    configuration = kubernetes.client.Configuration()
    # A request that fails is repeated by whoever needs its result.
    configuration.retries = False
    try:
        load: Any = kubernetes.config.load_kube_config  # which has no types
        load(
            config_file=None if kubeconfig is None else str(kubeconfig),
            context=context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            wording.describe_kubeconfig(context, error),
            reason="InvalidSetting",
            remedy=wording.KUBECONFIG_REMEDY,
        ) from error
    return ApiConnection(kubernetes.client.ApiClient(configuration))


def _unavailable(problem: str) -> Unavailable:
    return Unavailable(problem, reason="ClusterUnavailable", remedy=wording.CLUSTER_REMEDY)


def _status_error(path: str, status: int, content: bytes) -> FanoutError:
    """Build the error for a response other than 200, with the message of the API server."""
    try:
        message = str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"status {status} for {path}"
    if status in (401, 403):
        return Denied(message, reason="ClusterDenied", remedy=wording.PERMISSION_REMEDY)
    if status == 404:
        return NotServed(message, reason="ClusterUnavailable", remedy=wording.NOT_SERVED_REMEDY)
    return _unavailable(message)
