"""Checks that machines answer and that are due in a pass, and readings by statuses of commits.

A status is about a commit, and counts for the package at the path in it: before publication at the
head of the pull request, afterwards at the merge commit and at the head of the branch. Of one
context the newest counts, among those of the logins in `by` (docs/concepts/checks.md). Only commits
for whose statuses a check of the pass waits are asked about.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from fanout.api.gate_vocabulary import CheckMethod, Verdict
from fanout.api.stages import Check, ObjectCheck, Stage
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import Variables
from fanout.gates.gate_wording import format_names
from fanout.plan import plan_wording
from fanout.plan.changes.next_drafts import find_draft
from fanout.plan.evidence.review_approvals import format_person
from fanout.plan.observation.observed_request import StatusState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import VariantLine
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value

# All others are waited for: who skips, cancels or gives up a run passes nothing, and fails nothing.
_VERDICTS = {StatusState.SUCCESS: Verdict.PASSED, StatusState.FAILURE: Verdict.FAILED}
_MAX_DESCRIPTION = 120  # characters of a status's text in a message


class DueCheck(Value, kw_only=True):
    """One check that is due for one variant, with its subject and variables."""

    variant: str
    check: Check
    digest: str  # of the publication or draft in question
    variables: Variables
    namespace: str  # of the policy
    draft_commit: str = ""  # commit of the draft in question; "": it is a publication
    reading: CheckReading | None = None  # by statuses of commits; None: it is to be asked


def machine_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that a machine answers."""
    return tuple(it for it in checks if it.approval is None and it.method is not CheckMethod.REPORT)


def list_namespaces(check: ObjectCheck, policy_namespace: str) -> tuple[str, ...]:
    """Return the namespaces in which a check looks for its object, in this order."""
    # An object of a cluster-scoped kind has the namespace "".
    return (check.namespace,) if check.namespace else (policy_namespace, "")


def find_due_checks(
    stages: Sequence[Stage],
    variants: Sequence[ObservedVariant],
    variables: Mapping[str, Variables],
    now: datetime,
) -> Iterator[DueCheck]:
    """Yield the checks that are due: of publications, and of released drafts.

    `variables` are those of expressions, by variant name. A check is due for as long as the
    revision is there, also after it has passed: it may fail later.
    """
    checks_by_stage = {
        stage.name: (machine_checks(stage.verification), machine_checks(stage.requires))
        for stage in stages
    }
    for variant in variants:
        verification, requires = checks_by_stage.get(variant.spec.stage, ((), ()))
        published, grant = variant.published, variant.status_line.grant
        publication = (published.revision, published.digest) if published is not None else None
        subjects: list[tuple[tuple[str, str], Sequence[Check]]] = []
        if verification and publication is not None:
            subjects.append((publication, verification))
        if requires and variant.draft is not None and grant is not None and variant.is_granted:
            trailers = variant.draft.trailers
            subjects.append(((trailers.revision, trailers.digest), requires))
        for subject, checks in subjects:
            revision, digest = subject
            draft = variant.draft if subject != publication else None
            since = grant.at if grant is not None else now
            if published is not None and subject == publication:
                since = published.at
            own_variables = dict(variables.get(variant.spec.name, {}))
            own_variables["upstream"] = {**own_variables.get("upstream", {}), "revision": revision}
            for check in checks:
                # Until then a controller may still report the state of the previous revision.
                if now < since + (check.settle or timedelta(0)):
                    continue
                reading = None
                if check.commit_status is not None:
                    is_drafted = draft is not None
                    reading = read_commit_status(check, variant, digest, is_drafted=is_drafted)
                yield DueCheck(
                    variant=variant.spec.name,
                    check=check,
                    digest=digest,
                    variables=own_variables,
                    namespace=variant.spec.namespace,
                    draft_commit=draft.commit if draft is not None else "",
                    reading=reading,
                )


def read_commit_status(
    check: Check, variant: ObservedVariant, digest: str, *, is_drafted: bool
) -> CheckReading:
    """Return the reading of a commitStatus check of the variant's draft, or of its publication.

    Statuses about a draft are at the head of its pull request, those about a publication at its
    merge and at the head of the branch, while that has the published package.
    """
    rule, published = check.commit_status, variant.published
    assert rule is not None, "other checks have no statuses of commits"
    commits: dict[str, None] = {}
    if is_drafted:
        state = variant.repository_state
        facts = state.find_request(variant.draft_ref)
        commits = dict.fromkeys([facts.request.head_commit] if facts is not None else ())
        problem = plan_wording.REQUEST_NOT_OPEN
    else:
        state = variant.package_location.repository_state
        if published is not None:
            is_present = variant.package_state.tree == published.tree
            published_commits = (published.merge, state.head if is_present else "")
            commits = dict.fromkeys(filter(None, published_commits))
        problem = "the commit of the publication is not known"
    if (forge := state.forge) is None:
        problem = (
            f"Repository {variant.spec.repository} has no forge, so statuses of commits cannot be"
            " read; let the pipeline run `fanout report` instead"
        )
    elif forge.failure is not None:
        problem = f"{forge.host or 'the forge'} could not be read: {forge.failure}"
    if forge is None or forge.failure is not None or not commits:
        return CheckReading(check.name, digest, Verdict.PENDING, problem)
    readings = [
        (status, format_person(forge.host, status.creator), commit)
        for commit in commits
        for status in forge.statuses.get(commit, ())
        if status.context == rule.context
    ]
    # Creators whose statuses count, named by login, or by host and login.
    prefix = f"{forge.host}/".lower()
    names = {it[len(prefix) :] if it.lower().startswith(prefix) else it for it in rule.by}
    accepted = [it for it in readings if not names or any(map(it[0].identity.is_named, names))]
    if not accepted:
        creators = f" by {format_names(rule.by)}" if rule.by else ""
        places = " or ".join(it[:12] for it in commits)
        problem = f"there is no status {rule.context}{creators} at {places}"
        if readings:
            problem += f"; that of {format_names({it[1] for it in readings})} is ignored"
        return CheckReading(check.name, digest, Verdict.PENDING, problem)
    status, creator, commit = max(accepted, key=lambda it: it[0].instant)
    sentence = f"status {status.context} at {commit[:12]} is {status.state.value}, by {creator}"
    if description := " ".join(status.description.split()):
        end = "…" if len(description) > _MAX_DESCRIPTION else ""
        sentence += f": {description[:_MAX_DESCRIPTION]}{end}"
    if status.is_rerunnable and status.state not in (StatusState.SUCCESS, StatusState.PENDING):
        sentence += "; it can be run again on the forge"
    verdict = _VERDICTS.get(status.state, Verdict.PENDING)
    return CheckReading(check.name, digest, verdict, sentence, commit)


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
        if state.find_tree(line.path) == published.tree:
            commits.add(state.head)
    return frozenset(commits - {""})


def _status_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(it for it in checks if it.commit_status is not None)
