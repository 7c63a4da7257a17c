"""Sentences of the problems, holds and conditions of a pass that gates and plan do not word."""

from fanout.api.text_fields import pluralize

# Sentences without data, and remedies.
IN_FORCE = "the policy is valid and in force"
MERGED_EARLY = "a person merged the draft before its gates opened"
NO_TARGETS = "the policy selects no target"
UNUSED = "no policy that can be evaluated uses the repository"


# Adoption, edits and drafts.


def remind_lost_renderings(policy: str) -> str:
    """Describe the same in one line."""
    return f"the vendor branch lacks published packages; run `fanout explain {policy}`"


def describe_accepted_conflicts(number: int) -> str:
    """Describe a draft that is published with its merge conflicts."""
    return (
        f"its draft is published with {pluralize(number, 'merge conflict')} that a person accepted"
    )


def describe_foreign_request(number: int, base: str, head: str) -> str:
    """Describe a pull request that a person opened from a draft branch."""
    return f"pull request {number} from {head} to {base} was not opened by fanout and is ignored"


# Records.


def append_actor(hold: str, actor: str) -> str:
    """Append who can act to the sentence of a hold, where that is known."""
    return f"{hold}; who can act: {actor}" if actor else hold


# Pull requests and notifications.


# Pins and promotion.


def describe_outdated_records(problem: str) -> str:
    """Say that a pass knows the records that were read last, and so writes drafts alone."""
    return (
        f"drafts are written by the records that were read last, and nothing is released: {problem}"
    )
