"""Detection of records that are lost, or were put back, by what repositories show.

A mistyped records address or a deleted directory would otherwise forget every
suspension and decide anew.

A release is recorded before its publication is pushed, and the publication names its
records in the trailer `Fanout-Records`. If the newest publication of a variant has that
trailer but neither the record nor the release exists, the records are older than the
repositories. The same holds for a record that stops something
and left a trace in a repository.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from fanout.api.commit_trailers import Trailer
from fanout.api.git_repository import Repository
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.commit_statement import NO_VALUE, parse_last_record
from fanout.plan.observation.repository_state import (
    Commit,
    RecordTrace,
    RefListing,
    RepositoryState,
    url_of_remote,
)
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import PolicyRecords, RewoundBranch, last_acceptance
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.records.trace_changes import find_lost_traces
from fanout.ports import GitStore
from fanout.reconcile.history.publication_history import HistoryReader
from fanout.reconcile.observation.repository_access import OpenReader, build_remote
from fanout.reconcile.ownership.path_ownership import trailer_owner
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy, with_error
from fanout.reconcile.world import Setup
from fanout.selection.ref_names import record_traces_ref, vendor_ref
from fanout.values import Value, replace

_RECORDS_REMEDY = (
    "name the correct records repository with --records, or restore it from a backup; if there is"
    " none, run `fanout sweep --new-records`, which loses suspensions, approvals and evidence"
)


def find_lost_policies(
    blank_reason: str,
    policies: Iterable[ResolvedPolicy],
    repositories: Sequence[Repository],
    listings: Mapping[str, RefListing | FanoutError],
    install: str,
) -> Mapping[PolicyKey, InvalidInput]:
    """Return the error of each policy with a repository that this installation has written.

    Those are the repositories that it publishes to and all that its namespace declares. What
    other namespaces have in theirs is not counted: anybody who may push to a repository can make
    such a branch. `blank_reason`: why nothing at all is on record.
    """
    # These branches this installation alone writes. Others below `drafts/` may be anybody's.
    own_refs = (vendor_ref(install), record_traces_ref(install))
    error_by_remote = {
        remote: InvalidInput(
            f"{blank_reason}, but {url_of_remote(remote)} has branch"
            f" {ref.removeprefix('refs/heads/')} of this installation",
            reason="RecordsLost",
            remedy=_RECORDS_REMEDY,
        )
        for remote, listing in listings.items()
        if not isinstance(listing, FanoutError)
        and (ref := next((it for it in own_refs if it in listing.refs), ""))
    }
    if not error_by_remote:
        return {}
    errors: dict[PolicyKey, InvalidInput] = {}
    for policy in policies:
        declared = (it for it in repositories if it.metadata.namespace == policy.namespace)
        remotes = {build_remote(it).key for it in (*declared, *policy.repositories.values())}
        if lost := sorted(remotes & error_by_remote.keys()):
            errors[policy.key] = error_by_remote[lost[0]]
    return errors


@contextmanager
def count_other_branches(policy_state: PolicyRecords) -> Iterator[None]:
    """Add to an error of missing records that other branches may have them, under another name.

    The remedy is to rename one back, and none that gives up what is on it.
    """
    try:
        yield
    except InvalidInput as error:
        if (lost_branch := policy_state.lost_branch) is None:
            raise
        raise InvalidInput(
            f"{error.problem}; {lost_branch.repository} has no branch {lost_branch.branch}, but"
            f" {lost_branch.others} with "
            + ("another name" if lost_branch.others == 1 else "other names"),
            reason=error.reason,
            remedy=(
                f"run `git ls-remote {lost_branch.repository}`; if a branch there has the records,"
                f" rename it back to {lost_branch.branch}; else name the correct records"
                " repository with --records, or restore it from a backup"
            ),
            where=error.where,
        ) from error


def stop_lost_policies(scope: PassScope, errors: Mapping[PolicyKey, InvalidInput]) -> PassScope:
    """Return the scope without these policies. Raises InvalidInput if no other is covered."""
    stopped: dict[PolicyKey, ResolvedPolicy] = {}
    for policy in scope.all_policies:
        if policy.key not in errors:
            continue
        try:
            with count_other_branches(scope.policy_states[policy.records_key]):
                raise errors[policy.key]
        except InvalidInput as error:
            stopped[policy.key] = with_error(policy, error)
    if all(it.key in stopped for it in scope.covered):
        keys = [it.key for it in scope.covered] or list(stopped)
        first_error = stopped[keys[0]].error
        assert first_error is not None, "a policy is stopped by an error"
        raise first_error
    of_evaluated = (stopped[it.key] for it in scope.evaluated if it.key in stopped)
    return replace(
        scope,
        all_policies=[stopped.get(it.key, it) for it in scope.all_policies],
        covered=[stopped.get(it.key, it) for it in scope.covered],
        evaluated=[it for it in scope.evaluated if it.key not in stopped],
        stopped=[*scope.stopped, *of_evaluated],
    )


def refuse_lost_policy_state(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore
) -> None:
    """Raise InvalidInput if a policy without records has written something downstream."""
    for repository_state, artifact in _find_activity(inputs, variants, git):
        raise InvalidInput(
            f"the policy has no records, but {repository_state.remote.url} has {artifact}",
            reason="RecordsLost",
            remedy=_RECORDS_REMEDY,
        )


def find_bootstrap_repositories(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore, install: str
) -> frozenset[str]:
    """Return repositories with earlier activity of a policy whose records start empty.

    They are recorded: a bootstrap that wrote nothing because everything is held would be
    refused as lost records by the next pass.
    """
    return frozenset(
        repository_state.identity for repository_state, _ in _find_activity(inputs, variants, git)
    ) | {
        it.identity
        for it in inputs.path_ownership.witness_states
        if {vendor_ref(install), record_traces_ref(install)} & it.refs.keys()
    }


def _find_activity(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore
) -> Iterator[tuple[RepositoryState, str]]:
    """Yield repositories that show activity of the policy, with the artifact."""
    owner = trailer_owner(inputs.resolved_policy)
    own_variants = {variant.spec.name for variant in variants}
    # Sorted, so that repeated passes name the same repository in their error.
    for repository_state in sorted(inputs.path_ownership.witness_states, key=lambda it: it.key):
        for draft in repository_state.drafts:
            trailers = draft.trailers
            if trailers.policy == owner and (
                inputs.resolved_policy.upstream_policy is not None
                or trailers.variant in own_variants
            ):
                yield repository_state, f"its draft {draft.ref.removeprefix('refs/heads/')}"
    trailer = f"{Trailer.POLICY.value}: {owner}"
    for variant in variants:
        if not (number := variant.repository_state.publication_numbers.get(variant.spec.path, 0)):
            continue
        artifact = f"its publication {variant.spec.path}/v{number}"
        statement = variant.repository_state.find_statement(variant.spec.path)
        if statement is not None and statement.trailers.policy == owner:
            yield variant.repository_state, artifact
            continue
        commit = variant.repository_state.find_publication_commit(variant.spec.path)
        with git.reader(variant.repository_state.remote) as reader:
            if reader.has(commit) and trailer in reader.commit(commit).message.splitlines():
                yield variant.repository_state, artifact


_MAX_LISTED = 5  # missing records in a message


class RecordBaseline(Value):
    """State of a policy's records that publications are compared with."""

    record_names: Collection[str]
    accepted_at: datetime | None  # time of the last decision that accepted the records
    now: datetime

    @classmethod
    def build(cls, inputs: PolicyInputs, setup: Setup, now: datetime) -> "RecordBaseline":
        """Build the baseline of a policy."""
        names = {it.name for it in inputs.policy_state.records}
        if setup.new_records:
            return cls(names, now, now)
        record = last_acceptance(inputs.own_records)
        return cls(names, record.at if record is not None else None, now)

    def find_lost_traces(
        self, inputs: PolicyInputs
    ) -> Iterator[tuple[RepositoryState, RecordTrace]]:
        """Yield the repositories that name a record of the policy that is not on record."""
        key, states = inputs.resolved_policy.records_key, inputs.path_ownership.witness_states
        return find_lost_traces(states, key, self.record_names, self.accepted_at)

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
    if (newest := history.find_newest(baseline.now)) is None or newest.merge == published.merge:
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
    if (published := variant.published) is None or not published.merge:
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
    if sentences := describe_missing_records(policy_state.rewound):
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


def refuse_lost_traces(inputs: PolicyInputs, baseline: RecordBaseline) -> None:
    """Raise InvalidInput if a repository names a record that is not on record."""
    for repository_state, trace in baseline.find_lost_traces(inputs):
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
