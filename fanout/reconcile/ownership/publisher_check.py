"""Check of the publisher of a package by what its repository shows.

Records of another policy may be lost or kept elsewhere, and its repository may be
declared at another address. A published package is still in use by its policy.
"""

from collections.abc import Sequence

from fanout.api.commit_trailers import Trailer
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.plan.changes.next_drafts import find_draft
from fanout.plan.commit_statement import parse_message
from fanout.plan.move_locations import location_author
from fanout.plan.observation.repository_state import EMPTY_PATH, RepositoryState
from fanout.plan.plan_wording import format_maintainers
from fanout.plan.records.policy_status import PublishedLine
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.upstream_packages import find_upstream_lock, get_upstream_path
from fanout.reconcile.ownership.path_ownership import trailer_owner
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, repository_key
from fanout.selection.variant_spec import VariantSpec

_POLICY_TRAILER_PREFIX = f"{Trailer.POLICY.value}: "


def find_publisher_hold(
    git: GitStore,
    install: str,
    resolved_policy: ResolvedPolicy,
    spec: VariantSpec,
    repository_state: RepositoryState,
    published_line: PublishedLine | None,
    all_policies: Sequence[ResolvedPolicy],
) -> Hold | None:
    """Return the hold if this installation published the package for another policy.

    `published_line`: what records state as published for the variant there. The rendering
    branch shows that something is published at the path, its statement or the newest tag for
    which policy; without either, a clone of another upstream belongs to another policy. A draft
    of the variant that a person merged is its own.
    """
    path = spec.path
    tree = repository_state.path_states.get(path, EMPTY_PATH).tree
    number = repository_state.publication_numbers.get(path, 0)
    commit = repository_state.find_publication_commit(path)
    if repository_state.failure is not None or path not in repository_state.published_renderings:
        return None
    if published_line is not None and (
        published_line.tree == tree
        or published_line.tag == f"{path}/v{number}"
        or published_line.merge == commit != ""
    ):
        return None
    with git.reader(repository_state.remote) as reader:
        statement = repository_state.find_statement(path)
        has_commit = bool(commit) and reader.has(commit)
        if statement is not None and statement.merge == commit:
            owner = statement.trailers.policy
        else:
            owner = _read_publisher(reader, commit) if has_commit else ""
        if owner == trailer_owner(resolved_policy):
            return None
        if owner:
            draft = find_draft(spec, repository_state, install)
            is_merged = draft is not None and draft.tree == tree
            # The tag names another policy, but the tree is this variant's draft: a person merged it
            # over the other policy's package.
            if is_merged and has_commit and reader.paths(commit, [path])[path].tree != tree:
                return None
            return _taken_hold(resolved_policy, spec, repository_state, owner, all_policies)
        if published_line is not None or tree is None or resolved_policy.upstream is None:
            return None
        lock = find_upstream_lock(reader, tree)
    url, directory = resolved_policy.upstream.spec.url, get_upstream_path(resolved_policy)
    if lock is None or lock.refers_to(url, directory):
        return None
    return Hold(
        Reason.PATH_TAKEN,
        f"{spec.repository}:{spec.path} holds a clone of {lock.directory} in {lock.repo} that was"
        f" not published for {spec.name}; choose another path, or delete the package from the"
        " branch",
        who=format_maintainers(spec.repository),
    )


def _read_publisher(reader: ObjectReader, oid: str) -> str:
    """Return the policy that a commit published for, as trailers name it, or ""."""
    commit = reader.commit(oid)
    for message_line in reversed(commit.message.splitlines()):
        if message_line.startswith(_POLICY_TRAILER_PREFIX):
            return message_line.removeprefix(_POLICY_TRAILER_PREFIX).strip()
    for parent in commit.parents[1:]:
        message = reader.commit(parent).message if reader.has(parent) else ""
        if (draft := parse_message(message)) is not None:
            return draft.policy
    return ""


def _taken_hold(
    resolved_policy: ResolvedPolicy,
    spec: VariantSpec,
    repository_state: RepositoryState,
    owner: str,
    all_policies: Sequence[ResolvedPolicy],
) -> Hold:
    taken = f"{spec.repository}:{spec.path} holds a package that was published for"
    if owner.partition("/")[0] != spec.namespace:
        sentence = f"{taken} a policy in another namespace; choose another path for {spec.name}"
        return Hold(Reason.PATH_TAKEN, sentence, who=location_author(spec))
    sentence_start = f"{taken} {owner.rstrip('/')}"
    own_repository = resolved_policy.repositories[spec.name]
    for other_policy in all_policies:
        for variant in other_policy.variants if trailer_owner(other_policy) == owner else ():
            other_repository = other_policy.repositories[variant.name]
            if variant.path == spec.path and repository_key(other_repository) != repository_key(
                own_repository
            ):
                return Hold(
                    Reason.PATH_TAKEN,
                    f"{sentence_start}: {own_repository.identity} and {other_repository.identity}"
                    f" are one repository with two URLs, {repository_state.remote.url} and"
                    f" {other_repository.spec.url}; use one URL in both, and change"
                    " downstream.package of one variant",
                    who=location_author(spec),
                )
    return Hold(
        Reason.PATH_TAKEN,
        f"{sentence_start} and was not removed; choose another path for {spec.name}, or delete the"
        " package from the branch",
        who=format_maintainers(spec.repository),
    )
