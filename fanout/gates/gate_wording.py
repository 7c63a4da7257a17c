"""Sentences and actors of the gates: every text of a `Hold` or `CheckResult` is worded here.

A sentence names the subject, what happened and what to do. Instants are not part of it:
they are `since` and `until` of the hold.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from fanout.api.durations import format_duration, format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import join_words, list_first, pluralize
from fanout.gates.gate_rules import ApprovalRule

_SHOWN = 3

# Actors: who can end a hold, with the command or field in parentheses.
ANY_PROMOTER = "any promoter (fanout promote)"
ANY_PROMOTER_RESUME = "any promoter (fanout resume)"
ANY_PROMOTER_RETRY = "any promoter (fanout retry)"
ANY_PROMOTER_ROLLBACK = "any promoter (fanout rollback)"
# Promoters of a cluster may not: RBAC asks for the verbs of fanout.api.admission_policies.
MAY_OVERRIDE = "whoever may override gates"
MAY_OVERRIDE_AFTER = f"{MAY_OVERRIDE} (fanout promote --override after)"
MAY_OVERRIDE_SOAK = f"{MAY_OVERRIDE} (fanout promote --override soak)"
MAY_OVERRIDE_WINDOW = f"{MAY_OVERRIDE} (fanout promote --override window)"
MAY_WITHDRAW = "whoever may withdraw records (fanout withdraw)"
AUTHOR = "the policy's author"
CHANGE_SUSPENDED = "its inputs have changed; the change is rolled out after the suspension"
OWNER = "the owner of the variant"
AUTHOR_OF_LIMIT = "the policy's author (rollout.maxInFlight)"
AUTHOR_OF_PIN = "the author of the pin"
AUTHOR_OF_PROPAGATION = "the policy's author (propagateWhen)"
AUTHOR_OF_REVISION = "the policy's author (spec.upstream)"
AUTHOR_OF_SOAK = "the policy's author (spec.inFlight: Serialize, or a shorter soak)"
AUTHOR_OF_STAGE_EXPR = "the policy's author (template.stageExpr) or the owner of the target"
AUTHOR_OF_TARGETS = "the policy's author (spec.targets, spec.stages)"
CONFLICT_ACTOR = (
    "a maintainer of the package (commit to the draft, or fanout resolve) or any promoter"
    " (fanout promote --variant --accept-conflicts)"
)
DRAFTS_AWAITED = "the next pass that writes drafts"
NEXT_SWEEP = "the next sweep"
NEXT_SWEEP_OR_PROMOTER = f"{NEXT_SWEEP} or {ANY_PROMOTER}"
PUBLICATION_OPERATOR = f"the operator of the target or {ANY_PROMOTER_RETRY}"
REPORTER = "a reporter of the pending checks"
REPORTER_OF_GROUP = "a reporter of the pending checks in that group"
TARGET_OPERATOR = "the operator of the target"
EVALUATION_AWAITED = "this pass"
TIME_ALONE = "nobody (opens automatically)"
UNREADABLE_WINDOW_ACTOR = f"the PromotionPolicy's author (fanout validate) or {MAY_OVERRIDE_WINDOW}"
WINDOW_ACTOR = f"{TIME_ALONE} or {MAY_OVERRIDE_WINDOW}"
WINDOW_ADMINISTRATOR = "an administrator (PromotionPolicy.windows)"
REMOVAL_ACTOR = f"{TIME_ALONE} or {WINDOW_ADMINISTRATOR}"

# Sentences without data.
ADOPTION_AWAITS = "the first draft of an adopted package is never published automatically"
ASSUMED_PROMOTION = "a promoter promotes as soon as the gate opens (automatic promotion is off)"
ASSUMED_PROPAGATION = "propagateWhen is true for all variants"
EVIDENCE_WITHOUT_SUBJECT = "names no revision and no commit"
FUTURE_APPROVAL = "an approval is dated in the future and does not count yet"
LIMIT_IS_ZERO = "in-flight limit is 0 (rollout.maxInFlight); nothing is released"
NO_REVISION = "no upstream revision is allowed by spec.upstream"
NO_SWEEP_IN_WINDOW = "no scheduled sweep falls within an open window"
PROPAGATION_PENDING = "propagateWhen is not evaluated yet"
REMOVAL_SWEEP_AWAITED = "automation removes packages only in sweeps"
SERIALIZED_INPUTS = "changed inputs wait until the published ones are ready or failed"
SOME_STAGES = "some stages"
SWEEP_AWAITED = "automatic promotion publishes only in sweeps"
UNREADABLE_WINDOW = "a PromotionPolicy of its namespace cannot be read and may deny publication now"


def label_stage(stage: str) -> str:
    """Label a stage. The unnamed stage of a hand-written variant is labeled as the variant."""
    return f"stage {stage}" if stage else "the variant"


def label_stages(stages: Iterable[str]) -> str:
    """Label several stages."""
    return ", ".join(map(label_stage, stages))


def format_names(names: Iterable[str]) -> str:
    """Format the first few names in order, and how many more there are."""
    return list_first(sorted(names), _SHOWN)


def _append_reason(sentence: str, reason: str) -> str:
    return f"{sentence}: {reason}" if reason else sentence


def describe_hold(hold: Hold) -> str:
    """Describe a hold in one text, with the instant at which it ends by itself."""
    if hold.until is None:
        return hold.message
    if hold.reason == Reason.FROM_THE_FUTURE:
        return f"{hold.message}; it counts from {format_instant(hold.until)}"
    if hold.who.startswith(TIME_ALONE):
        return f"{hold.message}; opens automatically at {format_instant(hold.until)}"
    return hold.message


# Actors with data.


def format_approvers(approval_rule: ApprovalRule) -> str:
    """Format who may approve."""
    if not approval_rule.subjects:
        groups = ", ".join(approval_rule.groups) or "none"
        return f"an administrator (PromotionPolicy.approvers: {groups})"
    if approval_rule.groups:
        return f"an approver of group {join_words(approval_rule.groups, 'or')}"
    return format_names(approval_rule.subjects)


def format_reviewers(names: Iterable[str]) -> str:
    """Format who can end a request for changes."""
    return f"{format_names(names)} (approve, or dismiss the review)"


def format_reporter(check: str, stage: str) -> str:
    """Format who can answer a `report` check."""
    return f"a reporter of check {check} of {label_stage(stage)}"


def format_awaited_reporter(by: str) -> str:
    """Format who can act where a check is pending by the report of `by`."""
    return f"{by} (fanout report, when it has a result) or {MAY_WITHDRAW}"


def format_repeated_reporter(by: str) -> str:
    """Format who can act where a reported check failed."""
    return f"{by} (fanout report, when it has run again) or {ANY_PROMOTER_RETRY}"


def format_contradictor(by: str) -> str:
    """Format who can act where reports contradict each other; `by` reported the failure."""
    return f"{by} (fanout report, when it has run again) or {MAY_WITHDRAW}"


def format_check_source(check: str, method: str) -> str:
    """Format who can answer a check that asks a machine."""
    return f"the source of check {check} ({method})"


def format_decider(by: str) -> str:
    """Format who can mend a decision that names no revision."""
    return f"{by} (record the decision again, with --revision)"


def format_withdrawer(by: str, decision: str) -> str:
    """Format who can withdraw a decision."""
    return f"{by} (fanout withdraw {decision})"


def format_clock_owner(by: str, alternative: str) -> str:
    """Format who can mend a record that is dated in the future."""
    return f"{by} (correct the clock) or {alternative}"


def format_spec_owner(owner: str) -> str:
    """Format who can end a suspension by a spec."""
    return f"{owner} (spec.suspend)"


def format_automation_actor(promoter: str = ANY_PROMOTER) -> str:
    """Format who can act where automatic promotion is off."""
    return f"an administrator (PromotionPolicy.autoPromotion) or {promoter}"


def format_queue_actor(current: str) -> str:
    """Format who can end the wait for a revision with approvals."""
    return f"a reporter or approver of {current} (fanout report, approve or revoke)"


def format_halt_actor(stage: str) -> str:
    """Format who can end a halt."""
    return (
        f"any promoter of {label_stage(stage)} (fanout retry, skip or rollback), or a fixed"
        " revision"
    )


def format_budget_actor(actor: str) -> str:
    """Format who can act where the in-flight limit is reached; `actor` can free a slot."""
    return f"{actor} or {MAY_OVERRIDE} (fanout promote --override budget)"


def format_stage_actor(stages: Iterable[str]) -> str:
    """Format who can unblock other stages."""
    return f"a promoter or reporter of {label_stages(stages)}"


def format_removal_actor(policy: str, arguments: str) -> str:
    """Format who can confirm a removal; `arguments` are those of `fanout remove`."""
    return f"whoever may remove variants: run `{format_removal_command(policy, arguments)}`"


def format_removal_command(policy: str, arguments: str) -> str:
    """Format the command that confirms a removal; `arguments` are those of `fanout remove`."""
    return f"fanout remove {policy} {arguments} --reason WHY"


# Suspensions and decisions.


def describe_suspension(label: str, by: str, reason: str) -> str:
    """Describe a suspension by a decision."""
    return _append_reason(f"{label} is suspended by {by}", reason)


def describe_spec_suspension(label: str) -> str:
    """Describe a suspension by a spec."""
    return f"{label} is suspended by its spec"


def describe_decision_without_revision(decision: str, by: str) -> str:
    """Describe a decision that names no revision."""
    return f"decision {decision} by {by} names no revision and has no effect"


def describe_future_decision(decision: str, by: str) -> str:
    """Describe a decision that is dated in the future."""
    return f"decision {decision} by {by} is dated in the future and does not count yet"


def describe_waiting_decision(
    decision: str, revision: str, candidate: str, *, is_allowed: bool
) -> str:
    """Describe a decision to publish another revision than the candidate."""
    cause = (
        f"the candidate is {candidate}"
        if is_allowed
        else f"spec.upstream does not allow {revision}"
    )
    return f"decision {decision} to publish {revision} waits: {cause}"


def describe_skip(revision: str, by: str, reason: str) -> str:
    """Describe a variant that a person skipped."""
    return _append_reason(f"skipped for {revision} by {by}", reason)


def describe_rollback(revision: str, by: str, reason: str) -> str:
    """Describe a variant that a person rolled back."""
    return _append_reason(f"rolled back to {revision} by {by}", reason)


def describe_policy_pin(revision: str, stage: str, pinned: str) -> str:
    """Describe a revision that waits for the pin of a policy."""
    return f"{revision} waits: {label_stage(stage)} is pinned to {pinned} by the policy"


def describe_decided_pin(revision: str, stage: str, pinned: str, decision: str, by: str) -> str:
    """Describe a revision that waits for a rollback."""
    return f"{revision} waits: {label_stage(stage)} is rolled back to {pinned} by {by} ({decision})"


# Upstream stages and soak.


def describe_unrecorded_soak(revision: str, stage: str, soak: timedelta) -> str:
    """Describe a soak that starts when a sweep records that the stage is ready."""
    return (
        f"{revision} is ready in {label_stage(stage)}; its soak of {format_duration(soak)}"
        " starts with the next sweep"
    )


def describe_running_soak(revision: str, stage: str, soak: timedelta) -> str:
    """Describe a soak that runs."""
    return f"{revision} soaks in {label_stage(stage)} for {format_duration(soak)}"


def describe_unstarted_soak(revision: str, stage: str, soak: timedelta) -> str:
    """Describe a soak that has not started."""
    return (
        f"{revision} is not ready in {label_stage(stage)}; its soak of {format_duration(soak)}"
        " has not started"
    )


def describe_ended_soak(
    revision: str, stage: str, soaked: timedelta, soak: timedelta, *, is_returning: bool
) -> str:
    """Describe a soak that ended too early. `is_returning`: the stage takes the revision again."""
    consequence = (
        "it restarts when the stage is ready again"
        if is_returning
        else f"{revision} can no longer pass"
    )
    return (
        f"soak of {revision} in {label_stage(stage)} ended after {format_duration(soaked)} of"
        f" {format_duration(soak)}; {consequence}"
    )


def describe_upstream_failure(revision: str, stage: str) -> str:
    """Describe an upstream stage that failed."""
    return f"{revision} failed in {label_stage(stage)}"


def describe_upstream_wait(revision: str, stage: str) -> str:
    """Describe an upstream stage that has not passed."""
    return f"{revision} has not passed {label_stage(stage)} yet"


def describe_passed_over(revision: str, stage: str) -> str:
    """Describe an upstream stage that moved on before it passed."""
    return f"{label_stage(stage)} moved on before {revision} passed"


def describe_starvation(stage: str, revisions: Collection[str], soak: timedelta) -> str:
    """Describe a stage whose upstream stages run ahead of its soak."""
    return (
        f"{label_stage(stage)} starves: {pluralize(len(revisions), 'revision')}"
        f" ({format_names(revisions)}) left upstream stages before the soak of"
        f" {format_duration(soak)}"
    )


def describe_shared_object(key: str, variant: str, stage: str) -> str:
    """Describe a changed cluster object that upstream variants are not ready with."""
    return f"{key} changed; {variant} in {label_stage(stage)} is not ready with the new version"


# Candidates and their order.


def describe_approved_candidate(newer: str, current: str) -> str:
    """Describe a newer revision that waits because drafts of the current one are approved."""
    return f"{newer} is queued: drafts of {current} have approvals and can still pass"


def describe_serialized_revision(newer: str, current: str, number: int, stage: str) -> str:
    """Describe a newer revision that waits for variants in flight (`inFlight: Serialize`)."""
    return (
        f"{newer} is queued (inFlight: Serialize): {pluralize(number, 'variant')} in flight at"
        f" {current} in {label_stage(stage)}"
    )


def describe_serialized_soak(newer: str, current: str, stages: Sequence[str]) -> str:
    """Describe a newer revision that waits for a soak downstream (`inFlight: Serialize`)."""
    verb = "waits" if len(stages) == 1 else "wait"
    return (
        f"{newer} is queued (inFlight: Serialize): {label_stages(stages)} {verb} for the soak of"
        f" {current}"
    )


def describe_serialized_step(revision: str, published: str) -> str:
    """Describe a variant whose newer revision waits until it is through with the published one."""
    return (
        f"{revision} waits until the variant is ready or has failed at {published}"
        " (inFlight: Serialize)"
    )


def describe_serialized_variant(name: str, revision: str) -> str:
    """Describe a variant in flight at an older revision, for which the candidate waits."""
    return f"{name} goes first (inFlight: Serialize): it is not ready at {revision} yet"


def describe_downgrade(candidate: str) -> str:
    """Describe a variant that has a newer revision than the candidate."""
    return f"its published revision is newer than {candidate}; automation never downgrades"


def describe_missing_draft(candidate: str) -> str:
    """Describe a variant without a draft that is up to date."""
    return f"its draft for {candidate} is missing or out of date"


# Automation, windows and expressions.


def describe_automation_off(scope: str, opposing_policies: Collection[str] = ()) -> str:
    """Describe automatic promotion that is off, and the PromotionPolicies that turn it off."""
    by_policies = (
        f" in PromotionPolicy {format_names(opposing_policies)}" if opposing_policies else ""
    )
    return f"automatic promotion is off for {scope}{by_policies}"


def describe_other_draft(decision: str, by: str, revision: str) -> str:
    """Describe a decision that covers other drafts than this one."""
    return f"decision {decision} by {by} covers other drafts of {revision}, not this one"


def describe_conflicts(number: int) -> str:
    """Describe merge conflicts that nobody has decided."""
    return f"{pluralize(number, 'undecided merge conflict')} in its draft"


def describe_closed_window(closure: str, *, opens: bool) -> str:
    """Describe a closed publication window. `opens`: it opens again."""
    return closure if opens else f"{closure}; it does not open again"


def describe_false_condition(text: str) -> str:
    """Describe a condition of `propagateWhen` that is false."""
    return f"propagateWhen is false: {text}"


def describe_condition_error(text: str, problem: str) -> str:
    """Describe a condition of `propagateWhen` that cannot be evaluated."""
    return f"propagateWhen {text}: {problem}"


def describe_condition_value(text: str, value: object) -> str:
    """Describe a condition of `propagateWhen` that is neither true nor false."""
    return f"propagateWhen {text} yields {value!r}, expected true or false"


# Checks.


def describe_passed_check(check: str, by: str) -> str:
    """Describe a check that was reported as passed."""
    return f"check {check} passed: reported by {by}"


def describe_failed_check(check: str, by: str, link: str = "") -> str:
    """Describe a check that was reported as failed, with the link of the report."""
    return f"check {check} failed: reported by {_format_linked(by, link)}"


def describe_pending_check(check: str, by: str) -> str:
    """Describe a check that was reported as pending."""
    return f"check {check} is pending: reported by {by}"


def describe_contradiction(check: str, passed_by: str, failed_by: str, link: str = "") -> str:
    """Describe a check about which reporters contradict each other; `link` is of the failure."""
    failed = _format_linked(failed_by, link)
    return f"check {check} is contradictory: passed by {passed_by}, failed by {failed}"


def _format_linked(name: str, link: str) -> str:
    return f"{name} ({link})" if link else name


def describe_unreported_check(check: str, revision: str) -> str:
    """Describe a check that nobody has reported."""
    return f"check {check} is not reported for {revision} yet"


def describe_upcoming_report(check: str, by: str) -> str:
    """Describe a check whose report counts from its own instant on."""
    return f"check {check}: the report by {by} is dated ahead and counts from then on"


def describe_future_report(check: str, by: str) -> str:
    """Describe a check whose report is dated in the future."""
    return f"check {check}: the report by {by} is dated in the future and does not count yet"


def describe_ignored_evidence(sentence: str, evidence: str, by: str, problem: str) -> str:
    """Describe evidence that does not count, behind the sentence of its check."""
    return f"{sentence}; evidence {evidence} by {by} does not count: it {problem}"


def describe_other_subject(revision: str, commit: str) -> str:
    """Describe evidence about another revision, or about a commit without this package."""
    if revision:
        return f"is about {revision}"
    return f"is about commit {commit[:12]}, where the package differs from the published one"


def describe_early_evidence(revision: str, step: str) -> str:
    """Describe evidence recorded before the step: "drafted", "published" or "retried"."""
    return f"was recorded before {revision} was {step}"


def describe_settling_check(check: str, settle: timedelta) -> str:
    """Describe a check that is not asked yet."""
    return f"check {check} starts {format_duration(settle)} after publication (settle)"


def describe_stale_answer(sentence: str, fresh_for: timedelta) -> str:
    """Describe an answer that is too old."""
    return f"{sentence}; the answer is older than {format_duration(fresh_for)} (freshFor)"


def describe_timeout(sentence: str, timeout: timedelta) -> str:
    """Describe a check without an answer in time."""
    return f"{sentence}; no answer within {format_duration(timeout)} (timeout)"


def describe_unqueried_check(check: str) -> str:
    """Describe a check without a reading."""
    return f"check {check} has not been queried yet"


def describe_pending_reading(check: str, reading: str) -> str:
    """Describe a check whose reading is no answer."""
    return f"check {check}: {reading}"


def describe_other_reading(check: str, observed: str, revision: str) -> str:
    """Describe a check whose reading is about another revision."""
    return f"check {check} reports on {observed or 'no revision'}, not on {revision}"


def describe_answer(check: str, verdict: Verdict, answer: str) -> str:
    """Describe the answer of a machine."""
    return _append_reason(f"check {check} {verdict.value}", answer)


def describe_overridden_check(check: str, by: str) -> str:
    """Describe a check that a decision overrides."""
    return f"check {check} is overridden by {by}"


def describe_unrepeated_check(check: str, revision: str) -> str:
    """Describe a required check that a rollback does not ask again."""
    return f"check {check} is not required again for a rollback to {revision}"


def describe_min_ready(min_ready: timedelta) -> str:
    """Describe a variant whose checks have passed and whose `minReady` runs."""
    return f"checks passed; they must stay so for {format_duration(min_ready)} (minReady)"


def describe_exceeded_deadline(deadline: timedelta) -> str:
    """Describe a variant that failed by `progressDeadline`."""
    return (
        f"not ready within {format_duration(deadline)} (progressDeadline); a later pass still"
        " counts"
    )


# Approvals.


def describe_approval(check: str, names: Iterable[str]) -> str:
    """Describe a check with enough approvals."""
    return f"{check}: approved by {format_names(names)}"


def describe_missing_approvals(approval_rule: ApprovalRule, names: Collection[str]) -> str:
    """Describe a check without enough approvals; `names` have approved."""
    by_names = f" (by {format_names(names)})" if names else ""
    sentence = (
        f"{approval_rule.name}: {len(names)} of {pluralize(approval_rule.at_least, 'approval')}"
        f"{by_names}"
    )
    if len(approval_rule.subjects) < approval_rule.at_least:
        sentence += f"; only {pluralize(len(approval_rule.subjects), 'approver')} declared"
    return sentence


def describe_requested_changes(check: str, changes: Sequence[tuple[str, str]]) -> str:
    """Describe a check while people request changes; each has a link to the review."""
    shown = ", ".join(f"{name} requested changes ({link})" for name, link in changes[:_SHOWN])
    rest = len(changes) - _SHOWN
    return f"{check}: {shown} and {rest} more" if rest > 0 else f"{check}: {shown}"


def describe_own_approval(names: Iterable[str]) -> str:
    """Describe approvals by authors of the change."""
    return f"approval by {format_names(names)} does not count: they changed the draft"


def describe_unknown_authors(names: Iterable[str]) -> str:
    """Describe approvals by people who may be authors of the change."""
    return (
        f"approval by {format_names(names)} does not count: their commit address is not in"
        " PromotionPolicy.approvers"
    )


def describe_unauthorized_approval(names: Iterable[str], approval_rule: ApprovalRule) -> str:
    """Describe approvals by people who are not approvers."""
    return (
        f"approval by {format_names(names)} does not count: not {format_approvers(approval_rule)}"
    )


def describe_other_approval(names: Iterable[str], revision: str) -> str:
    """Describe approvals of other drafts."""
    return f"approval by {format_names(names)} is for other drafts of {revision}"


# Stages and their rollout.


def describe_halt(stage: str, revision: str, names: Collection[str], tolerated: int) -> str:
    """Describe a stage that is halted by failures."""
    return (
        f"{label_stage(stage)} is halted: {pluralize(len(names), 'variant')} failed {revision}"
        f" ({format_names(names)}), maxFailures: {tolerated}"
    )


def describe_limit(in_flight: int, limit: int) -> str:
    """Describe a rollout whose in-flight limit is reached."""
    return f"in-flight limit reached ({in_flight} of {limit})"


def describe_earlier_group(group: int, name: str, revision: str) -> str:
    """Describe a rollout group that goes first; `name` is its first variant that is not ready."""
    return f"group {group} goes first: {name} is not ready at {revision}"


def describe_offline(target: str, *, released: bool) -> str:
    """Describe an offline target. `released`: its variant was released before."""
    effect = "its variant keeps its state and counts" if released else "its variant does not count"
    return f"target {target} is offline; {effect}"


def describe_empty_stage(stage: str) -> str:
    """Describe a stage without targets."""
    return f"no target is in {label_stage(stage)}; the stage cannot pass"


def describe_nothing_counts(stage: str, revision: str) -> str:
    """Describe a stage in which no variant counts."""
    return (
        f"no variant of {label_stage(stage)} counts for {revision}: all are suspended, offline or"
        " skipped"
    )


def describe_unknown_stage(
    target: str, stage: str, stages: Iterable[str], *, is_control_flow: bool
) -> str:
    """Describe a target in no stage, in an undeclared one, or in a control-flow stage."""
    if not stage:
        problem = "is in no stage"
    elif is_control_flow:
        problem = f"is in stage {stage}, which is a control-flow stage"
    else:
        problem = f"is in stage {stage}, which the policy does not declare"
    return f"target {target} {problem}; choose one of: {', '.join(stages)}"


def describe_group(number: int, first_name: str, sentence: str) -> str:
    """Describe variants that wait for the same; `first_name` is the first of them."""
    if number == 1:
        return f"{first_name}: {sentence}"
    return f"{pluralize(number, 'variant')}, {first_name} first: {sentence}"


def describe_stuck(stage: str, sentence: str) -> str:
    """Describe a policy that only a person can set going again; `stage` is the first stuck."""
    stage_label = label_stage(stage)
    cause = sentence if sentence.startswith(stage_label) else f"{stage_label}: {sentence}"
    return f"rollout is stuck; {cause}"


# Removal.


def describe_removal_of_all(number: int, *, is_deleted: bool) -> str:
    """Describe a removal of all variants of a policy; `is_deleted`: it was deleted itself."""
    cause = "the policy was deleted" if is_deleted else "no target exists any more"
    return f"{cause}; {pluralize(number, 'variant')} would be removed"


def describe_removal_limit(number: int, total: int, limit: int) -> str:
    """Describe more removals than the limit."""
    return f"{number} of {pluralize(total, 'variant')} would be removed (removalLimit: {limit})"


def describe_removed_edits(local_edits: Iterable[str]) -> str:
    """Describe local edits that a removal would delete."""
    return f"removal would delete edits of {' and '.join(local_edits)}"


def describe_later_stages(names: Iterable[str]) -> str:
    """Describe variants of later stages, which are removed first."""
    return f"variants of later stages are removed first: {format_names(names)}"


# Forecasts.


def describe_impossible_stages(stages: Iterable[str], revision: str) -> str:
    """Describe upstream stages that cannot pass the revision."""
    return f"{label_stages(stages)} cannot pass {revision}"


def describe_pinned_stage(stage: str, pinned: str) -> str:
    """Describe a stage that is pinned to another revision."""
    return f"{label_stage(stage)} is pinned to {pinned}"


def describe_superseded(stage: str, candidate: str) -> str:
    """Describe a stage that takes a newer revision."""
    return f"{label_stage(stage)} takes {candidate}, which is newer; automation never downgrades"


def describe_uncounted_stage(stage: str) -> str:
    """Describe a stage in which no variant counts."""
    return f"no variant counts in {label_stage(stage)}"


def describe_rolled_back_variants(names: Collection[str], revision: str, sentence: str) -> str:
    """Describe variants that do not take the revision because they are rolled back."""
    verb = "does" if len(names) == 1 else "do"
    return f"{format_names(names)} {verb} not take {revision}: {sentence}"


def assume_free_variants(number: int) -> str:
    """Describe the assumption that held variants are free."""
    return f"{pluralize(number, 'held variant')} freed immediately"


def assume_decided_conflicts(names: Collection[str]) -> str:
    """Describe the assumption that merge conflicts are decided."""
    return (
        f"merge conflicts of {pluralize(len(names), 'variant')} are decided immediately"
        f" ({format_names(names)})"
    )


def assume_required_checks(checks: Iterable[str]) -> str:
    """Describe the assumption that required checks pass."""
    return f"required checks pass immediately: {', '.join(checks)}"


def assume_mended_failures(number: int) -> str:
    """Describe the assumption that failed variants are fixed."""
    return f"{pluralize(number, 'failed variant')} fixed or skipped immediately"


def assume_observed_duration(duration: timedelta, number: int) -> str:
    """Describe the assumption that variants become ready as fast as others did."""
    return (
        f"a variant is ready {format_duration(duration)} after publication, as"
        f" {pluralize(number, 'variant')} before"
    )


def assume_passing_checks(checks: Iterable[str]) -> str:
    """Describe the assumption that checks pass that were never seen to."""
    return f"checks pass immediately, as no duration is known: {', '.join(checks)}"
