"""What this version cannot do yet is refused by its name, at its place, and never ignored."""

import copy
from pathlib import Path

import pytest
import yaml

from fanout.api.kind_registry import KINDS, field_names_at
from fanout.api.validators.object_validation import validate_object
from fanout.api.validators.unsupported_fields import UNSUPPORTED_FIELDS

EXAMPLES = {
    data["kind"]: data
    for path in sorted((Path(__file__).parent / "examples").glob("*.yaml"))
    for data in (yaml.safe_load(path.read_text()),)
}
# a valid value for each field that is refused whatever it says
VALUES = {
    "approval": {"from": ["sre"]},
    "namespace": "elsewhere",
    "history": 5,
    "policyRef": {"name": "monitoring"},
    "stage": "dev",
    "signingKey": "key",
    "gitEngine": "FastImport",
}


# entries that lists without any get
ENTRIES = {"forges[*].type": {"host": "git.example.com", "secretRef": {"name": "git-example-com"}}}


def place(data, path, value):
    """Put a value where a pattern like ``spec.stages[*].pin`` says, in the last entry of lists."""
    *steps, last = path.replace("[*]", ".*").split(".")
    for step in steps:
        if step == "*":
            data.append(ENTRIES.get(path, {"name": "added"})) if not data else None
            data = data[-1]
        else:
            data = data.setdefault(
                step, {} if step not in ("verification", "mutators", "forges") else []
            )
    if last == "*":
        data.append(value)
    else:
        data[last] = value


@pytest.mark.parametrize(
    "row", UNSUPPORTED_FIELDS, ids=[f"{row.kind}: {row.path}" for row in UNSUPPORTED_FIELDS]
)
def test_every_row_is_refused_by_its_name_and_never_unknown(row):
    for value in row.values or (VALUES[row.path.rpartition(".")[2]],):
        data = copy.deepcopy(EXAMPLES[row.kind])
        place(data, row.path, value)
        model, faults = validate_object(data)
        assert model is None
        name = value if row.values else row.path.rpartition(".")[2]
        refusals = [
            fault for fault in faults if fault.problem.startswith(f"{name} is not supported")
        ]
        assert refusals, faults
        assert refusals[0].remedy == row.remedy
        assert not any("unknown field" in fault.problem for fault in faults)


@pytest.mark.parametrize(
    "row", UNSUPPORTED_FIELDS, ids=[f"{row.kind}: {row.path}" for row in UNSUPPORTED_FIELDS]
)
def test_every_row_is_about_a_field_of_the_schema(row):
    *steps, last = row.path.replace("[*]", "").split(".")
    assert last in field_names_at(KINDS[row.kind], tuple(steps))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("UpstreamPolicy", "spec.draftPer", "Auto"),
        ("UpstreamPolicy", "spec.draftPer", "Variant"),
        ("UpstreamPolicy", "spec.updateStrategy", "resource-merge"),
        ("UpstreamPolicy", "spec.history", 10),
        ("UpstreamPolicy", "spec.stages[*].controlFlow", False),
        ("UpstreamPolicy", "spec.stages[*].propagateWhen", []),
        ("PackageVariant", "spec.deletionPolicy", "Delete"),
        ("PackageVariant", "spec.dependsOn", []),
        ("PromotionPolicy", "spec.merge", "Direct"),
        ("PromotionPolicy", "spec.atClose", "Hold"),
        ("PromotionPolicy", "spec.windows", []),
        ("Repository", "spec.forge", {"type": "none"}),
    ],
)
def test_a_default_that_is_written_out_asks_for_nothing(kind, path, value):
    data = copy.deepcopy(EXAMPLES[kind])
    place(data, path, value)
    assert validate_object(data)[1] == ()


def test_errors_inside_an_unsupported_field_are_not_reported():
    data = copy.deepcopy(EXAMPLES["PackageVariant"])
    data["spec"]["policyRef"] = {"nonsense": 1, "labels": [0]}
    assert [fault.field for fault in validate_object(data)[1]] == ["spec.policyRef"]
