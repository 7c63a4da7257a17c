"""upsert-resource and remove-local-config-resources: functions that add and take away objects."""

import pytest
from variants.builders import KPTFILE, config_map, package, point, rows, spec
from variants.running import configured_by, kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.package.tree_ids import tree_id
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec
from fanout.variants.manifest_objects import find_duplicates
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

REMOVE = FunctionSpec("remove-local-config-resources")
NAMESPACE = FunctionSpec("set-namespace", config={"namespace": "edge"})
LOCAL = "metadata:\n  name: x\n  annotations:\n    config.kubernetes.io/local-config: 'true'\n"
TOOL = f"apiVersion: v1\nkind: ConfigMap\n{LOCAL}"
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: web # ours\nspec:\n  a: b # why\n  c: d\n"
)

REMOVED = [
    ("a file of its own goes", {"a.yaml": TOOL}, {"a.yaml": None}),
    ("of a file of several documents the others stay as they are",
     {"a.yaml": f"# top\n{SERVICE}---\n{TOOL}---\n# last\n{SERVICE}"},
     {"a.yaml": f"# top\n{SERVICE}---\n# last\n{SERVICE}"}),
    ("the first goes with its comment", {"a.yaml": f"# top\n{TOOL}---\n{SERVICE}"},
     {"a.yaml": SERVICE}),
    ("the last leaves no separator", {"a.yaml": f"{SERVICE}---\n{TOOL}"}, {"a.yaml": SERVICE}),
    ("a directory goes with its last file", {"tools/a.yaml": TOOL}, {"tools/a.yaml": None}),
    ("in whatever case it is written", {"a.yaml": TOOL.replace("'true'", "'True'")},
     {"a.yaml": None}),
    ("another value stays", {"a.yaml": TOOL.replace("'true'", "'false'")}, {}),
    ("a JSON file", {"a.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"'
     ', "annotations": {"config.kubernetes.io/local-config": "true"}}}'}, {"a.json": None}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), rows(REMOVED))
def test_remove_local_config_resources(files, expected):
    assert run(files, REMOVE) == expected


def test_the_package_context_goes_and_the_kptfile_stays():
    result = rendered({"a.yaml": SERVICE}, REMOVE)
    assert result.entries.keys() == {"Kptfile", "a.yaml"}
    assert result.tree == tree_id(result.entries)


def test_removed_objects_are_not_seen_by_later_functions():
    files = {"a.yaml": f"{TOOL}---\n{SERVICE}"}
    moved = SERVICE.replace("web # ours\n", "web # ours\n  namespace: edge\n")
    assert run(files, REMOVE, NAMESPACE) == {"a.yaml": moved}


def test_an_injection_point_may_go():
    marked = point().replace(
        "annotations:", "annotations:\n    config.kubernetes.io/local-config: 'true'"
    )
    files = {"a.yaml": f"{marked}data: {{}}\n---\n{SERVICE}"}
    result = rendered(
        files, REMOVE, objects=(config_map("eu", data={"a": "b"}),), injectors=(InjectorSpec("eu"),)
    )
    assert result.blobs[result.entries["a.yaml"].oid].decode() == SERVICE


NEW = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web # theirs\nspec:\n  a: e\n  c: d\n"
LISTED = "apiVersion: v1\nkind: List\nitems:\n"


def listed(*texts, head=LISTED):
    items = "".join("- " + text.replace("\n", "\n  ").rstrip(" ") for text in texts)
    return {"Kptfile": configured_by("upsert-resource"), "config.yaml": f"{head}{items}"}


def named(name, text=NEW, **notes):
    lines = "".join(f"    config.kubernetes.io/{key}: {value}\n" for key, value in notes.items())
    text = text.replace("web # theirs", name)
    return text.replace("spec:", f"  annotations:\n{lines}spec:") if notes else text


PLAIN = NEW.replace(" # theirs", "")
UPSERTED = [
    ("what is there is changed where it differs, comments stay",
     {**listed(NEW), "a.yaml": SERVICE}, {"a.yaml": SERVICE.replace("b # why", "e # why")}),
    ("a field that the new one has not goes", {**listed(NEW), "a.yaml": f"{SERVICE}  f: g\n"},
     {"a.yaml": SERVICE.replace("b # why", "e # why")}),
    ("every instance is replaced", {**listed(PLAIN), "a.yaml": f"{SERVICE}---\n{SERVICE}"},
     {"a.yaml": f"{SERVICE}---\n{SERVICE}".replace("b # why", "e # why")}),
    ("what is not there gets a file of its own", listed(named("new")),
     {"service_new.yaml": named("new")}),
    ("below its namespace", listed(NEW.replace("web # theirs", "new\n  namespace: ns")),
     {"ns/service_new.yaml": NEW.replace("web # theirs", "new\n  namespace: ns")}),
    ("or the file that it asks for, which it does not keep",
     listed(named("new", **{"target-path": "sub/x.yaml"})), {"sub/x.yaml": named("new")}),
    ("behind what is in that file", {**listed(named("new", **{"target-path": "a.yaml"})),
     "a.yaml": SERVICE}, {"a.yaml": f"{SERVICE}---\n{named('new')}"}),
    ("one that is in another file than asked for is not it",
     {**listed(named("web", **{"target-path": "b.yaml"})), "a.yaml": SERVICE},
     {"b.yaml": named("web")}),
    ("another namespace is another object",
     {**listed(NEW.replace("web # theirs", "web\n  namespace: ns")), "a.yaml": SERVICE},
     {"ns/service_web.yaml": NEW.replace("web # theirs", "web\n  namespace: ns")}),
    ("another version of the group is the same object",
     {**listed(PLAIN.replace("v1", "apps/v2")), "a.yaml": PLAIN.replace("v1", "apps/v1")},
     {"a.yaml": PLAIN.replace("v1", "apps/v2")}),
    ("several at once", listed(named("new"), named("other")),
     {"service_new.yaml": named("new"), "service_other.yaml": named("other")}),
    ("several in one new file", listed(named("one", **{"target-path": "x.yaml"}),
     named("two", **{"target-path": "x.yaml"})),
     {"x.yaml": f"{named('one')}---\n{named('two')}"}),
    ("one that is there as it is", {**listed(PLAIN), "a.yaml": PLAIN}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), rows(UPSERTED))
def test_resource_functions_upsert(files, expected):
    assert run(files) == expected


def test_an_object_that_is_its_own_configuration_is_there_already():
    files = {"Kptfile": configured_by("upsert-resource"), "config.yaml": NEW, "a.yaml": SERVICE}
    assert run(files) == {"a.yaml": SERVICE.replace("b # why", "e # why")}


def example(text):
    """A plain object as the configuration, which is for tools alone, and says something more."""
    notes = f"  annotations:\n    {LOCAL_CONFIG}: 'true'\n    note: mine\n"
    return {"Kptfile": configured_by("upsert-resource"),
            "config.yaml": text.replace("spec:", f"{notes}spec:")}  # fmt: skip


NOTED = PLAIN.replace("spec:", "  annotations:\n    note: mine\nspec:")
EXAMPLES = [
    ("is put into the package", {}, {"service_web.yaml": NOTED}),
    ("takes the place of the object", {"a.yaml": SERVICE},
     {"a.yaml": SERVICE.replace("# ours\n", "# ours\n  annotations:\n    note: mine\n")
      .replace("b # why", "e # why")}),
    ("leaves alone what is called like it for other tools",
     {"t.yaml": example(PLAIN)["config.yaml"].replace("e", "x")}, {"service_web.yaml": NOTED}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), rows(EXAMPLES))
def test_a_plain_object_that_is_for_tools_alone(files, expected):
    assert run({**example(PLAIN), **files}) == expected


CONFIGURATIONS = [
    ("a plain object", example(PLAIN)),
    (
        "a List",
        listed(NEW, head=LISTED.replace("items:", f"{LOCAL}items:").replace("  name: x\n", "")),
    ),
]


@pytest.mark.parametrize("files", rows(CONFIGURATIONS))
def test_objects_for_tools_alone_are_no_duplicates(files):
    files = {**files, "a.yaml": SERVICE}
    result = rendered(files)
    after = {
        path: Manifest.parse(result.blobs.get(entry.oid) or files[path].encode(), path)
        for path, entry in result.entries.items()
    }
    assert not list(find_duplicates(after, after))


def test_later_functions_see_what_was_added():
    entries = ("{image: upsert-resource, configPath: config.yaml}",
               "{image: set-namespace, configMap: {namespace: edge}}")  # fmt: skip
    files = {**listed(named("new")), "Kptfile": kptfile(*entries)}
    expected = NEW.replace("web # theirs", "new\n  namespace: edge")
    assert run(files) == {"service_new.yaml": expected}


def test_an_upserted_object_can_be_removed():
    tool = named("new", **{"local-config": "'true'"})
    entries = ("{image: upsert-resource, configPath: config.yaml}",
               "image: remove-local-config-resources")  # fmt: skip
    assert run({**listed(tool), "Kptfile": kptfile(*entries)}) == {}


def test_a_subpackage_s_objects_are_added_below_it():
    files = {f"sub/{path}": text for path, text in listed(named("new")).items()}
    assert run(files) == {"sub/service_new.yaml": named("new")}


def test_targets_differ_in_what_is_added_and_agree_in_their_ids():
    prepared = prepare_package(package(listed(named("new"))), RenderLimits())
    for name in ("eu", "us"):
        variant = spec(name=name, path=f"clusters/{name}")
        result = render_variant(
            prepared, variant, resolve_inputs(prepared, variant, ClusterObjectIndex(()))
        )
        assert result.tree == tree_id(result.entries)
        assert {entry.oid for entry in result.entries.values()} >= result.blobs.keys()


REFUSED = [
    ("no object", {"config.yaml": "apiVersion: v1\nkind: Service\n"},
     ("not an object with"
      " apiVersion")),
    ("a List without items", {"config.yaml": "apiVersion: v1\nkind: List\nitems: x\n"},
     "items is not a list"),
    ("a path out of the package", listed(named("x", **{"target-path": "../x.yaml"})), "../x.yaml"),
    ("a path that is no YAML file", listed(named("x", **{"target-path": "x.txt"})),
     "x.txt is not the name of a YAML file"),
    ("a Kptfile's path", listed(named("x", **{"target-path": "Kptfile"})), "not the name of a"),
    ("a name that is no file's", listed(named("'a/../../b'")), "upsert-resource:"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "sentence"), rows(REFUSED))
def test_upsert_resource_refuses(files, sentence):
    with pytest.raises(InvalidInput) as caught:
        run({**files, "Kptfile": configured_by("upsert-resource")})
    assert sentence in str(caught.value)
    assert "upsert-resource" in str(caught.value)


def test_a_policy_cannot_upsert_a_map_of_texts():
    with pytest.raises(InvalidInput, match=r"set configPath to"):
        run({"Kptfile": KPTFILE}, FunctionSpec("upsert-resource", config={"a": "b"}))
