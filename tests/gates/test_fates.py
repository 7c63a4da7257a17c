"""What has become of each decision: what stands, what is spent, what has expired."""

from operator import itemgetter

import pytest
from gates.worlds import at, decided, draft, published, variant

from fanout.api.gate_vocabulary import Action, OverridableGate
from fanout.gates.active_decisions import decision_statuses

PUBLISH, SUSPEND, RESUME = Action.PUBLISH, Action.SUSPEND, Action.RESUME
ROLLBACK, SKIP, RETRY = Action.ROLLBACK, Action.SKIP, Action.RETRY
V1 = {"revision": "v1", "stage": "prod"}
V2 = {"revision": "v2", "stage": "prod"}
OLD, NEW, LATER = published("v1"), published("v2", 5), published("v3", 5)

#   sentence, decisions, what p and q of prod have, fates
ROWS = [
    ("a promotion that waits", [decided(PUBLISH, **V2)], (OLD, OLD), "standing"),
    ("one that was carried out", [decided(PUBLISH, **V2)], (NEW, NEW), "spent"),
    ("one for which a variant still waits", [decided(PUBLISH, **V2)], (NEW, OLD), "standing"),
    ("one of the other variant alone", [decided(PUBLISH, variants=("p",), **V2)], (NEW, OLD),
     "spent"),
    ("one that another revision has overtaken", [decided(PUBLISH, **V2)], (LATER, LATER), "spent"),
    ("one for a stage without variants", [decided(PUBLISH, revision="v2", stage="dev")],
     (OLD, OLD), "standing"),
    ("one that counts as verification", [decided(PUBLISH, OverridableGate.VERIFICATION, **V2)],
     (NEW, NEW), "standing"),
    ("and no more once that is gone", [decided(PUBLISH, OverridableGate.VERIFICATION, **V2)],
     (LATER, LATER), "spent"),
    ("one about a draft that stands", [decided(PUBLISH, trees=frozenset({"tree-v2"}), **V2)],
     (OLD, NEW), "standing"),
    ("one about a draft that was rewritten",
     [decided(PUBLISH, trees=frozenset({"tree-v2-old"}), **V2)], (OLD, OLD), "outdated"),
    ("one about a draft that came after what is in force", [decided(PUBLISH, when=6, **V2)],
     (NEW, NEW), "outdated"),
    ("one whose end is over", [decided(PUBLISH, expires=at(9), **V2)], (OLD, OLD), "expired"),
    ("a suspension", [decided(SUSPEND)], (OLD, OLD), "standing"),
    ("a suspension that was resumed", [decided(SUSPEND), decided(RESUME, when=2)], (OLD, OLD),
     "spent spent"),
    ("one of a stage, with the policy resumed", [decided(SUSPEND, stage="prod"),
     decided(RESUME, when=2)], (OLD, OLD), "standing spent"),
    ("one of two variants, one of them resumed", [decided(SUSPEND, variants=("p", "q")),
     decided(RESUME, variants=("p",), when=2)], (OLD, OLD), "standing spent"),
    ("a suspension said again", [decided(SUSPEND), decided(SUSPEND, when=2)], (OLD, OLD),
     "spent standing"),
    ("a suspension that ended by itself", [decided(SUSPEND, expires=at(9))], (OLD, OLD), "expired"),
    ("a skip", [decided(SKIP, variants=("p",), **V2)], (OLD, OLD), "standing"),
    ("a skip of what has another revision since", [decided(SKIP, variants=("p",), **V2)],
     (LATER, OLD), "spent"),
    ("one that has failed and is tried again", [decided(RETRY, variants=("p",), when=6, **V2)],
     (NEW, OLD), "standing"),
    ("and has another revision since", [decided(RETRY, variants=("p",), when=4, **V2)],
     (LATER, OLD), "spent"),
    ("a rollback that waits", [decided(ROLLBACK, **V1)], (NEW, NEW), "standing"),
    ("a rollback that is in force", [decided(ROLLBACK, **V1)], (OLD, OLD), "standing"),
    ("one after which another revision was promoted", [decided(ROLLBACK, **V1),
     decided(PUBLISH, when=2, **V2)], (OLD, OLD), "standing standing"),
    ("and published since", [decided(ROLLBACK, **V1),
     decided(PUBLISH, when=2, **V2)], (NEW, OLD), "spent standing"),
    ("one to another revision after the first", [decided(ROLLBACK, **V1),
     decided(ROLLBACK, when=2, **V2)], (OLD, OLD), "spent standing"),
    ("one of two variants, one of them promoted", [decided(ROLLBACK, variants=("p", "q"), **V1),
     decided(PUBLISH, variants=("p",), when=2, **V2)], (OLD, OLD), "standing standing"),
    ("a rollback dated ahead", [decided(ROLLBACK, when=60, **V1)], (NEW, NEW), "ahead"),
    ("what a clock that runs ahead resumed", [decided(SUSPEND), decided(RESUME, when=60)],
     (OLD, OLD), "standing ahead"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "decisions", "have", "expected"), ROWS, ids=map(itemgetter(0), ROWS))
def test_fate(_, decisions, have, expected):
    pair = zip("pq", have, strict=True)
    variants = [variant(name, "prod", it, draft=draft("v2")) for name, it in pair]
    assert list(decision_statuses(decisions, variants, at(10)).values()) == expected.split()
