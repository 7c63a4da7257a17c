"""Sentences of the problems, holds and conditions of a pass that gates and plan do not word."""

from fanout.api.text_fields import pluralize
from fanout.control_characters import escape_unprintable

# Sentences without data, and remedies.
ANSWERED = "the repository could be listed"
DECIDED_BY_COMMIT = "by a commit on the draft"
DECIDED_BY_FIELD = "by spec.onConflict"
IN_FORCE = "the policy is valid and in force"
MERGED_EARLY = "a person merged the draft before its gates opened"
NO_TARGETS = "the policy selects no target"
UNUSED = "no policy that can be evaluated uses the repository"


# Adoption, edits and drafts.


def remind_lost_renderings(policy: str) -> str:
    """Describe the same in one line."""
    return f"the vendor branch lacks published packages; run `fanout explain {policy}`"


def describe_open_conflicts(number: int, policy: str, variant: str) -> str:
    """Describe merge conflicts in a draft that nobody has decided."""
    return (
        f"{pluralize(number, 'undecided merge conflict')} in its draft; run"
        f" `fanout diff {variant} --three-way`, then commit a fix to the draft or run"
        f" `fanout resolve {policy} --variant {variant} --reason WHY`"
    )


def remind_open_conflicts(number: int, subject: str) -> str:
    """Describe the same in one line; `subject` is the argument of `fanout explain`."""
    return f"{pluralize(number, 'undecided merge conflict')}; run `fanout explain {subject}`"


def describe_decided_conflict(conflict: str, by: str, decision: str, reason: str) -> str:
    """Describe a merge conflict with the decision of a person."""
    return f"{conflict}; decided by {by} ({decision}): {reason}"


def describe_settled_conflict(conflict: str, by: str) -> str:
    """Describe a merge conflict that no decision was needed for."""
    return f"{conflict}; decided {by}"


def describe_undecided_conflict(conflict: str) -> str:
    """Describe a merge conflict that nobody has decided."""
    return f"{conflict}; undecided"


def describe_draft_conflicts(number: int, draft: str) -> str:
    """Describe the merge conflicts of a draft that nobody has decided."""
    return f"{pluralize(number, 'undecided merge conflict')} in {draft}"


def describe_decided_conflicts(revision: str, *, is_published: bool) -> str:
    """Describe the list of decided merge conflicts in a draft or publication."""
    if is_published:
        return f"merge conflicts decided in {revision}, which is published"
    return f"decided merge conflicts in the draft of {revision}"


def describe_taken_value(file: str, side: str) -> str:
    """Describe which side of a merge conflict is in the draft; `file` is "" if it is not known."""
    return f"{escape_unprintable(file) or 'a value'}: the {side} value is in the draft"


def describe_rejected_value(revision: str, value: str) -> str:
    """Describe a value that was dropped when a revision was published."""
    return f"decided when {revision} was published: {value}"


def describe_stage_conflicts(number: int) -> str:
    """Describe the merge conflicts of a stage that nobody has decided."""
    return f"{pluralize(number, 'undecided merge conflict')} in drafts of this stage"


def describe_early_merge(variants: str, revision: str) -> str:
    """Describe variants whose drafts were merged before their gates opened."""
    return f"{variants}: a person merged {revision} before its gates opened"


def describe_accepted_conflicts(number: int) -> str:
    """Describe a draft that is published with its merge conflicts."""
    return (
        f"its draft is published with {pluralize(number, 'merge conflict')} that a person accepted"
    )


def describe_readiness(ready: int, total: int) -> str:
    """Describe how many variants are ready."""
    return f"{ready} of {pluralize(total, 'variant')} ready"


def describe_failed_targets(number: int, first: str, problem: str) -> str:
    """Describe targets for which no variant can be specified; `problem`: of the first."""
    return f"{pluralize(number, 'target')} without a variant, {first} first: {problem}"


def describe_ready_variant(revision: str) -> str:
    """Say that a variant has what is declared for it."""
    return f"{revision} is published and verified"


def describe_undrafted_variants(number: int, first: str) -> str:
    """Say that no draft can be made of the changed inputs of variants."""
    others = f" and {number - 1} more" if number > 1 else ""
    return f"no draft can be made of the changed inputs of {first}{others}"


def describe_failed_variants(number: int, first: str) -> str:
    """Describe variants that failed."""
    return f"{pluralize(number, 'variant')} failed, {first} first"


def describe_unreadable_repositories(number: int, first: str) -> str:
    """Describe variants whose repositories cannot be read."""
    return f"{pluralize(number, 'variant')} cannot be observed, {first} first"


def describe_foreign_request(number: int, base: str, head: str) -> str:
    """Describe a pull request that a person opened from a draft branch."""
    return f"pull request {number} from {head} to {base} was not opened by fanout and is ignored"


# Records.


def describe_unwritten_trace(record: str, url: str, error: object) -> str:
    """Describe a record that a repository does not name yet."""
    return (
        f"record {record} counts, but {url} does not name it yet, by which restored records are"
        f" noticed ({error}); the next pass tries again"
    )


def describe_early_record(kind: str, name: str, by: str, instant: str) -> str:
    """Describe a record that is dated in the future."""
    return (
        f"{kind} {name} of {by} is dated {instant}, more than five minutes ahead; it does not"
        " count yet"
    )


def describe_next_removals(variants: str) -> str:
    """Describe the variants without a target that the next sweep removes."""
    return f"the next sweep removes variants without a target: {variants}"


def append_actor(hold: str, actor: str) -> str:
    """Append who can act to the sentence of a hold, where that is known."""
    return f"{hold}; who can act: {actor}" if actor else hold


# Pull requests and notifications.


def describe_wait_of_stage(meaning: str, place: str) -> str:
    """Describe what many variants wait for; `place` has the details."""
    return f"{meaning}; see the status of {place}"


# Pins and promotion.


def describe_policy_pin(stage_label: str, revision: str) -> str:
    """Describe a stage that its policy pins."""
    return f"the policy pins {stage_label} to {revision}"


def describe_rollback(subject: str, revision: str, decision: str, by: str, reason: str) -> str:
    """Describe a stage or variants that a decision keeps at a revision."""
    return f"{subject} stays at {revision}, by decision {decision} of {by}: {reason}"


def describe_outdated_records(problem: str) -> str:
    """Say that a pass knows the records that were read last, and so writes drafts alone."""
    return (
        f"drafts are written by the records that were read last, and nothing is released: {problem}"
    )
