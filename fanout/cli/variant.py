"""Finds the one variant that a verb is about."""

from fanout.cli.called import called
from fanout.cli.naming import not_one, refuse_stopped
from fanout.cli.start import Program
from fanout.plan.cases import Case
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass


def find_variant(program: Program, name: str) -> tuple[PolicyPass, Case]:
    """The variant of this name, target, place (`repository:path`) or short name, and its policy.

    Raises InvalidInput, and Stopped when something stops the policy.
    """
    policies = program.observe(Mode(namespace=program.settings.namespace)).policies
    owners = {id(case): item for item in policies for case in item.cases}
    there = [case for item in policies for case in item.cases]
    found = called(there, name)
    if len(found) != 1:
        raise not_one(name, found, there, f"there is no variant {name}")
    item = owners[id(found[0])]
    refuse_stopped(item)
    return item, found[0]
