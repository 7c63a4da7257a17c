"""Detection of records that were put back: repositories show that newer ones existed.

A release is recorded before its publication is pushed, and the publication names its
records in the trailer `Fanout-Records`. If the newest publication of a variant has that
trailer but neither the record nor the release exists, the records are older than the
repositories (docs/concepts/records.md). The same holds for a record that stops something
and left a trace in a repository.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from fanout.errors import InvalidInput
from fanout.plan.commit_statement import NO_VALUE, parse_last_record
from fanout.plan.observation.repository_state import Commit, RecordTrace, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import RewoundBranch
from fanout.plan.records.policy_status import PublishedLine
from fanout.reconcile.observation.mirror_access import OpenReader
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.rollback.publication_history import HistoryReader
from fanout.values import Value, replace

_MAX_LISTED = 5  # missing records in a message


class RecordBaseline(Value):
    """State of a policy's records that publications are compared with."""

    record_names: Collection[str]
    accepted_at: datetime | None  # time of the last decision that accepted the records
    now: datetime

    def is_accepted(self, commit: Commit) -> bool:
        """Return whether a person accepted the records after a commit."""
        return self.accepted_at is not None and commit.timestamp <= self.accepted_at.timestamp()


def compare_with_publication(
    variant: ObservedVariant, baseline: RecordBaseline, histories: HistoryReader
) -> ObservedVariant:
    """Return the variant with its newest publication, if that is not on record.

    If a person has accepted the repositories' state since then, it becomes the published
    line. Otherwise `rewound` describes the missing record.
    """
    published, path = variant.published, variant.spec.path
    repository_state = variant.repository_state
    number = repository_state.publication_numbers.get(path, 0)
    if (
        published is None
        or not number
        or variant.path_state.tree == published.tree
        or variant.status_line.place != (repository_state.identity, path)
        or variant.published_for_another
        or published.tag == f"{path}/v{number}"
        or published.merge == repository_state.find_publication_commit(path)
    ):
        return variant
    history = histories.open(variant)
    newest = history.find_newest(baseline.now)
    if newest is None or newest.merge == published.merge:
        return variant
    grant = variant.status_line.grant
    # Only a publication after the recorded one can be missing because records were restored.
    is_later = not published.merge or history.reader.contains(newest.merge, published.merge)
    if not is_later or (grant and grant.tree == newest.tree):
        return variant
    commit = history.reader.commit(newest.merge)
    if not parse_last_record(commit.message):  # no sign that its release was recorded
        return variant
    if not baseline.is_accepted(commit):
        return replace(variant, rewound_records=_describe_unrecorded(variant, newest))
    status_line = replace(variant.status_line, published=newest, grant=None)
    return replace(variant, published=newest, status_line=status_line)


def mark_missing_records(
    variant: ObservedVariant, baseline: RecordBaseline, open_reader: OpenReader
) -> ObservedVariant:
    """Return the recovered variant, marked if records of its release are missing."""
    published = variant.published
    if published is None or not published.merge:
        return variant
    commit = open_reader(variant.repository_state.remote).commit(published.merge)
    record_name = parse_last_record(commit.message)
    is_on_record = record_name in ("", NO_VALUE) or record_name in baseline.record_names
    if is_on_record or baseline.is_accepted(commit):
        return variant
    return replace(variant, rewound_records=_describe_unrecorded(variant, published))


def refuse_rewound_branch(inputs: PolicyInputs) -> None:
    """Raise InvalidInput if the records branch does not descend from its last seen commit."""
    policy_state = inputs.policy_state
    if policy_state.rewound is None:
        return
    problem = (
        f"{policy_state.rewound.branch} was reset: it does not contain commit"
        f" {policy_state.rewound.last_seen[:12]}, its last known head"
    )
    sentences = describe_missing_records(policy_state.rewound)
    if sentences:
        problem += f"; missing: {'; '.join(sentences[:_MAX_LISTED])}"
        if len(sentences) > _MAX_LISTED:
            problem += f" and {len(sentences) - _MAX_LISTED} more"
    elif policy_state.rewound.records is not None:
        problem += "; no record is missing, only status"
    raise build_reset_error(problem, "restore the branch", inputs.resolved_policy.title)


def refuse_missing_records(inputs: PolicyInputs, variants: tuple[ObservedVariant, ...]) -> None:
    """Raise InvalidInput if a publication shows that records are missing."""
    sentences = [variant.rewound_records for variant in variants if variant.rewound_records]
    if not sentences:
        return
    more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
    raise build_reset_error(
        f"{sentences[0]}{more}: the records were reset to an older state (commit"
        f" {inputs.policy_state.head[:12]})",
        "restore the newer records",
        inputs.resolved_policy.title,
    )


def refuse_lost_traces(
    inputs: PolicyInputs, lost_traces: Iterable[tuple[RepositoryState, RecordTrace]]
) -> None:
    """Raise InvalidInput if a repository names a record that is not on record."""
    for repository_state, trace in lost_traces:
        raise build_reset_error(
            f"record {trace.record} stopped something and is named in"
            f" {repository_state.remote.url}, but it is not on record: the records were reset to"
            " an older state",
            "restore the newer records",
            inputs.resolved_policy.title,
        )


def build_reset_error(problem: str, restoration: str, title: str) -> InvalidInput:
    """Build the error of records that were reset. `title` is NAMESPACE/NAME."""
    namespace, _, name = title.partition("/")
    remedy = (
        f"{restoration}; or, to continue from what the repositories have published, run"
        f" `fanout accept-records {name} -n {namespace} --reason WHY`"
    )
    return InvalidInput(problem, reason="RecordsRewound", remedy=remedy)


def describe_missing_records(rewound: RewoundBranch) -> list[str]:
    """Return one line for each missing record."""
    lines = []
    for record in rewound.records or ():
        fields = record.fields
        words = [fields.get(name) for name in ("action", "check", "status", "revision")]
        stage_words = [f"stage {fields['stage']}"] if fields.get("stage") else []
        description = " ".join([*filter(None, words), *stage_words, *fields.get("variants", ())])
        lines.append(f"{record.kind} {record.name} of {record.by}: {description}")
    return lines


def _describe_unrecorded(variant: ObservedVariant, published: PublishedLine) -> str:
    publication = published.tag or variant.spec.path
    return (
        f"publication {publication} ({published.merge[:12]}) of {variant.spec.repository} is"
        " missing from the records"
    )
