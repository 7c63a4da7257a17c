"""The files that a variant gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import KPTFILE, by, config_map, package, point, rows, site, spec

from fanout.errors import InvalidInput
from fanout.package.manifest import Manifest
from fanout.package.tree_ids import blob_id, tree_id
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web # ours\n"
NAMESPACE = FunctionSpec("set-namespace", config={"namespace": "edge"})


def rendered(upstream, objects=(), **fields):
    prepared = prepare_package(upstream, RenderLimits())
    variant = spec(**fields)
    return render_variant(
        prepared, variant, resolve_inputs(prepared, variant, ClusterObjectIndex(objects))
    )


def files_of(upstream, objects=(), **fields):
    result = rendered(upstream, objects, **fields)
    blobs = {entry.oid: data for entry, data in upstream.files.values()} | dict(result.blobs)
    return {path: blobs[entry.oid].decode() for path, entry in result.entries.items()}


def object_in(text, index=0):
    return Manifest.parse(text.encode(), "x.yaml").documents[index].value


def kptfile(files, **fields):
    return object_in(files_of(package(files), **fields)["Kptfile"])


# ---- what stays --------------------------------------------------------------------------------


def test_files_without_change_are_upstream_s_own():
    upstream = package({"a.md": "text", "sub/b.yaml": SERVICE})
    result = rendered(upstream)
    for path in ("a.md", "sub/b.yaml"):
        assert result.entries[path] == upstream.files[path][0]
        assert result.entries[path].oid not in result.blobs


def test_ids_are_git_s():
    result = rendered(package({"sub/b.yaml": SERVICE, "sub.d/c": "x"}), mutators=(NAMESPACE,))
    assert result.tree == tree_id(result.entries)
    assert all(oid == blob_id(data) for oid, data in result.blobs.items())
    ids = {entry.oid for entry in result.entries.values()}
    assert result.blobs.keys() <= ids


def test_an_executable_stays_one():
    upstream = package({})
    files = dict(upstream.files)
    entry, data = files["Kptfile"]
    files["Kptfile"] = (entry._replace(mode="100755"), data)
    upstream = package({}).__class__(
        upstream.repository, upstream.directory, upstream.revision, upstream.tree, files
    )
    assert rendered(upstream).entries["Kptfile"].mode == "100755"


def test_comments_and_layout_stay():
    text = files_of(package({"a.yaml": SERVICE}), mutators=(NAMESPACE,))["a.yaml"]
    assert text == f"{SERVICE}  namespace: edge\n"


# ---- the Kptfile -------------------------------------------------------------------------------


def test_the_kptfile_names_the_variant_and_its_origin():
    item = kptfile({}, labels={"region": "eu"}, annotations={"team": "edge"})
    git = {"repo": "https://git.example.com/blueprints.git", "directory": "/monitoring"}
    assert item["metadata"] == {
        "name": "monitoring", "labels": {"region": "eu"}, "annotations": {"team": "edge"}
    }  # fmt: skip
    assert item["upstream"] == {
        "type": "git", "git": {**git, "ref": "monitoring/v1"}, "updateStrategy": "resource-merge"
    }  # fmt: skip
    lock = {**git, "ref": "monitoring/v1", "commit": "c" * 40}
    assert item["upstreamLock"] == {"type": "git", "git": lock}


ORIGINS = [
    ("a package at the root has a plain tag", {"directory": ""}, "/", "v1"),
    ("a state without a tag is named by its commit", {"name": "c" * 40}, "/monitoring", "c" * 40),
    ("a nested package has its path before the tag", {"directory": "a/b"}, "/a/b", "a/b/v1"),
]


@pytest.mark.parametrize(("fields", "directory", "ref"), rows(ORIGINS))
def test_origins(fields, directory, ref):
    item = object_in(files_of(package({}, **fields))["Kptfile"])
    assert item["upstream"]["git"]["directory"] == directory
    assert item["upstream"]["git"]["ref"] == item["upstreamLock"]["git"]["ref"] == ref


def test_an_upstream_that_was_cloned_itself_is_not_the_origin():
    text = f"{KPTFILE}upstream:\n  type: git\n  git: {{repo: elsewhere}}\n"
    assert kptfile({"Kptfile": text})["upstream"]["git"]["repo"].endswith("blueprints.git")


PIPELINES = [
    ("in lines", "\n  mutators:\n  # first\n  - image: set-labels\n    configMap: {a: b}\n"),
    ("on one line", " {mutators: [{image: set-labels, configMap: {a: b}}]}\n"),
    ("indented", "\n  mutators:\n    - image: set-labels\n      configMap:\n        a: b\n"),
]


@pytest.mark.parametrize("text", rows(PIPELINES))
def test_functions_of_the_policy_come_before_those_of_the_package(text):
    item = kptfile({"Kptfile": f"{KPTFILE}pipeline:{text}"}, mutators=(NAMESPACE,))
    assert item["pipeline"]["mutators"] == [
        {"image": "set-namespace", "name": "PackageVariant.monitoring-eu.set-namespace.0",
         "configMap": {"namespace": "edge"}},
        {"image": "set-labels", "configMap": {"a": "b"}},
    ]  # fmt: skip


def test_conditions_and_gates_are_added_to_those_that_are_there():
    text = (
        f"{KPTFILE}info:\n  readinessGates:\n  - conditionType: z.example.com # theirs\n"
        "status:\n  conditions:\n  - {type: z.example.com, status: 'True'}\n"
        "  - {type: config.injection.ConfigMap.settings, status: 'True', reason: Old, message: m}\n"
    )
    item = kptfile({"Kptfile": text, "a.yaml": point(), "b.yaml": point(name="b", mark="optional")})
    assert [gate["conditionType"] for gate in item["info"]["readinessGates"]] == [
        "z.example.com", "config.injection.ConfigMap.settings"
    ]  # fmt: skip
    problem = {"status": "False", "reason": "NoResourceSelected",
               "message": "the variant has no injectors"}  # fmt: skip
    assert item["status"]["conditions"] == [
        {"type": "z.example.com", "status": "True"},
        {"type": "config.injection.ConfigMap.settings", **problem},
        {"type": "config.injection.ConfigMap.b", **problem},
    ]


# ---- package context ---------------------------------------------------------------------------

CONTEXT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n"
    "data:\n  name: example\n  region: none # of the cluster\n"
)


def test_the_package_context_is_made_where_it_is_missing():
    item = object_in(files_of(package({}), context={"a": "yes"})["package-context.yaml"])
    assert item["data"] == {
        "name": "monitoring", "package-path": "clusters/eu/monitoring", "a": "yes"
    }  # fmt: skip
    assert item["metadata"]["annotations"] == {"config.kubernetes.io/local-config": "true"}


def test_the_package_context_is_extended_where_it_is_there():
    text = files_of(package({"package-context.yaml": CONTEXT}), context={"region": "eu"})
    assert "  name: monitoring\n  region: eu # of the cluster\n" in text["package-context.yaml"]


@pytest.mark.parametrize("context", [{}, {"region": "eu"}])
def test_removing_a_key_comes_after_setting_it(context):
    upstream = package({"package-context.yaml": CONTEXT})
    changed_files = files_of(upstream, context=context, remove_keys=("region", "other"))
    assert "region" not in object_in(changed_files["package-context.yaml"])["data"]


def test_a_context_that_is_not_local_is_an_object_like_any_other():
    changed_files = files_of(package({"package-context.yaml": CONTEXT}), mutators=(NAMESPACE,))
    assert object_in(changed_files["package-context.yaml"])["metadata"]["namespace"] == "edge"


@pytest.mark.parametrize("fields", [{"context": {"name": "x"}}, {"remove_keys": ("package-path",)}])
def test_reserved_keys_are_not_the_variant_s(fields):
    with pytest.raises(InvalidInput, match="is reserved"):
        rendered(package({}), **fields)


# ---- injection ---------------------------------------------------------------------------------


def test_injection_replaces_the_whole_field():
    text = f"{point()}data:\n  old: value\nbinaryData:\n  kept: AAAA\n"
    source = config_map("eu", data={"new": "value"}, binaryData={"gone": "BBBB"})
    item = object_in(files_of(package({"a.yaml": text}), [source], injectors=(by("eu"),))["a.yaml"])
    assert (item["data"], item["binaryData"]) == ({"new": "value"}, {"kept": "AAAA"})
    assert item["metadata"]["annotations"]["kpt.dev/injected-resource"] == "eu"


def test_comments_stay_where_the_keys_are_the_same():
    text = f"{point()}data:\n  region: none # where it is\n"
    source = config_map("eu", data={"region": "no"})
    content = files_of(package({"a.yaml": text}), [source], injectors=(by("eu"),))["a.yaml"]
    assert '  region: "no" # where it is\n' in content


def test_comments_stay_on_what_stays_where_keys_come_and_go():
    text = f"{point()}data:\n  region: none # where it is\n  old: gone # with its key\n"
    source = config_map("eu", data={"region": "none", "added": "new"})
    content = files_of(package({"a.yaml": text}), [source], injectors=(by("eu"),))["a.yaml"]
    assert content.endswith("data:\n  region: none # where it is\n  added: new\n")


def test_unchanged_fields_of_an_injected_spec_keep_their_lines():
    lines = "spec:\n  limits: {cpu: 1} # small\n  zones: # here\n  - a # first\n"
    text = f"{point('Site', 'example.com/v1')}{lines}  size: 1 # of it\n"
    source = site("eu", spec={"zones": ["a"], "size": 3, "limits": {"cpu": 1, "ram": 2}})
    content = files_of(package({"a.yaml": text}), [source], injectors=(by("eu"),))["a.yaml"]
    assert lines.replace("cpu: 1", "cpu: 1, ram: 2") in content
    assert content.endswith("  size: 3 # of it\n")


def test_a_spec_is_injected_too():
    text = point("Site", "example.com/v1")
    source = site("eu", spec={"zones": ["a"], "size": 3}, status={"seen": True})
    item = object_in(files_of(package({"a.yaml": text}), [source], injectors=(by("eu"),))["a.yaml"])
    assert item["spec"] == {"zones": ["a"], "size": 3}
    assert "status" not in item


def test_an_optional_injection_without_an_object_changes_no_file():
    text = f"{point(mark='optional')}data:\n  default: value\n"
    upstream = package({"a.yaml": text})
    assert rendered(upstream).entries["a.yaml"] == upstream.files["a.yaml"][0]


def test_functions_see_what_was_injected():
    text = point("Deployment", "apps/v1")
    source = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "eu", "namespace": "platform"},
        "spec": {"template": {"metadata": {"labels": {"app": "x"}}}},
    }  # fmt: skip
    labels = FunctionSpec("set-labels", config={"env": "prod"})
    changed_files = files_of(
        package({"a.yaml": text}), [source], injectors=(by("eu"),), mutators=(labels,)
    )
    template = object_in(changed_files["a.yaml"])["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "x", "env": "prod"}
    assert source["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


def test_other_documents_of_the_file_get_their_functions():
    files = {"a.yaml": f"{SERVICE}---\n{point()}data: {{}}\n"}
    source = config_map("eu", data={"a": "b"})
    text = files_of(package(files), [source], injectors=(by("eu"),), mutators=(NAMESPACE,))[
        "a.yaml"
    ]
    assert object_in(text)["metadata"]["namespace"] == "edge"
    assert object_in(text, 1)["metadata"]["namespace"] == "edge"
    assert object_in(text, 1)["data"] == {"a": "b"}


# ---- the pipeline ------------------------------------------------------------------------------


def test_local_configuration_is_passed_by():
    local = SERVICE + '  annotations:\n    config.kubernetes.io/local-config: "true"\n'
    upstream = package({"a.yaml": local})
    assert (
        rendered(upstream, mutators=(NAMESPACE,)).entries["a.yaml"] == upstream.files["a.yaml"][0]
    )


def test_the_later_of_two_functions_wins_and_what_ends_as_it_began_stays():
    other_namespace = FunctionSpec("set-namespace", config={"namespace": "there"})
    back = FunctionSpec("set-namespace", config={"namespace": "here"})
    upstream = package({"a.yaml": f"{SERVICE}  namespace: 'here'\n"})
    result = rendered(upstream, mutators=(other_namespace, back))
    assert result.entries["a.yaml"] == upstream.files["a.yaml"][0]


def test_json_is_an_object_too():
    text = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}\n'
    content = files_of(package({"a.json": text}), mutators=(NAMESPACE,))["a.json"]
    value = Manifest.parse(content.encode(), "a.json").documents[0].value
    assert value["metadata"] == {"name": "web", "namespace": "edge"}


FAILURES = [
    ("a function of the policy that is not there", {}, FunctionSpec("gatekeeper"),
     "PackageVariant/monitoring-eu: pipeline.mutators[0]: the function gatekeeper is"),
    ("one that lacks its configuration", {}, FunctionSpec("set-namespace"),
     "PackageVariant/monitoring-eu: pipeline.mutators[0]: set-namespace: namespace is missing"),
    ("a label whose key is none", {}, FunctionSpec("set-labels", config={"bad key!": "b"}),
     "set-labels: 'bad key!' is not a valid label key"),
    ("a label whose value is none", {}, FunctionSpec("set-labels", config={"a": "two words"}),
     "set-labels: 'two words' is not a valid label value"),
    ("an annotation whose key is none", {}, FunctionSpec("set-annotations", config={"a b": "x y"}),
     "set-annotations: 'a b' is not a valid label key"),
    ("an object whose labels are a list", {"sub/a.yaml": f"{SERVICE}  labels:\n  - a\n"},
     FunctionSpec("set-labels", config={"a": "b"}), "sub/a.yaml:5: Service/web: metadata.labels"),
    ("a package's function whose configuration is wrong",
     {"Kptfile": f"{KPTFILE}pipeline:\n  mutators:\n  - image: set-labels\n"}, NAMESPACE,
     "Kptfile:7: Kptfile: pipeline.mutators[0]: set-labels: no labels are given"),
    ("a Kptfile whose labels are text", {"Kptfile": f"{KPTFILE}  labels: none\n"}, NAMESPACE,
     "Kptfile:5"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "function", "sentence"), rows(FAILURES))
def test_a_rendering_fails_with(files, function, sentence):
    with pytest.raises(InvalidInput) as caught:
        rendered(package(files), mutators=(function,), labels={"a": "b"})
    assert sentence in str(caught.value)


# ---- laws --------------------------------------------------------------------------------------

TEXTS = st.text(max_size=8).filter(lambda text: text.isprintable()) | st.sampled_from(
    ["yes", "0", "~", "a: b", " x", "two\nlines\n", "\u2028", "#", "'", '"', "é"]
)
DATA = st.dictionaries(st.sampled_from(["region", "a", "b-c", "yes", "1"]), TEXTS, max_size=4)
INJECTED = DATA.filter(bool)  # empty data is no source
NAMES = st.sampled_from(["edge", "here", "other"])
UPSTREAM = package(
    {
        "a.yaml": f"{SERVICE}---\n{point(mark='optional')}data:\n  # kept\n  region: none\n",
        "b.yaml": f"# first\n{SERVICE}  namespace: here\n",
        "sub/c.yaml": SERVICE,
        "d.md": "text",
    }
)
ONCE = prepare_package(UPSTREAM, RenderLimits())


def variant(data, namespace, context, labels):
    mutators = (FunctionSpec("set-namespace", config={"namespace": namespace}),)
    fields = {"mutators": mutators, "context": context, "labels": labels, "injectors": (by("eu"),)}
    return spec(**fields), ClusterObjectIndex([config_map("eu", data=data)])


def render_with(prepared, *arguments):
    wanted, objects = variant(*arguments)
    return render_variant(prepared, wanted, resolve_inputs(prepared, wanted, objects))


@given(DATA, NAMES, DATA, st.dictionaries(st.sampled_from(["a", "b"]), TEXTS, max_size=2))
def test_a_prepared_package_yields_the_same_bytes(data, namespace, context, labels):
    """The first variant of a revision gets the same bytes as the ten-thousandth."""
    arguments = (data, namespace, context, labels)
    assert render_with(ONCE, *arguments) == render_with(
        prepare_package(UPSTREAM, RenderLimits()), *arguments
    )


@given(INJECTED, NAMES, DATA)
def test_a_rendered_package_is_readable_and_has_the_given_values(data, namespace, context):
    result = render_with(ONCE, data, namespace, context, {})
    assert result.tree == tree_id(result.entries)
    blobs = {entry.oid: data for entry, data in UPSTREAM.files.values()} | dict(result.blobs)
    text = {path: blobs[entry.oid].decode() for path, entry in result.entries.items()}
    assert object_in(text["a.yaml"], 1)["data"] == data
    for path, index in (("a.yaml", 0), ("a.yaml", 1), ("b.yaml", 0), ("sub/c.yaml", 0)):
        assert object_in(text[path], index)["metadata"]["namespace"] == namespace
    own = {"name": "monitoring", "package-path": "clusters/eu/monitoring"}
    assert object_in(text["package-context.yaml"])["data"] == {**own, **context}
    assert result.entries["d.md"] == UPSTREAM.files["d.md"][0]


@given(INJECTED, INJECTED, NAMES)
def test_a_changed_value_changes_the_files_that_carry_it(one, other, namespace):
    before = render_with(ONCE, one, namespace, {}, {})
    after = render_with(ONCE, other, namespace, {}, {})
    changed = {path for path in before.entries if before.entries[path] != after.entries[path]}
    assert changed == ({"a.yaml"} if one != other else set())


ORDERED = {"b": {"y": "1", "x": "2"}, "a": [{"d": "1", "c": "2"}]}
REVERSED = {"a": [{"c": "2", "d": "1"}], "b": {"x": "2", "y": "1"}}


def test_the_order_of_keys_means_nothing():
    upstream = package({"a.yaml": point("Site", "example.com/v1")})
    fields = {"injectors": (by("eu"),)}
    one, other = (
        rendered(
            upstream,
            [site("eu", spec=value)],
            labels=labels,
            context=labels,
            mutators=(FunctionSpec("set-labels", config=labels),),
            **fields,
        )
        for value, labels in (
            (ORDERED, {"b": "1", "a": "2"}),
            (REVERSED, {"a": "2", "b": "1"}),
        )
    )
    assert one == other
