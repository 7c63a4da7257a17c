"""What a pass saw, decided and did: what every command and the log read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fanout.errors import FanoutError
from fanout.gates.model import PolicyDecision, PolicyFacts
from fanout.plan.actions import Outcome, Plan
from fanout.plan.book import Book
from fanout.plan.cases import Case
from fanout.plan.planner import PolicyPlan
from fanout.plan.repository import RepositoryChange
from fanout.plan.status import Status
from fanout.reconcile.names import Named
from fanout.selection.model import TargetFailure


@dataclass(frozen=True, slots=True)
class PolicyPass:
    """One policy (or hand-written variant) in one pass."""

    named: Named
    book: Book
    status: Status = field(default_factory=Status)
    revisions: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    facts: PolicyFacts | None = None
    decision: PolicyDecision | None = None
    gone: tuple[TargetFailure, ...] = ()  # variants on record whose target is not there any more
    problem: FanoutError | None = None  # stops this policy and no other

    @property
    def title(self) -> str:
        """The policy as people name it."""
        return f"{self.named.namespace}/{self.named.name}"

    @property
    def failures(self) -> tuple[TargetFailure, ...]:
        """Targets that have no variant, by name."""
        return (*self.named.failures, *self.gone)


@dataclass(frozen=True, slots=True)
class Observed:
    """A pass up to its plan; nothing has been changed yet."""

    now: datetime
    policies: tuple[PolicyPass, ...]
    plans: tuple[PolicyPlan, ...]
    plan: Plan
    changes: tuple[RepositoryChange, ...]
    warnings: tuple[str, ...] = ()  # what holds nothing and should be known


@dataclass(frozen=True, slots=True)
class Report:
    """A pass and what became of its plan."""

    observed: Observed
    outcomes: tuple[Outcome, ...] = ()

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Actions that were not done."""
        return tuple(outcome for outcome in self.outcomes if not outcome.done)

    @property
    def troubled(self) -> int:
        """How many targets, variants and policies were not served, for the exit code.

        What a gate or a person holds is no failure, nor is a variant whose target is gone.
        """
        policies = self.observed.policies
        stopped = sum(item.problem is not None for item in policies)
        without = sum(len(item.named.failures) for item in policies)
        blocked = sum(
            case.failure is not None or case.obstacle is not None
            for item in policies
            for case in item.cases
        )
        return len(self.failed) + stopped + without + blocked
