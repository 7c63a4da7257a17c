"""API server of a controller: what it watches, reads and writes, on one connection."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fanout.kube.api_connection import ApiConnection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.api_secrets import ApiSecrets
from fanout.kube.finalizers import RemovalFinalizers
from fanout.kube.installation_lease import InstallationLease
from fanout.kube.pending_records import ApiPendingRecords, PendingRecordWatch
from fanout.kube.status_writer import ApiStatusWriter
from fanout.kube.watched_objects import WatchedObjects
from fanout.ports import Secrets
from fanout.telemetry.redaction import Redactor


class ApiCluster:
    """Implementation of `fanout.ports.WatchedCluster` on an API server."""

    def __init__(self, connection: ApiConnection, namespace: str) -> None:
        """Watch nothing yet. `namespace`: where the lease of the installation is."""
        self._connection = connection
        self._namespace = namespace
        self._on_change: Callable[[], None] = lambda: None
        self._on_record: Callable[[], None] = lambda: None
        self._source = WatchedObjects(connection, self._notify_of_change)
        self._records = PendingRecordWatch(connection, self._notify_of_record)
        self.inventory = ApiInventory(self._source)
        self.finalizers = RemovalFinalizers(connection)
        self.pending_records = ApiPendingRecords(connection)
        self.refresh = self._source.refresh

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch objects and records while open. Raises InvalidInput, Denied or Unavailable."""
        try:
            self._source.start()
            self._records.start()
            yield
        finally:
            self._source.stop()
            self._records.stop()

    def notify(
        self,
        on_change: Callable[[], None],
        on_record: Callable[[], None],
        on_return: Callable[[], None],
    ) -> None:
        """Call these functions on other threads, as `WatchedCluster` specifies."""
        self._on_change, self._on_record = on_change, on_record
        self._connection.on_return(on_return)

    def _notify_of_change(self) -> None:
        self._on_change()

    def _notify_of_record(self) -> None:
        self._on_record()

    def open_secrets(self, administrator_secrets: Secrets, redactor: Redactor) -> ApiSecrets:
        """Return the Secrets of namespaces, with those of the administrator."""
        return ApiSecrets(self._connection, administrator_secrets, redactor)

    def open_lease(self, install: str, records_url: str) -> InstallationLease:
        """Return the lease of an installation, which is not written yet."""
        return InstallationLease(self._connection, self._namespace, install, records_url)

    def open_status_writer(self, instance: str) -> ApiStatusWriter:
        """Return the writer of statuses; `instance`: name of this process in events."""
        return ApiStatusWriter(self._connection, instance)
