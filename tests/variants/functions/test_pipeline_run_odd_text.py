"""Odd text through every function: where a function changes nothing, no byte changes."""

import pytest
from variants.programs import changed
from variants.running import configured_by, run

from fanout.package.field_edits import with_value
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.package.yaml_scalars import dump
from fanout.selection.variant_spec import FunctionSpec

LONG = "x" * 5000
CONTAINERS = (
    "\n  template:\n   spec:\n     containers:\n      - {name: c,   image:  'shop:1' , on: y}\n"
)
ODD = f"""\
%YAML 1.1
--- # the web
apiVersion: apps/v1
kind:   Deployment
metadata:
  name: web   # ours
  labels: {{tier:  front , 'q': "1"}}
  annotations:
    on: 'a'
    n:   "b"
    7: 'c'
    0755: d
spec:
  mode:   0755
  big: 1_000
  hex:  0x1F
  when: 2020-01-01
  nothing:
  tilde:  ~
  empty: [ ]
  long: {LONG} # kpt-set: ${{long}}
  folded: >-
    a
     b

  kept: |+
    text

  set: old   # kpt-set: ${{value}}
  list: [a,  'b',c]
  selector: {{matchLabels: {{a: b}}}}{CONTAINERS}...
"""
EXACT = {"by-value": "old", "put-value": "new"}
POD = 'on: y}\n   metadata:\n     annotations:\n       "n": new\n'
LABELS = 'on: y}\n   metadata:\n     labels:\n       q: "1"\n'
FUNCTIONS = [
    ("apply-setters", {"value": "new"}, {"set: old": "set: new"}),
    ("create-setters", {"name": "old"}, {"${value}": "${name}"}),
    ("ensure-name-substring", {"prepend": "my-"}, {"name: web": "name: my-web"}),
    ("list-setters", {}, {}),
    ("remove-local-config-resources", {}, {}),
    ("search-replace", EXACT, {"set: old": "set: new"}),
    ("set-annotations", {"n": "new"}, {'n:   "b"': "n:   new", "on: y}\n": POD}),
    ("set-image", {"name": "shop", "newTag": "2"}, {"'shop:1'": '"shop:2"'}),
    ("set-labels", {"q": "1"}, {"{a: b}": '{a: b, q: "1"}', "on: y}\n": LABELS}),
    ("set-namespace", {"namespace": "edge"}, {"0755: d\n": "0755: d\n  namespace: edge\n"}),
    ("kubeconform", {"skip_kinds": "Deployment"}, {}),
]
WRAPS = {
    "as it is": lambda text: text,
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "with a byte order mark": lambda text: f"\ufeff{text}",
    "with both": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    "without a last line break": lambda text: text.removesuffix("\n"),
    "beside another": lambda text: f"# first\n---\na:   0755\n---\n{text.partition(chr(10))[2]}",
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize(
    ("image", "config", "changes"), FUNCTIONS, ids=[row[0] for row in FUNCTIONS]
)
def test_all_other_bytes_are_kept_by(image, config, changes, wrap):
    text = wrap(ODD)
    expected = ODD
    for old, new in changes.items():
        expected = expected.replace(old, new)
    expected = wrap(expected)
    assert run({"a.yaml": text}, FunctionSpec(image, config=config)).get("a.yaml", text) == expected


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_all_other_bytes_are_kept_by_a_program(wrap):
    def work(whole):
        for item in whole["items"]:
            if item["kind"] == "Deployment":
                assert item["spec"]["mode"] == 0o755
                assert item["metadata"]["annotations"]["on"] == "a"
                item["spec"]["set"] = "new"

    text = wrap(ODD)
    assert changed({"a.yaml": text}, work) == {"a.yaml": text.replace("set: old", "set: new")}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_all_other_bytes_are_kept_where_a_program_puts_an_element_in_front(wrap):
    def work(whole):
        for item in whole["items"]:
            if item["kind"] == "Deployment":
                pod = item["spec"]["template"]["spec"]
                pod["containers"].insert(0, {"name": "z"})

    expected = wrap(ODD.replace("containers:\n", "containers:\n      - name: z\n"))
    assert changed({"a.yaml": wrap(ODD)}, work) == {"a.yaml": expected}


COPY = """\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata: {name: r}
replacements:
- {sourceValue: new, targets: [{select: {kind: Deployment}, fieldPaths: [spec.set]}]}
"""


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_all_other_bytes_are_kept_by_apply_replacements(wrap):
    files = {"Kptfile": configured_by("apply-replacements"), "config.yaml": COPY}
    expected = wrap(ODD.replace("set: old", "set: new"))
    assert run({**files, "a.yaml": wrap(ODD)}) == {"a.yaml": expected}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_all_other_bytes_are_kept_by_upsert_resource(wrap):
    [document] = Manifest.parse(ODD.encode(), "a.yaml").documents
    wanted = with_value(document.value, ("spec", "set"), "new")
    notes = {**wanted["metadata"]["annotations"], LOCAL_CONFIG: "true"}
    config = dump(with_value(wanted, ("metadata", "annotations"), notes))
    files = {"Kptfile": configured_by("upsert-resource"), "config.yaml": config}
    expected = wrap(ODD.replace("set: old", "set: new"))
    assert run({**files, "a.yaml": wrap(ODD)}) == {"a.yaml": expected}
