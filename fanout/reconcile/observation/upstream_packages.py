"""Upstream packages: revisions that a rule allows, and the package at each revision.

A revision whose tag cannot be used is left out, and stops nothing: what the tag names may be
missing, or be no commit with the directory of the package. Older revisions stay usable. A revision
that somebody chose or that is in use already is not left out: it holds its variants by its name. A
package that is there and has errors fails its variants.

Of an adopted package, the upstream state is found from which people cloned it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fanout.api.gate_vocabulary import Action
from fanout.api.git_repository import Repository
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.gates.gate_facts import PolicyFacts
from fanout.package.kptfile import KPTFILE, UpstreamLock
from fanout.package.package_limits import add_package
from fanout.package.revision import (
    Revision,
    parse_range,
    select_allowed,
    select_releases,
    select_tag,
)
from fanout.plan.edits.adoption_base import (
    ADOPTION_LOCK_REMEDY,
    UpstreamOrigin,
    parse_upstream_lock,
)
from fanout.plan.observation.repository_state import Commit, RefListing, RefListingRequest
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.plan_wording import format_maintainers
from fanout.plan.records.policy_status import RecordedStatus
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.repository_access import (
    build_remote,
    join_upstream_path,
    list_upstream_refs,
    read_with_recovery,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace
from fanout.variants.package_preparation import PreparedPackage, prepare_package
from fanout.variants.render_model import RenderLimits, UpstreamPackage

MAX_PREPARED = 16  # prepared packages: a few policies, each with a few revisions in rollout


def get_upstream_path(resolved_policy: ResolvedPolicy) -> str:
    """Return the path of the upstream package from the root of its Git repository.

    The upstream Repository of the policy, or of the hand-written variant, must be declared.
    """
    package = resolved_policy.upstream_spec.package
    return join_upstream_path(resolved_policy.declared_upstream, package)


def get_upstream_tag(resolved_policy: ResolvedPolicy, revision: str) -> str:
    """Return the tag of a revision of the upstream package, without `refs/tags/`."""
    return f"{get_upstream_path(resolved_policy)}/{revision}".lstrip("/")


def find_revisions(
    resolved_policy: ResolvedPolicy,
    listings: Mapping[str, RefListing | FanoutError],
    status: RecordedStatus,
) -> dict[str, str]:
    """Return the commit of every revision that the rule allows, oldest first.

    The status has the commits under which revisions were used before. Raises the error of the
    listing, and InvalidInput if nothing fits the rule or a tag was moved.
    """
    upstream = resolved_policy.declared_upstream
    listing = listings[build_remote(upstream).key]
    if isinstance(listing, FanoutError):
        raise listing
    rule = resolved_policy.upstream_spec.revision
    if rule.commit:
        return {rule.commit: rule.commit}
    path = get_upstream_path(resolved_policy)
    tags = list_tags(listing.refs)
    if rule.tag:
        revisions = dict(select_tag(tags, path, rule.tag))
    elif rule.semver:
        revisions = dict(select_allowed(tags, path, parse_range(rule.semver)))
    else:
        revisions = dict(select_releases(tags, path))
    declaration = resolved_policy.declaration
    identity = declaration.identity if declaration else resolved_policy.name
    where = ErrorLocation(identity, "spec.upstream.revision")
    if not revisions and rule.tag:
        raise InvalidInput(
            f"repository {upstream.spec.url} has no tag {path}/{rule.tag}",
            reason="TagMissing",
            remedy="push the tag, or name an existing one",
            where=ErrorLocation(identity, "spec.upstream.revision.tag"),
        )
    if not revisions:
        wanted = "`latest`, which excludes prereleases"
        if rule.semver:
            wanted = f"the range {rule.semver}"
        raise InvalidInput(
            f"no tag {path}/v<N> of repository {upstream.spec.url} matches {wanted}",
            reason="NoRevision",
            remedy="release a revision, or widen the range",
            where=where,
        )
    for revision, commit in revisions.items():
        if status.revisions.get(revision, commit) != commit:
            raise InvalidInput(
                f"tag {path}/{revision} pointed to {status.revisions[revision]} when it was used,"
                f" and now points to {commit}",
                reason="TagMoved",
                remedy="restore the tag, and release the change under a new one",
                where=where,
            )
    return revisions


def list_tags(refs: Mapping[str, str]) -> dict[str, str]:
    """Return the commit of each tag, by its name without `refs/tags/`."""
    prefix = "refs/tags/"
    return {ref.removeprefix(prefix): oid for ref, oid in refs.items() if ref.startswith(prefix)}


def _find_tree(
    reader: ObjectReader, repository: Repository, path: str, name: str, commit: str
) -> tuple[str, Commit]:
    """Return the tree of the package at a revision, and its commit.

    Raises InvalidInput if there is no such commit, or none of this package.
    """
    if not reader.has(commit):
        raise InvalidInput(
            f"repository {repository.spec.url} has no commit {commit} on any branch",
            reason="NoRevision",
            remedy="push the commit to a branch, or name an existing one",
        )
    try:
        state, released = reader.paths(commit, [path])[path], reader.commit(commit)
    except InvalidInput as error:
        raise add_package(error, f"{path}/{name} of {repository.spec.url}") from error
    if state.tree is None:
        detail = f": {state.problem}" if state.problem else ""
        raise InvalidInput(
            f"{repository.spec.url} has no directory {path} at {name} ({commit}){detail}",
            reason="NoRevision",
            remedy="correct spec.upstream.package, or the tag",
        )
    return state.tree, released


@dataclass(slots=True)
class UpstreamPackages:
    """Upstream packages, parsed once per revision; one per process."""

    git: GitStore
    limits: RenderLimits
    _prepared: dict[tuple[str, str, str], PreparedPackage] = field(default_factory=dict)
    # group and kind of injection points, by remote and path, of all revisions read so far
    _injected: dict[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)

    def get_package(
        self,
        resolved_policy: ResolvedPolicy,
        name: str,
        commit: str,
        scopes: Mapping[tuple[str, str], bool],
    ) -> PreparedPackage:
        """Return the upstream package of a policy at a revision.

        `scopes`: whether a kind is namespaced, by group and kind, from declared definitions.
        Raises InvalidInput (with file and line), and what Git raises.
        """
        repository, path = resolved_policy.declared_upstream, get_upstream_path(resolved_policy)
        remote = build_remote(repository)
        key = (remote.key, path, f"{name}@{commit}")
        prepared = self._prepared.get(key)
        # A definition that was declared meanwhile changes the scope of its kinds, and with it what
        # a rendering of the same revision yields.
        if prepared is None or set(prepared.declared_scopes) != {
            (*kind, scopes[kind]) for kind in prepared.undefined_kinds & scopes.keys()
        }:

            def read() -> UpstreamPackage:
                with self.git.reader(remote) as reader:
                    tree, released = _find_tree(reader, repository, path, name, commit)
                    try:
                        files = reader.files(tree)
                    except InvalidInput as error:
                        shown = path or "the root directory"
                        place = f"{shown} at {name} of {repository.spec.url}"
                        raise add_package(error, place) from error
                    return UpstreamPackage(
                        repository=repository.spec.url,
                        directory=path,
                        revision=Revision(name, commit, released.timestamp),
                        tree=tree,
                        files=files,
                        author=released.author,
                    )

            listing_request = RefListingRequest(remote, list_upstream_refs(path))
            upstream = read_with_recovery(self.git, listing_request, read)
            try:
                package_read = prepare_package(upstream, self.limits, scopes)
            except InvalidInput as error:
                if not error.where.file:
                    raise
                place = f"{path} at {name} of {upstream.repository}"
                lines = "\n".join(f"{place}: {line}" for line in str(error).splitlines())
                raise InvalidInput(lines, reason=error.reason) from error
            self._prepared[key] = package_read
            # Objects that must not be injected, such as Secrets, need not be read either.
            kinds = frozenset(
                (it.group, it.kind)
                for it in package_read.points
                if it.key in package_read.injectable_keys
            )
            self._injected[key[:2]] = self._injected.get(key[:2], frozenset()) | kinds
            # Dictionaries keep insertion order, so the oldest packages go first.
            for old in list(self._prepared)[:-MAX_PREPARED]:
                del self._prepared[old]
        return self._prepared[key]

    def find_tag_problem(
        self, resolved_policy: ResolvedPolicy, name: str, commit: str
    ) -> InvalidInput | None:
        """Return why a revision names no package, or None; files of the package are not read."""
        repository, path = resolved_policy.declared_upstream, get_upstream_path(resolved_policy)
        remote = build_remote(repository)
        if (remote.key, path, f"{name}@{commit}") in self._prepared:
            return None
        try:
            with self.git.reader(remote) as reader:
                _find_tree(reader, repository, path, name, commit)
        except InvalidInput as error:
            return error
        except FanoutError:
            pass  # it may pass by itself, and is met again where the package is read
        return None

    def list_injected_kinds(self, resolved_policy: ResolvedPolicy) -> frozenset[tuple[str, str]]:
        """Return group and kind of what the upstream package injects, as far as it was read."""
        remote = build_remote(resolved_policy.declared_upstream)
        return self._injected.get((remote.key, get_upstream_path(resolved_policy)), frozenset())


def find_origin(
    variant: ObservedVariant, resolved_policy: ResolvedPolicy, git: GitStore
) -> ObservedVariant:
    """Return the variant with the origin of the package at its path, or with an obstacle."""
    maintainers = format_maintainers(variant.spec.repository)
    remote = build_remote(resolved_policy.declared_upstream)
    path = get_upstream_path(resolved_policy)
    try:
        assert variant.path_state.tree is not None, "there is a package"
        with git.reader(variant.repository_state.remote) as reader:
            lock = _read_upstream_lock(reader, variant.path_state.tree, f"{variant.spec.path}/")
        if not lock.refers_to(remote.url, path):
            sentence = (
                f"{variant.spec.repository}:{variant.spec.path} is a clone of {lock.directory} in"
                f" {lock.repo}, but the upstream of its variant is {path} in {remote.url}; choose"
                " another path, or correct its upstreamLock"
            )
            return replace(variant, obstacle=Hold(Reason.PATH_TAKEN, sentence, who=maintainers))
        with git.reader(remote) as reader:
            tree = reader.paths(lock.commit, [path])[path].tree if reader.has(lock.commit) else None
        if tree is None:
            raise InvalidInput(
                f"no branch or tag of {remote.url} contains commit {lock.commit} with {path}",
                reason=Reason.ADOPTION_BASE_MISSING,
                remedy=ADOPTION_LOCK_REMEDY,
            )
        return replace(variant, origin=UpstreamOrigin(remote, tree))
    except FanoutError as error:
        return add_adoption_obstacle(variant, error)


def add_adoption_obstacle(variant: ObservedVariant, error: FanoutError) -> ObservedVariant:
    """Return the variant with an obstacle: its original upstream state is unavailable."""
    spec = variant.spec
    sentence = f"{spec.repository}:{spec.path} cannot be adopted: {error}"
    maintainers = format_maintainers(spec.repository)
    return replace(variant, obstacle=Hold(Reason.ADOPTION_BASE_MISSING, sentence, who=maintainers))


def find_upstream_lock(reader: ObjectReader, tree: str) -> UpstreamLock | None:
    """Return the upstream lock in the Kptfile of a package tree, or None if it has none."""
    try:
        return _read_upstream_lock(reader, tree) if reader.has(tree) else None
    except FanoutError:
        return None


def _read_upstream_lock(reader: ObjectReader, tree: str, directory: str = "") -> UpstreamLock:
    """Read the upstream lock of a package; `directory` is put before the file in errors."""
    entry = reader.entry(tree, KPTFILE)
    data = reader.blob(entry.oid) if entry is not None else None
    return parse_upstream_lock(data, f"{directory}{KPTFILE}")


def find_unusable(
    facts: PolicyFacts,
    candidates: Iterable[str],
    find_problem: Callable[[str], InvalidInput | None],
) -> dict[str, InvalidInput]:
    """Return the candidates to leave out, and revisions that would be the next candidates.

    `find_problem` returns why the tag of a revision cannot be used, or None. Nothing is left out if
    no revision would remain: then the message names the newest.
    """
    # They are published, drafted, released, pinned or named by a decision.
    revisions_in_use = {rule.pin for rule in facts.stages}
    revisions_in_use |= {
        decision.revision
        for decision in facts.records.decisions
        if decision.spec.action in (Action.PUBLISH, Action.ROLLBACK)
    }
    for variant in facts.variants:
        states = (variant.published, variant.draft, variant.grant)
        revisions_in_use |= {it.revision for it in states if it is not None}
    unusable: dict[str, InvalidInput] = {}
    for candidate in sorted(set(candidates).intersection(facts.revisions)):
        for revision in reversed(facts.revisions[: facts.revisions.index(candidate) + 1]):
            problem = find_problem(revision) if revision not in revisions_in_use else None
            if problem is None:
                break
            unusable[revision] = problem
    return unusable if len(unusable) < len(facts.revisions) else {}
