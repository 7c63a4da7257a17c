"""Notes of an explanation: what to know about a subject although it blocks nothing by itself.

Pins, publications out of band, edits and rejected values in force, records dated ahead, variants
for which the rollout does not wait, and the conflicts of drafts one by one.
"""

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime

from fanout.api.durations import format_instant
from fanout.api.explanation_view import ExplainedConflict, ExplanationNote
from fanout.api.gate_vocabulary import GATE_ACTIONS, Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.control_characters import escape_unprintable
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.gate_rules import HAND_WRITTEN
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import DecisionFacts, effective_from
from fanout.gates.rollback_pins import find_pin
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.edits.merge_disputes import covers, parse_disputes
from fanout.plan.evidence.record_times import counts_at_once, records_ahead
from fanout.plan.plan_wording import AUTHOR
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.enforcement_conditions import list_unenforced
from fanout.present.policy_entry import PolicyEntry, VariantEntry
from fanout.reconcile.edits.edit_detection import describe_edits
from fanout.reconcile.pass_results import PolicyResult

_MAX_NAMED = 10  # variants named in one command


def build_notes(
    policy: PolicyEntry, stage: str = "", variant: VariantEntry | None = None
) -> tuple[ExplanationNote, ...]:
    """Return the notes on a variant, on a stage or, without either, on the policy."""
    item = policy.result
    if variant is not None:
        spec, observed = variant.variant.spec, variant.variant.observed
        edits = [describe_edits(observed)] if observed.has_edits_in_force else []
        return (
            *_pin_notes(item, spec.stage, spec.name),
            *_rejected_notes(variant),
            *(ExplanationNote("Edited", it) for it in edits),
            *_excluded_notes([variant]),
            *_out_of_band_notes([variant]),
            *_enforcement_notes([variant]),
        )
    by_hand = item.resolved_policy.upstream_policy is None
    variants = [it for it in policy.variants if it.variant.spec.stage == stage or not stage]
    # A variant written by hand is its own policy, and its only stage has a name of its own.
    stages = [HAND_WRITTEN] if by_hand else [stage] if stage else [it.name for it in item.rules]
    pins = [note for it in stages for note in _pin_notes(item, it)]
    rejected = [note for it in variants for note in _rejected_notes(it)] if by_hand else ()
    # The last revision that each stage can no longer take, as after a cut soak.
    dropped = [
        ExplanationNote(str(hold.reason), hold.message, hold.who, since=hold.since)
        for it in policy.stages
        for other in it.result.others
        for hold in other.holds
        if stage in ("", it.name) and not other.newer
    ]
    # How the variants leave that nothing holds.
    names_by_request: dict[str, list[str]] = {}
    requests = {
        orphan.name: location.removed_by
        for orphan in item.orphans
        for location in orphan.locations
        if location.removed_by
    }
    for name in item.removals.removable if not stage else ():
        names_by_request.setdefault(requests.get(name, ""), []).append(name)
    removals: list[ExplanationNote] = []
    for request, names in names_by_request.items():
        # A pull request may wait for a person who merges it.
        remover, command = request or "the next sweep", "" if request else "fanout sweep"
        sentence = f"{remover} removes variants without a target: {format_names(names)}"
        removals.append(ExplanationNote(str(Reason.TARGET_GONE), sentence, command=command))
    unusable = (ExplanationNote(str(Reason.NO_REVISION), it) for it in item.unusable_tags.values())
    return (
        *pins,
        *rejected,
        *(_future_records(item) if not stage else ()),
        *removals,
        *unusable,
        *dropped,
        *_excluded_notes(variants),
        *_out_of_band_notes(variants),
        *_enforcement_notes(variants),
    )


def _excluded_notes(variants: Iterable[VariantEntry]) -> Iterator[ExplanationNote]:
    """Yield the variants for which the rollout does not wait: skipped and offline ones."""
    excluded_by_hold: dict[Hold, list[VariantEntry]] = {}
    for variant in variants:
        for hold in variant.decision.holds:
            if hold.reason in (Reason.SKIPPED, Reason.OFFLINE):
                excluded_by_hold.setdefault(hold, []).append(variant)
    for hold, excluded in excluded_by_hold.items():
        sentence = f"{format_names(it.decision.name for it in excluded)}: {hold.message}"
        command = ""
        if hold.reason == Reason.SKIPPED:
            # The first skipped variants, all of one stage, count again by it.
            policy, options = excluded[0].policy.resolved_policy, list[str]()
            if policy.upstream_policy is not None:
                options += ["--stage", excluded[0].variant.spec.stage]
                names = [it.variant.spec.name for it in excluded[:_MAX_NAMED]]
                options += [word for name in names for word in ("--variant", name)]
            command = shlex.join(["fanout", "retry", policy.name, *options, "--reason", "WHY"])
        yield ExplanationNote(
            str(hold.reason), sentence, hold.who, hold.since, hold.until, command=command
        )


def _future_records(item: PolicyResult) -> Iterator[ExplanationNote]:
    """Yield the records dated ahead that do not count yet, without those in the gates."""
    now = item.facts.now if item.facts is not None else None
    for record in records_ahead(active_records(item.records), now) if now is not None else ():
        # The gates report decisions of these actions themselves; a second line would repeat them.
        is_in_gates = record.action in GATE_ACTIONS
        if is_in_gates or record.withdrawn or counts_at_once(record):
            continue
        verb = "revoke" if record.kind == "Approval" else "withdraw"
        start = record.at if record.kind == "Evidence" else effective_from(record.at)
        reason = () if verb == "revoke" else ("--reason", "WHY")
        yield ExplanationNote(
            str(Reason.FROM_THE_FUTURE),
            f"{record.kind} {record.name} of {record.by} is dated {format_instant(record.at)},"
            " more than five minutes ahead; it does not count yet",
            until=start,
            command=shlex.join(["fanout", verb, item.resolved_policy.name, record.name, *reason]),
        )


def _rejected_notes(variant: VariantEntry) -> Iterator[ExplanationNote]:
    """Yield each value that was not taken when the published revision was merged."""
    if (published := variant.variant.observed.published) is not None:
        for value in published.rejected:
            sentence = f"decided when {published.revision} was published: {value}"
            yield ExplanationNote(str(Reason.CONFLICT_DECIDED), sentence, since=published.at)


def _pin_notes(item: PolicyResult, stage: str, variant: str = "") -> Iterator[ExplanationNote]:
    """Yield the revision that the stage or the variant is pinned to, and the decision if any."""
    rule = next((rule for rule in item.rules if rule.name == stage), None)
    if item.facts is None or rule is None:
        return
    decisions = ActiveDecisions(item.facts.records.decisions, item.facts.now, item.facts.variants)
    pin = find_pin(rule, decisions.rollbacks, variant)
    if pin is not None and pin.decision is None:
        sentence = f"the policy pins {label_stage(stage)} to {pin.revision}"
        yield ExplanationNote(str(Reason.PINNED), sentence, AUTHOR)
        return
    pins = [(variant or label_stage(stage), pin)]
    if pin is None and not variant:  # variants may be rolled back without the rest of their stage
        names = [it.spec.name for it in item.variants if it.spec.stage == stage]
        pins = [(name, find_pin(rule, decisions.rollbacks, name)) for name in names]
    subjects: dict[str, tuple[DecisionFacts, list[str]]] = {}
    for subject, stage_pin in pins:
        if stage_pin is not None and stage_pin.decision is not None:
            subjects.setdefault(stage_pin.decision.name, (stage_pin.decision, []))[1].append(
                subject
            )
    policy = item.resolved_policy.name
    for decision, rolled_back in subjects.values():
        yield ExplanationNote(
            str(Reason.PINNED),
            f"{format_names(rolled_back)} stays at {decision.revision}, by decision {decision.name}"
            f" of {decision.by}: {decision.spec.reason}",
            since=decision.at,
            command=shlex.join(["fanout", "withdraw", policy, decision.name, "--reason", "WHY"]),
        )


def list_conflicts(item: PolicyResult, variant: RenderedVariant) -> Iterator[ExplainedConflict]:
    """Yield the conflicts of the variant's draft by the keys and files in its trailers.

    The trailers have no values; another merge finds those.
    """
    draft = find_release_draft(variant)
    for dispute in parse_disputes(draft.trailers.conflicts) if draft is not None else ():
        place = escape_unprintable(dispute.file) or "a value"
        taken = f"{place}: the {dispute.winner.value} value is in the draft"
        yield describe_conflict(item, variant, dispute.key, taken)


def describe_conflict(
    item: PolicyResult, variant: RenderedVariant, key: str, text: str
) -> ExplainedConflict:
    """Return a conflict of the variant's draft with what decided it; `text` describes it."""
    draft = find_release_draft(variant)
    # The latest decision that covers the conflict.
    decision: RecordEntry | None = None
    for record in reversed(item.policy_state.records):
        resolution = record.spec
        if not isinstance(resolution, DecisionSpec) or record.action is not Action.RESOLVE:
            continue
        # A decision without choices accepts one draft as it is; one with choices also covers later
        # drafts.
        is_for_draft = draft is not None and resolution.revision == draft.trailers.revision
        covers_conflict = key in resolution.choices if resolution.choices else is_for_draft
        if covers_conflict and covers(resolution, variant.spec.stage, variant.spec.name):
            decision = record
            break
    if decision is not None:
        why = decision.fields.get("reason", "")
        outcome = f"decided by {decision.by} ({decision.name}): {why}"
    elif draft is not None and key in draft.settled_keys:
        outcome = "decided by a commit on the draft"
    elif variant.observed.choices.default_side is not None:
        outcome = "decided by spec.onConflict"
    else:
        return ExplainedConflict(variant.spec.name, key, f"{text}; undecided", decided=False)
    since = decision.at if decision is not None else None
    sentence = f"{text}; {outcome}"
    return ExplainedConflict(variant.spec.name, key, sentence, decided=True, since=since)


def _out_of_band_notes(variants: Iterable[VariantEntry]) -> Iterator[ExplanationNote]:
    """Yield a line for each revision that was merged without its gates."""
    by_revision: dict[str, dict[str, datetime]] = {}
    for entry in variants:
        published = entry.variant.observed.published
        if published is not None and published.out_of_band:
            merged = by_revision.setdefault(published.revision, {})
            merged[entry.variant.spec.name] = published.at
    for revision, merged in by_revision.items():
        sentence = f"{format_names(merged)}: a person merged {revision} before its gates opened"
        yield ExplanationNote(str(Reason.OUT_OF_BAND), sentence, since=min(merged.values()))


def _enforcement_notes(variants: Iterable[VariantEntry]) -> Iterator[ExplanationNote]:
    for report in list_unenforced(it.variant for it in variants):
        who = f"the administrators of {format_names(report.repositories)}"
        yield ExplanationNote(str(report.reason), report.message, who)


def has_conflicts(variant: RenderedVariant) -> bool:
    """Return whether the draft has conflicts, decided or not."""
    draft = find_release_draft(variant)
    return draft is not None and bool(parse_disputes(draft.trailers.conflicts))
