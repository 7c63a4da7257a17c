"""Facts of one policy for the gate engine, built from variants and records.

Facts of a variant that did not change since the previous pass are reused (`VariantFactsMemo`).
Variants that are published as a whole are a set, about which there are facts, too: they share a
branch, or exchange places.
"""

from collections.abc import Mapping, Sequence

from fanout.api.promotion_policy import normalize_person
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.gates.gate_facts import (
    CheckReading,
    DraftFacts,
    Grant,
    PolicyEvaluation,
    PolicyFacts,
    Publication,
    SetFacts,
    VariantFacts,
)
from fanout.gates.gate_rules import Variables
from fanout.gates.gate_wording import DRAFTS_AWAITED
from fanout.plan import plan_wording
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.edits.merge_disputes import covers, parse_disputes
from fanout.plan.move_locations import location_author
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.pull_requests.request_holds import (
    RequestHoldInputs,
    declined_hold,
    find_join_hold,
    find_request_hold,
)
from fanout.plan.records.policy_status import DraftLine
from fanout.plan.rendered_variant import RenderedVariant, without_candidate
from fanout.values import Value, field, replace


class VariantAttributes(Value):
    """Attributes of one variant that come from its policy and its dependencies."""

    group: int = 0  # of its stage's rollout
    variables: Variables = field(default_factory=dict)  # variables of `propagateWhen`
    dependency_holds: tuple[Hold, ...] = ()  # of dependencies that are not ready


NO_ATTRIBUTES = VariantAttributes()
AttributesByVariant = Mapping[str, VariantAttributes]


class ObservedEvidence(Value):
    """Commits at which a variant had its present content, and readings of this pass."""

    # branch commits that contain the published package
    published_commits: frozenset[str] = frozenset()
    drafted_commits: frozenset[str] = frozenset()  # draft commits that contain the drafted package
    readings: tuple[CheckReading, ...] = ()

    def with_commit(self, commit: str, *, drafted: bool) -> "ObservedEvidence":
        """Return a copy with `commit` among the drafted or the published commits."""
        if drafted:
            return replace(self, drafted_commits=self.drafted_commits | {commit})
        return replace(self, published_commits=self.published_commits | {commit})


NO_EVIDENCE = ObservedEvidence()


class GateInputs(Value, kw_only=True):
    """Gate inputs of one policy, or of one variant written by hand, apart from its variants."""

    facts: PolicyFacts  # without variants
    resolutions: tuple[DecisionSpec, ...] = ()
    # Newest evidence on record: a publication seen in this pass was not there when it was recorded.
    last_evidence: str = ""
    attributes: AttributesByVariant = field(default_factory=dict)  # by variant
    draft_lines: Mapping[str, DraftLine] = field(default_factory=dict)  # by variant, when written


class VariantFactsEntry(Value):
    """Facts built for one variant in an earlier pass, with the values they were built from."""

    phase_value: object
    inputs: tuple[object, ...]
    facts: VariantFacts


VariantFactsMemo = dict[str, VariantFactsEntry]
"""Facts by variant name, with the inputs they were computed from."""


def build_policy_facts(
    gate_inputs: GateInputs,
    variants: Sequence[ObservedVariant] | Sequence[RenderedVariant],
    evidence: Mapping[str, ObservedEvidence],
    memo: VariantFactsMemo | None = None,
) -> PolicyFacts:
    """Build the facts that the policy evaluator reads.

    From those of observed variants candidates and pins follow: no draft counts as current and no
    obstacle to a draft is known before candidates are selected. `evidence` is by variant name.
    `memo` is kept between passes and extended in place.
    """
    facts: list[VariantFacts] = []
    rendered: RenderedVariant | None
    phase_value: object
    for variant in variants:
        if isinstance(variant, RenderedVariant):
            rendered, observed = variant, variant.observed
            # A variant that needs no draft is the same selected variant in each pass; the value
            # around it is made anew.
            phase_value = variant.selected if variant.rendering_failure is None else variant
        else:
            rendered, observed, phase_value = None, variant, variant
        name = observed.spec.name
        own_evidence = evidence.get(name, NO_EVIDENCE)
        inputs = (
            own_evidence,
            gate_inputs.attributes.get(name, NO_ATTRIBUTES),
            gate_inputs.facts.records.removals.get(name),
            gate_inputs.resolutions,
            gate_inputs.draft_lines.get(name),
            rendered.postponed if rendered is not None else None,
        )
        entry = memo.get(name) if memo is not None else None
        # The variant is compared by identity: comparing its values costs as much as
        # building the facts.
        if entry is not None and entry.phase_value is phase_value and entry.inputs == inputs:
            facts.append(entry.facts)
            continue
        built = _build_variant_facts(
            rendered or without_candidate(observed),
            own_evidence,
            gate_inputs,
            is_selected=rendered is not None,
        )
        # An unrecorded publication is dated with the time of the pass, so its facts are
        # not reusable.
        if memo is not None and not observed.is_unrecorded:
            memo[name] = VariantFactsEntry(phase_value, inputs, built)
        facts.append(built)
    return replace(gate_inputs.facts, variants=tuple(facts))


def _build_variant_facts(
    rendered: RenderedVariant,
    evidence: ObservedEvidence,
    gate_inputs: GateInputs,
    *,
    is_selected: bool,
) -> VariantFacts:
    """Build the facts of one variant; `is_selected`: its candidate is known."""
    variant, selected, failure = rendered.observed, rendered.selected, rendered.render_failure
    spec, published, grant = variant.spec, variant.published, variant.status_line.grant
    draft = find_release_draft(rendered)
    # What holds the variant whatever its gates are.
    hold = selected.draft_hold or rendered.postponed if is_selected else None
    if is_selected and hold is None and spec.offline_error:
        # It is unknown whether the target is offline (fail closed).
        actor = "the policy's author (offlineWhen) or the owner of the target"
        hold = Hold(Reason.EXPRESSION_ERROR, spec.offline_error, who=actor)
    attributes = gate_inputs.attributes.get(spec.name, NO_ATTRIBUTES)
    return VariantFacts(
        name=spec.name,
        stage=spec.stage,
        target=spec.target,
        priority=spec.priority,
        group=attributes.group,
        published=Publication(
            revision=published.revision,
            digest=published.digest,
            tree=published.tree,
            at=published.at,
            commits=evidence.published_commits
            | ({published.merge} if published.merge else frozenset()),
            reads=selected.cluster_reads if is_selected else published.reads,
            reverted=variant.revert_hold,
            last_evidence=gate_inputs.last_evidence if variant.is_unrecorded else published.heard,
            since=published.since,
            waiting=frozenset(published.waiting),
        )
        if published
        else None,
        draft=_build_draft_facts(rendered, draft, evidence, gate_inputs)
        if draft and not variant.is_unrecorded
        else None,
        grant=Grant(grant.revision, grant.digest, grant.at, grant.by)
        if grant and variant.grants(draft)
        else None,
        suspended=spec.suspended,
        readings=evidence.readings,
        answers=variant.status_line.answers,
        offline=spec.offline,
        dependency_holds=attributes.dependency_holds,
        variables=attributes.variables,
        held=hold,
        failed=Hold(failure.reason, str(failure), who="a maintainer of the upstream package")
        if failure is not None
        else None,
        removed=gate_inputs.facts.records.removals.get(spec.name),
        outdated=is_selected and selected.is_outdated,
    )


def _build_draft_facts(
    rendered: RenderedVariant, draft: OpenDraft, evidence: ObservedEvidence, gate_inputs: GateInputs
) -> DraftFacts:
    variant, selected, trailers = rendered.observed, rendered.selected, draft.trailers
    is_written, authors = bool(draft.commit), draft.editors
    is_current = selected.has_current_draft or not is_written
    spec, choices, conflict_count = variant.spec, variant.choices, 0
    line = gate_inputs.draft_lines.get(spec.name)
    upstream = selected.package.upstream if selected.package is not None else None
    # Separation of duties concerns the draft's content. The author of another
    # candidate has no part in it.
    if upstream is not None and upstream.revision.name == trailers.revision:
        authors |= {normalize_person(upstream.author)}
    # Merge conflicts that nothing has settled.
    if trailers.conflicts != NO_VALUE and choices.default_side is None:
        resolutions = (it for it in gate_inputs.resolutions if covers(it, spec.stage, spec.name))
        if not any(not it.choices and it.revision == trailers.revision for it in resolutions):
            decided_keys = choices.by_key.keys() | draft.settled_keys
            disputes = parse_disputes(trailers.conflicts)
            conflict_count = sum(
                not it.is_decided and it.key not in decided_keys for it in disputes
            )
    # Why it cannot be published in this pass even if it is released.
    publish_hold = None
    if variant.declined is not None and variant.declined.revision == trailers.revision:
        publish_hold = declined_hold(variant, variant.declined)
    elif not is_written:
        sentence = "the draft of its stage includes it once it is released"
        publish_hold = Hold(Reason.NO_DRAFT, sentence, DRAFTS_AWAITED)
    return DraftFacts(
        revision=trailers.revision,
        digest=trailers.digest,
        tree=draft.tree or "",
        current=is_current,
        conflict_count=conflict_count,
        adopts=variant.is_unmanaged,
        # The inputs of this pass describe the draft only if it is current.
        reads=selected.inputs.object_versions if selected.inputs is not None and is_current else {},
        authors=authors,
        has_commits=bool(draft.editors),
        moves=variant.is_moving,
        commits=evidence.drafted_commits | {draft.commit} if is_written else frozenset(),
        written=line.at if line is not None and line.digest == trailers.digest else None,
        publish_hold=publish_hold,
        release_hold=find_join_hold(variant, draft),
    )


def facts_after_pass(facts_before: PolicyFacts, decision: PolicyEvaluation) -> PolicyFacts:
    """Return the facts as they will be after this pass has published.

    Candidates of drafts are selected from these, so one pass brings drafts up to date.
    """
    moment = facts_before.records.position(facts_before.now)
    variants: list[VariantFacts] = []
    for variant in facts_before.variants:
        evaluation, draft = decision.variants[variant.name], variant.draft
        if not evaluation.publish:
            variants.append(variant)
            continue
        assert draft is not None, "only a standing draft is published"
        published = Publication(
            draft.revision,
            draft.digest,
            draft.tree,
            moment.now,
            last_evidence=moment.last_evidence,
            waiting=frozenset(evaluation.waiting),
        )
        variants.append(replace(variant, published=published, draft=None, grant=None))
    return replace(facts_before, variants=tuple(variants), history=decision.history)


def build_set_facts(
    variants: Sequence[RenderedVariant], inputs: RequestHoldInputs
) -> dict[str, SetFacts]:
    """Return the facts by variant, without variants that are published alone."""
    # Most fleets have none of these, and each pass looks at all variants.
    tied = [
        variant
        for variant in variants
        if (observed := variant.selected.observed).shares_draft
        or observed.repository_state.forge is not None
        or observed.exchange_partners
        or observed.misplaced_drafts
    ]
    if not tied:
        return {}
    draft_refs = {variant.spec.name: variant.observed.draft_ref for variant in variants}
    alone = SetFacts()
    shared = {alone: alone}  # those of one branch are one object
    set_facts: dict[str, SetFacts] = {}
    for variant in tied:
        observed, spec = variant.observed, variant.spec
        state, draft, ref = observed.repository_state, observed.draft, observed.draft_ref
        hold, is_asked_again = _find_move_hold(variant, draft_refs), False
        if hold is None and state.forge is not None and draft is not None:
            hold = find_request_hold(state, ref, draft.commit, spec.repository, inputs)
            is_asked_again = inputs.is_asked_again(state, ref, hold)
        # The stage's branch has the variant as it is to be published.
        is_written = observed.shares_draft and draft is not None and variant.draft_content is None
        built = SetFacts(
            branch=f"{state.identity} {ref}" if is_written else "",
            merges_whole=is_written and state.forge is not None,
            partners=observed.exchange_partners if observed.is_moving else frozenset(),
            location=f"{spec.repository}:{spec.path}" if observed.is_moving else "",
            hold=hold,
            is_asked_again=is_asked_again,
        )
        if (kept := shared.setdefault(built, built)) is not alone:
            set_facts[spec.name] = kept
    return set_facts


def _find_move_hold(variant: RenderedVariant, draft_refs: Mapping[str, str]) -> Hold | None:
    """Return why a variant cannot move in this pass although its gates are open, or None."""
    observed, spec, state = variant.observed, variant.spec, variant.observed.repository_state
    for it in observed.misplaced_drafts:
        if it.draft.has_edits and it.repository_state.identity != state.identity:
            branch = it.draft.ref.removeprefix("refs/heads/")
            return Hold(
                Reason.PATH_CHANGED,
                f"branch {branch} in {it.repository} is removed first; its commits are in the"
                " draft",
                who=plan_wording.NEXT_RUN,
            )
    if state.forge is None or not observed.is_moving:
        return None
    # Requests are merged one by one, and each would remove the package of the other.
    for other in sorted(observed.exchange_partners):
        if draft_refs[other] != observed.draft_ref:
            return Hold(
                Reason.PATH_TAKEN,
                f"{spec.repository}:{spec.path} is the path of {other}, which has another"
                " pull request; move one of them to a third path first",
                who=location_author(spec),
            )
    return None
