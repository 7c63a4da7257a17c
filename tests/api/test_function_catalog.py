"""Which functions an image means, and what policies say of functions that cannot be."""

import copy
from pathlib import Path

import pytest
import yaml

from fanout.api.function_catalog import IN_PROCESS_FUNCTIONS, catalog_name, full_image
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object

VARIANT = yaml.safe_load((Path(__file__).parent / "examples/package-variant.yaml").read_text())


@pytest.mark.parametrize(
    ("image", "function"),
    [
        ("set-labels", "set-labels"),
        ("set-labels:v0.2", "set-labels"),
        ("ghcr.io/kptdev/krm-functions-catalog/set-namespace", "set-namespace"),
        ("ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1", "set-namespace"),
        ("gcr.io/kpt-fn/set-annotations:v0.1.4", "set-annotations"),
        ("gcr.io/kpt-fn/starlark:v0.4.3", "starlark"),
        ("example.com/set-labels", ""),
        ("set-labels@sha256:00", "set-labels"),
        ("", ""),
    ],
)
def test_an_image_of_the_catalog_has_a_name(image, function):
    assert catalog_name(image) == function


@pytest.mark.parametrize(
    ("image", "tag", "whole"),
    [
        ("starlark", "", "ghcr.io/kptdev/krm-functions-catalog/starlark"),
        ("starlark:v1", "", "ghcr.io/kptdev/krm-functions-catalog/starlark:v1"),
        ("starlark:v1", "v2", "ghcr.io/kptdev/krm-functions-catalog/starlark:v2"),
        ("localhost:5000/fn", "v2", "localhost:5000/fn:v2"),
        ("localhost:5000/fn@sha256:00", "", "localhost:5000/fn@sha256:00"),
    ],
)
def test_a_bare_name_is_an_image_of_the_catalog_and_a_tag_wins(image, tag, whole):
    assert full_image(image, tag) == whole


def faults(pipeline):
    data = copy.deepcopy(VARIANT)
    data["spec"]["pipeline"] = pipeline
    return [f"{fault.field}: {fault.problem}; {fault.remedy}" for fault in validate_object(data)[1]]


REFUSED = [
    ("a function that nobody knows", {"mutators": [{"image": "set-namspace"}]},
     "mutators[0].image: there is no function set-namspace; did you mean set-namespace?"),
    ("a function that nobody could mean", {"validators": [{"image": "zzz"}]},
     ("validators[0].image: there is no function zzz;"
      f" use one of {', '.join(IN_PROCESS_FUNCTIONS)}")),
    ("texts for a function that needs an object", {"mutators": [{"image": "upsert-resource"}]},
     ("mutators[0].configPath: upsert-resource needs a configuration object;"
     " set it to a file of the package")),
    ("an image and an executable", {"validators": [{"image": "kubeval", "exec": "fn"}]},
     "validators[0]: image and exec exclude each other; keep one of them"),
    ("two configurations",
     {"mutators": [{"image": "set-image", "configPath": "a.yaml", "configMap": {"name": "a"}}]},
     "mutators[0]: configMap and configPath exclude each other; keep one of them"),
    ("a configuration outside the package",
     {"mutators": [{"image": "set-image", "configPath": "../a.yaml"}]},
     ("mutators[0].configPath: the path '../a.yaml' is outside the package; name a file of the"
     " package")),
    ("a selector of nothing", {"mutators": [{"image": "set-image", "selectors": [{}]}]},
     "mutators[0].selectors[0]: the selector is empty; set at least one field, or remove it"),
    ("a field that selectors do not have",
     {"mutators": [{"image": "set-image", "exclude": [{"names": "a"}]}]},
     "mutators[0].exclude[0].names: unknown field"),
    ("two functions of one name",
     {"validators": [{"image": "kubeval", "name": "a"}, {"exec": "fn", "name": "a"}]},
     "validators[1].name: duplicate name a; rename one function"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pipeline", "problem"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_variant_is_refused_with(pipeline, problem):
    [fault] = faults(pipeline)
    assert fault.startswith(f"spec.pipeline.{problem}")


def test_all_of_a_kptfile_s_pipeline_may_stand_in_a_variant():
    selected = {"kind": "Deployment", "labels": {"app": "web"}}
    assert faults(
        {
            "mutators": [
                {"image": "apply-replacements", "configPath": "replace.yaml", "name": "copy"},
                {"exec": "/usr/local/bin/fn", "selectors": [selected], "exclude": [selected]},
                {"image": "starlark", "tag": "v0.5"},
            ],
            "validators": [{"image": "kubeconform", "configMap": {"strict": "true"}}],
        }
    ) == []  # fmt: skip


def test_a_function_that_an_administrator_must_allow_is_a_warning():
    data = copy.deepcopy(VARIANT)
    data["spec"]["pipeline"] = {
        "mutators": [{"image": "set-labels", "configMap": {"a": "b"}}, {"image": "gatekeeper:v1"}],
        "validators": [{"exec": "fn"}],
    }
    warnings = [
        fault for _, fault in cross_check([validate_object(data)[0]]) if fault.severity == "warning"
    ]
    assert [f"{fault.field}: {fault.problem}" for fault in warnings] == [
        (
            "spec.pipeline.mutators[1].image: gatekeeper:v1 does not run in process:"
            " it fails unless it is allowed"
        ),
        (
            "spec.pipeline.validators[0].exec: fn does not run in process: it fails unless it is"
            " allowed"
        ),
    ]
