"""What programs make of lists: elements are found again wherever they went, with their comments."""

import pytest
from variants.builders import rows
from variants.programs import after, changed
from variants.running import configured_by, run

HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n"
POD = f"{HEAD}  template:\n    spec:\n      containers: # all of them\n"
APP = (
    "      # the shop itself\n      - name: app # ours\n"
    "        image:   shop:1 # kpt-set: shop:${tag}\n"
)
LOG = "      - {name: log, image: 'log:2'}   # ships logs\n"
CAR = "      - image: car:1\n        name: car\n"
CUSTOM = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: t\nspec:\n"
RULES = "  rules:\n  - allow:   a # first\n  # about b\n  - allow: b\n  - allow: 'c' # last\n"
MOVED = "  - allow: 'c' # last\n  - allow:   a # first\n  # about b\n  - allow: b\n"
NAMED = "  parts:\n  - name: a # A\n    size:  1 # small\n  - name: b # B\n    size:  2\n"


def into(*path):
    """The value at a path of the first object, and the last step to it."""

    def of(whole):
        value = whole["items"][0]
        for part in path[:-1]:
            value = value[part]
        return value, path[-1]

    return of


def lists(*path):
    """A program that does something with a list."""

    def by(change):
        def work(whole):
            holder, name = into(*path)(whole)
            holder[name] = change(holder[name])

        return work

    return by


containers = lists("spec", "template", "spec", "containers")
rules = lists("spec", "rules")
parts = lists("spec", "parts")
CAR_NOW = {"image": "car:1", "name": "car"}


def bumped(element, **fields):
    return {**element, **fields}


MOVES = [
    ("one is put in front", f"{POD}{APP}{LOG}", containers(lambda c: [CAR_NOW, *c]),
     f"{POD}{CAR}{APP}{LOG}"),
    ("one is put between", f"{POD}{APP}{LOG}", containers(lambda c: [c[0], CAR_NOW, c[1]]),
     f"{POD}{APP}{CAR}{LOG}"),
    ("one is put behind", f"{POD}{APP}{LOG}", containers(lambda c: [*c, CAR_NOW]),
     f"{POD}{APP}{LOG}{CAR}"),
    ("one is put in front and another changed", f"{POD}{APP}{LOG}",
     containers(lambda c: [CAR_NOW, bumped(c[0], image="shop:2"), c[1]]),
     f"{POD}{CAR}{APP.replace('shop:1', 'shop:2')}{LOG}"),
    ("the first goes with what is said above it", f"{POD}{APP}{LOG}", containers(lambda c: c[1:]),
     f"{POD}{LOG}"),
    ("they change places", f"{POD}{APP}{LOG}", containers(lambda c: c[::-1]), f"{POD}{LOG}{APP}"),
    ("another takes the place of one", f"{POD}{APP}{LOG}", containers(lambda c: [c[0], CAR_NOW]),
     f"{POD}{APP}{CAR}"),
    ("keys that a list has twice are told apart", f"{POD}{LOG}{LOG.replace('ships', 'more')}",
     containers(lambda c: [CAR_NOW, *c]), f"{POD}{CAR}{LOG}{LOG.replace('ships', 'more')}"),
    ("a list without keys goes by its elements", f"{CUSTOM}{RULES}",
     rules(lambda r: [{"allow": "z"}, *r]),
     f"{CUSTOM}{RULES}".replace("rules:\n", "rules:\n  - allow: z\n")),
    ("what differs between two that are known goes by its place", f"{CUSTOM}{RULES}",
     rules(lambda r: [{"allow": "z"}, r[0], {"allow": "B"}, r[2]]),
     f"{CUSTOM}{RULES}".replace("rules:\n", "rules:\n  - allow: z\n").replace("w: b", "w: B")),
    ("what moved in a list without keys is found", f"{CUSTOM}{RULES}",
     rules(lambda r: [r[2], r[0], r[1]]),
     f"{CUSTOM}  rules:\n{MOVED}"),
    ("elements with names of their own go by them", f"{CUSTOM}{NAMED}",
     parts(lambda p: [{"name": "z"}, bumped(p[0], size=3), p[1]]),
     f"{CUSTOM}{NAMED}".replace("parts:\n", "parts:\n  - name: z\n").replace(" 1 #", " 3 #")),
    ("a list on one line stays on one", f"{CUSTOM}  rules: [a,  'b',c] # three\n",
     rules(lambda r: ["z", *r]), f"{CUSTOM}  rules: [z, a, 'b', c] # three\n"),
    ("several lists at once", f"{CUSTOM}{RULES}{NAMED}",
     lambda whole: (rules(lambda r: r[1:])(whole), parts(lambda p: [{"name": "z"}, *p])(whole)),
     f"{CUSTOM}{RULES}{NAMED}".replace("  - allow:   a # first\n", "")
     .replace("parts:\n", "parts:\n  - name: z\n")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "work", "expected"), rows(MOVES))
def test_elements_of_a_list_are_found_again(text, work, expected):
    assert changed({"a.yaml": text}, work) == {"a.yaml": expected}


def test_the_definition_of_a_kind_in_the_package_says_its_keys():
    keys = "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id]"
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: things.example.com}\nspec:\n  group: example.com\n"
        "  names: {kind: Thing}\n  versions:\n  - name: v1\n    storage: true\n    schema:\n"
        "      openAPIV3Schema: {properties: {spec: {properties: {rules: "
        f"{{items: {{}}, {keys}}}}}}}}}}}\n"
    )
    text = f"{CUSTOM}  rules:\n  - id: a # A\n    size:  1 # s\n  - id: b # B\n    size:  2\n"
    work = rules(lambda r: [{"id": "z"}, bumped(r[0], size=3), bumped(r[1], size=4)])
    expected = text.replace("rules:\n", "rules:\n  - id: z\n").replace(" 1 #", " 3 #")
    expected = expected.replace("  2\n", "  4\n")
    changed_files = changed({"a.yaml": text, "crd.yaml": definition}, work)
    assert changed_files == {"a.yaml": expected}


def test_the_rest_of_the_file_keeps_its_bytes():
    text = f"\ufeff# top\n---\n{POD}{APP}{LOG}---\n# two\na:   1\n".replace("\n", "\r\n")
    expected = text.replace(APP.replace("\n", "\r\n"), (CAR + APP).replace("\n", "\r\n"))
    assert changed({"a.yaml": text}, containers(lambda c: [CAR_NOW, *c])) == {"a.yaml": expected}


def test_an_element_added_and_removed_by_programs_leaves_no_trace():
    work = containers(lambda c: c[1:] if c[0] == CAR_NOW else [CAR_NOW, *c])
    assert after({"a.yaml": f"{POD}{APP}{LOG}"}, work, "exec: fn", "exec: fn")[0] == {}


def test_setters_are_where_they_went():
    def work(whole):
        web = next(item for item in whole["items"] if item["kind"] == "Deployment")
        containers(lambda c: [CAR_NOW, *c])({"items": [web]})

    setters = "{image: apply-setters, configMap: {tag: '9'}}"
    changed_files, _ = after({"a.yaml": f"{POD}{APP}{LOG}"}, work, "exec: fn", setters)
    assert changed_files == {"a.yaml": f"{POD}{CAR}{APP.replace('shop:1', 'shop:9')}{LOG}"}


def test_a_change_before_a_move_and_one_after_it_are_both_made():
    image = "{{image: set-image, configMap: {{name: {}, newTag: '{}'}}}}"
    entries = image.format("shop", "5"), "exec: fn", image.format("log", "7")
    changed_files, _ = after(
        {"a.yaml": f"{POD}{APP}{LOG}"}, containers(lambda c: [CAR_NOW, *c]), *entries
    )
    log = LOG.replace("'log:2'", '"log:7"')
    expected = f"{POD}{CAR}{APP.replace('shop:1', 'shop:5')}{log}"
    assert changed_files == {"a.yaml": expected}


def test_an_anchor_in_the_list_is_resolved_where_it_must_be():
    text = f"{POD}      - &a\n        name: app\n        image: shop:1 # why\n{LOG}"
    changed_files = changed({"a.yaml": text}, containers(lambda c: [CAR_NOW, *c]))
    assert changed_files["a.yaml"].count("name: ") == 4


def test_upsert_resource_finds_elements_by_their_keys_too():
    new = (
        f"{HEAD}  template:\n    spec:\n      containers:\n{CAR}"
        "      - name: app\n        image: shop:2\n      - name: log\n        image: log:2\n"
    )
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + new.replace("\n", "\n  ").rstrip(" ")
    files = {"Kptfile": configured_by("upsert-resource"), "config.yaml": listed,
             "a.yaml": f"{POD}{APP}{LOG}"}  # fmt: skip
    assert run(files) == {"a.yaml": f"{POD}{CAR}{APP.replace('shop:1', 'shop:2')}{LOG}"}


def test_a_json_file_keeps_what_did_not_change():
    text = """{ "apiVersion":"v1", "kind":"Pod", "metadata": {"name":  "p"},
      "spec": {"containers": [
        {"name":"a",   "image":"a:1"},  {"name":"b" }
   ]} }
"""
    work = lists("spec", "containers")(lambda c: [CAR_NOW, bumped(c[0], image="a:2"), c[1]])
    new = '{"image":"car:1","name":"car"},  {"name":"a",   "image":"a:2"'
    expected = text.replace('{"name":"a",   "image":"a:1"', new)
    assert changed({"a.json": text}, work) == {"a.json": expected}
