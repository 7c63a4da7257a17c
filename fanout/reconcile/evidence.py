"""Evidence that names a commit: at which variants' published package was it looked at?"""

from collections.abc import Iterable, Sequence

from fanout.plan.cases import Case
from fanout.plan.observation import RepositoryView
from fanout.ports import GitStore


def prove(
    commits: Iterable[str], cases: Sequence[Case], git: GitStore
) -> dict[str, frozenset[str]]:
    """By variant, those of the commits at which its package stood as it is published.

    Evidence at a commit counts for every variant whose package tree at that commit equals its
    published tree, the commit being on the branch: so squash and rebase cost nothing. (Design §5.)
    """
    named = sorted(set(commits))
    if not named:
        return {}
    proven: dict[str, set[str]] = {}
    for view, those in _by_repository(cases):
        with git.reader(view.remote) as reader:
            for commit in named:
                if reader.has(commit) and reader.contains(view.head, commit):
                    states = reader.paths(commit, [case.home.path for case in those])
                    for case in those:
                        published = case.published
                        if published and states[case.home.path].tree == published.tree:
                            proven.setdefault(case.spec.name, set()).add(commit)
    return {name: frozenset(found) for name, found in proven.items()}


def _by_repository(cases: Sequence[Case]) -> list[tuple[RepositoryView, list[Case]]]:
    places: dict[str, tuple[RepositoryView, list[Case]]] = {}
    for case in cases:
        view = case.home.view
        if case.published is not None and view.failure is None:
            places.setdefault(view.key, (view, []))[1].append(case)
    return [places[key] for key in sorted(places)]
