"""Condition NotEnforced of repositories and policies: whether forges require fanout's status."""

from collections.abc import Iterable, Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Condition
from fanout.api.view_base import ConditionStatus
from fanout.gates.gate_wording import format_names
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.branch_enforcement import Enforcement, check_enforcement
from fanout.plan.pull_requests.request_plan import status_context
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import install_of
from fanout.values import Value

_REASONS: Mapping[ConditionStatus, Reason] = {
    ConditionStatus.TRUE: Reason.NOT_ENFORCED,
    ConditionStatus.UNKNOWN: Reason.ENFORCEMENT_UNKNOWN,
    ConditionStatus.FALSE: Reason.ENFORCED,
}


class EnforcementReport(Value):
    """Repositories with equal enforcement, by the names of their Repository objects."""

    enforcement: Enforcement
    repositories: tuple[str, ...]

    @property
    def reason(self) -> Reason:
        """Reason of the condition."""
        return _REASONS[self.enforcement.not_enforced]

    @property
    def message(self) -> str:
        """The repositories, and what their rules say."""
        return f"{format_names(self.repositories)}: {self.enforcement.message}"

    def as_condition(self) -> Condition:
        """Return the condition NotEnforced."""
        status = self.enforcement.not_enforced
        return Condition(Reason.NOT_ENFORCED, status, self.reason, self.message)


def report_enforcement(variants: Iterable[RenderedVariant]) -> tuple[EnforcementReport, ...]:
    """Return the enforcement of the variants' repositories, the least enforced first.

    Repositories whose rules were not asked in this pass are left out.
    """
    states: dict[str, RepositoryState] = {}
    for variant in variants:
        states.setdefault(variant.spec.repository, variant.observed.repository_state)
    names_by_enforcement: dict[Enforcement, set[str]] = {}
    for name, state in states.items():
        if (forge := state.forge) is None or forge.branch is None:
            continue
        installs = {
            install_of(ref)
            for ref, facts in forge.requests.items()
            if facts.request.state is RequestState.OPEN
        }
        if installs:
            branch = state.branch.removeprefix("refs/heads/")
            context = status_context(min(installs))
            enforcement = check_enforcement(branch, context, forge.branch, forge.account)
            names_by_enforcement.setdefault(enforcement, set()).add(name)
    order = list(_REASONS)
    return tuple(
        EnforcementReport(enforcement, tuple(sorted(names)))
        for enforcement, names in sorted(
            names_by_enforcement.items(),
            key=lambda it: (order.index(it[0].not_enforced), it[0].message),
        )
    )


def list_unenforced(variants: Iterable[RenderedVariant]) -> list[EnforcementReport]:
    """Return the enforcement of repositories that do not require fanout's status, or may not."""
    return [
        it
        for it in report_enforcement(variants)
        if it.enforcement.not_enforced is not ConditionStatus.FALSE
    ]
