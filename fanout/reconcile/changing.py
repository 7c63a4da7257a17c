"""Changes of a pass: what is to be written to each repository, for the policies that go on.

One change of a repository is made of the plans of all policies. A plan of which none can be made,
or whose releases cannot be recorded, is left out of it as a whole: its policy is stopped, nothing
of it is pushed, and the others go on.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from fanout.errors import FanoutError
from fanout.gates.removal import Removals
from fanout.plan.change import Writing, changes
from fanout.plan.planner import PolicyPlan, joined
from fanout.plan.repository import RepositoryChange
from fanout.reconcile.report import Observed, PolicyPass
from fanout.reconcile.stopped import stopped
from fanout.telemetry.barrier import without_faulty
from fanout.values import replace

Problems = Mapping[tuple[str, str], FanoutError]
"""By namespace and name of the policy, or of the variant written by hand."""


def changes_of(
    plans: Sequence[PolicyPlan], writing: Writing
) -> tuple[tuple[RepositoryChange, ...], Problems]:
    """The change of each repository, and the policies whose plans had to be left out of them."""
    made, faulty = without_faulty(partial(changes, writing=writing), plans)
    return made, {(plans[n].namespace, plans[n].name): error for n, error in faulty.items()}


def with_stopped(observed: Observed, problems: Problems) -> Observed:
    """The pass, with nothing to do for these policies. Raises Bug as `changes_of` does."""
    if not problems:
        return observed
    plans = tuple(it for it in observed.plans if (it.namespace, it.name) not in problems)
    assert observed.writing is not None, "a pass that has plans is worded"
    made, further = changes_of(plans, observed.writing)
    left = replace(
        observed,
        policies=tuple(_stopped(it, problems) for it in observed.policies),
        plans=plans,
        plan=joined(plans),
        changes=made,
        rest=None,
    )
    return with_stopped(left, further)


def with_problems(observed: Observed, problems: Problems) -> Observed:
    """The pass, of which something was done for these policies before they failed."""
    policies = (
        replace(it, problem=problems.get((it.named.namespace, it.named.name), it.problem))
        for it in observed.policies
    )
    return replace(observed, policies=tuple(policies), rest=None)


def _stopped(item: PolicyPass, problems: Problems) -> PolicyPass:
    problem = problems.get((item.named.namespace, item.named.name))
    if problem is None:
        return item
    return replace(
        item,
        problem=problem,
        decision=stopped(item.rules, item.cases, item.status, problem),
        publishing=frozenset(),
        staying={},
        removals=Removals(),
    )
