"""Approvals and requested changes by reviews of pull requests, as forges show them in a pass.

They are never recorded. A review is about a commit. It approves, for each variant of the request,
the tree at its path in that commit, at the instant of the review: what the forge calls stale is of
no account, because some forges find that out only after they have merged.
A review that requests changes is about the revision that the variant has in that commit: a draft
that is written anew for the same revision does not answer it.

Of a branch that removes packages the tree of its head is approved. Reviews of its pull request and
Approvals on record count alike.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

from fanout.api.record_objects import ApprovalSpec
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, StageRule, find_approvals
from fanout.gates.record_facts import ApprovalFacts, ChangeRequest, RecordFacts, ReviewFacts
from fanout.plan.changes.package_removal import PackageRemoval
from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.observation.observed_request import (
    ForgeState,
    ObservedReview,
    RequestFacts,
    ReviewVerdict,
)
from fanout.plan.observation.repository_state import RepositoryState, SetState
from fanout.plan.observed_variant import ObservedVariant
from fanout.values import Value


class ReviewHold(ChangeRequest, kw_only=True):
    """A request for changes on a forge, with the commit that it is about."""

    commit: str


class _ReviewedPackage(Value):
    """Content of a variant that reviews may be about: its draft, or what a person has merged."""

    observed: ObservedVariant
    ref: str  # of the draft
    revision: str
    tree: str


class _ReviewedGroup(Value):
    """Packages of one pull request that are of one revision."""

    host: str
    facts: RequestFacts
    stage: str
    revision: str
    packages: tuple[_ReviewedPackage, ...]


def find_review_approvals(
    variants: Sequence[ObservedVariant], stage_rules: Iterable[StageRule]
) -> tuple[ApprovalFacts, ...]:
    """Return the approvals by reviews of the drafts, one for each review and approval check.

    Also of drafts that a person has merged, which nobody has recorded yet. The person is
    `<host>/<login>`. An approval without trees is of other drafts of the revision.
    """
    approvals: list[ApprovalFacts] = []
    for group, rule in _pair_with_rules(variants, stage_rules):
        person_of = partial(_find_person, group.host, rule)
        for review in find_standing_approvals(group.facts.reviews, person_of):
            trees = group.facts.reviewed_trees.get(review.commit)
            if trees is None:  # no commit, or one that nobody has any more
                continue
            approved: list[_ReviewedPackage] = []
            rewritten: list[_ReviewedPackage] = []
            for it in group.packages:
                grant = it.observed.status_line.grant
                if trees.get(it.observed.spec.path) == it.tree:
                    approved.append(it)
                # The inputs of the draft were released before the review, so that it saw them.
                elif grant is not None and it.observed.is_granted and grant.at <= review.instant:
                    rewritten.append(it)
            for packages, approved_trees in (
                (approved, {it.tree for it in approved}),
                (rewritten, ()),
            ):
                if packages:
                    spec = ApprovalSpec.model_construct(
                        stage=group.stage,
                        check=rule.name,
                        revision=group.revision,
                        variants=tuple(it.observed.spec.name for it in packages),
                    )
                    approvals.append(
                        _build_approval(group.host, group.facts, review, spec, approved_trees)
                    )
    return tuple(approvals)


def find_requested_changes(
    variants: Sequence[ObservedVariant], stage_rules: Iterable[StageRule]
) -> tuple[ReviewFacts, ...]:
    """Return the changes that approvers request, one for each review and approval check."""
    changes: list[ReviewFacts] = []
    for group, rule in _pair_with_rules(variants, stage_rules):
        for rejection in find_rejecting_reviews(group.host, group.facts, rule):
            revisions = group.facts.refused_revisions.get(rejection.commit)
            refused: list[str] = []
            for variant in (it.observed for it in group.packages):
                name, grant = variant.spec.name, variant.status_line.grant
                if revisions is not None:
                    is_refused = revisions.get(name) == group.revision
                else:
                    # The commit was replaced and is gone: what was on the branch then, the release
                    # tells.
                    is_refused = (
                        grant is None
                        or grant.revision != group.revision
                        or (grant.since or grant.at) <= rejection.at
                    )
                refused += [name] if is_refused else []
            if refused:
                changes.append(
                    ReviewFacts(
                        at=rejection.at,
                        by=rejection.by,
                        stage=group.stage,
                        check=rule.name,
                        revision=group.revision,
                        variants=tuple(refused),
                        link=rejection.link,
                    )
                )
    return tuple(changes)


def find_removal_approvals(
    forge: ForgeState, branch: SetState, stage_rules: Iterable[StageRule]
) -> Iterator[ApprovalFacts]:
    """Yield the approvals by reviews of the pull request of a branch that removes packages.

    A review approves the tree of the branch if it is about its head: an older commit may lack a
    package because it was not there yet. An approval without trees is of an older commit.
    """
    if (facts := forge.requests.get(branch.ref)) is None:
        return
    for rule in find_approvals(stage_rules, branch.stage):
        person_of = partial(_find_person, forge.host, rule)
        for review in find_standing_approvals(facts.reviews, person_of):
            trees = {branch.tree} if review.commit == branch.commit else ()
            spec = ApprovalSpec.model_construct(stage=branch.stage, check=rule.name)
            yield _build_approval(forge.host, facts, review, spec, trees)


def _find_account(review: ObservedReview) -> str:
    return review.identity.key


def find_standing_approvals(
    reviews: Iterable[ObservedReview], person_of: Callable[[ObservedReview], str] = _find_account
) -> list[ObservedReview]:
    """Return the approving reviews that count; `person_of` yields the person of a review."""
    standing = _find_standing(reviews, person_of)
    return [it for it in standing if it.verdict is ReviewVerdict.APPROVED]


def find_rejections(reviews: Iterable[ObservedReview]) -> list[ObservedReview]:
    """Return the reviews that request changes and that neither their author nor anybody ended."""
    standing = _find_standing(reviews, _find_account)
    return [it for it in standing if it.verdict is ReviewVerdict.CHANGES_REQUESTED]


def find_rejecting_reviews(host: str, facts: RequestFacts, rule: ApprovalRule) -> list[ReviewHold]:
    """Return the reviews of a pull request by which approvers request changes, oldest first."""
    standing = _find_standing(facts.reviews, partial(_find_person, host, rule))
    return [
        ReviewHold(
            at=review.instant,
            by=format_person(host, review.reviewer),
            commit=review.commit,
            link=review.url or facts.request.url,
        )
        for review in sorted(standing, key=lambda it: (it.instant, it.reviewer))
        if review.verdict is ReviewVerdict.CHANGES_REQUESTED
        and _find_person(host, rule, review) in rule.subjects
    ]


def _find_standing(
    reviews: Iterable[ObservedReview], person_of: Callable[[ObservedReview], str]
) -> list[ObservedReview]:
    """Return the reviews that count, of each person approvals or one request for changes.

    A dismissed review, and a request for changes, takes back what the same person approved
    before, as on forges themselves: the dismissal of somebody's last review must not bring back
    an earlier one. An approval ends their request for changes. A comment changes nothing.
    """
    standing_by_person: dict[str, list[ObservedReview]] = {}
    for review in sorted(reviews, key=lambda it: it.instant):
        if review.verdict is ReviewVerdict.COMMENTED:
            continue
        standing = standing_by_person.setdefault(person_of(review), [])
        verdicts = {review.verdict, *(it.verdict for it in standing)}
        if review.is_dismissed or verdicts != {ReviewVerdict.APPROVED}:
            standing.clear()
        if not review.is_dismissed:
            standing.append(review)
    return [review for standing in standing_by_person.values() for review in standing]


def _pair_with_rules(
    variants: Sequence[ObservedVariant], stage_rules: Iterable[StageRule]
) -> Iterator[tuple[_ReviewedGroup, ApprovalRule]]:
    """Yield the packages of each request by revision, with each approval check of their stage."""
    rules_by_stage = {rule.name: rule.approvals for rule in stage_rules if rule.approvals}
    forges: dict[tuple[str, str], ForgeState] = {}
    packages: dict[tuple[str, str, str, str], list[_ReviewedPackage]] = {}
    for variant in variants:
        state, stage = variant.repository_state, variant.spec.stage
        if stage not in rules_by_stage or state.forge is None or not state.forge.requests:
            continue
        draft, published = variant.draft, variant.published
        package = None
        # The branch of a request that a person has merged may be gone, and may be ahead of the
        # merge.
        if variant.is_unrecorded and published is not None:
            package = _ReviewedPackage(
                variant, variant.draft_ref, published.revision, published.tree
            )
        elif draft is not None and draft.tree is not None:
            package = _ReviewedPackage(variant, draft.ref, draft.trailers.revision, draft.tree)
        if package is not None and package.ref in state.forge.requests:
            forges[state.identity, package.ref] = state.forge
            key = (state.identity, package.ref, stage, package.revision)
            packages.setdefault(key, []).append(package)
    for (identity, ref, stage, revision), several in packages.items():
        forge = forges[identity, ref]
        group = _ReviewedGroup(forge.host, forge.requests[ref], stage, revision, tuple(several))
        for rule in rules_by_stage[stage]:
            yield group, rule


def _find_person(host: str, rule: ApprovalRule, review: ObservedReview) -> str:
    name = format_person(host, review.identity.key)
    return rule.find_subject(name) or name


def _build_approval(
    host: str,
    facts: RequestFacts,
    review: ObservedReview,
    spec: ApprovalSpec,
    trees: Iterable[str] = (),
) -> ApprovalFacts:
    person = format_person(host, review.reviewer)
    return ApprovalFacts(
        name=f"{facts.request.url} {person}",  # names of records have no space
        at=review.instant,
        by=person,
        spec=spec,
        trees=frozenset(trees),
    )


def format_person(host: str, login: str) -> str:
    """Return the person that a login of a host stands for, as approvers name one."""
    return f"{host}/{login}".lower()


def index_removal_approvals(
    records: RecordFacts,
    states: Iterable[RepositoryState],
    stage_rules: Sequence[StageRule],
    now: datetime,
) -> ApprovalIndex:
    """Return the approvals on record, and by reviews of the branches that remove packages.

    Empty if the repositories have no such branch, as in nearly every pass.
    """
    branches = [(state.forge, branch) for state in states for branch in state.removal_sets]
    if not branches:
        return ApprovalIndex((), stage_rules, now, ActiveDecisions((), now))
    reviews = [
        approval
        for forge, branch in branches
        if forge is not None
        for approval in find_removal_approvals(forge, branch, stage_rules)
    ]
    decisions = ActiveDecisions(records.decisions, now)
    return ApprovalIndex([*records.approvals, *reviews], stage_rules, now, decisions)


def build_removal_facts(branch: SetState, removal: PackageRemoval) -> VariantFacts:
    """Return what approvals of the removal of a package are about: its branch, as a draft."""
    return VariantFacts(
        name=removal.variant,
        stage=removal.stage,
        target="",
        # A record from before the publication was about an earlier removal. A review is about a
        # commit, which no earlier branch has; and the clock of a forge is another one.
        removed=removal.published.at
        if removal.published is not None and removal.state.forge is None
        else None,
        draft=DraftFacts(
            revision="",
            digest="",
            tree=branch.tree,
            authors=branch.editors,
            has_commits=bool(branch.editors),
        ),
    )


def list_removal_facts(plans: Iterable[PlannedSet]) -> Iterator[VariantFacts]:
    """Yield what approvals of removals may be about: each package of each branch."""
    for plan in plans:
        if plan.draft is not None:
            yield from (build_removal_facts(plan.draft, it) for it in plan.removals)
