"""What a pass saw, decided and did: what every command and the log read from."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from datetime import datetime

from fanout.api.reason_classes import TO_MEND
from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.gates.answer import PolicyDecision, State, VariantDecision
from fanout.gates.facts import Hold, PolicyFacts
from fanout.gates.fates import Fate
from fanout.gates.removal import Removals
from fanout.gates.rules import StageRule
from fanout.gates.wording import counted
from fanout.plan.actions import Outcome, Plan
from fanout.plan.book import Book, BookKey, Recorded
from fanout.plan.cases import Case
from fanout.plan.change import Writing
from fanout.plan.fates import fates
from fanout.plan.observation import RepositoryView
from fanout.plan.planner import PolicyPlan
from fanout.plan.repository import Listing, Look, RepositoryChange
from fanout.plan.status import Status
from fanout.reconcile.damage import broken, lost_renderings, tag_trouble
from fanout.reconcile.gone import GoneVariant, told
from fanout.reconcile.names import Named
from fanout.reconcile.upstream import tag_lost
from fanout.selection.model import TargetFailure
from fanout.telemetry.barrier import run_contained
from fanout.values import frozen, replace


@frozen
class Trouble:
    """Something that was not served, or that waits for a person beside the gates."""

    policy: str  # as people name it: PolicyPass.title
    subject: str  # the target or the variant; "" for the policy as a whole
    reason: str
    sentence: str
    noun: str = "variant"  # what the subject is: policy, repository, target or variant
    failed: bool = True  # False: it is held, or a person should know of it
    names: tuple[str, ...] = ()  # what else the sentence may call the subject
    again: str = ""  # where it was told in full before: one line, and where to read the rest
    gone: bool = False  # the subject is a variant whose target is gone
    accepted: bool = False  # a person has seen it, and it goes on all the same

    @property
    def unmended(self) -> bool:
        """Whether it failed, or is held by something that a person must mend."""
        return self.failed or (self.reason in TO_MEND and not self.accepted)


@frozen
class PolicyPass:
    """One policy (or hand-written variant) in one pass."""

    named: Named
    book: Book
    status: Status = field(default_factory=Status)
    revisions: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    rules: tuple[StageRule, ...] = ()  # its stages, in its order
    facts: PolicyFacts | None = None
    decision: PolicyDecision | None = None
    views: tuple[RepositoryView, ...] = ()  # of the repositories that the pass looked at
    publishing: frozenset[str] = frozenset()  # variants whose draft this pass publishes
    staying: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)  # what variants left
    gone: tuple[GoneVariant, ...] = ()  # those whose target is not there any more
    removals: Removals = field(default_factory=Removals)  # which of them go, and what holds others
    problem: FanoutError | None = None  # stops this policy and no other
    upstream_failure: FanoutError | None = None  # why its upstream repository was not listed

    @property
    def about(self) -> tuple[Recorded, ...]:
        """The records that are about it: hand-written variants of a namespace share one book."""
        if self.named.policy is not None:
            return self.book.records
        name = self.named.name
        return tuple(it for it in self.book.records if name in it.spec.get("variants", ()))

    @property
    def title(self) -> str:
        """The policy as people name it."""
        return f"{self.named.namespace}/{self.named.name}"

    @property
    def failures(self) -> tuple[TargetFailure, ...]:
        """Targets that have no variant, by name, and variants that have no target."""
        return (*self.named.failures, *told(self.named, self.gone, self.removals))

    def fates(self, now: datetime) -> Mapping[str, Fate]:
        """What has become of each decision that is about it, by name."""
        gone = {
            it.name: it.line.published.at if it.line and it.line.published else None
            for it in self.gone
        }
        return fates(self.about, self.cases, now, gone, self.status.removed)

    @property
    def disputed(self) -> Mapping[str, int]:
        """How many conflicts of each open draft nobody has decided, by variant."""
        return {
            variant.name: variant.draft.disputed
            for variant in (self.facts.variants if self.facts else ())
            if variant.draft is not None
        }

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """All that is in the way of this policy, its targets and its variants, gates aside."""
        return tuple(_troubles(self))


@frozen
class Rest:
    """What a pass that had nothing to do has read: while it is the same, so is the answer."""

    heads: Mapping[BookKey, str]  # of all books
    looks: tuple[Look, ...]
    listings: Mapping[str, Listing]  # by URL
    until: datetime | None  # when something may be due by itself


@frozen
class Observed:
    """A pass up to its plan; nothing has been changed yet."""

    now: datetime
    policies: tuple[PolicyPass, ...]
    plans: tuple[PolicyPlan, ...] = ()
    plan: Plan = field(default_factory=Plan)
    changes: tuple[RepositoryChange, ...] = ()
    writing: Writing | None = None  # how these are worded and signed
    warnings: tuple[str, ...] = ()  # what holds nothing and should be known
    undeclared: tuple[str, ...] = ()  # those of policies that are on record alone
    rest: Rest | None = None  # None: what was said may not be so the next time
    remembered: tuple[Trouble, ...] = ()  # of a pass before, in which all was as it is now

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Those of all policies."""
        return (*self.remembered, *(it for item in self.policies for it in _contained(item)))

    @property
    def unmended(self) -> int:
        """Number of policies, targets and variants that failed or that a person must mend."""
        return sum(trouble.unmended for trouble in self.troubles)


@frozen
class Report:
    """A pass and what became of its plan."""

    observed: Observed
    outcomes: tuple[Outcome, ...] = ()

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Actions that were not done, but for branches that the remote lets nobody remove."""
        refused = Reason.DELETION_REFUSED
        return tuple(it for it in self.outcomes if not it.done and it.reason != refused)

    @property
    def left(self) -> tuple[Outcome, ...]:
        """Branches of drafts that the remote does not let fanout remove: nothing waits for them."""
        refused = Reason.DELETION_REFUSED
        return tuple(it for it in self.outcomes if not it.done and it.reason == refused)

    @property
    def unmended(self) -> int:
        """Number of actions that failed, and of what the pass found failed or to be mended.

        What waits for a gate, for time or for a person's decision is none of these.
        """
        return len(self.failed) + self.observed.unmended

    def unmended_of(self, variants: Collection[str]) -> int:
        """The same for a decision about some variants: what is to be mended in others is not it."""
        troubles = self.observed.troubles
        found = sum(it.failed or (it.unmended and it.subject in variants) for it in troubles)
        return len(self.failed) + found


def _contained(item: PolicyPass) -> tuple[Trouble, ...]:
    """The troubles of a policy, or that they cannot be told."""
    found = run_contained(lambda: item.troubles)
    if isinstance(found, FanoutError):
        return (Trouble(item.title, "", found.reason, str(found), "policy"),)
    return found


def _troubles(item: PolicyPass) -> Iterator[Trouble]:
    title = item.title
    if item.problem is not None:
        yield Trouble(title, "", str(item.problem.reason), str(item.problem), "policy")
    for failure in item.named.failures:
        names = (failure.target.rpartition("/")[2],)
        yield Trouble(title, failure.target, failure.reason, failure.problem, "target", names=names)
    for failure in told(item.named, item.gone, item.removals):
        if failure.target not in item.removals.now:  # else it is in the plan
            first = next(iter(item.removals.holds.get(failure.target, ())), None)
            reason = str(first.reason) if first is not None else failure.reason
            yield Trouble(title, failure.target, reason, failure.problem, failed=False, gone=True)
    if item.problem is not None:
        return  # it is what holds the variants
    for repository, sentence in lost_renderings(item.cases):
        reason = str(Reason.BASE_MISSING)
        again = (
            "the branch of renderings does not have what is published there; see"
            f" `fanout explain {item.named.name}`"
        )
        yield Trouble(title, repository, reason, sentence, "repository", failed=False, again=again)
    standing = item.disputed
    for case in item.cases:
        yield from _of_variant(item, case, standing.get(case.spec.name, 0))


def _of_variant(item: PolicyPass, case: Case, standing: int) -> Iterator[Trouble]:
    """What is in the variant's way, and what people have to decide about it.

    `standing`: how many conflicts of its open draft nobody has decided.
    """
    spec = case.spec
    decided = item.decision.variants.get(spec.name) if item.decision else None
    held = _hold_of(decided) if decided else None
    if case.failure is not None:
        yield _trouble(item, case, case.failure.reason, str(case.failure), failed=True)
    elif case.obstacle is not None:
        yield _trouble(item, case, case.obstacle.reason, case.obstacle.sentence, failed=True)
    elif held is not None and held.reason != Reason.MERGE_CONFLICT:
        misplaced = held.reason == Reason.NOT_IN_STAGE and bool(spec.stage)
        yield _trouble(item, case, held.reason, held.sentence, failed=misplaced)
    if case.lost_tag:
        yield _trouble(item, case, Reason.TAG_MISSING, tag_lost(case))
    if found := tag_trouble(case):
        yield _trouble(item, case, *found)
    if case.faults and case.failure is None:
        yield _trouble(item, case, Reason.PACKAGE_BROKEN, broken(case))
    if disputed := _disputed(case, standing):
        yield _conflicts(item, case, disputed)
    for left in item.staying.get(spec.name, ()):
        yield _trouble(item, case, left.reason, left.sentence)
    if case.unrecorded and case.published is not None and case.published.out_of_band:
        sentence = "a person merged its draft without its gates"
        yield _trouble(item, case, Reason.OUT_OF_BAND, sentence)


def _trouble(
    item: PolicyPass,
    case: Case,
    reason: str,
    sentence: str,
    again: str = "",
    *,
    failed: bool = False,
) -> Trouble:
    spec = case.spec
    names = (spec.target, f"{spec.repository}:{spec.path}", spec.path, case.ref)
    return Trouble(
        item.title, spec.name, str(reason), sentence, failed=failed, names=names, again=again
    )


def _conflicts(item: PolicyPass, case: Case, disputed: int) -> Trouble:
    """What people have to decide about a draft, in full when it is written, and then in short."""
    spec, again = case.spec, ""
    conflicts = counted(disputed, "merge conflict")
    undecided = counted(disputed, "undecided merge conflict")
    if spec.name in item.publishing:
        sentence = f"its draft is published as it stands, with {conflicts} that a person accepted"
    else:
        sentence = (
            f"{conflicts} in its draft: see `fanout diff {spec.name}`; commit to the draft what is"
            " right, or accept the draft as it stands with"
            f" `fanout resolve {item.named.name} --variant {spec.name} --reason WHY`"
        )
        if case.merged is None:
            parts = (item.named.name, spec.stage, spec.name) if spec.policy else (spec.name,)
            about = "/".join(parts)
            again = f"{undecided}; see `fanout explain {about}`"
    trouble = _trouble(item, case, Reason.MERGE_CONFLICT, sentence, again)
    return replace(trouble, accepted=spec.name in item.publishing)


def _hold_of(decided: VariantDecision) -> Hold | None:
    """What holds the variant; in any other state, what a person must mend."""
    if decided.state is State.HELD:
        return next(iter(decided.holds), None)
    return next((hold for hold in decided.holds if hold.reason in TO_MEND), None)


def _disputed(case: Case, standing: int) -> int:
    """How many values nobody has decided, in the draft that stands or that this pass writes."""
    if case.merged is None:
        return standing
    if case.choices.otherwise is not None:
        return 0
    return sum(not item.decided for item in case.disputes)
