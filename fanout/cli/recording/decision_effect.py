"""Effect of a decision at once, and reasons why variants are not published by it."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from itertools import chain

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.cli.input.name_lookup import select_variants
from fanout.cli.recording.record_session import current_trees
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalEffect
from fanout.gates.candidate_choice import list_needed_overrides
from fanout.gates.gate_evaluation import start_evaluation
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.rollback_pins import find_pin
from fanout.plan.actions import ActionKind
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.values import Value, replace


class DecisionSubject(Value):
    """Revision and variants of a stage that a decision is about, as they are before it."""

    item: PolicyResult
    stage: str
    revision: str
    variants: Sequence[RenderedVariant] = ()  # those that the decision covers
    names: Sequence[str] = ()  # as the record has them; none: the whole stage

    @property
    def _due(self) -> list[RenderedVariant]:
        return [it for it in self.variants if not is_in_force(it, self.revision)]

    def select_drafts(self, overrides: Collection[str]) -> tuple[list[str], bool]:
        """Return the trees of the drafts that a decision names, and whether it covers others too.

        One that overrides `after` covers all drafts of its revision. In a stage without `after`,
        one about another revision than the candidate does, if it names no drafts: some of its
        variants may have one already.
        """
        trees = current_trees(self.variants, self.revision, written_only=False)
        rule = next((rule for rule in self.item.rules if rule.name == self.stage), None)
        if OverridableGate.AFTER in overrides:
            return trees, True
        if rule is None or self.item.decision is None or rule.after is not None:
            return trees, False
        lacks_draft = not all(_has_tree(variant, trees) for variant in self._due)
        is_other = self.item.decision.stages[self.stage].candidate != self.revision
        return ([], True) if is_other and lacks_draft else (trees, False)

    def find_nothing_to_publish(self, *, is_about_drafts: bool) -> str:
        """Return why a decision would publish nothing; empty if it still has steps to take.

        For variants without a draft to review. Raises InvalidInput if a draft is to be written
        first, which does not exist yet. A decision that is not about drafts covers later ones.
        """
        if not (due := self._due):
            return self._format_idle(has_variants=bool(self.variants))
        is_drafted = any(_is_drafted_at(variant, self.revision) for variant in due)
        are_published = all(is_published_at(variant, self.revision) for variant in self.variants)
        if (is_about_drafts and is_drafted) or are_published:
            reasons = "; ".join(self._format_reasons(self.item, due))
            raise InvalidInput(
                f"no draft of {self.revision} is current: {reasons}",
                reason="NoDraft",
                remedy="run `fanout sweep --drafts-only` to update drafts",
            )
        return ""

    def refuse_unreachable(
        self, overrides: Collection[OverridableGate], trees: Collection[str]
    ) -> str:
        """Raise InvalidInput for a revision that the stage cannot reach at present.

        A decision about it would wait until the policy changes. The gates are evaluated as if the
        decision were on record, because it may end a rollback, or make the revision the candidate.
        With an override of verification it may be about the published one. Return what it replaces.
        """
        item, stage, revision, facts = self.item, self.stage, self.revision, self.item.facts
        if facts is None:
            return ""
        spec = DecisionSpec.model_construct(
            action=Action.PUBLISH,
            stage=stage,
            variants=tuple(self.names),
            revision=revision,
            overrides=tuple(overrides),
        )
        recorded = facts.records.decisions
        decision = DecisionFacts("", facts.now, "", spec, len(recorded), frozenset(trees))
        # Evaluated with the decision added: a promotion of the whole stage ends a rollback that
        # pins it.
        records = replace(facts.records, decisions=(*recorded, decision))
        evaluation = evaluate_gates(replace(facts, records=records))
        stage_decision = evaluation.stages.get(stage)
        covered = select_variants(item, stage, self.names)
        if any(evaluation.variants[it.spec.name].candidate == revision for it in covered):
            return self._describe_set_aside(facts, covered)
        published = {
            it.observed.published.revision
            for it in select_variants(item, stage)
            if it.observed.published is not None
        }
        is_verified = OverridableGate.VERIFICATION in overrides and revision in published
        if stage_decision is None or is_verified:
            return ""
        if revision in stage_decision.eligible:
            self._refuse_missing_overrides(decision, stage_decision.candidate)
            return ""
        rule = next(rule for rule in item.rules if rule.name == stage)
        decisions = ActiveDecisions(records.decisions, facts.now, facts.variants)
        pin, policy = find_pin(rule, decisions.rollbacks), item.resolved_policy.name
        if pin is None:
            why, remedy = self._explain_order(published, stage_decision.candidate)
        elif pin.decision is None:
            why = f"the policy pins it to {pin.revision}"
            remedy = f"remove or change the pin of stage {stage}"
        else:
            by, rollback = pin.decision.by, pin.decision.name
            why = f"decision {rollback} of {by} rolls it back to {pin.revision}"
            command = f"fanout withdraw {policy} {rollback} --reason WHY"
            remedy = f"promote the whole stage, or run `{command}`"
        raise InvalidInput(
            f"{revision} cannot be published in {label_stage(stage)}: {why}",
            reason=Reason.WOULD_GO_BACK if pin is None else Reason.PINNED,
            remedy=remedy,
        )

    def _explain_order(self, published: Set[str], candidate: str) -> tuple[str, str]:
        """Return why an older revision cannot be published, and the remedy."""
        revisions = tuple(self.item.revisions)  # oldest first
        remedy = f"set spec.upstream.revision so that {self.revision} is the newest allowed"
        if not published.isdisjoint(revisions[: revisions.index(self.revision) + 1]):
            return f"{candidate} is newer and its gate is open", remedy
        policy = self.item.resolved_policy.name
        subject = f"{policy} --stage {self.stage}" if self.stage else policy
        why = f"{format_names(published)} is published there, and a stage never goes back"
        command = f"fanout rollback {subject} --revision {self.revision}"
        return f"{why} automatically", f"`{command}` returns to that publication; or {remedy}"

    def _describe_set_aside(self, facts: PolicyFacts, variants: Sequence[RenderedVariant]) -> str:
        """Return which approvals of drafts of other revisions a decision sets aside."""
        rule = next(it for it in facts.stages if it.name == self.stage)
        approvals = start_evaluation(facts).approvals
        names = {it.spec.name for it in variants}
        approvers: dict[str, set[str]] = {}  # by revision
        for variant in facts.variants:
            draft = variant.draft if variant.name in names else None
            if draft is None or draft.revision == self.revision:
                continue
            for check in rule.approvals:
                for _, approval, effect in approvals.find_effects(check, variant, draft):
                    if effect is ApprovalEffect.COUNTS:
                        approvers.setdefault(draft.revision, set()).add(approval.by)
        return "; ".join(
            f"{self.revision} replaces drafts of {other}: approvals of {other} by"
            f" {format_names(sorted(people))} do not count for it"
            for other, people in sorted(approvers.items())
        )

    def _refuse_missing_overrides(self, decision: DecisionFacts, candidate: str) -> None:
        """Raise InvalidInput for a decision whose overrides do not make its revision the candidate.

        One without such overrides waits until the revision is the candidate by itself.
        """
        overrides = frozenset(decision.spec.overrides)
        rule = next(rule for rule in self.item.rules if rule.name == self.stage)
        needed = list_needed_overrides(rule)
        missing = needed - overrides
        if not missing or not overrides & {OverridableGate.AFTER, OverridableGate.SOAK}:
            return
        command = [
            f"fanout promote {self.item.resolved_policy.name} --stage {self.stage}",
            *(f"--variant {it}" for it in self.names),
            f"--revision {self.revision}",
            *(f"--override {it.value}" for it in OverridableGate if it in needed | overrides),
            "--reason WHY",
        ]
        raise InvalidInput(
            f"{self.revision} is not the candidate of {label_stage(self.stage)}, which is"
            f" {candidate or 'none'}, and needs an override of {format_names(sorted(missing))} too",
            reason=Reason.DECISION_WAITS,
            remedy=f"run `{' '.join(command)}`",
        )

    def report_undrafted(self, trees: Collection[str]) -> Iterator[str]:
        """Yield how many variants the decision leaves out for lack of a draft to review.

        `trees`: those of the drafts that it covers; none if it covers all. Suspended variants are
        left out: they get no draft before they are resumed, and the gates say so.
        """
        assert self.item.decision is not None, "only evaluated policies take decisions"
        decisions = self.item.decision.variants
        number = sum(
            not _has_tree(variant, trees)
            and decisions[variant.spec.name].state is not VariantState.SUSPENDED
            for variant in (self._due if trees else ())
        )
        if number:
            have, are = ("has", "is") if number == 1 else ("have", "are")
            yield (
                f"{number} of {pluralize(len(self.variants), 'variant')} {have} no current draft of"
                f" {self.revision} and {are} not included; run the command again when there is one"
            )

    def report_unpublished(self, report: PassReport) -> Iterator[str]:
        """Yield the reasons of the gates why the pass that acted on it left variants out."""
        names = [variant.spec.name for variant in self.variants]
        for item in report.pass_plan.policies:
            if item.error is not None or item.decision is None:
                continue  # the pass has reported it
            stage_variants = select_variants(item, self.stage, names)
            published = find_variants_done(report, ActionKind.PUBLISH)
            waiting = [
                variant
                for variant in stage_variants
                if variant.spec.name not in published and not is_in_force(variant, self.revision)
            ]
            if waiting:
                head = "nothing is published yet"
                if published:
                    verb = "is" if len(waiting) == 1 else "are"
                    total = pluralize(len(stage_variants), "variant")
                    head = f"{len(waiting)} of {total} {verb} not published yet"
                yield from (f"{head}: {line}" for line in self._format_reasons(item, waiting))
            elif not published:
                yield self._format_idle(has_variants=bool(stage_variants))

    def _format_idle(self, *, has_variants: bool) -> str:
        if not has_variants:
            return f"nothing to publish: {label_stage(self.stage)} has no variants"
        place = f" in {label_stage(self.stage)}" if self.stage else ""
        return f"nothing to publish: {self.revision} is already published{place}"

    def _format_reasons(
        self, item: PolicyResult, waiting: Sequence[RenderedVariant]
    ) -> Iterator[str]:
        """Yield a line per hold reason and actor, with the number of variants unless it is all."""
        assert item.decision is not None, "only evaluated policies take decisions"
        results = [item.decision.variants[it.spec.name] for it in waiting]
        candidates = [it for it in results if it.candidate == self.revision]
        if (stage_decision := item.decision.stages.get(self.stage)) is None:
            return
        if not candidates:
            candidate = stage_decision.candidate or "none"
            yield f"the candidate is {candidate}, not {self.revision}: the decision waits"
        count = Counter(
            key for result in candidates for key in {(it.reason, it.who) for it in result.holds}
        )
        first: dict[tuple[str, str], Hold] = {}
        for hold in chain.from_iterable(result.holds for result in candidates):
            first.setdefault((hold.reason, hold.who), hold)
        for hold in first.values():
            number = count[hold.reason, hold.who]
            of_them = f"for {number} of them " if number < len(candidates) else ""
            until = f"; can change at {format_instant(hold.until)}" if hold.until else ""
            actor = f"; unblocked by {hold.who}" if hold.who else ""
            yield f"{of_them}{hold.message}{until}{actor}"

    def compare_evaluations(
        self, report: PassReport, names: Sequence[str], earlier: RecordEntry | None
    ) -> tuple[str, bool]:
        """Compare variants and stage verdict with their state before the decision.

        Return what changed, for people ("" if a problem stopped the policy), and whether anything
        did. `earlier`: its record if the verb is run again; the policy is then evaluated without
        it. Conditions that need the sandbox are held, like in a first pass.
        """
        item, stage, before = self.item, self.stage, self.item.decision
        if earlier is not None and item.facts is not None:
            records = item.facts.records
            others = tuple(it for it in records.decisions if it.name != earlier.name)
            before = evaluate_gates(replace(item.facts, records=replace(records, decisions=others)))
        result = _find_evaluated(report)
        if result is None or result.decision is None or before is None:
            return "", False
        groups: dict[tuple[str, str], list[str]] = {}
        for name in names:
            state_before = before.variants.get(name)
            state_after = result.decision.variants.get(name)
            if state_before is not None and state_after is not None:
                groups.setdefault((state_before.state, state_after.state), []).append(name)
        parts = [f"{format_names(it)}: {_format_change(*key)}" for key, it in groups.items()]
        verdicts = [
            decision.stages[stage].verdicts.get(self.revision, Verdict.PENDING).value
            for decision in (before, result.decision)
            if stage in decision.stages
        ]
        verdict_changed = len(set(verdicts)) > 1
        if stage and verdict_changed:
            parts.append(f"{self.revision} in {label_stage(stage)}: {_format_change(*verdicts)}")
        variant_changed = any(state_before != state_after for state_before, state_after in groups)
        return "; ".join(parts), variant_changed or verdict_changed

    def find_promotion_effect(
        self, report: PassReport, trees: Collection[str], earlier: RecordEntry | None
    ) -> tuple[str, bool]:
        """Return the effect of a promotion, for people, and whether there is one.

        `trees`: of its drafts. `earlier`: its record of an earlier run, whose effects count too.
        """
        item, revision = _find_evaluated(report), self.revision
        if item is None:
            return "", False
        stage_variants = select_variants(item, self.stage, self.names)
        published = find_variants_done(report, ActionKind.PUBLISH)
        pending = sum(
            variant.spec.name not in published and not is_in_force(variant, revision)
            for variant in stage_variants
            if not trees or _has_tree(variant, trees)
        )
        if not pending:
            return "the decision is applied" if published else "", True
        # Gates still hold some variants, so the decision stays active for a later sweep.
        gates = "its gates open" if pending == 1 else "their gates open"
        sentence = f"{pluralize(pending, 'variant')} will be published when {gates}"
        kinds = (ActionKind.PUBLISH, ActionKind.RELEASE, ActionKind.WRITE_DRAFT)
        advanced = find_variants_done(report, *kinds)
        has_advanced = any(it.spec.name in advanced for it in stage_variants)
        if earlier is not None:
            assert isinstance(earlier.spec, DecisionSpec), "it is a decision"
            for variant in stage_variants:
                # Released, published or drafted since; without trees no draft existed before.
                for event in (variant.observed.published, variant.observed.status_line.grant):
                    if event is not None and event.revision == revision:
                        has_advanced |= event.at >= earlier.at
                has_advanced |= _is_drafted_at(variant, revision) and not earlier.spec.trees
        return sentence, has_advanced

    def find_rollback_effect(self, report: PassReport) -> tuple[str, bool]:
        """Return how many variants are rolled back and what ends that, and whether any is."""
        if (item := _find_evaluated(report)) is None:
            return "", False
        variants = select_variants(item, self.stage, self.names)
        published = find_variants_done(report, ActionKind.PUBLISH)
        count = sum(it.spec.name in published or is_in_force(it, self.revision) for it in variants)
        sentence = (
            f"{count} of {pluralize(len(variants), 'variant')} at {self.revision}; the rollback"
            " stays active until it is withdrawn or another revision is promoted"
        )
        return sentence, bool(count)


def _format_change(before: str, after: str) -> str:
    return f"{after} as before" if before == after else f"{after}, no longer {before}"


def is_published_at(variant: RenderedVariant, revision: str) -> bool:
    """Return whether the revision is published for the variant, with any inputs."""
    published = variant.observed.published
    return published is not None and published.revision == revision


def is_in_force(variant: RenderedVariant, revision: str) -> bool:
    """Return whether the revision is published for the variant with its current inputs."""
    return is_published_at(variant, revision) and (
        variant.selected.revision != revision or variant.selected.is_in_force
    )


def _is_drafted_at(variant: RenderedVariant, revision: str) -> bool:
    draft = find_release_draft(variant)
    return draft is not None and draft.trailers.revision == revision


def _has_tree(variant: RenderedVariant, trees: Collection[str]) -> bool:
    draft = find_release_draft(variant)
    return draft is not None and draft.tree in trees


def find_variants_done(report: PassReport, *kinds: ActionKind) -> frozenset[str]:
    """Return the variants for which an action of one of the kinds was done."""
    return frozenset(
        outcome.action.variant
        for outcome in report.outcomes
        if outcome.is_done and outcome.action.kind in kinds
    )


def _find_evaluated(report: PassReport) -> PolicyResult | None:
    """Return the one policy of the pass; None if a problem stopped it."""
    return next((it for it in report.pass_plan.policies if it.error is None), None)
