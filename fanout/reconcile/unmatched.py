"""Selectors that choose nothing of what is there: mostly a mistyped label, told as a warning."""

from collections.abc import Iterable, Iterator

from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.selection.objects import group_of
from fanout.selection.targets import unmatched


def unmatched_selectors(
    declared: Declared, policies: Iterable[UpstreamPolicy]
) -> tuple[Finding, ...]:
    """A warning for every objectSelector of these policies that chooses none of the objects.

    Nothing is said while a file cannot be read: what is chosen may be in it.
    """
    if declared.unread:
        return ()
    return tuple(it for policy in policies for it in _of_policy(policy, declared))


def _of_policy(policy: UpstreamPolicy, declared: Declared) -> Iterator[Finding]:
    for index, total in unmatched(policy, declared.objects):
        selector = policy.spec.targets[index].object_selector
        assert selector is not None, "it has chosen nothing"
        group = group_of(selector.api_version)
        kind = f"{selector.kind}.{group}" if group else selector.kind
        if total:
            problem = f"0 of {total} {selector.kind} objects match, so nothing is made"
            remedy = "compare its labels and name with those of the objects"
        else:
            namespace = policy.metadata.namespace
            problem = f"there is no {kind} in namespace {namespace}, nor one without a namespace"
            remedy = "correct kind and group, or give the objects to -f too"
        where = declared.where(policy, f"spec.targets[{index}].objectSelector")
        yield Finding(where, problem, remedy, "warning")
