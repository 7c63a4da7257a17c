"""Downstream commit of evidence: its full id, and whether it shows the package."""

import re
from collections.abc import Iterable, Sequence

from fanout.errors import InvalidInput
from fanout.gates.gate_wording import label_stage
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore
from fanout.reconcile.evidence.evidence_matching import match_evidence
from fanout.selection.variant_naming import tag_ref

_MIN_DIGITS = 7
_ALL_DIGITS = 40


def resolve_commit(
    commit_id: str,
    stage: str,
    cases: Sequence[RenderedVariant],
    git: GitStore,
    *,
    drafted: bool = False,
) -> str:
    """Return the full id of the commit with this id or prefix.

    `cases`: the variants that it is evidence about. Raises InvalidInput unless the commit
    contains the package of at least one of them as it is published, or with `drafted` as it
    is drafted: otherwise the evidence could never count (design §5).
    """
    commit = _expand_prefix(commit_id.lower(), label_stage(stage), cases)
    if drafted:
        if not any(
            it.drafted_commits
            for it in match_evidence([commit], [it.observed for it in cases], git, {}).values()
        ):
            raise InvalidInput(
                f"at {commit} no variant of {label_stage(stage)} is as it is drafted",
                reason="WrongRevision",
                remedy="name the commit of a draft that was looked at",
            )
        return commit
    if not any(_branch_contains(view, commit, git) for view in _repository_states(cases)):
        searched = (
            ", ".join(view.remote.url for view in _repository_states(cases)) or "none is in use"
        )
        raise InvalidInput(
            f"commit {commit} is on the branch of none of the repositories of"
            f" {label_stage(stage)}: {searched}",
            reason="NotFound",
            remedy="name the commit on the branch that was looked at",
        )
    if not any(
        it.published_commits
        for it in match_evidence([commit], [it.observed for it in cases], git, {}).values()
    ):
        raise InvalidInput(
            f"at {commit} no variant of {label_stage(stage)} is as it is published",
            reason="WrongRevision",
            remedy="report on what is published, after it is",
        )
    return commit


def _expand_prefix(commit_id: str, stage: str, cases: Sequence[RenderedVariant]) -> str:
    if not re.fullmatch(rf"[0-9a-f]{{{_MIN_DIGITS},{_ALL_DIGITS}}}", commit_id):
        raise InvalidInput(
            f"{commit_id} is no commit id",
            reason="NoObjectId",
            remedy=f"write its {_ALL_DIGITS} digits, or at least the first {_MIN_DIGITS}",
        )
    # A full id is not looked up among known commits: the branch may be ahead of them.
    if len(commit_id) == _ALL_DIGITS:
        return commit_id
    matches = sorted({commit for commit in _known_commits(cases) if commit.startswith(commit_id)})
    if len(matches) != 1:
        problem = (
            f"{commit_id} is the beginning of {' and of '.join(matches)}"
            if matches
            else f"no commit of {stage} begins with {commit_id}"
        )
        raise InvalidInput(problem, reason="NotFound", remedy=f"write all {_ALL_DIGITS} digits")
    return matches[0]


def _known_commits(cases: Sequence[RenderedVariant]) -> Iterable[str]:
    """Yield the commits of publications and drafts, and the heads of their branches."""
    for case in cases:
        yield case.observed.repository_state.head
        if case.observed.draft is not None:
            yield case.observed.draft.commit
        if case.observed.published is not None:
            yield case.observed.published.merge
        number = case.observed.repository_state.publication_numbers.get(case.spec.path, 0)
        if number:
            yield case.observed.repository_state.refs[tag_ref(case.spec.path, number)]


def _repository_states(cases: Sequence[RenderedVariant]) -> list[RepositoryState]:
    states = {
        case.observed.repository_state.identity: case.observed.repository_state
        for case in cases
        if case.observed.repository_state.failure is None
    }
    return [states[key] for key in sorted(states)]


def _branch_contains(view: RepositoryState, commit: str, git: GitStore) -> bool:
    with git.reader(view.remote) as reader:
        return bool(view.head) and reader.has(commit) and reader.contains(view.head, commit)
