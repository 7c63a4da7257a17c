"""Which variants of a policy go back to an earlier publication, and to which revision."""

from fanout.gates.decisions import Standing
from fanout.gates.facts import PolicyFacts
from fanout.gates.pins import Pin, pinned


def going_back(facts: PolicyFacts) -> dict[str, Pin]:
    """The pins in force, by variant. Needs nothing that is rendered."""
    rollbacks = Standing(facts.records.decisions, facts.now).rollbacks
    if not rollbacks and not any(rule.pin for rule in facts.stages):
        return {}
    rules = {rule.name: rule for rule in facts.stages}
    found = {
        it.name: pinned(rules[it.stage], rollbacks, it.name)
        for it in facts.variants
        if it.stage in rules
    }
    return {name: pin for name, pin in found.items() if pin is not None}
