"""Finds the state of upstream from which a package that is to be taken over was cloned."""

from fanout.api.reasons import Reason
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.facts import Hold
from fanout.package.kptfile import NAME as KPTFILE
from fanout.plan.adoption import REMEDY, Lock, Origin, read_lock
from fanout.plan.cases import Case
from fanout.plan.repository import Remote
from fanout.ports import GitStore
from fanout.reconcile.look import remote_of, upstream_path
from fanout.reconcile.names import Named
from fanout.reconcile.upstream import written_upstream
from fanout.values import replace


def with_origin(case: Case, named: Named, git: GitStore) -> Case:
    """The case with the origin of the package at its path, or with what is in the way."""
    owner = "the maintainers of " + case.spec.repository
    assert named.upstream is not None, "a policy without its upstream has no cases"
    remote = remote_of(named.upstream)
    path = upstream_path(named.upstream, written_upstream(named).package)
    at = f"{case.spec.repository}:{case.spec.path}"
    try:
        lock = _lock(case, git)
        if not lock.is_of(remote.url, path):
            sentence = (
                f"{at} is a clone of {lock.directory} in {lock.repo}, and its upstream is to be"
                f" {path} in {remote.url}; choose another path, or correct its upstreamLock"
            )
            return replace(case, obstacle=Hold("PathTaken", sentence, who=owner))
        return replace(case, origin=_origin(git, remote, path, lock.commit))
    except FanoutError as problem:
        return not_adopted(case, problem)


def not_adopted(case: Case, problem: FanoutError) -> Case:
    """The case of a package of which nobody can tell what it was before people changed it."""
    sentence = f"{case.spec.repository}:{case.spec.path} cannot be adopted: {problem}"
    owner = "the maintainers of " + case.spec.repository
    return replace(case, obstacle=Hold(Reason.ADOPTION_BASE_MISSING, sentence, who=owner))


def _lock(case: Case, git: GitStore) -> Lock:
    assert case.state.tree is not None, "there is a package"
    with git.reader(case.view.remote) as reader:
        entry = reader.entry(case.state.tree, KPTFILE)
        data = reader.blob(entry.oid) if entry is not None else None
    return read_lock(data, f"{case.spec.path}/{KPTFILE}")


def _origin(git: GitStore, remote: Remote, path: str, commit: str) -> Origin:
    with git.reader(remote) as reader:
        tree = reader.paths(commit, [path])[path].tree if reader.has(commit) else None
    if tree is None:
        raise InvalidInput(
            f"no branch and no tag of {remote.url} leads to commit {commit} with {path} in it",
            reason=Reason.ADOPTION_BASE_MISSING,
            remedy=REMEDY,
        )
    return Origin(remote, tree)
