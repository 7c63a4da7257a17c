"""Views of a policy's history."""

from datetime import datetime

from fanout.api.publication_view import (
    HistoryMeta,
    PublicationSpec,
    PublicationStatus,
    PublicationView,
    StageRevisionSpec,
    StageRevisionStatus,
    StageRevisionView,
)
from fanout.plan.history.recorded_publications import HistoryEntry, StageRevision
from fanout.present.policy_entry import fanout_labels, policy_name
from fanout.reconcile.pass_results import PolicyResult
from fanout.selection.ref_names import parse_publication_number

_SHORT_DIGITS = 12  # digits of a commit in the name of a publication without a tag


class HistoryViews:
    """Builder of the views of one policy's history."""

    def __init__(self, item: PolicyResult) -> None:
        self._item = item
        self._policy = policy_name(item)
        # Several Repository objects may be one repository; the one of its variants is shown.
        self._repositories = {
            variant.observed.repository_state.identity: variant.spec.repository
            for variant in reversed(item.variants)
        }

    def publication(self, entry: HistoryEntry) -> PublicationView:
        """Return the view of one publication."""
        recorded, line = entry.recorded, entry.recorded.line
        url = recorded.repository.partition("#")[0]
        repository = self._repositories.get(recorded.repository, url)
        number = parse_publication_number(line.tag, recorded.path)
        suffix = f"v{number}" if number else line.merge[:_SHORT_DIGITS]
        name = f"{recorded.variant}/{suffix}"
        return PublicationView(
            metadata=self._meta(name, line.at, recorded.stage, repository),
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
                state="InForce"
                if recorded.until is None
                else "Removed"
                if recorded.is_removed
                else "Replaced",
                until=recorded.until,
                tag=line.tag,
                commit=line.merge,
                tree=line.tree,
                digest=line.digest,
                admission=entry.admission,
                approvals=entry.approvals,
                evidence=entry.evidence,
                dropped=line.rejected,
                recovered=recorded.is_recovered,
            ),
        )

    def stage_revision(self, group: StageRevision) -> StageRevisionView:
        """Return the view of one stretch of a revision in a stage."""
        admissions = {entry.admission.message: entry.admission for entry in group.entries}
        # A revision that a stage took again has the same stage and revision as before.
        suffix = f"/{group.number}" if group.number > 1 else ""
        name = f"{self._policy}/{group.stage}/{group.revision}{suffix}"
        in_force = group.ended is None and group.entries
        return StageRevisionView(
            metadata=self._meta(name, group.began, group.stage),
            spec=StageRevisionSpec(self._policy, group.stage, group.revision),
            status=StageRevisionStatus(
                state="InForce" if in_force else "Ended",
                passed=group.passed,
                ended=group.ended,
                variants=len(group.variants),
                publications=len(group.entries),
                dropped=sum(len(it.recorded.line.rejected) for it in group.entries),
                admissions=tuple(admissions.values()),
            ),
        )

    def _meta(self, name: str, at: datetime, stage: str, repository: str = "") -> HistoryMeta:
        return HistoryMeta(
            name=name,
            namespace=self._item.resolved_policy.namespace,
            labels=fanout_labels(self._item, stage, repository),
            creation_timestamp=at,
        )
