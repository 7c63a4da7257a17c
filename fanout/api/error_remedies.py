"""Causes and remedies of the reasons that no gate gives."""

from collections.abc import Mapping

from fanout.api.reasons import Reason, Remedy

ERROR_REMEDIES: Mapping[Reason, Remedy] = {
    Reason.ADOPTION_BASE_MISSING: Remedy(
        "The Kptfile of the existing package has no usable upstreamLock, or the package differs "
        "from the rendering of the revision in upstreamLock.",
        "Add the upstreamLock that the message describes to its Kptfile, or remove the package "
        "from the path.",
    ),
    Reason.AMBIGUOUS_VERSION: Remedy(
        "Two tags of one package differ only in spelling, such as v1.0 and v1.0.0.",
        "Delete one of the tags upstream.",
    ),
    Reason.ATOMIC_PUSH_UNSUPPORTED: Remedy(
        "The Git server has no atomic pushes, which fanout needs to publish several variants "
        "at once.",
        "Move the repository to a server that supports `git push --atomic`.",
    ),
    Reason.BASE_MISSING: Remedy(
        "The branch on which fanout keeps unedited packages (the vendor branch) lacks this "
        "package, so downstream edits cannot be distinguished from upstream content.",
        "Restore the vendor branch, or take the other step that the message names.",
    ),
    Reason.BRANCH_MISSING: Remedy(
        "The branch of the Repository has no commit, or its name is wrong.",
        "Push a first commit to the branch, or correct spec.branch of the Repository.",
    ),
    Reason.CONFLICT_DECIDED: Remedy(
        "One side of a merge conflict was dropped, by a decision, a commit or onConflict.",
        "None; the message lists the dropped values.",
    ),
    Reason.DELETION_REFUSED: Remedy(
        "The repository denies deletions, by a setting or a hook.",
        "Allow deletion of branches below the prefix of drafts, or delete them by hand. "
        "Nothing else is blocked.",
    ),
    Reason.DISK_FULL: Remedy(
        "The file system of the state directory has no space or inodes left.",
        "Free space, or move the mirrors with --state-dir.",
    ),
    Reason.DRAFT_BROKEN: Remedy(
        "Files that people committed to the draft branch are not valid, or its Kptfile is missing.",
        "Correct the file on the draft branch, or delete the branch; the next sweep writes the "
        "draft again.",
    ),
    Reason.DRAFT_EDITED: Remedy(
        "People committed to the draft that the rollback replaces.",
        "Keep the commits on another branch if you need them, then delete the draft branch.",
    ),
    Reason.DUPLICATE_TARGET: Remedy(
        "The selectors of two entries in spec.targets match one object.",
        "Narrow one of the two selectors.",
    ),
    Reason.EDIT_FAILED: Remedy(
        "fanout checks each edit of a YAML file, and one differed from the plan.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.ENFORCED: Remedy(
        "Branch protection requires the commit status of fanout before a merge.",
        "None; this is the intended state.",
    ),
    Reason.ENFORCEMENT_UNKNOWN: Remedy(
        "The token of fanout has no access to the protection rules of the branch.",
        "Give the account of fanout read access to branch protection, or check the rules yourself.",
    ),
    Reason.FOREIGN_REF: Remedy(
        "fanout tried to delete a ref that is not a draft branch of its own installation.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.FUNCTION_UNAVAILABLE: Remedy(
        "The pipeline names an image that is not built in and that the FanoutConfiguration "
        "does not allow, or its program is missing.",
        "Use a built-in function, or let an administrator add the program to the "
        "FanoutConfiguration.",
    ),
    Reason.GIT_MISSING: Remedy(
        "git is not in PATH.",
        "Install git.",
    ),
    Reason.GIT_TIMEOUT: Remedy(
        "The Git server is slow or unreachable, or the repository is very large.",
        "Check the server; the next pass tries again.",
    ),
    Reason.INTERNAL_ERROR: Remedy(
        "A bug in fanout. All other objects are processed.",
        "Report it with the trace that -v prints and the output of `fanout version`.",
    ),
    Reason.INVALID_AUTHOR: Remedy(
        "The name or address is empty, or has < or > or a control character.",
        "Correct the name and address of --by, of the FanoutConfiguration, or of your Git "
        "configuration.",
    ),
    Reason.INVALID_MANIFEST: Remedy(
        "The file has a syntax error, a duplicate key, or a construct that is not allowed.",
        "Correct the file at the line that the message names.",
    ),
    Reason.INVALID_MESSAGE: Remedy(
        "The text has a NUL character.",
        "Remove the character from the names or reasons that are part of the message.",
    ),
    Reason.INVALID_OBJECT: Remedy(
        "A field is missing, unknown, or has a value that is not allowed.",
        "Run `fanout validate` and correct each error.",
    ),
    Reason.INVALID_PACKAGE: Remedy(
        "The Kptfile is missing or wrong, or objects of the package conflict.",
        "Correct the package; `fanout package validate DIRECTORY` reports every error.",
    ),
    Reason.INVALID_PATH: Remedy(
        "The path is not a valid Git path, or a file or submodule is in the way.",
        "Choose another path, or remove what is in the way.",
    ),
    Reason.INVALID_PLAN: Remedy(
        "The file was not written by `fanout plan --out`, or was changed.",
        "Run `fanout plan --out FILE` again.",
    ),
    Reason.INVALID_RECORD: Remedy(
        "The record that would be written lacks a field or has a wrong value.",
        "Correct the option that the message names.",
    ),
    Reason.INVALID_REF_NAME: Remedy(
        "The name is derived from a package path or variant name with characters that Git refuses.",
        "Remove spaces, `..` and the characters `~^:?*[\\` from names and paths.",
    ),
    Reason.INVALID_SCHEDULE: Remedy(
        "The cron line has a syntax error or names a date that does not exist.",
        'Correct it; `fanout schedule next "SCHEDULE"` prints its next times.',
    ),
    Reason.INVALID_SETTING: Remedy(
        "The value is unknown, or two options exclude each other.",
        "Correct the option that the message names; see `fanout --help`.",
    ),
    Reason.INVALID_TIME: Remedy(
        "Times are written as 2026-11-22T10:00:00Z.",
        "Write the time in this form.",
    ),
    Reason.LIMIT_EXCEEDED: Remedy(
        "A file, a package, an expression or a function needs more than its limit allows.",
        "Reduce the size, or ask an administrator to raise the limit, if the "
        "FanoutConfiguration has a field for it.",
    ),
    Reason.LISTED: Remedy(
        "The branches and tags of the repository were listed in this pass.",
        "None; this is the intended state.",
    ),
    Reason.MIRROR_BUSY: Remedy(
        "Two processes share a state directory and one holds the mirror for a long time.",
        "Wait for the other process, or give each its own --state-dir.",
    ),
    Reason.MIRROR_DAMAGED: Remedy(
        "The disk or another program changed the mirror.",
        "None; the next pass creates it again.",
    ),
    Reason.MIRROR_MISSING: Remedy(
        "The state directory was deleted or is new.",
        "None; the next pass creates it again.",
    ),
    Reason.MIRROR_UNUSABLE: Remedy(
        "Permissions or the file system of the state directory prevent access.",
        "Check the permissions and free space of the state directory.",
    ),
    Reason.NO_DOCUMENT: Remedy(
        "fanout referred to a YAML document that the file does not contain.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.NO_FILES: Remedy(
        "-f and FANOUT_FILES are not set, or the directory has no YAML or JSON files with objects.",
        "Add -f DIR, or set FANOUT_FILES.",
    ),
    Reason.NO_OBJECT_ID: Remedy(
        "The commit ID has fewer than seven digits, or characters that are not hexadecimal digits.",
        "Write all 40 digits, or at least the first seven of a known commit.",
    ),
    Reason.NOT_FOUND: Remedy(
        "The name of a policy, stage, variant, target or record is wrong.",
        "List the names with `fanout get policies`, `fanout get variants` or `fanout get records`.",
    ),
    Reason.NOTHING_TO_DO: Remedy(
        "The requested state is already in effect, or no object matches.",
        "None; `fanout get variants` shows the present state.",
    ),
    Reason.OBJECT_FORMAT_UNSUPPORTED: Remedy(
        "fanout writes repositories in the SHA-1 format of Git only.",
        "Use a repository in the SHA-1 format.",
    ),
    Reason.OBJECT_MISSING: Remedy(
        "The repository was rewritten, or the mirror is incomplete.",
        "None; the next pass reads the repository again.",
    ),
    Reason.OTHER_INSTALLATION: Remedy(
        "Two installations of fanout have a variant at one path.",
        "Remove the variant from one of the two.",
    ),
    Reason.OUT_OF_BAND: Remedy(
        "A person merged the draft branch or pull request before its gates opened.",
        "Check the publication; require the status of fanout in branch protection to prevent this.",
    ),
    Reason.PACKAGE_BROKEN: Remedy(
        "Somebody committed files to the published package that cannot be parsed.",
        "Correct the file on the branch that the message names.",
    ),
    Reason.PATH_BLOCKED: Remedy(
        "A file has the name of a directory in the path of the package.",
        "Remove the file, or choose another path.",
    ),
    Reason.PATH_CHANGED: Remedy(
        "A rollback cannot continue because the variant moved, or the new path of a variant is "
        "inside its old path.",
        "Keep the path for now, or move the variant in two steps.",
    ),
    Reason.PATH_COLLISION: Remedy(
        "Two targets or policies yield the same path of one repository, or one inside the other.",
        "Change downstream.package of one of them.",
    ),
    Reason.PATH_TAKEN: Remedy(
        "Another package is at the path, or another branch has the name of the draft.",
        "Remove it, or choose another path.",
    ),
    Reason.PLACE_LEFT: Remedy(
        "The old package is removed when the variant is ready at its new path.",
        "Wait, or run `fanout remove POLICY VARIANT --reason WHY`.",
    ),
    Reason.PLAN_OUTDATED: Remedy(
        "A repository, record or object changed after the plan was made.",
        "Run `fanout plan --out FILE` again, and review it.",
    ),
    Reason.PROGRESSING: Remedy(
        "Variants are released and not yet ready.",
        "None; `fanout explain POLICY` shows what each stage waits for.",
    ),
    Reason.PUSH_DENIED: Remedy(
        "The account has no permission to push to the branch.",
        "Give the account write access, or correct the secret of the Repository.",
    ),
    Reason.PUSH_REFUSED: Remedy(
        "A hook or a protection rule of the server refused it.",
        "Read the message of the server; allow the account of fanout to push the branch.",
    ),
    Reason.READY: Remedy(
        "All variants are published at the candidate of their stage (the revision to roll out) "
        "and passed verification.",
        "None; this is the intended state.",
    ),
    Reason.RECORD_UNREADABLE: Remedy(
        "A file on the records branch is damaged or from a newer version. The policy is held.",
        "Restore the file in the records repository, or upgrade fanout.",
    ),
    Reason.RECORDS_LOST: Remedy(
        "The records repository has nothing for a policy that published before.",
        "Restore the records repository from its backup. Only if there is no backup, run `fanout "
        "sweep --new-records`.",
    ),
    Reason.RECORDS_REWOUND: Remedy(
        "The records repository was restored from an older copy, or its branch was reset.",
        "Restore the newest copy, or run `fanout accept-records POLICY --reason WHY`.",
    ),
    Reason.RECORDS_UNREADABLE: Remedy(
        "The repository or its branch is damaged or from a newer version.",
        "Restore the records repository, or upgrade fanout.",
    ),
    Reason.REF_NAME_CLASH: Remedy(
        "A branch such as `a` prevents a branch `a/b`.",
        "Rename or delete the conflicting branch or tag.",
    ),
    Reason.REF_WITHOUT_LEASE: Remedy(
        "fanout tried to change a ref without the value that it had read before.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.REF_WRITTEN_TWICE: Remedy(
        "Two changes of a pass have the same ref.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.REMOTE_DENIED: Remedy(
        "The credentials are missing, wrong, or lack a permission.",
        "Correct the secret of the Repository, or the permissions of its account.",
    ),
    Reason.REMOTE_FAILED: Remedy(
        "The Git server reported an internal error, a full disk or a damaged repository.",
        "Let the owner of the server check it with `git fsck`; the next pass tries again.",
    ),
    Reason.REMOTE_LOCKED: Remedy(
        "Another git process writes the ref, or was killed and left its lock file.",
        "If a git process still runs on the server, wait until it ends. Otherwise, remove the "
        "lock file that the message names.",
    ),
    Reason.REMOTE_MOVED: Remedy(
        "Somebody else pushed first. Nothing was overwritten.",
        "None; the next pass reads the repository again.",
    ),
    Reason.REMOTE_NOT_FOUND: Remedy(
        "The URL is wrong, the repository was deleted, or the credentials cannot see it.",
        "Correct spec.url or secretRef of the Repository.",
    ),
    Reason.REMOTE_OBJECTS_REFUSED: Remedy(
        "The history of the repository has an object that fails the checks of Git.",
        "Repair the history of the repository.",
    ),
    Reason.REMOTE_UNAVAILABLE: Remedy(
        "DNS, the network, TLS or the server fails.",
        "Check the network and the server; the next pass tries again.",
    ),
    Reason.REMOVAL_AWAITS: Remedy(
        "Variants without a target are removed stage by stage, from the last stage to the first.",
        "None; the variant is removed after those of later stages.",
    ),
    Reason.RENDER_FAILED: Remedy(
        "A function of the pipeline reports an error or cannot process the package.",
        "Correct the package, the function configuration or the injected object that the "
        "message names.",
    ),
    Reason.REPOSITORY_CHANGED_TWICE: Remedy(
        "A pass had two changes of one repository; all of them must be in one push.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.REPOSITORY_NOT_MADE: Remedy(
        "The directory is not writable or its disk is full.",
        "Check the permissions and free space of the state directory.",
    ),
    Reason.REPOSITORY_UNAVAILABLE: Remedy(
        "The listing of the repository failed, or two Repositories conflict.",
        "See the reason with `fanout get repositories`, and correct the Repository or its server.",
    ),
    Reason.REQUIRED_INJECTION_MISSING: Remedy(
        "The package has a required injection point and no selected object provides it.",
        "Create the object that the message names, or correct the injectors of the policy.",
    ),
    Reason.SECRET_UNUSABLE: Remedy(
        "secretRef names a secret that is missing, or that lacks a password or token.",
        "Create or correct the secret.",
    ),
    Reason.SECRETS_DIFFER: Remedy(
        "Repositories with the same URL name different secrets.",
        "Use the same secretRef in all of them.",
    ),
    Reason.SUBMODULE_REFUSED: Remedy(
        "A submodule only refers to another repository; a package must contain all its files.",
        "Replace the submodule by files.",
    ),
    Reason.TAG_MISSING: Remedy(
        "Somebody deleted the tag of a publication or of an upstream revision.",
        "Restore the tag that the message names.",
    ),
    Reason.TAG_MOVED: Remedy(
        "Somebody moved the tag of a publication or of an upstream revision.",
        "Restore the tag, or release a new one.",
    ),
    Reason.TARGET_GONE: Remedy(
        "The object was deleted or its labels changed, so no target entry selects it.",
        "Run `fanout remove POLICY VARIANT --reason WHY`, or restore the object.",
    ),
    Reason.TARGETS_FAILED: Remedy(
        "A template fails for these targets, or their names or paths conflict.",
        "Run `fanout validate` and `fanout get targets`, and correct the targets.",
    ),
    Reason.TOO_MANY_REMOVALS: Remedy(
        "More targets disappeared than removalLimit allows, often by mistake.",
        "Restore the targets, or run `fanout remove POLICY --all-gone --reason WHY`.",
    ),
    Reason.TREE_MISMATCH: Remedy(
        "The tree that fanout wrote differs from the one that it had computed.",
        "This is a bug in fanout; report it with the output of the command with -v.",
    ),
    Reason.UNKNOWN_KIND: Remedy(
        "The name of a kind or resource type is wrong.",
        "Use one of the names that the message lists.",
    ),
    Reason.UNKNOWN_REPOSITORY: Remedy(
        "No Repository has the name, or it is in another namespace.",
        "Create the Repository, or correct the name.",
    ),
    Reason.UNKNOWN_TIME_ZONE: Remedy(
        "The name is not in the IANA time zone database.",
        "Write a name such as Europe/Oslo.",
    ),
    Reason.UNREADABLE_NAME: Remedy(
        "A commit has a file with such a name.",
        "Rename the file.",
    ),
    Reason.URL_REFUSED: Remedy(
        "The URL has a password, an unsupported protocol, or an address that is not allowed.",
        "Use https, ssh or a local path, and put credentials into a secret.",
    ),
    Reason.WRONG_OBJECT: Remedy(
        "A Git object or file has another type than expected.",
        "Correct the reference, or restore the repository.",
    ),
}
