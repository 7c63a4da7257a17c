"""Approvals by reviews of pull requests, as forges show them in a pass; they are never recorded.

A review is about a commit. It approves, for each variant of the request, the tree at its path in
that commit, at the instant of the review: what the forge calls stale is of no account, because
some forges find that out only after they have merged (design-forges, "Gates").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from fanout.api.commit_trailers import Trailer
from fanout.gates.evaluation_results import VariantEvaluation
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.record_facts import ApprovalFacts
from fanout.plan.observation.forge_state import ForgeState, RequestFacts
from fanout.plan.observation.observed_request import ObservedReview, ReviewVerdict
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.observed_variant import ObservedVariant
from fanout.values import frozen


@frozen
class _ReviewedGroup:
    """Variants of one pull request whose drafts are of one revision."""

    host: str
    facts: RequestFacts
    stage: str
    revision: str
    members: tuple[tuple[ObservedVariant, OpenDraft], ...]


def find_review_approvals(
    variants: Sequence[ObservedVariant], stage_rules: Iterable[StageRule]
) -> tuple[ApprovalFacts, ...]:
    """Return the approvals by reviews of the drafts, one for each review and approval check.

    The person is `<host>/<login>`. An approval without trees is of other drafts of the revision.
    """
    rules_by_stage = {rule.name: rule.approvals for rule in stage_rules if rule.approvals}
    return tuple(
        approval
        for group in _group_by_request(it for it in variants if it.spec.stage in rules_by_stage)
        for rule in rules_by_stage[group.stage]
        for approval in _find_group_approvals(group, rule)
    )


def find_standing_approvals(
    reviews: Iterable[ObservedReview], person_of: Callable[[str], str] = str
) -> list[ObservedReview]:
    """Return the approving reviews that count; `person_of` yields the person of a login.

    A dismissed review, and a request for changes, takes back what the same person approved
    before, as on forges themselves: the dismissal of somebody's last review must not bring back
    an earlier one. A comment changes nothing.
    """
    approvals_by_person: dict[str, list[ObservedReview]] = {}
    for review in sorted(reviews, key=lambda it: it.instant):
        if review.verdict is ReviewVerdict.COMMENTED:
            continue
        approvals = approvals_by_person.setdefault(person_of(review.reviewer), [])
        if review.verdict is ReviewVerdict.APPROVED and not review.is_dismissed:
            approvals.append(review)
        else:
            approvals.clear()
    return [review for approvals in approvals_by_person.values() for review in approvals]


def build_approval_trailers(evaluations: Iterable[VariantEvaluation]) -> tuple[str, ...]:
    """Return the lines of a publication's message that name whose approvals counted."""
    approvers = {
        name
        for evaluation in evaluations
        for check in evaluation.checks
        for name in check.approvers
    }
    return tuple(f"{Trailer.APPROVED_BY}: {name}" for name in sorted(approvers))


def _group_by_request(variants: Iterable[ObservedVariant]) -> Iterator[_ReviewedGroup]:
    forges: dict[tuple[str, str], ForgeState] = {}
    members: dict[tuple[str, str, str, str], list[tuple[ObservedVariant, OpenDraft]]] = {}
    for variant in variants:
        state, draft = variant.repository_state, variant.draft
        if state.forge is not None and draft is not None and draft.ref in state.forge.requests:
            forges[state.identity, draft.ref] = state.forge
            key = (state.identity, draft.ref, variant.spec.stage, draft.trailers.revision)
            members.setdefault(key, []).append((variant, draft))
    for (identity, ref, stage, revision), group_members in members.items():
        forge = forges[identity, ref]
        facts = forge.requests[ref]
        yield _ReviewedGroup(forge.host, facts, stage, revision, tuple(group_members))


def _find_group_approvals(group: _ReviewedGroup, rule: ApprovalRule) -> Iterator[ApprovalFacts]:
    def find_person(login: str) -> str:
        name = _format_person(group.host, login)
        return rule.find_subject(name) or name

    for review in find_standing_approvals(group.facts.reviews, find_person):
        trees = group.facts.reviewed_trees.get(review.commit)
        if trees is None:  # no commit, or one that nobody has any more
            continue
        approved = [
            (variant.spec.name, draft.tree)
            for variant, draft in group.members
            if draft.tree is not None and trees.get(draft.path) == draft.tree
        ]
        if approved:
            yield _build_approval(group, rule, review, approved)
        names = {name for name, _ in approved}
        rewritten = [
            (variant.spec.name, None)
            for variant, _ in group.members
            if variant.spec.name not in names and _was_released(variant, review)
        ]
        if rewritten:
            yield _build_approval(group, rule, review, rewritten)


def _was_released(variant: ObservedVariant, review: ObservedReview) -> bool:
    """Return whether the draft's inputs were released before the review, so that it saw them."""
    grant = variant.status_line.grant
    return grant is not None and variant.is_granted and grant.at <= review.instant


def _build_approval(
    group: _ReviewedGroup,
    rule: ApprovalRule,
    review: ObservedReview,
    approved: Sequence[tuple[str, str | None]],
) -> ApprovalFacts:
    return ApprovalFacts(
        name=f"{group.facts.request.url} {review.reviewer}",
        at=review.instant,
        by=_format_person(group.host, review.reviewer),
        stage=group.stage,
        check=rule.name,
        revision=group.revision,
        trees=frozenset(tree for _, tree in approved if tree is not None),
        variants=tuple(name for name, _ in approved),
    )


def _format_person(host: str, login: str) -> str:
    return f"{host}/{login}".lower()
