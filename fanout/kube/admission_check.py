"""Check that the admission policies of records are installed, unchanged and in force.

They prove who created a record. Where they are missing nobody is who an object says.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from fanout.api.admission_policies import DEFAULT_SERVICE_ACCOUNT, build_admission_policies
from fanout.errors import Denied, FanoutError, InvalidInput
from fanout.kube.api_connection import ApiConnection, NotServed, read_own_user
from fanout.values import Value

# API servers need seconds until a policy that was written is in force in all of them.
IN_FORCE_AFTER = timedelta(minutes=1)
_PATH = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
# What the API server writes where the policy says nothing.
_MATCH_DEFAULTS = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_RULE_DEFAULTS = {"scope": "*"}
_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class AdmissionState(Value):
    """State of the admission policies: a problem, or since when they are in force."""

    problem: FanoutError | None = None
    since: datetime | None = None


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

    def read(self) -> AdmissionState:
        """Compare the policies and bindings with those that fanout prints. Raises Unavailable."""
        account = DEFAULT_SERVICE_ACCOUNT
        try:
            account = self._service_account
            expected = build_admission_policies(account)
            written = [_check(self._connection, it) for it in expected]
        except (Denied, InvalidInput) as error:
            is_default = account == DEFAULT_SERVICE_ACCOUNT
            option = "" if is_default else f" --service-account {account}"
            command = f"fanout crds --admission{option} | kubectl apply --server-side -f -"
            return AdmissionState(
                InvalidInput(
                    "no record is taken in, because nothing proves who created it:"
                    f" {error.problem}",
                    reason="AdmissionMissing",
                    remedy=f"run `{command}`",
                )
            )
        return AdmissionState(since=max(written) + IN_FORCE_AFTER)


def _check(connection: ApiConnection, expected: Mapping[str, Any]) -> datetime:
    """Return when the object was written last. Raises InvalidInput if it is not as expected."""
    kind, name = expected["kind"], expected["metadata"]["name"]
    try:
        actual = connection.get(f"{_PATH}/{_PLURALS[kind]}/{name}")
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
