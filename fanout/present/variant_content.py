"""Content of the PackageVariants that policies make in a cluster: labels, annotations and spec."""

from collections.abc import Iterable
from typing import Any

from fanout.api.git_repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.view_meta import Plain, variant_labels, without_none
from fanout.reconcile.pass_results import PolicyResult
from fanout.selection.variant_spec import FunctionSpec, VariantSpec


def build_content(policy_result: PolicyResult, variant: RenderedVariant) -> Plain:
    """Build the content of the variant of a policy, as somebody could write it by hand.

    Fields for which the schema has a default are written, so that the object that the API server
    stores equals what was sent.
    """
    resolved_policy, spec = policy_result.resolved_policy, variant.spec
    policy = resolved_policy.upstream_policy
    assert policy is not None, "asked of variants of policies"
    downstream = resolved_policy.repositories[spec.name]
    revision = policy.spec.upstream.revision
    return _without_empty(
        {
            "labels": variant_labels(policy_result, variant),
            "annotations": dict(spec.annotations),
            "ownerReferences": _build_owners(policy),
            "spec": _without_empty(
                {
                    "upstream": {
                        "repository": spec.upstream_repository,
                        "package": _inside(resolved_policy.upstream, spec.upstream_package),
                        "revision": revision.model_dump(by_alias=True, exclude_none=True),
                    },
                    "downstream": {
                        "repository": spec.repository,
                        "package": _inside(downstream, spec.path),
                    },
                    **_build_changes(spec),
                    "adoptionPolicy": policy.spec.adoption_policy.value,
                    "deletionPolicy": policy.spec.deletion_policy.value,
                    "updateStrategy": policy.spec.update_strategy.value,
                    "onConflict": policy.spec.on_conflict.value,
                    "suspend": spec.suspended,
                    "policyRef": {"name": spec.policy},
                    "stage": spec.stage,
                }
            ),
        }
    )


def _build_owners(policy: UpstreamPolicy) -> list[Plain]:
    """Return the policy as the owner of its variants, for tools that show what belongs to what.

    It holds up no deletion (`blockOwnerDeletion`). A policy that is being deleted has no variants
    with content, so that those that wait for their removal are left alone.
    """
    meta = policy.metadata
    if meta.uid is None:  # declared in a file
        return []
    owner = {"apiVersion": policy.api_version, "kind": policy.kind, "name": meta.name}
    return [{**owner, "uid": meta.uid, "controller": True}]


def _build_changes(spec: VariantSpec) -> Plain:
    context = {"data": dict(spec.context), "removeKeys": list(spec.remove_keys)}
    pipeline = {
        "mutators": _build_functions(spec.mutators),
        "validators": _build_functions(spec.validators),
    }
    injectors = [
        without_none({"name": it.name, "group": it.group, "version": it.version, "kind": it.kind})
        for it in spec.injectors
    ]
    return {
        "packageContext": _without_empty(context),
        "pipeline": _without_empty(pipeline),
        "injectors": injectors,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
    }


def _build_functions(functions: Iterable[FunctionSpec]) -> list[Plain]:
    return [
        _without_empty(
            {"image": it.image, "name": it.name, "configMap": dict(it.config), **it.extra_fields()}
        )
        for it in functions
    ]


def _inside(repository: Repository | None, path: str) -> str:
    """Return a path of a repository relative to the directory that the Repository names."""
    directory = repository.spec.directory.strip("/") if repository is not None else ""
    return path.removeprefix(f"{directory}/") if directory else path


def _without_empty(fields: dict[str, Any]) -> Plain:
    """Return the fields that are not empty: the API server would drop them."""
    return {name: value for name, value in fields.items() if value not in ("", {}, [])}
