"""For whom the package at a path was published: what the repository itself says of it.

The records of another policy may be lost, or kept somewhere else, and its repository may be
declared at another address. What stands there is in force for somebody all the same.
"""

from collections.abc import Iterator, Sequence

from fanout.api.trailers import Trailer
from fanout.errors import FanoutError
from fanout.gates.facts import Hold
from fanout.package.kptfile import NAME as KPTFILE
from fanout.plan.adoption import read_lock
from fanout.plan.moving import author_of
from fanout.plan.observation import NOTHING, RepositoryView
from fanout.plan.repository import Commit
from fanout.plan.status import PublishedLine
from fanout.plan.trailers import read_trailers
from fanout.ports import GitStore, Reader
from fanout.reconcile.look import upstream_path
from fanout.reconcile.names import Named, repository_key
from fanout.reconcile.places import owner_of
from fanout.reconcile.upstream import written_upstream
from fanout.selection.model import VariantSpec
from fanout.selection.naming import draft_ref, tag_ref

_TRAILER = f"{Trailer.POLICY.value}: "


def published_for_another(
    git: GitStore,
    install: str,
    named: Named,
    spec: VariantSpec,
    view: RepositoryView,
    known: PublishedLine | None,
    everyone: Sequence[Named],
) -> Hold | None:
    """The hold of a variant at whose path stands what this installation published for another.

    `known` is what is on record as published for the variant there. The branch of renderings says
    that something is in force at the path, its newest tag for whom; where no tag tells, a clone of
    another upstream is another's. A draft of the variant that a person has merged is its own.
    """
    path = spec.path
    tree, number = view.paths.get(path, NOTHING).tree, view.tags.get(path, 0)
    if view.failure is not None or path not in view.published:
        return None
    if known is not None and (known.tree == tree or known.tag == f"{path}/v{number}"):
        return None
    with git.reader(view.remote) as reader:
        commit = view.refs[tag_ref(path, number)] if number else ""
        tagged = bool(commit) and reader.has(commit)
        owner = _owner(reader, commit) if tagged else ""
        if owner == owner_of(named):
            return None
        if owner:
            draft = view.drafts.get(draft_ref(install, path, spec.policy or spec.name))
            merged = draft is not None and draft.tree == tree
            if merged and reader.paths(commit, [path])[path].tree != tree:
                return None
            return _taken(named, spec, view, owner, everyone)
        return _cloned(reader, named, spec, tree) if known is None and tree is not None else None


def _owner(reader: Reader, oid: str) -> str:
    """The policy for which a commit published, as trailers call it; "" when it does not say."""
    commit = reader.commit(oid)
    return next(_policies(reader, commit), "")


def _policies(reader: Reader, commit: Commit) -> Iterator[str]:
    for line in reversed(commit.message.splitlines()):
        if line.startswith(_TRAILER):
            yield line.removeprefix(_TRAILER).strip()
    for parent in commit.parents[1:]:
        trailers = read_trailers(reader.commit(parent).message) if reader.has(parent) else None
        if trailers is not None:
            yield trailers.policy


def _taken(
    named: Named, spec: VariantSpec, view: RepositoryView, owner: str, everyone: Sequence[Named]
) -> Hold:
    at = f"{spec.repository}:{spec.path}"
    head = f"{at} holds what was published for {owner.rstrip('/')}"
    here = named.repositories[spec.name]
    for other in everyone:
        for variant in other.variants if owner_of(other) == owner else ():
            there = other.repositories[variant.name]
            if variant.path == spec.path and repository_key(there) != repository_key(here):
                return Hold(
                    "PathTaken",
                    f"{head}: {here.identity} and {there.identity} are one repository at two"
                    f" addresses, {view.remote.url} and {there.spec.url}; give both the same url,"
                    " and one of the variants another downstream.package",
                    who=author_of(spec),
                )
    return Hold(
        "PathTaken",
        f"{head}, and nothing says that it was given up; choose another path for {spec.name}, or"
        " take the package off the branch if nobody wants it any more",
        who="the maintainers of " + spec.repository,
    )


def _cloned(reader: Reader, named: Named, spec: VariantSpec, tree: str) -> Hold | None:
    """Is the package a clone of another upstream than the variant's?"""
    if named.upstream is None:
        return None
    try:
        entry = reader.entry(tree, KPTFILE)
        lock = read_lock(reader.blob(entry.oid) if entry is not None else None, KPTFILE)
    except FanoutError:
        return None  # people may have broken it, or taken the lock out of it
    path = upstream_path(named.upstream, written_upstream(named).package)
    if lock.is_of(named.upstream.spec.url, path):
        return None
    return Hold(
        "PathTaken",
        f"{spec.repository}:{spec.path} holds a clone of {lock.directory} in {lock.repo}, and"
        f" nothing says that it was published for {spec.name}; choose another path, or take the"
        " package off the branch if nobody wants it any more",
        who="the maintainers of " + spec.repository,
    )
