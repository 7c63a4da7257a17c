"""Writer of statuses, variants of policies, and events over eight connections.

Server-side apply of one field manager, forced, and only where the digest differs from what the
API server has: an unchanged apply costs the server as much as a changed one.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b, sha256
from threading import Lock
from typing import Any, NamedTuple

from fanout.api.durations import format_instant
from fanout.api.object_meta import API_VERSION, GROUP
from fanout.api.reasons import WARNING_REASONS
from fanout.errors import Conflict, FanoutError
from fanout.kube.api_connection import (
    APPLY_TYPE,
    CONNECTIONS,
    FIELD_MANAGER,
    PATCH_TYPE,
    ApiConnection,
    NotServed,
)
from fanout.kube.object_watch import ObjectWatch
from fanout.kube.pending_records import with_generation, write_record_status
from fanout.kube.resource_discovery import ResourceType, discover_kinds
from fanout.plan.records.policy_records import RECORD_KINDS
from fanout.plan.written_objects import (
    ConditionState,
    ObjectName,
    PolicyEvent,
    WrittenObject,
    add_transition_times,
    merge_present,
)
from fanout.ports import WriterResult
from fanout.telemetry.error_isolation import BARRIER, run_isolated

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_DIGEST_SIZE = 12  # bytes


class ObjectDigest(NamedTuple):
    """Digest of an object: of what people or fanout declare, and of its status.

    The conditions of what people declare are kept for their instants.
    """

    generation: int
    policy: str  # that makes the PackageVariant; "": none
    content: bytes
    status: bytes
    conditions: tuple[tuple[str, ConditionState], ...] = ()  # by type; of records: none
    uid: str = ""  # of the object of a record; "": of another kind
    is_recorded: bool = False  # the object says that its record is in Git


def digest_record(item: Any) -> ObjectDigest:
    """Return the digest of the object of a record, which people declare."""
    is_recorded = bool((item.get("status") or {}).get("record"))
    digest = digest_object(item)
    return digest._replace(uid=item["metadata"]["uid"], is_recorded=is_recorded, conditions=())


def digest_object(item: Any) -> ObjectDigest:
    """Return the digest of an object as the API server sent it."""
    meta, spec = item["metadata"], item.get("spec") or {}
    policy = (spec.get("policyRef") or {}).get("name", "")
    content, status = b"", item.get("status") or {}
    conditions: tuple[tuple[str, ConditionState], ...] = ()
    # What people declare is compared by others.
    if not policy:
        conditions = tuple(
            (it["type"], ConditionState(it["status"], it.get("lastTransitionTime", "")))
            for it in status.get("conditions") or ()
        )
    else:
        annotations = meta.get("annotations") or {}
        content = digest_value(
            {
                "labels": meta.get("labels"),
                "annotations": {k: it for k, it in annotations.items() if k != _LAST_APPLIED},
                "ownerReferences": meta.get("ownerReferences"),
                "spec": spec,
            }
        )
    return ObjectDigest(
        meta.get("generation", 0), policy, content, digest_value(status), conditions
    )


def without_empty(value: Any) -> Any:
    """Return plain data without empty maps and lists.

    Server-side apply of an empty map over entries of its own stores null, which no schema takes;
    and what is left of a list that is not sent any more is an empty one.
    """
    # Types of JSON alone: instance checks of abstract classes take most of the time here.
    if isinstance(value, dict):
        pairs = ((name, without_empty(it)) for name, it in value.items())
        return {name: it for name, it in pairs if it is not None and it not in ({}, [])}
    if isinstance(value, list):
        return [without_empty(it) for it in value]
    return value


def digest_value(value: Any) -> bytes:
    """Return a digest of plain data without what is empty, whatever the order of its keys."""
    text = json.dumps(without_empty(value), sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_DIGEST_SIZE).digest()


_KINDS = ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy")
_VARIANT = "PackageVariant"
_EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/{}/events"
_CONTROLLER = f"{GROUP}/controller"
# Fields of the metadata that fanout writes, and what there is without them.
_METADATA: Mapping[str, Callable[[], object]] = {
    "labels": dict,
    "annotations": dict,
    "ownerReferences": list,
}


class ApiStatusWriter:
    """Port `fanout.ports.StatusWriter`, over the connection to an API server."""

    def __init__(self, connection: ApiConnection, instance: str) -> None:
        """Watch nothing yet. `instance`: name of this process in events."""
        self._connection = connection
        self._instance = instance[:128] or "fanout"
        self._types: dict[str, ResourceType] = {}
        self._watches: dict[str, ObjectWatch[ObjectDigest]] = {}
        self._lock = Lock()
        # Content and status of each object as it was last written, or found to be right.
        self._confirmed: dict[ObjectName, tuple[bytes, bytes]] = {}
        self._await_turn: Callable[[], None] = lambda: None
        # Digest of each partial status that was completed, and of the status that resulted.
        self._completed: dict[ObjectName, tuple[bytes, bytes]] = {}

    def start(self, notify: Callable[[], None]) -> None:
        """List and watch the objects; `notify` is called after any of them has changed.

        Raises InvalidInput if fanout's kinds are not installed, Unavailable and Denied.
        """
        served = discover_kinds(self._connection)
        for kind in (*_KINDS, *RECORD_KINDS):
            resource_type = served.require_own(kind)
            digest = digest_record if kind in RECORD_KINDS else digest_object
            watch = ObjectWatch(self._connection, resource_type.path(), digest, notify)
            self._types[kind], self._watches[kind] = resource_type, watch
            watch.start()

    def stop(self) -> None:
        """End the watches."""
        for watch in self._watches.values():
            watch.stop()

    def list_made(self) -> Mapping[tuple[str, str], str]:
        """Return the policy of each PackageVariant that has one, by namespace and name."""
        digests = self._read_digests()[_VARIANT]
        if isinstance(digests, FanoutError):
            return {}
        return {name: it.policy for name, it in digests.items() if it.policy}

    def list_records(self) -> Mapping[str, ObjectName]:
        """Return the names of the objects of records, by uid."""
        return {
            digest.uid: ObjectName(kind, *name)
            for kind, digests in self._read_digests().items()
            if kind in RECORD_KINDS and not isinstance(digests, FanoutError)
            for name, digest in digests.items()
        }

    def find_changed(self) -> Collection[ObjectName]:
        """Return the objects that are not any more as they were written, and new records."""
        digests = self._read_digests()
        with self._lock:
            confirmed = list(self._confirmed.items())
        changed = []
        for name, written in confirmed:
            of_kind = digests[name.kind]
            if isinstance(of_kind, FanoutError):
                continue
            if (present := of_kind.get((name.namespace, name.name))) is None and not written[0]:
                self._forget(name)  # people deleted what they had declared
            elif present is None or (present.content, present.status) != written:
                changed.append(name)
        names = {name for name, _ in confirmed}
        recorded = (
            ObjectName(kind, *name)
            for kind in RECORD_KINDS
            if not isinstance(of_kind := digests[kind], FanoutError)
            for name, it in of_kind.items()
            if it.is_recorded
        )
        return [*changed, *(name for name in recorded if name not in names)]

    def _forget(self, name: ObjectName) -> None:
        with self._lock:
            self._confirmed.pop(name, None)
            self._completed.pop(name, None)

    def _read_digests(self) -> dict[str, Mapping[tuple[str, str], ObjectDigest] | FanoutError]:
        """Return the digests by kind, or why a kind cannot be listed."""
        return {kind: run_isolated(watch.values) for kind, watch in self._watches.items()}

    # ---- writes --------------------------------------------------------------------------------

    def write(
        self, objects: Iterable[WrittenObject], await_turn: Callable[[], None]
    ) -> WriterResult:
        """Create, change and give a status to the objects that differ, in this order."""
        digests = self._read_digests()
        self._await_turn = await_turn

        return self._run_all(
            (it.name, partial(self._write_object, it, digests[it.name.kind])) for it in objects
        )

    def remove(self, names: Iterable[ObjectName]) -> WriterResult:
        """Delete PackageVariants of policies."""

        def remove_one(name: ObjectName) -> int:
            try:
                self._connection.send("DELETE", self._path_of(name))
            except NotServed:  # it is gone already
                return 0
            finally:
                self._forget(name)
            return 1

        return self._run_all((it, partial(remove_one, it)) for it in names)

    def record(self, events: Iterable[PolicyEvent]) -> WriterResult:
        """Create events."""

        def record_one(event: PolicyEvent) -> int:
            path = _EVENTS_PATH.format(event.subject.namespace)
            try:
                self._connection.send("POST", path, self._build_event(event))
            except Conflict:  # the same event of the same pass
                return 0
            return 1

        return self._run_all((it.subject, partial(record_one, it)) for it in events)

    def _run_all(self, calls: Iterable[tuple[ObjectName, Callable[[], int]]]) -> WriterResult:
        """Make calls over all connections, by their objects; each returns a number of writes."""
        pending, lock = iter(calls), Lock()
        failures: dict[ObjectName, FanoutError] = {}

        def work() -> int:
            number = 0
            while True:
                with lock:
                    item = next(pending, None)
                if item is None:
                    return number
                name, call = item
                try:
                    with BARRIER:
                        number += call()
                except FanoutError as error:
                    failures[name] = error

        with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="status") as pool:
            number = sum(it.result() for it in [pool.submit(work) for _ in range(CONNECTIONS)])
        problems = [f"{it.kind} {it.namespace}/{it.name}: {failures[it]}" for it in failures]
        return WriterResult(number, frozenset(failures), problems[0] if problems else "")

    def _write_object(
        self, item: WrittenObject, digests: Mapping[tuple[str, str], ObjectDigest] | FanoutError
    ) -> int:
        """Write what differs of one object; return the number of writes.

        `digests` are those of its kind, or why the kind cannot be listed.
        """
        if isinstance(digests, FanoutError):
            raise digests
        number, present = 0, digests.get((item.name.namespace, item.name.name))
        if item.content is not None:
            content = without_empty(item.content)
            digest = digest_value(content)
            if present is None or present.content != digest:
                metadata = {it: content[it] for it in _METADATA if it in content}
                present = self._apply(item.name, {"metadata": metadata, "spec": content["spec"]})
                number += 1
                # Fields of others are not taken away by server-side apply.
                if present.content != digest:
                    fields = {
                        f"/metadata/{it}": content.get(it, empty())
                        for it, empty in _METADATA.items()
                    }
                    present = self._replace(item.name, "", {**fields, "/spec": content["spec"]})
                    number += 1
        elif present is None:
            return 0  # it was deleted meanwhile
        status = item.status
        if item.times is not None:
            present_conditions = dict(present.conditions)
            conditions = add_transition_times(status["conditions"], present_conditions, item.times)
            status = {**status, "conditions": conditions}
        generation = present.generation if item.generation is None else item.generation
        status = with_generation(status, generation)
        if item.defaults is not None:
            return number + self._complete_status(item, status, present)
        return number + self._write_status(item, status, present)

    def _complete_status(
        self, item: WrittenObject, partial: Mapping[str, Any], present: ObjectDigest
    ) -> int:
        """Write a partial status with the fields that the object has; return the number of writes.

        Nothing is read if neither the partial status nor that of the object has changed.
        """
        digest = digest_value([partial, item.defaults])
        with self._lock:
            if self._completed.get(item.name) == (digest, present.status):
                return 0
        body = self._connection.get(self._path_of(item.name))
        status = merge_present(partial, item.defaults or {}, body.get("status") or {})
        number = self._write_status(item, status, present)
        with self._lock:
            self._completed[item.name] = digest, self._confirmed[item.name][1]
        return number

    def _write_status(
        self, item: WrittenObject, status: Mapping[str, Any], present: ObjectDigest
    ) -> int:
        """Write a whole status if it differs; return the number of writes."""
        status, number = without_empty(status), 0
        digest = digest_value(status)
        if present.status != digest and item.uid:
            self._await_turn()
            response = write_record_status(self._connection, item.name, item.uid, status)
            if response is None:
                return 0
            watch, number = self._watches[item.name.kind], 1
            present = watch.apply_response(response) or digest_record(response)
        elif present.status != digest:
            present = self._apply(item.name, {"status": status}, "/status")
            number += 1
            if present.status != digest:
                present = self._replace(item.name, "/status", {"/status": status})
                number += 1
        with self._lock:
            self._confirmed[item.name] = present.content, present.status
        return number

    def _apply(self, name: ObjectName, body: dict[str, Any], part: str = "") -> ObjectDigest:
        meta = {**body.get("metadata", {}), "name": name.name, "namespace": name.namespace}
        document = {"apiVersion": API_VERSION, "kind": name.kind, **body, "metadata": meta}
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        return self._patch(name, part + query, document, APPLY_TYPE)

    def _replace(self, name: ObjectName, part: str, fields: Mapping[str, Any]) -> ObjectDigest:
        """Replace fields whoever owns them, and return what is there then."""
        body = [{"op": "add", "path": path, "value": it} for path, it in fields.items()]
        return self._patch(name, f"{part}?fieldManager={FIELD_MANAGER}", body, PATCH_TYPE)

    def _patch(self, name: ObjectName, suffix: str, body: Any, content_type: str) -> ObjectDigest:
        self._await_turn()
        item = self._connection.send("PATCH", self._path_of(name) + suffix, body, content_type)
        return self._watches[name.kind].apply_response(item) or digest_object(item)

    def _build_event(self, event: PolicyEvent) -> dict[str, Any]:
        subject, at = event.subject, format_instant(event.at)
        identity = "\0".join((*subject, event.reason, event.message, at))
        name = f"{subject.name}.{sha256(identity.encode()).hexdigest()[:16]}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": subject.namespace},
            "eventTime": f"{at[:-1]}.000000Z",
            "reportingController": _CONTROLLER,
            "reportingInstance": self._instance,
            "action": event.reason.value,
            "reason": event.reason.value,
            "type": "Warning" if event.reason in WARNING_REASONS else "Normal",
            "note": event.message,
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                **({"uid": event.uid} if event.uid else {}),
            },
        }

    def _path_of(self, name: ObjectName) -> str:
        return f"{self._types[name.kind].path(name.namespace)}/{name.name}"
