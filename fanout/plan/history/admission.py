"""Admission of publications, by whom or what, with their approvals and their evidence.

A publication is admitted by automatic promotion, a decision, a pin, or a person's merge.

The release on record names the objects that it rests on. Releases of older versions name none;
then the decision is found as the gates find it, and automation is not assumed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fanout.api.gate_vocabulary import Action, OverridableGate
from fanout.api.publication_view import Admission, AdmissionType, ApprovalView, EvidenceView
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.plan.history.recorded_publications import PublicationCommit, RecordedPublication
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.records.policy_status import GrantLine
from fanout.values import Value


def find_admission(
    publication: RecordedPublication,
    commit: PublicationCommit | None,
    records: Sequence[RecordEntry],
) -> Admission:
    """Return what released a publication; `records` are all of its policy, in record order."""
    merged_by = commit.author if commit is not None else ""
    if publication.is_unchanged:
        return build_admission(AdmissionType.UNCHANGED)
    if publication.line.out_of_band:
        return build_admission(AdmissionType.OUT_OF_BAND, merged_by)
    grant = publication.grant
    released = _find_release(publication, grant, records) if grant is not None else None
    if commit is not None and not commit.is_own and not publication.is_recovered:
        decision = next((it for it in records if released and it.name == released.decision), None)
        return build_admission(AdmissionType.MERGED, merged_by, decision)
    return released or build_admission(AdmissionType.UNKNOWN)


def _find_release(
    publication: RecordedPublication, grant: GrantLine, records: Sequence[RecordEntry]
) -> Admission | None:
    """Return what the release on record rests on, or None if that is not on record."""
    names = [entry.partition("/")[::2] for entry in grant.by]
    decision_names = {name for kind, name in names if kind == "Decision"}
    decisions = [it for it in records if it.name in decision_names]
    if not grant.by:
        # Decisions before the release that were about the draft, in record order.
        record_names = [record.name for record in records]
        if grant.records in record_names:
            earlier = records[: record_names.index(grant.records) + 1]
        else:
            earlier = [record for record in records if record.at <= grant.at]
        withdrawn = {
            it.spec.withdraws
            for it in earlier
            if isinstance(it.spec, DecisionSpec) and it.action is Action.WITHDRAW
        }
        decisions = [
            it for it in earlier if it.name not in withdrawn and _covers(it, publication, grant)
        ]
    if decisions:
        decision = decisions[-1]
        is_rollback = decision.action is Action.ROLLBACK
        kind = AdmissionType.ROLLED_BACK if is_rollback else AdmissionType.PROMOTED
        return build_admission(kind, decision.by, decision)
    pinning = [name for kind, name in names if kind == "UpstreamPolicy"]
    if pinning:
        return build_admission(AdmissionType.PINNED, policy=pinning[0])
    if promotions := tuple(name for kind, name in names if kind == "PromotionPolicy"):
        return build_admission(AdmissionType.AUTOMATIC, promotion_policies=promotions)
    return None


def _covers(decision: RecordEntry, publication: RecordedPublication, grant: GrantLine) -> bool:
    spec = decision.spec
    if not isinstance(spec, DecisionSpec):
        return False
    is_about = (
        spec.revision == grant.revision
        and (spec.stage or publication.stage) == publication.stage
        and (not spec.variants or publication.variant in spec.variants)
    )
    if not is_about or spec.action not in (Action.PUBLISH, Action.ROLLBACK):
        return False
    if spec.action is Action.ROLLBACK:
        return True
    # One decision is about one step: the publication before used it up.
    previous = publication.previous
    is_applied = previous is not None and decision.at < previous.at
    is_about_revision = not spec.trees or OverridableGate.AFTER in spec.overrides
    return not is_applied and (is_about_revision or grant.tree in spec.trees)


def build_admission(
    kind: AdmissionType,
    by: str = "",
    decision: RecordEntry | None = None,
    promotion_policies: tuple[str, ...] = (),
    policy: str = "",
) -> Admission:
    """Build an admission by a person, a decision, PromotionPolicies or the pin of a policy.

    `by`: "name <email>"; "": no person, or unknown.
    """
    person, spec, decided = format_person(by), None, ""
    if decision is not None and isinstance(decision.spec, DecisionSpec):
        spec = decision.spec
        verb = "rollback" if spec.action is Action.ROLLBACK else "promote"
        decided = f"{format_person(decision.by)}, {verb}"
        if spec.overrides:
            decided += f" with override {', '.join(spec.overrides)}"
        decided += ", conflicts accepted" if spec.accept_conflicts else ""
        decided += f": {spec.reason}" if spec.reason else ""
    match kind:
        case AdmissionType.AUTOMATIC:
            message = f"automatic ({', '.join(promotion_policies)})"
        case AdmissionType.PROMOTED | AdmissionType.ROLLED_BACK:
            message = decided
        case AdmissionType.PINNED:
            message = f"pinned in UpstreamPolicy {policy}"
        case AdmissionType.MERGED:
            merged = f"merged on the forge by {person or 'a person'}"
            message = f"{decided} ({merged})" if decided else merged
        case AdmissionType.OUT_OF_BAND:
            message = f"out of band: merged by {person or 'a person'}"
        case AdmissionType.UNCHANGED:
            message = "package unchanged"
        case AdmissionType.UNKNOWN:
            message = "not recorded"
    return Admission(
        type=kind,
        by=by,
        decision=decision.name if decision is not None else "",
        reason=spec.reason if spec is not None else "",
        overrides=spec.overrides if spec is not None else (),
        promotion_policies=promotion_policies,
        message=message,
    )


def format_person(author: str) -> str:
    """Return the name of "name <email>", or the address if there is no name."""
    name, _, address = author.partition(" <")
    return name or address.rstrip(">")


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
        # The name of an approval by a review ends with the person; names of records have no space.
        *(
            ApprovalView(person)
            for name in counted
            if " " in name and (person := name.rpartition(" ")[2])
        ),
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
