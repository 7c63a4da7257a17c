"""Readings of checks that statuses of commits answer, as a forge shows them in a pass.

A status is about a commit, and counts for the package at the path in it: before publication at the
head of the pull request, afterwards at the merge commit and at the head of the branch. Of one
context the newest counts, among those of the logins in `by`. (design-forges, "Gates") Only commits
for whose statuses a check of the pass waits are asked about.
"""

from collections.abc import Iterable, Mapping, Sequence

from fanout.api.gate_vocabulary import Verdict
from fanout.api.stages import Check, CommitStatusCheck, Stage
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_wording import format_names
from fanout.plan import plan_wording
from fanout.plan.drafts.draft_location import find_draft
from fanout.plan.evidence.review_approvals import format_person
from fanout.plan.observation.forge_state import ForgeState
from fanout.plan.observation.observed_request import StatusState
from fanout.plan.observation.repository_state import EMPTY_PATH, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import VariantLine
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value

_VERDICTS = {
    StatusState.SUCCESS: Verdict.PASSED,
    StatusState.FAILURE: Verdict.FAILED,
    StatusState.PENDING: Verdict.PENDING,
}
_MAX_DESCRIPTION = 120  # characters of a status's text in a message


class StatusSource(Value):
    """Commits of a draft or publication at which a status counts, and who shows their statuses.

    `commits` is empty where `missing` says why there is none.
    """

    forge: ForgeState | None  # None: the repository has none
    commits: tuple[str, ...] = ()
    missing: str = ""


def find_draft_source(variant: ObservedVariant) -> StatusSource:
    """Return where statuses about the variant's draft are: at the head of its pull request."""
    state = variant.repository_state
    facts = state.find_request(variant.draft_ref)
    if facts is None:
        return StatusSource(state.forge, missing=plan_wording.REQUEST_NOT_OPEN)
    return StatusSource(state.forge, (facts.request.head_commit,))


def find_publication_source(variant: ObservedVariant) -> StatusSource:
    """Return where statuses about the publication are.

    The head of the branch counts only while it has the published package.
    """
    state, published = variant.package_location.repository_state, variant.published
    commits: dict[str, None] = {}
    if published is not None:
        is_present = variant.package_state.tree == published.tree
        commits = dict.fromkeys(filter(None, (published.merge, state.head if is_present else "")))
    missing = "" if commits else "the commit of the publication is not known"
    return StatusSource(state.forge, tuple(commits), missing)


def read_commit_status(
    check: Check, rule: CommitStatusCheck, digest: str, repository: str, source: StatusSource
) -> CheckReading:
    """Return the reading of a commitStatus check; `repository` is the name of its Repository."""
    forge = source.forge
    if forge is None:
        problem = (
            f"Repository {repository} has no forge, so statuses of commits cannot be read; let the"
            " pipeline run `fanout report` instead"
        )
        return CheckReading(check.name, digest, Verdict.PENDING, problem)
    problem = source.missing
    if forge.failure is not None:
        problem = f"{forge.host or 'the forge'} could not be read: {forge.failure}"
    if problem:
        return CheckReading(check.name, digest, Verdict.PENDING, problem)
    readings = [
        (status, format_person(forge.host, status.creator), commit)
        for commit in source.commits
        for status in forge.statuses.get(commit, ())
        if status.context == rule.context
    ]
    # Creators whose statuses count, named by login, or by host and login.
    names = {name.lower() for name in rule.by}
    accepted = [it for it in readings if not names or names & {it[0].creator.lower(), it[1]}]
    if not accepted:
        creators = f" by {format_names(rule.by)}" if rule.by else ""
        commits = " or ".join(it[:12] for it in source.commits)
        problem = f"there is no status {rule.context}{creators} at {commits}"
        if readings:
            problem += f"; that of {format_names({it[1] for it in readings})} is ignored"
        return CheckReading(check.name, digest, Verdict.PENDING, problem)
    status, creator, commit = max(accepted, key=lambda it: it[0].instant)
    sentence = f"status {status.context} at {commit[:12]} is {status.state.value}, by {creator}"
    if description := " ".join(status.description.split()):
        end = "…" if len(description) > _MAX_DESCRIPTION else ""
        sentence += f": {description[:_MAX_DESCRIPTION]}{end}"
    return CheckReading(check.name, digest, _VERDICTS[status.state], sentence, commit)


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
        spec, stage, line = subject.spec, subject.stage, subject.status_line
        if _status_checks(stage.requires):
            draft = find_draft(spec, state, install)
            if draft is not None and open_heads.get(draft.ref) == draft.commit:
                commits.add(draft.commit)
        if line is None or line.published is None or line.place != (state.identity, spec.path):
            continue
        published = line.published
        passed = {
            it.check
            for it in line.answers
            if it.digest == published.digest and it.verdict is Verdict.PASSED
        }
        if passed >= {it.name for it in _status_checks(stage.verification)}:
            continue
        commits.add(published.merge)
        # A status of the branch's head is about this package only while it is there.
        if state.path_states.get(line.path, EMPTY_PATH).tree == published.tree:
            commits.add(state.head)
    return frozenset(commits - {""})


def _status_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(it for it in checks if it.commit_status is not None)
