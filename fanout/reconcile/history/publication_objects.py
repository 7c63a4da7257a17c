"""Views of a policy's history, as plain data with the fields of their models in `api`."""

from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.object_meta import API_VERSION, Label
from fanout.api.view_base import label_verdict
from fanout.plan.history.admission import Admission
from fanout.plan.history.admission_wording import describe_admission
from fanout.plan.history.history_entry import HistoryEntry
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.history.stage_revisions import StageRevision
from fanout.reconcile.pass_results import PolicyResult
from fanout.selection.ref_names import parse_publication_number

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
        name = f"{recorded.variant}/{suffix}"
        return {
            "apiVersion": API_VERSION,
            "kind": "PublicationView",
            "metadata": self._meta(name, line.at, recorded.stage, repository),
            "spec": {
                "policy": self._policy,
                "stage": recorded.stage,
                "variant": recorded.variant,
                "repository": repository,
                "path": recorded.path,
                "revision": line.revision,
                "upstreamCommit": line.commit,
            },
            "status": {
                "state": _find_state(recorded),
                **_instants(until=recorded.until),
                "tag": line.tag,
                "commit": line.merge,
                "tree": line.tree,
                "digest": line.digest,
                "admission": _build_admission(entry.admission),
                "approvals": [
                    {"by": it.by, "check": it.check, **_instants(at=it.at), "record": it.record}
                    for it in entry.approvals
                ],
                "evidence": [
                    {
                        "check": it.check,
                        "result": label_verdict(it.verdict).value,
                        "at": format_instant(it.at),
                        "by": it.by,
                        "record": it.record,
                        "link": it.link,
                    }
                    for it in entry.evidence
                ],
                "dropped": list(line.rejected),
                "recovered": recorded.is_recovered,
            },
        }

    def stage_revision(self, group: StageRevision) -> dict[str, Any]:
        """Return one stretch of a revision in a stage as plain data."""
        admissions = {
            describe_admission(entry.admission): entry.admission for entry in group.entries
        }
        # A revision that a stage took again has the same stage and revision as before.
        suffix = f"/{group.number}" if group.number > 1 else ""
        name = f"{self._policy}/{group.stage}/{group.revision}{suffix}"
        in_force = group.ended is None and group.entries
        return {
            "apiVersion": API_VERSION,
            "kind": "StageRevisionView",
            "metadata": self._meta(name, group.began, group.stage),
            "spec": {
                "policy": self._policy,
                "stage": group.stage,
                "revision": group.revision,
            },
            "status": {
                "state": "InForce" if in_force else "Ended",
                **_instants(passed=group.passed, ended=group.ended),
                "variants": len(group.variants),
                "publications": len(group.entries),
                "dropped": sum(len(it.recorded.line.rejected) for it in group.entries),
                "admissions": [_build_admission(it) for it in admissions.values()],
            },
        }

    def _meta(self, name: str, at: datetime, stage: str, repository: str = "") -> dict[str, Any]:
        texts = (self._policy, stage, repository)
        return {
            "name": name,
            "namespace": self._namespace,
            "labels": {key: text for key, text in zip(_LABEL_KEYS, texts, strict=True) if text},
            "creationTimestamp": format_instant(at),
        }


_LABEL_KEYS = (Label.POLICY.value, Label.STAGE.value, Label.REPOSITORY.value)


def _instants(**instants: datetime | None) -> dict[str, str]:
    """Return the instants that are known, as text."""
    return {name: format_instant(at) for name, at in instants.items() if at is not None}


def _find_state(publication: RecordedPublication) -> str:
    if publication.until is None:
        return "InForce"
    return "Removed" if publication.is_removed else "Replaced"


def _build_admission(admission: Admission) -> dict[str, Any]:
    decision = admission.decision
    fields = decision.fields if decision is not None else {}
    return {
        "type": admission.type.value,
        "by": admission.by,
        "decision": decision.name if decision is not None else "",
        "reason": fields.get("reason", ""),
        "overrides": list(fields.get("overrides", ())),
        "promotionPolicies": list(admission.promotion_policies),
        "message": describe_admission(admission),
    }
