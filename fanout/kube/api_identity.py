"""Identity of the user of a connection, as the API server knows it."""

from typing import Any

from fanout.kube.api_connection import ApiConnection
from fanout.values import frozen

_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@frozen
class ApiUser:
    """User of the API: name, and groups."""

    name: str
    groups: tuple[str, ...] = ()


def read_own_user(connection: ApiConnection) -> ApiUser:
    """Return the user whose credentials the connection has. Raises Denied and Unavailable."""
    review: Any = connection.send("POST", _PATH, _REVIEW)
    user = review["status"]["userInfo"]
    return ApiUser(user["username"], tuple(user.get("groups", ())))
