"""Approvals and evidence about a publication, as records, reviews and machine answers have them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fanout.api.publication_view import ApprovalView, EvidenceView
from fanout.api.record_objects import ApprovalSpec, EvidenceSpec
from fanout.plan.evidence.review_approvals import parse_reviewer
from fanout.plan.history.history_entry import PublicationCommit
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.values import Value


class RecordIndex(Value):
    """Evidence of a policy that was not withdrawn, by stage and revision, and its approvals."""

    evidence: Mapping[tuple[str, str], Sequence[RecordEntry]]
    # Evidence that names a commit and no revision, by stage and commit.
    commit_evidence: Mapping[tuple[str, str], Sequence[RecordEntry]]
    approvals: Mapping[str, RecordEntry]  # by name, also those that were revoked since

    @property
    def reported_commits(self) -> Mapping[str, Collection[str]]:
        """Return the commits that evidence names, by stage."""
        commits: dict[str, set[str]] = {}
        for stage, commit in self.commit_evidence:
            commits.setdefault(stage, set()).add(commit)
        return commits


def index_records(records: Iterable[RecordEntry]) -> RecordIndex:
    """Index all records of a policy, in record order."""
    evidence: dict[tuple[str, str], list[RecordEntry]] = {}
    commit_evidence: dict[tuple[str, str], list[RecordEntry]] = {}
    approvals: dict[str, RecordEntry] = {}
    for record in active_records(records):
        spec = record.spec
        if isinstance(spec, EvidenceSpec) and not record.withdrawn:
            if spec.revision:
                evidence.setdefault((spec.stage, spec.revision), []).append(record)
            else:
                commit_evidence.setdefault((spec.stage, spec.commit or ""), []).append(record)
        elif isinstance(spec, ApprovalSpec):
            approvals[record.name] = record
    return RecordIndex(evidence, commit_evidence, approvals)


def list_approvals(
    publication: RecordedPublication, commit: PublicationCommit | None, index: RecordIndex
) -> tuple[ApprovalView, ...]:
    """Return the approvals that let a publication through, oldest first and reviews last.

    The release on record names them: who was entitled then, and what had expired, nothing else
    tells. Where no release is on record, the message of the publication names who approved.
    """
    if publication.grant is None:
        names = commit.approvers if commit is not None else ()
        return tuple(ApprovalView(name) for name in names)
    counted = [
        name
        for kind, _, name in (it.partition("/") for it in publication.grant.by)
        if kind == "Approval"
    ]
    recorded = [it for name in counted if (it := index.approvals.get(name)) is not None]
    return (
        *(
            ApprovalView(it.by, it.spec.check, it.at, it.name)
            for it in sorted(recorded, key=lambda it: it.at)
            if isinstance(it.spec, ApprovalSpec)
        ),
        *(ApprovalView(person) for name in counted if (person := parse_reviewer(name))),
    )


def list_evidence(
    publication: RecordedPublication, index: RecordIndex, commits: Collection[str] = ()
) -> tuple[EvidenceView, ...]:
    """Return what was reported about a publication while it was in force, oldest first.

    `commits` are those of the branch, besides its own, at which the package was the same.
    """
    line, previous, grant = publication.line, publication.previous, publication.grant
    # From then on answers about the revision are about this publication. Answers to `requires` come
    # before it, so only an earlier publication of the same revision limits them.
    since = previous.at if previous is not None else None
    if previous is not None and previous.revision == line.revision:
        since = grant.at if grant is not None else line.at
    by_revision = index.evidence.get((publication.stage, line.revision), ())
    by_commit = (
        it
        for commit in dict.fromkeys((line.merge, *commits))
        for it in index.commit_evidence.get((publication.stage, commit), ())
    )
    recorded = [
        EvidenceView(it.spec.check, it.spec.status, it.at, it.by, it.name, it.spec.link)
        for it in (*by_revision, *by_commit)
        if isinstance(it.spec, EvidenceSpec)
        and (since is None or since <= it.at)
        and (publication.until is None or it.at < publication.until)
        and (not it.spec.variants or publication.variant in it.spec.variants)
    ]
    answered = [EvidenceView(it.check, it.verdict, it.at) for it in publication.answers]
    return tuple(sorted([*recorded, *answered], key=lambda it: it.at))
