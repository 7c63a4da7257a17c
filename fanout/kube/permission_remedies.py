"""Remedies for denied requests: the ClusterRole of the Kustomize base that allows them."""

import re

from fanout.api.object_meta import GROUP

_READING = frozenset({"get", "list", "watch"})
# The admission policies: which verb on a policy a record needs.
_NEEDED_VERB = re.compile(r"needs the verb (\w+) on ")
_ROLES_BY_VERB = {
    "report": "fanout-reporter",
    "approve": "fanout-approver",
    "promote": "fanout-promoter",
    "suspend": "fanout-promoter",
    "override": "fanout-admin",
    "remove": "fanout-admin",
}
# RBAC: which verb of a request is denied, on which resource of which API group.
_DENIED_REQUEST = re.compile(r'cannot (\w+) resource "([\w./-]+)" in API group "([\w.-]*)"')
_ROLES_BY_RECORD = {
    "evidences": "fanout-reporter",
    "approvals": "fanout-approver",
    "decisions": "fanout-promoter",
}
# Those that the controller alone reads or writes.
_CONTROLLER_GROUPS = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "authentication.k8s.io"}
    | {"authorization.k8s.io", "coordination.k8s.io", "events.k8s.io"}
)

_CREDENTIALS_REMEDY = "check the credentials of the kubeconfig file"
_BASE_REMEDY = "apply fanout's Kustomize base, which has the rights of the controller"
_READER_REMEDY = (
    "have an administrator bind the ClusterRole fanout-reader, and give a ClusterRole with this"
    " right the label rbac.fanout.dev/aggregate-to-reader"
)
_OTHER_REMEDY = "have an administrator grant it"


def advise_right(message: str) -> str:
    """Return the remedy for the message of a request that the API server denied."""
    if message == "Unauthorized":
        return _CREDENTIALS_REMEDY
    if needed := _NEEDED_VERB.search(message):
        return _advise_role(_ROLES_BY_VERB.get(needed[1], "fanout-admin"))
    denied = _DENIED_REQUEST.search(message)
    if denied is None:
        return _OTHER_REMEDY
    verb, resource, group = denied.groups()
    if group == GROUP and verb == "create" and resource in _ROLES_BY_RECORD:
        return _advise_role(_ROLES_BY_RECORD[resource])
    if group in _CONTROLLER_GROUPS or verb not in _READING:
        return _BASE_REMEDY
    return _advise_role("fanout-viewer") if group == GROUP else _READER_REMEDY


def _advise_role(role: str) -> str:
    return f"have an administrator bind the ClusterRole {role}"
