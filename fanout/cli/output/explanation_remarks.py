"""Remarks of an explanation beside its gates, and its shortened form for people.

The gates know how many values are in conflict, not which, and do not know targets
without a variant; the remarks tell both. The shortened form repeats no reason and joins
equal variants: a stage with hundreds of variants that wait for one gate would bury that
gate under hundreds of lines. `-o json` prints the complete tree.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import GATE_ACTIONS, Verdict
from fanout.api.reasons import Reason
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.explanation import Explanation
from fanout.gates.gate_rules import HAND_WRITTEN, StageRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.rollback_pins import find_pin
from fanout.gates.timestamps import effective_from, format_instant
from fanout.package.merge.merge_conflicts import MergeConflict
from fanout.plan.draft_messages import find_release_draft
from fanout.plan.edits.merge_disputes import RESOLVE, parse_disputes, read_resolutions
from fanout.plan.evidence.record_times import counts_at_once, records_ahead
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.edits.package_damage import (
    describe_edits,
    describe_faults,
    find_lost_renderings,
)
from fanout.reconcile.observation.moved_tags import describe_lost_tag, find_tag_problem
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.problem_aggregation import group_problems
from fanout.reconcile.report.enforcement_conditions import list_unenforced
from fanout.values import replace

_POLICY_REASONS = (
    Reason.MERGE_CONFLICT,
    Reason.PACKAGE_BROKEN,
    Reason.TAG_MISSING,
    Reason.TAG_MOVED,
)
_STAGE_REASONS = (Reason.MERGE_CONFLICT, Reason.TAG_MISSING, Reason.TAG_MOVED)


def build_policy_remarks(item: PolicyResult) -> tuple[Explanation, ...]:
    """Return remarks on missing variants, undecided conflicts and damaged packages."""
    relevant = (
        it
        for it in item.problems
        if it.gone or it.noun in ("target", "repository") or it.reason in _POLICY_REASONS
    )
    problems = (
        Explanation(
            str(Reason.TARGET_GONE) if it.first.gone else it.first.reason,
            "Failed" if it.first.failed else "Held",
            it.sentence,
        )
        for it in group_problems(relevant)
    )
    # A variant written by hand has no stage of its own to show the pin of.
    pin = _pin_remarks(item, HAND_WRITTEN) if item.resolved_policy.upstream_policy is None else ()
    return (
        *pin,
        *problems,
        *_future_records(item),
        *_pending_removals(item),
        *_enforcement_remarks(item.variants),
    )


def _future_records(item: PolicyResult) -> Iterator[Explanation]:
    """Yield the records that are dated ahead and do not count yet.

    Records that the gates report themselves are left out.
    """
    now = item.facts.now if item.facts is not None else None
    for record in records_ahead(active_records(item.records), now) if now is not None else ():
        # The gates report decisions of these actions themselves; a second line would repeat them.
        is_in_gates = record.kind == "Decision" and record.spec["action"] in GATE_ACTIONS
        if is_in_gates or record.withdrawn or counts_at_once(record):
            continue
        verb = "revoke" if record.kind == "Approval" else "withdraw"
        start = record.at if record.kind == "Evidence" else effective_from(record.at)
        reason = "" if verb == "revoke" else " --reason WHY"
        yield Explanation(
            str(Reason.FROM_THE_FUTURE),
            "Held",
            f"{record.kind} {record.name} of {record.by} is dated {format_instant(record.at)}, more"
            f" than five minutes ahead; it counts for nothing before {format_instant(start)}",
            until=start,
            actor=(
                f"whoever sets that clock; fanout {verb} {item.resolved_policy.name}"
                f" {record.name}{reason}"
            ),
        )


def _pending_removals(item: PolicyResult) -> Iterator[Explanation]:
    """Yield the orphaned variants that the next sweep removes."""
    if removed_next := item.removals.removable:
        sentence = (
            f"the next sweep removes what has no target any more: {format_names(removed_next)}"
        )
        yield Explanation(str(Reason.TARGET_GONE), "Leaving", sentence)


def build_stage_remarks(item: PolicyResult, stage: str) -> tuple[Explanation, ...]:
    """Return remarks on undecided conflicts, tags and out-of-band publications."""
    members = {variant.spec.name for variant in item.variants if variant.spec.stage == stage}
    relevant = (it for it in item.problems if it.reason in _STAGE_REASONS and it.subject in members)
    problems = tuple(
        Explanation(it.first.reason, "Held", it.sentence) for it in group_problems(relevant)
    )
    variants = [variant for variant in item.variants if variant.spec.name in members]
    return (
        *_pin_remarks(item, stage),
        *problems,
        *_damage_remarks(variants),
        *_out_of_band_remarks(variants),
        *_enforcement_remarks(variants),
    )


def build_variant_remarks(
    item: PolicyResult, variant: RenderedVariant, conflicts: Sequence[MergeConflict]
) -> tuple[Explanation, ...]:
    """Return remarks on each conflict of the variant, and on what was out of band."""
    observed, spec = variant.observed, variant.spec
    return (
        *_pin_remarks(item, spec.stage, spec.name),
        *build_conflict_remarks(item, variant, conflicts),
        *_tag_and_edit_remarks(observed),
        *_damage_remarks([variant]),
        *_out_of_band_remarks([variant]),
        *_enforcement_remarks([variant]),
    )


def _tag_and_edit_remarks(observed: ObservedVariant) -> Iterator[Explanation]:
    if observed.missing_tag:
        yield _build_remark(Reason.TAG_MISSING, describe_lost_tag(observed))
    if (tag_problem := find_tag_problem(observed)) is not None:
        yield _build_remark(*tag_problem)
    if observed.has_edits_in_force:
        yield _build_remark("Edited", describe_edits(observed))


def build_conflict_remarks(
    item: PolicyResult, variant: RenderedVariant, conflicts: Sequence[MergeConflict]
) -> Iterator[Explanation]:
    """Yield each conflict of the variant's draft, and each rejected published value."""
    yield from (_conflict_remark(item, variant, conflict) for conflict in conflicts)
    published = variant.observed.published
    if published is None:
        return
    for rejected_value in published.rejected:
        sentence = f"decided when {published.revision} was published: {rejected_value}"
        yield _build_remark(Reason.CONFLICT_DECIDED, sentence, published.at)


def _build_remark(
    reason: str, sentence: str, since: datetime | None = None, actor: str = ""
) -> Explanation:
    return Explanation(str(reason), "True", sentence, since, actor=actor)


def _pin_remarks(item: PolicyResult, stage: str, variant: str = "") -> Iterator[Explanation]:
    """Yield the revision that the stage or the variant is pinned to, and by whom."""
    rule = next((rule for rule in item.rules if rule.name == stage), None)
    if item.facts is None or rule is None:
        return
    decisions = ActiveDecisions(item.facts.records.decisions, item.facts.now, item.facts.variants)
    pin = find_pin(rule, decisions.rollbacks, variant)
    if pin is None:
        yield from _variant_pins(item, rule, decisions) if not variant else ()
    elif pin.decision is None:
        sentence = f"the policy pins {label_stage(stage)} to {pin.revision}"
        yield _build_remark(Reason.PINNED, sentence, actor="the policy's author")
    else:
        yield _rollback_remark(item, "it", pin.decision)


def _variant_pins(
    item: PolicyResult, rule: StageRule, decisions: ActiveDecisions
) -> Iterator[Explanation]:
    """Yield the rollbacks, by decision, of variants without the rest of their stage."""
    rollbacks: dict[str, tuple[DecisionFacts, list[str]]] = {}
    for variant in item.variants:
        pin = find_pin(rule, decisions.rollbacks, variant.spec.name)
        if variant.spec.stage == rule.name and pin is not None and pin.decision is not None:
            _, names = rollbacks.setdefault(pin.decision.name, (pin.decision, []))
            names.append(variant.spec.name)
    for decision, names in rollbacks.values():
        yield _rollback_remark(item, format_names(names), decision)


def _rollback_remark(item: PolicyResult, subject: str, decision: DecisionFacts) -> Explanation:
    return _build_remark(
        Reason.PINNED,
        f"decision {decision.name} of {decision.by} takes {subject} back to {decision.revision}, to"
        f" stay there: {decision.reason}",
        since=decision.at,
        actor=f"whoever may decide: fanout withdraw {item.resolved_policy.name} {decision.name}",
    )


def _conflict_remark(
    item: PolicyResult, variant: RenderedVariant, conflict: MergeConflict
) -> Explanation:
    subject = f"conflict {conflict.key}"
    decision = _find_resolution(item, variant, conflict)
    if decision is not None:
        why = decision.spec.get("reason", "")
        sentence = (
            f"{conflict} and stands in the draft, as {decision.by} decided in {decision.name}:"
            f" {why}"
        )
        return Explanation(subject, Verdict.PASSED.value, sentence, since=decision.at)
    draft = find_release_draft(variant)
    if draft is not None and conflict.key in draft.settled_keys:
        sentence = f"{conflict}; a commit on the draft has decided it, and its value stands"
        return Explanation(subject, Verdict.PASSED.value, sentence)
    if variant.observed.choices.default_side is not None:
        sentence = f"{conflict} and stands in the draft, as spec.onConflict says"
        return Explanation(subject, Verdict.PASSED.value, sentence, actor="the policy's author")
    other_side = "local" if conflict.winner == "upstream" else "upstream"
    return Explanation(
        subject,
        Verdict.PENDING.value,
        f"{conflict} and stands in the draft until a person decides",
        actor="whoever maintains the package: a commit on the draft that changes the file, or"
        f" fanout resolve {item.resolved_policy.name} --variant {variant.spec.name} --reason WHY;"
        f" with --take {conflict.key}={other_side} for the other value",
    )


def _find_resolution(
    item: PolicyResult, variant: RenderedVariant, conflict: MergeConflict
) -> RecordEntry | None:
    """Return the latest decision that covers the conflict, or None."""
    spec, draft = variant.spec, find_release_draft(variant)
    for record in reversed(item.policy_state.records):
        if record.kind != "Decision" or record.spec["action"] != RESOLVE:
            continue
        [resolution] = read_resolutions([record])
        # A decision without choices accepts one draft as it is; one with choices also covers later
        # drafts.
        is_for_draft = draft is not None and resolution.revision == draft.trailers.revision
        covers_conflict = conflict.key in resolution.choices if resolution.choices else is_for_draft
        if resolution.covers(spec.stage, spec.name) and covers_conflict:
            return record
    return None


def _damage_remarks(variants: Sequence[RenderedVariant]) -> Iterator[Explanation]:
    """Yield broken published packages, and repositories whose renderings are lost."""
    for variant in variants:
        if variant.observed.published_faults:
            yield _build_remark(Reason.PACKAGE_BROKEN, describe_faults(variant.observed))
    for repository, sentence in find_lost_renderings([it.observed for it in variants]):
        yield _build_remark(Reason.BASE_MISSING, f"{repository}: {sentence}")


def _out_of_band_remarks(variants: Iterable[RenderedVariant]) -> Iterator[Explanation]:
    """Yield a line for each revision that was merged without its gates."""
    by_revision: dict[str, list[tuple[str, datetime]]] = {}
    for variant in variants:
        published = variant.observed.published
        if published is not None and published.out_of_band:
            publication = (variant.spec.name, published.at)
            by_revision.setdefault(published.revision, []).append(publication)
    for revision, publications in by_revision.items():
        names = format_names(name for name, _ in publications)
        sentence = f"{names}: a person merged {revision} without its gates"
        since = min(at for _, at in publications)
        yield _build_remark(Reason.OUT_OF_BAND, sentence, since)


def _enforcement_remarks(variants: Iterable[RenderedVariant]) -> Iterator[Explanation]:
    for report in list_unenforced(variants):
        names = format_names(report.repositories)
        yield Explanation(
            str(report.reason),
            report.enforcement.not_enforced.value,
            report.sentence,
            actor=f"the administrators of {names}",
        )


def has_conflicts(variant: RenderedVariant) -> bool:
    """Return whether the draft has conflicts, decided or not."""
    draft = find_release_draft(variant)
    return draft is not None and bool(parse_disputes(draft.trailers.conflicts))


_VARIANT_PREFIX = "variant "
_HELD = "Held"  # state of a line with a reason to wait


def shorten_explanation(
    explanation: Explanation, sentences_above: tuple[str, ...] = ()
) -> Explanation:
    """Return the explanation without repeated reasons, equal variants on one line.

    `sentences_above`: sentences of the lines above it, which are not repeated.
    """
    seen_sentences = (*sentences_above, explanation.sentence)
    children: list[Explanation] = []
    for child in explanation.children:
        is_reason = child.state == _HELD
        if is_reason and any(_contains(text, child.sentence) for text in seen_sentences):
            continue
        if is_reason:
            seen_sentences = (*seen_sentences, child.sentence)
        children.append(shorten_explanation(child, seen_sentences))
    return replace(explanation, children=tuple(_join_equal(children)))


def _contains(text: str, sentence: str) -> bool:
    """Return whether the text contains the sentence, at least in part.

    A part is the text after `14 variants, x first: …`.
    """
    return sentence in text or sentence.partition(" first: ")[2] in (text, *text.split("; "))


def _join_equal(children: Iterable[Explanation]) -> Iterator[Explanation]:
    """Join variants with equal explanations into one line, in the place of the first."""
    groups: dict[Explanation, list[Explanation]] = {}
    for child in children:
        is_variant = child.subject.startswith(_VARIANT_PREFIX)
        groups.setdefault(replace(child, subject="") if is_variant else child, []).append(child)
    for first, *duplicates in groups.values():
        subject = f"{first.subject} and {len(duplicates)} like it" if duplicates else first.subject
        yield replace(first, subject=subject)
