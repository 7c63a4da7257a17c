"""Admission policies of the kinds: who may record what, and who writes variants of policies.

ValidatingAdmissionPolicies, which the API server evaluates itself. Records prove who made them:
their annotations are compared with the user of the request, and RBAC is asked for the custom verb
that the record needs on the UpstreamPolicy that it names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fanout.api.gate_vocabulary import Action
from fanout.api.object_meta import GROUP, KRMObject, Label
from fanout.api.package_variant import PackageVariant
from fanout.api.record_objects import RECORD_MODELS, Approval, Evidence
from fanout.api.upstream_policy import UpstreamPolicy

DEFAULT_SERVICE_ACCOUNT = "fanout-system/fanout-controller"

# Verbs of RBAC, by action. A withdrawal may be of evidence or of any decision, and the API server
# does not see which, so it needs the verbs of all that it could lift.
VERBS_BY_ACTION: Mapping[Action, tuple[str, ...]] = {
    Action.PUBLISH: ("promote",),
    Action.ROLLBACK: ("promote",),
    Action.SKIP: ("promote",),
    Action.RETRY: ("promote",),
    Action.RESOLVE: ("promote",),
    Action.SUSPEND: ("suspend",),
    Action.RESUME: ("suspend",),
    Action.CONFIRM_REMOVAL: ("remove",),
    Action.WITHDRAW: ("report", "promote", "suspend"),
    Action.ACCEPT_RECORDS: ("override",),
}
VERBS = ("report", "approve", "promote", "override", "suspend", "remove")

_BY, _GROUPS = Label.BY.value, Label.GROUPS.value
_ANNOTATIONS = "object.metadata.?annotations"
_OLD_ANNOTATIONS = "oldObject.metadata.?annotations"
_IS_CREATED, _IS_UPDATED = (f"request.operation == '{it}'" for it in ("CREATE", "UPDATE"))

# Expressions with their messages, which are expressions as well.
_BY_IS_USER = f"{_IS_UPDATED} || variables.by == request.userInfo.username"
_BY_REFUSAL = f"'annotation {_BY} is not the user of the request, ' + request.userInfo.username"
_GROUPS_ARE_OF_USER = (
    f"{_IS_UPDATED} || variables.groups.all(group,"
    " has(request.userInfo.groups) && group in request.userInfo.groups)"
)
_GROUPS_REFUSAL = (
    f"'annotation {_GROUPS} has a group that user ' + request.userInfo.username"
    " + ' is not in; write one group on each line'"
)
_SPEC_IS_UNCHANGED = f"{_IS_CREATED} || object.spec == oldObject.spec"
_AUTHOR_IS_UNCHANGED = (
    f"{_IS_CREATED} || ['{_BY}', '{_GROUPS}']"
    f".all(name, {_ANNOTATIONS}[?name] == {_OLD_ANNOTATIONS}[?name])"
)
_SUBJECT = (
    f"(variables.policy != '' ? '{UpstreamPolicy.PLURAL}.{GROUP} ' + variables.policy"
    f" : variables.variant != '' ? '{PackageVariant.PLURAL}.{GROUP} ' + variables.variant"
    f" : 'all {PackageVariant.PLURAL}.{GROUP}')"
)
_MAY = (
    f"{_IS_UPDATED} || !('{{verb}}' in variables.verbs)"
    " || variables.subject.check('{verb}').allowed()"
)
_REFUSAL = (
    f"'user ' + request.userInfo.username + ' needs the verb {{verb}} on ' + {_SUBJECT}"
    " + ' in namespace ' + request.namespace"
)
# The verbs that a record needs. An action that a later version adds is nobody's until it has a row.
_CASES = (
    f"object.kind == '{Evidence.__name__}' ? ['report']",
    f"object.kind == '{Approval.__name__}' ? ['approve']",
    *(f"object.spec.action == '{it}' ? {list(verbs)}" for it, verbs in VERBS_BY_ACTION.items()),
)
_NEEDED_VERBS = (
    f"({' : '.join(_CASES)} : {list(VERBS)}) + (object.kind == 'Decision' &&"
    " has(object.spec.overrides) && object.spec.overrides.size() > 0 ? ['override'] : [])"
)
# A namespace that is deleted takes its variants along; nobody could delete it otherwise.
_ENDS_WITH_NAMESPACE = (
    "(request.operation == 'DELETE' && namespaceObject != null"
    " && has(namespaceObject.metadata.deletionTimestamp))"
)


def build_admission_policies(service_account: str) -> list[dict[str, Any]]:
    """Return the admission policies, each followed by its binding.

    `service_account`: `namespace/name` of the controller's service account, which alone writes
    the PackageVariants of policies.
    """
    user = f"system:serviceaccount:{service_account.replace('/', ':')}"
    records = _build_policy(
        f"records.{GROUP}",
        ("CREATE", "UPDATE"),
        [kind.PLURAL for kind in RECORD_MODELS],
        variables={
            "by": f"{_ANNOTATIONS}[?'{_BY}'].orValue('')",
            "groups": f"{_ANNOTATIONS}[?'{_GROUPS}'].orValue('').split('\\n')"
            ".filter(group, group != '')",
            "policy": "has(object.spec.policy) ? object.spec.policy : ''",
            # One request of a user may ask RBAC a few times only, so several variants without a
            # policy need the verb on all of the namespace.
            "variant": "has(object.spec.variants) && object.spec.variants.size() == 1"
            " ? object.spec.variants[0] : ''",
            "verbs": _NEEDED_VERBS,
            "subject": f"variables.policy != '' ? {_check_of(UpstreamPolicy, 'policy')}"
            f" : {_check_of(PackageVariant, 'variant')}",
        },
        validations=(
            (_BY_IS_USER, _BY_REFUSAL),
            (_GROUPS_ARE_OF_USER, _GROUPS_REFUSAL),
            *((_MAY.format(verb=verb), _REFUSAL.format(verb=verb)) for verb in VERBS),
            (_SPEC_IS_UNCHANGED, "'a record never changes; record another one'"),
            (_AUTHOR_IS_UNCHANGED, f"'annotations {_BY} and {_GROUPS} never change'"),
        ),
    )
    is_writer = f"request.userInfo.username == '{user}'"
    refusal = f"'only {user} writes PackageVariants of a policy; change the UpstreamPolicy'"
    variants = _build_policy(
        f"packagevariants.{GROUP}",
        ("CREATE", "UPDATE", "DELETE"),
        # Whoever may write statuses of PackageVariants could show one as published otherwise.
        (PackageVariant.PLURAL, f"{PackageVariant.PLURAL}/status"),
        variables={
            "ofPolicy": "[object, oldObject].exists(it, it != null"
            " && (has(it.spec.policyRef) || has(it.spec.stage)))"
        },
        validations=((f"!variables.ofPolicy || {is_writer} || {_ENDS_WITH_NAMESPACE}", refusal),),
    )
    return [*records, *variants]


def _check_of(kind: type[KRMObject], variable: str) -> str:
    return (
        f"authorizer.group('{GROUP}').resource('{kind.PLURAL}').namespace(request.namespace)"
        f".name(variables.{variable})"
    )


def _build_policy(
    name: str,
    operations: Sequence[str],
    resources: Sequence[str],
    *,
    variables: Mapping[str, str],
    validations: Sequence[tuple[str, str]],
) -> list[dict[str, Any]]:
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],  # of a later version too
        "operations": list(operations),
        "resources": list(resources),
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [
                {"name": variable, "expression": expression}
                for variable, expression in variables.items()
            ],
            "validations": [
                {"expression": expression, "messageExpression": message, "reason": "Forbidden"}
                for expression, message in validations
            ],
        },
    }
    binding = {
        "apiVersion": policy["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [policy, binding]
