"""A commit that somebody checked: which one is meant, and does it show what is published?"""

import re
from collections.abc import Iterable, Sequence

from fanout.errors import InvalidInput
from fanout.gates.wording import stage_named
from fanout.plan.cases import Case
from fanout.plan.observation import RepositoryView
from fanout.ports import GitStore
from fanout.reconcile.evidence import prove
from fanout.selection.naming import tag_ref

_SHORT = 7  # digits
_FULL = 40


def checked_commit(
    said: str, stage: str, cases: Sequence[Case], git: GitStore, *, drafted: bool = False
) -> str:
    """The full id of the commit that is meant.

    `cases` are the variants that it is to be evidence about. Raises InvalidInput unless the package
    of one of them at least is there as it is published, or `drafted`: it could never count.
    (Design §5.)
    """
    commit = _expanded(said.lower(), stage_named(stage), cases)
    if drafted:
        if not any(it.drafted for it in prove([commit], cases, git, {}).values()):
            raise InvalidInput(
                f"at {commit} no variant of {stage_named(stage)} is as it is drafted",
                reason="WrongRevision",
                remedy="name the commit of a draft that was looked at",
            )
        return commit
    if not any(_holds(view, commit, git) for view in _views(cases)):
        looked = ", ".join(view.remote.url for view in _views(cases)) or "none is in use"
        raise InvalidInput(
            f"commit {commit} is on the branch of none of the repositories of"
            f" {stage_named(stage)}: {looked}",
            reason="NotFound",
            remedy="name the commit on the branch that was looked at",
        )
    if not any(it.published for it in prove([commit], cases, git, {}).values()):
        raise InvalidInput(
            f"at {commit} no variant of {stage_named(stage)} is as it is published",
            reason="WrongRevision",
            remedy="report on what is published, after it is",
        )
    return commit


def _expanded(said: str, named: str, cases: Sequence[Case]) -> str:
    if not re.fullmatch(rf"[0-9a-f]{{{_SHORT},{_FULL}}}", said):
        raise InvalidInput(
            f"{said} is no commit id",
            reason="NoObjectId",
            remedy=f"write its {_FULL} digits, or at least the first {_SHORT}",
        )
    if len(said) == _FULL:
        return said
    found = sorted({commit for commit in _published(cases) if commit.startswith(said)})
    if len(found) != 1:
        problem = (
            f"{said} is the beginning of {' and of '.join(found)}"
            if found
            else f"no commit of {named} begins with {said}"
        )
        raise InvalidInput(problem, reason="NotFound", remedy=f"write all {_FULL} digits")
    return found[0]


def _published(cases: Sequence[Case]) -> Iterable[str]:
    """The commits that publications and drafts made, and where their branches are now."""
    for case in cases:
        yield case.view.head
        if case.draft is not None:
            yield case.draft.commit
        if case.published is not None:
            yield case.published.merge
        number = case.view.tags.get(case.spec.path, 0)
        if number:
            yield case.view.refs[tag_ref(case.spec.path, number)]


def _views(cases: Sequence[Case]) -> list[RepositoryView]:
    views = {case.view.key: case.view for case in cases if case.view.failure is None}
    return [views[key] for key in sorted(views)]


def _holds(view: RepositoryView, commit: str, git: GitStore) -> bool:
    with git.reader(view.remote) as reader:
        return bool(view.head) and reader.has(commit) and reader.contains(view.head, commit)
