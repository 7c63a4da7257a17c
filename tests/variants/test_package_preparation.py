"""Which upstream packages are refused, and with which words."""

import pytest
from variants.builders import KPTFILE, listed, package, point, rows

from fanout.errors import InvalidInput
from fanout.package.tree_ids import TreeEntry
from fanout.values import replace
from fanout.variants.package_preparation import prepare_package
from fanout.variants.render_model import RenderLimits


def pipeline(entry, field="mutators"):
    return f"{KPTFILE}pipeline:\n  {field}:\n  - {entry}\n"


BAD_POINT = "'maybe' is not a mode of injection"
TWO = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kptfile.kpt.dev}\n---\n"
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
)
REFUSED = [
    ("a point that is neither required nor optional", {"a.yaml": point(mark="maybe")},
     f"a.yaml:6: ConfigMap/settings: metadata.annotations[kpt.dev/config-injection]: {BAD_POINT}"),
    ("a mark that is not a string", {"a.yaml": point(mark="yes")},
     ("True is not a mode of"
      " injection")),
    ("a point without a name", {"a.yaml": point(name='""')}, ("this object cannot be an injection"
                                                             " point")),
    ("a Kptfile for a point", {"sub/Kptfile": point("Kptfile", "kpt.dev/v1")},
     ("sub/Kptfile:6: Kptfile/settings: metadata.annotations[kpt.dev/config-injection]: this"
      " object")),
    ("two points of one kind and name", {"a.yaml": point(), "b/b.yaml": point()},
     "b/b.yaml:6: ConfigMap/settings: injection point ConfigMap.settings is also in a.yaml"),
    ("two in one file", {"a.yaml": f"{point()}---\n{point()}"}, "a.yaml:13: ConfigMap/settings"),
    ("a file that cannot be parsed", {"a.yaml": "a: b\n\tc: d\n"}, "a.yaml:2"),
    ("one with a key twice", {"sub/a.yml": "a: b\na: c\n"}, "sub/a.yml:2"),
    ("JSON that is none", {"a.json": "{"}, "a.json:1"),
    ("a Kptfile of another kind", {"Kptfile": "apiVersion: v1\nkind: ConfigMap\n"},
     "Kptfile:1: the Kptfile's apiVersion is 'v1'"),
    ("an empty Kptfile", {"sub/Kptfile": ""}, "sub/Kptfile:1: the Kptfile is empty"),
    ("two Kptfiles in one file", {"Kptfile": f"{KPTFILE}---\n{KPTFILE}"},
     "Kptfile:6: the Kptfile has more than one document"),
    ("a Kptfile whose status is a list", {"Kptfile": f"{KPTFILE}status: []\n", "a.yaml": point()},
     "Kptfile:5: status.conditions: status is not a mapping"),
    ("a function that is not there", {"Kptfile": pipeline("image: gatekeeper")},
     "Kptfile:7: Kptfile: pipeline.mutators[0]: the function gatekeeper is not available"),
    ("one of somebody else", {"Kptfile": pipeline("image: example.com/set-labels")},
     "the function example.com/set-labels is not available"),
    ("an executable", {"Kptfile": pipeline("exec: ./do")}, "the executable ./do is not allowed"),
    ("a validator", {"Kptfile": pipeline("image: gatekeeper", "validators")},
     "pipeline.validators[0]: the function gatekeeper is not available"),
    ("a subpackage's function", {"sub/Kptfile": pipeline("image: gatekeeper")},
     "sub/Kptfile:7: Kptfile: pipeline.mutators[0]"),
    ("a condition that a function's selector does not have",
     {"Kptfile": pipeline("{image: set-labels, selectors: [{regexp: x}]}")},
     "pipeline.mutators[0].selectors[0].regexp: unknown field"),
    ("a selector that is a map", {"Kptfile": pipeline("{image: set-labels, exclude: {kind: x}}")},
     "pipeline.mutators[0].exclude: a map is not a list"),
    ("a pipeline that is none", {"Kptfile": f"{KPTFILE}pipeline: hello\n"},
     "Kptfile:5: Kptfile: pipeline: 'hello' is not a map"),
    ("functions that are no list", {"Kptfile": f"{KPTFILE}pipeline:\n  mutators: {{image: a}}\n"},
     "Kptfile:6: Kptfile: pipeline.mutators: a map is not a list"),
    ("a function that is not a map", {"Kptfile": pipeline("set-labels")},
     "Kptfile:7: Kptfile: pipeline.mutators[0]: 'set-labels' is not a map"),
    ("two functions in one", {"Kptfile": pipeline("{image: set-labels, exec: a}")},
     "pipeline.mutators[0]: one function is required"),
    ("a field that no function has", {"Kptfile": pipeline("{image: set-labels, config: {}}")},
     "pipeline.mutators[0].config: unknown field"),
    ("two configurations", {"Kptfile": pipeline("{image: a, configMap: {a: b}, configPath: c}")},
     "configMap and configPath exclude each other"),
    ("a configuration out of the package",
     {"Kptfile": pipeline("{image: set-labels, configPath: ../c.yaml}")}, "is outside the package"),
    ("a configuration out of the package by a way through it",
     {"Kptfile": pipeline("{image: set-labels, configPath: a/../../c.yaml}")}, "is outside the"),
    ("a configuration out of its subpackage",
     {"c.yaml": point(), "sub/Kptfile": pipeline("{image: set-labels, configPath: ../c.yaml}")},
     "sub/Kptfile:7: Kptfile: pipeline.mutators[0].configPath: '../c.yaml' is outside the package"),
    ("a configuration that is text", {"c.yaml": "just text\n",
     "Kptfile": pipeline("{image: set-labels, configPath: c.yaml}")},
     "c.yaml, the configuration of set-labels, is not a file with one object"),
    ("a configuration that is a list", {"c.yaml": "- a\n",
     "Kptfile": pipeline("{image: set-labels, configPath: c.yaml}")}, ("is not a file with one"
                                                                      " object")),
    ("a function that is misspelt", {"Kptfile": pipeline("image: set-lables")},
     "the function set-lables is not available; did you mean set-labels?"),
    ("a configuration that is not there",
     {"Kptfile": pipeline("{image: set-labels, configPath: c.yaml}")},
     "c.yaml, the configuration of set-labels, is not a file with one object"),
    ("a package context that is not alone", {"package-context.yaml": TWO},
     ("package-context.yaml:1: the package context kptfile.kpt.dev shares its file with other"
     " objects")),
    ("an apiVersion that is no text", {"a.yaml": "apiVersion: [v1]\nkind: Pod\n"},
     "a.yaml:1: apiVersion is not text"),
    ("an apiVersion that is a number", {"a.yaml": "kind: Pod\napiVersion: 1\n"},
     "a.yaml:2: apiVersion is not text"),
    ("a kind that is a map", {"a.yaml": "apiVersion: v1\nkind: {a: b}\n"},
     "a.yaml:2: kind is not text"),
    ("an item whose kind is a list",
     {"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: [Pod]\n"},
     "a.yaml:5: kind is not text"),
    ("a List without items", {"a.yaml": "apiVersion: v1\nkind: List\n"},
     "a.yaml:2: a List without items"),
    ("a List whose items are no list", {"a.yaml": "apiVersion: v1\nkind: List\nitems: {a: b}\n"},
     "a.yaml:3: items of the List is not a list"),
    ("a List with an item that is no object",
     {"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- null\n"},
     "a.yaml:5: items[1] of the List is not an object"),
    ("a List with an item that has no kind",
     {"a.json": '{"apiVersion": "v1",\n "kind": "List",\n "items": [\n  {"apiVersion": "v1"}]}'},
     "a.json:4: items[0] of the List is not an object"),
    ("a List in a List", {"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n"
     "  kind: List\n  items: []\n"}, "a.yaml:5: a List in a List"),
    ("a mark that is none on an item", {"a.yaml": listed(point(mark="sometimes"))},
     "a.yaml:9: ConfigMap/settings: metadata.annotations[kpt.dev/config-injection]: 'sometimes'"),
    ("an item that is an injection point again", {"a.yaml": listed(point()), "b.yaml": point()},
     "injection point ConfigMap.settings is also in a.yaml"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "sentence"), rows(REFUSED))
def test_a_package_is_refused_that_has(files, sentence):
    with pytest.raises(InvalidInput) as caught:
        prepare_package(package(files), RenderLimits())
    assert sentence in str(caught.value)


def changed(path, entry):
    upstream = package({path: "x"})
    return replace(upstream, files={**upstream.files, path: (entry, b"x")})


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [("120000", "link: is a symbolic link"), ("160000", "link: is a submodule")],
)
def test_links_are_refused(mode, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        prepare_package(changed("link", TreeEntry(mode, "0" * 40)), RenderLimits())


def test_a_directory_without_kptfile_is_no_package():
    upstream = replace(package({}), files={})
    with pytest.raises(InvalidInput, match="there is no Kptfile in monitoring at v1"):
        prepare_package(upstream, RenderLimits())


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (RenderLimits(files=2), "3 files, more than 2"),
        (RenderLimits(size=100), "bytes, more than 100"),
    ],
)
def test_a_package_is_bounded(limits, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        prepare_package(package({"a.md": "a" * 50, "b.md": "b"}), limits)


ACCEPTED = [
    ("files that hold no objects", {"values.yaml": "a: 1\n", "empty.yaml": "", "x.bin": "\0"}),
    ("two objects of one identity, as kpt does", {"a.yaml": "apiVersion: v1\nkind: Pod\n" * 1,
                                                  "b.yaml": "apiVersion: v1\nkind: Pod\n"}),
    ("executables", {"run.sh": "#!/bin/sh\n"}),
    ("a List of nothing", {"a.yaml": "apiVersion: v1\nkind: List\nitems: []\n"}),
    ("a List with nothing in it yet", {"a.yaml": "apiVersion: v1\nkind: List\nitems: # later\n"}),
    ("a List of one kind, with items that say no kind",
     {"a.yaml": "apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: a}}\n"}),
    ("a file of lists", {"a.yaml": "- 1\n- 2\n"}),
    ("points of one name and different kinds",
     {"a.yaml": point(), "b.yaml": point("Site", "example.com/v1")}),
]  # fmt: skip


@pytest.mark.parametrize("files", rows(ACCEPTED))
def test_a_package_may_have(files):
    assert prepare_package(package(files), RenderLimits()).entries.keys() == {"Kptfile", *files}
