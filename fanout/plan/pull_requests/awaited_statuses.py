"""Commits whose statuses the checks of a pass wait for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.api.gate_vocabulary import Verdict
from fanout.api.stages import Check, Stage
from fanout.plan.observation.repository_state import EMPTY_PATH, RepositoryState
from fanout.plan.records.policy_status import VariantLine
from fanout.plan.stage_drafts.draft_location import find_draft
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value


class StatusSubject(Value, kw_only=True):
    """A variant whose stage has checks of commit statuses."""

    spec: VariantSpec
    stage: Stage
    status_line: VariantLine | None = None


def has_status_checks(stage: Stage) -> bool:
    """Return whether the stage has any check that a commit status answers."""
    return bool(_status_checks(stage.verification) or _status_checks(stage.requires))


def find_awaited_commits(
    subjects: Iterable[StatusSubject],
    state: RepositoryState,
    open_heads: Mapping[str, str],
    install: str,
) -> frozenset[str]:
    """Return the commits of one repository at which a check waits for a status.

    `open_heads` are the observed heads of open requests, by full ref. What a draft requires is
    asked until it is merged. What was published is asked at its merge and at the head of the
    branch, until its checks have passed on record; only `failed` withdraws a recorded answer, and
    what has passed by a status of that very commit stays so.
    """
    commits: set[str] = set()
    for subject in subjects:
        if _status_checks(subject.stage.requires):
            draft = find_draft(subject.spec, state, install)
            if draft is not None and open_heads.get(draft.ref) == draft.commit:
                commits.add(draft.commit)
        commits |= set(_verified_commits(subject, state))
    return frozenset(commits - {""})


def _verified_commits(subject: StatusSubject, state: RepositoryState) -> Iterator[str]:
    line = subject.status_line
    if line is None or line.published is None or line.place != (state.identity, subject.spec.path):
        return
    passed = {
        it.check
        for it in line.answers
        if it.digest == line.published.digest and it.verdict is Verdict.PASSED
    }
    if passed >= {it.name for it in _status_checks(subject.stage.verification)}:
        return
    yield line.published.merge
    # A status of the branch's head is about this package only while it is there.
    if state.path_states.get(line.path, EMPTY_PATH).tree == line.published.tree:
        yield state.head


def _status_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(it for it in checks if it.commit_status is not None)
