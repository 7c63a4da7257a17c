"""Label selectors, as Kubernetes documents them."""

import pytest

from fanout.api.object_meta import LabelSelector
from fanout.selection.label_selector import match_raw_labels, matches

LABELS = {"tier": "prod", "region": "eu", "empty": ""}
ROWS = [
    ("an empty selector chooses everything", {}, True),
    ("all labels must be equal", {"matchLabels": {"tier": "prod", "region": "eu"}}, True),
    ("one that differs is enough", {"matchLabels": {"tier": "prod", "region": "us"}}, False),
    ("a label that is not there is not equal", {"matchLabels": {"zone": "a"}}, False),
    ("an empty value is a value", {"matchLabels": {"empty": ""}}, True),
    ("In takes any of its values", {"in": ("tier", "In", ["dev", "prod"])}, True),
    ("In needs the label", {"in": ("zone", "In", ["a"])}, False),
    ("NotIn refuses its values", {"in": ("tier", "NotIn", ["prod"])}, False),
    ("NotIn holds where the label is not there", {"in": ("zone", "NotIn", ["a"])}, True),
    ("Exists asks for the label alone", {"in": ("empty", "Exists", [])}, True),
    ("DoesNotExist refuses it", {"in": ("empty", "DoesNotExist", [])}, False),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "written", "chosen"), ROWS, ids=[row[0] for row in ROWS])
def test_selector(sentence, written, chosen):
    data = {"matchLabels": written.get("matchLabels", {})}
    if "in" in written:
        key, operator, values = written["in"]
        data["matchExpressions"] = [{"key": key, "operator": operator, "values": values}]
    assert matches(LabelSelector.model_validate(data), LABELS) is chosen


TIER = {"matchLabels": {"tier": "1"}}
BOTH = {"matchLabels": {"tier": "1", "on": "true"}}
WRITTEN = [
    ("labels that are text are compared", TIER, {"tier": "1", "on": "true"}, True),
    ("no labels at all are none", TIER, None, False),
    ("a number is neither equal nor different", TIER, {"tier": 1}, None),
    ("nor is nothing", TIER, {"tier": None}, None),
    ("a number beside what is asked for changes nothing", TIER, {"tier": "1", "size": 3}, True),
    ("another label rules out what a number leaves open", BOTH, {"tier": 1, "on": "no"}, False),
    ("labels that are no map may be anything", TIER, ["tier"], None),
    ("who asks for nothing gets everything", {}, ["tier"], True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "selector", "labels", "chosen"), WRITTEN, ids=[r[0] for r in WRITTEN]
)
def test_labels_as_they_were_written(_, selector, labels, chosen):
    assert match_raw_labels(LabelSelector.model_validate(selector), labels) is chosen
