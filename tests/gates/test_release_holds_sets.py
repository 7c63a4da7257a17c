"""Sets of variants that are published together or not at all, each judged twice."""

from collections.abc import Iterator
from itertools import product

import pytest
from gates.specification import Member, published_sets
from gates.worlds import (
    PASSED,
    SIGNED,
    approved,
    draft,
    evidence_of,
    facts,
    grant,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import VariantState
from fanout.api.results import Hold
from fanout.api.stages import Rollout
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation, SetFacts
from fanout.values import replace

NAMES = ("a", "b", "c")
KINDS = {
    "may go": Member(),
    "asks for an approval": Member(open=False),
    "has a merge conflict": Member(released=False, open=False),
}
BRANCHES = {"none": "", "two": "ab", "all": "abc"}
EXCHANGES = {"none": (), "a and b": ("ab",), "b and c": ("bc",), "in a ring": ("ab", "bc", "ac")}
REQUEST_HELD = Hold("RequestHeld", "its pull request has the label fanout/hold", "ann")
FIRST, SECOND = stage("first", requires=(SIGNED,)), stage("second", requires=(SIGNED,))


def sets() -> Iterator[dict[str, Member]]:
    """All sets of three variants, up to who of those that are alike has which name."""
    for kinds, branch, forge, exchange, held in product(
        product(KINDS.values(), repeat=3), BRANCHES.values(), (False, True), EXCHANGES, ("", *NAMES)
    ):
        yield {
            name: replace_member(kind, name, branch, forge, exchange, held)
            for name, kind in zip(NAMES, kinds, strict=True)
        }


def replace_member(kind: Member, name: str, branch: str, forge: bool, exchange: str, held: str):
    partners = {other for pair in EXCHANGES[exchange] if name in pair for other in pair} - {name}
    return Member(
        kind.released,
        kind.open,
        name == held,
        "branch" if name in branch else "",
        forge and name in branch,
        frozenset(partners),
    )


def evaluate(members: dict[str, Member], stages: str) -> PolicyEvaluation:
    """Evaluate a policy with these variants; `stages` has the first letter of each one's stage."""
    variants, records = [], []
    for (name, it), letter in zip(members.items(), stages, strict=True):
        of = "first" if letter == "f" else "second"
        has = replace(draft("v1"), conflict_count=int(not it.released), tree=f"tree-{name}")
        variants.append(variant(name, of, draft=has))
        if it.open:
            trees = frozenset({has.tree})
            records += [approved(by, of=of, variants=(name,), trees=trees) for by in ("ann", "bob")]
    made = facts((FIRST, SECOND), variants, *records)
    sets = {
        name: SetFacts(
            it.branch, it.forge, it.partners, f"edge:{name}", REQUEST_HELD if it.held else None
        )
        for name, it in members.items()
    }
    return evaluate_gates(replace(made, sets=sets))


def test_every_set(record_property):
    differences, evaluated = [], 0
    for number, members in enumerate(sets()):
        stages = ("fff", "ffs", "fss", "sff")[number % 4]
        decision = evaluate(members, stages)
        evaluated += 1
        published = {name for name in NAMES if decision.variants[name].publish}
        released = {name for name in NAMES if decision.variants[name].release}
        if published != published_sets(members):
            differences.append(f"{stages} {members}: {sorted(published)}")
        if released != {name for name, it in members.items() if it.released}:
            differences.append(f"{stages} {members}: released {sorted(released)}")
        silent = [
            name
            for name in NAMES
            if not decision.variants[name].publish and not decision.variants[name].holds
        ]
        differences += [f"{members}: {name} has no hold" for name in silent]
    record_property("worlds", evaluated)
    assert not differences, "\n".join([f"{len(differences)} disagreements", *differences[:10]])


@pytest.mark.parametrize("groups", [(0, 0), (0, 1)], ids=["a limit", "a limit and groups"])
@pytest.mark.parametrize("granted", ["", "a", "b"])
def test_variants_that_exchange_places_take_one_slot(groups, granted):
    rule = stage("first", rollout=Rollout(max_in_flight=1))
    variants = [
        variant(
            name,
            "first",
            published("v1"),
            draft=replace(draft("v1"), moves=True),
            group=group,
            grant=grant("v1") if name == granted else None,
        )
        for name, group in zip("ab", groups, strict=True)
    ]
    sets = {name: SetFacts(partners=frozenset(other)) for name, other in ("ab", "ba")}
    ready = evidence_of("first", PASSED, when=2)
    made = facts((rule,), variants, ready)
    decision = evaluate_gates(replace(made, sets=sets))
    assert {it.name for it in decision.variants.values() if it.publish} == {"a", "b"}
    alone = evaluate_gates(made)
    assert sum(it.publish for it in alone.variants.values()) == 1


def test_a_stage_shows_what_a_later_stage_keeps_from_publication():
    partners = {"a": frozenset("c"), "b": frozenset(), "c": frozenset("a")}
    members = {name: Member(partners=it, open=name != "c") for name, it in partners.items()}
    decision = evaluate(members, "ffs")
    assert decision.variants["b"].publish
    assert reasons_of(decision, "a") == ["PathTaken"]
    assert "PathTaken" in reasons_of(decision, "first")
    assert decision.variants["a"].state is VariantState.PROPOSED


def test_a_variant_waits_for_a_partner_that_is_in_no_stage():
    variants = [
        variant("a", "first", published("v1"), draft=replace(draft("v1"), moves=True)),
        variant("b", "gone", published("v1"), draft=replace(draft("v1"), moves=True)),
    ]
    sets = {name: SetFacts(partners=frozenset(other)) for name, other in ("ab", "ba")}
    made = facts((stage("first"),), variants, evidence_of("first", PASSED, when=2))
    decision = evaluate_gates(replace(made, sets=sets))
    assert not decision.variants["a"].publish
    assert "PathTaken" in reasons_of(decision, "a")
