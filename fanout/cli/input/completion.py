"""Shell completion of arguments: resource types, and names that files declare.

Only files are read, and of those only the ones that declare a fanout object: a
completion must answer at once, and never write, so no repository is read and no
template is evaluated. Variants that a policy generates are therefore not offered.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from fanout.api.object_meta import GROUP
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_documents import discover_manifests

STATE_TYPES = ("policies", "variants", "stages", "targets", "repositories", "drafts", "conflicts")
RECORD_TYPES = ("records", "evidence", "approvals", "decisions")
RESOURCE_TYPES = (*STATE_TYPES, *RECORD_TYPES)


def singular_of(resource_type: str) -> str:
    """Return the singular of a resource type, such as `policy` for `policies`."""
    return (
        f"{resource_type[:-3]}y"
        if resource_type.endswith("ies")
        else resource_type.removesuffix("s")
    )


ALIASES = {
    "policy": "policies",
    "upol": "policies",
    "upstreampolicy": "policies",
    "upstreampolicies": "policies",
    "variant": "variants",
    "pvar": "variants",
    "packagevariant": "variants",
    "packagevariants": "variants",
    "stage": "stages",
    "target": "targets",
    "repository": "repositories",
    "draft": "drafts",
    "conflict": "conflicts",
    "record": "records",
    "evidences": "evidence",
    "approval": "approvals",
    "decision": "decisions",
}


_SIZE_LIMIT = 4_000_000  # bytes of declarations; more would take too long for a completion


def complete_resource_types(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete the resource type of `fanout get`."""
    return _matching(RESOURCE_TYPES, incomplete)


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of the resource type that was given before."""
    typed = str(ctx.params.get("resource_type") or "").lower()
    declared = _read_declared(ctx)
    match ALIASES.get(typed, typed):
        case "policies":
            return _matching((it.metadata.name for it in declared.policies), incomplete)
        case "repositories":
            return _matching((it.metadata.name for it in declared.repositories), incomplete)
        case "variants" | "drafts" | "conflicts":
            return _matching((it.metadata.name for it in declared.variants), incomplete)
        case record_type if record_type in RECORD_TYPES:
            return complete_policies(ctx, param, incomplete)
        case "stages":
            return _matching(_policy_stages(declared), incomplete)
        case _:
            return []


def complete_policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete policies and variants that were written by hand."""
    declared = _read_declared(ctx)
    objects = (*declared.policies, *declared.variants)
    return _matching((item.metadata.name for item in objects), incomplete)


def complete_promotions(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete PromotionPolicies."""
    return _matching((it.metadata.name for it in _read_declared(ctx).promotions), incomplete)


def complete_stages(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Complete stages of the policy that was given before, or of all policies."""
    policy_name = ctx.params.get("policy")
    stages = (
        stage.name
        for policy in _read_declared(ctx).policies
        if policy_name in (None, policy.metadata.name)
        for stage in policy.spec.stages
    )
    return _matching(stages, incomplete)


def complete_subjects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the argument of `fanout explain`: a policy, and behind a slash its stages."""
    if "/" in incomplete:
        return _matching(_policy_stages(_read_declared(ctx)), incomplete)
    return complete_policies(ctx, param, incomplete)


def _policy_stages(declared: DeclaredObjects) -> Iterator[str]:
    for policy in declared.policies:
        for stage in policy.spec.stages:
            yield f"{policy.metadata.name}/{stage.name}"


def _matching(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _read_declared(ctx: click.Context) -> DeclaredObjects:
    """Read the declared objects of the files of `-f` or FANOUT_FILES."""
    names: list[Any] = []
    context: click.Context | None = ctx
    while context is not None:
        names += context.params.get("files") or ()
        context = context.parent
    names = names or os.environ.get("FANOUT_FILES", "").split(os.pathsep)
    # A search for bytes is far quicker than YAML, and most files of a repository declare other
    # kinds.
    paths = discover_manifests([Path(name) for name in names if name]).files
    return FileCluster([path for path in paths if _declares_fanout(path)]).read()


def _declares_fanout(path: Path) -> bool:
    try:
        return path.stat().st_size < _SIZE_LIMIT and f"{GROUP}/".encode() in path.read_bytes()
    except OSError:
        return False
