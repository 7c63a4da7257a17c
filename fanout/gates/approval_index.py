"""Index of approvals by draft tree: distinct people who may approve exactly a draft.

An approval names trees; a new tree asks again, for itself only. It covers the next step alone: an
approval older than the variant's last publication, or its removal, does not count for an equal tree
that appears later, as after a move (docs/concepts/evidence-and-approvals.md).

The branch of a removal is approved as a draft is, by the tree of its head. It has no revision, and
nor do its approvals.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum

from fanout.api.gate_vocabulary import Verdict
from fanout.api.promotion_policy import USER_PREFIX
from fanout.api.reasons import Reason
from fanout.api.results import CheckResult
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.gate_wording import format_approvers, format_names
from fanout.gates.record_facts import (
    ApprovalFacts,
    ReviewFacts,
    effective_from,
    find_next,
    is_from_the_future,
)


class ApprovalEffect(IntEnum):
    """Effect of an approval on a draft that it names, by an approver; the higher, the more."""

    EXPIRED = 0
    UNKNOWN_AUTHOR = 1  # may have changed the draft, which nothing tells by address
    OWN_CHANGE = 2
    AHEAD = 3  # dated ahead; does not count before its instant
    COUNTS = 4


class ApprovalIndex:
    """All approvals of one policy that were not revoked, by stage, check and tree."""

    def __init__(
        self,
        approvals: Iterable[ApprovalFacts],
        stage_rules: Iterable[StageRule],
        now: datetime,
        active_decisions: ActiveDecisions,
        requested_changes: Iterable[ReviewFacts] = (),
    ) -> None:
        self._now = now
        self._active_decisions = active_decisions
        self._by_tree: dict[tuple[str, str, str], list[ApprovalFacts]] = {}
        self._by_revision: dict[tuple[str, str, str], list[ApprovalFacts]] = {}
        approval_list = list(approvals)
        revoked = find_revoked(approval_list, stage_rules)
        for approval in approval_list:
            if approval.spec.revokes or approval.name in revoked:
                continue
            spec = approval.spec
            revision_key = (spec.stage, spec.check, spec.revision or "")
            self._by_revision.setdefault(revision_key, []).append(approval)
            for tree in approval.trees:
                self._by_tree.setdefault((spec.stage, spec.check, tree), []).append(approval)
        self._requested_changes: dict[tuple[str, str, str], list[ReviewFacts]] = {}
        for changes in requested_changes:
            revision_key = (changes.stage, changes.check, changes.revision)
            self._requested_changes.setdefault(revision_key, []).append(changes)

    def evaluate(
        self, approval_rule: ApprovalRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> CheckResult:
        """Evaluate an approval check for a draft, until the result can change by itself."""
        # The last approval of each person.
        approvals: dict[str, ApprovalFacts] = {}
        uncounted: defaultdict[ApprovalEffect, list[str]] = defaultdict(list)
        future_starts: list[datetime] = []
        ends: list[datetime | None] = []
        for person, approval, effect in self.find_effects(approval_rule, variant_facts, draft):
            if effect is ApprovalEffect.AHEAD:
                future_starts.append(effective_from(approval.at))
            elif effect is not ApprovalEffect.COUNTS:
                uncounted[effect].append(approval.by)
            else:
                ends.append(_end_of(approval_rule, approval))
                if person not in approvals or approvals[person].at <= approval.at:
                    approvals[person] = approval
        names = tuple(sorted(it.by for it in approvals.values()))
        latest = max((it.at for it in approvals.values()), default=None)
        until = find_next([*ends, *future_starts], self._now)
        if requested := self._find_requested_changes(approval_rule, variant_facts, draft):
            return _requested_changes(approval_rule, requested, names)
        if len(approvals) >= approval_rule.at_least:
            return CheckResult(
                approval_rule.name,
                Verdict.PASSED,
                f"{approval_rule.name}: approved by {format_names(names)}",
                latest,
                until=until,
                approvers=names,
                approvals=tuple(sorted(it.name for it in approvals.values())),
            )
        sentence = gate_wording.describe_missing_approvals(approval_rule, names)
        if future_starts:
            sentence += "; an approval is dated in the future and does not count yet"
        self_approvers = uncounted[ApprovalEffect.OWN_CHANGE]
        unknown_authors = uncounted[ApprovalEffect.UNKNOWN_AUTHOR]
        unauthorized = {
            it.by
            for it in self._draft_approvals(approval_rule, variant_facts, draft)
            if _find_person(approval_rule, it) is None
        }
        # Approvers of a rewritten draft otherwise wonder why their approval vanished. Theirs are
        # other trees: earlier drafts, or drafts of other variants.
        revision_key = (variant_facts.stage, approval_rule.name, draft.revision)
        other_draft_approvers = {
            approval.by
            for approval in self._by_revision.get(revision_key, ())
            if _find_person(approval_rule, approval) is not None
            and draft.tree not in approval.trees
            and _names(approval, variant_facts)
            and not self._is_outdated(approval.at, variant_facts)
        } - {*names, *self_approvers, *unknown_authors}
        others = (
            f"other drafts of {draft.revision}" if draft.revision else "another tree of the branch"
        )
        hints: Mapping[str, Collection[str]] = {
            "does not count: they changed the draft": self_approvers,
            "does not count: their commit address is not in PromotionPolicy.approvers": (
                unknown_authors
            ),
            f"does not count: not {format_approvers(approval_rule)}": (
                unauthorized if approval_rule.subjects else ()
            ),
            f"is for {others}": other_draft_approvers,
        }
        for hint, people in hints.items():
            if people:
                sentence += f"; approval by {format_names(people)} {hint}"
        return CheckResult(
            approval_rule.name,
            Verdict.PENDING,
            sentence,
            latest,
            Reason.FROM_THE_FUTURE if future_starts else Reason.APPROVAL_MISSING,
            format_approvers(approval_rule),
            until,
        )

    def find_effects(
        self, approval_rule: ApprovalRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> Iterator[tuple[str, ApprovalFacts, ApprovalEffect]]:
        """Yield person, approval and effect of the authorized approvals of a draft."""
        for person, approval in self._authorized_approvals(approval_rule, variant_facts, draft):
            end = _end_of(approval_rule, approval)
            if is_own_approval(approval_rule, person, draft):
                effect = ApprovalEffect.OWN_CHANGE
            # Commits name addresses, so nothing tells which ones are of somebody known by login
            # alone, or as a user of a cluster.
            elif (
                approval_rule.separation
                and draft.has_commits
                and all(
                    name.startswith(USER_PREFIX) or ("/" in name and "@" not in name)
                    for name in approval_rule.names_of(person)
                )
            ):
                effect = ApprovalEffect.UNKNOWN_AUTHOR
            elif is_from_the_future(approval.at, self._now):
                effect = ApprovalEffect.AHEAD
            elif end is not None and end <= self._now:
                effect = ApprovalEffect.EXPIRED
            else:
                effect = ApprovalEffect.COUNTS
            yield person, approval, effect

    def has_approval(
        self, stage_rule: StageRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> bool:
        """Return whether anybody has approved this draft. Replacing it would undo their work.

        A draft of which an approver requests changes is there to be replaced.
        """
        if any(
            self._find_requested_changes(it, variant_facts, draft) for it in stage_rule.approvals
        ):
            return False
        return any(
            not is_from_the_future(it.at, self._now)
            and (approval_rule.expires is None or it.at + approval_rule.expires > self._now)
            for approval_rule in stage_rule.approvals
            for _, it in self._authorized_approvals(approval_rule, variant_facts, draft)
        )

    def _find_requested_changes(
        self, approval_rule: ApprovalRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> list[ReviewFacts]:
        """Return the changes of this revision that an approver requests and nothing has ended.

        Unlike an approval, a request for changes is about the revision: to write the draft anew,
        on another base or with other inputs, answers nothing. An approval of any draft of the
        revision by the same person ends it, whether or not it counts any more.
        """
        revision_key = (variant_facts.stage, approval_rule.name, draft.revision)
        standing: list[ReviewFacts] = []
        for changes in self._requested_changes.get(revision_key, ()):
            person = approval_rule.find_approver(changes.by)
            is_ended = any(
                changes.at < approval.at
                and _find_person(approval_rule, approval) == person
                and not is_from_the_future(approval.at, self._now)
                and _names(approval, variant_facts)
                for approval in self._by_revision.get(revision_key, ())
            )
            if (
                person is not None
                and not is_ended
                and variant_facts.name in changes.variants
                and not self._is_outdated(changes.at, variant_facts)
            ):
                standing.append(changes)
        return standing

    def _is_outdated(self, at: datetime, variant_facts: VariantFacts) -> bool:
        """Return whether a review predates the variant's last step or its last rollback."""
        if variant_facts.last_step_at is not None and at < variant_facts.last_step_at:
            return True
        last_rollback = self._active_decisions.last_rollback(
            variant_facts.stage, variant_facts.name
        )
        return last_rollback is not None and at < last_rollback.at

    def _authorized_approvals(
        self, approval_rule: ApprovalRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> Iterator[tuple[str, ApprovalFacts]]:
        """Yield the approvals of the draft by people whom the rule authorizes, with the person."""
        for approval in self._draft_approvals(approval_rule, variant_facts, draft):
            if (person := _find_person(approval_rule, approval)) is not None:
                yield person, approval

    def _draft_approvals(
        self, approval_rule: ApprovalRule, variant_facts: VariantFacts, draft: DraftFacts
    ) -> Iterator[ApprovalFacts]:
        """Yield the approvals of the draft, authorized or not."""
        key = (variant_facts.stage, approval_rule.name, draft.tree)
        for approval in self._by_tree.get(key, ()):
            if (
                (approval.spec.revision or "") == draft.revision
                and _names(approval, variant_facts)
                and not self._is_outdated(approval.at, variant_facts)
            ):
                yield approval


def find_revoked(
    approvals: Iterable[ApprovalFacts], stage_rules: Iterable[StageRule]
) -> frozenset[str]:
    """Return the names of approvals revoked by their author or another approver, at once."""
    approval_rules = {
        (stage_rule.name, approval_rule.name): approval_rule
        for stage_rule in stage_rules
        for approval_rule in stage_rule.approvals
    }
    approvals_by_name: dict[str, ApprovalFacts] = {}
    revoked: set[str] = set()
    for approval in approvals:
        # In record order: only an approval recorded earlier can be revoked, so two that revoke each
        # other do not cancel out.
        approvals_by_name[approval.name] = approval
        earlier = approvals_by_name.get(approval.spec.revokes)
        if not approval.spec.revokes or earlier is None:
            continue
        approval_rule = approval_rules.get((earlier.spec.stage, earlier.spec.check))
        if approval.by == earlier.by or (
            approval_rule and _find_person(approval_rule, approval) is not None
        ):
            revoked.add(earlier.name)
    return frozenset(revoked)


def _end_of(approval_rule: ApprovalRule, approval: ApprovalFacts) -> datetime | None:
    """Return when an approval expires, or None if it never does."""
    return approval.at + approval_rule.expires if approval_rule.expires else None


def _find_person(approval_rule: ApprovalRule, approval: ApprovalFacts) -> str | None:
    return approval_rule.find_approver(approval.by, approval.groups)


def _names(approval: ApprovalFacts, variant_facts: VariantFacts) -> bool:
    """Return whether an approval is about the variant: by name, or with all of its stage."""
    return not approval.spec.variants or variant_facts.name in approval.spec.variants


def is_own_approval(approval_rule: ApprovalRule, person: str, draft: DraftFacts) -> bool:
    """Return whether a person would approve what they have changed, which the rule forbids."""
    return approval_rule.separation and not draft.authors.isdisjoint(approval_rule.names_of(person))


def _requested_changes(
    approval_rule: ApprovalRule, requested: Iterable[ReviewFacts], names: Sequence[str]
) -> CheckResult:
    """Return the result of a check while approvers request changes, whoever else approves."""
    changes = sorted(requested, key=lambda it: (it.at, it.by))
    sentence = gate_wording.describe_requested_changes(
        approval_rule.name, [(it.by, it.link) for it in changes]
    )
    if len(names) < approval_rule.at_least:
        missing = gate_wording.describe_missing_approvals(approval_rule, names)
        sentence += f"; {missing.removeprefix(f'{approval_rule.name}: ')}"
    return CheckResult(
        approval_rule.name,
        Verdict.PENDING,
        sentence,
        changes[0].at,
        Reason.CHANGES_REQUESTED,
        gate_wording.format_reviewers(it.by for it in changes),
    )
