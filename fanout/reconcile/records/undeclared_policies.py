"""Policies and variants that are on record but not declared.

A bad merge or a forgotten `-f` removes no policy: its publications stay, but nothing
maintains them, so each pass warns.
"""

from collections.abc import Iterator, Mapping

from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declaration_failure import own_kind
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.world import World


def find_undeclared(
    policy_states: Mapping[RecordsKey, PolicyRecords], declared: DeclaredObjects, namespace: str
) -> tuple[str, ...]:
    """Return a warning for each undeclared policy or variant with recorded state.

    `namespace`: "" for all. What cannot be read may contain the declaration, so there is no
    warning while it concerns the namespace. An unusable object counts as declared.
    """
    declared_names = {(it.metadata.namespace, it.metadata.name) for it in declared.policies}
    declared_names |= {
        (it.namespace, it.name) for it in declared.left_out if it.kind == "UpstreamPolicy"
    }
    # While a policy misses its branch, one with the records of another policy may be it, renamed.
    may_be_renamed = any(it.lost_branch is not None for it in policy_states.values())
    # What is unread is reported elsewhere; a second warning about its policies would mislead.
    policies = (
        f"policy {key.namespace}/{key.policy} is not declared but has {' and '.join(contents)};"
        " declare it again, or, to remove it, declare it with targets that match nothing and run"
        f" `fanout remove {key.policy} --all-gone --reason WHY`"
        for key, policy_state in sorted(policy_states.items())
        if key.policy and (key.namespace, key.policy) not in declared_names
        if namespace in ("", key.namespace)
        if not (policy_state.unreadable and may_be_renamed)
        if not any(declared.find_unusable(own_kind(UpstreamPolicy), key.namespace))
        if (contents := list(_describe_state(policy_state)))
    )
    variants = (
        sentence
        for key, policy_state in sorted(policy_states.items())
        if not key.policy and namespace in ("", key.namespace)
        if not any(declared.find_unusable(own_kind(PackageVariant), key.namespace))
        for sentence in _find_undeclared_variants(key.namespace, policy_state, declared)
    )
    return (*policies, *variants)


def _find_undeclared_variants(
    namespace: str, policy_state: PolicyRecords, declared: DeclaredObjects
) -> Iterator[str]:
    """Yield a warning for each hand-written variant of the namespace whose object is gone."""
    declared_names = {(it.metadata.namespace, it.metadata.name) for it in declared.variants}
    declared_names |= {
        (it.namespace, it.name) for it in declared.left_out if it.kind == "PackageVariant"
    }
    for name, status_line in sorted(policy_state.status.variants.items()):
        if (namespace, name) not in declared_names:
            is_published = status_line.published is not None
            state = "its package is still published" if is_published else "it has records"
            yield (
                f"PackageVariant {namespace}/{name} is not declared, but {state}"
                f" ({status_line.repository}, {status_line.path}) and is not updated; declare it"
                f" again, or run `fanout remove {name} --reason WHY`"
            )


def _describe_state(policy_state: PolicyRecords) -> Iterator[str]:
    """Yield phrases that describe the recorded state of a policy."""
    variant_lines = policy_state.status.variants.values()
    published = sum(status_line.published is not None for status_line in variant_lines)
    if published:
        yield f"{published} published {'variant' if published == 1 else 'variants'}"
    if len(variant_lines) > published:
        yield f"{len(variant_lines) - published} released"
    if not variant_lines and policy_state.status.draft_repositories:
        yield "drafts"


def refuse_undeclared(world: World, declared: DeclaredObjects, namespace: str, policy: str) -> None:
    """Raise InvalidInput if a policy is on record but not declared.

    Only the declaration states whether its packages stay (`deletionPolicy`).
    """
    key = RecordsKey(namespace, policy)
    warnings = find_undeclared({key: world.records.read([key])[key]}, declared, namespace)
    if warnings:
        raise InvalidInput(
            f"policy {namespace}/{policy} has records but is not declared",
            reason="NotFound",
            remedy="declare it again with targets that match nothing, then run the command again;"
            " its deletionPolicy decides whether its packages stay",
        )
