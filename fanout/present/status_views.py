"""Policies, variants and repositories as they are shown in a cluster: objects with their statuses.

All instants are from records and commits, or of the object itself. The clock is not read, so that
two processes that observe the same write the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fanout.api.gate_vocabulary import VariantState
from fanout.api.git_repository import Repository
from fanout.api.object_meta import KRMObject
from fanout.api.object_statuses import MAX_HOLDS
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.reasons import Reason
from fanout.api.results import Condition, Hold, build_ready
from fanout.api.view_base import dump_view, dump_views
from fanout.errors import FanoutError
from fanout.message_commands import MessageCommands, cluster_commands
from fanout.plan.commit_statement import PackageStatement
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.written_objects import PROGRESS_TYPES, ObjectName, WrittenObject
from fanout.present.conditions import (
    RepositoryReport,
    add_progress,
    build_error_conditions,
    build_policy_conditions,
    build_repository_conditions,
    build_status_conditions,
    build_variant_conditions,
    has_unusable_repository,
)
from fanout.present.object_views import build_stages
from fanout.present.policy_entry import (
    OrphanEntry,
    Plain,
    PolicyEntry,
    VariantEntry,
    draft_time,
    format_time,
    variant_labels,
    without_none,
)
from fanout.reconcile.pass_results import PolicyResult
from fanout.selection.variant_spec import FunctionSpec
from fanout.values import replace

VARIANT_KIND = "PackageVariant"

# As in the schemas of the statuses: a status that exceeds a bound is refused as a whole.
_MAX_TEXT, _MAX_ENTRIES = 32_768, 1_000
_OF_OTHERS = frozenset(
    {
        Reason.AFTER_FAILED,
        Reason.AFTER_PENDING,
        Reason.BUDGET_EXHAUSTED,
        Reason.GROUP_AWAITS,
        Reason.HALTED,
        Reason.PROPAGATION_HELD,
    }
)
_MEANINGS: Mapping[str, str] = {it.value: it.meaning for it in Reason}
# For what no API server stored.
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def build_repository_status(
    repository: Repository, uses: Iterable[RepositoryReport]
) -> WrittenObject:
    """Return a Repository with its status; `uses` are those of all policies."""
    return _build_declared(repository, build_repository_conditions(uses))


def build_promotion_status(promotion: PromotionPolicy) -> WrittenObject:
    """Return a PromotionPolicy with its status: it is in force as soon as it is valid."""
    ready = build_ready(Reason.READY, "the policy is valid and in force", is_ready=True)
    return _build_declared(promotion, [ready])


def build_broken_status(
    name: ObjectName, metadata: Mapping[str, Any], problems: Iterable[str]
) -> WrittenObject:
    """Return an object that is declared with errors, with all of them in its status."""
    ready = build_ready(Reason.INVALID_OBJECT, "\n".join(problems))
    conditions = add_progress([ready], has_failed=True)
    return _build_object(name, conditions, generation=metadata.get("generation") or 0)


def with_errors(item: WrittenObject, errors: Sequence[str]) -> WrittenObject:
    """Return an object that is used although it has errors, which `fanout validate` reports.

    It is stalled by them, and not ready. What the pass says comes first where it has stalled the
    object already.
    """
    if not errors:
        return item
    by_type: dict[str, Plain] = {it["type"]: it for it in item.status["conditions"]}
    sentences = "\n".join(errors)
    invalid = {"reason": Reason.INVALID_OBJECT.value, "message": sentences}
    ready, stalled = by_type["Ready"], by_type.get("Stalled")
    if ready["status"] == "True":
        ready = {"type": "Ready", "status": "False", **invalid}
    if stalled is None:
        stalled = {"type": "Stalled", "status": "True", **invalid}
    else:
        stalled = {**stalled, "message": f"{stalled['message']}\n{sentences}"}
    return _with_progress(item, [ready, stalled])


# While passes fail as a whole, for example because no record can be read, nothing is evaluated.
# Policies and hand-written variants say why; everything else of a status, and the variants of
# policies, stay as the last pass left them.


def with_failure(item: WrittenObject, failure: FanoutError) -> WrittenObject:
    """Return an object as the last pass saw it, which says why there are no passes now."""
    stopped = _build_object(item.name, build_error_conditions(failure))
    return _with_progress(item, stopped.status["conditions"])


def build_unevaluated_status(declaration: KRMObject, failure: FanoutError) -> WrittenObject:
    """Return a policy or hand-written variant that this process has not evaluated yet."""
    stopped = _build_declared(declaration, build_error_conditions(failure))
    is_variant = declaration.kind == VARIANT_KIND
    return replace(stopped, defaults={"state": VariantState.HELD.value} if is_variant else {})


def _with_progress(item: WrittenObject, progress: Iterable[Plain]) -> WrittenObject:
    """Return the object with other conditions about its progress."""
    others = (it for it in item.status["conditions"] if it["type"] not in PROGRESS_TYPES)
    return replace(item, status={**item.status, "conditions": [*progress, *others]})


def build_policy_status(entry: PolicyEntry, problem: FanoutError | None = None) -> WrittenObject:
    """Return an UpstreamPolicy with its status; `problem`: one that all policies have."""
    decision = entry.result.decision
    policy = entry.result.resolved_policy.upstream_policy
    assert policy is not None, "asked of policies only"
    stages = build_stages(entry)
    counts: Counter[str] = Counter()
    for stage in stages:
        counts.update(stage.status.counts)
    fields = {
        "stages": [{"name": it.spec.stage, **dump_view(it.status)} for it in stages],
        "counts": dict(counts),
        "next": format_time(decision.next) if decision else None,
    }
    return _build_declared(policy, build_status_conditions(entry, problem), fields)


def build_variant_status(entry: VariantEntry) -> WrittenObject:
    """Return a PackageVariant with its status, and with its content if a policy makes it."""
    variant, decision, observed = entry.variant, entry.shown, entry.variant.observed
    policy = entry.policy.resolved_policy
    # Thousands of variants wait for the same slot or group. Each that gets one would change the
    # sentence of all the others, so theirs stays the same; the status of the stage has it.
    is_waiting = any(it.reason in _OF_OTHERS for it in decision.holds)
    if is_waiting and policy.upstream_policy is not None:
        place = f"stage {decision.stage} of UpstreamPolicy {policy.name}"
        holds = tuple(
            Hold(it.reason, f"{_MEANINGS[it.reason]}; see the status of {place}")
            if it.reason in _OF_OTHERS
            else it
            for it in decision.holds
        )
        decision = replace(decision, holds=holds, next=None)
        entry = replace(entry, shown=decision)
    draft, published = observed.draft, observed.published
    trailers = draft.trailers if draft is not None else None
    # Without an instant on record, the state is as old as the commit that it is about.
    since = (draft_time(draft) if draft is not None else None) or entry.published_since
    conditions = add_progress(
        build_variant_conditions(entry),
        has_failed=decision.state is VariantState.FAILED or has_unusable_repository([variant]),
    )
    fields = {
        "draft": without_none(
            {
                "revision": draft.trailers.revision or None,
                "branch": entry.draft_branch,
                "commit": draft.commit,
                "tree": draft.tree,
            }
        )
        if draft is not None
        else None,
        "next": format_time(decision.next),
        **_describe_variant(
            decision.state, variant.spec.stage, published, trailers, decision.holds
        ),
    }
    since = since or _policy_time(entry.policy)
    if (package_variant := policy.package_variant) is not None:
        return _build_declared(package_variant, conditions, fields, since)
    name = ObjectName(VARIANT_KIND, variant.spec.namespace, variant.spec.name)
    return replace(_build_object(name, conditions, fields, since), content=_build_content(entry))


def _describe_variant(
    state: str,
    stage: str,
    published: PublishedLine | None,
    drafted: PackageStatement | None,
    holds: Sequence[Hold],
) -> Plain:
    subject = published or drafted
    return {
        "state": str(state),
        "stage": stage or None,
        "revision": subject.revision if subject is not None else None,
        "digest": subject.digest if subject is not None else None,
        "published": without_none(
            {
                "revision": published.revision or None,
                "tag": published.tag or None,
                "commit": published.merge or None,
            }
        )
        if published is not None
        else None,
        "holds": dump_views(holds[:MAX_HOLDS]),
        "moreHolds": max(len(holds) - MAX_HOLDS, 0),
    }


def build_stopped_status(entry: PolicyEntry) -> WrittenObject:
    """Return a hand-written PackageVariant that an error stops, with its status."""
    package_variant = entry.result.resolved_policy.package_variant
    assert package_variant is not None, "asked of hand-written variants only"
    state = {"state": VariantState.HELD.value}
    return _build_declared(package_variant, build_policy_conditions(entry), state)


def build_orphan_status(entry: OrphanEntry) -> WrittenObject:
    """Return a variant whose target is gone and whose package is not removed yet."""
    orphan, holds = entry.locations, entry.holds
    # On record: without a target nothing of it is observed but where it is.
    published = orphan.status_line.published if orphan.status_line is not None else None
    ready = build_ready(holds[0].reason if holds else Reason.TARGET_GONE, entry.failure.problem)
    since = next((it.since for it in holds if it.since), None) or _policy_time(entry.policy)
    fields = _describe_variant(VariantState.HELD, orphan.stage, published, None, holds)
    name = ObjectName(VARIANT_KIND, entry.policy.resolved_policy.namespace, orphan.name)
    return _build_object(name, add_progress([ready]), fields, since)


def _build_declared(
    item: KRMObject,
    conditions: Iterable[Condition],
    fields: Plain | None = None,
    since: datetime | None = None,
) -> WrittenObject:
    meta = item.metadata
    name = ObjectName(item.kind, meta.namespace, meta.name)
    return _build_object(name, conditions, fields, since, meta.generation or 0)


def _build_object(
    name: ObjectName,
    conditions: Iterable[Condition],
    fields: Plain | None = None,
    since: datetime | None = None,
    generation: int | None = None,
) -> WrittenObject:
    """Return an object with its status: these conditions, and the fields that are known.

    Messages have commands for people of the namespace, and all texts are within the bounds of the
    schema. `since`: instant of conditions that have none of their own; None: it is on no record.
    """
    shown = [
        replace(it, last_transition_time=it.last_transition_time or since, observed_generation=None)
        for it in conditions
    ]
    status = {"conditions": dump_views(shown), **without_none(fields or {})}
    return WrittenObject(name, _limit(status, cluster_commands(name.namespace)), generation)


def _policy_time(policy_result: PolicyResult) -> datetime | None:
    """Return when the policy of a variant was created; None: the variant is declared itself."""
    if (policy := policy_result.resolved_policy.upstream_policy) is None:
        return None
    return policy.metadata.creation_timestamp or UNKNOWN_TIME


def _limit(value: Any, commands: MessageCommands) -> Any:
    """Return plain data within the bounds of the schema: what is longer is cut."""
    if isinstance(value, str):
        return commands.complete_text(value)[:_MAX_TEXT]
    if isinstance(value, dict):
        return {key: _limit(value[key], commands) for key in list(value)[:_MAX_ENTRIES]}
    if isinstance(value, list):
        return [_limit(it, commands) for it in value[:_MAX_ENTRIES]]
    return value


def _build_content(entry: VariantEntry) -> Plain:
    """Build the content of the variant of a policy, as somebody could write it by hand.

    Fields for which the schema has a default are written, so that the object that the API server
    stores equals what was sent.
    """
    resolved_policy, spec = entry.policy.resolved_policy, entry.variant.spec
    policy = resolved_policy.upstream_policy
    assert policy is not None, "asked of variants of policies"
    downstream, meta = resolved_policy.repositories[spec.name], policy.metadata
    revision = policy.spec.upstream.revision
    # The policy owns its variants, for tools that show what belongs to what. It holds up no
    # deletion (`blockOwnerDeletion`). A policy that is being deleted has no variants with content,
    # so that those that wait for their removal are left alone.
    owner = {
        "apiVersion": policy.api_version,
        "kind": policy.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
    }
    context = {"data": dict(spec.context), "removeKeys": list(spec.remove_keys)}
    pipeline = {
        "mutators": _build_functions(spec.mutators),
        "validators": _build_functions(spec.validators),
    }
    injectors = [
        without_none({"name": it.name, "group": it.group, "version": it.version, "kind": it.kind})
        for it in spec.injectors
    ]
    return _without_empty(
        {
            "labels": variant_labels(entry),
            "annotations": dict(spec.annotations),
            "ownerReferences": [owner] if meta.uid is not None else [],  # not of a file
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
                    "packageContext": _without_empty(context),
                    "pipeline": _without_empty(pipeline),
                    "injectors": injectors,
                    "labels": dict(spec.labels),
                    "annotations": dict(spec.annotations),
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
