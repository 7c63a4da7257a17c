"""Lease of an installation of fanout: of several in one cluster, the first one writes statuses.

An installation is one records repository with one `installId`. What two of them observe differs, so
that each would write over the statuses of the other for ever.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Event, Thread

import structlog

from fanout.api.object_meta import GROUP
from fanout.errors import FanoutError
from fanout.kube.api_connection import APPLY_TYPE, FIELD_MANAGER, ApiConnection
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value

LEASE_TIME = timedelta(seconds=60)  # after the last renewal the installation counts as ended
RENEWAL_PAUSE = 15.0  # seconds
_GRACE = 5.0  # seconds that a renewal has when the process ends
LABEL = f"{GROUP}/lease"
_API_VERSION = "coordination.k8s.io/v1"

_log = structlog.get_logger()


class _Lease(Value):
    location: str  # `namespace/name`
    holder: str
    acquired_at: datetime
    renewed_at: datetime

    def is_held(self, now: datetime) -> bool:
        """Return whether the installation still runs."""
        return now < self.renewed_at + LEASE_TIME


class InstallationLease:
    """Lease that a controller renews, and what it knows of other installations."""

    def __init__(
        self, connection: ApiConnection, namespace: str, install: str, records_url: str
    ) -> None:
        """Write nothing yet; the lease will be in `namespace`."""
        self._connection = connection
        self._holder = f"{install} with the records {records_url}"
        # Two processes of one installation have one lease.
        name = f"fanout-{sha256(self._holder.encode()).hexdigest()[:12]}"
        self._location, self._name = f"{namespace}/{name}", name
        self._path = f"/apis/{_API_VERSION}/namespaces/{namespace}/leases/{name}"
        self._other: _Lease | None = None  # which holds its lease for longer
        self._problem = ""  # of the last renewal
        self._stopped = Event()

    def find_obstacle(self) -> str:
        """Return why this installation writes no status, "" if it does. For any thread."""
        if (other := self._other) is None:
            return ""
        return (
            f"installation {other.holder} (Lease {other.location})"
            " writes the statuses of this cluster and takes its records in,"
            f" and installation {self._holder} does not; stop one of them, which counts as ended a"
            " minute later"
        )

    @contextmanager
    def renewed(self, notify: Callable[[], None]) -> Iterator[None]:
        """Renew the lease while open; `notify` is called when another one has ended.

        It stays behind for LEASE_TIME: the next process of the installation is to find it.
        """

        def run() -> None:
            while not self._stopped.wait(RENEWAL_PAUSE):
                had_obstacle = self._other is not None
                self.renew()
                if had_obstacle and self._other is None:
                    notify()

        self.renew()
        thread = Thread(target=run, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(_GRACE)

    def renew(self) -> None:
        """Renew the lease, and look for other installations. A failure is logged once."""
        outcome = run_isolated(self._renew)
        problem = str(outcome) if isinstance(outcome, FanoutError) else ""
        if problem and problem != self._problem:
            _log.warning("The lease of the installation is not renewed", problem=problem)
        self._problem = problem

    def _renew(self) -> None:
        now, leases = datetime.now(UTC), self._list()
        own = leases.get(self._location)
        is_held = own is not None and own.is_held(now)
        # Before the write: who may only list leases stays behind all others.
        self._note_first(leases, now)
        body = {
            "apiVersion": _API_VERSION,
            "kind": "Lease",
            "metadata": {"name": self._name, "labels": {LABEL: "installation"}},
            "spec": {
                "holderIdentity": self._holder,
                "leaseDurationSeconds": int(LEASE_TIME.total_seconds()),
                "acquireTime": _format(own.acquired_at if own is not None and is_held else now),
                "renewTime": _format(now),
            },
        }
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        self._connection.send("PATCH", f"{self._path}{query}", body, APPLY_TYPE)
        if not is_held:
            # Another installation may have begun in the same moment.
            self._note_first(self._list(), now)

    def _note_first(self, leases: Mapping[str, _Lease], now: datetime) -> None:
        """Take note of the installation that has held its lease for longest, if it is another."""
        held = [it for it in leases.values() if it.is_held(now)]
        first = min(held, key=lambda it: (it.acquired_at, it.location), default=None)
        other = first if first is not None and first.holder != self._holder else None
        if other is None and self._other is not None:
            _log.info("The other installation has ended", installation=self._other.holder)
        self._other = other

    def _list(self) -> dict[str, _Lease]:
        document = self._connection.get(f"/apis/{_API_VERSION}/leases?labelSelector={LABEL}")
        leases = (
            _Lease(
                f"{item['metadata']['namespace']}/{item['metadata']['name']}",
                item["spec"]["holderIdentity"],
                datetime.fromisoformat(item["spec"]["acquireTime"]),
                datetime.fromisoformat(item["spec"]["renewTime"]),
            )
            for item in document.get("items") or ()
        )
        return {it.location: it for it in leases}


def _format(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
