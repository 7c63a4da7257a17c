"""Objects of records of an API server: creation, list, status and deletion.

Admission policies prove who created a record. Where they are missing, were changed, or are not in
force yet, nobody is who an object says.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote, urlencode

from fanout.api.admission_policies import DEFAULT_SERVICE_ACCOUNT, build_admission_policies
from fanout.api.object_meta import API_VERSION, Label
from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import Reason
from fanout.api.record_objects import RECORD_MODELS, Record
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Stopped
from fanout.kube.api_connection import (
    CONNECTIONS,
    FIELD_MANAGER,
    PATCH_TYPE,
    ApiConnection,
    NotServed,
    read_own_user,
)
from fanout.kube.object_watch import ObjectWatch
from fanout.plan.records.record_listing import (
    RECORDED,
    STALLED,
    ClusterUser,
    RecordListing,
    RecordObject,
    RecordState,
    build_record_status,
)
from fanout.plan.written_objects import ObjectName
from fanout.telemetry.error_isolation import run_isolated

# API servers need seconds until a policy that was written is in force in all of them.
IN_FORCE_AFTER = timedelta(minutes=1)
_ADMISSION_PATH = "/apis/admissionregistration.k8s.io/v1"
_ADMISSION_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
# What the API server writes where the policy says nothing.
_MATCH_DEFAULTS = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_RULE_DEFAULTS = {"scope": "*"}
_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class AdmissionCheck:
    """Check of the admission policies of one cluster, as one user."""

    def __init__(self, connection: ApiConnection) -> None:
        """Use the connection of the controller."""
        self._connection = connection

    @cached_property
    def _service_account(self) -> str:
        """`namespace/name` of the controller's account, which alone writes variants."""
        user = read_own_user(self._connection).name
        if user.startswith(_SERVICE_ACCOUNT_PREFIX):
            return user.removeprefix(_SERVICE_ACCOUNT_PREFIX).replace(":", "/")
        return DEFAULT_SERVICE_ACCOUNT

    def read(self) -> tuple[FanoutError | None, datetime | None]:
        """Compare the policies and bindings with those that fanout prints.

        Returns a problem, or since when they are in force. Raises Unavailable.
        """
        account = DEFAULT_SERVICE_ACCOUNT
        try:
            account = self._service_account
            written = [_check(self._connection, it) for it in build_admission_policies(account)]
        except (Denied, InvalidInput) as error:
            is_default = account == DEFAULT_SERVICE_ACCOUNT
            option = "" if is_default else f" --service-account {account}"
            command = f"fanout crds --admission{option} | kubectl apply --server-side -f -"
            problem = InvalidInput(
                f"no record is taken in, because nothing proves who created it: {error.problem}",
                reason="AdmissionMissing",
                remedy=f"run `{command}`",
            )
            return problem, None
        return None, max(written) + IN_FORCE_AFTER


def _check(connection: ApiConnection, expected: Mapping[str, Any]) -> datetime:
    """Return when the object was written last. Raises InvalidInput if it is not as expected."""
    kind, name = expected["kind"], expected["metadata"]["name"]
    try:
        actual = connection.get(f"{_ADMISSION_PATH}/{_ADMISSION_PLURALS[kind]}/{name}")
    except NotServed as error:
        raise _unusable(f"{kind} {name} does not exist") from error
    metadata = actual["metadata"]
    if "deletionTimestamp" in metadata:
        raise _unusable(f"{kind} {name} does not exist")
    spec = expected["spec"]
    if (constraints := spec.get("matchConstraints")) is not None:
        rules = [{**_RULE_DEFAULTS, **rule} for rule in constraints["resourceRules"]]
        constraints = {**_MATCH_DEFAULTS, **constraints, "resourceRules": rules}
        spec = {**spec, "matchConstraints": constraints}
    if actual.get("spec") != spec:
        raise _unusable(f"{kind} {name} differs from the one of this version of fanout")
    times = [it["time"] for it in metadata.get("managedFields", ()) if "time" in it]
    # Without them nothing tells whether it was changed and put back.
    if not times:
        raise _unusable(
            f"{kind} {name} has no managedFields, so that it may have been changed and put back"
        )
    return max(map(datetime.fromisoformat, (metadata["creationTimestamp"], *times)))


def _unusable(problem: str) -> InvalidInput:
    return InvalidInput(problem, reason="AdmissionMissing")


_PLURALS = {kind.__name__: kind.PLURAL for kind in RECORD_MODELS}


class ApiPendingRecords:
    """Implementation of `fanout.ports.PendingRecords` on an API server."""

    def __init__(self, connection: ApiConnection) -> None:
        """Use the connection, whose user is the controller."""
        self._connection = connection
        self._admission = AdmissionCheck(connection)

    def read(self) -> RecordListing:
        """List what waits, consistently. Raises Denied, NotServed and Unavailable."""
        objects = self._list(f"{Record.SELECTABLE}=")
        # After the lists: what they have was created under these policies, if it was created since
        # these were written.
        return RecordListing(objects, *self._admission.read())

    def read_recorded(self) -> Sequence[RecordObject]:
        """List what is on record. Raises Denied, NotServed and Unavailable."""
        return self._list(f"{Record.SELECTABLE}!=")

    def _list(self, selector: str) -> tuple[RecordObject, ...]:
        """Return the objects that match a field selector, in the order of their creation."""
        query = urlencode({"fieldSelector": selector})
        items = [
            (kind.__name__, item)
            for kind in RECORD_MODELS
            for item in self._connection.get(f"{object_path(kind.__name__)}?{query}").get("items")
            or ()
            # Somebody has taken it back, and a finalizer of others is all that keeps it.
            if "deletionTimestamp" not in item["metadata"]
        ]

        def order(pair: tuple[str, Any]) -> tuple[str, int, str]:
            meta = pair[1]["metadata"]
            # The instant has whole seconds; resource versions grow, and these are seldom written.
            return meta["creationTimestamp"], int(meta["resourceVersion"]), meta["uid"]

        return tuple(_read_object(kind, item) for kind, item in sorted(items, key=order))

    def write_states(
        self, states: Sequence[tuple[RecordObject, RecordState]]
    ) -> Mapping[str, FanoutError]:
        """Write statuses of objects. One that is gone, or was created anew, is left alone."""
        return _run_all({item.identity: partial(self.write_state, item, it) for item, it in states})

    def write_state(self, item: RecordObject, state: RecordState) -> None:
        """Write the status of an object. Raises what `ApiConnection.send` raises."""
        status = with_generation(build_record_status(state, item.created_at), item.generation)
        name = ObjectName(item.kind, item.namespace, item.name)
        write_record_status(self._connection, name, item.uid, status)

    def delete(self, items: Sequence[RecordObject]) -> Mapping[str, FanoutError]:
        """Delete objects. One that is gone, or was created anew, is left alone."""

        def delete(item: RecordObject) -> None:
            path = f"{object_path(item.kind, item.namespace)}/{item.name}"
            with suppress(NotServed, Conflict):
                self._connection.send("DELETE", path, {"preconditions": {"uid": item.uid}})

        return _run_all({item.identity: partial(delete, item) for item in items})


def _run_all(calls: Mapping[str, Callable[[], None]]) -> Mapping[str, FanoutError]:
    """Make calls over all connections; return the errors of those that failed, by their names."""
    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="records") as pool:
        errors = list(pool.map(run_isolated, calls.values()))
    return {name: it for name, it in zip(calls, errors, strict=True) if it is not None}


def build_record_watches(
    connection: ApiConnection, notify: Callable[[], None]
) -> Sequence[ObjectWatch[str]]:
    """Return watches that tell when there are objects that may have to be taken in."""

    def pending_uid(item: Any) -> str | None:
        # None leaves out an object that is taken in.
        return None if item.get("status", {}).get("record") else item["metadata"]["uid"]

    paths = map(object_path, _PLURALS)
    return [ObjectWatch(connection, path, pending_uid, notify) for path in paths]


def write_record_status(
    connection: ApiConnection, name: ObjectName, uid: str, status: Mapping[str, Any]
) -> Any:
    """Replace the status of the object with this uid, and return the object.

    None if it is gone or was created anew: the new object is another record.
    """
    path = f"{object_path(name.kind, name.namespace)}/{name.name}"
    # An apply does not compare the uid: the status of a custom object is written without its
    # metadata.
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": status},
    ]
    try:
        return connection.send(
            "PATCH", f"{path}/status?fieldManager={FIELD_MANAGER}", patch, PATCH_TYPE
        )
    except (NotServed, Conflict):
        return None
    except InvalidInput:
        # A test that fails looks like a status that is refused.
        if _read_uid(connection, path) != uid:
            return None
        raise


def _read_uid(connection: ApiConnection, path: str) -> str:
    try:
        uid: str = connection.get(path)["metadata"]["uid"]
    except NotServed:
        return ""
    return uid


def object_path(kind: str, namespace: str = "") -> str:
    """Return the path of all objects of a kind of records, in one namespace or in all."""
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API_VERSION}{inside}/{_PLURALS[kind]}"


def _read_object(kind: str, item: Any) -> RecordObject:
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    groups = annotations.get(Label.GROUPS.value, "").split("\n")
    return RecordObject(
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        by=annotations.get(Label.BY.value, ""),
        groups=tuple(sorted({group for group in groups if group})),
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        generation=metadata.get("generation", 1),
        manifest={
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"namespace": metadata["namespace"]},
            "spec": item.get("spec"),
        },
        state=read_state(item.get("status") or {}),
    )


def read_state(status: Mapping[str, Any]) -> RecordState:
    """Return the state that the status of an object says."""
    conditions = {it["type"]: it for it in status.get("conditions") or ()}
    if (recorded := conditions.get(RECORDED)) is None:
        return RecordState()
    at = datetime.fromisoformat(recorded["lastTransitionTime"])
    if recorded["status"] == "True":
        return RecordState(record=status.get("record", ""), at=at)
    return RecordState(
        at=at,
        reason=recorded["reason"],
        message=recorded["message"],
        is_refused=STALLED in conditions,
    )


def with_generation(status: Mapping[str, Any], generation: int) -> dict[str, Any]:
    """Return the status, and each of its conditions, with the generation that it is about."""
    conditions = [{**it, "observedGeneration": generation} for it in status["conditions"]]
    return {**status, "observedGeneration": generation, "conditions": conditions}


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class RecordCreation:
    """Implementation of `fanout.ports.RecordCreator` on an API server."""

    def __init__(self, connection: ApiConnection) -> None:
        """Use the connection of the person who records."""
        self._connection = connection
        self._created: dict[str, str] = {}  # paths by kind and name

    @cached_property
    def user(self) -> ClusterUser:
        """User of the connection; asked once. Raises Denied and Unavailable."""
        return read_own_user(self._connection)

    def create(self, record: Mapping[str, Any]) -> str:
        """Create the object, and return its name.

        Raises Denied with the right that is missing, and Stopped if the controller would refuse it.
        """
        kind, spec = record["kind"], record["spec"]
        metadata = record["metadata"]
        namespace = metadata["namespace"]
        self._refuse_unproven(spec, namespace)
        words = _CAPITAL.sub("-", spec.get("action", kind)).lower()
        manifest = {
            **record,
            "metadata": {
                "namespace": namespace,
                "generateName": f"{words}-",
                "annotations": {**metadata.get("annotations", {}), Label.BY.value: self.user.name},
            },
        }
        path = object_path(kind, namespace)
        created = self._connection.send("POST", f"{path}?fieldValidation=Strict", manifest)
        name: str = created["metadata"]["name"]
        self._created[f"{kind}/{name}"] = f"{path}/{name}"
        return name

    def _refuse_unproven(self, spec: Mapping[str, Any], namespace: str) -> None:
        """Raise Stopped if the controller would refuse what is created now, for ever."""
        policy = spec.get("policy", "")
        model = UpstreamPolicy if policy else PackageVariant
        name = policy or spec["variants"][0]
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/{model.PLURAL}/{name}"
        try:
            item = self._connection.get(path)
        except (Denied, NotServed):  # the request that creates the record says what is missing
            return
        for condition in item.get("status", {}).get("conditions", ()):
            if condition["type"] == Reason.ADMISSION_MISSING and condition["status"] == "True":
                raise Stopped(condition["message"], reason=condition["reason"])

    def find_uid(self, kind: str, namespace: str, name: str) -> str:
        """Return the uid of the object of a record; "" if there is none. Raises Denied."""
        return _read_uid(self._connection, f"{object_path(kind, namespace)}/{quote(name, safe='')}")

    def read_states(self) -> Mapping[str, RecordState]:
        """Return the state of each object that was created here, by kind and name."""
        items = {name: self._connection.get(path) for name, path in self._created.items()}
        return {name: read_state(item.get("status") or {}) for name, item in items.items()}
