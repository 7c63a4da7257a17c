"""Sentences and actors of the holds of `plan`."""

from collections.abc import Iterable

ADMINISTRATOR = "an administrator"
AUTHOR = "the policy's author"
AUTHOR_OF_OFFLINE = "the policy's author (offlineWhen) or the owner of the target"
LABEL_OWNER = "the person who set the label"
NEXT_RUN = "the next pass"
OPERATOR = "the operator of fanout"
OWNER_OF_OBJECTS = "the owner of the cluster objects"
UPSTREAM_MAINTAINER = "a maintainer of the upstream package"

ALL_RESTORED = (
    "every package that the branch removes was put back; close its pull request to keep them"
)
DIFFERENT_HEADS = "the forge and Git show different heads of its pull request"
REQUEST_NOT_OPEN = "its pull request is not open yet"
UNRELEASED_DRAFT = "the draft of its stage includes it once it is released"


def format_maintainers(repository: str) -> str:
    """Format who can change a downstream repository."""
    return f"the maintainers of {repository}"


def format_variant_author(variant: str) -> str:
    """Format who wrote a variant by hand."""
    return f"the author of PackageVariant {variant}"


def format_pin_author(stage: str) -> str:
    """Format who can remove a pin from a policy."""
    return f"the policy's author (pin of stage {stage})"


def format_withdraw_command(subject: str, decision: str) -> str:
    """Format who can withdraw a rollback, with the command."""
    return f"any promoter: run fanout withdraw {subject} {decision}"


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


def describe_orphaned_occupant(location: str, path: str, owner: str) -> str:
    """Describe a path of a variant without a target."""
    return (
        f"{location} is not free: {path} belongs to {owner}, which has no target; run"
        " `fanout remove`"
    )


def describe_missing_branch(repository: str, branch: str) -> str:
    """Describe a repository without its branch."""
    return f"repository {repository} has no branch {branch}; push a first commit to it"


def describe_invalid_path(location: str, problem: str) -> str:
    """Describe a path that cannot have a package."""
    return f"{location}: {problem}; remove it from the branch or change downstream.package"


def describe_other_installation(location: str, install: str) -> str:
    """Describe a path with a draft of another installation."""
    return f"{location} has a draft of installation {install}; one installation owns a path"


def describe_foreign_draft(branch: str, variant: str) -> str:
    """Describe a branch that is no draft of the variant."""
    return f"branch {branch} is not a draft of {variant}; remove it"


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


def describe_closed_request(variant: str, revision: str) -> str:
    """Describe a pull request that a person closed."""
    return (
        f"a person closed the pull request of {variant} at {revision} or deleted its branch; reopen"
        " it or run `fanout resume`"
    )


def describe_stray_path(path: str) -> str:
    """Describe a package on a branch whose variant does not exist."""
    return f"{path} is on the branch, but its variant no longer exists"


def describe_waiting_member(variant: str) -> str:
    """Describe a variant of a pull request that has no decision."""
    return f"{variant} waits"
