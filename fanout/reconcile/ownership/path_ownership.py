"""Path ownership of all policies: recorded paths, wanted paths, and conflicts.

A variant recorded at a path keeps it until it has left; a newcomer waits. A repository
that no variant names any more is listed only while records mention it: for a package to
move, a package waiting for removal, or a draft.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fanout.api.git_repository import Repository
from fanout.groups import group_pairs
from fanout.plan.move_locations import PathHolder
from fanout.plan.observation.repository_state import RepositoryState, normalize_identity
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus, VariantLine
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.ownership.path_claims import PathClaims
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    repository_key,
    repository_place,
)
from fanout.selection.path_collisions import PackagePlace, PathOwner
from fanout.selection.target_selection import usable_repositories
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value, field


class RecordedPaths(Value, kw_only=True):
    """Paths that the status lines of all policies record."""

    # Owners by publication or release.
    owner_by_path: dict[PackagePlace, PathOwner] = field(default_factory=dict)
    # Owners that moved away.
    former_owner_by_path: dict[PackagePlace, PathOwner] = field(default_factory=dict)
    path_by_owner: dict[PathOwner, PackagePlace] = field(default_factory=dict)
    # All recorded places of each owner.
    all_paths_by_owner: dict[PathOwner, list[PackagePlace]] = field(default_factory=dict)
    # Repositories with drafts, by policy.
    draft_repositories: dict[RecordsKey, list[str]] = field(default_factory=dict)
    # by the policy that holds their records
    variants_by_policy: dict[RecordsKey, list[str]] = field(default_factory=dict)
    title_by_owner: dict[PathOwner, str] = field(default_factory=dict)
    # Owners whose policy is not declared.
    undeclared_owners: set[PathOwner] = field(default_factory=set)

    def add_line(self, owner: PathOwner, status_line: VariantLine) -> None:
        """Add the paths that the status line of a variant records."""
        self.owner_by_path[status_line.place] = owner
        self.path_by_owner[owner] = status_line.place
        places = [status_line.place]
        if status_line.grant is not None and status_line.grant.repository:
            places.append((status_line.grant.repository, status_line.grant.path))
        for previous in status_line.left:
            self.former_owner_by_path[previous.place] = owner
            places.append(previous.place)
        self.all_paths_by_owner[owner] = places


def read_recorded_paths(
    policy_states: Mapping[RecordsKey, PolicyRecords], all_policies: Sequence[ResolvedPolicy]
) -> RecordedPaths:
    """Read all recorded paths."""
    recorded_paths = RecordedPaths()
    declared_keys = {resolved_policy.records_key for resolved_policy in all_policies}
    for state_key, policy_state in policy_states.items():
        status = policy_state.status
        repositories = map(normalize_identity, status.draft_repositories)
        recorded_paths.draft_repositories[state_key] = sorted(repositories)
        recorded_paths.variants_by_policy[state_key] = list(status.variants)
        for name, status_line in status.variants.items():
            owner, title = (state_key.namespace, name), state_key.policy or name
            recorded_paths.title_by_owner[owner] = f"{state_key.namespace}/{title}"
            if state_key.policy and state_key not in declared_keys:
                recorded_paths.undeclared_owners.add(owner)
            recorded_paths.add_line(owner, status_line)
    return recorded_paths


FormerRepositories = Mapping[tuple[str, str], Mapping[str, tuple[Repository, list[str]]]]
"""By namespace and name of the policy, or of the variant written by hand, then by place: the
Repository there, and the paths of it that are to be read."""


def find_former_repositories(
    evaluated: Sequence[ResolvedPolicy],
    all_policies: Sequence[ResolvedPolicy],
    policy_paths: "PolicyPaths",
    repositories: Sequence[Repository],
) -> FormerRepositories:
    """Return repositories that a policy's records mention and no variant names.

    `evaluated` are the policies of the pass.
    A repository that is now published to on another branch cannot be read and is left out.
    """
    recorded = policy_paths.recorded_paths
    former_by_policy: dict[tuple[str, str], dict[str, tuple[Repository, list[str]]]] = {}
    for policy in evaluated:
        wanted_places = {
            it.name: (policy.place_by_variant[it.name], it.path) for it in policy.variants
        }
        # After the variants, those whose targets are gone.
        orphans = [
            name
            for name in recorded.variants_by_policy.get(policy.records_key, ())
            if name not in wanted_places and may_remove(policy, name)
        ]
        named_places, paths_by_place = _named_places(policy), dict[str, list[str]]()
        for name in (*wanted_places, *orphans):
            for place, path in recorded.all_paths_by_owner.get((policy.namespace, name), ()):
                if (place, path) != wanted_places.get(name):
                    paths_by_place.setdefault(place, []).append(path)
        for place in recorded.draft_repositories.get(policy.records_key, ()):
            if place not in named_places:
                paths_by_place.setdefault(place, [])
        if paths_by_place:
            usable = usable_repositories(policy.namespace, repositories)
            # In reverse, so that of two objects for one repository the first by name wins.
            in_order = (usable[name] for name in sorted(usable, reverse=True))
            by_place = {repository_place(it): it for it in in_order}
            found = paths_by_place.items()
            former = {
                place: (by_place[place], paths) for place, paths in found if place in by_place
            }
            if former:
                former_by_policy[policy.subject] = former
    if not former_by_policy:
        return {}
    place_by_access = {
        build_remote(it).access: repository_place(it)
        for policy in all_policies
        for it in policy.distinct_repositories
        if repository_key(it) not in policy_paths.claims.branch_conflicts
    }
    for former_repositories in former_by_policy.values():
        for place, (repository, _) in list(former_repositories.items()):
            # Each repository is published to on one branch; a second branch would need a listing
            # and a rendering branch of its own.
            if place_by_access.setdefault(build_remote(repository).access, place) != place:
                del former_repositories[place]
    return former_by_policy


def may_remove(resolved_policy: ResolvedPolicy, variant: str) -> bool:
    """Return whether a variant on record that is not declared is the policy's to remove.

    A hand-written variant removes itself, when it is being deleted. The others of its namespace
    share its records.
    """
    if resolved_policy.upstream_policy is not None:
        return True
    return resolved_policy.is_being_deleted and variant == resolved_policy.name


def trailer_owner(resolved_policy: ResolvedPolicy) -> str:
    """Return the policy as trailers name it.

    Hand-written variants of a namespace share one name.
    """
    policy = resolved_policy.name if resolved_policy.upstream_policy is not None else ""
    return f"{resolved_policy.namespace}/{policy}"


def find_emptied_repositories(
    owner: str,
    status: RecordedStatus,
    repository_states: Iterable[RepositoryState],
    named_keys: Iterable[str],
) -> frozenset[str]:
    """Return recorded repositories without anything of the policy. They need no further listing."""
    occupied_keys = {*named_keys, *(it.repository for it in status.variants.values())}
    return frozenset(
        state.identity
        for state in repository_states
        if state.identity in status.draft_repositories - occupied_keys
        and state.failure is None
        and all(draft.trailers.policy != owner for draft in state.drafts)
        and not any(
            # Hand-written variants of a namespace have one owner, which ends with a slash.
            draft.policy == owner or (owner.endswith("/") and draft.policy.startswith(owner))
            for draft in state.removal_sets
        )
    )


class LocatedRepository(Value):
    """Repository that a policy may use, and its observed state."""

    repository: str  # name of the object
    state: RepositoryState


class PathOwnership(Value, kw_only=True):
    """Path ownership as the evaluation of one policy asks for it."""

    index: "PathOwnershipIndex"
    namespace: str  # of the policy
    repository_states: Mapping[str, RepositoryState]  # by identity of the Repository object
    # repositories named by its targets or its records
    repository_by_place: Mapping[str, LocatedRepository]
    occupants: Mapping[str, PathHolder]  # present holder of each wanted path, by variant
    named_places: frozenset[str]  # repositories named by its targets
    # of other repositories that have drafts of the policy, though neither targets nor records name
    # them
    stray_states: tuple[RepositoryState, ...] = ()

    @property
    def own_states(self) -> tuple[RepositoryState, ...]:
        """Return the states of all repositories that have, or are to have, anything of it."""
        located = {id(it.state): it.state for it in self.repository_by_place.values()}
        return (*located.values(), *self.stray_states)

    @property
    def witness_states(self) -> tuple[RepositoryState, ...]:
        """Return the states of the repositories that may show that records were lost.

        They are those that its targets or records name, and all that its own namespace declares.
        """
        # In any other repository whoever may push to it can name the policy in a commit.
        witnesses = {id(it.state): it.state for it in self.repository_by_place.values()}
        for key, state in self.repository_states.items():
            if key.startswith(f"{self.namespace}/"):
                witnesses[id(state)] = state
        return tuple(witnesses.values())

    @property
    def states_by_repository(self) -> Mapping[str, RepositoryState]:
        """Return the states of the located repositories by name of the Repository object."""
        return {it.repository: it.state for it in self.repository_by_place.values()}

    def other_owner(self, variant: str, place: PackagePlace) -> PathOwner | None:
        """Return who is on record at a place, or None if that is nobody or the variant itself."""
        owner = self.index.recorded_paths.owner_by_path.get(place)
        return None if owner == (self.namespace, variant) else owner


PathRow = tuple[str, str, str, str, str, str]
"""Name, place, path and target of a variant, and its Repository with its credentials."""


def list_paths(
    resolved_policy: ResolvedPolicy, variants: Iterable[VariantSpec]
) -> tuple[PathRow, ...]:
    """Return everything of some variants of a policy that the ownership of paths depends on."""
    return tuple(
        (
            it.name,
            resolved_policy.place_by_variant[it.name],
            it.path,
            it.target,
            repository_key(resolved_policy.repositories[it.name]),
            build_remote(resolved_policy.repositories[it.name]).credentials,
        )
        for it in variants
    )


class PolicyPaths(Value, kw_only=True):
    """Recorded and wanted paths of all policies, and who has to give way to whom."""

    recorded_paths: RecordedPaths
    claims: PathClaims
    refusals: Mapping[PathOwner, str]  # why a variant may not have its path
    occupants: Mapping[str, Mapping[str, PathHolder]]  # by namespace and variant
    # repositories of the variants written by hand
    places_by_namespace: Mapping[str, frozenset[str]]
    # Recorded and wanted ones. Of all policies, so that the state of a repository is the same
    # whichever of them a pass covers.
    paths_by_url: Mapping[str, Sequence[str]]

    @classmethod
    def build(
        cls,
        all_policies: Sequence[ResolvedPolicy],
        policy_states: Mapping[RecordsKey, PolicyRecords],
    ) -> "PolicyPaths":
        """Build the paths from resolved policies and records.

        Claims do not refuse those of other credentials yet: see `OwnershipMemo.count_claims`.
        """
        recorded_paths = read_recorded_paths(policy_states, all_policies)
        claims = PathClaims.build(all_policies, {it for it, _ in recorded_paths.owner_by_path})
        # Repository place and path that each variant is declared for.
        wanted_paths = {
            (policy.namespace, it.name): (policy.place_by_variant[it.name], it.path)
            for policy in all_policies
            for it in policy.variants
        }
        # Hand-written variants share one policy state per namespace.
        places_by_namespace: dict[str, set[str]] = {}
        for it in all_policies:
            if it.upstream_policy is None:
                places_by_namespace.setdefault(it.namespace, set()).update(_named_places(it))
        places = chain(wanted_paths.values(), *recorded_paths.all_paths_by_owner.values())
        paths_by_url = group_pairs((it.partition("#refs/heads/")[0], path) for it, path in places)
        occupants: dict[str, dict[str, PathHolder]] = {}
        for (namespace, name), occupant in find_occupants(wanted_paths, recorded_paths).items():
            occupants.setdefault(namespace, {})[name] = occupant
        return cls(
            recorded_paths=recorded_paths,
            claims=claims,
            refusals=claims.find_refusals(recorded_paths.owner_by_path, ()),
            occupants=occupants,
            places_by_namespace={it: frozenset(own) for it, own in places_by_namespace.items()},
            paths_by_url={url: sorted(set(paths)) for url, paths in paths_by_url.items()},
        )


class PathOwnershipIndex(Value, kw_only=True):
    """Path ownership of all policies, built once per pass and asked by all of them."""

    all_policies: Sequence[ResolvedPolicy]  # any of them may want a path of another
    policy_paths: PolicyPaths
    former_by_policy: FormerRepositories  # for the policies of the pass

    @property
    def recorded_paths(self) -> RecordedPaths:
        """Paths that the status lines of all policies record."""
        return self.policy_paths.recorded_paths

    def find_conflicts(self, resolved_policy: ResolvedPolicy) -> tuple[object, ...]:
        """Return all that the paths of other policies mean for one policy, to be compared."""
        namespace, recorded = resolved_policy.namespace, self.recorded_paths
        names = [it.name for it in resolved_policy.variants]
        refusals = self.policy_paths.refusals
        occupants = self.policy_paths.occupants.get(namespace, {})
        recorded_names = recorded.variants_by_policy.get(resolved_policy.records_key, ())
        owned_places = (
            ((namespace, name), place)
            for name in recorded_names
            for place in recorded.all_paths_by_owner[namespace, name]
        )
        return (
            {it: refusals[namespace, it] for it in names if (namespace, it) in refusals},
            {it: occupants[it] for it in names if it in occupants},
            {
                place: owner
                for own, place in owned_places
                if (owner := recorded.owner_by_path.get(place)) not in (None, own)
            },
            # Repositories of all hand-written variants of the namespace, if it is one of them.
            self.policy_paths.places_by_namespace[namespace]
            if resolved_policy.upstream_policy is None
            else frozenset(),
        )

    @property
    def former_repositories(self) -> tuple[Repository, ...]:
        """Repositories that are listed only because records mention them."""
        return tuple(it for former in self.former_by_policy.values() for it, _ in former.values())

    def for_policy(
        self,
        resolved_policy: ResolvedPolicy,
        repository_states: Mapping[str, RepositoryState],
        drafted_states: Sequence[RepositoryState] = (),
    ) -> PathOwnership:
        """Return the path ownership that concerns one policy.

        `drafted_states`: states of the repositories with any draft of the policy.
        """
        former = self.former_by_policy.get(resolved_policy.subject, {}).values()
        located: dict[str, LocatedRepository] = {}
        for it in (*resolved_policy.distinct_repositories, *(it for it, _ in former)):
            if (state := repository_states.get(repository_key(it))) is not None:
                located[repository_place(it)] = LocatedRepository(it.metadata.name, state)
        own_states = {id(it.state) for it in located.values()}
        return PathOwnership(
            index=self,
            namespace=resolved_policy.namespace,
            repository_states=repository_states,
            repository_by_place=located,
            occupants=self.policy_paths.occupants.get(resolved_policy.namespace, {}),
            named_places=_named_places(resolved_policy)
            if resolved_policy.upstream_policy
            else self.policy_paths.places_by_namespace[resolved_policy.namespace],
            stray_states=tuple(it for it in drafted_states if id(it) not in own_states),
        )


def _named_places(resolved_policy: ResolvedPolicy) -> frozenset[str]:
    return frozenset(resolved_policy.place_by_variant.values())


def find_occupants(
    wanted_paths: Mapping[PathOwner, PackagePlace], recorded_paths: RecordedPaths
) -> dict[PathOwner, PathHolder]:
    """Return the orphaned variant that still occupies a newcomer's path.

    Of two newcomers to one path, one is refused already.
    """
    places = [*recorded_paths.owner_by_path.items(), *recorded_paths.former_owner_by_path.items()]
    departing = [(place, owner) for place, owner in places if wanted_paths.get(owner) != place]
    if not departing:
        return {}
    newcomers: dict[str, list[tuple[str, PathOwner]]] = {}
    for owner, place in wanted_paths.items():
        if recorded_paths.path_by_owner.get(owner) != place:
            newcomers.setdefault(place[0], []).append((place[1], owner))
    # Sorted by path for the bisection below: with thousands of variants, comparing each
    # orphaned path with each newcomer would be quadratic.
    for entries in newcomers.values():
        entries.sort()
    occupant_by_newcomer: dict[PathOwner, PathHolder] = {}
    # Sorted, so that of several orphaned variants a newcomer always waits for the same one.
    for place, owner in sorted(departing):
        for newcomer in _find_overlapping(place[1], newcomers.get(place[0], [])):
            holder = PathHolder(
                owner=owner,
                policy=recorded_paths.title_by_owner[owner],
                place=place,
                is_moving=owner in wanted_paths,
                is_leaving=recorded_paths.path_by_owner[owner] != place,
                is_undeclared=owner in recorded_paths.undeclared_owners,
            )
            occupant_by_newcomer.setdefault(newcomer, holder)
    return occupant_by_newcomer


def _find_overlapping(path: str, newcomers: list[tuple[str, PathOwner]]) -> Iterator[PathOwner]:
    """Yield newcomers whose path equals, contains or is inside the given path."""
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        outer = "/".join(parts[:length])
        position = bisect_left(newcomers, (outer,))
        while position < len(newcomers) and newcomers[position][0] == outer:
            yield newcomers[position][1]
            position += 1
    position = bisect_left(newcomers, (f"{path}/",))
    while position < len(newcomers) and newcomers[position][0].startswith(f"{path}/"):
        yield newcomers[position][1]
        position += 1
