"""Commands that end a blocker, each complete: policy, stage, variants, check and revision.

A blocker that waits for others (a stage before, a slot of the budget, a halted stage) is ended by
the commands of those others. What no command can end, such as a fault of a package, has none.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from fanout.api.explanation_view import Blocker
from fanout.api.gate_vocabulary import CheckMethod, OverridableGate, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.check_evaluation import build_reported_draft
from fanout.gates.evidence_index import EvidenceEffect, EvidenceIndex
from fanout.gates.gate_rules import ApprovalRule, CheckRule, StageRule
from fanout.gates.record_facts import EvidenceFacts
from fanout.message_commands import MessageCommands, find_approvals, find_decisions
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.removal.orphaned_variants import find_edited
from fanout.values import replace

_MAX_NAMED = 10  # variants named in one command
_UNANSWERED = frozenset({Reason.ANSWER_STALE, Reason.FROM_THE_FUTURE, Reason.VERIFICATION_PENDING})
# A check has failed. To report it as passed is for whoever let it run again; anybody else's report
# would contradict the first one.
_CHECK_FAILED = frozenset(
    {Reason.CONTRADICTION, Reason.REQUIRES_FAILED, Reason.VERIFICATION_FAILED}
)
# The variant has failed at its revision; it goes back, is tried again, or is left out.
_FAILED = _CHECK_FAILED | {Reason.CHECK_TIMED_OUT, Reason.DEADLINE_EXCEEDED}
# Verb and options of the decision that ends a blocker of this reason.
_DECISION_BY_REASON: Mapping[str, tuple[str, ...]] = {
    Reason.ADOPTION_AWAITS: ("promote",),
    Reason.AUTOMATION_OFF: ("promote",),
    Reason.RECORDS_REWOUND: ("accept-records",),
    Reason.REQUEST_CLOSED: ("resume",),
    Reason.WINDOW_CLOSED: ("promote", "--override", OverridableGate.WINDOW.value),
    Reason.WOULD_GO_BACK: ("promote",),
}
_WHY = ("--reason", "WHY")
_SWEPT = frozenset({Reason.NO_DRAFT, Reason.REQUEST_PENDING, Reason.SWEEP_AWAITED})
# They end when other variants of the same stage are ready, or no longer fail.
_AFTER_OTHERS = frozenset(
    {Reason.BUDGET_EXHAUSTED, Reason.GROUP_AWAITS, Reason.HALTED, Reason.STAGE_DRAFT_PENDING}
)
_AFTER_STAGES = frozenset({Reason.AFTER_FAILED, Reason.AFTER_PENDING})
AFTER_OTHERS = _AFTER_OTHERS | _AFTER_STAGES
# They end with the present revision of the same stage.
_AFTER_REVISION = frozenset({Reason.REVISION_QUEUED, Reason.SERIALIZED})
# Their commands are those of other blockers, and so nobody else's.
_BORROWING = AFTER_OTHERS | _AFTER_REVISION | {Reason.NOTHING_COUNTS}
# To withdraw a decision that waits lets nothing else go on.
_NOT_LENT = _BORROWING | {Reason.DECISION_WAITS}
# Of a variant without a target: its removal waits for a person who confirms it.
_ENDED_BY_REMOVAL = frozenset(
    {
        Reason.AUTOMATION_OFF,
        Reason.EDITED_DOWNSTREAM,
        Reason.TARGETS_UNCERTAIN,
        Reason.TARGET_GONE,
        Reason.TOO_MANY_REMOVALS,
    }
)


class CommandBuilder:
    """Builder of the commands for one policy."""

    def __init__(
        self,
        item: PolicyResult,
        blockers: Sequence[Blocker],
        names: Mapping[str, str],
        scope: MessageCommands,
        commands: MessageCommands,
    ) -> None:
        """Prepare the commands about `blockers`, which are all of the policy.

        `names`: display names of its variants; `scope`: what a command needs to be about this
        policy and no other of its name; `commands`: how they are completed for their reader.
        """
        self.item = item
        self.blockers = blockers
        self.names = names
        self._policy_scope = scope
        self._commands = commands
        self._evaluations = item.decision.variants if item.decision is not None else {}
        # By identity. Stages after a blocked one share its commands, in a diamond several times.
        # The blocker is kept beside its commands, so that no other object gets its id.
        self._built: dict[int, tuple[Blocker, tuple[str, ...]]] = {}

    def build(self, blocker: Blocker) -> tuple[str, ...]:
        """Return the commands that end the blocker; any one of them may be enough."""
        if id(blocker) not in self._built:
            lines = self._commands.complete_all(
                map(self._policy_scope.complete, self._build(blocker))
            )
            self._built[id(blocker)] = blocker, lines
        return self._built[id(blocker)][1]

    def _build(self, blocker: Blocker) -> Iterator[str]:
        build_by_reason: dict[str, Callable[[Blocker], Iterator[str]]] = {
            **dict.fromkeys(_AFTER_STAGES, self._build_upstream),
            **dict.fromkeys(_BORROWING - _AFTER_STAGES, self._build_others),
            **dict.fromkeys(_UNANSWERED, self._build_reports),
            **dict.fromkeys(_FAILED, self._build_ways_on),
            Reason.APPROVAL_MISSING: self._build_approvals,
            Reason.SUSPENDED: self._build_resumptions,
        }
        reason = blocker.reason
        options = _DECISION_BY_REASON.get(reason)
        if reason in build_by_reason:
            yield from build_by_reason[reason](blocker)
        elif reason in _SWEPT:
            yield "fanout sweep"
        elif reason == Reason.SOAK_CUT_SHORT:
            # The revision may be newer than the candidate.
            override = ("--revision", blocker.revision, "--override", OverridableGate.SOAK.value)
            yield self._command("promote", *self._scope(blocker), *override, *_WHY)
        elif reason == Reason.DECISION_WAITS:
            # The withdrawal of each decision that the sentence names.
            facts = self.item.facts
            for decision in facts.records.decisions if facts is not None else ():
                if decision.name in blocker.message:
                    yield self._command("withdraw", decision.name, *_WHY)
        elif reason == Reason.MERGE_CONFLICT:
            is_by_hand = self.item.resolved_policy.upstream_policy is None
            for name in blocker.variants[:_MAX_NAMED]:
                shown = self.names.get(name, name)
                yield shlex.join(["fanout", "diff", name if "/" in shown else shown])
                yield self._command("resolve", *(() if is_by_hand else ("--variant", shown)), *_WHY)
        elif reason == Reason.REMOVAL_AWAITS:
            # What holds removals, which later stages have first.
            for other in self.blockers:
                if other.reason != reason and self._find_orphans(other):
                    yield from self.build(other)
        elif orphans := self._find_orphans(blocker):
            yield from self._build_removals(blocker, orphans)
        elif options is not None:
            verb, *arguments = options
            yield self._command(verb, *self._scope(blocker), *arguments, *_WHY)
        else:
            yield from self._build_quoted(blocker)

    def _build_quoted(self, blocker: Blocker) -> Iterator[str]:
        """Yield the commands that the sentence has, which is the one of the first variant."""
        lines, orphans = self.item.status.variants, {it.name for it in self.item.orphans}
        for command in find_decisions(blocker.message):
            # Of a variant that has a target and left nothing behind: the target goes first.
            is_refused = command.startswith("fanout remove ") and any(
                name in blocker.variants and name not in orphans and not lines[name].left
                for name in lines.keys() & set(shlex.split(command))
            )
            if command.startswith("fanout promote "):
                yield self._command("promote", *self._scope(blocker), *_WHY)
            elif not is_refused:
                yield command

    def _build_removals(self, blocker: Blocker, orphans: Sequence[str]) -> Iterator[str]:
        """Yield the removals of variants without a target that end the blocker."""
        if (reason := blocker.reason) == Reason.REQUEST_CLOSED:
            yield from find_decisions(blocker.message)
        elif reason in _ENDED_BY_REMOVAL:
            is_all = reason == Reason.TOO_MANY_REMOVALS or len(orphans) > _MAX_NAMED
            edited = find_edited(self.item.removals)
            for name in ("--all-gone",) if is_all else orphans:
                # One command for all holds of a variant: without the option it is refused.
                option = ("--edited",) if name in edited or (is_all and edited) else ()
                yield self._command("remove", name, *option, *_WHY)

    def _command(self, verb: str, *arguments: str) -> str:
        return shlex.join(["fanout", verb, self.item.resolved_policy.name, *arguments])

    def _scope(self, blocker: Blocker, *, by_name: bool = False) -> list[str]:
        """Return the options of the stage, and of the variants unless it is all of the stage.

        `by_name`: the command takes variants by name only, and a stage for the first ones.
        """
        stage = ["--stage", blocker.stage] if blocker.stage else []
        if self.item.resolved_policy.upstream_policy is None:
            return stage  # a variant written by hand is named by the policy argument
        members = sum(it.spec.stage == blocker.stage for it in self.item.variants)
        is_whole_stage = blocker.stage and len(blocker.variants) in (0, members)
        if not by_name and (is_whole_stage or len(blocker.variants) > _MAX_NAMED):
            return stage
        named = blocker.variants[:_MAX_NAMED]
        return stage + [it for name in named for it in ("--variant", self.names.get(name, name))]

    def _build_upstream(self, blocker: Blocker) -> Iterator[str]:
        """Yield the commands of the stages before that have not passed the revision."""
        rule = self._find_rule(blocker.stage)
        decision = self.item.decision
        if rule is None or rule.after is None or decision is None:
            return
        for name in rule.after.stages:
            if decision.stages[name].verdicts.get(blocker.revision) is Verdict.PASSED:
                continue
            others = [it for it in self.blockers if it.stage == name]
            # A stage that went on to a newer revision has no blockers at this one.
            for other in [it for it in others if it.revision == blocker.revision] or others:
                yield from self.build(other)

    def _build_others(self, blocker: Blocker) -> Iterator[str]:
        """Yield the commands of other variants of the stage, and what else ends the blocker."""
        reason = blocker.reason
        own = [it for it in self._evaluations.values() if it.stage == blocker.stage]
        failed = {it.name for it in own if it.state is VariantState.FAILED}
        others = [
            command
            for other in self.blockers
            if other.stage == blocker.stage and other.reason not in _NOT_LENT
            for command in self.build(other)
        ]
        if reason != Reason.HALTED or failed:
            yield from others
        # The promotion past the revision in flight, if that waits for nothing.
        if reason == Reason.SERIALIZED and not others:
            override = ("--override", OverridableGate.BUDGET.value)
            yield self._command("promote", *self._scope(blocker), *override, *_WHY)
        # A variant of the stage counts again.
        for it in own if reason == Reason.NOTHING_COUNTS else ():
            if Reason.SKIPPED in {hold.reason for hold in it.holds}:
                skipped = replace(blocker, variants=(it.name,))
                yield self._command("retry", *self._scope(skipped, by_name=True), *_WHY)
        # A halt also ends without those that have another revision since: a variant that went back
        # or ahead alone has not failed at its own revision.
        elsewhere = tuple(
            it.name for it in own if it.name not in failed and it.name in blocker.message
        )
        if reason == Reason.HALTED and elsewhere:
            scope = self._scope(replace(blocker, variants=elsewhere), by_name=True)
            yield self._command("skip", *scope, "--revision", blocker.revision, *_WHY)

    def _build_approvals(self, blocker: Blocker) -> Iterator[str]:
        """Yield the approvals that are asked for: not before `after` and the soak have passed.

        The removal of a package has no revision: people approve its pull request or, where the
        sentence says so, its branch.
        """
        if not blocker.revision:
            yield from find_approvals(blocker.message)
        if not blocker.needs_person or not blocker.revision:
            return
        rule = self._find_rule(blocker.stage)
        requires = rule.requires if rule is not None else ()
        approvals = [it.name for it in requires if isinstance(it, ApprovalRule)]
        missing = self._find_unanswered(blocker)
        for name in approvals:
            if not missing or name in missing:
                check = ("--check", name) if len(approvals) > 1 else ()
                revision = ("--revision", blocker.revision)
                yield self._command("approve", *self._scope(blocker), *revision, *check)

    def _build_reports(self, blocker: Blocker) -> Iterator[str]:
        """Yield the commands by which the checks without a result get one.

        A check passes when all its reporters say so. The report of each of them counts until they
        report something else, or somebody withdraws it.
        """
        for check in self._find_reported(blocker):
            statements = self._find_statements(blocker, check)
            if all(it.spec.status is Verdict.PASSED for it in statements):
                answer = ("--check", check, "--status", "passed", "--revision", blocker.revision)
                yield self._command("report", *self._scope(blocker), *answer)
            else:
                yield from self._build_corrections(statements)

    def _build_corrections(self, statements: Sequence[EvidenceFacts]) -> Iterator[str]:
        """Yield withdrawals of the statements but for which the check would have passed."""
        others = [it.name for it in statements if it.spec.status is not Verdict.PASSED]
        for name in dict.fromkeys(others) if len(others) < len(statements) else ():
            yield self._command("withdraw", name, *_WHY)

    def _build_ways_on(self, blocker: Blocker) -> Iterator[str]:
        """Yield what goes on after a failure: back, once more, or without the variants."""
        if blocker.reason in _CHECK_FAILED:
            for check in self._find_reported(blocker):
                yield from self._build_corrections(self._find_statements(blocker, check))
        else:  # a late result still counts
            yield from self._build_reports(blocker)
        # They have the revision, and their stage passed another before.
        facts = self.item.facts
        variants = facts.variants if facts is not None else ()
        published = [it.published for it in variants if it.name in blocker.variants]
        if (
            facts is not None
            and {it.revision for it in published if it is not None} == {blocker.revision}
            and any(
                stage == blocker.stage and revision != blocker.revision and it.passed is not None
                for (stage, revision), it in facts.history.items()
            )
        ):
            # Of the stage: if one variant went back, the others would stay halted by its failure.
            scope = ("--stage", blocker.stage) if blocker.stage else ()
            yield self._command("rollback", *scope, *_WHY)
        yield self._command("retry", *self._scope(blocker), *_WHY)
        at_revision = ("--revision", blocker.revision)
        yield self._command("skip", *self._scope(blocker, by_name=True), *at_revision, *_WHY)

    @cached_property
    def _evidence_index(self) -> EvidenceIndex | None:
        facts = self.item.facts
        return EvidenceIndex(facts.records.evidence, facts.now) if facts is not None else None

    def _find_statements(self, blocker: Blocker, check: str) -> Sequence[EvidenceFacts]:
        """Return what counts of the reports about a check of the blocked variants."""
        facts, rule, index = self.item.facts, self._find_rule(blocker.stage), self._evidence_index
        if facts is None or rule is None or index is None:
            return ()
        is_of_draft = check in {it.name for it in rule.requires}
        blocked = frozenset(blocker.variants)
        decisions = ActiveDecisions(facts.records.decisions, facts.now)
        statements: list[EvidenceFacts] = []
        for it in facts.variants:
            subject = it.published
            if is_of_draft:
                subject = build_reported_draft(it, it.draft, facts.now) if it.draft else None
            if it.name not in blocked or subject is None:
                continue
            retried = decisions.retried_at(it.stage, it.name, subject.revision)
            effects = index.find_effects(
                it.stage, check, it.name, subject, retried, drafted=is_of_draft
            )
            statements += [each for each, effect in effects if effect is EvidenceEffect.COUNTS]
        return statements

    def _find_reported(self, blocker: Blocker) -> Sequence[str]:
        """Return the checks by reports that have not passed in any of the blocked variants."""
        rule = self._find_rule(blocker.stage)
        unanswered = self._find_unanswered(blocker)
        return [
            it.name
            for it in ((*rule.requires, *rule.verification) if rule is not None else ())
            if isinstance(it, CheckRule)
            and it.method is CheckMethod.REPORT
            and it.name in unanswered
        ]

    def _build_resumptions(self, blocker: Blocker) -> Iterator[str]:
        """Yield the commands that end the suspensions by decision; others are in the files."""
        if (facts := self.item.facts) is None:
            return
        for kind, name in ActiveDecisions(facts.records.decisions, facts.now).suspensions():
            if kind == "policy":
                yield self._command("resume", *_WHY)
            elif kind == "stage" and name == blocker.stage:
                yield self._command("resume", "--stage", name, *_WHY)
            elif kind == "variant" and name in blocker.variants:
                yield self._command("resume", "--variant", self.names.get(name, name), *_WHY)

    def _find_orphans(self, blocker: Blocker) -> Sequence[str]:
        orphans = [it.name for it in self.item.orphans]
        # Where all would go at once, one blocker is about the policy and names none of them.
        is_all = blocker.reason == Reason.TOO_MANY_REMOVALS
        return [name for name in orphans if is_all or name in blocker.variants]

    def _find_rule(self, stage: str) -> StageRule | None:
        return next((rule for rule in self.item.rules if rule.name == stage), None)

    def _find_unanswered(self, blocker: Blocker) -> frozenset[str]:
        """Return the checks that have not passed in any of the blocked variants."""
        return frozenset(
            check.name
            for name in blocker.variants
            for check in (self._evaluations[name].checks if self._evaluations else ())
            if check.verdict is not Verdict.PASSED
        )
