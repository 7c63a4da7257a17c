"""Objects as people write them, right and wrong, and what they get to read."""

from functools import partial
from pathlib import Path

import pytest
import yaml

from fanout.api.field_errors import FieldError
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_validation import is_fanout_object, validate_object

# the parser in C: an example is read for each of hundreds of mistakes
read = partial(yaml.load, Loader=yaml.CSafeLoader)
HERE = Path(__file__).parent
EXAMPLES = {
    data["kind"]: text
    for text in (path.read_text() for path in sorted((HERE / "examples").glob("*.yaml")))
    for data in (read(text),)
}
MISTAKES = read((HERE / "mistakes.yaml").read_text())


def example(kind, old="", new=""):
    """The example of a kind as data, with one text of it replaced."""
    assert old in EXAMPLES[kind], f"the example has no text {old}"
    return read(EXAMPLES[kind].replace(old, new, 1) if old else EXAMPLES[kind])


def faults_of(data):
    model, faults = validate_object(data)
    assert (model is None) == bool(faults)
    return [f"{fault.field}: {fault.problem}; {fault.remedy}" for fault in faults]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_example_of_every_kind_is_valid(kind):
    model, faults = validate_object(example(kind))
    assert faults == ()
    assert model is not None
    assert model.kind == kind


def test_a_function_s_configuration_may_have_keys_that_no_configmap_may_have():
    wanted = "configMap: {app.kubernetes.io/part-of: web}"
    assert faults_of(example("UpstreamPolicy", "configMap: {namespace: monitoring}", wanted)) == []


@pytest.mark.parametrize("row", MISTAKES, ids=[row["sentence"] for row in MISTAKES])
def test_a_mistake_is_reported_with_field_and_remedy(row):
    assert faults_of(example(row["kind"], row["text"], row["instead"])) == row["errors"]


def test_all_faults_of_an_object_are_reported_at_once():
    data = example("UpstreamPolicy", "soak: 24h", "soak: 1d, sok: 1h")
    data["spec"]["upstream"]["package"] = "/x"
    data["spec"]["stages"][0] = 3
    data["spec"]["stages"][1]["after"]["stages"] = ["prod"]
    assert [fault.partition(": ")[0] for fault in faults_of(data)] == [
        "spec.stages[0]",
        "spec.stages[1].after.stages[0]",
        "spec.stages[3].after.soak",
        "spec.stages[3].after.sok",
        "spec.upstream.package",
    ]


def test_two_circles_are_two_faults_and_unknown_stages_do_not_shift_the_place():
    data = example("UpstreamPolicy")
    stages = data["spec"]["stages"]
    stages[0]["after"] = {"stages": ["nowhere", "staging-eu"]}
    stages[2]["after"] = {"stages": ["prod"]}
    assert [fault.partition(":")[0] for fault in faults_of(data)] == [
        "spec.stages[0].after.stages[0]",
        "spec.stages[0].after.stages[1]",
        "spec.stages[2].after.stages[0]",
    ]


def test_no_stages_and_no_targets_are_refused():
    data = example("UpstreamPolicy")
    data["spec"] |= {"stages": [], "targets": []}
    assert faults_of(data) == [
        "spec.stages: is empty; add at least one entry",
        "spec.targets: is empty; add at least one entry",
    ]


@pytest.mark.parametrize("data", ["text", [1], None, 3], ids=repr)
def test_a_value_that_is_no_object_is_refused(data):
    model, faults = validate_object(data)
    assert model is None
    assert faults[0].problem == "is not an object"


def test_zero_is_as_if_absent():
    model, _ = validate_object(example("UpstreamPolicy", "soak: 24h", "soak: 0s"))
    assert isinstance(model, UpstreamPolicy)
    assert model.spec.stages[3].after.soak is None


def test_metadata_and_status_from_the_api_server_are_accepted():
    data = example("Repository")
    data["metadata"] |= {
        "creationTimestamp": None,
        "uid": "5f0c",
        "resourceVersion": "7",
        "generation": 1,
        "managedFields": [{"manager": "kubectl"}],
    }
    data["status"] = {"anything": 1}
    assert faults_of(data) == []


def test_objects_of_other_groups_are_not_ours():
    assert is_fanout_object({"apiVersion": "fanout.dev/v9"})
    assert not is_fanout_object({"apiVersion": "apps/v1"})
    assert not is_fanout_object({"apiVersion": 3})
    assert not is_fanout_object({})


def test_a_path_is_shown_as_people_write_it():
    path = ("metadata", "labels", "example.com/a", "x", 3, "y z")
    assert FieldError(path, "", "").field == 'metadata.labels["example.com/a"].x[3]["y z"]'
