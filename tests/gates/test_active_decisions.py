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
    ("a promotion that waits", [decided(PUBLISH, **V2)], (OLD, OLD), "Active"),
    ("one that was carried out", [decided(PUBLISH, **V2)], (NEW, NEW), "Applied"),
    ("one for which a variant still waits", [decided(PUBLISH, **V2)], (NEW, OLD), "Active"),
    ("one of the other variant alone", [decided(PUBLISH, variants=("p",), **V2)], (NEW, OLD),
     "Applied"),
    ("one that another revision has overtaken", [decided(PUBLISH, **V2)], (LATER, LATER),
     "Applied"),
    ("one for a stage without variants", [decided(PUBLISH, revision="v2", stage="dev")],
     (OLD, OLD), "Active"),
    ("one that counts as verification", [decided(PUBLISH, OverridableGate.VERIFICATION, **V2)],
     (NEW, NEW), "Active"),
    ("and no more once that is gone", [decided(PUBLISH, OverridableGate.VERIFICATION, **V2)],
     (LATER, LATER), "Applied"),
    ("one about a draft that stands", [decided(PUBLISH, trees=frozenset({"tree-v2"}), **V2)],
     (OLD, NEW), "Active"),
    ("one about a draft that was rewritten",
     [decided(PUBLISH, trees=frozenset({"tree-v2-old"}), **V2)], (OLD, OLD), "Stale"),
    ("one about a draft that came after what is in force", [decided(PUBLISH, when=6, **V2)],
     (NEW, NEW), "Stale"),
    ("one whose end is over", [decided(PUBLISH, expires=at(9), **V2)], (OLD, OLD), "Expired"),
    ("a suspension", [decided(SUSPEND)], (OLD, OLD), "Active"),
    ("a suspension that was resumed", [decided(SUSPEND), decided(RESUME, when=2)], (OLD, OLD),
     "Applied Applied"),
    ("one of a stage, with the policy resumed", [decided(SUSPEND, stage="prod"),
     decided(RESUME, when=2)], (OLD, OLD), "Active Applied"),
    ("one of two variants, one of them resumed", [decided(SUSPEND, variants=("p", "q")),
     decided(RESUME, variants=("p",), when=2)], (OLD, OLD), "Active Applied"),
    ("a suspension said again", [decided(SUSPEND), decided(SUSPEND, when=2)], (OLD, OLD),
     "Applied Active"),
    ("a suspension that ended by itself", [decided(SUSPEND, expires=at(9))], (OLD, OLD), "Expired"),
    ("a skip", [decided(SKIP, variants=("p",), **V2)], (OLD, OLD), "Active"),
    ("a skip of what has another revision since", [decided(SKIP, variants=("p",), **V2)],
     (LATER, OLD), "Applied"),
    ("one that has failed and is tried again", [decided(RETRY, variants=("p",), when=6, **V2)],
     (NEW, OLD), "Active"),
    ("and has another revision since", [decided(RETRY, variants=("p",), when=4, **V2)],
     (LATER, OLD), "Applied"),
    ("a rollback that waits", [decided(ROLLBACK, **V1)], (NEW, NEW), "Active"),
    ("a rollback that is in force", [decided(ROLLBACK, **V1)], (OLD, OLD), "Active"),
    ("one after which another revision was promoted", [decided(ROLLBACK, **V1),
     decided(PUBLISH, when=2, **V2)], (OLD, OLD), "Active Active"),
    ("and published since", [decided(ROLLBACK, **V1),
     decided(PUBLISH, when=2, **V2)], (NEW, OLD), "Applied Active"),
    ("one to another revision after the first", [decided(ROLLBACK, **V1),
     decided(ROLLBACK, when=2, **V2)], (OLD, OLD), "Applied Active"),
    ("one of two variants, one of them promoted", [decided(ROLLBACK, variants=("p", "q"), **V1),
     decided(PUBLISH, variants=("p",), when=2, **V2)], (OLD, OLD), "Active Active"),
    ("a rollback dated ahead", [decided(ROLLBACK, when=60, **V1)], (NEW, NEW), "Ahead"),
    ("what a clock that runs ahead resumed", [decided(SUSPEND), decided(RESUME, when=60)],
     (OLD, OLD), "Active Ahead"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "decisions", "have", "expected"), ROWS, ids=map(itemgetter(0), ROWS))
def test_each_decision_has_its_status(_, decisions, have, expected):
    pair = zip("pq", have, strict=True)
    variants = [variant(name, "prod", it, draft=draft("v2")) for name, it in pair]
    assert list(decision_statuses(decisions, variants, at(10)).values()) == expected.split()
