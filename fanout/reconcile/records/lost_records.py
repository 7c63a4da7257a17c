"""Detection of lost records by what repositories show of earlier activity.

A mistyped records address or a deleted directory would otherwise forget every
suspension and decide anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fanout.api.commit_trailers import Trailer
from fanout.api.git_repository import Repository
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.observation.repository_state import RefListing, RepositoryState, url_of_remote
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import PolicyRecords
from fanout.ports import GitStore
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.ownership.path_ownership import trailer_owner
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy
from fanout.selection.ref_names import record_traces_ref, vendor_ref

_RECORDS_REMEDY = (
    "name the correct records repository with --records, or restore it from a backup; if there is"
    " none, run `fanout sweep --new-records`, which loses suspensions, approvals and evidence"
)


def find_lost_policies(
    blank_reason: str,
    policies: Iterable[ResolvedPolicy],
    repositories: Sequence[Repository],
    listings: Mapping[str, RefListing | FanoutError],
    install: str,
) -> Mapping[PolicyKey, InvalidInput]:
    """Return the error of each policy with a repository that this installation has written.

    Those are the repositories that it publishes to and all that its namespace declares. What
    other namespaces have in theirs is not counted: anybody who may push to a repository can make
    such a branch. `blank_reason`: why nothing at all is on record.
    """
    # These branches this installation alone writes. Others below `drafts/` may be anybody's.
    own_refs = (vendor_ref(install), record_traces_ref(install))
    error_by_remote = {
        remote: InvalidInput(
            f"{blank_reason}, but {url_of_remote(remote)} has branch"
            f" {ref.removeprefix('refs/heads/')} of this installation",
            reason="RecordsLost",
            remedy=_RECORDS_REMEDY,
        )
        for remote, listing in listings.items()
        if not isinstance(listing, FanoutError)
        and (ref := next((it for it in own_refs if it in listing.refs), ""))
    }
    if not error_by_remote:
        return {}
    errors: dict[PolicyKey, InvalidInput] = {}
    for policy in policies:
        declared = (it for it in repositories if it.metadata.namespace == policy.namespace)
        remotes = {build_remote(it).key for it in (*declared, *policy.repositories.values())}
        if lost := sorted(remotes & error_by_remote.keys()):
            errors[policy.key] = error_by_remote[lost[0]]
    return errors


@contextmanager
def count_other_branches(policy_state: PolicyRecords) -> Iterator[None]:
    """Add to an error of missing records that other branches may have them, under another name.

    The remedy is to rename one back, and none that gives up what is on it.
    """
    try:
        yield
    except InvalidInput as error:
        lost_branch = policy_state.lost_branch
        if lost_branch is None:
            raise
        raise InvalidInput(
            f"{error.problem}; {lost_branch.repository} has no branch {lost_branch.branch}, but"
            f" {lost_branch.others} with "
            + ("another name" if lost_branch.others == 1 else "other names"),
            reason=error.reason,
            remedy=(
                f"run `git ls-remote {lost_branch.repository}`; if a branch there has the records,"
                f" rename it back to {lost_branch.branch}; else name the correct records"
                " repository with --records, or restore it from a backup"
            ),
            where=error.where,
        ) from error


def refuse_lost_policy_state(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore
) -> None:
    """Raise InvalidInput if a policy without records has written something downstream."""
    for repository_state, artifact in _find_activity(inputs, variants, git):
        raise InvalidInput(
            f"the policy has no records, but {repository_state.remote.url} has {artifact}",
            reason="RecordsLost",
            remedy=_RECORDS_REMEDY,
        )


def find_bootstrap_repositories(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore, install: str
) -> frozenset[str]:
    """Return repositories with earlier activity of a policy whose records start empty.

    They are recorded: a bootstrap that wrote nothing because everything is held would be
    refused as lost records by the next pass.
    """
    return frozenset(
        repository_state.identity for repository_state, _ in _find_activity(inputs, variants, git)
    ) | {
        it.identity
        for it in inputs.path_ownership.witness_states
        if {vendor_ref(install), record_traces_ref(install)} & it.refs.keys()
    }


def _find_activity(
    inputs: PolicyInputs, variants: Sequence[ObservedVariant], git: GitStore
) -> Iterator[tuple[RepositoryState, str]]:
    """Yield repositories that show activity of the policy, with the artifact."""
    owner = trailer_owner(inputs.resolved_policy)
    own_variants = {variant.spec.name for variant in variants}
    # Sorted, so that repeated passes name the same repository in their error.
    for repository_state in sorted(inputs.path_ownership.witness_states, key=lambda it: it.key):
        for draft in repository_state.drafts:
            trailers = draft.trailers
            if trailers.policy == owner and (
                inputs.resolved_policy.upstream_policy is not None
                or trailers.variant in own_variants
            ):
                yield repository_state, f"its draft {draft.ref.removeprefix('refs/heads/')}"
    trailer = f"{Trailer.POLICY.value}: {owner}"
    for variant in variants:
        number = variant.repository_state.publication_numbers.get(variant.spec.path, 0)
        if not number:
            continue
        artifact = f"its publication {variant.spec.path}/v{number}"
        statement = variant.repository_state.find_statement(variant.spec.path)
        if statement is not None and statement.trailers.policy == owner:
            yield variant.repository_state, artifact
            continue
        commit = variant.repository_state.find_publication_commit(variant.spec.path)
        with git.reader(variant.repository_state.remote) as reader:
            if reader.has(commit) and trailer in reader.commit(commit).message.splitlines():
                yield variant.repository_state, artifact
