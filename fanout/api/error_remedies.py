"""Causes and remedies of the reasons that no gate gives."""

from collections.abc import Mapping

from fanout.api.reasons import Reason, Remedy

ERROR_REMEDIES: Mapping[Reason, Remedy] = {
    Reason.ADMISSION_MISSING: Remedy(
        "The API server does not check who creates evidence, approvals and decisions: a"
        " ValidatingAdmissionPolicy of fanout or its binding is missing, changed, or was written"
        " less than a minute before the record.",
        "Run `fanout crds --admission`, and apply the output with kubectl. If the controller's"
        " service account is not fanout-system/fanout-controller, add `--service-account"
        " NAMESPACE/NAME`. After a minute, create the refused records again.",
    ),
    Reason.ADOPTION_BASE_MISSING: Remedy(
        "The existing package has no usable `upstreamLock` in its Kptfile, or the files of the "
        "package differ from what fanout renders for the revision in `upstreamLock`.",
        "Correct the Kptfile or the package as the message describes, or remove the "
        "package from the path.",
    ),
    Reason.AMBIGUOUS_VERSION: Remedy(
        "Two tags of one package differ only in spelling, such as v1.0 and v1.0.0.",
        "Delete one of the tags upstream.",
    ),
    Reason.APPLIED: Remedy(
        "The decision was carried out or overtaken, or what the record is about was published.",
        "None; the record has done its work.",
    ),
    Reason.ATOMIC_PUSH_UNSUPPORTED: Remedy(
        "fanout publishes several variants in one atomic push, and the Git server does "
        "not support atomic pushes.",
        "Move the repository to a server that supports `git push --atomic`.",
    ),
    Reason.BASE_MISSING: Remedy(
        "The vendor branch has no copy of this package as fanout rendered it, so "
        "downstream edits cannot be distinguished from upstream content.",
        "Restore the vendor branch, or do what the message names instead.",
    ),
    Reason.BRANCH_MISSING: Remedy(
        "The branch of the Repository has no commit, was renamed, or its name is wrong.",
        "Correct `spec.branch` of the Repository; the message names the default branch. Of a "
        "repository without commits, push a first one to the branch.",
    ),
    Reason.BRANCH_REWRITTEN: Remedy(
        "The branch was pushed with force, or the repository was replaced: the published package "
        "is missing, and so is the commit that published it.",
        "Put the branch back on a commit that has the publication, or restore the package with "
        "the command of the message, and push.",
    ),
    Reason.CLUSTER_DENIED: Remedy(
        "The user of the kubeconfig context may not list a kind. Policies that read the kind are "
        "held.",
        "Bind a role with the verbs `get`, `list` and `watch` on the resource that the message "
        "names.",
    ),
    Reason.CLUSTER_UNAVAILABLE: Remedy(
        "The API server cannot be reached, or does not serve a kind that is read.",
        "Check the address in the kubeconfig file, and the CustomResourceDefinitions; "
        "`fanout crds` prints those of fanout.",
    ),
    Reason.CONFLICT_DECIDED: Remedy(
        "A decision, a commit or the field `onConflict` dropped one side of a merge conflict.",
        "None; the message lists the dropped values.",
    ),
    Reason.DELETION_REFUSED: Remedy(
        "A setting or a hook of the repository denies the deletion of branches.",
        "Allow the account of fanout to delete draft branches, or delete the old draft "
        "branches by hand. Only this deletion fails; publication continues.",
    ),
    Reason.DISK_FULL: Remedy(
        "The file system of the state directory has no space or inodes left.",
        "Free space, or set another directory with `--state-dir`.",
    ),
    Reason.DRAFT_BROKEN: Remedy(
        "Somebody committed an invalid file to the draft branch, deleted the Kptfile, or changed "
        "a file outside of the packages of the draft.",
        "Correct the file on the draft branch. Commit a change outside of the packages to another "
        "branch, and take it back on the draft branch. If you delete the branch, the next sweep "
        "writes the draft again.",
    ),
    Reason.DRAFT_EDITED: Remedy(
        "People committed to the draft that the rollback replaces.",
        "If you need the commits, copy them to another branch. Then delete the draft branch.",
    ),
    Reason.DUPLICATE_TARGET: Remedy(
        "The selectors of two entries in `spec.targets` match the same object.",
        "Narrow one of the two selectors.",
    ),
    Reason.EDIT_FAILED: Remedy(
        "An edit of a YAML file had a result that fanout did not expect.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.EFFECTIVE: Remedy(
        "The record counts for the present revision, or is active.",
        "None; this is the intended state.",
    ),
    Reason.ENFORCED: Remedy(
        "Branch protection requires the commit status of fanout before a merge.",
        "None; this is the intended state.",
    ),
    Reason.ENFORCEMENT_UNKNOWN: Remedy(
        "Branch protection requires statuses by patterns that fanout cannot compare, or it lets "
        "the account of fanout push, and fanout cannot see whether other people may push too.",
        "Require the commit status of fanout by its name, and forbid pushes to the branch.",
    ),
    Reason.EXPIRED: Remedy(
        "The time in `expires` of the decision or of the approval check, or `freshFor` of the"
        " check, is over.",
        "Decide, approve or report again if that is still meant.",
    ),
    Reason.FOREIGN_REF: Remedy(
        "fanout tried to delete a ref that is not a draft branch of its own installation.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.FUNCTION_UNAVAILABLE: Remedy(
        "The pipeline uses a function image that is not built into fanout. The "
        "FanoutConfiguration names no program for this image, or the program is not installed.",
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
        "This is a bug in fanout. All other objects are processed.",
        "Report the bug with the trace that `-v` prints and the output of `fanout version`.",
    ),
    Reason.INVALID_AUTHOR: Remedy(
        "The author name or address is empty, or contains `<`, `>` or a control character.",
        "Correct the name and address in `--by`, in the FanoutConfiguration, or in "
        "your Git configuration.",
    ),
    Reason.INVALID_MANIFEST: Remedy(
        "The file has a syntax error, a duplicate key, or a construct that is not allowed.",
        "Correct the file at the line that the message names.",
    ),
    Reason.INVALID_MESSAGE: Remedy(
        "The commit message contains a NUL character.",
        "Remove the NUL character from the names and reasons in the message.",
    ),
    Reason.INVALID_OBJECT: Remedy(
        "A field is missing, unknown, or has a value that is not allowed.",
        "Run `fanout validate`, for objects of a cluster `fanout status`, and correct each error.",
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
        "`fanout plan --out` did not write the file, or the file was changed later.",
        "Run `fanout plan --out FILE` again.",
    ),
    Reason.INVALID_RECORD: Remedy(
        "An option of the command is missing or has a wrong value, so the record "
        "cannot be written.",
        "Correct the option that the message names.",
    ),
    Reason.INVALID_REF_NAME: Remedy(
        "Git refuses a character of the name. The name comes from the path of a "
        "package or the name of a variant.",
        "Remove spaces, `..` and the characters `~^:?*[\\` from names and paths.",
    ),
    Reason.INVALID_SCHEDULE: Remedy(
        "The schedule has a syntax error, or names a date that does not exist.",
        'Correct the schedule; `fanout schedule next "SCHEDULE"` prints the times at '
        "which it fires.",
    ),
    Reason.INVALID_SETTING: Remedy(
        "The value is unknown, or two options exclude each other.",
        "Correct the option that the message names; see `fanout --help`.",
    ),
    Reason.INVALID_TIME: Remedy(
        "The value does not have the form 2026-11-22T10:00:00Z.",
        "Write a time such as 2026-11-22T10:00:00Z.",
    ),
    Reason.LIMIT_EXCEEDED: Remedy(
        "A file, a package, an expression or a function exceeds its limit.",
        "Reduce what the message names. If the FanoutConfiguration has a field for the "
        "limit, an administrator can raise the limit there.",
    ),
    Reason.LISTED: Remedy(
        "fanout read the branches and tags of the repository in this pass.",
        "None; this is the intended state.",
    ),
    Reason.MIRROR_BUSY: Remedy(
        "Two processes share a state directory, and one of them uses the mirror for a long time.",
        "Wait until the other process ends, or give each process its own `--state-dir`.",
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
    Reason.NOT_ENTITLED: Remedy(
        "The author of the approval is in none of the groups that the check names.",
        "Let an approver approve, or add the user to `approvers` of the PromotionPolicy.",
    ),
    Reason.NO_DOCUMENT: Remedy(
        "fanout referred to a YAML document that the file does not contain.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.NO_FILES: Remedy(
        "Neither `-f` nor FANOUT_FILES is set, or the directory has no YAML or JSON "
        "file with objects.",
        "Add `-f DIR`, or set FANOUT_FILES. For objects of a cluster, add `--context NAME`.",
    ),
    Reason.NO_OBJECT_ID: Remedy(
        "The commit ID has fewer than seven digits, or characters that are not hexadecimal digits.",
        "Write all 40 digits of the commit ID. For a commit of a published package or "
        "a draft, the first seven digits are enough.",
    ),
    Reason.NOT_FOUND: Remedy(
        "The name of a policy, stage, variant, target or record is wrong.",
        "List the names with `fanout get policies`, `fanout get variants` or `fanout get records`.",
    ),
    Reason.NOTHING_TO_DO: Remedy(
        "The requested state already exists, or no object matches.",
        "None; `fanout get variants` shows the present state.",
    ),
    Reason.OBJECT_FORMAT_UNSUPPORTED: Remedy(
        "The repository uses the SHA-256 object format of Git, and fanout supports only SHA-1.",
        "Use a repository with the SHA-1 object format.",
    ),
    Reason.OBJECT_MISSING: Remedy(
        "The repository was rewritten, or the mirror is incomplete.",
        "None; the next pass reads the repository again.",
    ),
    Reason.OTHER_INSTALLATION: Remedy(
        "Two installations of fanout have a variant at the same path.",
        "Remove the variant from one of the two installations.",
    ),
    Reason.OUT_OF_BAND: Remedy(
        "A person merged the draft branch or pull request before its gates opened.",
        "Check the published package. To prevent such merges, require the commit "
        "status of fanout in branch protection.",
    ),
    Reason.OWN_CHANGE: Remedy(
        "The PromotionPolicy requires separation, and the approver committed to the draft, or may"
        " have.",
        "Let somebody else approve.",
    ),
    Reason.PACKAGE_BROKEN: Remedy(
        "Somebody committed a file to the published package that cannot be parsed.",
        "Correct the file on the branch that the message names.",
    ),
    Reason.PATH_BLOCKED: Remedy(
        "The path of the package needs a directory, and a file has the name of this directory.",
        "Remove the file, or choose another path.",
    ),
    Reason.PATH_CHANGED: Remedy(
        "The variant has a new path and cannot move now. For example, a rollback is "
        "active, or one of the two paths is inside the other.",
        "Take the step that the message names. If one path is inside the other, move "
        "the variant to a third path first.",
    ),
    Reason.PATH_COLLISION: Remedy(
        "Two variants have the same path in one repository, or the path of one is "
        "inside the path of the other.",
        "Change `downstream.package` for one of the two variants.",
    ),
    Reason.PATH_TAKEN: Remedy(
        "Another package is at the path of the variant, or another branch has the name "
        "of its draft branch.",
        "Adopt the package with `adoptionPolicy: AdoptExisting`, rename the other branch, or "
        "choose another path.",
    ),
    Reason.PLACE_LEFT: Remedy(
        "The variant is not ready at its new path yet, its stage has no automatic "
        "promotion, or a pull request that removes the old package is open.",
        "Wait until the variant is ready, merge the pull request, or run `fanout "
        "remove POLICY VARIANT --reason WHY`.",
    ),
    Reason.PLAN_OUTDATED: Remedy(
        "A repository, a record or an object changed after the plan was saved.",
        "Run `fanout plan --out FILE` again, and review the new plan.",
    ),
    Reason.PROGRESSING: Remedy(
        "Some variants are being updated and are not ready yet.",
        "None; `fanout explain POLICY` shows what each stage waits for.",
    ),
    Reason.PUSH_DENIED: Remedy(
        "The account has no permission to push to the branch.",
        "Give the account write access, or correct the secret of the Repository.",
    ),
    Reason.PUSH_REFUSED: Remedy(
        "The server takes the connection and refuses the push: a rule protects the branch or the "
        "tag, forbids a name, forced pushes or unsigned commits, a hook rejects it, a ref is in "
        "the way, a quota is used up, or the account may only read.",
        "Read the message of the server. Let its administrators change the rule, or allow the "
        "account of fanout what the rule forbids. Each pass tries again; what the server takes "
        "of a repository is pushed without the rest.",
    ),
    Reason.READY: Remedy(
        "In each stage, the candidate is published for all variants, and all variants have "
        "passed verification.",
        "None; this is the intended state.",
    ),
    Reason.RECORDED: Remedy(
        "The record is in the records repository. Its object is not needed any more.",
        "None; this is the intended state.",
    ),
    Reason.RECORDED_EARLY: Remedy(
        "Evidence counts from the publication, or from the first time that the draft was written.",
        "Report the check again.",
    ),
    Reason.RECORD_UNREADABLE: Remedy(
        "A file on the records branch is damaged, or a newer version of fanout wrote "
        "it. The policy is held.",
        "Restore the file in the records repository, or upgrade fanout.",
    ),
    Reason.RECORDS_LOST: Remedy(
        "The records repository has no records of the policy, but fanout has already "
        "written to the downstream repositories of the policy.",
        "If the branch of the policy was renamed, rename it back. Else restore the records "
        "repository from its backup. If there is no backup, run `fanout sweep --new-records`.",
    ),
    Reason.RECORDS_NOT_CONFIGURED: Remedy(
        "Objects are read from a cluster, and no records repository is named, or its directory "
        "does not exist. One that fanout creates on this machine would not be the one that other "
        "machines use.",
        "Add `--records URL`, set FANOUT_RECORDS, or set `records` in the FanoutConfiguration. "
        "Create a repository in a directory with `git init --bare PATH`.",
    ),
    Reason.RECORDS_REWOUND: Remedy(
        "The records repository was restored from an older copy, or its branch was reset.",
        "Restore the newest copy of the records repository. If there is no newer copy, "
        "run `fanout accept-records POLICY --reason WHY`.",
    ),
    Reason.RECORDS_UNREADABLE: Remedy(
        "The records repository or its branch is damaged, or a newer version of fanout wrote it.",
        "Restore the records repository, or upgrade fanout.",
    ),
    Reason.REF_NAME_CLASH: Remedy(
        "The names of two branches or tags conflict. For example, Git cannot have both "
        "a branch `a` and a branch `a/b`.",
        "Rename or delete the conflicting branch or tag.",
    ),
    Reason.REF_WITHOUT_LEASE: Remedy(
        "fanout tried to push a ref without telling the server the expected old value of the ref.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.REF_WRITTEN_TWICE: Remedy(
        "Two changes in one push write the same ref.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.REMOTE_DENIED: Remedy(
        "The credentials are missing or wrong, or the account lacks a permission.",
        "Correct the secret of the Repository, or the permissions of its account.",
    ),
    Reason.REMOTE_FAILED: Remedy(
        "The Git server reported an internal error, a full disk or a damaged repository.",
        "Let the administrator of the Git server check the repository with `git fsck`. "
        "The next pass tries again.",
    ),
    Reason.REMOTE_LOCKED: Remedy(
        "Another git process on the server is writing the ref, or was killed and left a lock file.",
        "If a git process still runs on the server, wait until it ends. Otherwise, remove the "
        "lock file that the message names.",
    ),
    Reason.REMOTE_MOVED: Remedy(
        "Somebody else pushed to the repository during the pass. Nothing was overwritten.",
        "None; the next pass reads the repository again.",
    ),
    Reason.REMOTE_NOT_FOUND: Remedy(
        "The URL is wrong, the repository was deleted, or the credentials cannot see it.",
        "Correct `spec.url` or `secretRef` of the Repository.",
    ),
    Reason.REMOTE_OBJECTS_REFUSED: Remedy(
        "The history of the repository has an object that fails the checks of Git.",
        "Repair the history of the repository.",
    ),
    Reason.REMOTE_UNAVAILABLE: Remedy(
        "DNS, the network, TLS or the server failed, or the server does not answer.",
        "Check the network and the server; fanout tries again by itself, later and later.",
    ),
    Reason.REMOVAL_AWAITS: Remedy(
        "Variants of several stages have lost their targets. Those of later stages are "
        "removed first.",
        "None; the variant is removed after the variants of later stages.",
    ),
    Reason.RENDER_FAILED: Remedy(
        "A function of the pipeline reports an error or cannot process the package.",
        "Correct the package, the function configuration or the injected object that the "
        "message names.",
    ),
    Reason.REPOSITORY_CHANGED_TWICE: Remedy(
        "A pass tried to push to one repository twice.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.REPOSITORY_NOT_MADE: Remedy(
        "The state directory is not writable, or its disk is full.",
        "Check the permissions and free space of the state directory.",
    ),
    Reason.REPOSITORY_UNAVAILABLE: Remedy(
        "fanout could not read the branches and tags of the repository, or two "
        "Repository objects conflict.",
        "Run `fanout get repositories` to see the reason. Then correct the Repository "
        "object or the Git server.",
    ),
    Reason.REQUIRED_INJECTION_MISSING: Remedy(
        "The package has a required injection point, and none of the objects that the "
        "policy selects can be injected there.",
        "Create the object that the message names, or correct the injectors of the policy.",
    ),
    Reason.SECRET_UNUSABLE: Remedy(
        "`secretRef` names a secret that does not exist or that has no password or token.",
        "Create or correct the secret.",
    ),
    Reason.STALE: Remedy(
        "A draft that is rewritten has another tree, and needs another approval or decision.",
        "Look at the new drafts, then approve or decide again.",
    ),
    Reason.SUBMODULE_REFUSED: Remedy(
        "A package must contain all its files, and a submodule only refers to another repository.",
        "Replace the submodule with the files themselves.",
    ),
    Reason.SUPERSEDED: Remedy(
        "Of one reporter the last report about a check counts, and a retry drops earlier failures.",
        "None; the later report counts.",
    ),
    Reason.TAG_MISSING: Remedy(
        "Somebody deleted the tag of a published package or of an upstream revision.",
        "Restore the tag that the message names.",
    ),
    Reason.TAG_MOVED: Remedy(
        "Somebody moved the tag of a published package or of an upstream revision.",
        "Restore the tag. For a new upstream revision, push a new tag.",
    ),
    Reason.TARGET_GONE: Remedy(
        "The object of the target was deleted, or `spec.targets` no longer selects it.",
        "Run `fanout remove POLICY VARIANT --reason WHY`, or restore the object or its labels.",
    ),
    Reason.TARGETS_FAILED: Remedy(
        "A template fails for some targets, or the names or paths of the targets conflict.",
        "Run `fanout validate` and `fanout get targets`, and correct the targets.",
    ),
    Reason.TARGETS_UNCERTAIN: Remedy(
        "The CustomResourceDefinition of the targets was created after the policy, and less than"
        " an hour ago; a restore can still add their objects.",
        "None, or run `fanout remove POLICY VARIANT --reason WHY` if they are not restored.",
    ),
    Reason.TOO_MANY_REMOVALS: Remedy(
        "More targets disappeared than the field `removalLimit` allows. This is often a mistake.",
        "Restore the targets, or run `fanout remove POLICY --all-gone --reason WHY`.",
    ),
    Reason.TREE_MISMATCH: Remedy(
        "The Git tree that fanout wrote differs from the tree that it had computed.",
        "This is a bug in fanout; report it with the output of the command with `-v`.",
    ),
    Reason.UNKNOWN_KIND: Remedy(
        "The name of a kind or resource type is wrong.",
        "Use one of the names that the message lists.",
    ),
    Reason.UNKNOWN_REPOSITORY: Remedy(
        "No Repository has this name, or the Repository with this name is in another namespace.",
        "Create the Repository, or correct the name.",
    ),
    Reason.UNKNOWN_TIME_ZONE: Remedy(
        "The IANA time zone database does not contain the name.",
        "Write a name such as Europe/Oslo.",
    ),
    Reason.UNREADABLE_NAME: Remedy(
        "A commit contains a file whose name is not valid UTF-8.",
        "Rename the file.",
    ),
    Reason.UNUSED: Remedy(
        "No policy or variant without errors reads packages from the repository, or writes to it.",
        "Correct the policies with errors that name it. Otherwise none: the repository is listed as"
        " soon as a policy or variant names it.",
    ),
    Reason.URL_REFUSED: Remedy(
        "The URL has a password, an unsupported protocol, or an address that is not allowed.",
        "Use https, ssh or a local path, and store credentials in a secret.",
    ),
    Reason.WITHDRAWN: Remedy(
        "A later record withdrew the decision or the evidence, or revoked the approval.",
        "None; to take that back, record it again.",
    ),
    Reason.WRONG_OBJECT: Remedy(
        "A Git object or file does not have the expected type.",
        "Correct the reference that the message names, or restore the repository.",
    ),
}
