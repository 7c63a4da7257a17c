"""What a Warehouse's Git subscription becomes: the upstream package and its revisions.

A Warehouse looks for commits of a repository, a policy for tags of a package in one. Where the
Warehouse does not say which package that is, a name stands in that nobody can take for one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.faults import Path
from fanout.api.foreign.convert import only
from fanout.api.foreign.pieces import Convert, Found, Put, Remark
from fanout.api.kargo.objects import Item, dashed
from fanout.api.kargo.repositories import FILL_IN, Repositories
from fanout.api.paths import path_problem
from fanout.api.places import fields, items
from fanout.api.texts import shown

SUBSCRIPTIONS: Path = ("spec", "subscriptions")
_UPSTREAM: Path = ("spec", "upstream")
_PATTERNS = ("glob:", "regex:", "regexp:")
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_BRANCH = "NewestFromBranch"
_BY_TAGS = ("NewestTag", "Lexical")


def upstream(warehouse: Item, repositories: Repositories) -> Iterator[Put | Remark]:
    """Repository, package and revisions; what a person has to fill in is told."""
    first = _first(warehouse.data)
    if first is None:
        yield from nowhere(dashed(warehouse.name), SUBSCRIPTIONS)
        problem = "there is no Git subscription, and a policy clones a package from Git"
        remedy = f"put a package into a repository, and fill in what is called {FILL_IN}"
        yield Remark(SUBSCRIPTIONS, problem, remedy)
        return
    at: Path = (*SUBSCRIPTIONS, first, "git")
    git = fields(fields(items(warehouse.spec.get("subscriptions"))[first]).get("git"))
    yield from _repository(git, at, repositories)
    yield from _package(dashed(warehouse.name), git, at)
    yield from _revision(git, at)


def nowhere(policy: str, source: Path) -> Iterator[Put]:
    """An upstream for a person to fill in."""
    yield Put((*_UPSTREAM, "repository"), FILL_IN, source)
    yield Put((*_UPSTREAM, "package"), f"{FILL_IN}-{policy}", source)
    yield Put((*_UPSTREAM, "revision", "latest"), True, source)


def of_the_first(convert: Convert) -> Convert:
    """As said, of the first Git subscription alone: the others are named as a whole."""

    def of_one(found: Found) -> Iterator[Put | Remark]:
        if found.path[2] == _first(found.object):
            yield from convert(found)

    return of_one


def tags_alone(words: str) -> Convert:
    """A filter that chooses among tags or commits."""
    problem = f"{words} do not choose here: a range of versions does"
    return of_the_first(only("", [], problem=problem, remedy="write spec.upstream.revision.semver"))


def further(found: Found) -> Iterator[Put | Remark]:
    """The address: of the first Git subscription `upstream` makes a Repository."""
    if found.path[2] != _first(found.object):
        problem = "a policy has one upstream package, that of the first Git subscription"
        yield Remark(found.path, problem, "write a policy of its own for this one")


def _first(warehouse: Mapping[str, Any]) -> int | None:
    listed = items(fields(warehouse.get("spec")).get("subscriptions"))
    return next((at for at, entry in enumerate(listed) if fields(entry).get("git")), None)


def _repository(
    git: Mapping[str, Any], at: Path, repositories: Repositories
) -> Iterator[Put | Remark]:
    branch = git.get("branch") or None
    name, problem = repositories.named(git.get("repoURL"), branch)
    source = (*at, "repoURL") if "repoURL" in git else at
    yield Put((*_UPSTREAM, "repository"), name, source)
    if problem:
        yield Remark(source, problem, f"correct the Repository {name}")


def _package(policy: str, git: Mapping[str, Any], at: Path) -> Iterator[Put | Remark]:
    included = items(git.get("includePaths"))
    source = (*at, "includePaths") if included else at
    if len(included) == 1 and isinstance(included[0], str):
        path = included[0].strip("/")
        if not path.startswith(_PATTERNS) and path and not path_problem(path):
            yield Put((*_UPSTREAM, "package"), path, source)
            return
    name = f"{FILL_IN}-{policy}"
    yield Put((*_UPSTREAM, "package"), name, source)
    problem = "which directory is the package is not said: one plain path would say it"
    yield Remark(source, problem, f"write its path for {name}")


def _revision(git: Mapping[str, Any], at: Path) -> Iterator[Put | Remark]:
    strategy = git.get("commitSelectionStrategy") or _BRANCH
    source = (*at, "commitSelectionStrategy") if "commitSelectionStrategy" in git else at
    constraint = git.get("semverConstraint")
    if strategy == "SemVer" and constraint:
        where = (*at, "semverConstraint")
        yield Put((*_UPSTREAM, "revision", "semver"), _range(constraint), where)
    else:
        yield Put((*_UPSTREAM, "revision", "latest"), True, source)
    if strategy == _BRANCH:
        problem = "a policy does not follow a branch: a revision is a tag of the package"
    elif strategy in _BY_TAGS:
        problem = f"{strategy} has no counterpart: the order of revisions is that of versions"
    elif strategy == "SemVer":
        problem = "Kargo takes tags like v1.2.3, which are no package's"
    else:
        problem = f"{shown(strategy)} is no strategy that is known"
    yield Remark(source, problem, "tag the package: <path>/v1, or <path>/v1.2.3")


def _range(constraint: Any) -> Any:
    """A range as it is written here: a space is AND, and there are no hyphens."""
    if not isinstance(constraint, str):
        return constraint
    return " ".join(_HYPHEN.sub(r">=\1 <=\2", constraint).replace(",", " ").split())
