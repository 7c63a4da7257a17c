"""Policies and variants that are on record but not declared.

A bad merge or a forgotten `-f` removes no policy: its publications stay, but nothing
maintains them, so each pass warns.
"""

from collections.abc import Mapping

from fanout.api.package_variant import PackageVariant
from fanout.api.text_fields import pluralize
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, own_kind
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
    declared_names: set[tuple[str, str, str]] = {
        (it.kind, it.metadata.namespace, it.metadata.name) for it in declared.declarations
    }
    declared_names |= {(it.kind, it.namespace, it.name) for it in declared.left_out}
    # While a policy misses its branch, one with the records of another policy may be it, renamed.
    may_be_renamed = any(it.lost_branch is not None for it in policy_states.values())
    policies: list[str] = []
    variants: list[str] = []
    for key, policy_state in sorted(policy_states.items()):
        kind = UpstreamPolicy if key.policy else PackageVariant
        lines = policy_state.status.variants
        if (
            namespace not in ("", key.namespace)
            or ("UpstreamPolicy", key.namespace, key.policy) in declared_names
            or (key.policy and policy_state.unreadable and may_be_renamed)
            # What is unread is reported elsewhere; a second warning would mislead.
            or any(declared.find_unusable(own_kind(kind), key.namespace))
        ):
            continue
        if key.policy:
            published = sum(line.published is not None for line in lines.values())
            contents: list[str] = []
            if published:
                contents.append(pluralize(published, "published variant"))
            if len(lines) > published:
                contents.append(f"{len(lines) - published} released")
            if not lines and policy_state.status.draft_repositories:
                contents.append("drafts")
            if contents:
                policies.append(
                    f"policy {key.namespace}/{key.policy} is not declared but has"
                    f" {' and '.join(contents)}; declare it again, or, to remove it, declare it"
                    " with targets that match nothing and run"
                    f" `fanout remove {key.policy} --all-gone --reason WHY`"
                )
            continue
        for name, line in sorted(lines.items()):
            if ("PackageVariant", key.namespace, name) not in declared_names:
                is_published = line.published is not None
                state = "its package is still published" if is_published else "it has records"
                variants.append(
                    f"PackageVariant {key.namespace}/{name} is not declared, but {state}"
                    f" ({line.repository}, {line.path}) and is not updated; declare it again, or"
                    f" run `fanout remove {name} --reason WHY`"
                )
    return (*policies, *variants)


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
