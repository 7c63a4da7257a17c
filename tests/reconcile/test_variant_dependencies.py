"""The order in which policies and variants written by hand are evaluated."""

import pytest
from reconcile.builders import hand_written, resolved

from fanout.reconcile.variant_dependencies import VariantDependencies


def parse_policies(text):
    """`a<b` is a variant a that depends on b; every world has the policy monitoring too."""
    names = (word.partition("<") for word in text.split())
    variants = (hand_written(name, *filter(None, deps.split(","))) for name, _, deps in names)
    return [resolved("ams"), *variants]


ORDERS = [
    ("without dependencies as declared", "a b c", "a b c", "a b c"),
    ("a dependency comes first", "a<b b", "a b", "b a"),
    ("a chain", "a<b b<c c", "a b c", "c b a"),
    ("a dependency that the pass is not about", "a<b b c", "a", "b a"),
    ("and what that depends on", "a<b b<c c d", "a", "c b a"),
    ("several", "a<b,c b c", "a b c", "b c a"),
    ("one that is not there", "a<x b", "a b", "a b"),
]


@pytest.mark.parametrize(
    ("text", "covered", "order"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS]
)
def test_dependencies_are_evaluated_before_their_dependents(text, covered, order):
    policies = parse_policies(text)
    wanted = [it for it in policies if it.name in covered.split()]
    evaluated = VariantDependencies(policies).with_dependencies(wanted)
    assert [it.name for it in evaluated] == order.split()


def test_policies_are_evaluated_before_variants_written_by_hand():
    policies = parse_policies("a<b b")
    evaluated = VariantDependencies(policies).with_dependencies([policies[1], policies[0]])
    assert [it.name for it in evaluated] == ["monitoring", "b", "a"]


def test_members_of_a_cycle_are_evaluated_and_held_for_it():
    policies = parse_policies("a<b b<a c<a")
    dependencies = VariantDependencies(policies)
    evaluated = dependencies.with_dependencies(policies[1:])
    assert sorted(it.name for it in evaluated) == ["a", "b", "c"]
    holds = {it.name: dependencies.find_holds(it, {}) for it in evaluated}
    assert {name: len(of) for name, of in holds.items()} == {"a": 1, "b": 1, "c": 1}
