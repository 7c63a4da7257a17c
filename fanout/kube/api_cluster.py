"""API server of a controller: what it watches, reads and writes, on one connection."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fanout.errors import Denied
from fanout.kube.api_connection import ApiConnection, NotServed
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.finalizers import RemovalFinalizers
from fanout.kube.installation_lease import InstallationLease
from fanout.kube.object_sources import WatchedObjects
from fanout.kube.pending_records import ApiPendingRecords, build_record_watches
from fanout.kube.status_writer import ApiStatusWriter
from fanout.ports import Credentials, Secrets, read_secret_keys
from fanout.telemetry.redaction import Redactor

_ROLE_REMEDY = (
    "grant the controller get on it, with a RoleBinding in its namespace to the ClusterRole"
    " fanout-secret-reader"
)
_KEYS_REMEDY = (
    "its keys are username and password, ssh-privatekey and known_hosts, or githubAppID and"
    " githubAppPrivateKey"
)


class ApiSecrets:
    """Implementation of `fanout.ports.Secrets`; each secret is registered with the redactor.

    A Secret is read each time, so a rotated one is used at once. Messages name it without its
    namespace: policies of others read them about a shared Repository.
    """

    def __init__(
        self, connection: ApiConnection, administrator_secrets: Secrets, redactor: Redactor
    ) -> None:
        """Read Secrets of namespaces; `administrator_secrets` has those without a namespace."""
        self._connection = connection
        self._administrator_secrets = administrator_secrets
        self._redactor = redactor

    def get(self, namespace: str, name: str) -> Credentials:
        """Return a Secret, or the administrator's own if the namespace is "".

        Raises Denied as `fanout.ports.Secrets` specifies, Unavailable without a usable response.
        """
        if not namespace:
            return self._administrator_secrets.get(namespace, name)
        try:
            document = self._connection.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except NotServed as error:
            remedy = "create the Secret in the namespace of the Repository"
            raise _denied(error.problem, remedy) from error
        except Denied as error:
            raise _denied(f"fanout may not read Secret {name}", _ROLE_REMEDY) from error
        data = document.get("data") or {}
        try:
            texts = {key: b64decode(value).decode() for key, value in data.items()}
        except ValueError:
            # The original error carries the content.
            problem = f"Secret {name} has content that is not UTF-8 text"
            raise _denied(problem, _KEYS_REMEDY) from None
        if (secret := read_secret_keys(texts)) is None:
            problem = f"Secret {name} has neither a password nor a private key"
            raise _denied(problem, _KEYS_REMEDY)
        for content in secret.secret_texts:
            self._redactor.register(content, secret.username)
        return secret


def _denied(problem: str, remedy: str) -> Denied:
    return Denied(problem, reason="SecretUnusable", remedy=remedy)


class ApiCluster:
    """Implementation of `fanout.ports.WatchedCluster` on an API server."""

    def __init__(self, connection: ApiConnection, namespace: str) -> None:
        """Watch nothing yet. `namespace`: where the lease of the installation is."""
        self._connection = connection
        self._namespace = namespace
        self._on_change: Callable[[], None] = lambda: None
        self._on_record: Callable[[], None] = lambda: None
        # Lambdas, because `notify` sets the functions later.
        on_change, on_record = lambda: self._on_change(), lambda: self._on_record()  # noqa: PLW0108
        self._source = WatchedObjects(connection, on_change)
        self._record_watches = build_record_watches(connection, on_record)
        self.inventory = ApiInventory(self._source)
        self.finalizers = RemovalFinalizers(connection)
        self.pending_records = ApiPendingRecords(connection)
        self.refresh = self._source.refresh

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch objects and records while open. Raises InvalidInput, Denied or Unavailable."""
        try:
            self._source.start()
            for watch in self._record_watches:
                watch.start()
            yield
        finally:
            self._source.stop()
            for watch in self._record_watches:
                watch.stop()

    def notify(
        self,
        on_change: Callable[[], None],
        on_record: Callable[[], None],
        on_return: Callable[[], None],
    ) -> None:
        """Call these functions on other threads, as `WatchedCluster` specifies."""
        self._on_change, self._on_record = on_change, on_record
        self._connection.on_return(on_return)

    def open_secrets(self, administrator_secrets: Secrets, redactor: Redactor) -> ApiSecrets:
        """Return the Secrets of namespaces, with those of the administrator."""
        return ApiSecrets(self._connection, administrator_secrets, redactor)

    def open_lease(self, install: str, records_url: str) -> InstallationLease:
        """Return the lease of an installation, which is not written yet."""
        return InstallationLease(self._connection, self._namespace, install, records_url)

    def open_status_writer(self, instance: str) -> ApiStatusWriter:
        """Return the writer of statuses; `instance`: name of this process in events."""
        return ApiStatusWriter(self._connection, instance)
