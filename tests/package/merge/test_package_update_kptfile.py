"""Kptfiles merge by owner, custom resources by their schema (docs/concepts/merge.md)."""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.package.manifest import Manifest
from fanout.package.merge.package_update import merge_packages

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {}\n"


def functions(*lines):
    body = "".join(f"  - {line}\n" for line in lines)
    return f"pipeline:\n  mutators:\n{body}"


NS = "{image: set-namespace:v1, name: ns}"
LABELS = "image: set-labels:v1"
LABELS2 = "image: set-labels:v2"
ONE, ONE9, TWO = (
    f"{{image: set-labels:v1, configMap: {{{label}}}}}" for label in ("a: '1'", "a: '9'", "b: '1'")
)
MINE = "{image: mine:v1, name: mine}"
LOCK = "upstream:\n  git: {{ref: {0}}}\nupstreamLock:\n  git: {{ref: {0}, commit: {1}}}\n"
CONDITION = "status:\n  conditions:\n"

# origin, upstream, local, result, disputed fields
ROWS = [
    ("a local named function outlives a change of an unnamed one upstream",
     functions(NS, LABELS), functions(NS, LABELS2), functions(MINE, NS, LABELS),
     functions(MINE, NS, LABELS2), []),
    ("upstream may add an unnamed function to named ones",
     functions(NS), functions(NS, LABELS), functions(MINE, NS), functions(MINE, NS, LABELS), []),
    ("unnamed functions of one image match by their order",
     functions(LABELS, LABELS), functions(LABELS, LABELS2), functions(LABELS, LABELS, MINE),
     functions(LABELS, LABELS2, MINE), []),
    ("a function deleted upstream goes",
     functions(NS, LABELS), functions(LABELS), functions(NS, LABELS, MINE),
     functions(LABELS, MINE), []),
    ("one that comes before another of its image leaves the other's edit alone",
     functions(ONE), functions(TWO, ONE), functions(ONE9), functions(TWO, ONE9), []),
    ("so does one that goes, and one that changes its place",
     functions(TWO, ONE, MINE), functions(ONE, MINE), functions(TWO, MINE, ONE9), functions(MINE, ONE9), []),
    ("two of one image that change their places keep their edits",
     functions(ONE, TWO), functions(TWO, ONE), functions(ONE9, TWO), functions(TWO, ONE9), []),
    ("one that upstream gives a name keeps its edit",
     functions(ONE), functions(ONE.replace("{", "{name: x, ", 1)), functions(ONE9),
     functions(ONE9.replace("{", "{name: x, ", 1)), []),
    ("unnamed ones of one image that both add stay two",
     functions(MINE), functions(ONE, MINE), functions(MINE, TWO), functions(ONE, MINE, TWO), []),
    ("the same one that both add is one",
     functions(MINE), functions(MINE, ONE), functions(ONE, MINE), functions(ONE, MINE), []),
    ("one that both edit alike is no conflict beside a new one",
     functions(ONE), functions(TWO, ONE9), functions(ONE9), functions(TWO, ONE9), []),
    ("one that was edited here and goes upstream is a conflict of it, and of no other",
     functions(ONE, TWO), functions(TWO), functions(ONE9, TWO), functions(TWO), ["pipeline.mutators[0]"]),
    ("both sides' readiness gates stay",
     "info:\n  readinessGates:\n  - conditionType: a\n",
     "info:\n  readinessGates:\n  - conditionType: a\n  - conditionType: up\n",
     "info:\n  readinessGates:\n  - conditionType: mine\n  - conditionType: a\n",
     "info:\n  readinessGates:\n  - conditionType: mine\n  - conditionType: a\n  - conditionType: up\n",
     []),
    ("readiness gates that both began stay",
     "a: 1\n", "a: 1\ninfo:\n  readinessGates:\n  - conditionType: up\n",
     "a: 1\ninfo:\n  readinessGates:\n  - conditionType: mine\n",
     "a: 1\ninfo:\n  readinessGates:\n  - conditionType: up\n  - conditionType: mine\n", []),
    ("conditions are matched by type, whatever their order",
     CONDITION + "  - {type: a, status: 'True'}\n  - {type: b, status: 'True'}\n",
     CONDITION + "  - {type: a, status: 'False'}\n  - {type: b, status: 'True'}\n",
     CONDITION + "  - {type: b, status: 'True'}\n  - {type: a, status: 'True'}\n  - {type: c, status: 'True'}\n",
     CONDITION + "  - {type: b, status: 'True'}\n  - {type: a, status: 'False'}\n  - {type: c, status: 'True'}\n",
     []),
    ("keywords are a set", "info:\n  keywords: [a, b]\n", "info:\n  keywords: [a, b, up]\n",
     "info:\n  keywords: [a, b, mine]\n", "info:\n  keywords: [a, b, up, mine]\n", []),
    ("labels and annotations merge one by one",
     "", "  labels: {up: a}\n  annotations: {up: a}\n", "  annotations: {mine: b}\n  labels: {mine: b}\n",
     "  annotations: {up: a, mine: b}\n  labels: {up: a, mine: b}\n", []),
    ("the inventory merges by field, its labels one by one",
     "inventory: {name: a, namespace: n, labels: {}}\n", "inventory: {name: b, namespace: n, labels: {up: a}}\n",
     "inventory: {name: a, namespace: m, labels: {mine: b}}\n",
     "inventory: {name: b, namespace: m, labels: {up: a, mine: b}}\n", []),
    ("programs match like images",
     functions("exec: ./a", "exec: ./b"), functions("{exec: ./a, configMap: {x: y}}", "exec: ./b"),
     functions(MINE, "exec: ./a", "{exec: ./b, configMap: {mine: z}}"),
     functions(MINE, "{exec: ./a, configMap: {x: y}}", "{exec: ./b, configMap: {mine: z}}"), []),
    ("validators match like mutators",
     functions(NS).replace("mutators", "validators"), functions(NS, LABELS).replace("mutators", "validators"),
     functions(MINE, NS).replace("mutators", "validators"),
     functions(MINE, NS, LABELS).replace("mutators", "validators"), []),
    ("the namespace of the clone is its own",
     "  namespace: a\n", "  namespace: b\n", "  namespace: mine\n", "  namespace: mine\n", []),
    ("unknown fields merge like others", "x: {a: 1, b: 1}\n", "x: {a: 2, b: 1}\n",
     "x: {a: 1, b: 2}\n", "x: {a: 2, b: 2}\n", []),
    ("the lock of the base's own rendering moves on",
     LOCK.format("v1", "c1"), LOCK.format("v2", "c2"), "# mine\n" + LOCK.format("v1", "c1"),
     "# mine\n" + LOCK.format("v2", "c2"), []),
    ("a lock that is the clone's own is not upstream's business",
     LOCK.format("u1", "c1"), LOCK.format("u2", "c2"), LOCK.format("v1", "m1"),
     LOCK.format("v1", "m1"), []),
    ("the status of a rendering is nobody's conflict",
     "status:\n  renderStatus: {a: 1}\n", "status:\n  renderStatus: {a: 2}\n",
     "status:\n  renderStatus: {a: 3}\n", "status:\n  renderStatus: {a: 3}\n", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "expected", "disputed"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_kptfiles(origin, upstream, local, expected, disputed):
    names = ("upstream", "upstream", "mine")
    sides = [
        {"Kptfile": ("100644", (HEAD.format(name) + body).encode())}
        for name, body in zip(names, (origin, upstream, local), strict=True)
    ]
    result = merge_packages(*sides)
    assert result.files["Kptfile"][1].decode() == HEAD.format("mine") + expected
    assert [conflict.where.field for conflict in result.conflicts] == disputed


@given(st.data())
def test_an_edit_stays_wherever_upstream_puts_other_functions_of_that_image(data):
    def function(number):
        return f"{{image: set-labels:v1, configMap: {{label: '{number}'}}}}"

    origin = list(range(data.draw(st.integers(1, 5))))
    upstream = list(origin)
    for number in range(10, 10 + data.draw(st.integers(0, 3))):
        upstream.insert(data.draw(st.integers(0, len(upstream))), number)
    edited = data.draw(st.sampled_from(origin))
    lists = [
        origin,
        upstream,
        *([99 if n == edited else n for n in it] for it in (origin, upstream)),
    ]
    o, u, mine, wanted = (
        {"Kptfile": ("100644", (HEAD.format("x") + functions(*map(function, numbers))).encode())}
        for numbers in lists
    )
    result = merge_packages(o, u, mine)
    assert (result.files, result.conflicts) == (wanted, ())


def test_a_new_name_upstream_does_not_rename_the_clone():
    sides = [{"Kptfile": ("100644", HEAD.format(name).encode())} for name in ("one", "two", "mine")]
    result = merge_packages(*sides)
    assert result.files == sides[2]
    assert result.conflicts == ()


def test_the_origin_of_a_subpackage_follows_upstream():
    """The rule about a package's own `upstream` is about the package itself."""
    sides = [
        {
            "Kptfile": ("100644", HEAD.format("x").encode()),
            "s/Kptfile": ("100644", (HEAD.format("s") + LOCK.format(*lock) + more).encode()),
        }
        for lock, more in ((("v1", "c1"), ""), (("v2", "c2"), ""), (("v1", "c1"), "x: mine\n"))
    ]
    result = merge_packages(*sides)
    text = result.files["s/Kptfile"][1].decode()
    assert text == HEAD.format("s") + LOCK.format("v2", "c2") + "x: mine\n"
    assert not result.conflicts


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: databases.example.com
spec:
  group: example.com
  names: {kind: Database}
  versions:
  - name: v1
    storage: true
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              users:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
              tags:
                type: array
                x-kubernetes-list-type: set
"""
DATABASE = """\
apiVersion: example.com/v1
kind: Database
metadata:
  name: main
spec:
  users:
  - id: a
    role: {}
  - id: b
    role: {}
  tags: {}
"""


@pytest.mark.parametrize("side", [0, 1, 2], ids=["origin", "upstream", "local"])
@pytest.mark.parametrize("path", ["crd.yaml", "sub/crd.yaml"])
def test_lists_of_custom_resources_match_by_the_keys_of_a_definition_on_any_side(side, path):
    sides = [
        {"db.yaml": ("100644", DATABASE.format(*values).encode())}
        for values in (("r", "r", "[x]"), ("w", "r", "[x, up]"), ("r", "w", "[x, mine]"))
    ]
    sides[side][path] = ("100644", CRD.encode())
    result = merge_packages(*sides)
    assert result.files["db.yaml"][1].decode() == DATABASE.format("w", "w", "[x, up, mine]")
    assert not result.conflicts


def test_without_a_definition_such_lists_have_no_keys():
    texts = [DATABASE.format(*values) for values in (("r", "r", "[]"), ("w", "r", "[]"))]
    texts.append(DATABASE.format("r", "w", "[]").replace("  - id: a\n    role: r\n", ""))
    sides = [{"db.yaml": ("100644", text.encode())} for text in texts]
    [conflict] = merge_packages(*sides).conflicts
    assert conflict.where.field == "spec.users"


def test_the_keys_of_built_in_kinds_lead_to_every_list_of_a_pod():
    head = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: x}}\nspec:\n  jobTemplate:\n"
    pod = head + (
        "    spec:\n      template:\n        spec:\n          volumes:\n"
        "          - {{name: a, emptyDir: {{}}{}}}\n          - {{name: b{}}}\n"
    )
    sides = [
        {"job.yaml": ("100644", pod.format(*more).encode())}
        for more in (("", ""), ("", ", x: 1"), (", y: 1", ""))
    ]
    result = merge_packages(*sides)
    assert result.files["job.yaml"][1].decode() == pod.format(", y: 1", ", x: 1")
    [document] = Manifest.parse(result.files["job.yaml"][1], "job.yaml").documents
    assert len(document.value["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]) == 2
