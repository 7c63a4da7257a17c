"""Results of a pass: what it observed, decided and did.

All commands and the log read them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter

from fanout.api.gate_vocabulary import VariantState
from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import NEEDS_REPAIR, Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.errors import Conflict, FanoutError, RateLimited
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import append_actor
from fanout.gates.removal_gate import RemovalEvaluation
from fanout.message_commands import MessageCommands
from fanout.plan.actions import ActionKind, ActionResult, Plan, PlanAction, RequestChange
from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.publication_messages import CommitSettings
from fanout.plan.gates.gate_records import recorded_decision_statuses
from fanout.plan.observation.repository_state import (
    RefListing,
    RefListingRequest,
    RepositoryChange,
    RepositoryState,
)
from fanout.plan.records.policy_records import PolicyRecords, RecordEntry, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus, RefusedPushLine
from fanout.plan.records.trace_changes import DueTrace
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.edits.edit_detection import (
    describe_faults,
    describe_lost_tag,
    find_lost_renderings,
    find_tag_problems,
)
from fanout.reconcile.removal.orphaned_variants import OrphanLocations, describe_orphans
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.target_selection import shorten_target_keys
from fanout.selection.variant_spec import TargetFailure
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, field, replace

STOPPED = "Stopped"  # state of a policy that a problem stops as a whole, and of its stages
MERGED_EARLY = "a person merged the draft before its gates opened"


def describe_outdated_records(problem: str) -> str:
    """Say that a pass knows the records that were read last, and so writes drafts alone."""
    return (
        f"drafts are written by the records that were read last, and nothing is released: {problem}"
    )


class PassProblem(Value, kw_only=True):
    """Problem of a policy, target or variant, apart from gates that hold it."""

    # Field names are keys of snapshots on disk (`noop_snapshot`).
    policy: str  # title of the policy
    subject: str  # the target or the variant; "" for the policy as a whole
    reason: str
    message: str
    noun: str = "variant"  # kind of the subject: policy, repository, target or variant
    failed: bool = True  # False: a hold, or information
    names: tuple[str, ...] = ()  # other names of the subject in the sentence
    target_name: str = ""  # of a variant, as tables have it
    again: str = ""  # if reported in full before: one line, and where to read the rest
    gone: bool = False  # the subject is a variant whose target is gone
    accepted: bool = False  # a person accepted it, so nothing is blocked

    @property
    def needs_fix(self) -> bool:
        """True if the subject failed, or is held by something that a person must fix."""
        return self.failed or (self.reason in NEEDS_REPAIR and not self.accepted)


class PolicyResult(Value, kw_only=True):
    """Result of one policy, or hand-written variant, in one pass."""

    resolved_policy: ResolvedPolicy
    policy_state: PolicyRecords
    status: RecordedStatus = field(default_factory=RecordedStatus)
    revisions: Mapping[str, str] = field(default_factory=dict)
    # by revision: a warning about its tag, which is left out
    unusable_tags: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[RenderedVariant, ...] = ()
    rules: tuple[StageRule, ...] = ()  # its stages, in its order
    facts: PolicyFacts | None = None
    decision: PolicyEvaluation | None = None
    # of the observed repositories
    repository_states: tuple[RepositoryState, ...] = ()
    publishing: frozenset[str] = frozenset()  # variants whose draft this pass publishes
    # leftovers of variants at previous locations
    remaining_leftovers: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)
    orphans: tuple[OrphanLocations, ...] = ()  # variants whose target does not exist any more
    # removable orphans, and the holds of others
    removals: RemovalEvaluation = field(default_factory=RemovalEvaluation)
    removal_sets: tuple[PlannedSet, ...] = ()  # branches that remove packages
    refused_pushes: Mapping[str, RefusedPushLine] = field(default_factory=dict)  # by variant
    error: FanoutError | None = None  # stops this policy only
    # when texts that were left, or exceeded a limit, are tried, a forge takes calls again, or
    # services may have answered
    retry_at: datetime | None = None
    upstream_failure: FanoutError | None = None  # why its upstream repository was not listed
    template_warnings: tuple[str, ...] = ()  # of templates of its pull requests
    traces: tuple[DueTrace, ...] = ()  # of records, that repositories do not have yet
    trace_actions: tuple[PlanAction, ...] = ()  # those of the plan that write them
    # by key of the remote: why a trace could not be written
    trace_errors: Mapping[str, FanoutError] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about tags that are left out and about templates of pull requests."""
        return *self.unusable_tags.values(), *self.template_warnings

    @property
    def unwritten_traces(self) -> tuple[PassProblem, ...]:
        """Repositories that could not take the trace of a record."""
        return tuple(
            PassProblem(
                policy=self.title,
                subject=it.state.remote.url,
                reason=str(error.reason),
                message=f"record {it.trace.record} counts, but {it.state.remote.url} does not name"
                f" it yet, by which restored records are noticed ({error}); the next pass tries"
                " again",
                noun="repository",
                failed=False,
            )
            for it in self.traces
            if (error := self.trace_errors.get(it.state.remote.key, it.state.failure)) is not None
            and it.trace is not None
        )

    @property
    def records(self) -> Sequence[RecordEntry]:
        """Records of the policy; hand-written variants of a namespace share one policy state."""
        return self.resolved_policy.select_records(self.policy_state.records)

    @property
    def title(self) -> str:
        """Namespace and name of the policy, for people."""
        return self.resolved_policy.title

    def stage_state(self, stage: str) -> str:
        """Return the state of a stage in one word; a hand-written variant is its only stage."""
        if self.error is not None or self.decision is None:
            return STOPPED
        variant = self.decision.variants.get(self.resolved_policy.name)
        if self.resolved_policy.upstream_policy is None and variant is not None:
            return variant.state
        return self.decision.stages[stage].state

    @property
    def failures(self) -> tuple[TargetFailure, ...]:
        """Targets without a variant, by name, and variants without a target."""
        return (
            *self.resolved_policy.failures,
            *describe_orphans(self.resolved_policy, self.orphans, self.removals),
        )

    @property
    def target_names(self) -> Mapping[str, str]:
        """A short name of each target of the policy by its key, failed targets included."""
        keys = [variant.spec.target for variant in self.variants]
        return shorten_target_keys([*keys, *(it.target for it in self.failures)])

    def decision_statuses(self, now: datetime) -> Mapping[str, DecisionStatus]:
        """Return the status of each decision of the policy, by its name."""
        published = {it.name: it.status_line and it.status_line.published for it in self.orphans}
        published_at = {name: it.at if it else None for name, it in published.items()}
        return recorded_decision_statuses(
            self.records, self.variants, now, published_at, self.status.removed
        )

    @property
    def undecided_conflicts(self) -> Mapping[str, int]:
        """Number of undecided merge conflicts of each open draft, by variant."""
        return {
            variant.name: variant.draft.conflict_count
            for variant in (self.facts.variants if self.facts else ())
            if variant.draft is not None
        }

    @property
    def problems(self) -> tuple[PassProblem, ...]:
        """Problems of this policy, its targets and its variants, apart from gates."""
        problem = partial(PassProblem, policy=self.title)
        problems: list[PassProblem] = []
        if self.error is not None:
            problems.append(_build_policy_problem(self, self.error))
        problems += (
            problem(
                subject=failure.target,
                reason=failure.reason,
                message=failure.problem,
                noun="target",
                names=(failure.target.rpartition("/")[2],),
            )
            for failure in self.resolved_policy.failures
        )
        for failure in describe_orphans(self.resolved_policy, self.orphans, self.removals):
            if failure.target not in self.removals.removable:  # removable ones are in the plan
                first_hold = next(iter(self.removals.holds.get(failure.target, ())), None)
                problems.append(
                    problem(
                        subject=failure.target,
                        reason=str(first_hold.reason) if first_hold is not None else failure.reason,
                        message=failure.problem,
                        failed=False,
                        gone=True,
                    )
                )
        problems += self.unwritten_traces
        if self.error is not None:
            return tuple(problems)  # the policy's error is the reason for all its holds
        problems += self.find_repository_problems()
        undecided = self.undecided_conflicts
        by_variant = [
            (variant.spec.target, it)
            for variant in self.variants
            for it in self.find_variant_problems(variant, undecided.get(variant.spec.name, 0))
        ]
        names = self.target_names if by_variant else {}
        problems += (replace(it, target_name=names[target]) for target, it in by_variant)
        return tuple(problems)

    def find_repository_problems(self) -> Iterator[PassProblem]:
        """Yield the problems of its repositories and of their forges."""
        problem = partial(PassProblem, policy=self.title, noun="repository", failed=False)
        variants = [it.selected.observed for it in self.variants]
        for repository, sentence in find_lost_renderings(variants):
            yield problem(
                subject=repository,
                reason=str(Reason.BASE_MISSING),
                message=sentence,
                again="the vendor branch lacks published packages; run"
                f" `fanout explain {self.resolved_policy.name}`",
            )
        forges = [
            (it, state, state.forge)
            for it in variants
            if (state := it.repository_state).forge is not None
        ]
        failures = {
            state.identity: (it.spec.repository, forge.failure)
            for it, state, forge in forges
            if forge.failure is not None and state.failure is None
        }
        for _, (repository, failure) in sorted(failures.items()):
            # All pull requests of a forge that cannot be asked stay as they are, whatever the gates
            # say of the variants. One that takes no more calls only waits.
            if not isinstance(failure, RateLimited):
                reason = str(failure.reason)
                yield problem(subject=repository, reason=reason, message=str(failure), failed=True)
        # Somebody else opened pull requests from branches of the policy's drafts.
        heads = {(state.identity, it.draft_ref): (it, forge) for it, state, forge in forges}
        for (_, head_ref), (it, forge) in sorted(heads.items(), key=itemgetter(0)):
            for request in forge.foreign_requests.get(head_ref, ()):
                yield problem(
                    subject=it.spec.repository,
                    reason=str(Reason.REQUEST_FOREIGN),
                    message=f"pull request {request.number} from {request.head_branch} to"
                    f" {request.base_branch} was not opened by fanout and is ignored",
                )

    def find_variant_problems(
        self, variant: RenderedVariant, open_conflicts: int
    ) -> Iterator[PassProblem]:
        """Yield problems of a variant, and the decisions that people have to make about it.

        `open_conflicts`: number of undecided merge conflicts of its open draft.
        """
        observed, failure, spec = variant.observed, variant.render_failure, variant.spec
        name, place = spec.name, f"{spec.repository}:{spec.path}"

        def problem(
            reason: str, message: str, reminder: str = "", *, failed: bool = False
        ) -> PassProblem:
            return PassProblem(
                policy=self.title,
                subject=name,
                reason=str(reason),
                message=message,
                failed=failed,
                names=(spec.target, place, spec.path, observed.draft_ref),
                again=reminder,
            )

        decision = self.decision.variants.get(name) if self.decision else None
        # That of a held variant; in other states, the one that a person must fix.
        hold = next(
            (
                it
                for it in (decision.holds if decision else ())
                if (decision and decision.state is VariantState.HELD) or it.reason in NEEDS_REPAIR
            ),
            None,
        )
        if failure is not None:
            yield problem(failure.reason, str(failure), failed=True)
        elif observed.obstacle is not None:
            yield problem(observed.obstacle.reason, observed.obstacle.message, failed=True)
        elif hold is not None and hold.reason != Reason.MERGE_CONFLICT:
            is_misplaced = hold.reason == Reason.NOT_IN_STAGE and bool(spec.stage)
            yield problem(hold.reason, hold.message, failed=is_misplaced)
        if observed.missing_tag:
            yield problem(Reason.TAG_MISSING, describe_lost_tag(observed))
        for reason, sentence in find_tag_problems(observed):
            yield problem(reason, sentence)
        if observed.published_faults and failure is None:
            yield problem(Reason.PACKAGE_BROKEN, describe_faults(observed))
        undecided = open_conflicts
        if variant.merged is not None:  # in the new draft
            is_decided = observed.choices.default_side is not None
            undecided = 0 if is_decided else sum(not it.is_decided for it in variant.disputes)
        if undecided:
            # In full when it is written, then short.
            policy, reminder = self.resolved_policy.name, ""
            number = pluralize(undecided, "undecided merge conflict")
            is_accepted = name in self.publishing
            if is_accepted:
                conflicts = pluralize(undecided, "merge conflict")
                sentence = f"its draft is published with {conflicts} that a person accepted"
            else:
                sentence = (
                    f"{number} in its draft; run `fanout diff {name} --three-way`, then commit a"
                    f" fix to the draft or run `fanout resolve {policy} --variant {name} --reason"
                    " WHY`"
                )
                if variant.merged is None:
                    subject = f"{policy}/{spec.stage}/{name}" if spec.policy else name
                    reminder = f"{number}; run `fanout explain {subject}`"
            yield replace(problem(Reason.MERGE_CONFLICT, sentence, reminder), accepted=is_accepted)
        for leftover in self.remaining_leftovers.get(name, ()):
            yield problem(leftover.reason, append_actor(leftover.message, leftover.who))
        if (
            observed.is_unrecorded
            and observed.published is not None
            and observed.published.out_of_band
        ):
            yield problem(Reason.OUT_OF_BAND, MERGED_EARLY)


class NoopSnapshot(Value):
    """Inputs of a pass without work; while they are unchanged, so is its answer."""

    heads: Mapping[RecordsKey, str]  # of all records branches
    listing_requests: tuple[RefListingRequest, ...]
    listings: Mapping[str, RefListing]  # by key of the remote
    # earliest time at which something changes without a change of inputs
    next_check: datetime | None
    hosted_urls: tuple[str, ...] = ()  # of repositories that have a forge
    requests: str = ""  # digest of what their forges showed


class PassPlan(Value, kw_only=True):
    """Pass up to its plan; nothing has been changed yet."""

    now: datetime
    policies: tuple[PolicyResult, ...]
    plans: tuple[PolicyPlan, ...] = ()
    other_statuses: tuple[RequestChange, ...] = ()  # on pull requests of other people
    plan: Plan = field(default_factory=Plan)
    changes: tuple[RepositoryChange, ...] = ()
    writing: CommitSettings | None = None  # messages and identity of the commits
    # the records cannot be read or written now: drafts alone are written
    has_outdated_records: bool = False
    warnings: tuple[str, ...] = ()  # problems that block nothing
    # warnings of policies that are not declared but have records
    undeclared_warnings: tuple[str, ...] = ()
    snapshot: NoopSnapshot | None = None  # None: the answer may differ the next time
    stored_problems: tuple[PassProblem, ...] = ()  # of the earlier pass with equal inputs

    @property
    def shared_names(self) -> frozenset[str]:
        """Names that policies of several namespaces have: commands about one name its namespace."""
        counts = Counter(it.resolved_policy.name for it in self.policies)
        return frozenset(name for name, number in counts.items() if number > 1)

    @property
    def problems(self) -> tuple[PassProblem, ...]:
        """Problems of all policies."""
        shared_names = self.shared_names
        problems = list(self.stored_problems)
        for item in self.policies:
            policy = item.resolved_policy
            # Or the internal error that prevents listing them.
            found = run_isolated(partial(getattr, item, "problems"))
            if isinstance(found, FanoutError):
                found = (_build_policy_problem(item, found),)
            if found and policy.name in shared_names:
                complete = MessageCommands((("namespace", policy.namespace),)).complete_text
                found = tuple(
                    replace(it, message=complete(it.message), again=complete(it.again))
                    for it in found
                )
            problems += found
        return tuple(problems)

    @property
    def completed_deletions(self) -> tuple[UpstreamPolicy | PackageVariant, ...]:
        """Objects that are being deleted and have nothing downstream any more.

        Judged by what the pass observed. What it is about to remove counts as present, because a
        push may fail; the pass after it finds out.
        """
        busy = {(plan.namespace, plan.name) for plan in self.plans if plan.actions}
        return tuple(
            declaration
            for result in self.policies
            if (declaration := result.resolved_policy.declaration) is not None
            and declaration.is_being_deleted
            and result.resolved_policy.subject not in busy
            and result.error is None
            # Drafts of a repository that does not respond are not seen.
            and all(it.failure is None for it in result.repository_states)
            and not result.orphans
        )

    @property
    def printed_plan(self) -> Plan:
        """The plan with the traces of records, which a pass writes first, whatever it plans."""
        # Variants written by hand have their records in common.
        traces = dict.fromkeys(it for item in self.policies for it in item.trace_actions)
        return Plan((*traces, *self.plan.actions))

    @property
    def fix_count(self) -> int:
        """Number of policies, targets and variants that failed or that a person must fix."""
        return sum(trouble.needs_fix for trouble in self.problems)


class PassReport(Value):
    """Pass with the outcomes of its plan."""

    pass_plan: PassPlan
    outcomes: tuple[ActionResult, ...] = ()
    warnings: tuple[str, ...] = ()  # about what was done
    lost_race: Conflict | None = None  # records moved after the pushes; another pass records those
    # Namespace and name of policies, and hand-written variants, of which a repository took a part;
    # it may take more of them in a pass of its own.
    partly_pushed: frozenset[tuple[str, str]] = frozenset()

    @property
    def failed_outcomes(self) -> tuple[ActionResult, ...]:
        """Actions that failed, except for branches whose deletion the remote refuses.

        What a forge does not do now is asked again by a later pass, and is no failure either.
        """
        # Some servers forbid deletions for good: if every sweep failed for it, real failures would
        # go unnoticed.
        return tuple(
            it
            for it in self._undone
            if it.reason != Reason.DELETION_REFUSED and it.reason not in _LATER_REASONS
        )

    @property
    def undeletable_drafts(self) -> tuple[ActionResult, ...]:
        """Draft branches whose deletion the remote refuses; nothing depends on it."""
        return tuple(it for it in self._undone if it.reason == Reason.DELETION_REFUSED)

    @property
    def deferred_outcomes(self) -> tuple[ActionResult, ...]:
        """Actions that a host does later, or does not do now by a limit or a refusal."""
        return tuple(it for it in self._undone if it.reason in _LATER_REASONS)

    @property
    def _undone(self) -> Iterator[ActionResult]:
        return (it for it in self.outcomes if not it.is_done)

    @property
    def fix_count(self) -> int:
        """Number of failed actions, and of problems that failed or need a fix.

        Waiting for a gate, for time or for a person's decision does not count.
        """
        return len(self.failed_outcomes) + self.pass_plan.fix_count

    def fix_count_of(self, variants: Collection[str]) -> int:
        """Return the number of failures and fixes that concern the given variants.

        Problems of other variants count only if they failed, be it in a check. A lost or moved
        tag does not count where the pass replaced the publication that it belonged to.
        """
        relevant_variants = {
            *variants,
            *(
                name
                for item in self.pass_plan.policies
                if item.decision is not None
                for name, evaluation in item.decision.variants.items()
                if evaluation.state is VariantState.FAILED  # by its checks or deadlines
            ),
        }
        replaced = {
            it.action.variant
            for it in self.outcomes
            if it.is_done and it.action.kind is ActionKind.PUBLISH
        }
        problem_count = sum(
            it.failed or (it.needs_fix and it.subject in relevant_variants)
            for it in self.pass_plan.problems
            # The problems are of the time before the pass published.
            if it.subject not in replaced or it.reason not in _TAG_REASONS
        )
        return len(self.failed_outcomes) + problem_count


_LATER_REASONS = (Reason.FORGE_REFUSES, Reason.MERGE_ACCEPTED, Reason.RATE_LIMITED)
_TAG_REASONS = (Reason.TAG_MISSING, Reason.TAG_MOVED)


def _build_policy_problem(policy_result: PolicyResult, error: FanoutError) -> PassProblem:
    return PassProblem(
        policy=policy_result.title,
        subject="",
        reason=str(error.reason),
        message=str(error),
        noun="policy",
    )
