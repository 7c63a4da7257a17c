"""The items of a List are objects like any other: functions, injection and programs see each."""

import pytest
from variants.builders import config_map, listed, package, point, rows, spec
from variants.programs import NEW, after, changed
from variants.running import kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, InjectorSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # the shop
  namespace: shop
spec:
  replicas:   2 # kpt-set: ${replicas}
  template:
    spec:
      # in this order
      containers:
      - name: app # first
        image: "app:1"
      - {name: log, image: 'log:1'} # second
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  namespace: shop\ndata:\n  a: b\n"
TOOLS = "annotations: {config.kubernetes.io/local-config: 'true'}\n"
LOCAL = MAP.replace("name: m\n", f"name: t\n  {TOOLS}")
NEW_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
REPLACEMENTS = """\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata: {name: r, annotations: {config.kubernetes.io/local-config: "true"}}
replacements:
- source: {kind: Deployment, fieldPath: spec.replicas}
  targets: [{select: {kind: ConfigMap, name: m}, fieldPaths: [data.a]}]
"""
UPSERTED = WEB.replace(" # the shop", "").replace("   2", " 5").replace('"app:1"', "app:1")
MARK = f"metadata:\n  {TOOLS}items:\n"

ONE_BY_ONE = [
    ("set-namespace", ["{image: set-namespace, configMap: {namespace: edge}}"]),
    ("set-labels", ["{image: set-labels, configMap: {team: shop}}"]),
    ("set-annotations", ["{image: set-annotations, configMap: {team: shop}}"]),
    ("set-image", ["{image: set-image, configMap: {name: app, newTag: '2'}}"]),
    ("ensure-name-substring", ["{image: ensure-name-substring, configMap: {prepend: eu-}}"]),
    ("search-replace", ["{image: search-replace, configMap: {by-value: b, put-value: c}}"]),
    ("a comment that is put",
     ["{image: search-replace, configMap: {by-path: spec.replicas, put-comment: few}}"]),
    ("apply-setters", ["{image: apply-setters, configMap: {replicas: '7'}}"]),
    ("create-setters", ["{image: create-setters, configMap: {shop: shop}}"]),
    ("apply-replacements", ["{image: apply-replacements, configPath: r.yaml}"]),
    ("upsert-resource", ["{image: upsert-resource, configPath: u.yaml}"]),
    ("a selector", ["{image: set-labels, configMap: {a: b}, selectors: [{kind: Deployment}]}"]),
    ("an exclusion", ["{image: set-labels, configMap: {a: b}, exclude: [{name: m}]}"]),
    ("several in their order", [
        "{image: set-namespace, configMap: {namespace: edge}}",
        "{image: create-setters, configMap: {ns: edge}}",
        "{image: apply-setters, configMap: {ns: mall, replicas: '3'}}",
    ]),
]  # fmt: skip


@pytest.mark.parametrize("whole", [False, True], ids=["from memory", "for this target"])
@pytest.mark.parametrize("entries", rows(ONE_BY_ONE))
def test_an_item_becomes_what_a_document_would(entries, whole):
    if whole:
        entries = [*entries, "image: list-setters"]
    common = {
        "Kptfile": kptfile(*entries),
        "r.yaml": REPLACEMENTS,
        "u.yaml": listed(UPSERTED, head=f"apiVersion: v1\nkind: List\n{MARK}"),
    }
    alone = {"1.yaml": WEB, "2.yaml": MAP, "3.yaml": LOCAL}
    apart = run({**common, **alone})
    together = run({**common, "a.yaml": listed(WEB, MAP, LOCAL)})
    assert apart.keys() & alone.keys(), "the function does something"
    want = listed(*(apart.get(file, text) for file, text in alone.items()))
    assert together == {"a.yaml": want, **{k: v for k, v in apart.items() if k not in alone}}


REMOVE = kptfile("image: remove-local-config-resources")
LABELLED = kptfile("{image: set-labels, configMap: {a: b}, selectors: [{name: m}]}")
HEAD = "apiVersion: v1\nkind: List\n"
FLOW = f"{HEAD}items: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}}}]\n"
PLAIN = WEB.replace("   2", " 2")
OTHER = MAP.replace("m\n", "q\n", 1)
NOW = MAP.replace("shop\n", "shop\n  labels:\n    a: b\n")
TYPED = "apiVersion: v1\nkind: ConfigMapList\nitems:\n"
SHARED = [WEB, MAP.replace(": b", ": &x b"), OTHER.replace(": b", ": *x # same")]
TOOL = """{"apiVersion":"v1",  "kind": "ConfigMap", "metadata": {"name":"t",
         "annotations": {"config.kubernetes.io/local-config":  "true"}}}"""
JSON = """\
{ "apiVersion": "v1", "kind":"List",
   "items": [
      {"apiVersion":"v1",  "kind": "ConfigMap", "metadata": {"name":"t",
         "annotations": {"config.kubernetes.io/local-config":  "true"}}},
      {"apiVersion":"v1",  "kind": "ConfigMap", "metadata": {"name":"m"}} ] }
"""
MARKED = listed(MAP, head=f"apiVersion: v1\nkind: List\n{MARK}")
AROUND = "# one\n{}\n---\n# of several\n{}\n# at the end\n"
CHANGED = [
    ("what stands around it stays",
     {"Kptfile": LABELLED, "a.yaml": AROUND.format(LOCAL, listed(WEB, MAP))},
     {"a.yaml": AROUND.format(LOCAL, listed(WEB, NOW))}),
    ("line breaks stay those of the file",
     {"Kptfile": LABELLED, "a.yaml": listed(WEB, MAP).replace("\n", "\r\n")},
     {"a.yaml": listed(WEB, NOW).replace("\n", "\r\n")}),
    ("one on a line with others stays there", {"Kptfile": LABELLED, "a.yaml": FLOW},
     {"a.yaml": FLOW.replace("{name: m}", "{name: m, labels: {a: b}}")}),
    ("an anchor in another item is still shared", {"Kptfile": LABELLED, "a.yaml": listed(*SHARED)},
     {"a.yaml": listed(WEB, NOW.replace("data:\n  a: b", "data:\n  a: &x b"), SHARED[2])}),
    ("JSON keeps its layout", {"Kptfile": LABELLED, "a.json": JSON},
     {"a.json": JSON.replace('{"name":"m"}', '{"name":"m", "labels": {"a": "b"}}')}),
    ("a list of one kind has items too", {"Kptfile": LABELLED,
     "a.yaml": listed(MAP, head=TYPED)},
     {"a.yaml": listed(NOW, head=TYPED)}),
    ("an item that goes leaves the others as they are",
     {"Kptfile": REMOVE, "a.yaml": listed(WEB, LOCAL, MAP)},
     {"a.yaml": listed(WEB, MAP)}),
    ("several go, in the order of the others",
     {"Kptfile": REMOVE, "a.yaml": listed(LOCAL, WEB, LOCAL, MAP, LOCAL)},
     {"a.yaml": listed(WEB, MAP)}),
    ("one whose dash stands alone goes too, the others keep their lines",
     {"Kptfile": REMOVE, "a.yaml": listed(LOCAL, PLAIN, MAP).replace("- api", "-\n  api")},
     {"a.yaml": listed(PLAIN, MAP).replace("- api", "-\n  api")}),
    ("a List goes with its last item", {"Kptfile": REMOVE, "a.yaml": f"{listed(LOCAL)}---\n{WEB}"},
     {"a.yaml": WEB}),
    ("and the file with it", {"Kptfile": REMOVE, "a.yaml": listed(LOCAL)}, {"a.yaml": None}),
    ("a List in which nothing was stays", {"Kptfile": REMOVE,
     "a.yaml": f"apiVersion: v1\nkind: List\nitems: []\n---\n{LOCAL}"},
     {"a.yaml": "apiVersion: v1\nkind: List\nitems: []\n"}),
    ("an item of a JSON file goes", {"Kptfile": REMOVE, "a.json": JSON},
     {"a.json": JSON.replace(TOOL, "").replace("[\n      ,\n", "[\n")}),
    ("a JSON List goes with its last item",
     {"Kptfile": REMOVE, "a.json": JSON.replace(""",
      {"apiVersion":"v1",  "kind": "ConfigMap", "metadata": {"name":"m"}} ]""", "]")},
     {"a.json": None}),
    ("a List that is for tools alone goes as a whole", {"Kptfile": REMOVE, "a.yaml": MARKED},
     {"a.yaml": None}),
    ("and is passed by as a whole", {"Kptfile": LABELLED, "a.yaml": MARKED}, {}),
    ("a Kptfile in it is none of the objects",
     {"Kptfile": kptfile("{image: set-labels, configMap: {a: b}}"),
      "a.yaml": listed("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n")}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), rows(CHANGED))
def test_in_its_file(files, expected):
    assert run(files) == expected


# ---- what is told -----------------------------------------------------------------------------

JUDGED = kptfile("image: kubeconform").replace("mutators", "validators")
ODD = "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  ports: none\n"
TOLD = [
    ("a validator, of each item", {"Kptfile": JUDGED, "a.yaml": listed(MAP, ODD, ODD)},
     "kubeconform: a.yaml:16: Service/s: spec.ports: "),
    ("a validator, of JSON",
     {"Kptfile": JUDGED,
      "a.json": JSON.replace('{"name":"m"}', '{"name":"m"},\n "data": {"a": 1}')},
     "a.json:6: ConfigMap/m: data.a: "),
    ("a function that an item is not fit for",
     {"Kptfile": kptfile("{image: set-labels, configMap: {a: b}}"),
      "a.yaml": listed(MAP, MAP.replace("name: m", "name: q\n  labels: none"))},
     "a.yaml:15: ConfigMap/q: metadata.labels: "),
]  # fmt: skip


@pytest.mark.parametrize(("files", "sentence"), rows(TOLD))
def test_errors_of_items_have_the_line_of_the_item(files, sentence):
    with pytest.raises(InvalidInput) as caught:
        run(files)
    assert sentence in str(caught.value)


# ---- injection --------------------------------------------------------------------------------

EU = config_map("eu", data={"a": "eu"})
POINT = f"{point()}data:\n  a: example # theirs\n"
SITE = f"{point('Site', 'example.com/v1', mark='optional')}spec:\n  size: 1\n"
EU_SITE = {**EU, "apiVersion": "example.com/v1", "kind": "Site", "spec": {"size": 3}}
PIPELINES = [
    ("functions that look at each", ["{image: set-labels, configMap: {a: b}}"]),
    ("functions that look at all",
     ["{image: set-labels, configMap: {a: b}}", "image: list-setters"]),
    ("no functions", []),
]  # fmt: skip


@pytest.mark.parametrize("entries", rows(PIPELINES))
def test_points_may_be_in_items(entries):
    own = {"Kptfile": kptfile(*entries)} if entries else {}
    options = {"objects": (EU, EU_SITE), "injectors": (InjectorSpec("eu"),)}
    apart = run({**own, "1.yaml": POINT, "2.yaml": WEB, "3.yaml": SITE}, **options)
    together = rendered({**own, "a.yaml": listed(POINT, WEB, SITE)}, **options)
    want = listed(apart["1.yaml"], apart.get("2.yaml", WEB), apart["3.yaml"])
    assert together.blobs[together.entries["a.yaml"].oid].decode() == want
    assert "a: eu # theirs" in want
    kpt = together.blobs[together.entries["Kptfile"].oid].decode()
    assert "config.injection.ConfigMap.settings" in kpt
    assert "config.injection.Site.settings" in kpt


def test_targets_differ_in_their_items_and_agree_in_what_is_kept():
    entries = kptfile("{image: set-labels, configMap: {a: b}}")
    prepared = prepare_package(
        package({"Kptfile": entries, "a.yaml": listed(POINT, WEB)}), RenderLimits()
    )
    objects = ClusterObjectIndex((EU, config_map("us", data={"b": "us"})))
    for name in ("eu", "us", "none"):
        variant = spec(name=name, injectors=(InjectorSpec(name),))
        done = render_variant(prepared, variant, resolve_inputs(prepared, variant, objects))
        text = done.blobs[done.entries["a.yaml"].oid].decode()
        assert text.count("a: b") == 3
        assert (f"{name}\n" in text) is (name != "none")
    assert prepared.points[0].line == 9


# ---- programs ---------------------------------------------------------------------------------


def item(whole, name):
    return next(it for it in whole["items"] if it["metadata"]["name"] == name)


def nothing(whole):
    """Return everything as it came."""


def test_a_program_is_shown_the_items_with_numbers_of_their_own():
    files = {"a.yaml": f"{LOCAL}---\n{listed(WEB, MAP)}---\n{ODD}"}
    changed_files, [seen] = after(files, nothing, "exec: fn")
    assert changed_files == {}
    notes = {it["metadata"]["name"]: it["metadata"]["annotations"] for it in seen["items"]}
    numbers = [notes[name][f"{NEW}index"] for name in ("t", "web", "m", "s")]
    assert numbers == ["0", "1", "2", "3"]


def bump(whole):
    item(whole, "web")["spec"]["replicas"] = 3


def put_in_front(whole):
    containers = item(whole, "web")["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "car"})


def put_everywhere(whole):
    put_in_front(whole)
    item(whole, "x")["spec"]["template"]["spec"]["containers"].reverse()
    item(whole, "m")["data"] = {"a": "c"}


def remove(whole):
    whole["items"] = [it for it in whole["items"] if it["metadata"]["name"] != "web"]


def add(whole):
    whole["items"].append(NEW_MAP)


def move(whole):
    item(whole, "m")["metadata"]["annotations"][f"{NEW}path"] = "b.yaml"


FIRST = '      - name: app # first\n        image: "app:1"\n'
SECOND = "      - {name: log, image: 'log:1'} # second\n"
CAR = WEB.replace(FIRST, f"      - name: car\n{FIRST}")
X = WEB.replace("name: web", "name: x")
TURNED = X.replace(FIRST + SECOND, SECOND + FIRST)
BARE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n"
MOVED = "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: m\n  namespace: shop\n"
PROGRAMS = [
    ("what it changed is set in place", [WEB, MAP], bump,
     {"a.yaml": listed(WEB.replace("2 #", "3 #"), MAP)}),
    ("an element that it put into an item's list leaves the others",
     [MAP, WEB, OTHER], put_in_front, {"a.yaml": listed(MAP, CAR, OTHER)}),
    ("so in several items at once", [WEB, MAP, X], put_everywhere,
     {"a.yaml": listed(CAR, MAP.replace("a: b", "a: c"), TURNED)}),
    ("an item that does not come back is gone", [WEB, MAP], remove, {"a.yaml": listed(MAP)}),
    ("the List with its last one", [WEB], remove, {"a.yaml": None}),
    ("what is new gets a file of its own", [WEB], add, {"configmap_new.yaml": BARE}),
    ("an item with another path leaves the List", [WEB, MAP], move,
     {"a.yaml": listed(WEB), "b.yaml": MOVED}),
]  # fmt: skip


@pytest.mark.parametrize(("items", "work", "expected"), rows(PROGRAMS))
def test_a_program_s_answer(items, work, expected):
    assert changed({"a.yaml": listed(*items)}, work) == expected


def test_rearranged_items_in_crlf_keep_their_line_breaks():
    before, now = (listed(item, MAP).replace("\n", "\r\n") for item in (WEB, CAR))
    assert changed({"a.yaml": before}, put_in_front) == {"a.yaml": now}


def test_later_functions_see_what_a_program_rearranged():
    entries = ("exec: fn", "{image: set-image, configMap: {name: app, newTag: '2'}}",
               "{image: apply-setters, configMap: {replicas: '7'}}")  # fmt: skip
    changed_files, _ = after({"a.yaml": listed(WEB, MAP)}, put_in_front, *entries)
    want = CAR.replace('"app:1"', "app:2").replace("  2 #", "  7 #")
    assert changed_files == {"a.yaml": listed(want, MAP)}


def test_an_item_with_an_anchor_is_written_all_the_same():
    web = WEB.replace("shop\n", "&ns shop\n")
    maps = [text.replace("shop\n", "*ns\n") for text in SHARED[1:]]
    for items in ([web, *maps], [SHARED[1], WEB.replace("name: log", "name: *x")]):
        content = changed({"a.yaml": listed(*items)}, put_in_front)["a.yaml"]
        assert content.count("name: car") == 1


def test_a_result_about_an_item_has_its_line():
    def work(whole):
        place = {"path": "a.yaml", "index": 2}
        whole["results"] = [{"message": "odd", "severity": "error", "file": place,
                             "field": {"path": "data.a"}}]  # fmt: skip

    with pytest.raises(InvalidInput, match=r"a\.yaml:23: data\.a: odd"):
        changed({"a.yaml": f"{LOCAL}---\n{listed(BARE, MAP)}"}, work)


def test_no_list_can_be_added():
    def work(whole):
        whole["items"].append({**NEW_MAP, "kind": "List", "items": []})

    with pytest.raises(InvalidInput, match="List/new: a List cannot be added"):
        changed({"a.yaml": WEB}, work)


def test_a_list_for_tools_alone_does_not_disturb_programs():
    changed_files = changed({"a.yaml": MARKED, "b.yaml": WEB}, bump)
    assert changed_files == {"b.yaml": WEB.replace("2 #", "3 #")}


def test_a_new_object_for_the_list_s_file_stands_behind_it():
    entry = "{image: upsert-resource, configPath: u.yaml}"
    note = "  annotations:\n    config.kubernetes.io/target-path: a.yaml\n"
    new = listed(f"{BARE}{note}", head=f"apiVersion: v1\nkind: List\n{MARK}")
    item = run({"Kptfile": kptfile(entry), "u.yaml": new, "a.yaml": listed(WEB, MAP)})
    assert item == {"a.yaml": f"{listed(WEB, MAP)}---\n{BARE}"}


def test_a_policy_s_function_sees_items_too():
    function = FunctionSpec("set-annotations", config={"a": "b"})
    changed_files = run({"a.yaml": listed(MAP)}, function)
    assert changed_files == {
        "a.yaml": listed(MAP.replace("shop\n", "shop\n  annotations:\n    a: b\n"))
    }
