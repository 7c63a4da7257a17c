"""One walk over the result of a policy: its stages with their variants, and what has no variant.

Whatever shows a pass reads these entries: tables, statuses, conditions and explanations.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import VariantState
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.api.view_base import RequestView
from fanout.plan.plan_wording import format_maintainers
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.variant_observation import unreadable_repository_hold
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.reconcile.removal.orphaned_variants import OrphanLocations, describe_orphans
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

    def find_stage(self, name: str) -> StageEntry:
        """Return the stage of this name. Raises StopIteration if the policy does not have it."""
        return next(it for it in self.stages if it.name == name)


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
