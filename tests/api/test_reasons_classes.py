"""Every reason that the gates give has a class, so that what is held can be counted."""

import re
from pathlib import Path

from fanout.api.reasons import CLASS_BY_REASON, Reason, ReasonClass, classify_reason

ROOT = Path(__file__).parents[2]
NO_GATES = ("removal_gate", "record_effect")  # they hold no variant
GATES = [path for path in (ROOT / "fanout/gates").glob("*.py") if path.stem not in NO_GATES]


def test_every_reason_of_the_gates_has_a_class():
    texts = [path.read_text(encoding="utf-8") for path in GATES]
    named = {Reason[word] for text in texts for word in re.findall(r"\bReason\.([A-Z_]+)", text)}
    assert len(named) > 20
    # Whoever finds a path taken; variants that exchange theirs are the one case that gates find.
    unclassified = named - CLASS_BY_REASON.keys() - {Reason.PATH_TAKEN}
    assert sorted(unclassified) == []


def test_a_reason_that_is_not_of_the_gates_keeps_a_variant_from_being_made():
    assert classify_reason("RenderFailed") is ReasonClass.ERROR
    assert classify_reason("Mine") is ReasonClass.ERROR


def test_every_class_is_used_and_described():
    assert set(CLASS_BY_REASON.values()) | {ReasonClass.ERROR} == set(ReasonClass)
    assert all(reason_class.meaning for reason_class in ReasonClass)


def test_the_page_lists_every_class():
    page = (ROOT / "docs/concepts/scenarios.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", page, flags=re.MULTILINE)
    assert {word: meaning for word, meaning, _ in rows if word in set(ReasonClass)} == {
        reason_class.value: reason_class.meaning for reason_class in ReasonClass
    }
    for word, _, reasons in rows:
        listed = set(re.findall(r"`(\w+)`", reasons))
        assert listed == {
            name for name, reason_class in CLASS_BY_REASON.items() if reason_class == word
        }, word
