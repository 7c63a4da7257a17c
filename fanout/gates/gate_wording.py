"""Actors of the gates, and the sentences that several places say.

A sentence that one place says stands there. It names the subject, what happened and what to do.
Instants are not part of it: they are `since` and `until` of the hold.
"""

from collections.abc import Collection, Iterable, Sequence

from fanout.api.durations import format_instant
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
AUTHOR_OF_LIMIT = "the policy's author (rollout.maxInFlight)"
AUTHOR_OF_REVISION = "the policy's author (spec.upstream)"
CONFLICT_ACTOR = (
    "a maintainer of the package (commit to the draft, or fanout resolve) or any promoter"
    " (fanout promote --variant --accept-conflicts)"
)
DRAFTS_AWAITED = "the next pass that writes drafts"
NEXT_SWEEP = "the next sweep"
NEXT_SWEEP_OR_PROMOTER = f"{NEXT_SWEEP} or {ANY_PROMOTER}"
PUBLICATION_OPERATOR = f"the operator of the target or {ANY_PROMOTER_RETRY}"
REPORTER = "a reporter of the pending checks"
TIME_ALONE = "nobody (opens automatically)"
UNREADABLE_WINDOW_ACTOR = f"the PromotionPolicy's author (fanout validate) or {MAY_OVERRIDE_WINDOW}"
WINDOW_ACTOR = f"{TIME_ALONE} or {MAY_OVERRIDE_WINDOW}"
WINDOW_ADMINISTRATOR = "an administrator (PromotionPolicy.windows)"
REMOVAL_ACTOR = f"{TIME_ALONE} or {WINDOW_ADMINISTRATOR}"

# Sentences without data.
LIMIT_IS_ZERO = "in-flight limit is 0 (rollout.maxInFlight); nothing is released"
NO_REVISION = "no upstream revision is allowed by spec.upstream"
REMOVAL_SWEEP_AWAITED = "automation removes packages only in sweeps"


def label_stage(stage: str) -> str:
    """Label a stage. The unnamed stage of a hand-written variant is labeled as the variant."""
    return f"stage {stage}" if stage else "the variant"


def label_stages(stages: Iterable[str]) -> str:
    """Label several stages."""
    return ", ".join(map(label_stage, stages))


def format_names(names: Iterable[str]) -> str:
    """Format the first few names in order, and how many more there are."""
    return list_first(sorted(names), _SHOWN)


def append_reason(sentence: str, reason: str) -> str:
    """Append the reason that somebody gave, if there is one."""
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


def append_actor(sentence: str, actor: str) -> str:
    """Append who can act to the sentence of a hold, where that is known."""
    return f"{sentence}; who can act: {actor}" if actor else sentence


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


def format_clock_owner(by: str, alternative: str) -> str:
    """Format who can mend a record that is dated in the future."""
    return f"{by} (correct the clock) or {alternative}"


def format_automation_actor(promoter: str = ANY_PROMOTER) -> str:
    """Format who can act where automatic promotion is off."""
    return f"an administrator (PromotionPolicy.autoPromotion) or {promoter}"


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


# Sentences that several places say.


def describe_spec_suspension(label: str) -> str:
    """Describe a suspension by a spec."""
    return f"{label} is suspended by its spec"


def describe_automation_off(scope: str, opposing_policies: Collection[str] = ()) -> str:
    """Describe automatic promotion that is off, and the PromotionPolicies that turn it off."""
    by_policies = (
        f" in PromotionPolicy {format_names(opposing_policies)}" if opposing_policies else ""
    )
    return f"automatic promotion is off for {scope}{by_policies}"


def describe_failed_check(check: str, by: str, link: str = "") -> str:
    """Describe a check that was reported as failed, with the link of the report."""
    return f"check {check} failed: reported by {by}{f' ({link})' if link else ''}"


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
    shown = [f"{name} requested changes ({link})" for name, link in changes]
    return f"{check}: {list_first(shown, _SHOWN)}"
