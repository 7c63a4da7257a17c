"""Origin of an adopted package: the upstream state from which people cloned it."""

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.errors import FanoutError, InvalidInput
from fanout.package.kptfile import KPTFILE, UpstreamLock
from fanout.plan.adoption.adoption_base import (
    ADOPTION_LOCK_REMEDY,
    UpstreamOrigin,
    parse_upstream_lock,
)
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.plan_wording import format_maintainers
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.observation.upstream_packages import get_upstream_path
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace


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
            is_known = reader.has(lock.commit)
            tree = reader.paths(lock.commit, [path])[path].tree if is_known else None
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
