"""Detection of lost or restored records by what repositories show of earlier activity.

A mistyped records address or a deleted directory would otherwise forget every
suspension and decide anew. A release is recorded before its publication is pushed, and
the publication names its records in the trailer `Fanout-Records`. If the newest
publication of a variant has that trailer but neither the record nor the release exists,
the records are older than the repositories (design §3, "Order of effects").
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.commit_trailers import Trailer
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.draft_trailers import NO_VALUE, DraftTrailers, parse_last_record
from fanout.plan.observation.repository_state import RefListing, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import PolicyRecords, RewoundBranch
from fanout.plan.records.policy_status import PublishedLine
from fanout.ports import GitStore
from fanout.reconcile.observation.mirror_access import OpenReader
from fanout.reconcile.rollback.publication_history import PublicationHistory
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.variant_naming import tag_ref, vendor_ref
from fanout.values import frozen, replace

REMEDY = (
    "name the right records repository with --records; or, if suspensions, approvals and evidence"
    " are to be forgotten, say --new-records"
)


def refuse_lost_records(
    blank_reason: str, listings: Mapping[str, RefListing | FanoutError], install: str
) -> None:
    """Raise InvalidInput if a repository has the rendering branch of this installation.

    `blank_reason`: why nothing at all is on record. Other branches below `drafts/` may
    belong to anybody.
    """
    vendor = vendor_ref(install)
    for url, listing in sorted(listings.items()):
        if not isinstance(listing, FanoutError) and vendor in listing.refs:
            branch = vendor.removeprefix("refs/heads/")
            raise InvalidInput(
                f"{blank_reason}, but {url} has branch {branch} of this installation",
                reason="RecordsLost",
                remedy=REMEDY,
            )


def refuse_lost_policy_state(
    resolved_policy: ResolvedPolicy,
    repository_states: Mapping[str, RepositoryState],
    variants: Sequence[ObservedVariant],
    git: GitStore,
) -> None:
    """Raise InvalidInput if a policy without records has written something downstream."""
    for repository_state, artifact in _find_activity(
        resolved_policy, repository_states, variants, git
    ):
        raise InvalidInput(
            f"nothing of it is on record, but {repository_state.remote.url} has {artifact}",
            reason="RecordsLost",
            remedy=REMEDY,
        )


def find_bootstrap_repositories(
    resolved_policy: ResolvedPolicy,
    repository_states: Mapping[str, RepositoryState],
    variants: Sequence[ObservedVariant],
    git: GitStore,
    install: str,
) -> frozenset[str]:
    """Return repositories with earlier activity of a policy whose records start empty.

    They are recorded: a bootstrap that wrote nothing because everything is held would be
    refused as lost records by the next pass.
    """
    own_keys = {
        repository_state.identity
        for repository_state, _ in _find_activity(resolved_policy, repository_states, variants, git)
    }
    return frozenset(
        own_keys
        | {it.identity for it in repository_states.values() if vendor_ref(install) in it.refs}
    )


def _find_activity(
    resolved_policy: ResolvedPolicy,
    repository_states: Mapping[str, RepositoryState],
    variants: Sequence[ObservedVariant],
    git: GitStore,
) -> Iterator[tuple[RepositoryState, str]]:
    """Yield repositories that show activity of the policy, with the artifact."""
    policy = resolved_policy.name if resolved_policy.upstream_policy is not None else ""
    owner = f"{resolved_policy.namespace}/{policy}"
    own_variants = {variant.spec.name for variant in variants}
    # Sorted, so that repeated passes name the same repository in their error.
    for _, repository_state in sorted(repository_states.items()):
        for draft in repository_state.drafts.values():
            trailers = draft.trailers
            if trailers.policy == owner and (
                resolved_policy.upstream_policy is not None or trailers.variant in own_variants
            ):
                yield repository_state, f"its draft {draft.ref.removeprefix('refs/heads/')}"
    trailer = f"{Trailer.POLICY.value}: {owner}"
    for variant in variants:
        number = variant.repository_state.publication_numbers.get(variant.spec.path, 0)
        if not number:
            continue
        tag = tag_ref(variant.spec.path, number)
        commit = variant.repository_state.refs[tag]
        with git.reader(variant.repository_state.remote) as reader:
            if reader.has(commit) and trailer in reader.commit(commit).message.splitlines():
                yield variant.repository_state, f"its publication {tag.removeprefix('refs/tags/')}"


_MAX_LISTED = 5  # missing records in a message


@frozen
class RecordBaseline:
    """State of a policy's records that publications are compared with."""

    record_names: Container[str]
    accepted_at: datetime | None  # time of the last decision that accepted the records
    now: datetime


def compare_with_publication(
    variant: ObservedVariant,
    baseline: RecordBaseline,
    open_reader: OpenReader,
    trailers_by_tip: dict[str, DraftTrailers | None],
) -> ObservedVariant:
    """Return the variant with its newest publication, if that is not on record.

    If a person has accepted the repositories' state since then, it becomes the published
    line. Otherwise `rewound` describes the missing record.
    """
    published, path, repository_state = (
        variant.published,
        variant.spec.path,
        variant.repository_state,
    )
    number = repository_state.publication_numbers.get(path, 0)
    if (
        published is None
        or not number
        or variant.path_state.tree == published.tree
        or variant.status_line.place != (repository_state.identity, path)
        or variant.published_for_another
        or published.tag == tag_ref(path, number).removeprefix("refs/tags/")
    ):
        return variant
    reader = open_reader(repository_state.remote)
    newest = PublicationHistory(
        reader, repository_state, variant.spec, trailers_by_tip
    ).find_newest(baseline.now)
    if newest is None or newest.merge == published.merge:
        return variant
    grant = variant.status_line.grant
    # Only a publication after the recorded one can be missing because records were restored.
    is_later = not published.merge or reader.contains(newest.merge, published.merge)
    if not is_later or (grant and grant.tree == newest.tree):
        return variant
    commit = reader.commit(newest.merge)
    if not parse_last_record(commit.message):  # no sign that its release was recorded
        return variant
    if baseline.accepted_at is None or commit.timestamp > baseline.accepted_at.timestamp():
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
    commit_object = open_reader(variant.repository_state.remote).commit(published.merge)
    record_name = parse_last_record(commit_object.message)
    if record_name in ("", NO_VALUE) or record_name in baseline.record_names:
        return variant
    if (
        baseline.accepted_at is not None
        and commit_object.timestamp <= baseline.accepted_at.timestamp()
    ):
        return variant
    return replace(variant, rewound_records=_describe_unrecorded(variant, published))


def refuse_rewound_branch(title: str, rewound: RewoundBranch | None) -> None:
    """Raise InvalidInput if the records branch does not descend from its last seen commit."""
    if rewound is None:
        return
    raise InvalidInput(
        f"{rewound.branch} does not descend from commit {rewound.last_seen[:12]}, at which this"
        " state"
        f" directory saw it last: records were put back{_format_missing(rewound)}",
        reason="RecordsRewound",
        remedy=f"restore the branch (that commit, or a later one); {_accept_remedy(title)}",
    )


def refuse_missing_records(
    title: str, policy_state: PolicyRecords, variants: tuple[ObservedVariant, ...]
) -> None:
    """Raise InvalidInput if a publication shows that records are missing."""
    sentences = [variant.rewound_records for variant in variants if variant.rewound_records]
    if sentences:
        more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
        raise InvalidInput(
            f"{sentences[0]}{more}: the records, at commit {policy_state.head[:12]}, were put back",
            reason="RecordsRewound",
            remedy=f"restore the newer records; {_accept_remedy(title)}",
        )


def describe_missing_records(rewound: RewoundBranch) -> list[str]:
    """Return one line for each missing record."""
    return [
        f"{record.kind} {record.name} of {record.by}: {_describe_spec(record.spec)}"
        for record in rewound.records or ()
    ]


def _format_missing(rewound: RewoundBranch) -> str:
    if rewound.records is None:
        return ""
    if not rewound.records:
        return "; no record is missing, only status"
    lines = describe_missing_records(rewound)
    more = f" and {len(lines) - _MAX_LISTED} more" if len(lines) > _MAX_LISTED else ""
    return f"; missing: {'; '.join(lines[:_MAX_LISTED])}{more}"


def _describe_spec(spec: object) -> str:
    assert isinstance(spec, dict), "a record's spec was validated"
    words = [spec.get(name) for name in ("action", "check", "status", "revision")]
    stage_words = [f"stage {spec['stage']}"] if spec.get("stage") else []
    return " ".join([*filter(None, words), *stage_words, *spec.get("variants", ())])


def _describe_unrecorded(variant: ObservedVariant, published: PublishedLine) -> str:
    return (
        f"publication {published.tag} ({published.merge[:12]}) of {variant.spec.repository} was"
        " recorded and is not on record any more"
    )


def _accept_remedy(title: str) -> str:
    namespace, _, name = title.partition("/")
    return (
        "or, if the older copy is meant, take what the repositories have published as the truth:"
        f" `fanout accept-records {name} -n {namespace} --reason WHY`"
    )
