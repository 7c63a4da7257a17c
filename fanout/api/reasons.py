"""Why something is as it is: one CamelCase word, for conditions, and its meaning, for people.

A closed list, sorted, so that alerts can be written against it.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The reasons; `meaning` explains each in a line."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> "Reason":
        """A member: the text is the word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    AFTER_FAILED = "AfterFailed", "a stage before has failed the revision"
    AFTER_PENDING = "AfterPending", "a stage before has not passed the revision yet"
    AMBIGUOUS_VERSION = "AmbiguousVersion", "two tags are one version"
    APPROVAL_MISSING = "ApprovalMissing", "too few people have approved the draft"
    AUTOMATION_OFF = "AutomationOff", "no administrator has switched automation on"
    CONTRADICTION = "Contradiction", "reporters of one check say different things"
    DECISION_WAITS = "DecisionWaits", "a person's decision has nothing to act on now"
    DRAFT_EDITED = "DraftEdited", "somebody has committed to the draft's branch"
    DUPLICATE_TARGET = "DuplicateTarget", "two entries choose the same target"
    EDITED_DOWNSTREAM = "EditedDownstream", "somebody has changed the published package"
    EXPRESSION_ERROR = "ExpressionError", "an expression gave no usable value"
    FROM_THE_FUTURE = "FromTheFuture", "a record is dated more than five minutes ahead"
    INVALID_MANIFEST = "InvalidManifest", "a file is no YAML of objects"
    INVALID_OBJECT = "InvalidObject", "an object has faults"
    INVALID_PACKAGE = "InvalidPackage", "a directory is no package"
    INVALID_RECORD = "InvalidRecord", "a record has faults"
    INVALID_SCHEDULE = "InvalidSchedule", "a cron line cannot be read or never fires"
    INVALID_SETTING = "InvalidSetting", "a flag or variable has an unknown value"
    INVALID_TIME = "InvalidTime", "a text is no instant"
    LIMIT_EXCEEDED = "LimitExceeded", "something is bigger or slower than it may be"
    MIRROR_BUSY = "MirrorBusy", "another process works on the private mirror"
    NO_DRAFT = "NoDraft", "there is no draft of the candidate to publish"
    NO_FILES = "NoFiles", "no directory of objects was given"
    NO_REVISION = "NoRevision", "the policy allows none of upstream's revisions"
    NO_TARGETS = "NoTargets", "no target is in the stage"
    NOT_ENFORCED = "NotEnforced", "the forge does not require the stage's checks"
    NOT_IN_STAGE = "NotInStage", "the target is in no stage of the policy"
    NOTHING_COUNTS = "NothingCounts", "nothing in the stage is left to count"
    OTHER_INSTALLATION = "OtherInstallation", "the draft belongs to another installation"
    OUT_OF_BAND = "OutOfBand", "a person published in spite of a closed gate"
    PATH_COLLISION = "PathCollision", "two variants have equal or nested paths"
    PATH_TAKEN = "PathTaken", "there is something else at the variant's path"
    RECORD_UNREADABLE = "RecordUnreadable", "a record cannot be read; its policy holds"
    RECORDS_UNREADABLE = "RecordsUnreadable", "the records repository cannot be read"
    RENDER_FAILED = "RenderFailed", "the variant cannot be rendered"
    REPOSITORY_UNAVAILABLE = "RepositoryUnavailable", "the repository cannot be reached"
    REQUIRED_INJECTION_MISSING = "RequiredInjectionMissing", "a required point finds nothing"
    SECRET_UNUSABLE = "SecretUnusable", "the named secret is missing or incomplete"
    SOAK_CUT_SHORT = "SoakCutShort", "the stage before moved on during the soak"
    SOAK_RUNNING = "SoakRunning", "not ready for long enough in a stage before"
    STARVING = "Starving", "revisions come faster than a soak takes"
    STUCK = "Stuck", "nothing is under way and nothing may start"
    SUSPENDED = "Suspended", "a person has suspended it"
    SWEEP_AWAITED = "SweepAwaited", "automation publishes in sweeps; this pass is none"
    TAG_MISSING = "TagMissing", "the tag is not in the repository"
    TAG_MOVED = "TagMoved", "a tag points elsewhere than before"
    TARGET_GONE = "TargetGone", "the target of the variant is not there any more"
    TOO_MANY_REMOVALS = "TooManyRemovals", "a pass would remove more than it may"
    UNKNOWN_KIND = "UnknownKind", "there is no such kind"
    UNKNOWN_REPOSITORY = "UnknownRepository", "no Repository of this name may be used here"
    UNKNOWN_TIME_ZONE = "UnknownTimeZone", "the time zone is not known"
    URL_REFUSED = "UrlRefused", "the URL may not be used"
    VERIFICATION_FAILED = "VerificationFailed", "a check has failed after publication"
    VERIFICATION_PENDING = "VerificationPending", "a check is not answered yet"
    WOULD_GO_BACK = "WouldGoBack", "automation never goes back to an older revision"
