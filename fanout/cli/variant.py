"""Finds the one variant that a verb is about."""

from fanout.cli.naming import names_of, refuse_stopped
from fanout.cli.start import Program
from fanout.errors import InvalidInput
from fanout.plan.cases import Case
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass


def find_variant(program: Program, called: str) -> tuple[PolicyPass, Case]:
    """The variant of this name, target or place (`repository:path`), and its policy.

    Raises InvalidInput, and Stopped when something stops the policy.
    """
    observed = program.observe(Mode(namespace=program.settings.namespace))
    found = [
        (item, case)
        for item in observed.policies
        for case in item.cases
        if called in names_of(case)
    ]
    if len(found) == 1:
        item, case = found[0]
        refuse_stopped(item)
        return item, case
    raise InvalidInput(
        f"there is no variant {called}" if not found else f"{called} is not one variant alone",
        reason="NotFound",
        remedy="see `fanout get variants`",
    )
