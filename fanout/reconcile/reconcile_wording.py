"""Sentences of the problems, holds and conditions of a pass that gates and plan do not word."""

from collections.abc import Iterable, Sequence

from fanout.api.text_fields import join_words, pluralize
from fanout.errors import FanoutError
from fanout.plan.pull_requests.request_holds import HOLD_LABEL

# Actors.
DECLARED_MOVED = "what is declared changed during the pass"
DEPENDENCY_AUTHOR = "the author of the variant (dependsOn)"
OWNER_OF_OBJECTS = "the owner of the objects (`fanout validate` reports their errors)"
RESTORER_OF_OBJECTS = "nobody (opens automatically), or whoever restores the objects"
OWNER_OF_REPOSITORY = "the owner of the repository"

# Sentences without data, and remedies.
ARCHIVED_REMEDY = "unarchive the repository, or remove the Repository"
BRANCH_RESTORATION = "restore the branch"
BRANCH_REMEDY = "use the same branch in both, or another repository"
COMMAND_REMEDY = "run the command again"
COMMIT_REMEDY = "push the commit to a branch, or name an existing one"
DEPENDENCY_REMEDY = "correct spec.dependsOn, or add the target"
DIRECTORY_REMEDY = "correct spec.upstream.package, or the tag"
DRAFT_RENDERING_LOST = "no commit contains the rendering of the draft any more"
DRAFT_RENDERING_REMEDY = "delete the draft branch; the next pass writes it again"
EMPTY_TEXT = "the template yields no text"
FOREIGN_CLONE_REMEDY = "choose another path, or delete the package from the branch"
FORGE_WITHOUT_MERGES = "the forge cannot merge pull requests through its API"
FORGE_WITHOUT_STATUSES = "the forge has no statuses of commits"
IN_FORCE = "the policy is valid and in force"
MERGED_EARLY = "a person merged the draft before its gates opened"
MOVED_TAG_REMEDY = "restore the tag, and release the change under a new one"
NEW_EDITS_REMEDY = "review it, then run the command again"
ORPHAN_NAME_REMEDY = "run `fanout get targets`; variants without a target have TargetGone"
PRESENT_TARGET_REMEDY = "to remove the package, remove the target from the policy first"
RANGE_REMEDY = "release a revision, or widen the range"
RECORDS_RESTORATION = "restore the newer records"
RECORDS_REMEDY = (
    "name the correct records repository with --records, or restore it from a backup; if there is"
    " none, run `fanout sweep --new-records`, which loses suspensions, approvals and evidence"
)
MISSING_BRANCH_REMEDY = "restore it, or name the correct records repository with --records"
REMOVED_IN_SWEEPS = "this pass only writes drafts; a sweep removes the package"
REMOVED_NEXT = "the next sweep removes it"
REPOSITORY_REMEDY = (
    "declare the Repository again with this URL and branch, or set deletionPolicy: Orphan to leave"
    " the package as it is"
)
TAG_REMEDY = "push the tag, or name an existing one"
TOO_MANY_ROUNDS = "the conditions need too many rounds of evaluation in one pass"
TOO_MANY_ROUNDS_REMEDY = "move conditions that do not read `stage` into entries of their own"
UNDECLARED_REMEDY = (
    "declare it again with targets that match nothing, then run the command again; its"
    " deletionPolicy decides whether its packages stay"
)
UNREADABLE_DECLARATION_REMEDY = "correct it; `fanout validate` reports every error"
UNREAD_REMEDY = "correct the file, or have an administrator grant the right to read it"
BROKEN_REPOSITORY_REMEDY = "run `fanout validate`, and correct its errors"
UNKNOWN_REPOSITORY_REMEDY = "create it, or add the namespace to its spec.allowedNamespaces"


# Adoption, edits and drafts.


def describe_other_clone(
    location: str, directory: str, repository: str, path: str, url: str
) -> str:
    """Describe an existing package that was cloned from another upstream."""
    return (
        f"{location} is a clone of {directory} in {repository}, but the upstream of its variant is"
        f" {path} in {url}; choose another path, or correct its upstreamLock"
    )


def describe_unadoptable(location: str, problem: object) -> str:
    """Describe an existing package whose upstream revision cannot be read."""
    return f"{location} cannot be adopted: {problem}"


def describe_unknown_lock(commit: str, path: str, url: str) -> str:
    """Describe an upstreamLock with a commit that the upstream repository lacks."""
    return f"no branch or tag of {url} contains commit {commit} with {path}"


def describe_cloned_state(directory: str, repository: str) -> str:
    """Describe the present state of a package that was replaced."""
    return f"is a clone of {directory} in {repository}"


def describe_locked_state(revision: str) -> str:
    """Describe the present state of a package by the upstreamLock in its Kptfile."""
    return f"has the Kptfile of {revision}"


def describe_equal_state(publication: str) -> str:
    """Describe the present state of a package by an earlier publication."""
    return f"has the content of {publication}"


def describe_edited_package(location: str) -> str:
    """Describe a published package that people edited."""
    return f"{location} was edited outside fanout; the edits are carried into the next draft"


def describe_remaining_branch(branch: str, repository: str) -> str:
    """Describe a draft branch that still exists after publication."""
    return (
        f"branch {branch} of {repository} is published but still exists; each sweep tries to"
        " delete it. If the server denies deletions, allow them below drafts/, or delete the"
        " branch by hand"
    )


def describe_lost_renderings(branch: str, packages: int, merged: int) -> str:
    """Describe a vendor branch without published packages, `merged` of them with edits."""
    edits = f"; {merged} with merged edits will be held at their next draft" if merged else ""
    return (
        f"branch {branch} lacks {pluralize(packages, 'published package')}, so edits cannot be"
        f" told from upstream content{edits}; push the branch again from a clone that has it"
    )


def remind_lost_renderings(policy: str) -> str:
    """Describe the same in one line."""
    return f"the vendor branch lacks published packages; run `fanout explain {policy}`"


def describe_accepted_conflicts(number: int) -> str:
    """Describe a draft that is published with its merge conflicts."""
    return (
        f"its draft is published with {pluralize(number, 'merge conflict')} that a person accepted"
    )


# Tags and repositories.


def format_push_command(commit: str, ref: str) -> str:
    """Format the command that sets a ref, for a clone: a URL may be relative to another directory.

    A clone of the repository has the commit, unless its history was rewritten.
    """
    return f"git push origin {commit}:{ref}"


def describe_moved_publication(
    tag: str, repository: str, target: str, revision: str, command: str
) -> str:
    """Describe the tag of a publication that points elsewhere; `command` restores it."""
    return (
        f"tag {tag} of {repository} points to {target}, not to the publication of {revision};"
        f" delete the tag and, in a clone of {repository}, run `{command}`"
    )


def describe_lost_publication(tag: str, repository: str, revision: str, command: str) -> str:
    """Describe the tag of a publication that was deleted; `command` restores it."""
    return (
        f"tag {tag} is missing from {repository}, but {revision} was published with it; in a clone"
        f" of {repository}, run `{command}`"
    )


def describe_lost_earlier_publication(tag: str, repository: str, command: str) -> str:
    """Describe the deleted tag of a publication that others followed; `command` restores it."""
    return (
        f"tag {tag} of an earlier publication is missing from {repository}; in a clone of"
        f" {repository}, run `{command}`"
    )


def describe_lost_upstream_tag(tag: str, repository: str, revision: str, commit: str) -> str:
    """Describe the upstream tag of a published revision that was deleted."""
    return (
        f"tag {tag} is missing from {repository}, but {revision} is published; restore the tag"
        f" ({commit}) or release a newer revision, because automation never downgrades"
    )


def describe_moved_tag(tag: str, former: str, present: str) -> str:
    """Describe an upstream tag that points to another commit than when it was used."""
    return f"tag {tag} pointed to {former} when it was used, and now points to {present}"


def describe_missing_tag(url: str, tag: str) -> str:
    """Describe a tag that the upstream repository lacks."""
    return f"repository {url} has no tag {tag}"


def describe_unmatched_rule(url: str, path: str, semver: str) -> str:
    """Describe a rule that no tag of the package matches; `semver` is "" for `latest`."""
    rule = f"the range {semver}" if semver else "`latest`, which excludes prereleases"
    return f"no tag {path}/v<N> of repository {url} matches {rule}"


def describe_missing_commit(url: str, commit: str) -> str:
    """Describe a commit that the upstream repository lacks."""
    return f"repository {url} has no commit {commit} on any branch"


def describe_missing_directory(path: str, revision: str, url: str, problem: str) -> str:
    """Describe a revision without the directory of the package."""
    return f"{url} has no directory {path} at {revision}{f': {problem}' if problem else ''}"


def describe_second_branch(url: str, other: str, branch: str) -> str:
    """Describe a Repository with the URL of another one and a different branch."""
    return (
        f"{other} has the same URL {url} and branch {branch}; a repository is published"
        " to on one branch"
    )


def describe_archived_repository(name: str, host: str) -> str:
    """Describe a repository that accepts no changes."""
    return f"repository {name} is archived on {host}"


def describe_unknown_repository(name: str, namespace: str) -> str:
    """Describe a Repository that does not exist or is not allowed."""
    return f"there is no Repository {name} that namespace {namespace} may use"


def describe_broken_repository(name: str) -> str:
    """Describe a Repository that is declared and cannot be used."""
    return f"Repository {name} has errors and cannot be used"


def describe_foreign_request(number: int, base: str, head: str) -> str:
    """Describe a pull request that a person opened from a draft branch."""
    return f"pull request {number} from {head} to {base} was not opened by fanout and is ignored"


def describe_unknown_reviewers(url: str, reviewers: Iterable[str]) -> str:
    """Describe reviewers that the forge refuses."""
    return f"{url}: cannot request a review from {', '.join(reviewers)}"


def describe_missing_hold_label(url: str, error: FanoutError) -> str:
    """Describe that the label by which people hold requests could not be created."""
    return (
        f"{url}: cannot create the label {HOLD_LABEL}, which holds pull requests: {error};"
        " or create it by hand"
    )


# Paths and moves.


def describe_other_publisher(location: str, owner: str) -> str:
    """Describe a path with a package of another policy."""
    return f"{location} holds a package that was published for {owner}"


def describe_other_tenant(location: str, variant: str) -> str:
    """Describe a path with a package of another namespace, with no more about it."""
    return (
        f"{location} holds a package that was published for a policy in another namespace; choose"
        f" another path for {variant}"
    )


def describe_two_addresses(sentence: str, repositories: Sequence[str], urls: Sequence[str]) -> str:
    """Describe two Repositories with different URLs of one repository."""
    return (
        f"{sentence}: {join_words(repositories, 'and')} are one repository with two URLs,"
        f" {join_words(urls, 'and')}; use one URL in both, and change downstream.package of one"
        " variant"
    )


def describe_other_owner(sentence: str, variant: str) -> str:
    """Describe a path whose package has not been removed yet."""
    return (
        f"{sentence} and was not removed; choose another path for {variant}, or delete the package"
        " from the branch"
    )


def describe_foreign_clone(location: str, directory: str, repository: str, variant: str) -> str:
    """Describe a path with a clone of another upstream package."""
    return (
        f"{location} holds a clone of {directory} in {repository} that was not published for"
        f" {variant}; {FOREIGN_CLONE_REMEDY}"
    )


def describe_unrecorded_move(variant: str, former: str, new: str) -> str:
    """Describe a move that waits until the publication at the former path is recorded."""
    return f"{variant} moves from {former} to {new} after the publication at {former} is recorded"


def describe_unreachable_path(variant: str, path: str, place: str, problem: str) -> str:
    """Describe a move away from a repository that cannot be used."""
    detail = f": {problem}" if problem else ", for which the namespace has no Repository"
    return (
        f"{variant} is at {path} in {place}{detail}; declare the Repository with this URL and"
        " branch so that the package can move"
    )


def describe_displaced_variant(variant: str, path: str, owner: str) -> str:
    """Describe a former path that another variant has taken before the move."""
    return (
        f"the former path {path} of {variant} belongs to {owner} now, but {variant} is not"
        " at its new path yet; merge its draft by hand"
    )


def describe_edited_leftover(variant: str, location: str) -> str:
    """Describe a path that a variant left, returns to, and that was edited in between."""
    return (
        f"{location}, the former path of {variant}, was edited since; copy the edits to its"
        " present path and remove the package, or choose another path"
    )


# Records.


def describe_found_branch(cause: str, url: str, branch: str) -> str:
    """Describe missing records of an installation that has a branch in a repository."""
    return f"{cause}, but {url} has branch {branch} of this installation"


def describe_other_branches(problem: str, branch: str, repository: str, others: int) -> str:
    """Describe missing records whose repository has other branches."""
    names = "1 with another name" if others == 1 else f"{others} with other names"
    return f"{problem}; {repository} has no branch {branch}, but {names}"


def format_renaming_remedy(branch: str, repository: str) -> str:
    """Format the remedy of records whose branch may have been renamed."""
    return (
        f"run `git ls-remote {repository}`; if a branch there has the records, rename it back to"
        f" {branch}; else name the correct records repository with --records, or restore it from a"
        " backup"
    )


def describe_lost_policy_records(url: str, artifact: str) -> str:
    """Describe missing records of a policy that wrote something to a repository."""
    return f"the policy has no records, but {url} has {artifact}"


def describe_reset_branch(branch: str, last_seen: str, missing: str) -> str:
    """Describe a records branch that was reset."""
    return (
        f"{branch} was reset: it does not contain commit {last_seen}, its last known head{missing}"
    )


def format_missing_records(records: Sequence[str], others: int) -> str:
    """Format what a records branch that was reset lacks, to follow its sentence."""
    if not records:
        return "; no record is missing, only status"
    return f"; missing: {'; '.join(records)}{f' and {others} more' if others else ''}"


def describe_reset_records(sentence: str, others: int, head: str) -> str:
    """Describe records that lack publications."""
    more = f" (and {others} more)" if others else ""
    return f"{sentence}{more}: the records were reset to an older state (commit {head})"


def describe_lost_trace(record: str, url: str) -> str:
    """Describe a record that a repository names, and that is not on record."""
    return (
        f"record {record} stopped something and is named in {url}, but it is not on record: the"
        " records were reset to an older state"
    )


def describe_unrecorded_publication(publication: str, commit: str, repository: str) -> str:
    """Describe a publication that was recorded once."""
    return f"publication {publication} ({commit}) of {repository} is missing from the records"


def format_reset_remedy(restoration: str, title: str) -> str:
    """Format the remedy of records that were reset. `title` is NAMESPACE/NAME."""
    namespace, _, name = title.partition("/")
    return (
        f"{restoration}; or, to continue from what the repositories have published, run"
        f" `fanout accept-records {name} -n {namespace} --reason WHY`"
    )


def describe_undeclared_policy(namespace: str, policy: str, contents: Iterable[str]) -> str:
    """Describe a policy that has records but no object."""
    return (
        f"policy {namespace}/{policy} is not declared but has {' and '.join(contents)}; declare it"
        " again, or, to remove it, declare it with targets that match nothing and run"
        f" `fanout remove {policy} --all-gone --reason WHY`"
    )


def describe_recorded_policy(namespace: str, policy: str) -> str:
    """Describe the same when a command names the policy."""
    return f"policy {namespace}/{policy} has records but is not declared"


def describe_undeclared_variant(
    namespace: str, name: str, place: str, *, is_published: bool
) -> str:
    """Describe a hand-written variant that has records but no object."""
    state = "its package is still published" if is_published else "it has records"
    return (
        f"PackageVariant {namespace}/{name} is not declared, but {state} ({place}) and is not"
        f" updated; declare it again, or run `fanout remove {name} --reason WHY`"
    )


# Removal.


def describe_unusable_declaration(declaration: str) -> str:
    """Describe a declaration for which no target is considered gone."""
    return f"a target may be in a declaration that cannot be used: {declaration}"


def describe_new_definition(kind: str, until: str) -> str:
    """Describe the definition of a kind that is younger than the policy that selects it."""
    return (
        f"kind {kind} was defined again after the policy was created;"
        f" a restore can still add its objects until {until}"
    )


def describe_unreadable_declaration(variant: str, declaration: str) -> str:
    """Describe a file that may declare the variant that a person wants to remove."""
    return f"{variant} may be declared in {declaration}, which cannot be read"


def describe_unusable_place(variant: str, path: str, place: str) -> str:
    """Describe a package in a repository that no usable Repository names."""
    return f"{variant} is at {path} in {place}, for which the namespace has no Repository"


def advise_orphaning(subject: str) -> str:
    """Advise how to end a deletion whose Repository is gone; `subject`: words for kubectl."""
    change = '{"spec": {"deletionPolicy": "Orphan"}}'
    return (
        f"to leave the package as it is, run `kubectl patch {subject} --type=merge -p '{change}'`;"
        " or declare the Repository again with this URL and branch, which cannot be done in a"
        " namespace that is being deleted"
    )


def describe_new_edits(edits: str) -> str:
    """Describe edits that were made after a person confirmed the removal."""
    return f"{edits} changed during the removal"


def describe_kept_branch(branch: str) -> str:
    """Describe a draft branch that the server did not delete."""
    return f"branch {branch} was not deleted"


def describe_present_target(variant: str) -> str:
    """Describe a variant that a removal would bring back."""
    return (
        f"{variant} left no other package, and its target still exists: it would be created again"
    )


def describe_missing_orphan(title: str, variant: str) -> str:
    """Describe a name that is no variant without a target."""
    return f"{title} has no variant {variant} without a target"


def describe_orphans(number: int) -> str:
    """Describe the variants without a target in a few words."""
    return f"{pluralize(number, 'variant')} without a target"


def advise_confirmation(command: str) -> str:
    """Advise the command that confirms a removal."""
    return f"to confirm, run `{command}`"


def describe_orphan(variant: str, places: Iterable[str], consequence: str) -> str:
    """Describe a variant without a target."""
    return f"variant {variant} ({', '.join(places)}) has no target any more; {consequence}"


def describe_kept_orphan(policy: str, variant: str) -> str:
    """Describe an orphan that only a person removes."""
    return f"to remove it, run `fanout remove {policy} {variant} --reason WHY`"


def describe_requested_orphan(branch: str, hold: str) -> str:
    """Describe an orphan that a pull request removes."""
    return f"it is removed by the pull request of {branch}{f'; {hold}' if hold else ''}"


def describe_held_orphan(hold: str) -> str:
    """Describe an orphan whose removal is held."""
    return f"it stays: {hold}"


def append_actor(hold: str, actor: str) -> str:
    """Append who can act to the sentence of a hold, where that is known."""
    return f"{hold}; who can act: {actor}" if actor else hold


# Dependencies.


def describe_cycle(variants: Iterable[str]) -> str:
    """Describe variants that depend on each other."""
    return f"variants form a cycle: {' → '.join(variants)}"


def describe_unknown_dependency(variant: str) -> str:
    """Describe a dependency that was not evaluated."""
    return f"waits for variant {variant}, which was not evaluated"


def describe_unready_dependency(variant: str, state: str, candidate: str, hold: str) -> str:
    """Describe a dependency that is not ready."""
    return (
        f"waits for variant {variant}, which is {state}{f' at {candidate}' if candidate else ''}"
        f"{f': {hold}' if hold else ''}"
    )


def describe_missing_dependency(kind: str, name: str) -> str:
    """Describe a dependency that does not exist."""
    return f"waits for {kind} {name}, which does not exist"


def describe_failed_dependency(target: str, policy: str, problem: str) -> str:
    """Describe a target without a variant."""
    return f"waits for target {target} of {policy}, which has no variant: {problem}"


def describe_missing_target(target: str, policy: str, remedy: str) -> str:
    """Describe a dependency on a target that the policy lacks."""
    return f"waits for target {target}, which UpstreamPolicy {policy} does not have; {remedy}"


# Pull requests and notifications.


def describe_deleted_branch(ref: str) -> str:
    """Describe a head branch that was deleted during the pass."""
    return f"{ref.removeprefix('refs/heads/')} was deleted during the pass"


def warn_default_text(where: object, reason: str, problem: str) -> str:
    """Describe a template that failed; the pull request has the built-in text."""
    return (
        f"{where}: {reason}: {problem}; the pull request has the built-in text until this is"
        " corrected"
    )


def format_omitted_parts(lines: int, files: int) -> str:
    """Format what is left out of a change, or "" if nothing is."""
    parts = ((lines, "more line"), (files, "more file"))
    return " and ".join(pluralize(number, noun) for number, noun in parts if number)


def format_omitted_files(number: int) -> str:
    """Format how many files are left out of each of several packages."""
    return f"{pluralize(number, 'more file')} of each"


def format_omitted_packages(number: int) -> str:
    """Format how many packages are left out."""
    return f"the changes of {pluralize(number, 'package')}"


def format_large_file(size: int) -> str:
    """Format what is shown of a file that is too large to compare."""
    return f"{size:,} bytes, too long to compare"


# Pins and promotion.


def describe_unreadable_promotion(declaration: str) -> str:
    """Describe a declaration that may be a PromotionPolicy."""
    return (
        f"automatic promotion is off while {declaration} cannot be read: a PromotionPolicy can"
        " restrict what others allow; correct it"
    )


def warn_default_message(where: object, problem: object) -> str:
    """Describe a template that failed; the commit has the default message."""
    return f"{where}: {problem}; the commit has the default message until this is corrected"


# Records of a cluster.


UNPROVEN_RECORD = (
    "nothing proves who created the record: the admission policies were written later, or less than"
    " a minute before"
)
UNPROVEN_REMEDY = "delete it, and create it again"


def describe_unusable_user(user: str) -> str:
    """Say that the author of a record's object cannot be the author of a commit."""
    return f"user {user!r} (annotation fanout.dev/by) cannot be the author of a commit"


def describe_expired_record(created: str) -> str:
    """Say that a record was over before its object was created."""
    return f"spec.expires: is not after the creation of the object at {created}"


def describe_outdated_records(problem: str) -> str:
    """Say that a pass knows the records that were read last, and so writes drafts alone."""
    return (
        f"drafts are written by the records that were read last, and nothing is released: {problem}"
    )


def describe_rewound_intake(branch: str) -> str:
    """Say that records are not taken in on a branch that was put back."""
    return f"{branch} was put back to an older state"


def describe_missing_branch(branch: str, last_seen: str) -> str:
    """Say that records are not taken in where all records of a policy are missing."""
    return f"{branch} does not exist; commit {last_seen} was its last known head"


def describe_waiting_records(namespace: str, policy: str, problem: str) -> str:
    """Say that the records of a policy are not taken in now."""
    subject = f"policy {policy}" if policy else "variants without a policy"
    return f"records of {subject} in namespace {namespace} wait: {problem}"


def describe_unwritten_record(identity: str, problem: str) -> str:
    """Say that the status of the object of a record could not be written."""
    return f"{identity} could not be written: {problem}"


def describe_undeleted_record(identity: str, problem: str) -> str:
    """Say that the object of a record could not be deleted after its retention."""
    return f"{identity} could not be deleted: {problem}"
