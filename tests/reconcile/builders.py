"""Values that phases of a pass are fed with: a resolved policy in a few words, refs, states."""

from datetime import UTC, datetime
from typing import Any

from fanout.api.validators.object_validation import validate_object
from fanout.plan.commit_statement import PackageStatement
from fanout.plan.observation.repository_state import (
    OpenDraft,
    RefListing,
    Remote,
    RepositoryState,
    SetState,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.variant_spec import TargetFailure, VariantSpec, variant_digest
from fanout.values import replace

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
UPSTREAM_URL = "https://git.example.com/blueprints.git"
EDGE_URL = "https://git.example.com/edge.git"
COMMITS = {f"v{number}": f"{number:040x}" for number in range(1, 10)}


def parsed(kind: str, name: str, *, namespace: str = "platform", **spec: Any) -> Any:
    """A valid object of fanout's."""
    meta = {"name": name, "namespace": namespace}
    document = {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
    item, errors = validate_object(document)
    assert errors == ()
    return item


def variant_name(target: str, policy: str = "monitoring") -> str:
    return f"{policy}-{target}-{variant_digest('platform', policy, target)}"


def variant_spec(target: str, policy: str = "monitoring", stage: str = "dev") -> VariantSpec:
    return VariantSpec(
        name=variant_name(target, policy),
        namespace="platform",
        policy=policy,
        stage=stage,
        target=target,
        upstream_repository="blueprints",
        upstream_package="monitoring",
        repository="edge",
        path=f"sites/{target}",
    )


def resolved(
    *targets: str,
    revision: dict[str, Any] | None = None,
    failing: tuple[str, ...] = (),
    **fields: Any,
) -> ResolvedPolicy:
    """A policy with a variant per target; `failing` targets have none."""
    upstream_policy = parsed(
        "UpstreamPolicy",
        "monitoring",
        upstream={
            "repository": "blueprints",
            "package": "monitoring",
            "revision": revision or {"latest": True},
        },
        targets=[{"repositories": [{"name": "edge"}], "template": {"stage": "dev"}}],
        stages=[{"name": "dev"}],
    )
    return ResolvedPolicy(
        namespace="platform",
        name="monitoring",
        upstream_policy=upstream_policy,
        package_variant=None,
        upstream=parsed("Repository", "blueprints", url=UPSTREAM_URL),
        variants=tuple(map(variant_spec, targets)),
        failures=tuple(
            TargetFailure(target=it, reason="ExpressionError", problem="no") for it in failing
        ),
        **fields,
    )


def hand_written(name: str, *depends_on: str) -> ResolvedPolicy:
    """A variant written by hand that depends on others of these names."""
    package_variant = parsed(
        "PackageVariant",
        name,
        upstream={
            "repository": "blueprints",
            "package": "monitoring",
            "revision": {"latest": True},
        },
        downstream={"repository": "edge", "package": name},
        dependsOn=[{"variant": it} for it in depends_on],
    )
    return ResolvedPolicy(
        namespace="platform",
        name=name,
        upstream_policy=None,
        package_variant=package_variant,
        upstream=None,
        variants=(replace(variant_spec(name, policy=""), name=name),),
    )


def tags(*names: str, package: str = "monitoring", **moved: str) -> RefListing:
    """A listing with these tags of the package; `moved` tags are at other commits."""
    commits = {name: COMMITS.get(name, "f" * 40) for name in names} | moved
    return RefListing({f"refs/tags/{package}/{name}": oid for name, oid in commits.items()})


def open_draft(variant: str, path: str, *, edited: bool = False, policy: str = "") -> OpenDraft:
    trailers = PackageStatement(
        install="default",
        policy=policy or "platform/monitoring",
        variant=variant,
        stage="dev",
        revision="v1",
        commit=COMMITS["v1"],
        digest="d",
        onto="none",
        tree="t",
    )
    return OpenDraft(
        ref=f"refs/heads/drafts/default/{path}/monitoring",
        path=path,
        commit="c" * 40,
        tree="t",
        trailers=trailers,
        is_edited=edited,
    )


def sets_of(*drafts: OpenDraft) -> dict[str, SetState]:
    """The branches of drafts, by ref."""
    return {
        draft.ref: SetState(
            ref=draft.ref,
            commit=draft.commit,
            timestamp=draft.timestamp,
            base="b" * 40,
            policy=draft.trailers.policy,
            stage=draft.trailers.stage,
            drafts={it.path: it for it in drafts if it.ref == draft.ref},
            is_edited=draft.is_edited,
        )
        for draft in drafts
    }


def repository_state(*drafts: OpenDraft, url: str = EDGE_URL) -> RepositoryState:
    return RepositoryState(
        remote=Remote(url),
        branch="refs/heads/main",
        refs={draft.ref: draft.commit for draft in drafts},
        sets=sets_of(*drafts),
    )
