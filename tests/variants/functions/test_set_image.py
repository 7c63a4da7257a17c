"""set-image: which images are replaced, and by what."""

import pytest
from variants.builders import rows
from variants.functions import changes, function_config, thing

from fanout.errors import InvalidInput
from fanout.variants.function_registry import FUNCTIONS_BY_NAME

DIGEST = "sha256:" + "0" * 64
TAG = {"name": "nginx", "newTag": "1.27"}
NAME = {"name": "nginx", "newName": "mirror.example.com:5000/nginx"}
PINNED = {"name": "nginx", "digest": DIGEST}

IMAGES = [
    ("a new tag replaces the tag", TAG, "nginx:1.25", "nginx:1.27"),
    ("a new tag is given to what has none", TAG, "nginx", "nginx:1.27"),
    ("a new tag takes the place of a digest", TAG, f"nginx@{DIGEST}", "nginx:1.27"),
    ("and of tag and digest together", TAG, f"nginx:1@{DIGEST}", "nginx:1.27"),
    ("a new name keeps the tag and its separator", NAME, "nginx:1.25",
     "mirror.example.com:5000/nginx:1.25"),
    ("a new name keeps tag and digest", NAME, f"nginx:1@{DIGEST}",
     f"mirror.example.com:5000/nginx:1@{DIGEST}"),
    ("a new name alone for what has neither", NAME, "nginx", "mirror.example.com:5000/nginx"),
    ("a digest takes the place of the tag", PINNED, "nginx:1.25", f"nginx@{DIGEST}"),
    ("name and tag together", {**NAME, **TAG}, "nginx:1",
     "mirror.example.com:5000/nginx:1.27"),
    ("a registry's port is no tag", {"name": "a.example.com:5000/web", "newTag": "2"},
     "a.example.com:5000/web", "a.example.com:5000/web:2"),
    ("an image of a longer name is another one", TAG, "nginx-exporter:1", None),
    ("an image of another repository is another one", TAG, "bitnami/nginx:1", None),
    ("one that is there already stays", TAG, "nginx:1.27", None),
    ("what is not a string stays", TAG, 7, None),
]  # fmt: skip


@pytest.mark.parametrize(("config", "image", "expected"), rows(IMAGES))
def test_an_image(config, image, expected):
    pod = thing("v1", "Pod", spec={"containers": [{"name": "a", "image": image}]})
    wanted = {"spec.containers.0.image": expected} if expected else {}
    assert changes("set-image", function_config(**config), pod) == wanted


POD = {
    "containers": [{"image": "nginx:1"}, {"image": "other:1"}],
    "initContainers": [{"image": "nginx:1"}],
    "ephemeralContainers": [{"image": "nginx:1"}],
}
IN_POD = {"containers.0.image", "initContainers.0.image", "ephemeralContainers.0.image"}
TEMPLATE = {"template": {"spec": POD}}

PLACES = [
    ("in a Pod", thing("v1", "Pod", spec=POD), "spec."),
    ("in a pod template", thing("v1", "PodTemplate", template={"spec": POD}), "template.spec."),
    ("in a Deployment", thing("apps/v1", "Deployment", spec=TEMPLATE), "spec.template.spec."),
    ("in a Job", thing("batch/v1", "Job", spec=TEMPLATE), "spec.template.spec."),
    ("in a CronJob", thing("batch/v1", "CronJob", spec={"jobTemplate": {"spec": TEMPLATE}}),
     "spec.jobTemplate.spec.template.spec."),
    ("in a custom workload of the usual shape",
     thing("example.com/v1", "Rollout", spec=TEMPLATE), "spec.template.spec."),
]  # fmt: skip


@pytest.mark.parametrize(("item", "prefix"), rows(PLACES))
def test_containers_of_all_sorts_are_found(item, prefix):
    field_changes = changes("set-image", function_config(**TAG), item)
    assert field_changes == {f"{prefix}{path}": "nginx:1.27" for path in IN_POD}


def test_a_definition_of_such_fields_has_no_images():
    crd = thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=POD)
    assert changes("set-image", function_config(**TAG), crd) == {}


def own(rows_, **image):
    return {
        "apiVersion": "fn.kpt.dev/v1alpha1",
        "kind": "SetImage",
        "image": {**TAG, **image},
        "additionalImageFields": rows_,
    }


FURTHER = [
    ("a further field in a list", [{"path": "spec/images[]/image", "kind": "Gadget"}],
     {"images": [{"image": "nginx:1"}]}, {"spec.images.0.image": "nginx:1.27"}),
    ("it is not made unasked", [{"path": "spec/image"}], {"a": 1}, {}),
    ("it is made where that is asked for", [{"path": "spec/image", "create": True}], {"a": 1},
     {"spec.image": "nginx:1.27"}),
    ("in another group it is not meant", [{"path": "spec/image", "group": "apps"}],
     {"image": "nginx:1"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "content", "expected"), rows(FURTHER))
def test_additional_fields(extra, content, expected):
    item = thing("example.com/v1", "Gadget", spec=content)
    assert changes("set-image", own(extra), item) == expected


REFUSED = [
    ("no name", function_config(newTag="1"), "data.name is missing"),
    ("a name with a tag", function_config(name="nginx:1", newTag="1"), "data.name has a tag"),
    ("nothing new", function_config(name="nginx"), "no new image is set"),
    ("a tag and a digest", function_config(**TAG, digest=DIGEST), "newTag and digest"),
    ("an unknown field", function_config(**TAG, newtag="1"), "unknown field data.newtag"),
    ("a number", function_config(name="nginx", newTag=1), "data.newTag is not a string"),
    ("an unknown field of its kind", own([], tag="1"), "unknown field image.tag"),
    ("a further field without path", own([{"kind": "A"}]), "additionalImageFields: path"),
    ("further fields that are no list", own("a"), "additionalImageFields is not a list"),
    ("another kind", {"apiVersion": "v1", "kind": "Pod"}, "of kind Pod"),
]


@pytest.mark.parametrize(("config", "sentence"), rows(REFUSED))
def test_a_configuration_is_refused_with(config, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        FUNCTIONS_BY_NAME["set-image"].configure(config)
