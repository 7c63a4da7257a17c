"""Index of recorded evidence: evaluates one check of one published variant.

A check has passed while the last statement of every reporter says so, since the instant at which
that became true and stayed true: another reporter who agrees changes nothing. Records are indexed
once per pass by stage, check, subject and variant, so an answer costs what was reported about this
variant and not all that was ever reported (docs/concepts/evidence-and-approvals.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckResult
from fanout.gates import gate_wording
from fanout.gates.gate_facts import Publication
from fanout.gates.gate_wording import ANY_PROMOTER_RETRY, MAY_WITHDRAW
from fanout.gates.record_facts import EvidenceFacts, is_from_the_future
from fanout.values import Value, replace


class ReportedStatus(Value):
    """Status of a check by its reporters: the last statement of each that counts."""

    latest: tuple[EvidenceFacts, ...] = ()
    since: datetime | None = None  # when all of them passed, without a break since

    @property
    def verdict(self) -> Verdict:
        """Failed if any reporter says so, passed if every reporter does, else pending."""
        statuses = {statement.spec.status for statement in self.latest}
        if Verdict.FAILED in statuses:
            return Verdict.FAILED
        return Verdict.PASSED if statuses == {Verdict.PASSED} else Verdict.PENDING


def follow_statements(
    statements: Iterable[EvidenceFacts], retried: datetime | None
) -> ReportedStatus:
    """Follow statements in record order; a Retry (`retried`) drops the failures before it."""
    steps: list[tuple[datetime, EvidenceFacts | None]] = [(it.at, it) for it in statements]
    if retried is not None:
        # Takes effect between the statements before and after its instant, exactly once.
        later = (number for number, (at, _) in enumerate(steps) if at > retried)
        steps.insert(next(later, len(steps)), (retried, None))
    by_reporter: dict[str, EvidenceFacts] = {}
    since: datetime | None = None
    for at, statement in steps:
        if statement is not None:
            by_reporter[statement.by] = statement
        else:
            kept = (it for it in by_reporter.values() if it.spec.status is not Verdict.FAILED)
            by_reporter = {it.by: it for it in kept}
        statuses = {it.spec.status for it in by_reporter.values()}
        since = (since or at) if statuses == {Verdict.PASSED} else None
    return ReportedStatus(tuple(by_reporter.values()), since)


class EvidenceEffect(IntEnum):
    """Effect of evidence on a publication or draft that it is about; the higher, the more."""

    EARLY = 0  # recorded before that existed
    SUPERSEDED = 1  # a later statement of its reporter, or a Retry, took its place
    AHEAD = 2  # dated ahead; does not count before its instant
    COUNTS = 3


@dataclass(slots=True)
class _CheckEvidence:
    # By revision; evidence that names no variants is about the whole stage.
    revisions: dict[str, list[EvidenceFacts]] = field(default_factory=dict)
    commits: dict[str, list[EvidenceFacts]] = field(default_factory=dict)
    # By variant name.
    variants: dict[str, list[EvidenceFacts]] = field(default_factory=dict)
    latest: EvidenceFacts | None = None  # of those about the whole stage

    def add(self, statement: EvidenceFacts) -> None:
        spec = statement.spec
        if variants := spec.variants:
            # A set: a variant that is named twice has one statement, not two.
            for name in set(variants):
                self.variants.setdefault(name, []).append(statement)
            return
        self.latest = statement
        if spec.commit:
            self.commits.setdefault(spec.commit, []).append(statement)
        elif spec.revision:
            self.revisions.setdefault(spec.revision, []).append(statement)


_NO_EVIDENCE = _CheckEvidence()
_BEFORE_FIRST_RECORD = -1


class _CheckSubject(NamedTuple):
    """One check of one publication, and the evidence about it.

    `floor` is the record order of the last evidence recorded before the publication, where
    instants alone cannot order them.
    """

    stage: str
    check: str
    publication: Publication
    retried: datetime | None
    drafted: bool
    floor: int
    evidence: _CheckEvidence
    named: Sequence[EvidenceFacts]  # what of it names the variant

    def list_statements(self) -> list[EvidenceFacts]:
        """Return the statements that name the publication in record order, whenever made."""
        publication, commits = self.publication, self.evidence.commits
        statements = [it for it in self.named if _is_about(it, publication)]
        if commits:
            # From the publication's few commits: a stage may have evidence about thousands.
            for commit in publication.commits & commits.keys():
                statements += (it for it in commits[commit] if _is_about(it, publication))
        statements += self.evidence.revisions.get(publication.revision, ())
        statements.sort(key=lambda statement: statement.order)
        return statements

    def accepts(self, statement: EvidenceFacts) -> bool:
        """Return whether the statement was made late enough to be about this publication."""
        names_draft_commit = self.drafted and statement.spec.commit in self.publication.commits
        return names_draft_commit or (
            statement.at >= self.publication.at and statement.order > self.floor
        )


class EvidenceIndex:
    """All evidence of one policy, indexed for queries about any variant."""

    def __init__(self, evidence: Iterable[EvidenceFacts], now: datetime) -> None:
        self._now = now
        self._by_check: dict[tuple[str, str], _CheckEvidence] = {}
        self._shared_results: dict[tuple[object, ...], CheckResult] = {}
        self._record_orders: dict[str, int] = {}
        # Instants at which evidence that is dated ahead begins to count.
        self.future_starts: set[datetime] = set()
        self.withdrawals: dict[str, datetime] = {}  # the last of each stage
        for it in evidence:
            # Withdrawn evidence keeps its place: publications name it as the last before them.
            self._record_orders[it.name] = it.order
            stage = it.spec.stage
            if it.withdrawn is not None:
                earlier = self.withdrawals.get(stage, it.withdrawn)
                self.withdrawals[stage] = max(earlier, it.withdrawn)
                continue
            self._by_check.setdefault((stage, it.spec.check), _CheckEvidence()).add(it)

    def evaluate(
        self,
        stage: str,
        check: str,
        variant_name: str,
        publication: Publication,
        retried: datetime | None = None,
        *,
        drafted: bool = False,
    ) -> CheckResult:
        """Evaluate a reported check for what a variant has published.

        Evidence counts if it names the published revision or one of its commits, was recorded
        no earlier than the publication, and was not on record before it. Anything else is
        missing, and missing is pending; so is a failure recorded before a Retry (`retried`).
        With `drafted` the publication stands for a draft at its release: a commit of the draft
        may have been reported earlier.
        """
        evidence, named = self._find_evidence(stage, check, variant_name)
        floor = self._record_orders.get(publication.last_evidence, _BEFORE_FIRST_RECORD)
        # Pipelines mostly report once per stage and revision. All variants published in one push
        # then share one result, which keeps a pass over thousands of variants from evaluating it
        # for each.
        shared_key = None
        if not named and not evidence.commits:
            shared_key = (stage, check, publication.revision, publication.at, floor, retried)
            if (shared_result := self._shared_results.get(shared_key)) is not None:
                return shared_result
        subject = _CheckSubject(stage, check, publication, retried, drafted, floor, evidence, named)
        check_result = self._evaluate(subject)
        if shared_key is not None:
            self._shared_results[shared_key] = check_result
        return check_result

    def find_failure(
        self, stage: str, check: str, variant_name: str, revision: str, retried: datetime | None
    ) -> EvidenceFacts | None:
        """Return the report by which a variant failed a revision that it may have no more.

        None if nobody's last report since the Retry (`retried`) says so. Whether it was made
        after the publication is not known of one that was replaced.
        """
        evidence, named = self._find_evidence(stage, check, variant_name)
        statements = [it for it in named if it.spec.revision == revision]
        statements += evidence.revisions.get(revision, ())
        counting = [it for it in statements if not self._is_ahead(it)]
        counting.sort(key=lambda it: it.order)
        latest = follow_statements(counting, retried).latest
        return next((it for it in latest if it.spec.status is Verdict.FAILED), None)

    def is_shared(self, stage: str, check: str, variant_name: str) -> bool:
        """Return whether variants with equal publications have the same evidence."""
        evidence, named = self._find_evidence(stage, check, variant_name)
        return not named and not evidence.commits

    def find_effects(
        self,
        stage: str,
        check: str,
        variant_name: str,
        publication: Publication,
        retried: datetime | None = None,
        *,
        drafted: bool = False,
    ) -> Iterator[tuple[EvidenceFacts, EvidenceEffect]]:
        """Yield the evidence about a publication with its effect; arguments as of `evaluate`."""
        evidence, named = self._find_evidence(stage, check, variant_name)
        floor = self._record_orders.get(publication.last_evidence, _BEFORE_FIRST_RECORD)
        subject = _CheckSubject(stage, check, publication, retried, drafted, floor, evidence, named)
        statements = subject.list_statements()
        counting = [it for it in statements if subject.accepts(it) and not self._is_ahead(it)]
        latest = {it.order for it in follow_statements(counting, retried).latest}
        for statement in statements:
            if not subject.accepts(statement):
                effect = EvidenceEffect.EARLY
            elif self._is_ahead(statement):
                effect = EvidenceEffect.AHEAD
            elif statement.order in latest:
                effect = EvidenceEffect.COUNTS
            else:
                effect = EvidenceEffect.SUPERSEDED
            yield statement, effect

    def _find_evidence(
        self, stage: str, check: str, variant_name: str
    ) -> tuple[_CheckEvidence, Sequence[EvidenceFacts]]:
        """Return the evidence about a check, and what of it names the variant."""
        evidence = self._by_check.get((stage, check), _NO_EVIDENCE)
        return evidence, evidence.variants.get(variant_name, ())

    def _evaluate(self, subject: _CheckSubject) -> CheckResult:
        statements = subject.list_statements()
        # Shortcut for the common case of one passed report; following it changes nothing.
        if (
            len(statements) == 1
            and statements[0].spec.status is Verdict.PASSED
            and subject.accepts(statements[0])
            and statements[0].at <= self._now
        ):
            return _passed_result(subject, statements[0].at, statements[0])
        timely_statements = [it for it in statements if subject.accepts(it)]
        future_statements = [it for it in timely_statements if self._is_ahead(it)]
        counting = [it for it in timely_statements if it not in future_statements]
        reported = follow_statements(counting, subject.retried)
        check_result = _fold_reports(subject, reported)
        if not reported.latest:
            latest = statements or [*subject.named, *filter(None, [subject.evidence.latest])]
            latest_statement = max(latest, key=lambda statement: statement.order, default=None)
            check_result = _explain_missing(check_result, subject, latest_statement)
        # Remembered even where the check has passed already: the pass at that instant may see a
        # failure.
        self.future_starts.update(it.at for it in future_statements)
        if not future_statements or check_result.verdict is Verdict.PASSED:
            return check_result
        # When the check will have passed if nobody reports anything more, or None. Statements
        # still to take effect interact: a later pending one takes back what an earlier one passed,
        # so each instant is replayed.
        passes_at: datetime | None = None
        future_orders = {it.order for it in future_statements}
        for at in sorted(it.at for it in future_statements):
            counting = [
                it for it in timely_statements if it.order not in future_orders or it.at <= at
            ]
            if follow_statements(counting, subject.retried).verdict is Verdict.PASSED:
                passes_at = at
                break
        if check_result.verdict is Verdict.PENDING:
            first, check = min(future_statements, key=lambda it: it.at), subject.check
            report = f"check {check}: the report by {first.by} is dated"
            if is_from_the_future(first.at, self._now):
                reporter = gate_wording.format_reporter(check, subject.stage)
                check_result = CheckResult(
                    check,
                    Verdict.PENDING,
                    f"{report} in the future and does not count yet",
                    reason=Reason.FROM_THE_FUTURE,
                    who=gate_wording.format_clock_owner(first.by, reporter),
                )
            elif passes_at is not None:
                check_result = CheckResult(
                    check,
                    Verdict.PENDING,
                    f"{report} ahead and counts from then on",
                    reason=Reason.VERIFICATION_PENDING,
                    who=gate_wording.TIME_ALONE,
                )
            check_result = replace(check_result, until=first.at)
        return replace(check_result, passes_at=passes_at)

    def _is_ahead(self, statement: EvidenceFacts) -> bool:
        """Return whether the statement does not count before its own, future instant.

        A failure counts at once, unless it is dated beyond the tolerated clock skew: it starts
        no clock, and it can only withdraw.
        """
        if statement.spec.status is Verdict.FAILED:
            return is_from_the_future(statement.at, self._now)
        return statement.at > self._now


def _passed_result(
    subject: _CheckSubject, since: datetime, statement: EvidenceFacts
) -> CheckResult:
    """Build the result of a check passed since then; `statement` is the latest that says so."""
    sentence = f"check {subject.check} passed: reported by {statement.by}"
    return CheckResult(subject.check, Verdict.PASSED, sentence, since, latest=statement.at)


def _is_about(evidence: EvidenceFacts, publication: Publication) -> bool:
    """Return whether the evidence names this publication.

    Evidence that names revision and commit must be right in both; evidence that names
    neither never is.
    """
    revision, commit = evidence.spec.revision, evidence.spec.commit
    if not revision and not commit:
        return False
    return (not revision or revision == publication.revision) and (
        not commit or commit in publication.commits
    )


def _fold_reports(subject: _CheckSubject, reported: ReportedStatus) -> CheckResult:
    """Fold one statement per reporter into a result; any failure fails."""
    stage, check, publication = subject.stage, subject.check, subject.publication
    if reported.since is not None:
        return _passed_result(
            subject, reported.since, max(reported.latest, key=lambda statement: statement.order)
        )
    by_status = {
        status: [it for it in reported.latest if it.spec.status is status]
        for status in (Verdict.PASSED, Verdict.FAILED, Verdict.PENDING)
    }
    passed, failed, pending = by_status.values()
    actor = gate_wording.format_reporter(check, stage)
    # Reporters who contradict each other are a finding of their own: somebody has to look at both.
    if failed and passed:
        failure, passed_by = failed[-1], passed[-1].by
        link = f" ({failure.spec.link})" if failure.spec.link else ""
        sentence = (
            f"check {check} is contradictory: passed by {passed_by}, failed by {failure.by}{link}"
        )
        at = max(passed[-1].at, failure.at)
        actor = f"{failure.by} (fanout report, when it has run again) or {MAY_WITHDRAW}"
        return CheckResult(check, Verdict.FAILED, sentence, at, Reason.CONTRADICTION, actor)
    if failed:
        at, by = failed[-1].at, failed[-1].by
        sentence = gate_wording.describe_failed_check(check, by, failed[-1].spec.link)
        actor = f"{by} (fanout report, when it has run again) or {ANY_PROMOTER_RETRY}"
        return CheckResult(check, Verdict.FAILED, sentence, at, Reason.VERIFICATION_FAILED, actor)
    if pending:
        # Whoever else reports that it passed changes nothing.
        at, by = pending[-1].at, pending[-1].by
        sentence = f"check {check} is pending: reported by {by}"
        actor = f"{by} (fanout report, when it has a result) or {MAY_WITHDRAW}"
        return CheckResult(check, Verdict.PENDING, sentence, at, Reason.VERIFICATION_PENDING, actor)
    sentence = f"check {check} is not reported for {publication.revision} yet"
    return CheckResult(
        check, Verdict.PENDING, sentence, publication.at, Reason.VERIFICATION_PENDING, actor
    )


def _explain_missing(
    check_result: CheckResult, subject: _CheckSubject, statement: EvidenceFacts | None
) -> CheckResult:
    """Add to a pending result the evidence that does not count, with the reason."""
    if statement is None:
        return check_result
    publication = subject.publication
    revision, commit = statement.spec.revision or "", statement.spec.commit or ""
    if not revision and not commit:
        problem = "names no revision and no commit"
    elif not _is_about(statement, publication):
        # It answered for an earlier publication; naming it would only distract.
        if statement.at < publication.at:
            return check_result
        problem = (
            f"is about {revision}"
            if revision
            else f"is about commit {commit[:12]}, where the package differs from the published one"
        )
    else:
        step = "drafted" if subject.drafted else "published"
        step = "retried" if subject.accepts(statement) else step
        problem = f"was recorded before {publication.revision} was {step}"
    sentence = (
        f"{check_result.message}; evidence {statement.name} by {statement.by} does not count: it"
        f" {problem}"
    )
    return replace(check_result, message=sentence)
