"""Identity of the user of a connection, as the API server knows it."""

from typing import Any

from fanout.kube.api_connection import ApiConnection
from fanout.plan.records.record_listing import ClusterUser

_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def read_own_user(connection: ApiConnection) -> ClusterUser:
    """Return the user whose credentials the connection has. Raises Denied and Unavailable."""
    review: Any = connection.send("POST", _PATH, _REVIEW)
    user = review["status"]["userInfo"]
    return ClusterUser(user["username"], tuple(user.get("groups", ())))
