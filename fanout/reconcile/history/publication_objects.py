"""Views of a policy's history, as plain data."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from fanout.api.object_meta import Label, Model
from fanout.api.publication_view import (
    AdmissionView,
    ApprovalView,
    EvidenceView,
    HistoryMeta,
    PublicationSpec,
    PublicationStatus,
    PublicationView,
    StageRevisionSpec,
    StageRevisionStatus,
    StageRevisionView,
)
from fanout.api.view_base import label_verdict
from fanout.plan.history.admission import Admission
from fanout.plan.history.admission_wording import describe_admission
from fanout.plan.history.history_entry import HistoryEntry
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.history.stage_revisions import StageRevision
from fanout.plan.records.policy_status import format_instant
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.rollback.publication_history import parse_publication_number

_SHORT_DIGITS = 12  # digits of a commit in the name of a publication without a tag


class HistoryViews:
    """Builder of the views of one policy's history."""

    def __init__(self, item: PolicyResult) -> None:
        resolved = item.resolved_policy
        self._namespace = resolved.namespace
        self._policy = resolved.name if resolved.upstream_policy is not None else ""
        # Several Repository objects may be one repository; the one of its variants is shown.
        self._repositories = {
            variant.observed.repository_state.identity: variant.spec.repository
            for variant in reversed(item.variants)
        }

    def publication(self, entry: HistoryEntry) -> dict[str, Any]:
        """Return one publication as plain data."""
        recorded, line = entry.recorded, entry.recorded.line
        url = recorded.repository.partition("#")[0]
        repository = self._repositories.get(recorded.repository, url)
        number = parse_publication_number(line.tag, recorded.path)
        suffix = f"v{number}" if number else line.merge[:_SHORT_DIGITS]
        labels = {Label.STAGE: recorded.stage, Label.REPOSITORY: repository}
        view = PublicationView(
            metadata=self._meta(f"{recorded.variant}/{suffix}", line.at, labels),
            spec=PublicationSpec(
                policy=self._policy,
                stage=recorded.stage,
                variant=recorded.variant,
                repository=repository,
                path=recorded.path,
                revision=line.revision,
                upstream_commit=line.commit,
            ),
            status=PublicationStatus(
                state=_find_state(recorded),
                until=format_instant(recorded.until) if recorded.until else None,
                tag=line.tag,
                commit=line.merge,
                tree=line.tree,
                digest=line.digest,
                admission=_build_admission(entry.admission),
                approvals=tuple(
                    ApprovalView(
                        by=it.by,
                        check=it.check,
                        at=format_instant(it.at) if it.at else None,
                        record=it.record,
                    )
                    for it in entry.approvals
                ),
                evidence=tuple(
                    EvidenceView(
                        check=it.check,
                        result=label_verdict(it.verdict),
                        at=format_instant(it.at),
                        by=it.by,
                        record=it.record,
                        link=it.link,
                    )
                    for it in entry.evidence
                ),
                dropped=line.rejected,
                recovered=recorded.is_recovered,
            ),
        )
        return _as_plain_data(view)

    def stage_revision(self, group: StageRevision) -> dict[str, Any]:
        """Return one stretch of a revision in a stage as plain data."""
        admissions = {
            describe_admission(entry.admission): entry.admission for entry in group.entries
        }
        # A revision that a stage took again has the same stage and revision as before.
        suffix = f"/{group.number}" if group.number > 1 else ""
        in_force = group.ended is None and group.entries
        view = StageRevisionView(
            metadata=self._meta(
                f"{self._policy}/{group.stage}/{group.revision}{suffix}",
                group.began,
                {Label.STAGE: group.stage},
            ),
            spec=StageRevisionSpec(policy=self._policy, stage=group.stage, revision=group.revision),
            status=StageRevisionStatus(
                state="InForce" if in_force else "Ended",
                passed=format_instant(group.passed) if group.passed else None,
                ended=format_instant(group.ended) if group.ended else None,
                variants=len(group.variants),
                publications=len(group.entries),
                dropped=sum(len(it.recorded.line.rejected) for it in group.entries),
                admissions=tuple(map(_build_admission, admissions.values())),
            ),
        )
        return _as_plain_data(view)

    def _meta(self, name: str, at: datetime, labels: Mapping[Label, str]) -> HistoryMeta:
        own = {Label.POLICY: self._policy, **labels}
        return HistoryMeta(
            name=name,
            namespace=self._namespace,
            labels={key.value: value for key, value in own.items() if value},
            creation_timestamp=format_instant(at),
        )


def _find_state(publication: RecordedPublication) -> Literal["InForce", "Replaced", "Removed"]:
    if publication.until is None:
        return "InForce"
    return "Removed" if publication.is_removed else "Replaced"


def _build_admission(admission: Admission) -> AdmissionView:
    decision = admission.decision
    spec: Mapping[str, Any] = decision.spec if decision is not None else {}
    return AdmissionView(
        type=admission.type.value,
        by=admission.by,
        decision=decision.name if decision is not None else "",
        reason=spec.get("reason", ""),
        overrides=tuple(spec.get("overrides", ())),
        promotion_policies=admission.promotion_policies,
        message=describe_admission(admission),
    )


def _as_plain_data(view: Model) -> dict[str, Any]:
    return view.model_dump(mode="json", by_alias=True, exclude_none=True)
