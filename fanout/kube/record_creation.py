"""Creation of records as objects of an API server, in the name of the connection's user."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from fanout.api.object_meta import API_VERSION, Label
from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import Reason
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.errors import Denied, Stopped
from fanout.kube.api_connection import ApiConnection, NotServed, read_own_user
from fanout.kube.pending_records import object_path, read_state
from fanout.plan.records.record_listing import ClusterUser, RecordState

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class RecordCreation:
    """Implementation of `fanout.ports.RecordCreator` on an API server."""

    def __init__(self, connection: ApiConnection) -> None:
        """Use the connection of the person who records."""
        self._connection = connection
        self._created: list[tuple[str, str, str]] = []  # kind, namespace, name

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
                "annotations": {
                    **metadata.get("annotations", {}),
                    Label.BY.value: self.user.name,
                },
            },
        }
        path = f"{object_path(kind, namespace)}?fieldValidation=Strict"
        created = self._connection.send("POST", path, manifest)
        name: str = created["metadata"]["name"]
        self._created.append((kind, namespace, name))
        return name

    def _refuse_unproven(self, spec: Mapping[str, Any], namespace: str) -> None:
        """Raise Stopped if the controller reports that nothing proves who creates records.

        It refuses for ever what is created meanwhile.
        """
        policy = spec.get("policy", "")
        model = UpstreamPolicy if policy else PackageVariant
        name = policy or spec["variants"][0]
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/{model.PLURAL}/{name}"
        try:
            item = self._connection.get(path)
        except (Denied, NotServed):  # the request that creates the record says what is missing
            return
        conditions = item.get("status", {}).get("conditions", ())
        for condition in conditions:
            if condition["type"] == Reason.ADMISSION_MISSING and condition["status"] == "True":
                raise Stopped(condition["message"], reason=condition["reason"])

    def find_uid(self, kind: str, namespace: str, name: str) -> str:
        """Return the uid of the object of a record; "" if there is none. Raises Denied."""
        try:
            item = self._connection.get(f"{object_path(kind, namespace)}/{quote(name, safe='')}")
        except NotServed:
            return ""
        uid: str = item["metadata"]["uid"]
        return uid

    def read_states(self) -> Mapping[str, RecordState]:
        """Return the state of each object that was created here, by kind and name."""
        states: dict[str, RecordState] = {}
        for kind, namespace, name in self._created:
            item = self._connection.get(f"{object_path(kind, namespace)}/{name}")
            states[f"{kind}/{name}"] = read_state(item.get("status") or {})
        return states
