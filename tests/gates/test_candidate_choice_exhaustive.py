"""Every choice of a small stage, judged twice: by the evaluator and by `specification`.

A stage of two variants behind one of one: all that each of them has published, drafts and had
approved, and all that the stage before can have had of three revisions.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product

import pytest
from gates.specification import candidate
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    SIGNED,
    after,
    approved,
    draft,
    evidence_of,
    facts,
    passed,
    published,
    stage,
    variant,
)

from fanout.gates.gate_evaluator import choose_candidates
from fanout.gates.gate_facts import PolicyFacts

STAGES = (stage("dev"), stage("prod", after("dev"), requires=(SIGNED,)))
ALLOWED = (1, 2, 3)
NARROWED = (1, 2)  # the rule was narrowed, and some have what it allows no more

Variant = tuple[int, int, bool]  # what it has, what it drafts, and whether that is approved
Before = tuple[int, str, frozenset[int]]  # what dev has, how it stands, and what passed earlier

VARIANTS: list[Variant] = [
    (has, drafted, signed)
    for has, drafted, signed in product((0, *ALLOWED), (0, *ALLOWED), (False, True))
    if drafted or not signed
]
STANDS = {"ready": PASSED, "failed": FAILED, "verifying": PENDING}


def befores() -> Iterator[Before]:
    """All that dev can have."""
    for has, stands in product(ALLOWED, STANDS):
        older = range(1, has)
        for size in range(len(older) + 1):
            for earlier in combinations(older, size):
                yield has, stands, frozenset(earlier)


def policy(allowed: Sequence[int], pair: Sequence[Variant], before: Before) -> PolicyFacts:
    """The world as facts."""
    has, stands, earlier = before
    records = [evidence_of("dev", STANDS[stands], f"v{has}")] if stands != "verifying" else []
    variants = [variant("d", "dev", published(f"v{has}"))]
    for name, (own, drafted, signed) in zip("pq", pair, strict=True):
        open_draft = draft(f"v{drafted}", name) if drafted else None
        variants.append(
            variant(name, "prod", published(f"v{own}") if own else None, draft=open_draft)
        )
        if signed:
            tree = frozenset({f"tree-v{drafted}{name}"})
            records.append(approved("ann", revision=f"v{drafted}", trees=tree))
    return facts(
        STAGES,
        variants,
        *records,
        history={("dev", f"v{one}"): passed(1, 5) for one in earlier},
        revisions=" ".join(f"v{one}" for one in allowed),
    )


@pytest.mark.parametrize("allowed", [ALLOWED, NARROWED], ids=["all allowed", "narrowed"])
def test_every_candidate(allowed: tuple[int, ...], record_property):
    pairs = list(combinations_with_replacement(VARIANTS, 2))
    differences, count = [], 0
    for number, before in enumerate(befores()):
        has, stands, earlier = before
        passing = earlier | ({has} if stands == "ready" else set())
        # Dev waits for nothing, so it takes the newest next and none between.
        possible = {has, max(allowed)} - ({has} if stands == "failed" else set())
        # Every choice of variants meets every third state of the stage before, in turn.
        for pair in pairs[number % 3 :: 3]:
            chosen = choose_candidates(policy(allowed, pair, before))["prod"]
            wanted = candidate(allowed, pair, passing, possible)
            count += 1
            if chosen != f"v{wanted}":
                differences.append(f"{allowed} {pair} {before}: {chosen} and not v{wanted}")
    record_property("worlds", count)
    assert not differences, "\n".join(
        [f"{len(differences)} of {count} disagree", *differences[:10]]
    )
