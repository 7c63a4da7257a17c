"""Reasons of conditions and events, one CamelCase word each, with their meanings and classes.

Closed lists, sorted, so that alerts can be written against them. Causes and remedies are in
`docs/troubleshooting/remedies.yaml`.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Self


class ExplainedValue(StrEnum):
    """Base of values that a line explains, their `meaning`."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """Create a member whose text is the word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Reason(ExplainedValue):
    """Reason of a condition; `meaning` explains it in a line."""

    ADMISSION_MISSING = "AdmissionMissing", "nothing proves who created a record"
    ADOPTION_AWAITS = "AdoptionAwaits", "the first draft of an adopted package needs a promotion"
    ADOPTION_BASE_MISSING = "AdoptionBaseMissing", "the origin of an adopted package is unknown"
    AFTER_FAILED = "AfterFailed", "the revision failed in an earlier stage"
    AFTER_PENDING = "AfterPending", "the revision has not passed an earlier stage"
    AMBIGUOUS_VERSION = "AmbiguousVersion", "two tags have the same version"
    ANSWER_STALE = "AnswerStale", "the latest check result is too old"
    APPLIED = "Applied", "the record was carried out, or a later one took its place"
    APPROVAL_MISSING = "ApprovalMissing", "the draft has too few approvals"
    ATOMIC_PUSH_UNSUPPORTED = "AtomicPushUnsupported", "the remote does not support atomic pushes"
    AUTOMATION_OFF = "AutomationOff", "automatic promotion is off for the stage"
    BASE_MISSING = "BaseMissing", "the base of downstream edits is missing"
    BRANCH_MISSING = "BranchMissing", "the repository lacks the branch to publish to"
    BRANCH_REWRITTEN = "BranchRewritten", "the branch lacks the commit of a publication"
    BUDGET_EXHAUSTED = "BudgetExhausted", "the in-flight limit is reached"
    CHANGES_REQUESTED = "ChangesRequested", "an approver requests changes of the draft"
    CHECK_SETTLING = "CheckSettling", "the settle time of a check is running"
    CHECK_TIMED_OUT = "CheckTimedOut", "a check had no result before its timeout"
    CLUSTER_DENIED = "ClusterDenied", "the API server denied access"
    CLUSTER_UNAVAILABLE = "ClusterUnavailable", "the API server gave no usable response"
    CONFLICT_DECIDED = "ConflictDecided", "a merge conflict was resolved"
    CONTRADICTION = "Contradiction", "reports of one check contradict each other"
    DEADLINE_EXCEEDED = "DeadlineExceeded", "a variant was in flight longer than its deadline"
    DECISION_WAITS = "DecisionWaits", "an active decision does not apply to the current candidate"
    DELETION_REFUSED = "DeletionRefused", "the remote does not allow deletion of draft branches"
    DEPENDENCY_PENDING = "DependencyPending", "a dependency of the variant is not ready"
    DISK_FULL = "DiskFull", "the disk of the mirrors is full"
    DRAFT_BROKEN = "DraftBroken", "a commit on the draft makes it unusable"
    DRAFT_EDITED = "DraftEdited", "a rollback would drop commits on the open draft"
    DUPLICATE_TARGET = "DuplicateTarget", "two target entries select the same object"
    EDIT_FAILED = "EditFailed", "an edit of a manifest had an unexpected result"
    EDITED_DOWNSTREAM = "EditedDownstream", "the published package was changed, reverted or removed"
    EFFECTIVE = "Effective", "the record counts"
    ENFORCED = "Enforced", "branch protection requires the commit status of fanout"
    ENFORCEMENT_UNKNOWN = (
        "EnforcementUnknown",
        "it is unknown whether branch protection is sufficient",
    )
    EXPIRED = "Expired", "the record expired"
    EXPRESSION_ERROR = "ExpressionError", "an expression failed or has an unusable value"
    FOREIGN_REF = "ForeignRef", "a push would change a ref of another owner"
    FORGE_DENIED = "ForgeDenied", "the forge denied access"
    FORGE_REFUSES = "ForgeRefuses", "the forge refused the merge or the change"
    FORGE_UNAVAILABLE = "ForgeUnavailable", "the forge gave no usable response"
    FROM_THE_FUTURE = (
        "FromTheFuture",
        "the date of a record is more than five minutes in the future",
    )
    FUNCTION_UNAVAILABLE = "FunctionUnavailable", "a function is not allowed or not installed"
    GIT_MISSING = "GitMissing", "the program git is not installed"
    GIT_TIMEOUT = "GitTimeout", "git did not finish in time"
    GROUP_AWAITS = "GroupAwaits", "an earlier group of the rollout has not passed"
    HALTED = "Halted", "too many variants of the stage failed"
    INTERNAL_ERROR = "InternalError", "an internal error stopped the processing of this object"
    INVALID_AUTHOR = "InvalidAuthor", "an author name or address cannot be used in a commit"
    INVALID_MANIFEST = "InvalidManifest", "a file is not a valid YAML file of Kubernetes objects"
    INVALID_MESSAGE = "InvalidMessage", "a commit message cannot be written"
    INVALID_OBJECT = "InvalidObject", "an object has errors"
    INVALID_PACKAGE = "InvalidPackage", "a directory is not a usable package"
    INVALID_PATH = "InvalidPath", "the path cannot hold a package"
    INVALID_PLAN = "InvalidPlan", "a file is not a saved plan"
    INVALID_RECORD = "InvalidRecord", "a record has errors"
    INVALID_REF_NAME = "InvalidRefName", "a branch or tag name is not valid in Git"
    INVALID_SCHEDULE = "InvalidSchedule", "a schedule is not valid or never fires"
    INVALID_SETTING = "InvalidSetting", "an option or environment variable has an invalid value"
    INVALID_TIME = "InvalidTime", "a value is not a valid time"
    LIMIT_EXCEEDED = "LimitExceeded", "a limit of size, time or count is exceeded"
    LISTED = "Listed", "the repository is reachable"
    MERGE_ACCEPTED = "MergeAccepted", "the forge merges the pull request later"
    MERGE_AWAITED = "MergeAwaited", "a person has to merge the pull request"
    MERGE_CONFLICT = "MergeConflict", "the draft has undecided merge conflicts"
    MERGE_STYLE_FORBIDDEN = "MergeStyleForbidden", "the repository forbids the merge style"
    MIN_READY_RUNNING = "MinReadyRunning", "the time `rollout.minReady` has not elapsed"
    MIRROR_BUSY = "MirrorBusy", "another process uses the mirror"
    MIRROR_DAMAGED = "MirrorDamaged", "a local mirror is damaged"
    MIRROR_MISSING = "MirrorMissing", "a local mirror is missing"
    MIRROR_UNUSABLE = "MirrorUnusable", "a local mirror cannot be read or written"
    NEVER_PUBLISHED = "NeverPublished", "this revision was never published for the variant"
    NO_DOCUMENT = "NoDocument", "a YAML file lacks an expected document"
    NO_DRAFT = "NoDraft", "there is no draft of the candidate"
    NO_FILES = "NoFiles", "no directory with objects was given"
    NO_OBJECT_ID = "NoObjectId", "a value is not a Git object ID"
    NO_REVISION = "NoRevision", "no upstream revision matches the policy"
    NO_TARGETS = "NoTargets", "the policy or the stage has no variant"
    NOT_ENFORCED = "NotEnforced", "branch protection does not require the commit status of fanout"
    NOT_ENTITLED = "NotEntitled", "the author of an approval is not an approver"
    NOT_FOUND = "NotFound", "nothing has this name"
    NOT_IN_STAGE = "NotInStage", "the target is in no stage of the policy"
    NOTHING_COUNTS = "NothingCounts", "all variants of the stage are suspended, offline or skipped"
    NOTHING_TO_DO = "NothingToDo", "the command would change nothing"
    OBJECT_FORMAT_UNSUPPORTED = "ObjectFormatUnsupported", "the repository uses SHA-256 objects"
    OBJECT_MISSING = "ObjectMissing", "a Git object is missing from the mirror"
    OFFLINE = "Offline", "the target is offline"
    OTHER_INSTALLATION = "OtherInstallation", "another installation owns the draft or path"
    OUT_OF_BAND = "OutOfBand", "a draft was merged before its gates opened"
    OWN_CHANGE = "OwnChange", "the author of an approval changed the draft"
    PACKAGE_BROKEN = "PackageBroken", "a published package has invalid files"
    PATH_BLOCKED = "PathBlocked", "a file is at the path of a directory"
    PATH_CHANGED = "PathChanged", "the path of the variant changed during a rollback or a move"
    PATH_COLLISION = "PathCollision", "two variants have equal or nested paths"
    PATH_TAKEN = "PathTaken", "the path or branch of the variant is in use"
    PINNED = "Pinned", "the stage is pinned to another revision"
    PLACE_LEFT = "PlaceLeft", "the old package of a moved variant still exists"
    PLAN_OUTDATED = "PlanOutdated", "the saved plan is outdated"
    PROGRESSING = "Progressing", "the rollout is in progress"
    PROPAGATION_HELD = "PropagationHeld", "a `propagateWhen` condition is false"
    PUSH_DENIED = "PushDenied", "the remote denied the push"
    PUSH_REFUSED = "PushRefused", "the remote refused the push"
    RATE_LIMITED = "RateLimited", "the rate limit of the forge is reached"
    READY = "Ready", "all variants are published and verified"
    RECORD_UNREADABLE = "RecordUnreadable", "a record cannot be read"
    RECORDED = "Recorded", "the record is in the records repository"
    RECORDED_EARLY = "RecordedEarly", "the evidence is older than what it is about"
    RECORDS_LOST = "RecordsLost", "the records of the policy are missing"
    RECORDS_NOT_CONFIGURED = (
        "RecordsNotConfigured",
        "no existing records repository is named for objects of a cluster",
    )
    RECORDS_REWOUND = "RecordsRewound", "the records were reset to an older state"
    RECORDS_UNREADABLE = "RecordsUnreadable", "the records repository cannot be read"
    REF_NAME_CLASH = "RefNameClash", "another ref of the remote has a conflicting name"
    REF_WITHOUT_LEASE = (
        "RefWithoutLease",
        "a push would change a ref without checking its current value",
    )
    REF_WRITTEN_TWICE = "RefWrittenTwice", "one push would write a ref twice"
    REMOTE_DENIED = "RemoteDenied", "the remote denied access"
    REMOTE_FAILED = "RemoteFailed", "the remote failed to store or send objects"
    REMOTE_LOCKED = "RemoteLocked", "a lock on the remote is in the way"
    REMOTE_MOVED = "RemoteMoved", "the remote changed during the pass"
    REMOTE_NOT_FOUND = "RemoteNotFound", "the repository was not found"
    REMOTE_OBJECTS_REFUSED = "RemoteObjectsRefused", "Git refused an object of the remote"
    REMOTE_UNAVAILABLE = "RemoteUnavailable", "the remote cannot be reached"
    REMOVAL_AWAITS = "RemovalAwaits", "variants of later stages are removed first"
    RENDER_FAILED = "RenderFailed", "the variant cannot be rendered"
    REPOSITORY_CHANGED_TWICE = "RepositoryChangedTwice", "one pass would change a repository twice"
    REPOSITORY_NOT_MADE = "RepositoryNotMade", "a local repository cannot be created"
    REPOSITORY_UNAVAILABLE = "RepositoryUnavailable", "the repository of the variant cannot be read"
    REQUEST_CLOSED = "RequestClosed", "the pull request was closed"
    REQUEST_FOREIGN = "RequestForeign", "another pull request uses the branch of fanout"
    REQUEST_HELD = "RequestHeld", "a label holds the pull request"
    REQUEST_OPEN = "RequestOpen", "the draft waits until the open pull request is merged or closed"
    REQUEST_PENDING = "RequestPending", "the pull request is not up to date"
    REQUIRED_INJECTION_MISSING = (
        "RequiredInjectionMissing",
        "a required injection source is missing",
    )
    REQUIRES_FAILED = "RequiresFailed", "a check before publication failed"
    REVISION_QUEUED = "RevisionQueued", "a newer revision waits for the current candidate"
    SECRET_UNUSABLE = "SecretUnusable", "a secret is missing or incomplete"
    SERIALIZED = "Serialized", "a newer revision waits for the revision in flight"
    SIGNATURE_REQUIRED = "SignatureRequired", "the branch takes signed commits only"
    SKIPPED = "Skipped", "the variant is skipped for this revision"
    SOAK_CUT_SHORT = "SoakCutShort", "an earlier stage got a newer revision during the soak time"
    SOAK_RUNNING = "SoakRunning", "the soak time has not elapsed"
    SOURCE_AWAITS = (
        "SourceAwaits",
        "a change of an injected object has to pass earlier stages first",
    )
    STAGE_DRAFT_PENDING = (
        "StageDraftPending",
        "all variants of the stage share the draft, and one of them is held",
    )
    STALE = "Stale", "the drafts that the record names were rewritten"
    STARVING = "Starving", "revisions are replaced before their soak time is over"
    STUCK = "Stuck", "the rollout cannot continue by itself"
    SUBMODULE_REFUSED = "SubmoduleRefused", "a package contains a Git submodule"
    SUPERSEDED = "Superseded", "a later report or a retry replaced the evidence"
    SUSPENDED = "Suspended", "the policy, stage or variant is suspended"
    SWEEP_AWAITED = "SweepAwaited", "the draft is published by the next sweep"
    TAG_MISSING = "TagMissing", "a published tag is missing"
    TAG_MOVED = "TagMoved", "a tag points to another commit"
    TARGET_GONE = "TargetGone", "the target of the variant no longer exists"
    TARGETS_FAILED = "TargetsFailed", "some targets have no variant"
    TARGETS_UNCERTAIN = "TargetsUncertain", "the kind of the targets was defined again"
    TOO_MANY_REMOVALS = "TooManyRemovals", "a pass would remove more variants than the limit allows"
    TREE_MISMATCH = "TreeMismatch", "a package was written with unexpected content"
    UNKNOWN_KIND = "UnknownKind", "the kind does not exist"
    UNKNOWN_REPOSITORY = "UnknownRepository", "the Repository does not exist or is not allowed"
    UNKNOWN_TIME_ZONE = "UnknownTimeZone", "the time zone does not exist"
    UNREADABLE_NAME = "UnreadableName", "a file name is not valid UTF-8"
    UNUSED = "Unused", "no policy that can be evaluated uses the repository"
    URL_REFUSED = "UrlRefused", "the URL is not allowed"
    VERIFICATION_FAILED = "VerificationFailed", "a check after publication failed"
    VERIFICATION_PENDING = "VerificationPending", "a check has no result yet"
    WINDOW_CLOSED = "WindowClosed", "publication is not allowed at this time"
    WITHDRAWN = "Withdrawn", "the record was withdrawn or revoked"
    WOULD_GO_BACK = "WouldGoBack", "the candidate is older than the published revision"
    WRONG_OBJECT = "WrongObject", "an object has another type than expected"
    WRONG_REVISION = "WrongRevision", "the evidence names a revision that the stage does not have"


class ReasonClass(ExplainedValue):
    """Class of a gate's reason; `meaning` explains it in a line."""

    SUSPENDED = "suspended", "a person suspended the rollout"
    OFFLINE = "offline", "the target is offline"
    SKIPPED = "skipped", "a person skipped the revision for the variant"
    DEADLINE = "deadline", "a published variant did not become ready in time"
    STAGE = "stage", "the revision has not passed an earlier stage"
    SOAK = "soak", "a soak time has not elapsed"
    HALTED = "halted", "too many variants of the stage failed"
    GROUP = "group", "an earlier group of the rollout has not passed"
    BUDGET = "budget", "the in-flight limit is reached"
    WINDOW = "window", "publication is not allowed at this time"
    APPROVAL = "approval", "the draft needs approvals"
    EVIDENCE = "evidence", "a check has no result, or failed"
    DEPENDENCY = "dependency", "a dependency has to be ready first"
    CONDITION = "condition", "a `propagateWhen` condition is not true"
    CONFLICT = "conflict", "downstream edits need a review or a decision"
    AUTOMATION = "automation", "automatic promotion is off, or waits for the next sweep"
    DECISION = "decision", "a decision does not apply now"
    DRAFT = "draft", "there is no draft to publish"
    REQUEST = "request", "the pull request of the draft is not merged"
    REVISION = "revision", "the revision cannot be rolled out now"
    TARGETS = "targets", "the stage has no variants, or the target has no stage"
    STUCK = "stuck", "the policy makes no progress"
    ERROR = "error", "an object, package or repository cannot be processed"


_REASONS_BY_CLASS: Mapping[ReasonClass, tuple[Reason, ...]] = {
    ReasonClass.SUSPENDED: (Reason.SUSPENDED, Reason.REQUEST_HELD),
    ReasonClass.OFFLINE: (Reason.OFFLINE,),
    ReasonClass.SKIPPED: (Reason.SKIPPED,),
    ReasonClass.DEADLINE: (Reason.DEADLINE_EXCEEDED,),
    ReasonClass.STAGE: (Reason.AFTER_PENDING, Reason.AFTER_FAILED),
    ReasonClass.SOAK: (Reason.SOAK_RUNNING, Reason.SOAK_CUT_SHORT),
    ReasonClass.HALTED: (Reason.HALTED,),
    ReasonClass.GROUP: (Reason.GROUP_AWAITS,),
    ReasonClass.BUDGET: (Reason.BUDGET_EXHAUSTED,),
    ReasonClass.WINDOW: (Reason.WINDOW_CLOSED,),
    ReasonClass.APPROVAL: (Reason.APPROVAL_MISSING, Reason.CHANGES_REQUESTED),
    ReasonClass.EVIDENCE: (
        Reason.VERIFICATION_PENDING,
        Reason.VERIFICATION_FAILED,
        Reason.CONTRADICTION,
        Reason.CHECK_SETTLING,
        Reason.CHECK_TIMED_OUT,
        Reason.ANSWER_STALE,
        Reason.MIN_READY_RUNNING,
        Reason.REQUIRES_FAILED,
        Reason.WRONG_REVISION,
        Reason.FROM_THE_FUTURE,
    ),
    ReasonClass.DEPENDENCY: (Reason.DEPENDENCY_PENDING, Reason.SOURCE_AWAITS),
    ReasonClass.CONDITION: (Reason.PROPAGATION_HELD, Reason.EXPRESSION_ERROR),
    ReasonClass.CONFLICT: (Reason.MERGE_CONFLICT, Reason.ADOPTION_AWAITS, Reason.EDITED_DOWNSTREAM),
    ReasonClass.AUTOMATION: (Reason.AUTOMATION_OFF, Reason.SWEEP_AWAITED),
    ReasonClass.DECISION: (Reason.DECISION_WAITS,),
    ReasonClass.DRAFT: (Reason.NO_DRAFT, Reason.STAGE_DRAFT_PENDING),
    ReasonClass.REQUEST: (
        Reason.FORGE_DENIED,
        Reason.FORGE_REFUSES,
        Reason.FORGE_UNAVAILABLE,
        Reason.MERGE_ACCEPTED,
        Reason.MERGE_AWAITED,
        Reason.MERGE_STYLE_FORBIDDEN,
        Reason.NOT_ENFORCED,
        Reason.RATE_LIMITED,
        Reason.REQUEST_CLOSED,
        Reason.REQUEST_FOREIGN,
        Reason.REQUEST_OPEN,
        Reason.REQUEST_PENDING,
        Reason.SIGNATURE_REQUIRED,
    ),
    ReasonClass.REVISION: (
        Reason.NO_REVISION,
        Reason.NEVER_PUBLISHED,
        Reason.PINNED,
        Reason.SERIALIZED,
        Reason.REVISION_QUEUED,
        Reason.WOULD_GO_BACK,
    ),
    ReasonClass.TARGETS: (Reason.NO_TARGETS, Reason.NOTHING_COUNTS, Reason.NOT_IN_STAGE),
    ReasonClass.STUCK: (Reason.STUCK, Reason.STARVING),
}
# A variant with one of these stays failed or held until a person mends what is wrong: an object, a
# package, a draft, what runs in the cluster. Waiting for a gate, for time or for a person's
# decision (an approval, a promotion) is none of them. `fanout sweep` exits with 3.
NEEDS_REPAIR: frozenset[str] = frozenset(
    {
        Reason.ADOPTION_BASE_MISSING,
        Reason.BASE_MISSING,
        Reason.BRANCH_REWRITTEN,
        Reason.CHECK_TIMED_OUT,
        Reason.CONTRADICTION,
        Reason.DEADLINE_EXCEEDED,
        Reason.DRAFT_BROKEN,
        Reason.EDITED_DOWNSTREAM,
        Reason.EXPRESSION_ERROR,
        Reason.MERGE_CONFLICT,
        Reason.MERGE_STYLE_FORBIDDEN,
        Reason.PACKAGE_BROKEN,
        Reason.PUSH_REFUSED,
        Reason.REQUIRED_INJECTION_MISSING,
        Reason.REQUIRES_FAILED,
        Reason.SIGNATURE_REQUIRED,
        Reason.TAG_MISSING,
        Reason.TAG_MOVED,
        Reason.TOO_MANY_REMOVALS,
        Reason.VERIFICATION_FAILED,
    }
)
# Ended by approvers alone: the timer of such a check is an expiry or a timeout, which open nothing.
AWAITS_APPROVERS: frozenset[str] = frozenset({Reason.APPROVAL_MISSING, Reason.CHANGES_REQUESTED})
CLASS_BY_REASON: Mapping[str, ReasonClass] = {
    reason.value: reason_class
    for reason_class, reasons in _REASONS_BY_CLASS.items()
    for reason in reasons
}


def is_asked(reason: str, all_reasons: Collection[str]) -> bool:
    """Return whether people are asked for what a hold of this reason waits for.

    Approvers are asked when nothing else is before them: `after` and soak have passed, and nobody
    has closed the pull request. `all_reasons`: those of its variant or stage.
    """
    return reason not in AWAITS_APPROVERS or not any(
        it == Reason.REQUEST_CLOSED
        or CLASS_BY_REASON.get(it) in (ReasonClass.STAGE, ReasonClass.SOAK)
        for it in all_reasons
    )


def classify_reason(reason: str) -> ReasonClass:
    """Return the class of a reason; `error` for reasons that no gate gives."""
    return CLASS_BY_REASON.get(reason, ReasonClass.ERROR)


class NotificationEvent(ExplainedValue):
    """Event that addresses are notified of; `meaning` explains it in a line."""

    APPROVAL_AWAITED = "ApprovalAwaited", "drafts wait for approvals alone"
    MERGE_CONFLICT = "MergeConflict", "drafts have undecided merge conflicts"
    POLICY_STOPPED = "PolicyStopped", "an error stops a whole policy"
    ROLLOUT_DONE = "RolloutDone", "all stages of a policy have passed the same revision"
    STAGE_HALTED = "StageHalted", "more variants of a stage have failed than it tolerates"
    STAGE_PASSED = "StagePassed", "a stage has passed its candidate"
    VARIANT_FAILED = "VariantFailed", "variants have failed at their candidate"


class EventReason(ExplainedValue):
    """Reason of an event; `meaning` explains it in a line."""

    APPROVAL_AWAITED = "ApprovalAwaited", NotificationEvent.APPROVAL_AWAITED.meaning
    DRAFTS_WRITTEN = "DraftsWritten", "drafts were written or replaced"
    MERGE_CONFLICT = "MergeConflict", NotificationEvent.MERGE_CONFLICT.meaning
    PACKAGES_REMOVED = "PackagesRemoved", "packages were removed"
    POLICY_STOPPED = "PolicyStopped", NotificationEvent.POLICY_STOPPED.meaning
    PUBLISHED = "Published", "drafts were published"
    PUSH_FAILED = "PushFailed", "an action on drafts or packages failed"
    REQUESTS_MERGED = "RequestsMerged", "pull requests were merged"
    ROLLOUT_DONE = "RolloutDone", NotificationEvent.ROLLOUT_DONE.meaning
    STAGE_HALTED = "StageHalted", NotificationEvent.STAGE_HALTED.meaning
    STAGE_PASSED = "StagePassed", NotificationEvent.STAGE_PASSED.meaning
    VARIANT_FAILED = "VariantFailed", NotificationEvent.VARIANT_FAILED.meaning


# Reasons of events of type Warning; those of all others are Normal.
WARNING_REASONS = frozenset(
    {
        EventReason.MERGE_CONFLICT,
        EventReason.POLICY_STOPPED,
        EventReason.PUSH_FAILED,
        EventReason.STAGE_HALTED,
        EventReason.VARIANT_FAILED,
    }
)
