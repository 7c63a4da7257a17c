"""One walk over the result of a policy: its stages with their variants, and what has no variant.

Whatever shows a pass reads these entries, with their names and labels: tables, statuses, conditions
and explanations.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import VariantState
from fanout.api.object_meta import Label
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.api.view_base import RequestView, ViewMeta
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.plan_wording import format_maintainers
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.variant_observation import unreadable_repository_hold
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.reconcile.removal.orphaned_variants import OrphanLocations, describe_orphans
from fanout.selection.label_selector import FlagSelector, matches
from fanout.selection.variant_spec import TargetFailure
from fanout.values import Value, replace


class VariantEntry(Value):
    """A variant with its decision."""

    policy: PolicyResult
    variant: RenderedVariant
    decision: VariantResult
    shown: VariantResult  # the decision, held if a repository of the variant cannot be read
    undecided: int  # number of its undecided merge conflicts
    target_name: str

    @property
    def published_since(self) -> datetime | None:
        """Instant at which the published package was published; None if it is not on record yet."""
        published = self.variant.observed.published
        unrecorded = self.variant.observed.is_unrecorded
        return published.at if published is not None and not unrecorded else None

    @property
    def draft_branch(self) -> str:
        """Name of the branch of the variant's draft, whether there is one or not."""
        return self.variant.observed.draft_ref.removeprefix("refs/heads/")

    @property
    def request(self) -> RequestView | None:
        """Pull request with the variant's draft, or the one that a person declined."""
        observed = self.variant.observed
        forge = observed.repository_state.forge
        facts = forge.requests.get(observed.draft_ref) if forge is not None else None
        # Variants that have not joined it have the branch of their stage in common with those in
        # it.
        if facts is None or (observed.draft is None and observed.declined is None):
            return None
        request = facts.request
        return RequestView(
            repository=observed.spec.repository,
            number=request.number,
            url=request.url,
            state=request.state.value,
        )


class StageEntry(Value):
    """A stage with its variants, in the order of the policy."""

    policy: PolicyResult
    result: StageResult
    state: str
    variants: tuple[VariantEntry, ...]

    @property
    def name(self) -> str:
        """Name of the stage; "" for that of a variant written by hand."""
        return self.result.name

    @property
    def conflicts(self) -> int:
        """Number of undecided merge conflicts of the stage's drafts."""
        return sum(it.undecided for it in self.variants)

    @property
    def published(self) -> dict[str, int]:
        """Number of variants that have each revision published."""
        published = (it.variant.observed.published for it in self.variants)
        return dict(Counter(it.revision for it in published if it is not None))

    @property
    def published_since(self) -> datetime | None:
        """Instant since which a variant has the candidate published, if any is on record."""
        recorded = (it.variant.observed.published for it in self.variants if it.published_since)
        instants = (it.in_force_since(self.result.candidate) for it in recorded if it is not None)
        return min((at for at in instants if at is not None), default=None)


class OrphanEntry(Value):
    """A variant whose target is gone, why it is still there, and what holds its removal."""

    policy: PolicyResult
    locations: OrphanLocations
    failure: TargetFailure
    holds: tuple[Hold, ...]


class PolicyEntry(Value):
    """A policy, or a variant written by hand, with its stages and all of its variants."""

    result: PolicyResult
    target_names: Mapping[str, str]  # short names of targets by key, failed ones included
    orphans: tuple[OrphanEntry, ...]
    stages: tuple[StageEntry, ...] = ()
    variants: tuple[VariantEntry, ...] = ()  # in the order of the targets
    in_no_stage: tuple[VariantEntry, ...] = ()

    @property
    def rows(self) -> tuple[VariantEntry, ...]:
        """All variants in the order of tables: by stage, those in no stage last."""
        return (*(it for stage in self.stages for it in stage.variants), *self.in_no_stage)

    @property
    def display_names(self) -> Mapping[str, str]:
        """Short names of variants by their names, and of failed targets by their keys.

        Commands accept them. A variant written by hand has a name that a person chose.
        """
        by_hand = self.result.resolved_policy.upstream_policy is None
        names = dict(self.target_names)
        for entry in self.variants:
            name = entry.variant.spec.name
            names[name] = name if by_hand else entry.target_name
        return names


def walk_policy(policy_result: PolicyResult) -> PolicyEntry:
    """Return the entries of a policy; it has no stages and no variants if it was not evaluated."""
    policy, removals = policy_result.resolved_policy, policy_result.removals
    failures = describe_orphans(policy, policy_result.orphans, removals)
    orphans = tuple(
        OrphanEntry(policy_result, orphan, failure, tuple(removals.holds.get(orphan.name, ())))
        for orphan, failure in zip(policy_result.orphans, failures, strict=True)
    )
    decision, target_names = policy_result.decision, policy_result.target_names
    if decision is None:
        return PolicyEntry(policy_result, target_names, orphans)
    conflict_counts = policy_result.undecided_conflicts
    variants: list[VariantEntry] = []
    by_stage: dict[str, list[VariantEntry]] = {name: [] for name in decision.stages}
    in_no_stage: list[VariantEntry] = []
    for variant in policy_result.variants:
        spec, observed = variant.spec, variant.observed
        variant_decision = shown = decision.variants[spec.name]
        failure = (
            observed.package_location.repository_state.failure or observed.repository_state.failure
        )
        # Gates use what is on record; without the repository it cannot be confirmed.
        if failure is not None:
            hold = unreadable_repository_hold(failure, format_maintainers(spec.repository))
            holds = (hold, *(it for it in shown.holds if it != hold))
            state = VariantState.HELD if shown.state is VariantState.READY else shown.state
            shown = replace(shown, state=state, holds=holds)
        entry = VariantEntry(
            policy_result,
            variant,
            variant_decision,
            shown,
            conflict_counts.get(spec.name, 0),
            target_names[spec.target],
        )
        variants.append(entry)
        by_stage.get(spec.stage, in_no_stage).append(entry)
    stages = tuple(
        StageEntry(policy_result, stage, policy_result.stage_state(name), tuple(by_stage[name]))
        for name, stage in decision.stages.items()
    )
    return PolicyEntry(
        policy_result, target_names, orphans, stages, tuple(variants), tuple(in_no_stage)
    )


def walk_variants(pass_plan: PassPlan) -> Iterator[VariantEntry]:
    """Yield the entries of all variants, policy by policy in the order of tables."""
    for policy_result in pass_plan.policies:
        yield from walk_policy(policy_result).rows


def list_requests(entries: Iterable[VariantEntry]) -> tuple[RequestView, ...]:
    """Return the pull requests of these variants, each once, in the order of the variants."""
    return tuple(dict.fromkeys(it for it in (entry.request for entry in entries) if it is not None))


Plain = dict[str, Any]


def policy_name(policy_result: PolicyResult) -> str:
    """Return the name of the UpstreamPolicy; "" for a variant written by hand."""
    policy = policy_result.resolved_policy
    return policy.name if policy.upstream_policy is not None else ""


def build_meta(policy_result: PolicyResult, name: str, labels: Mapping[str, str]) -> ViewMeta:
    """Return the metadata of a view of a part of this policy."""
    return ViewMeta(name, policy_result.resolved_policy.namespace, dict(labels))


def without_none(fields: Plain) -> Plain:
    """Return the fields that are known."""
    return {name: value for name, value in fields.items() if value is not None}


def policy_labels(policy_result: PolicyResult) -> Mapping[str, str]:
    """Return the labels of the policy's own object."""
    policy = policy_result.resolved_policy
    declaration = policy.upstream_policy or policy.package_variant
    return declaration.metadata.labels if declaration else {}


def select_policies(pass_plan: PassPlan, selector: FlagSelector) -> PassPlan:
    """Return the pass with the policies that have these labels, their own or fanout's."""
    selected = tuple(
        it
        for it in pass_plan.policies
        if matches(selector, {**policy_labels(it), **fanout_labels(it)})
    )
    return replace(pass_plan, policies=selected)


def variant_labels(entry: VariantEntry) -> dict[str, str]:
    """Return the labels of a variant: its own, those of its rendering, and fanout's."""
    package_variant, spec = entry.policy.resolved_policy.package_variant, entry.variant.spec
    return {
        **(package_variant.metadata.labels if package_variant else {}),
        **spec.labels,
        **fanout_labels(entry.policy, spec.stage, spec.repository),
    }


def variant_names(entry: VariantEntry) -> dict[str, str]:
    """Return the names of a variant and of where it is, as the specs of views have them."""
    spec = entry.variant.spec
    return {
        "policy": policy_name(entry.policy),
        "target": spec.target,
        "target_name": entry.target_name,
        "variant": spec.name,
        "stage": spec.stage,
        "repository": spec.repository,
        "path": spec.path,
    }


def fanout_labels(
    policy_result: PolicyResult, stage: str = "", repository: str = ""
) -> dict[str, str]:
    """Return the labels that fanout adds to a policy's objects, for `-l`."""
    texts = (policy_name(policy_result), stage, repository)
    return {key: text for key, text in zip(_LABEL_KEYS, texts, strict=True) if text}


_LABEL_KEYS = (Label.POLICY.value, Label.STAGE.value, Label.REPOSITORY.value)


def format_time(moment: datetime | None) -> str | None:
    """Return an instant as views show it, or None if there is none."""
    return format_instant(moment) if moment else None


def draft_time(draft: OpenDraft) -> datetime | None:
    """Return the time of fanout's commit on the draft; None if it is not written yet.

    That is the time of upstream's commit or of the branch's head, whichever is later: a draft that
    is written again is the same commit.
    """
    return datetime.fromtimestamp(draft.timestamp, UTC) if draft.timestamp else None
