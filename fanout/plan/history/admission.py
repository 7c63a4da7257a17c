"""Admission of publications: by automatic promotion, a decision, a pin, or a person's merge.

The release on record names the objects that it rests on. Releases of older versions name none;
then the decision is found as the gates find it, and automation is not assumed.
"""

from collections.abc import Sequence
from enum import StrEnum

from fanout.api.gate_vocabulary import Action
from fanout.api.record_objects import DecisionSpec
from fanout.plan.history.publication_commit import PublicationCommit
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.policy_status import GrantLine
from fanout.values import Value


class AdmissionType(StrEnum):
    """Way by which a publication came into force."""

    AUTOMATIC = "Automatic"
    PROMOTED = "Promoted"  # by a Decision to publish
    ROLLED_BACK = "RolledBack"  # by a Decision to roll back
    PINNED = "Pinned"  # by a pin in the policy's spec
    MERGED = "Merged"  # by a person on the forge, with open gates
    OUT_OF_BAND = "OutOfBand"  # by a person, without the gates
    UNCHANGED = "Unchanged"  # the package is the one that was published before
    UNKNOWN = "Unknown"


class Admission(Value):
    """Objects and person that released a publication."""

    type: AdmissionType
    by: str = ""  # "name <email>"; "": no person, or unknown
    decision: RecordEntry | None = None
    promotion_policies: tuple[str, ...] = ()
    policy: str = ""  # UpstreamPolicy with the pin


def find_admission(
    publication: RecordedPublication,
    commit: PublicationCommit | None,
    records: Sequence[RecordEntry],
) -> Admission:
    """Return what released a publication; `records` are all of its policy, in record order."""
    merged_by = commit.author if commit is not None else ""
    if publication.is_unchanged:
        return Admission(AdmissionType.UNCHANGED)
    if publication.line.out_of_band:
        return Admission(AdmissionType.OUT_OF_BAND, merged_by)
    grant = publication.grant
    released = _find_release(publication, grant, records) if grant is not None else None
    if commit is not None and not commit.is_own and not publication.is_recovered:
        decision = released.decision if released is not None else None
        return Admission(AdmissionType.MERGED, merged_by, decision)
    return released or Admission(AdmissionType.UNKNOWN)


def _find_release(
    publication: RecordedPublication, grant: GrantLine, records: Sequence[RecordEntry]
) -> Admission | None:
    """Return what the release on record rests on, or None if that is not on record."""
    names = [entry.partition("/")[::2] for entry in grant.by]
    decision_names = {name for kind, name in names if kind == "Decision"}
    decisions = [it for it in records if it.name in decision_names]
    if not grant.by:
        decisions = _find_decisions(publication, grant, records)
    if decisions:
        decision = decisions[-1]
        is_rollback = decision.action is Action.ROLLBACK
        kind = AdmissionType.ROLLED_BACK if is_rollback else AdmissionType.PROMOTED
        return Admission(kind, decision.by, decision)
    pinning = [name for kind, name in names if kind == "UpstreamPolicy"]
    if pinning:
        return Admission(AdmissionType.PINNED, policy=pinning[0])
    promotions = tuple(name for kind, name in names if kind == "PromotionPolicy")
    if promotions:
        return Admission(AdmissionType.AUTOMATIC, promotion_policies=promotions)
    return None


def _find_decisions(
    publication: RecordedPublication, grant: GrantLine, records: Sequence[RecordEntry]
) -> list[RecordEntry]:
    """Return the decisions before a release that were about the draft, in record order."""
    earlier = _list_earlier(grant, records)
    withdrawn = {
        it.spec.withdraws
        for it in earlier
        if isinstance(it.spec, DecisionSpec) and it.action is Action.WITHDRAW
    }
    return [it for it in earlier if it.name not in withdrawn and _covers(it, publication, grant)]


def _list_earlier(grant: GrantLine, records: Sequence[RecordEntry]) -> Sequence[RecordEntry]:
    names = [record.name for record in records]
    if grant.records in names:
        return records[: names.index(grant.records) + 1]
    return [record for record in records if record.at <= grant.at]


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
    return not is_applied and (not spec.trees or grant.tree in spec.trees)
