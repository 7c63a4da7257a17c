"""A forge in memory, of no host: it gives the answers that a test wants to merges and edits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from forge_states import HOST, REF, REMOTE, request

from fanout.errors import FanoutError
from fanout.plan.actions import RequestChange
from fanout.plan.observation.merge_outcome import Merged, MergeOutcome
from fanout.plan.observation.observed_request import (
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestDraft,
    RequestEdit,
    RequestPart,
)
from fanout.ports import Forge

EDGE = RepositoryName("org", "edge")


@dataclass
class ForgeDouble:
    """Forge and directory at once; `calls` has what was asked, in order."""

    merge_outcome: MergeOutcome | FanoutError = field(default_factory=Merged)
    label_error: FanoutError | None = None
    edit_failures: Mapping[RequestPart, FanoutError] | FanoutError = field(default_factory=dict)
    keeps_text_versions: bool = True
    present: ObservedRequest = field(default_factory=lambda: request().request)
    calls: list[str] = field(default_factory=list)
    host: str = HOST
    checks_when_merging: bool = True

    def forge_of(self, url: str) -> tuple[Forge, RepositoryName]:
        assert url == REMOTE.url
        return cast(Forge, self), EDGE

    def for_policy(self, policy: str) -> Forge:
        return cast(Forge, self)

    def share_creations(self, demand: Mapping[str, int]) -> None:
        assert set(demand) <= {"default/monitoring"}

    def open_request(self, repository: RepositoryName, draft: RequestDraft) -> ObservedRequest:
        self.calls.append("open")
        return self.present

    def request(self, repository: RepositoryName, number: int) -> ObservedRequest:
        self.calls.append("request")
        return self.present

    def request_reviews(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> Collection[str]:
        self.calls.append(f"reviewers {' '.join(reviewers)}")
        return ()

    def create_label(self, repository: RepositoryName, name: str) -> None:
        self.calls.append(f"label {name}")

    def edit_request(
        self, repository: RepositoryName, request: ObservedRequest, edit: RequestEdit
    ) -> Mapping[RequestPart, FanoutError]:
        self.calls.append(f"edit {', '.join(edit.parts)}")
        if isinstance(self.edit_failures, FanoutError):
            raise self.edit_failures
        return self.edit_failures

    def add_labels(
        self, repository: RepositoryName, request: ObservedRequest, labels: Collection[str]
    ) -> None:
        self.calls.append(f"labels {' '.join(labels)}")
        if self.label_error is not None:
            raise self.label_error

    def statuses(self, repository: RepositoryName, commit: str) -> Sequence[CommitStatus]:
        return ()

    def set_status(self, repository: RepositoryName, commit: str, status: CommitStatus) -> None:
        self.calls.append(f"status {status.state}")

    def merge_request(self, repository: RepositoryName, merge: GuardedMerge) -> MergeOutcome:
        self.calls.append("merge")
        if isinstance(self.merge_outcome, FanoutError):
            raise self.merge_outcome
        return self.merge_outcome


def change_of(**fields: object) -> RequestChange:
    """Return a change of the request that `forge_states` has."""
    shown = request().request
    values = {
        "remote": REMOTE,
        "repository": REMOTE.url,
        "policy": "default/monitoring",
        "head_ref": REF,
        "head_commit": shown.head_commit,
        "request": shown,
        **fields,
    }
    return RequestChange(**values)  # type: ignore[arg-type]
