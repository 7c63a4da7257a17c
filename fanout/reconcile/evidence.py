"""Evidence that names a commit: at which package, published or drafted, was it looked at?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fanout.errors import FanoutError
from fanout.gates.facts import Reading
from fanout.plan.cases import Case
from fanout.plan.observation import RepositoryView
from fanout.plan.seen import UNSEEN, Seen
from fanout.ports import GitStore, Reader

_FULL = 40  # digits of a commit's id


class _Stand(NamedTuple):
    """A package that evidence may be about: where it is, and as what."""

    variant: str
    path: str
    tree: str
    drafted: bool


def prove(
    commits: Iterable[str],
    cases: Sequence[Case],
    git: GitStore,
    readings: Mapping[str, Sequence[Reading]],
) -> dict[str, Seen]:
    """By variant, the commits at which its package stood as it is published or drafted.

    Evidence at a commit counts for every variant whose package tree at that commit equals its
    published tree, the commit being on the branch; before publication, whose tree equals the
    draft's: so squash and rebase cost nothing. (Design §5.) What a machine has seen is looked for
    at its own variant alone, and comes along.
    """
    named = frozenset(commits)
    claimed = {name: {it.seen for it in said} for name, said in readings.items()}
    found = {name: Seen(readings=tuple(said)) for name, said in readings.items()}
    if not named and not claimed:
        return found
    for view, stands in _by_repository(cases):
        own = {it for stand in stands for it in claimed.get(stand.variant, ()) if len(it) == _FULL}
        if not named and not own:
            continue
        with git.reader(view.remote) as reader:
            for commit in sorted(named | own):
                asked = [
                    it for it in stands if commit in named or commit in claimed.get(it.variant, ())
                ]
                for stand in _standing(commit, asked, view.head, reader):
                    before = found.get(stand.variant, UNSEEN)
                    found[stand.variant] = before.at(commit, drafted=stand.drafted)
    return found


def _standing(commit: str, stands: Sequence[_Stand], head: str, reader: Reader) -> Iterator[_Stand]:
    """Those that stood so at the commit, if it is one."""
    try:
        states = reader.paths(commit, {stand.path for stand in stands})
        on_branch = bool(head) and reader.contains(head, commit)
    except FanoutError:  # it is in no mirror, or no commit: whoever named it may have made it up
        return
    for stand in stands:
        if states[stand.path].tree == stand.tree and (stand.drafted or on_branch):
            yield stand


def _by_repository(cases: Sequence[Case]) -> list[tuple[RepositoryView, list[_Stand]]]:
    places: dict[str, tuple[RepositoryView, list[_Stand]]] = {}
    for case in cases:
        for view, stand in _stands(case):
            if view.failure is None:
                places.setdefault(view.key, (view, []))[1].append(stand)
    return [places[key] for key in sorted(places)]


def _stands(case: Case) -> Iterator[tuple[RepositoryView, _Stand]]:
    name, home, draft = case.spec.name, case.home, case.draft
    if case.published is not None:
        yield home.view, _Stand(name, home.path, case.published.tree, drafted=False)
    if draft is not None and draft.tree is not None:
        yield case.view, _Stand(name, case.spec.path, draft.tree, drafted=True)
