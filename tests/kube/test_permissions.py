"""What is advised to somebody whom the API server refuses something."""

import pytest

from fanout.errors import Denied
from fanout.kube.api_connection import _status_error

CANNOT = 'x is forbidden: User "ann" cannot {} resource "{}" in API group "{}" in the namespace "a"'
NEEDS = (
    "decisions.fanout.dev \"\" is forbidden: ValidatingAdmissionPolicy 'records.fanout.dev' with"
    " binding 'records.fanout.dev' denied request: user ann needs the verb {} on"
    " upstreampolicies.fanout.dev web in namespace a"
)
READER = "bind the ClusterRole fanout-reader, and give a ClusterRole with this right the label rbac"
ROWS = [
    (NEEDS.format("report"), "bind the ClusterRole fanout-reporter"),
    (NEEDS.format("approve"), "bind the ClusterRole fanout-approver"),
    (NEEDS.format("promote"), "bind the ClusterRole fanout-promoter"),
    (NEEDS.format("suspend"), "bind the ClusterRole fanout-promoter"),
    (NEEDS.format("override"), "bind the ClusterRole fanout-admin"),
    (NEEDS.format("remove"), "bind the ClusterRole fanout-admin"),
    (CANNOT.format("create", "evidences", "fanout.dev"), "bind the ClusterRole fanout-reporter"),
    (CANNOT.format("create", "approvals", "fanout.dev"), "bind the ClusterRole fanout-approver"),
    (CANNOT.format("create", "decisions", "fanout.dev"), "bind the ClusterRole fanout-promoter"),
    (CANNOT.format("list", "upstreampolicies", "fanout.dev"), "bind the ClusterRole fanout-viewer"),
    (CANNOT.format("patch", "upstreampolicies", "fanout.dev"), "apply fanout's Kustomize base"),
    (CANNOT.format("create", "events", "events.k8s.io"), "apply fanout's Kustomize base"),
    (CANNOT.format("list", "customresourcedefinitions", "apiextensions.k8s.io"), "apply fanout's"),
    (CANNOT.format("list", "clusters", "infra.example.com"), READER),
    (CANNOT.format("watch", "configmaps", ""), READER),
    ("Unauthorized", "check the credentials of the kubeconfig file"),
    ('a "b" is forbidden: another webhook denied the request', "have an administrator grant it"),
]


@pytest.mark.parametrize(("message", "remedy"), ROWS)
def test_the_remedy_names_what_grants_the_right(message: str, remedy: str):
    error = _status_error("/apis", 403, f'{{"message": {_quote(message)}}}')
    assert isinstance(error, Denied)
    assert error.problem == message
    assert remedy in error.remedy


def _quote(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'
