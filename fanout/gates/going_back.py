"""Which variants of a policy go back to an earlier publication, and to which revision."""

from fanout.gates.facts import PolicyFacts
from fanout.gates.judgement import survey
from fanout.gates.pins import Pin
from fanout.gates.records import Action


def going_back(facts: PolicyFacts) -> dict[str, Pin]:
    """The pins in force, by variant. Needs nothing that is rendered."""
    decided = any(it.action is Action.ROLLBACK for it in facts.records.decisions)
    if not decided and not any(rule.pin for rule in facts.stages):
        return {}
    judgement = survey(facts)
    rules = {rule.name: rule for rule in facts.stages}
    found = {
        it.name: judgement.pin(rules[it.stage], it.name)
        for it in facts.variants
        if it.stage in rules
    }
    return {name: pin for name, pin in found.items() if pin is not None}
