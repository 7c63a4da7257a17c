"""apply-replacements: what is copied from where to where."""

import pytest
from variants.builders import config_map, point, rows
from variants.running import configured_by, kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.package.manifest import Manifest
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec

SOURCE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: values\n  namespace: ns\ndata:\n"
    '  name: web\n  size: "3"\n  path: a/b/c\n'
)
TARGET = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app # ours\n"
    "  labels: {tier: front}\n  annotations:\n    example.com/note: old\nspec:\n"
    "  replicas: 1\n  image: reg/app:1 # pinned\n"
    "  containers:\n  - name: one\n    env:\n    - name: A\n      value: x\n"
    "  - name: two\n    env:\n    - name: A\n      value: y\n    - name: B\n      value: z\n"
)
HEAD = (
    "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: r\n"
    "replacements:\n"
)


def files_with(*replacements, more=None):
    lines = "".join(f"- {text}\n" for text in replacements)
    return {
        "Kptfile": configured_by("apply-replacements"),
        "config.yaml": HEAD + lines,
        "source.yaml": SOURCE,
        "target.yaml": TARGET,
        **(more or {}),
    }


def copy(to, source="data.name", select="{kind: Deployment}", options="{}", refine="{}"):
    return (
        f"{{source: {{kind: ConfigMap, name: values, fieldPath: {source}, options: {refine}}}, "
        f"targets: [{{select: {select}, fieldPaths: ['{to}'], options: {options}}}]}}"
    )


COPIES = [
    ("a text for a text", copy("metadata.name"), ("app # ours", "web # ours")),
    ("a text for a number is text", copy("spec.replicas", "data.size"),
     ("replicas: 1", 'replicas: "3"')),
    ("a field's path with escaped dots", copy(r"metadata.annotations.example\.com/note"),
     ("note: old", "note: web")),
    ("or with brackets", copy("metadata.annotations.[example.com/note]"),
     ("note: old", "note: web")),
    ("an element by its number", copy("spec.containers.1.name"), ("name: two", "name: web")),
    ("an element by a key", copy("spec.containers.[name=two].env.[name=B].value"),
     ("value: z", "value: web")),
    ("every element", copy("spec.containers.*.env.[name=A].value"),
     ("value: x", "value: web", "value: y", "value: web")),
    ("a whole map", copy("metadata.labels", "data", options="{}"),
     ("labels: {tier: front}", 'labels:\n    name: web\n    size: "3"\n    path: a/b/c')),
    ("part of a text", copy("spec.image", options="{delimiter: '/', index: 0}"),
     ("reg/app:1", "web/app:1")),
    ("before it", copy("spec.image", options="{delimiter: '/', index: -1}"),
     ("reg/app:1", "web/reg/app:1")),
    ("behind it", copy("spec.image", options="{delimiter: '/', index: 9}"),
     ("reg/app:1", "reg/app:1/web")),
    ("from part of a text", copy("spec.image", "data.path", refine="{delimiter: '/', index: 1}"),
     ("reg/app:1", "b")),
    ("a field that is not there, when asked for", copy("spec.new.name", options="{create: true}"),
     ("value: z\n", "value: z\n  new:\n    name: web\n")),
    ("an element that is not there, when asked for",
     copy("spec.containers.[name=two].env.[name=C].value", options="{create: true}"),
     ("value: z\n", "value: z\n    - name: C\n      value: web\n")),
    ("by default the name", ("{source: {kind: ConfigMap, name: values}, "
     "targets: [{select: {kind: Deployment}}]}"), ("app # ours", "values # ours")),
    ("a value given in place", "{sourceValue: given, targets: [{select: {kind: Deployment}}]}",
     ("app # ours", "given # ours")),
    ("targets by their labels", copy("metadata.name", select="{labelSelector: 'tier in (front)'}"),
     ("app # ours", "web # ours")),
    ("targets by group and version", copy("metadata.name", select="{group: apps, version: v1}"),
     ("app # ours", "web # ours")),
]  # fmt: skip


@pytest.mark.parametrize(("replacement", "changes"), rows(COPIES))
def test_apply_replacements(replacement, changes):
    expected = TARGET
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in expected
        expected = expected.replace(old, new, 1)
    assert run(files_with(replacement)) == {"target.yaml": expected}


NOT_MEANT = [
    ("another kind", copy("metadata.name", select="{kind: StatefulSet}")),
    ("another version", copy("metadata.name", select="{kind: Deployment, version: v2}")),
    ("another namespace", copy("metadata.name", select="{kind: Deployment, namespace: ns}")),
    ("other labels", copy("metadata.name", select="{kind: Deployment, labelSelector: '!tier'}")),
    ("what is rejected", ("{sourceValue: x, targets: [{select: {kind: Deployment}, "
     "reject: [{kind: Pod}, {name: app}]}]}")),
    ("what is rejected by its labels", ("{sourceValue: x, targets: [{select: {kind: Deployment}, "
     "reject: [{labelSelector: tier=front}]}]}")),
]  # fmt: skip


@pytest.mark.parametrize("replacement", rows(NOT_MEANT))
def test_an_unmatched_target_is_a_warning(replacement):
    files = files_with(replacement)
    assert run(files) == {}
    [warning] = rendered(files).results
    at = "replacements[0].targets[0].select"
    assert warning.sentence.startswith(
        f"apply-replacements: config.yaml:6: {at}: no object is selected by "
    )


def test_a_warning_names_the_target_that_selects_nothing_and_the_others_are_made():
    second = "{kind: StatefulSet, labelSelector: a=b}"
    files = files_with(copy("metadata.name"), copy("metadata.name", select=second))
    assert list(run(files)) == ["target.yaml"]
    [warning] = rendered(files).results
    assert warning.severity == "warning"
    assert warning.sentence == (
        "apply-replacements: config.yaml:7: replacements[1].targets[0].select: "
        "no object is selected by kind StatefulSet, its labels"
    )


def test_a_number_for_a_text_becomes_text():
    backwards = (
        "{source: {kind: Deployment, fieldPath: spec.replicas}, "
        "targets: [{select: {kind: ConfigMap, name: values}, fieldPaths: [data.name]}]}"
    )
    assert run(files_with(backwards)) == {"source.yaml": SOURCE.replace("name: web", 'name: "1"')}


def test_a_later_replacement_copies_what_an_earlier_one_has_put_there():
    chain = (
        copy("metadata.name"),
        (
            "{source: {kind: Deployment}, targets: [{select: {kind: Deployment}, "
            "fieldPaths: [spec.image]}]}"
        ),
    )
    text = run(files_with(*chain))["target.yaml"]
    assert "image: web # pinned" in text


def test_an_injected_value_is_copied_for_every_target():
    entry = copy("metadata.name").replace("name: values", "name: settings")
    files = files_with(entry, more={"point.yaml": f"{point()}data:\n  name: example\n"})
    for target in ("eu", "us"):
        result = rendered(files, objects=(config_map(target, data={"name": f"in-{target}"}),),
                          injectors=(InjectorSpec(target),))  # fmt: skip
        text = result.blobs[result.entries["target.yaml"].oid].decode()
        assert f"name: in-{target} # ours" in text


def test_the_name_in_the_package_context_is_copied():
    entry = copy("metadata.name").replace("name: values", "name: kptfile.kpt.dev")
    text = run(files_with(entry), path="clusters/eu/shop")["target.yaml"]
    assert "name: shop # ours" in text


def test_apply_replacements_sees_only_selected_objects():
    files = files_with(copy("metadata.name"))
    files["Kptfile"] = kptfile(
        "{image: apply-replacements, configPath: config.yaml, exclude: [{kind: ConfigMap}]}"
    )
    with pytest.raises(InvalidInput, match="nothing matches kind ConfigMap, name values"):
        run(files)


REFUSED = [
    ("two objects of the source", "{source: {version: v1}, targets: [{select: {kind: Pod}}]}",
     "Kptfile:7: Kptfile: pipeline.mutators[0]: apply-replacements: replacements[0].source: "),
    ("a source that is not there", copy("a", "data.none"),
     "replacements[0].source.fieldPath (data.none) has no value in ConfigMap/values"),
    ("an index out of bounds", copy("metadata.name", "data.path",
     refine="{delimiter: '/', index: 3}"), "source.options.index 3: the value has 3 parts"),
    ("a delimiter for a map", copy("metadata.name", "data", refine="{delimiter: '/'}"),
     "source.options.delimiter needs a string"),
    ("a delimiter in a map", copy("metadata", options="{delimiter: '/'}"),
     ("target.yaml:3: Deployment/app: metadata: apply-replacements: "
     "replacements[0].targets[0].fieldPaths[0] (metadata): delimiter needs a string")),
    ("a target that is not there", copy("spec.none"),
     ("target.yaml:8: Deployment/app: spec: apply-replacements: "
     "replacements[0].targets[0].fieldPaths[0] (spec.none): the object has no such field; "
     "correct the path, or set options.create")),
    ("a target that is not there in an element", copy("spec.containers.[name=two].env.9.value"),
     "target.yaml:17: Deployment/app: spec.containers[1].env: apply-replacements: "),
    ("the second path of the second target", ("{sourceValue: x, targets: ["
     "{select: {kind: Deployment}}, "
     "{select: {kind: Deployment}, fieldPaths: [metadata.name, spec.b]}]}"),
     "replacements[0].targets[1].fieldPaths[1] (spec.b): the object has no such field"),
    ("a target below a text", copy("spec.image.tag", options="{create: true}"),
     ("target.yaml:10: Deployment/app: spec.image: apply-replacements: "
     "replacements[0].targets[0].fieldPaths[0] (spec.image.tag): tag does not exist")),
    ("an element far behind a list", copy("spec.containers.7.name", options="{create: true}"),
     "7 does not exist"),
    ("no source", "{targets: [{select: {kind: Pod}}]}", "replacements[0]: one source is required"),
    ("no target", "{sourceValue: a}", "replacements[0].targets is not a list with entries"),
    ("a target that selects nothing", "{sourceValue: a, targets: [{}]}",
     "replacements[0].targets[0].select is not a map"),
    ("an unknown field", "{sourceValue: a, path: b, targets: [{select: {}}]}",
     "unknown field replacements[0].path"),
    ("an unknown field of a selector", "{sourceValue: a, targets: [{select: {labels: b}}]}",
     "unknown field replacements[0].targets[0].select.labels"),
    ("a selector that is none", "{sourceValue: a, targets: [{select: {labelSelector: 'a~b'}}]}",
     "replacements[0].targets[0].select: 'a~b' is not a label selector"),
    ("a number for text", "{sourceValue: 1, targets: [{select: {}}]}",
     "replacements[0].sourceValue is not a string"),
    ("an index that is not a number", copy("a", options="{index: x}"),
     ("index is not a whole"
      " number")),
    ("a wildcard where something is to be made", copy("a.*", options="{create: true}"),
     "options.create and * exclude each other"),
    ("a bracket that does not close", copy("a.[b=c"), "the field path a.[b=c has an open bracket"),
    ("an empty part", copy("a..b"), "has an empty part"),
    ("everything rejected", "{sourceValue: a, targets: [{select: {}, reject: [{}]}]}",
     "reject[0] rejects everything"),
]  # fmt: skip


@pytest.mark.parametrize(("replacement", "sentence"), rows(REFUSED))
def test_a_malformed_replacement_is_refused(replacement, sentence):
    with pytest.raises(InvalidInput) as caught:
        run(files_with(replacement))
    assert sentence in str(caught.value)


def test_a_policy_cannot_configure_it():
    with pytest.raises(InvalidInput, match=r"name a .* ApplyReplacements by configPath"):
        run({}, FunctionSpec("apply-replacements", config={"a": "b"}))


def test_the_older_kind_of_its_configuration_is_understood():
    files = files_with(copy("metadata.name"))
    files["config.yaml"] = (
        files["config.yaml"]
        .replace("fn.kpt.dev", "kpt.dev")
        .replace("kind: ApplyReplacements", "kind: Replacements")
    )
    text = run(files)["target.yaml"]
    assert Manifest.parse(text.encode(), "x").documents[0].value["metadata"]["name"] == "web"


VERSIONS = [
    ("v0.1.1 skips", "gcr.io/kpt-fn/apply-replacements:v0.1.1", True),
    ("v0.1 skips", "apply-replacements:v0.1", True),
    ("v0.1.0 skips", "ghcr.io/kptdev/krm-functions-catalog/apply-replacements:v0.1.0", True),
    ("v0.1.2 refuses", "apply-replacements:v0.1.2", False),
    ("the newest refuses", "apply-replacements", False),
    ("a digest refuses", f"apply-replacements@sha256:{'0' * 64}", False),
]


@pytest.mark.parametrize(("image", "skips"), rows(VERSIONS))
def test_a_missing_field_is_skipped_by_old_versions(image, skips):
    files = {**files_with(copy("spec.none")), "Kptfile": configured_by(image)}
    if not skips:
        with pytest.raises(InvalidInput, match="the object has no such field"):
            run(files)
        return
    result = rendered(files)
    assert run(files) == {}
    assert [(it.severity, it.sentence) for it in result.results] == [
        (
            "warning",
            (
                "apply-replacements: config.yaml:6: replacements[0].targets[0].fieldPaths[0]:"
                " 1 selected object without spec.none, which v0.1 of the function skips and newer"
                " ones refuse"
            ),
        )
    ]


def test_a_field_that_some_objects_lack_is_set_in_the_others():
    files = {
        **files_with(copy("spec.replicas", select="{version: v1}")),
        "Kptfile": kptfile("{image: apply-replacements, tag: v0.1.1, configPath: config.yaml}"),
    }
    changed_files = run(files)
    assert "replicas: web" in changed_files["target.yaml"]
    [result] = rendered(files).results
    assert (result.severity, result.message.split(",")[0]) == (
        "info",
        "2 selected objects without spec.replicas",
    )
