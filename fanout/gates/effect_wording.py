"""Sentences about the effects of records: whether they count now, and why not."""

from fanout.gates.gate_wording import format_names, label_stage

ACTIVE = "the record is active"
APPLIED = "the decision was carried out, or a later one took its place"
APPROVES = "the approval counts for an open draft"
APPROVED_EARLIER = "the drafts that it approved were published, or a later revision was instead"
APPROVED_PUBLISHED = "the drafts that it approved are published"
AUTHOR_UNKNOWN = (
    "the approver may have changed the draft: the addresses of its commits are not in"
    " PromotionPolicy.approvers"
)
COUNTS = "the evidence counts for its check"
EARLY = "it was recorded before its subject was drafted or published; report the check again"
EVIDENCE_USED = "the draft that it was about is published"
EXPIRED = "it has expired"
FUTURE = "it is dated more than five minutes in the future, and does not count yet"
OWN_CHANGE = (
    "the approver changed the draft, and own changes cannot be approved"
    " (PromotionPolicy.requiresSeparation)"
)
REVOKES = "it revoked an approval"
SUPERSEDED = "a later report of the same reporter, or a retry, took its place"
WITHDRAWN = "a later record withdrew it"
WITHDRAWS = "it withdrew an earlier record"


def describe_unknown_stage(stage: str) -> str:
    """Say that the policy lacks the stage of a record."""
    return f"the policy has no stage {stage}"


def describe_unknown_check(stage: str, check: str, method: str) -> str:
    """Say that a stage lacks the check of a record; `method`: approval or report."""
    return f"{label_stage(stage)} has no check {check} by {method}"


def describe_unknown_variants(stage: str) -> str:
    """Say that no variant of a record is in its stage."""
    return f"none of its variants is in {label_stage(stage)}"


def describe_unknown_record(name: str) -> str:
    """Say that a record withdraws or revokes what is not on record before it."""
    return f"no record {name} that it could withdraw or revoke is on record before it"


def describe_not_entitled(by: str, groups: tuple[str, ...]) -> str:
    """Say that the author of an approval is none of its approvers."""
    subject = format_names(groups) or "any group"
    return f"{by} is not in {subject} (PromotionPolicy.approvers)"


def describe_revoker(by: str, name: str) -> str:
    """Say that the author of a revocation may not revoke the approval."""
    return f"{by} is neither the author of {name} nor an approver of its check"


def describe_other_drafts(stage: str, revision: str) -> str:
    """Say that the drafts of the revision are not those that an approval names."""
    return (
        f"{label_stage(stage)} has other drafts of {revision} than those that it approves;"
        " approve them again"
    )


def describe_rewritten_drafts(revision: str) -> str:
    """Say that the drafts that a decision covers were rewritten."""
    return f"the drafts of {revision} that it covers were rewritten; decide again"


def describe_other_candidate(stage: str, revision: str, candidate: str) -> str:
    """Say that a stage has another candidate than the revision of a record."""
    other = f"its candidate is {candidate}" if candidate else "it has no candidate"
    return f"{label_stage(stage)} has no draft of {revision}: {other}"


def describe_other_revision(stage: str, subject: str) -> str:
    """Say that no variant has what evidence is about: a revision, or a commit."""
    return f"no variant of {label_stage(stage)} has {subject} now"
