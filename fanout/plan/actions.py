"""Actions of a pass, and its calls about pull requests, as data.

The kinds of actions are a closed list; each action has a sentence for people. A saved
plan holds actions, digests and expected ref ids, but no content and no time, so the
same observation gives the same plan byte for byte (docs/concepts/sweeps-and-plans.md).
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from fanout.errors import FanoutError, RateLimited
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    ObservedRequest,
    RequestDraft,
    RequestEdit,
    StatusState,
)
from fanout.plan.observation.repository_state import Remote, RepositoryState
from fanout.values import Value


class ActionKind(StrEnum):
    """Kind of an action; members are in the order in which actions are executed."""

    # Plans are sorted by the order of these members: a release must be on record
    # before its publication, and drafts are removed only after their content is on
    # the branch.
    WRITE_TRACE = "WriteTrace"  # of the last record that stops something
    RELEASE = "Release"  # recorded before any publication
    WRITE_DRAFT = "WriteDraft"
    DRAFT_REMOVAL = "DraftRemoval"  # on a branch that people review, and that removes packages
    PUBLISH = "Publish"
    REMOVE_PACKAGE = "RemovePackage"  # from the variant's previous location
    REMOVE_DRAFT = "RemoveDraft"
    OPEN_REQUEST = "OpenRequest"  # a pull request
    UPDATE_REQUEST = "UpdateRequest"  # its title, text, draft flag, labels or reviewers
    CLOSE_REQUEST = "CloseRequest"
    SET_STATUS = "SetStatus"  # of the head of a pull request
    MERGE_REQUEST = "MergeRequest"  # found in Git by the next pass
    RECORD = "Record"  # change of status lines


class ActionSubject(Value, kw_only=True):
    """Policy, one of its stages, or a variant that actions are about."""

    namespace: str
    policy: str  # "": a variant written by hand
    stage: str = ""  # "": none, or of no matter
    variant: str = ""  # "": the policy or the stage

    def build_action(self, kind: ActionKind, **fields: str) -> "PlanAction":
        """Return an action about the subject, with further fields."""
        return PlanAction(
            kind=kind,
            namespace=self.namespace,
            policy=self.policy,
            stage=self.stage,
            variant=self.variant,
            **fields,
        )


class RepositorySubject(ActionSubject, kw_only=True):
    """Subject of actions in one repository."""

    repository: str  # name of the Repository object
    state: RepositoryState


class PlanAction(ActionSubject, kw_only=True):
    """One effect on a variant or a pull request, or one change of the recorded status.

    Of a pull request, `ref` is its head branch, `expected` the head it is to have, and `digest`
    that of its text. A package that a merge of a branch removes has that branch as `ref`.
    """

    kind: ActionKind
    repository: str = ""  # name of the Repository object
    path: str = ""
    revision: str = ""
    digest: str = ""
    tree: str = ""
    ref: str = ""
    expected: str = ""  # present id of the ref; "": absent
    detail: str = ""
    number: str = ""  # of the pull request

    @property
    def merges_branch(self) -> bool:
        """Return whether a branch is merged, which the next pass finds in Git."""
        is_removal = self.kind is ActionKind.REMOVE_PACKAGE and bool(self.ref)
        return is_removal or self.kind is ActionKind.MERGE_REQUEST

    def sentence(self) -> str:
        """Return the sentence that describes the action to people."""
        if self.kind is ActionKind.RELEASE:
            stage_phrase = f" in stage {self.stage}" if self.stage else ""
            return f"release {self.variant} to take {self.revision}{stage_phrase}"
        write = "rewrite" if self.expected else "write"
        verbs = {
            ActionKind.WRITE_TRACE: write,
            ActionKind.WRITE_DRAFT: f"{write} the draft of",
            ActionKind.DRAFT_REMOVAL: write,
            ActionKind.PUBLISH: "publish",
            ActionKind.REMOVE_PACKAGE: "remove the package",
            ActionKind.REMOVE_DRAFT: "remove the",
            ActionKind.OPEN_REQUEST: "open a pull request in",
            ActionKind.UPDATE_REQUEST: "update",
            ActionKind.CLOSE_REQUEST: "close",
            ActionKind.SET_STATUS: "set the status of",
            ActionKind.MERGE_REQUEST: "merge",
        }
        return " ".join(filter(None, (verbs.get(self.kind), self.summary())))

    def summary(self) -> str:
        """Return what the action concerns and how, without its verb, as in a column of a table."""
        location = f"{self.repository}:{self.path}"
        branch = self.ref.removeprefix("refs/heads/")
        # A draft that removes packages is about several paths.
        draft = f"draft of {location}" if self.path else f"branch {branch} of {self.repository}"
        request = f"pull request {self.number} of {self.repository}"
        # A head that is no branch of the repository is named by its request.
        head = f"{self.repository}, {branch}" if branch != self.ref else request
        summaries = {
            ActionKind.WRITE_TRACE: f"{branch} of {self.repository}: {self.detail}",
            ActionKind.RELEASE: self.revision,
            ActionKind.WRITE_DRAFT: f"{location} at {self.revision}",
            ActionKind.DRAFT_REMOVAL: f"{branch} of {self.repository}: remove {self.detail}",
            ActionKind.PUBLISH: f"{location} at {self.revision}",
            ActionKind.REMOVE_PACKAGE: f"{location}: {self.detail}",
            ActionKind.REMOVE_DRAFT: f"{draft}: {self.detail}",
            ActionKind.OPEN_REQUEST: f"{self.repository}: {self.detail}",
            ActionKind.SET_STATUS: f"{head}: {self.detail}",
            ActionKind.RECORD: f"record {self.detail}",
        }
        return summaries.get(self.kind, f"{request}: {self.detail}")

    def as_json(self) -> dict[str, str]:
        """Return the action as JSON data without empty fields."""
        values = ((it, str(getattr(self, it))) for it in self.__struct_fields__)
        return {"kind": self.kind.value, **{name: text for name, text in values if text}}


class Plan(Value):
    """All actions of a pass: policy by policy, in each by kind, stage and variant."""

    actions: tuple[PlanAction, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there are any actions."""
        return bool(self.actions)

    def as_json(self) -> Mapping[str, object]:
        """Return the plan as JSON data."""
        return {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "Plan",
            "actions": [action.as_json() for action in self.actions],
        }


class ActionResult(Value):
    """Result of one action: done, or the problem with its reason.

    `until` is given where a host takes no more calls before that instant; the next pass plans
    the action again.
    """

    action: PlanAction
    is_done: bool
    problem: str = ""
    reason: str = ""
    until: datetime | None = None


def undone_result(action: PlanAction, error: FanoutError) -> ActionResult:
    """Return the result of an action that an error prevented."""
    if isinstance(error, RateLimited):
        # Without the instant, which differs between calls that wait for the same limit.
        return ActionResult(
            action, is_done=False, problem=error.problem, reason=error.reason, until=error.until
        )
    return ActionResult(action, is_done=False, problem=str(error), reason=error.reason)


class RequestStatus(Value):
    """Status of fanout at the head of a pull request."""

    context: str  # "fanout", or "fanout/<install>"
    state: StatusState
    description: str


class RequestChange(Value, kw_only=True):
    """Calls of a pass about one pull request, in the order of the fields below `request`.

    `request` is None for one that is to be opened. The status is set at `head_commit`, or, if
    that is "", at the commit that the same pass pushes to the head branch.
    """

    remote: Remote  # of the repository in Git
    repository: str  # its identity
    policy: str  # "<namespace>/<name>", for which the calls are counted
    head_ref: str  # full name of the head branch
    head_commit: str = ""
    request: ObservedRequest | None = None
    opening: RequestDraft | None = None
    edit: RequestEdit | None = None
    added_labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()  # logins, or "team/NAME"
    status: RequestStatus | None = None
    merge: GuardedMerge | None = None
    closes: bool = False
    actions: tuple[PlanAction, ...] = ()  # that report the calls

    @property
    def kinds(self) -> list[ActionKind]:
        """Kinds of the actions that report the calls."""
        is_edited = self.edit is not None or bool(self.added_labels)
        wanted = {
            ActionKind.OPEN_REQUEST: self.opening is not None,
            ActionKind.UPDATE_REQUEST: self.opening is None and is_edited,
            ActionKind.CLOSE_REQUEST: self.closes,
            ActionKind.SET_STATUS: self.status is not None,
            ActionKind.MERGE_REQUEST: self.merge is not None,
        }
        return [kind for kind, is_wanted in wanted.items() if is_wanted]
