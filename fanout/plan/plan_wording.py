"""Sentences of `plan`: holds and their actors, readings of checks, details of actions."""

from collections.abc import Iterable, Sequence

from fanout.api.text_fields import list_first, pluralize
from fanout.plan.observation.observed_request import RequestState

ADMINISTRATOR = "an administrator"
AUTHOR = "the policy's author"
AUTHOR_OF_RANGE = "the policy's author (spec.upstream) or any promoter (fanout promote)"
AUTHOR_OF_OFFLINE = "the policy's author (offlineWhen) or the owner of the target"
LABEL_OWNER = "the person who set the label"
NEXT_RUN = "the next pass"
OPERATOR = "the operator of fanout"
OWNER_OF_OBJECTS = "the owner of the cluster objects"
REFUSED_BY_FORGE = "whoever can meet what the forge asks for; each pass asks it again"
RESTORER_OF_TAG = "a maintainer of the upstream package or any promoter (fanout promote)"
UPSTREAM_MAINTAINER = "a maintainer of the upstream package"

ADOPTION_LOCK_REMEDY = (
    "write upstreamLock into its Kptfile as kpt does (git: repo, directory, ref and commit of the"
    " revision that it came from) and commit it"
)
ADOPTION_RENDER_REMEDY = (
    "render the package with the pipeline that it has upstream at its upstreamLock (as `kpt fn"
    " render` does), or give the objects the names that they have then, and commit it"
)
ALL_RESTORED = (
    "every package that the branch removes was put back; close its pull request to keep them"
)
CONTENT_PUBLISHED = "its content is on the branch"
DIFFERENT_HEADS = "the forge and Git show different heads of its pull request"
DRAFT_PUBLISHED = "what it proposes is published already"
EMPTY_BRANCH = "nothing is left on its branch"
EMPTY_RECORDS = "that its records start empty"
GATES_OPEN = "the gates are open"
KPTFILE_MISSING = "the package has no Kptfile"
LOCK_INCOMPLETE = "the upstreamLock of the Kptfile lacks a repo, a directory or the ID of a commit"
LOCK_MISSING = "the Kptfile has no upstreamLock"
NOT_BOOLEAN = "is neither true nor false"
NOT_RELEASED = "it is not released any more"
NOTHING_TO_REMOVE = "its packages are gone already, or stay"
NO_PACKAGE_CHANGED = "it changes no package that fanout manages"
NO_TEXT = "yields no text"
PUBLICATION_UNKNOWN = "the commit of the publication is not known"
REMOVED_VARIANT_REMEDY = "remove the PackageVariant"
RENAMED_BY_PIPELINE = "the pipeline of the package gives this object another name"
RENAMED_IN_CLONE = "the object is from upstream, but its name does not match the rest of the clone"
REQUEST_NOT_OPEN = "its pull request is not open yet"
TARGET_GONE = "its target is gone"
UNRELEASED_DRAFT = "the draft of its stage includes it once it is released"


def describe_postponed_draft(limit: int) -> str:
    """Say that a variant waits because its policy writes no more drafts in this round."""
    return f"its policy has written {pluralize(limit, 'draft')} in this round (draftsPerRound)"


def describe_withdrawn_revision(revision: str, tag: str, repository: str) -> str:
    """Describe a revision that a decision names and whose tag is gone."""
    return (
        f"a decision names {revision}, but tag {tag} is missing from {repository}; restore the tag,"
        " promote another revision, or withdraw the decision"
    )


def describe_excluded_revision(revision: str) -> str:
    """Describe a revision that a decision names and that the policy does not allow any more."""
    return (
        f"a decision names {revision}, but spec.upstream.revision does not allow it; allow it,"
        " promote another revision, or withdraw the decision"
    )


def format_maintainers(repository: str) -> str:
    """Format who can change a downstream repository."""
    return f"the maintainers of {repository}"


def format_server_administrators(repository: str) -> str:
    """Format who can change what the server of a downstream repository takes."""
    server = f"the Git server of {repository}" if repository else "the Git server"
    return f"the administrators of {server}"


OTHER_WORDS = (
    "its other words are about objects of other namespaces; administrators find them in the log"
)


def describe_refused_push(message: str, since: str) -> str:
    """Describe a push that a server refuses, and since when."""
    return f"{message}; refused since {since}"


def describe_ended_refusal(variant: str) -> str:
    """Describe the record that no push about a variant is due any more that was refused."""
    return f"that no refused push about {variant} is due any more"


def describe_trace(record: str) -> str:
    """Describe the trace of the last record that stops something; "": there is none any more."""
    return f"name {record}" if record else "name no record"


def format_variant_author(variant: str) -> str:
    """Format who wrote a variant by hand."""
    return f"the author of PackageVariant {variant}"


def format_pin_author(stage: str) -> str:
    """Format who can remove a pin from a policy."""
    return f"the policy's author (pin of stage {stage})"


def format_withdraw_command(subject: str, decision: str) -> str:
    """Format who can withdraw a rollback, with the command."""
    return f"whoever may withdraw records: run `fanout withdraw {subject} {decision} --reason WHY`"


def format_promoter(variant: str) -> str:
    """Format who can promote a variant."""
    return f"any promoter of {variant}"


# Rollback.


def describe_unpublished_revision(location: str, revision: str) -> str:
    """Describe a rollback to a revision that was never published."""
    return f"{location} was never published at {revision}; choose a published revision"


def describe_moved_rollback(variant: str, location: str, new_location: str, revision: str) -> str:
    """Describe a rollback of a variant that moves."""
    return (
        f"{variant} moves from {location} to {new_location}; roll it back to {revision} before or"
        " after the move"
    )


def describe_edited_draft(branch: str, drafted: str, revision: str) -> str:
    """Describe a rollback that would drop commits on a draft."""
    return (
        f"branch {branch} has people's commits on a draft of {drafted}, which a rollback to"
        f" {revision} would drop; save them in another branch and remove this one"
    )


def describe_missing_rendering(location: str, revision: str) -> str:
    """Describe a rollback whose edits have no base."""
    return (
        f"the vendor branch lacks {revision} of {location}, so edits cannot be told from"
        " upstream; restore that branch"
    )


def describe_reverted(location: str, description: str, revision: str, remedy: str) -> str:
    """Describe a publication that a person reverted."""
    return f"{location} {description}, and {revision} was published: it was reverted; {remedy}"


# Paths and moves.


def describe_shared_branch(branch: str, variant: str) -> str:
    """Describe a branch with an edited draft of another variant."""
    return (
        f"branch {branch} has people's commits for variant {variant}; its draft at the new path"
        " takes them first"
    )


def describe_nested_move(location: str, path: str) -> str:
    """Describe a move to a path inside the present one, or around it."""
    return f"{location} and the present path {path} are nested; move it to a third path first"


def describe_other_namespace(location: str, path: str) -> str:
    """Describe a path of a variant in another namespace, with no more about it."""
    return (
        f"{location} is not free: {path} belongs to a variant in another namespace; choose another"
        " path, or wait until it is free"
    )


def describe_undeclared_occupant(location: str, path: str, policy: str) -> str:
    """Describe a path of a policy that is not declared. `policy` is NAMESPACE/NAME."""
    name = policy.rpartition("/")[2]
    return (
        f"{location} is not free: {path} belongs to policy {policy}, which is not declared; declare"
        " it again, or declare it without targets and run"
        f" `fanout remove {name} --all-gone --reason WHY`"
    )


def describe_leaving_occupant(location: str, path: str, owner: str) -> str:
    """Describe a path that another variant leaves."""
    return f"{location} is not free: {owner} leaves {path} when it is ready at its new path"


def describe_moving_occupant(location: str, path: str, owner: str) -> str:
    """Describe a path of a variant that has not moved yet."""
    return f"{location} is not free: {owner} has not moved from {path} yet"


def describe_orphaned_occupant(location: str, path: str, variant: str, policy: str) -> str:
    """Describe a path of a variant without a target; `policy` is NAMESPACE/NAME."""
    namespace, _, name = policy.partition("/")
    subject = f"{name} {variant}" if name else variant
    return (
        f"{location} is not free: {path} belongs to variant {variant} ({policy}), which has no"
        f" target; run `fanout remove {subject} -n {namespace} --reason WHY`"
    )


def describe_missing_branch(
    repository: str, branch: str, default_branch: str, others: Sequence[str]
) -> str:
    """Describe a repository without its branch, with the branches that it has instead.

    `default_branch` is "" where the server names none that exists.
    """
    missing = f"repository {repository} has no branch {branch}"
    remedy = f"set spec.branch of the Repository, or create {branch} again"
    if default_branch:
        return f"{missing}; its default branch is {default_branch}: {remedy}"
    if others:
        return f"{missing}, but {list_first(others, 3)}: {remedy}"
    return f"{missing}; push a first commit to it"


def describe_lost_history(repository: str, branch: str, path: str, commit: str, tag: str) -> str:
    """Describe a branch without the commit that published a package, and without the package.

    `tag` leads to that commit; "" where the repository has none.
    """
    remedy = (
        f"put the branch back, or run `git restore --source {tag} -- {path}` on it and push"
        if tag
        else "push the earlier history to it again"
    )
    return (
        f"branch {branch} of {repository} was rewritten or replaced: it lacks commit {commit},"
        f" which published {path}; {remedy}"
    )


def describe_invalid_path(location: str, problem: str) -> str:
    """Describe a path that cannot have a package."""
    return f"{location}: {problem}; remove it from the branch or change downstream.package"


def describe_other_installation(location: str, install: str) -> str:
    """Describe a path with a draft of another installation."""
    return f"{location} has a draft of installation {install}; one installation owns a path"


def describe_foreign_draft(branch: str, variant: str) -> str:
    """Describe a branch that is no draft of the variant."""
    return f"branch {branch} has commits of others and no draft of {variant}; rename or delete it"


def describe_copied_draft(branch: str, variant: str, other: str) -> str:
    """Describe a branch of a variant to which the draft of another one was pushed."""
    return (
        f"branch {branch} has the draft of variant {other}, and none of {variant}; rename or delete"
        " it to have the draft written again"
    )


def describe_other_package(location: str) -> str:
    """Describe a new path with a package of somebody else."""
    return (
        f"{location} holds a package that is not this variant's; choose another path or remove it"
    )


def describe_unmanaged_package(location: str) -> str:
    """Describe a path with a package that fanout did not write."""
    return (
        f"{location} holds a package that fanout did not write; set adoptionPolicy: AdoptExisting,"
        " choose another path or remove it"
    )


def describe_unmerged_package(location: str, draft_branch: str) -> str:
    """Describe a path with a package that came there while fanout had a draft for it."""
    return (
        f"{location} holds a package that is not known to be from its draft; if it is, merge branch"
        f" {draft_branch} with a merge commit, else set adoptionPolicy: AdoptExisting or choose"
        " another path"
    )


def describe_exchange(location: str, partners: Iterable[str]) -> str:
    """Describe variants that exchange paths, of which one cannot be published yet."""
    return (
        f"{location} is the path of {', '.join(partners)} until that moves; both move in one push"
    )


def describe_split_exchange(location: str, partner: str) -> str:
    """Describe variants that exchange paths and have different pull requests."""
    return (
        f"{location} is the path of {partner}, which has another pull request; move one of them to"
        " a third path first"
    )


def describe_remaining_draft(branch: str, repository: str) -> str:
    """Describe a draft at the former location whose commits were taken."""
    return f"branch {branch} in {repository} is removed first; its commits are in the draft"


# Former locations.


def describe_waiting_cleanup(path: str, variant: str) -> str:
    """Describe a former path that is kept until the variant is ready."""
    return f"{path} is removed when {variant} is ready at its new path"


def describe_requested_cleanup(location: str, branch: str) -> str:
    """Describe a former package that a pull request removes."""
    return f"{location} goes with the pull request of {branch}"


def describe_edited_cleanup(location: str, new_location: str, command: str) -> str:
    """Describe a former package that was edited."""
    return (
        f"the former path {location} was edited: copy the edits to {new_location}, then run"
        f" `{command} --edited --reason WHY`"
    )


def describe_manual_cleanup(location: str, command: str) -> str:
    """Describe a former package that waits for a person."""
    return (
        f"the former path {location} still exists and automatic promotion is off: run `{command}"
        " --reason WHY`"
    )


def describe_closed_cleanup(location: str, closure: str) -> str:
    """Describe a former package that waits for a window."""
    return f"the former path {location} still exists: {closure}"


def describe_foreign_removal(branch: str, repository: str) -> str:
    """Describe a removal branch with other commits only."""
    return f"branch {branch} of {repository} has nothing but commits of others; rename or delete it"


# Drafts and edits.


def describe_shared_draft(variant: str, sentence: str) -> str:
    """Describe a draft in which another variant cannot be published; "": the reason is unknown."""
    return (
        f"{variant} in the same draft cannot be published yet{f': {sentence}' if sentence else ''}"
    )


def describe_manual_removal(location: str, remedy: str) -> str:
    """Describe a package that was removed by hand."""
    return f"{location} was removed from the branch by hand; restore it (`git revert`) or {remedy}"


def describe_draft_faults(first: str, branch: str, others: int) -> str:
    """Describe a draft that edits have broken."""
    more = f" (and {others} more)" if others else ""
    return f"{first} on branch {branch}{more}, or remove the branch to have the draft rewritten"


def describe_missing_base(location: str, *, has_other: bool) -> str:
    """Describe an edited package without its rendering."""
    state = "has another rendering of it" if has_other else "lacks it"
    return (
        f"{location} has edits and the vendor branch {state}; restore that branch, or set"
        " adoptionPolicy: AdoptExisting to use its upstreamLock as base"
    )


def describe_missing_injections(location: str, missing: str) -> str:
    """Describe required injections without an object."""
    return f"{location}: nothing to inject: {missing}"


# Pull requests.


def describe_hold_label(number: int, label: str) -> str:
    """Describe a pull request with a label that holds it."""
    return f"its pull request {number} has the label {label}; remove the label"


def describe_awaited_merge(number: int) -> str:
    """Describe a pull request that a person merges."""
    return f"its pull request {number} is ready to be merged by a person"


def describe_forbidden_style(repository: str, style: str) -> str:
    """Describe a repository that forbids a style of merges."""
    return f"{repository} forbids merging by {style}; allow it there or change mergeStyle"


def describe_open_request(number: int) -> str:
    """Describe a variant that misses the pull request of its stage."""
    return f"pull request {number} of its stage is under review; the variant is in the next one"


def describe_closed_request(subject: str, number: int, url: str, by: str, command: str) -> str:
    """Describe a pull request that a person closed; `by` is "" if nothing tells who.

    `subject` is what it is about, and `command` asks for it again.
    """
    return (
        f"{by or 'a person'} closed pull request {number} ({url}) {subject}; reopen it or run"
        f" `{command}`"
    )


def format_decision_command(verb: str, policy: str, stage: str) -> str:
    """Format a command that decides about a stage; `stage` is "" for the whole policy."""
    return f"fanout {verb} {policy}{f' --stage {stage}' if stage else ''} --reason WHY"


def describe_requested_revision(variant: str, revision: str) -> str:
    """Describe what a pull request with the draft of a variant is about."""
    return f"of {variant} at {revision}"


def describe_requested_removal(path: str) -> str:
    """Describe what a pull request that removes a package is about."""
    return f"to remove {path}"


def describe_lost_branch(subject: str, number: int, url: str, command: str) -> str:
    """Describe a pull request whose branch a person deleted; `command` asks for it again."""
    return (
        f"a person deleted the branch of pull request {number} ({url}) {subject}; run `{command}`"
    )


def describe_changed_base(number: int, url: str, base: str, branch: str) -> str:
    """Describe a pull request whose target branch a person changed."""
    return (
        f"its pull request {number} ({url}) is to branch {base}, not to {branch}; the next sweep"
        " sets it back"
    )


def describe_stray_path(path: str) -> str:
    """Describe a package on a branch whose variant does not exist."""
    return f"{path} is on the branch, but its variant no longer exists"


def describe_waiting_member(variant: str) -> str:
    """Describe a variant of a pull request that has no decision."""
    return f"{variant} waits"


def format_request_update(
    *, has_text: bool, is_draft: bool | None, labels: Iterable[str], base_branch: str | None = None
) -> str:
    """Format what changes of a pull request; None stands for what stays."""
    parts = [f"back to branch {base_branch}"] if base_branch is not None else []
    parts += ["its text"] if has_text else []
    if is_draft is not None:
        parts.append("draft" if is_draft else "ready for review")
    return ", ".join([*parts, *(f"label {label}" for label in labels)])


def describe_changed_packages(first: str, others: int) -> str:
    """Describe somebody else's pull request that changes packages of fanout."""
    if others:
        return f"it changes packages that fanout manages: {first} and {others} more"
    return f"it changes a package that fanout manages: {first}"


def warn_unread_request(repository: str, number: int, problem: str) -> str:
    """Describe somebody else's pull request that gets no status."""
    return f"{repository}: pull request {number} gets no status of fanout: {problem}"


# Rules of branches.


def describe_unprotected_branch(branch: str, context: str) -> str:
    """Describe a branch without protection."""
    return (
        f"the branch {branch} is not protected: who may write to the repository can merge and push"
        f" without the status {context}"
    )


def describe_required_patterns(branch: str, context: str, patterns: Iterable[str]) -> str:
    """Describe a branch with patterns of required statuses."""
    return (
        f"the branch {branch} requires statuses by patterns ({', '.join(patterns)}); add the status"
        f" {context} by its name"
    )


def describe_unrequired_status(branch: str, context: str) -> str:
    """Describe a protected branch that does not require the status."""
    return (
        f"the branch {branch} does not require the status {context}; add it to the statuses that"
        " its protection requires"
    )


def describe_allowed_push(branch: str, context: str) -> str:
    """Describe a branch that requires the status for merges alone."""
    return (
        f"the branch {branch} requires the status {context} for merging, but fanout's account, and"
        " perhaps others, may push to it; forbid pushes to it"
    )


def describe_required_status(branch: str, context: str) -> str:
    """Describe a branch that requires the status."""
    return f"the branch {branch} requires the status {context}"


# Readings of checks.


def describe_missing_object(title: str) -> str:
    """Describe a check of an object that does not exist. `title` is KIND NAMESPACE/NAME."""
    return f"there is no {title}"


def describe_unreadable_namespace(namespace: str, policy_namespace: str) -> str:
    """Describe a check of an object in a namespace that checks of the policy may not read."""
    return (
        f"checks of policies in namespace {policy_namespace} may not read objects in"
        f" {namespace}; have an administrator add {namespace} to checks.namespaces of the"
        " FanoutConfiguration, or check an object in the policy's own namespace"
    )


def format_query(address: str) -> str:
    """Format the subject of a check that queries a Prometheus server."""
    return f"the query to {address}"


def describe_series_index(series: int) -> str:
    """Describe an index into the series of a query, whose order is arbitrary."""
    return (
        f"the query yields {series} series in arbitrary order, so an index selects any of them;"
        " aggregate in the query, or use result.all(...)"
    )


def describe_unknown_revision(subject: str, problem: str) -> str:
    """Describe a subject whose observed revision cannot be read."""
    return f"{subject}: the observed revision is unknown: {problem}"


def describe_outcome(subject: str, expression: str, message: str, *, is_true: bool) -> str:
    """Describe the value of a check; `message` is of the Ready condition, "" if there is none."""
    sentence = f"{subject}: {expression} is {'true' if is_true else 'false'}"
    return f"{sentence}; its Ready condition says: {message}" if message else sentence


def describe_missing_forge(repository: str) -> str:
    """Describe a check of a commit's status in a repository without a forge."""
    return (
        f"Repository {repository} has no forge, so statuses of commits cannot be read; let the"
        " pipeline run `fanout report` instead"
    )


def describe_unread_forge(host: str, failure: object) -> str:
    """Describe a forge that could not be read; `host` is "" if it is not known."""
    return f"{host or 'the forge'} could not be read: {failure}"


def describe_missing_status(
    context: str, creators: str, commits: Iterable[str], ignored: str
) -> str:
    """Describe a missing status; `creators` may set it, `ignored` set it and may not."""
    creator_phrase = f" by {creators}" if creators else ""
    sentence = f"there is no status {context}{creator_phrase} at {' or '.join(commits)}"
    return f"{sentence}; that of {ignored} is ignored" if ignored else sentence


def describe_status(context: str, commit: str, state: str, creator: str, description: str) -> str:
    """Describe the status of a commit; `description` is that of its creator."""
    sentence = f"status {context} at {commit} is {state}, by {creator}"
    return f"{sentence}: {description}" if description else sentence


# Edited packages.


def describe_hidden_names(problem: object) -> str:
    """Describe an object of a clone whose pipeline cannot run."""
    return (
        "the object may be from upstream under another name; the pipeline that would show it"
        f" cannot run: {problem}"
    )


def format_restore_remedy(promote_command: str) -> str:
    """Format what to do with a reverted publication; "": the next draft cannot replace it."""
    restore = "restore it (`git revert`)"
    if not promote_command:
        return restore
    return f"{restore}, or publish the next draft over it: `{promote_command}`"


def format_target_remedy(policy: str, variant: str) -> str:
    """Format how a variant of a policy is removed."""
    return f"remove its target and run `fanout remove {policy} {variant} --reason WHY`"


def format_rendering_remedy(path: str, vendor_branch: str) -> str:
    """Format how an unrecorded package is written again."""
    return f"remove published/{path} from branch {vendor_branch} to have it written again"


# Details of actions. Those of records follow the word "record".


def describe_present_path(variant: str, location: str) -> str:
    """Describe why something at the former path of a variant is removed."""
    return f"the path of {variant} is {location} now"


def describe_answer(check: str, variant: str, verdict: str) -> str:
    """Describe the new verdict of a check."""
    return f"that check {check} of {variant} has {verdict}"


def describe_dropped_answer(check: str, variant: str) -> str:
    """Describe a verdict that does not count any more."""
    return f"that check {check} of {variant} must be answered again"


def describe_publication(variant: str, revision: str) -> str:
    """Describe a publication that is recorded."""
    return f"that {variant} is published at {revision}"


def describe_recovered_publication(variant: str, revision: str, *, has_tag: bool) -> str:
    """Describe a publication that only the repository shows."""
    witness = "its tag" if has_tag else "the vendor branch"
    return f"{describe_publication(variant, revision)}, as {witness} shows"


def describe_new_location(variant: str, location: str, former_path: str) -> str:
    """Describe a recorded path that changes."""
    return f"that {variant} is at {location}, no longer at {former_path}"


def describe_left_location(variant: str, location: str) -> str:
    """Describe a former path that is empty."""
    return f"that {variant} has left {location}"


def describe_deletion_policy(variant: str) -> str:
    """Describe a changed deletionPolicy."""
    return f"the deletionPolicy of {variant}"


def describe_new_stage(variant: str, stage: str) -> str:
    """Describe a recorded stage that changes; "": none."""
    return f"that {variant} is in {f'stage {stage}' if stage else 'no stage'} now"


def describe_unchanged_package(variant: str, revision: str) -> str:
    """Describe new inputs that render the published package."""
    return f"that {variant} is at {revision} with its present inputs already"


def describe_emptied_repository(repository: str) -> str:
    """Describe a repository without anything of the policy."""
    return f"that nothing of it is left in {repository}"


def describe_verdict(subject: str, revision: str, *, is_passed: bool, is_past: bool) -> str:
    """Describe whether a stage or variant has passed a revision, and has left it since."""
    if not is_passed:
        return f"that {subject} does not pass {revision} any more"
    return f"that {subject} has {'moved on from' if is_past else 'passed'} {revision}"


def describe_removed_variant(variant: str, drafts: str, *, has_package: bool) -> str:
    """Describe a variant without a target; `drafts` with commits of people stay, too."""
    remainder = "its package stays on the branch" if has_package else "nothing of it is on a branch"
    edits = f", and so does what people committed to {drafts}" if drafts else ""
    return f"that {variant} is gone with its target; {remainder}{edits}"


def describe_early_record(subject: str) -> str:
    """Describe a record that is dated in the future."""
    return f"that {subject} is dated in the future"


def describe_early_status(instant: str) -> str:
    """Describe a recorded instant that lies in the future."""
    return describe_early_record(f"the status of {instant}")


def describe_first_seen(variant: str) -> str:
    """Describe a draft whose age was not on record."""
    return f"when the draft of {variant} was first seen"


def describe_request_state(number: int, state: RequestState | None) -> str:
    """Describe a pull request whose state changes; None: fanout closed it."""
    words = {
        None: "closed by fanout",
        RequestState.OPEN: "open again",
        RequestState.CLOSED: "closed by a person",
        RequestState.MERGED: "merged",
    }
    return f"that pull request {number} is {words[state]}"
