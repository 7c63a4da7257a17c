"""Approvals of removals: what people approve, by a forge or without one.

What is approved is the branch that removes packages, by the tree of its head. Reviews of its pull
request and Approvals on record count alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import RecordFacts
from fanout.plan.evidence.review_approvals import find_removal_approvals
from fanout.plan.observation.repository_state import RepositoryState, SetState
from fanout.plan.removal.package_removal import PackageRemoval
from fanout.plan.removal.removal_drafts import RemovalDraftPlan


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


def list_removal_facts(plans: Iterable[RemovalDraftPlan]) -> Iterator[VariantFacts]:
    """Yield what approvals of removals may be about: each package of each branch."""
    for plan in plans:
        if plan.draft is not None:
            for removal in plan.packages:
                yield build_removal_facts(plan.draft, removal)
