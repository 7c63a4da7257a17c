"""Reasons of conditions, one CamelCase word each, with their meanings and classes.

Closed lists, sorted, so that alerts can be written against them.
"""

from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """Reason of a condition; `meaning` explains it in a line."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Reason":
        """Create a member whose text is the word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    ADOPTION_AWAITS = "AdoptionAwaits", "the first draft of a package found there awaits a person"
    ADOPTION_BASE_MISSING = "AdoptionBaseMissing", "a package found there does not say its origin"
    AFTER_FAILED = "AfterFailed", "a stage before has failed the revision"
    AFTER_PENDING = "AfterPending", "a stage before has not passed the revision yet"
    AMBIGUOUS_VERSION = "AmbiguousVersion", "two tags are one version"
    ANSWER_STALE = "AnswerStale", "an answer is older than it may be"
    APPROVAL_MISSING = "ApprovalMissing", "too few people have approved the draft"
    ATOMIC_PUSH_UNSUPPORTED = "AtomicPushUnsupported", "the remote takes no atomic pushes"
    AUTOMATION_OFF = "AutomationOff", "no administrator has switched automation on"
    BASE_MISSING = "BaseMissing", "what people edited cannot be told from what fanout wrote"
    BRANCH_MISSING = "BranchMissing", "the repository does not have the branch to publish to"
    BUDGET_EXHAUSTED = "BudgetExhausted", "as many variants are in flight as may be"
    CHECK_SETTLING = "CheckSettling", "it is too early to ask a check"
    CHECK_TIMED_OUT = "CheckTimedOut", "a check got no answer in its time"
    CONFLICT_DECIDED = "ConflictDecided", "one side's value was not taken at a merge conflict"
    CONTRADICTION = "Contradiction", "reporters of one check say different things"
    DEADLINE_EXCEEDED = "DeadlineExceeded", "a variant was in flight for too long"
    DECISION_WAITS = "DecisionWaits", "a person's decision has nothing to act on now"
    DELETION_REFUSED = "DeletionRefused", "the remote lets nobody remove branches of drafts"
    DEPENDENCY_PENDING = "DependencyPending", "a variant that comes first is not ready"
    DISK_FULL = "DiskFull", "the disk of the private mirrors is full"
    DRAFT_BROKEN = "DraftBroken", "what somebody committed to the draft cannot be used"
    DRAFT_EDITED = "DraftEdited", "somebody has committed to the draft's branch"
    DUPLICATE_TARGET = "DuplicateTarget", "two entries choose the same target"
    EDIT_FAILED = "EditFailed", "an edit of a manifest did not come out as it was meant"
    EDITED_DOWNSTREAM = "EditedDownstream", "somebody has changed the published package"
    ENFORCED = "Enforced", "the forge requires the status of fanout"
    ENFORCEMENT_UNKNOWN = "EnforcementUnknown", "fanout cannot see whether its status is required"
    EXPRESSION_ERROR = "ExpressionError", "an expression gave no usable value"
    FOREIGN_REF = "ForeignRef", "a ref that is not this installation's would be changed"
    FORGE_DENIED = "ForgeDenied", "the forge does not let fanout in, or hides the repository"
    FORGE_REFUSES = "ForgeRefuses", "the forge does not do what was asked, as things stand there"
    FORGE_UNAVAILABLE = "ForgeUnavailable", "the forge gave no usable answer"
    FROM_THE_FUTURE = "FromTheFuture", "a record is dated more than five minutes ahead"
    FUNCTION_UNAVAILABLE = "FunctionUnavailable", "a function may not or cannot be run here"
    GIT_MISSING = "GitMissing", "the program git was not found"
    GIT_TIMEOUT = "GitTimeout", "git gave no answer in time"
    GROUP_AWAITS = "GroupAwaits", "a group of the rollout that comes first has not passed"
    HALTED = "Halted", "more variants of the stage have failed than may"
    INTERNAL_ERROR = "InternalError", "a fault of fanout's own stopped this; the others go on"
    INVALID_AUTHOR = "InvalidAuthor", "a name or address cannot stand in a commit"
    INVALID_MANIFEST = "InvalidManifest", "a file is no YAML of objects"
    INVALID_MESSAGE = "InvalidMessage", "a commit message cannot be written"
    INVALID_OBJECT = "InvalidObject", "an object has faults"
    INVALID_PACKAGE = "InvalidPackage", "a directory is no package"
    INVALID_PATH = "InvalidPath", "no package can be at the path"
    INVALID_PLAN = "InvalidPlan", "a file is no saved plan"
    INVALID_RECORD = "InvalidRecord", "a record has faults"
    INVALID_REF_NAME = "InvalidRefName", "git takes no branch or tag of this name"
    INVALID_SCHEDULE = "InvalidSchedule", "a cron line cannot be read or never fires"
    INVALID_SETTING = "InvalidSetting", "a flag or variable has an unknown value"
    INVALID_TIME = "InvalidTime", "a text is no instant"
    LIMIT_EXCEEDED = "LimitExceeded", "something is bigger or slower than it may be"
    LISTED = "Listed", "the repository answered"
    MERGE_AWAITED = "MergeAwaited", "a person merges the pull request"
    MERGE_CONFLICT = "MergeConflict", "upstream and local changed the same; nobody has decided"
    MERGE_STYLE_FORBIDDEN = "MergeStyleForbidden", "the repository forbids this form of merging"
    MIN_READY_RUNNING = "MinReadyRunning", "verified, but not for as long as the stage wants"
    MIRROR_BUSY = "MirrorBusy", "another process works on the private mirror"
    MIRROR_DAMAGED = "MirrorDamaged", "a private mirror cannot be used; it is made again"
    MIRROR_MISSING = "MirrorMissing", "a private mirror is not there; it is made again"
    MIRROR_UNUSABLE = "MirrorUnusable", "a private mirror cannot be read or written"
    NEVER_PUBLISHED = "NeverPublished", "the variant never had the revision to go back to"
    NO_DOCUMENT = "NoDocument", "a manifest has no document of this number"
    NO_DRAFT = "NoDraft", "there is no draft of the candidate to publish"
    NO_FILES = "NoFiles", "no directory of objects was given"
    NO_OBJECT_ID = "NoObjectId", "a text is no id of a Git object"
    NO_REVISION = "NoRevision", "the policy allows none of upstream's revisions"
    NO_TARGETS = "NoTargets", "no target is in the stage"
    NOT_ENFORCED = "NotEnforced", "the forge does not require the status of fanout"
    NOT_FOUND = "NotFound", "there is nothing of the name that was given"
    NOT_IN_STAGE = "NotInStage", "the target is in no stage of the policy"
    NOTHING_COUNTS = "NothingCounts", "nothing in the stage is left to count"
    NOTHING_TO_DO = "NothingToDo", "what is asked for can change nothing as things stand"
    OBJECT_FORMAT_UNSUPPORTED = "ObjectFormatUnsupported", "the repository is of the SHA-256 format"
    OBJECT_MISSING = "ObjectMissing", "an object that is needed is not in the mirror"
    OFFLINE = "Offline", "the target says that it is offline"
    OTHER_INSTALLATION = "OtherInstallation", "the draft belongs to another installation"
    OUT_OF_BAND = "OutOfBand", "a person published in spite of a closed gate"
    PACKAGE_BROKEN = "PackageBroken", "what somebody committed to a published package is unusable"
    PATH_BLOCKED = "PathBlocked", "a file is where a directory would go"
    PATH_CHANGED = "PathChanged", "the policy says another path than the variant has"
    PATH_COLLISION = "PathCollision", "two variants have equal or nested paths"
    PATH_TAKEN = "PathTaken", "there is something else at the variant's path"
    PINNED = "Pinned", "the stage is pinned to another revision"
    PLACE_LEFT = "PlaceLeft", "the package is still where its variant was before it moved"
    PLAN_OUTDATED = "PlanOutdated", "the world is not as the saved plan saw it"
    PROGRESSING = "Progressing", "variants are on their way"
    PROPAGATION_HELD = "PropagationHeld", "an expression of propagateWhen is false"
    PUSH_DENIED = "PushDenied", "the remote does not let fanout push"
    PUSH_REFUSED = "PushRefused", "a hook or a rule of the remote refuses the push"
    RATE_LIMITED = "RateLimited", "the forge takes no more calls for now"
    READY = "Ready", "all that was asked for is in force and verified"
    RECORD_UNREADABLE = "RecordUnreadable", "a record cannot be read; its policy holds"
    RECORDS_LOST = "RecordsLost", "nothing is on record of what was written downstream"
    RECORDS_REWOUND = "RecordsRewound", "records were put back to what they were before"
    RECORDS_UNREADABLE = "RecordsUnreadable", "the records repository cannot be read"
    REF_NAME_CLASH = "RefNameClash", "another ref of the remote is in the way"
    REF_WITHOUT_LEASE = "RefWithoutLease", "a ref would be changed without knowing what it was"
    REF_WRITTEN_TWICE = "RefWrittenTwice", "a ref would be written twice in one push"
    REMOTE_DENIED = "RemoteDenied", "the remote does not let fanout in"
    REMOTE_FAILED = "RemoteFailed", "the remote cannot store what is pushed, or give what it lists"
    REMOTE_LOCKED = "RemoteLocked", "a lock of another process is in the way; it is tried again"
    REMOTE_MOVED = "RemoteMoved", "somebody else was faster; it is observed again"
    REMOTE_NOT_FOUND = "RemoteNotFound", "no repository is at the URL, or the secret may not see it"
    REMOTE_OBJECTS_REFUSED = "RemoteObjectsRefused", "git's checks refuse an object of the remote"
    REMOTE_UNAVAILABLE = "RemoteUnavailable", "the remote could not be reached"
    REMOVAL_AWAITS = "RemovalAwaits", "what is gone from later stages is removed first"
    RENDER_FAILED = "RenderFailed", "the variant cannot be rendered"
    REPOSITORY_CHANGED_TWICE = "RepositoryChangedTwice", "one pass would change a repository twice"
    REPOSITORY_NOT_MADE = "RepositoryNotMade", "a local repository could not be made"
    REPOSITORY_UNAVAILABLE = "RepositoryUnavailable", "the repository cannot be reached"
    REQUEST_CLOSED = "RequestClosed", "a person closed the pull request, or deleted its branch"
    REQUEST_FOREIGN = "RequestForeign", "somebody opened another pull request from the branch"
    REQUEST_HELD = "RequestHeld", "a label on the pull request holds it"
    REQUEST_OPEN = "RequestOpen", "nobody joins a pull request that is ready or approved"
    REQUEST_PENDING = "RequestPending", "the pull request is not as the next pass makes it"
    REQUIRED_INJECTION_MISSING = "RequiredInjectionMissing", "a required point finds nothing"
    REQUIRES_FAILED = "RequiresFailed", "a check before publication has failed"
    REVISION_QUEUED = "RevisionQueued", "a newer revision waits for the one in hand"
    SECRET_UNUSABLE = "SecretUnusable", "the named secret is missing or incomplete"
    SECRETS_DIFFER = "SecretsDiffer", "one URL is named with different secrets"
    SERIALIZED = "Serialized", "a newer revision waits for what is in flight"
    SKIPPED = "Skipped", "a person took the variant out of the rollout"
    SOAK_CUT_SHORT = "SoakCutShort", "the stage before moved on during the soak"
    SOAK_RUNNING = "SoakRunning", "not ready for long enough in a stage before"
    SOURCE_AWAITS = "SourceAwaits", "a cluster object goes through the stages before first"
    STAGE_DRAFT_PENDING = "StageDraftPending", "another variant of the stage's draft is not ready"
    STARVING = "Starving", "revisions come faster than a soak takes"
    STUCK = "Stuck", "nothing is under way and nothing may start"
    SUBMODULE_REFUSED = "SubmoduleRefused", "a package has a submodule in it"
    SUSPENDED = "Suspended", "a person has suspended it"
    SWEEP_AWAITED = "SweepAwaited", "automation publishes in sweeps; this pass is none"
    TAG_MISSING = "TagMissing", "the tag is not in the repository"
    TAG_MOVED = "TagMoved", "a tag points elsewhere than before"
    TARGET_GONE = "TargetGone", "the target of the variant is not there any more"
    TARGETS_FAILED = "TargetsFailed", "some targets get no variant"
    TOO_MANY_REMOVALS = "TooManyRemovals", "a pass would remove more than it may"
    TREE_MISMATCH = "TreeMismatch", "a package was written otherwise than planned"
    UNKNOWN_KIND = "UnknownKind", "there is no such kind"
    UNKNOWN_REPOSITORY = "UnknownRepository", "no Repository of this name may be used here"
    UNKNOWN_TIME_ZONE = "UnknownTimeZone", "the time zone is not known"
    UNREADABLE_NAME = "UnreadableName", "a file's name is no UTF-8"
    URL_REFUSED = "UrlRefused", "the URL may not be used"
    VERIFICATION_FAILED = "VerificationFailed", "a check has failed after publication"
    VERIFICATION_PENDING = "VerificationPending", "a check is not answered yet"
    WINDOW_CLOSED = "WindowClosed", "publication is not allowed at this time"
    WOULD_GO_BACK = "WouldGoBack", "automation never goes back to an older revision"
    WRONG_OBJECT = "WrongObject", "an object is of another kind than it should be"
    WRONG_REVISION = "WrongRevision", "evidence is about a revision that is not published"


class ReasonClass(StrEnum):
    """Class of a gate's reason; `meaning` explains it in a line."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "ReasonClass":
        """Create a member whose text is the word."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    SUSPENDED = "suspended", "a person has stopped it"
    OFFLINE = "offline", "the target says that it is away"
    SKIPPED = "skipped", "a person took the variant out of the rollout"
    DEADLINE = "deadline", "a variant was in flight for too long"
    STAGE = "stage", "a stage before has not passed the revision"
    SOAK = "soak", "a stage before has not been ready for long enough"
    HALTED = "halted", "too many variants of the stage have failed"
    GROUP = "group", "a group of the rollout that comes first has not passed"
    BUDGET = "budget", "as many variants are in flight as may be"
    WINDOW = "window", "publication is not allowed at this time"
    APPROVAL = "approval", "people have to approve the draft"
    EVIDENCE = "evidence", "a check is not answered, or has failed"
    DEPENDENCY = "dependency", "something else has to be ready first"
    CONDITION = "condition", "an expression of propagateWhen is not true"
    CONFLICT = "conflict", "what people changed needs a look or a decision"
    AUTOMATION = "automation", "it is not automation's to do, or not in this pass"
    DECISION = "decision", "a person's decision has nothing to act on"
    DRAFT = "draft", "there is no draft to publish"
    REQUEST = "request", "the draft's pull request is not merged yet"
    REVISION = "revision", "the revision is not one that may be taken"
    TARGETS = "targets", "there is nothing in the stage, or the target is in none"
    STUCK = "stuck", "the policy as a whole does not move, or too fast"
    ERROR = "error", "it cannot be rendered, written or published"


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
    ReasonClass.APPROVAL: (Reason.APPROVAL_MISSING,),
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
    ReasonClass.CONFLICT: (
        Reason.MERGE_CONFLICT,
        Reason.ADOPTION_AWAITS,
        Reason.EDITED_DOWNSTREAM,
    ),
    ReasonClass.AUTOMATION: (Reason.AUTOMATION_OFF, Reason.SWEEP_AWAITED),
    ReasonClass.DECISION: (Reason.DECISION_WAITS,),
    ReasonClass.DRAFT: (Reason.NO_DRAFT, Reason.STAGE_DRAFT_PENDING),
    ReasonClass.REQUEST: (
        Reason.FORGE_DENIED,
        Reason.FORGE_REFUSES,
        Reason.FORGE_UNAVAILABLE,
        Reason.MERGE_AWAITED,
        Reason.MERGE_STYLE_FORBIDDEN,
        Reason.NOT_ENFORCED,
        Reason.RATE_LIMITED,
        Reason.REQUEST_CLOSED,
        Reason.REQUEST_FOREIGN,
        Reason.REQUEST_OPEN,
        Reason.REQUEST_PENDING,
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
        Reason.CHECK_TIMED_OUT,
        Reason.CONTRADICTION,
        Reason.DEADLINE_EXCEEDED,
        Reason.DRAFT_BROKEN,
        Reason.EDITED_DOWNSTREAM,
        Reason.EXPRESSION_ERROR,
        Reason.MERGE_CONFLICT,
        Reason.MERGE_STYLE_FORBIDDEN,
        Reason.PACKAGE_BROKEN,
        Reason.REQUIRED_INJECTION_MISSING,
        Reason.REQUIRES_FAILED,
        Reason.TAG_MISSING,
        Reason.TAG_MOVED,
        Reason.TOO_MANY_REMOVALS,
        Reason.VERIFICATION_FAILED,
    }
)
CLASS_BY_REASON: Mapping[str, ReasonClass] = {
    reason.value: found for found, reasons in _REASONS_BY_CLASS.items() for reason in reasons
}


def classify_reason(reason: str) -> ReasonClass:
    """Return the class of a reason; `error` for reasons that no gate gives."""
    return CLASS_BY_REASON.get(reason, ReasonClass.ERROR)
