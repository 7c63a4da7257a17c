"""Fields, lists and comments three ways: a row for each rule of docs/concepts/merge.md."""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

from textwrap import dedent

import pytest

from fanout.package.merge.package_update import merge_packages

HEADS = {
    "Deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n",
    "Service": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n",
    "ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n",
    "Custom": "apiVersion: example.com/v1\nkind: Custom\nmetadata:\n  name: web\n",
}


def document(kind, body):
    return HEADS[kind] + dedent(body).lstrip("\n")


def pod(body):
    """The containers of a Deployment, as a body."""
    text = "".join(
        f"      {line}\n" if line else "\n" for line in dedent(body).strip("\n").split("\n")
    )
    return f"spec:\n  template:\n    spec:\n{text}"


def files(text):
    return {"a.yaml": ("100644", text.encode())}


def merged(kind, origin, upstream, local):
    sides = [files(document(kind, body)) for body in (origin, upstream, local)]
    result = merge_packages(*sides)
    text = result.files["a.yaml"][1].decode()
    assert text.startswith(HEADS[kind])
    disputed = [f"{c.where.field}: {c.cause}" for c in result.conflicts]
    assert all(c.winner == "upstream" for c in result.conflicts)
    return text.removeprefix(HEADS[kind]), disputed


# kind, origin, upstream, local, result, conflicts
SCALARS = [
    ("a value changed upstream arrives beside one changed locally", "Custom",
     "spec: {}\na: 1\nb: 1\n", "spec: {}\na: 2\nb: 1\n", "spec: {}\na: 1\nb: 3\n",
     "spec: {}\na: 2\nb: 3\n", []),
    ("a value that both changed alike is no conflict", "Custom",
     "a: 1\nb: 1\n", "a: 2\nb: 1\n", "a: 2\nb: 9\n", "a: 2\nb: 9\n", []),
    ("upstream wins a value that both changed, and says so", "Custom",
     "a: 1\n", "a: 2\n", "a: 3\n", "a: 2\n", ["a: both changed"]),
    ("a value that both added differently is a conflict", "Custom",
     "a: 1\n", "a: 1\nb: 2\n", "a: 1\nb: 3\n", "a: 1\nb: 2\n", ["b: both added"]),
    ("a change of type alone arrives", "Custom",
     "a: '1'\nb: 1\n", "a: 1\nb: 1\n", "a: '1'\nb: 2\n", "a: 1\nb: 2\n", []),
    ("a change of quotes alone arrives", "Custom",
     "a: '1'\nb: 1\n", 'a: "1"\nb: 1\n', "a: '1'\nb: 2\n", 'a: "1"\nb: 2\n', []),
    ("a change of quotes here stays", "Custom",
     "a: '1'\nb: 1\n", "a: '1'\nb: 2\n", 'a: "1"\nb: 1\n', 'a: "1"\nb: 2\n', []),
    ("scalar to mapping arrives", "Custom",
     "a: 1\nb: 1\n", "a:\n  x: 1\nb: 1\n", "a: 1\nb: 2\n", "a:\n  x: 1\nb: 2\n", []),
    ("mapping to scalar arrives", "Custom",
     "a:\n  x: 1\nb: 1\n", "a: 1\nb: 1\n", "a:\n  x: 1\nb: 2\n", "a: 1\nb: 2\n", []),
    ("mapping to null arrives", "Custom",
     "a:\n  x: 1\nb: 1\n", "a: null\nb: 1\n", "a:\n  x: 1\nb: 2\n", "a: null\nb: 2\n", []),
    ("scalar to mapping against another scalar is one conflict", "Custom",
     "a: 1\n", "a:\n  x: 1\n", "a: 2\n", "a:\n  x: 1\n", ["a: both changed"]),
    ("an untouched null stays", "Custom",
     "a: null\nb:\nc: ~\nd: 1\ne: 1\n", "a: null\nb:\nc: ~\nd: 2\ne: 1\n",
     "a: null\nb:\nc: ~\nd: 1\ne: 2\n", "a: null\nb:\nc: ~\nd: 2\ne: 2\n", []),
    ("an untouched alias stays", "Custom",
     "a: &x {k: v}\nb: *x\nc: 1\nd: 1\n", "a: &x {k: v}\nb: *x\nc: 2\nd: 1\n",
     "a: &x {k: v}\nb: *x\nc: 1\nd: 2\n", "a: &x {k: v}\nb: *x\nc: 2\nd: 2\n", []),
    ("an untouched empty list stays", "Custom",
     "a: []\nb: {}\nc: 1\nd: 1\n", "a: []\nb: {}\nc: 2\nd: 1\n", "a: []\nb: {}\nc: 1\nd: 2\n",
     "a: []\nb: {}\nc: 2\nd: 2\n", []),
    ("yaml 1.1 words keep their spelling", "Custom",
     "a: on\nb: 0755\nc: 1\nd: 1\n", "a: on\nb: 0755\nc: 2\nd: 1\n",
     "a: on\nb: 0755\nc: 1\nd: 2\n", "a: on\nb: 0755\nc: 2\nd: 2\n", []),
]  # fmt: skip

MAPPINGS = [
    ("a field added upstream keeps its place and its comments", "Custom",
     "a: 1\nc: 1\n", "a: 1\n# about b\nb: 1 # one\nc: 1\n", "a: 1\nc: 2\n",
     "a: 1\n# about b\nb: 1 # one\nc: 2\n", []),
    ("a field added at the end stands at the end", "Custom",
     "a: 1\n", "a: 1\nb: 2\n", "z: 0\na: 3\n", "z: 0\na: 3\nb: 2\n", []),
    ("fields added on both sides stay", "Custom",
     "a: 1\n", "a: 1\nb: 2\n", "a: 1\nc: 3\n", "a: 1\nb: 2\nc: 3\n", []),
    ("a field deleted upstream goes, with the comment above it", "Custom",
     "# about a\na: 1\n# about b\nb: 1\nc: 1\n", "# about a\na: 1\nc: 1\n",
     "# about a\na: 1\n# about b\nb: 1\nc: 2\n", "# about a\na: 1\nc: 2\n", []),
    ("a field deleted here stays deleted", "Custom",
     "a: 1\nb: 1\n", "a: 2\nb: 1\n", "a: 1\n", "a: 2\n", []),
    ("a field deleted here and changed there comes back", "Custom",
     "a: 1\nb: 1\n", "a: 1\nb: 2\n", "a: 1\n", "a: 1\nb: 2\n",
     ["b: deleted here, changed there"]),
    ("a mapping deleted here and changed there comes back whole, no stump", "Custom",
     "a: 1\nb:\n  x: 1\n  y: 1\n", "a: 1\nb:\n  x: 2\n  y: 1\n", "a: 1\n",
     "a: 1\nb:\n  x: 2\n  y: 1\n", ["b: deleted here, changed there"]),
    ("a field changed here and deleted there goes", "Custom",
     "a: 1\nb: 1\n", "a: 1\n", "a: 1\nb: 2\n", "a: 1\n", ["b: changed here, deleted there"]),
    ("a mapping changed here and deleted there goes whole", "Custom",
     "a: 1\nb:\n  x: 1\n", "a: 1\n", "a: 1\nb:\n  x: 1\n  y: 2\n", "a: 1\n",
     ["b: changed here, deleted there"]),
    ("labels come and go one by one, so the local one outlives upstream's last", "Custom",
     "a: 1\nlabels:\n  x: y\n", "a: 1\n", "a: 1\nlabels:\n  x: y\n  mine: z\n",
     "a: 1\nlabels:\n  mine: z\n", []),
    ("labels that the merge emptied go", "Custom",
     "a: 1\nlabels:\n  x: y\n", "a: 1\n", "a: 2\nlabels:\n  x: y\n", "a: 2\n", []),
    ("both added labels: all stay", "Custom",
     "a: 1\n", "a: 1\nlabels:\n  x: y\n", "a: 1\nlabels:\n  z: y\n",
     "a: 1\nlabels:\n  x: y\n  z: y\n", []),
    ("what upstream emptied is empty, in the file as it is indented here", "Custom",
     "a:\n  b:\n  - x\nc:\n  d: 1\n", "a: {}\nc:\n  d: 1\n", "a:\n    b:\n    - x\nc:\n    d: 1\n",
     "a: {}\nc:\n    d: 1\n", []),
    ("the last fields go from a file without a last line break", "Custom",
     "a: 1\nb: 1\nc: 1", "a: 2\n", "a: 1 # mine\nb: 1\nc: 1", "a: 2 # mine\n", []),
    ("a first field is put behind what a last one without a line break leaves", "Custom",
     "b: 1\nc: 1", "b: 1\nd: 1\n# end\n", "b: 2\nc: 1", "b: 2\nd: 1\n# end\n", []),
    ("an alias gives way to what upstream makes of it", "Custom",
     "a: &x {k: v}\nb: *x\nc: 1\n", "a: &x {k: v}\nb: {k: w}\nc: 1\n", "a: &x {k: v}\nb: *x\nc: 2\n",
     "a: &x {k: v}\nb: {k: w}\nc: 2\n", []),
    ("the order of the local keys stays", "Custom",
     "a: 1\nb: 1\nc: 1\n", "a: 2\nb: 1\nc: 1\n", "c: 1\nb: 3\na: 1\n", "c: 1\nb: 3\na: 2\n", []),
    ("an order that upstream alone changed arrives", "Custom",
     "a: 1\nb: 1\nc: 1\n", "c: 1\na: 1\nb: 1\n", "a: 1\nb: 3\nc: 1\n", "c: 1\na: 1\nb: 3\n", []),
    ("indentation of the local file holds for what arrives", "Custom",
     "a:\n  b:\n    c: 1\n", "a:\n  b:\n    c: 1\n    d:\n    - x: 1\n      y: 2\n",
     "a:\n    b:\n        c: 2\n", "a:\n    b:\n        c: 2\n        d:\n        - x: 1\n          y: 2\n",
     []),
    ("flow mappings keep their quotes", "Custom",
     "a: {x: '1', y: \"2\"}\n", "a: {x: '1', y: \"3\"}\n", "a: {x: '4', y: \"2\"}\n",
     "a: {x: '4', y: \"3\"}\n", []),
]  # fmt: skip

COMMENTS = [
    ("a comment that upstream alone changed arrives", "Custom",
     "a: 1 # old\nb: 1\n", "a: 1 # new\nb: 1\n", "a: 1 # old\nb: 2\n", "a: 1 # new\nb: 2\n", []),
    ("a comment above a field arrives", "Custom",
     "a: 1\nb: 1\n", "a: 1\n# about b\nb: 1\n", "a: 1\nb: 2\n", "a: 1\n# about b\nb: 2\n", []),
    ("a comment that arrives stays with its field where another is added before it", "Custom",
     "m:\n  z: 1\n  x: 1\n", "m:\n  y: 1\n  # about z\n  z: 1\n  x: 1\n",
     "m:\n  z: 1\n  x: 2\n", "m:\n  y: 1\n  # about z\n  z: 1\n  x: 2\n", []),
    ("a comment that changed here too stays", "Custom",
     "a: 1 # old\nb: 1\n", "a: 1 # new\nb: 2\n", "a: 1 # mine\nb: 1\n", "a: 1 # mine\nb: 2\n", []),
    ("a value changed upstream does not take the local comment along", "Custom",
     "a: 1\n", "a: 2\n", "a: 1 # mine\n", "a: 2 # mine\n", []),
    ("a comment of a mapping's line arrives", "Custom",
     "a: # old\n  x: 1\n  y: 1\n", "a: # new\n  x: 2\n  y: 1\n", "a: # old\n  x: 1\n  y: 2\n",
     "a: # new\n  x: 2\n  y: 2\n", []),
    ("a local comment above a field that upstream deleted stays", "Custom",
     "a: 1\nb: 1\nc: 1\n", "a: 1\nc: 1\n", "a: 1\n# mine\nb: 1\nc: 1\n",
     "a: 1\n# mine\nc: 1\n", []),
    ("a comment at the end arrives", "Custom",
     "a: 1\n", "a: 1\n# the end\n", "a: 2\n", "a: 2\n# the end\n", []),
]  # fmt: skip

BLOCKS = [
    (f"a block that both edit keeps {what}", "Custom",
     f"a: {head}\n  one\n  two {tail}\n  three\n{end}b: 1\n",
     f"a: {head}\n  ONE\n  two {tail}\n  three\n{end}b: 1\n",
     f"a: {head}\n  one\n  two {tail}\n  THREE\n{end}b: 1\n",
     f"a: {head}\n  ONE\n  two {tail}\n  THREE\n{end}b: 1\n", [])
    for what, head, tail, end in (
        ("its comment", "| # keep me", "x", ""), ("spaces at the end of lines", "|", "", ""),
        ("its empty last lines", "|+", "x", "\n\n"), ("its missing last line break", "|-", "x", ""),
        ("its indentation indicator", "|2", "x", ""), ("tabs", "|", "\tx", ""),
    )
]  # fmt: skip

KEYED = [
    ("containers match by name, whatever their order", "Deployment",
     pod("containers:\n- name: a\n  image: a:1\n- name: b\n  image: b:1"),
     pod("containers:\n- name: a\n  image: a:1\n- name: b\n  image: b:2"),
     pod("containers:\n- name: b\n  image: b:1\n- name: a\n  image: a:9"),
     pod("containers:\n- name: b\n  image: b:2\n- name: a\n  image: a:9"), []),
    ("an element added upstream stands where upstream has it", "Deployment",
     pod("containers:\n- name: a\n- name: c"), pod("containers:\n- name: a\n- name: b # new\n- name: c"),
     pod("containers:\n- name: a\n- name: c\n- name: d"),
     pod("containers:\n- name: a\n- name: b # new\n- name: c\n- name: d"), []),
    ("an element deleted upstream goes", "Deployment",
     pod("containers:\n- name: a\n- name: b"), pod("containers:\n- name: a"),
     pod("containers:\n- name: a\n  image: x\n- name: b"), pod("containers:\n- name: a\n  image: x"), []),
    ("an element deleted here and changed there comes back whole", "Deployment",
     pod("containers:\n- name: a\n- name: b\n  image: 1\n  tty: true"),
     pod("containers:\n- name: a\n- name: b\n  image: 2\n  tty: true"),
     pod("containers:\n- name: a"),
     pod("containers:\n- name: a\n- name: b\n  image: 2\n  tty: true"),
     ["spec.template.spec.containers[1]: deleted here, changed there"]),
    ("an element changed here and deleted there goes whole", "Deployment",
     pod("containers:\n- name: a\n- name: b\n  image: x:1"), pod("containers:\n- name: a"),
     pod("containers:\n- name: a\n- name: b\n  image: x:2"), pod("containers:\n- name: a"),
     ["spec.template.spec.containers[1]: changed here, deleted there"]),
    ("an element that both added differently is one conflict, never a mixture", "Deployment",
     pod("containers:\n- name: a"),
     pod("containers:\n- name: a\n- name: b\n  image: up"),
     pod("containers:\n- name: a\n- name: b\n  tty: true"),
     pod("containers:\n- name: a\n- name: b\n  image: up"),
     ["spec.template.spec.containers[1]: both added"]),
    ("a service's port is number and protocol together", "Service",
     "spec:\n  ports:\n  - port: 53\n    protocol: TCP\n  - port: 53\n    protocol: UDP\n",
     "spec:\n  ports:\n  - port: 53\n    protocol: TCP\n  - port: 53\n    protocol: UDP\n    name: u\n",
     "spec:\n  ports:\n  - port: 53\n    protocol: TCP\n    name: t\n  - port: 53\n    protocol: UDP\n",
     "spec:\n  ports:\n  - port: 53\n    protocol: TCP\n    name: t\n  - port: 53\n    protocol: UDP\n    name: u\n",
     []),
    ("the protocol that is left out is TCP", "Service",
     "spec:\n  ports:\n  - port: 80\n    name: a\n", "spec:\n  ports:\n  - port: 80\n    name: b\n",
     "spec:\n  ports:\n  - port: 80\n    name: a\n    protocol: TCP\n",
     "spec:\n  ports:\n  - port: 80\n    name: b\n    protocol: TCP\n", []),
    ("a changed port number leaves no stump of the port before", "Service",
     "spec:\n  ports:\n  - port: 80\n    targetPort: 80\n",
     "spec:\n  ports:\n  - port: 81\n    targetPort: 80\n",
     "spec:\n  ports:\n  - port: 80\n    targetPort: 80\n    nodePort: 30080\n",
     "spec:\n  ports:\n  - port: 81\n    targetPort: 80\n",
     ["spec.ports[0]: changed here, deleted there"]),
    ("of two entries of one name each keeps its own value", "Deployment",
     pod("containers:\n- name: a\n  env:\n  - name: X\n    value: one\n  - name: X\n    value: two"),
     pod("containers:\n- name: a\n  image: i\n  env:\n  - name: X\n    value: 1st\n  - name: X\n    value: two"),
     pod("containers:\n- name: a\n  env:\n  - name: X\n    value: one\n  - name: X\n    value: 2nd"),
     pod("containers:\n- name: a\n  image: i\n  env:\n  - name: X\n    value: 1st\n  - name: X\n    value: 2nd"),
     []),
    ("a list that the merge emptied goes where upstream has none", "Deployment",
     pod("a: 1\nimagePullSecrets:\n- name: x"), pod("a: 1"), pod("a: 2\nimagePullSecrets:\n- name: x"),
     pod("a: 2"), []),
    ("what was added here outlives the list's end upstream", "Deployment",
     pod("a: 1\nimagePullSecrets:\n- name: x"), pod("a: 1"),
     pod("a: 1\nimagePullSecrets:\n- name: x\n- name: mine"),
     pod("a: 1\nimagePullSecrets:\n- name: mine"), []),
    ("an order of elements that upstream alone changed arrives", "Deployment",
     pod("initContainers:\n- name: a\n- name: b"), pod("initContainers:\n- name: b\n- name: a"),
     pod("initContainers:\n# first\n- name: a\n  tty: true\n- name: b"),
     pod("initContainers:\n- name: b\n# first\n- name: a\n  tty: true"), []),
    ("elements without their key are merged by their common base", "Deployment",
     pod("containers:\n- image: a\n- image: b\n- image: c"),
     pod("containers:\n- image: a2\n- image: b\n- image: c"),
     pod("containers:\n- image: a\n- image: b\n- image: c2"),
     pod("containers:\n- image: a2\n- image: b\n- image: c2"), []),
    ("a list that becomes a mapping is one conflict with a local edit", "Deployment",
     pod("containers:\n- name: a"), pod("containers:\n  name: a"), pod("containers:\n- name: b"),
     pod("containers:\n  name: a"), ["spec.template.spec.containers: both changed"]),
]  # fmt: skip

TEXTS = [
    ("key-less lists take both edits where they do not touch", "Custom",
     "args:\n- a\n- b\n- c\n", "args:\n- a\n- b\n- c\n- d\n", "args:\n- x\n- b\n- c\n",
     "args:\n- x\n- b\n- c\n- d\n", []),
    ("key-less lists whose edits touch are one conflict of the whole list", "Custom",
     "args:\n- a\n- b\n", "args:\n- a\n- c\n", "args:\n- a\n- d\n", "args:\n- a\n- c\n",
     ["args: both changed"]),
    ("what stays in a key-less list keeps its comments", "Custom",
     "args:\n# first\n- a\n# second\n- b # keep\n- c\n- d\n", "args:\n# first\n- A\n# second\n- b # keep\n- c\n",
     "args:\n# first\n- a\n# mine\n- b # keep\n- c\n- d\n", "args:\n# first\n- A\n# mine\n- b # keep\n- c\n", []),
    ("key-less lists in flow style stay in flow style", "Custom",
     "args: ['a', b, c]\n", "args: ['a', b, d]\n", "args: [x, 'a', b, c]\n",
     "args: [x, 'a', b, d]\n", []),
    ("a comment of a key-less list's element arrives", "Custom",
     "args:\n- a\n- b\nz: 1\n", "args:\n- a # one\n- b\nz: 1\n", "args:\n- a\n- b\nz: 2\n",
     "args:\n- a # one\n- b\nz: 2\n", []),
    ("texts of several lines take both edits where they do not touch", "ConfigMap",
     "data:\n  f: |\n    one\n    two\n    three\n", "data:\n  f: |\n    ONE\n    two\n    three\n",
     "data:\n  f: |\n    one\n    two\n    THREE\n", "data:\n  f: |\n    ONE\n    two\n    THREE\n", []),
    ("texts whose edits touch are one conflict", "ConfigMap",
     "data:\n  f: |\n    one\n    two\n", "data:\n  f: |\n    ONE\n    two\n",
     "data:\n  f: |\n    eins\n    two\n", "data:\n  f: |\n    ONE\n    two\n", ["data.f: both changed"]),
]  # fmt: skip

INSIDE = [
    ("one element of a key-less list that both changed merges inside", "Custom",
     "rules:\n- host: a\n  port: 1\n", "rules:\n- host: a\n  port: 2\n",
     "rules:\n- host: b # ours\n  port: 1\n", "rules:\n- host: b # ours\n  port: 2\n", []),
    ("the conflict is the field", "Custom",
     "rules:\n- a: 1\n- b: 1\n  c: 1\n  d: 1\n", "rules:\n- a: 1\n- b: 2\n  c: 2\n  d: 1\n",
     "rules:\n- a: 1\n- b: 3\n  c: 1\n  d: 3\n", "rules:\n- a: 1\n- b: 2\n  c: 2\n  d: 3\n",
     ["rules[1].b: both changed"]),
    ("neighbors of which each side changed one are both taken", "Custom",
     "rules:\n- a: 1\n- b: 1\n", "rules:\n- a: 2\n- b: 1\n", "rules:\n- a: 1\n- b: 3\n",
     "rules:\n- a: 2\n- b: 3\n", []),
    ("stretches of equal length pair by position", "Custom",
     "rules:\n- {z: 0}\n- {a: 1, b: 1}\n- {a: 1, b: 1}\n- {z: 9}\n",
     "rules:\n- {z: 0}\n- {a: 2, b: 1}\n- {a: 3, b: 1}\n- {z: 9}\n",
     "rules:\n- {z: 0}\n- {a: 1, b: 4}\n- {a: 1, b: 5}\n- {z: 9}\n",
     "rules:\n- {z: 0}\n- {a: 2, b: 4}\n- {a: 3, b: 5}\n- {z: 9}\n", []),
    ("an element added beside one that the other side changed is no conflict", "Custom",
     "rules:\n- a: 1\n", "rules:\n- a: 2\n", "rules:\n- a: 1\n- b: 1\n",
     "rules:\n- a: 2\n- b: 1\n", []),
    ("an element deleted beside one that the other side changed is no conflict", "Custom",
     "rules:\n- a: 1\n- b: 1\n", "rules:\n- b: 1\n", "rules:\n- a: 1\n- b: 3\n",
     "rules:\n- b: 3\n", []),
    ("stretches of other lengths are one conflict of the list", "Custom",
     "rules:\n- a: 1\n- b: 1\n", "rules:\n- a: 2\n- b: 1\n", "rules:\n- c: 3\n",
     "rules:\n- a: 2\n- b: 1\n", ["rules: both changed"]),
    ("an element of which one side has another kind is one conflict of the list", "Custom",
     "rules:\n- a: 1\n", "rules:\n- a\n", "rules:\n- a: 2\n", "rules:\n- a\n",
     ["rules: both changed"]),
    ("lists in a list merge inside, too", "Custom",
     "m:\n- [{a: 1, b: 1}]\n", "m:\n- [{a: 2, b: 1}]\n", "m:\n- [{a: 1, b: 3}]\n",
     "m:\n- [{a: 2, b: 3}]\n", []),
    ("keyed lists inside such an element merge by their keys", "Deployment",
     pod("topologySpreadConstraints:\n- maxSkew: 1\n  labelSelector:\n    matchLabels: {a: b}"),
     pod("topologySpreadConstraints:\n- maxSkew: 2\n  labelSelector:\n    matchLabels: {a: b}"),
     pod("topologySpreadConstraints:\n- maxSkew: 1\n  labelSelector:\n    matchLabels: {a: b, c: d}"),
     pod("topologySpreadConstraints:\n- maxSkew: 2\n  labelSelector:\n    matchLabels: {a: b, c: d}"), []),
    ("rules of a role keep what both sides did to their verbs", "Custom",
     "rules:\n- apiGroups: [a]\n  verbs: [get, list]\n- apiGroups: [b]\n  verbs: [get]\n",
     "rules:\n- apiGroups: [a, c]\n  verbs: [get, list]\n- apiGroups: [b]\n  verbs: [get]\n",
     "rules:\n- apiGroups: [a]\n  verbs: [get, list, watch]\n- apiGroups: [b]\n  verbs: [get]\n",
     "rules:\n- apiGroups: [a, c]\n  verbs: [get, list, watch]\n- apiGroups: [b]\n  verbs: [get]\n", []),
]  # fmt: skip

ROWS = SCALARS + MAPPINGS + COMMENTS + BLOCKS + KEYED + TEXTS + INSIDE


@pytest.mark.parametrize(
    ("kind", "origin", "upstream", "local", "expected", "conflicts"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_fields(kind, origin, upstream, local, expected, conflicts):
    assert merged(kind, origin, upstream, local) == (expected, conflicts)


def test_a_first_field_stands_below_the_comment_of_the_document():
    text = "# licence\n" + document("Custom", "a: 1\n")
    upstream = text.replace("apiVersion", "Z: 0\napiVersion")
    result = merge_packages(files(text), files(upstream), files(text.replace("a: 1", "a: 2")))
    assert result.files == files(upstream.replace("a: 1", "a: 2"))
