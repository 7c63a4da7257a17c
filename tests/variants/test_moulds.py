"""Variants of one form are filled into what was made once, with the bytes that each gets alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import KPTFILE, by, config_map, package, point, rows, site, spec

from fanout.errors import InvalidInput
from fanout.selection.model import Function
from fanout.selection.objects import ObjectIndex
from fanout.variants.model import Limits
from fanout.variants.mould import Mould
from fanout.variants.prepare import prepare
from fanout.variants.render import render
from fanout.variants.resolve import resolve

SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: web # ours
  namespace: 'shop'
spec:
  selector: {app: web}
  ports:
  - port: 80
"""
DEPLOYMENT = """\
# a workload
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop   # where it runs
  labels: {app: web, site: "eu"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - image: example.com/web:1.0
        name: web
"""
SITE = point("Site", "example.com/v1") + "spec:\n  zone: a\n  asn: 64512\n  dns: [10.0.0.1]\n"
CONFIGURED = KPTFILE + "pipeline:\n  mutators:\n  - {{image: {}, configPath: {}}}\n"
FILES = {
    "service.yaml": SERVICE,
    "all.yaml": f"{SERVICE}---\n{DEPLOYMENT}",
    "settings.yaml": point() + "data:\n  zone: 'a'\n  gone: x\n",
    "site.yaml": SITE,
    "rbac.json": '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}}\n',
    "deep/down/service.yaml": SERVICE,
    "notes.md": "text\n",
}


def rendering(prepared, objects, fields):
    variant = spec(**fields)
    return render(prepared, variant, resolve(prepared, variant, ObjectIndex(objects)))


def outcome(prepared, objects, fields):
    try:
        return rendering(prepared, objects, fields)
    except InvalidInput as error:
        return str(error)


def moulds(prepared):
    return [mould for mould in prepared.moulds.values() if isinstance(mould, Mould)]


def in_turn(files, variants):
    """What each variant gets after the others, and what it gets alone; and the moulds that were
    made for it."""
    upstream = package(files)
    prepared = prepare(upstream, Limits())
    together = [outcome(prepared, *variant) for variant in variants]
    alone = [outcome(prepare(upstream, Limits()), *variant) for variant in variants]
    return together, alone, moulds(prepared)


# ---- the law -----------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["shop", "eu", "a", "edge-1", "x.y_z", "true", "1", "1e3", "0x1f", "null", "1.0", "web"]
)
TEXTS = WORDS | st.sampled_from(
    ["", "a: b", "a:b", "# no", "it's", '"', " blank ", "line\nline\n", "é\u2028", "zz-leaf-1-zz"]
)
NUMBERS = st.integers(-5, 70_000) | st.just(64512) | st.floats(-10, 10)
LABELS = st.dictionaries(st.sampled_from(["site", "app", "tier"]), WORDS, min_size=1)


def functions():
    return st.tuples(
        st.builds(lambda it: Function("set-labels", config=it), LABELS),
        st.builds(lambda it: Function("set-namespace", config={"namespace": it}), WORDS),
        st.builds(
            lambda new, old: Function(
                "set-namespace", config={"namespace": new, "namespaceMatcher": old}
            ),
            WORDS,
            st.just("shop"),
        ),
        st.builds(
            lambda tag: Function("set-image", config={"name": "example.com/web", "newTag": tag}),
            WORDS,
        ),
        st.builds(
            lambda it: Function(
                "set-annotations", config={"note": it}, selectors=({"kind": "Service"},)
            ),
            TEXTS,
        ),
        st.builds(
            lambda it: Function("search-replace", config={"by-value": "web", "put-value": it}),
            WORDS,
        ),
    )


@st.composite
def families(draw):
    """Variants that differ in leaves, mostly."""
    used = draw(st.lists(st.integers(0, 5), max_size=3))
    asked = draw(st.lists(st.sampled_from(["zone", "more", "list"]), unique=True))
    variants = []
    for _ in range(draw(st.integers(2, 4))):
        made = draw(functions())
        data = {name: draw(TEXTS) for name in asked}
        zone = {"zone": draw(TEXTS), "asn": draw(NUMBERS), "dns": [draw(TEXTS)], "on": True}
        name = f"eu-{draw(st.integers(0, 3))}"
        fields = {
            "name": f"monitoring-{name}",
            "path": f"clusters/{name}",
            "context": {"region": draw(TEXTS)},
            "labels": {"tier": draw(TEXTS)},
            "injectors": (by("here"),),
            "mutators": tuple(made[number] for number in used),
        }
        variants.append(([config_map("here", data=data), site("here", spec=zone)], fields))
    return variants


@given(families())
def test_a_variant_is_what_it_would_be_alone(variants):
    together, alone, _ = in_turn(FILES, variants)
    assert together == alone


# ---- who has a mould ---------------------------------------------------------------------------


def cluster(name, *functions, settings=True, **fields):
    """A variant with values of its own for everything."""
    data = {"zone": f"zone-{name}", "more": name}
    known = {
        "name": f"monitoring-{name}",
        "path": f"clusters/{name}",
        "context": {"region": f"region-{name}"},
        "injectors": (by("here"),) if settings else (),
        "mutators": functions,
    }
    return [config_map("here", data=data)], known | fields


def own(image, *values, **config):
    """For each name one function, with the name in some of its settings."""
    return lambda name: Function(image, config=config | dict.fromkeys(values, name))


NAMESPACE, LABEL = own("set-namespace", "namespace"), own("set-labels", "site")
TAG = own("set-image", "newTag", name="example.com/web")
PLAIN = {"a.yaml": DEPLOYMENT, "settings.yaml": FILES["settings.yaml"]}
SETTERS = DEPLOYMENT.replace("web:1.0", "web:1.0 # kpt-set: example.com/web:${tag}")
FORMS = [
    ("without functions", PLAIN, [], True),
    ("with own texts in copying functions", PLAIN, [NAMESPACE, LABEL, TAG], True),
    ("with a function that goes by a value of upstream's",
     PLAIN, [own("set-namespace", "namespace", namespaceMatcher="shop")], True),
    ("with a function that looks at objects in which no target differs",
     {"a.yaml": DEPLOYMENT}, [lambda _: Function("ensure-name-substring", config={
         "prepend": "new-"}), NAMESPACE], True),
    ("configured by the package context",
     {**PLAIN, "Kptfile": CONFIGURED.format("set-namespace", "package-context.yaml")}, [], True),
    ("with a function that goes by a value that a function before it has set",
     PLAIN, [NAMESPACE, own("set-namespace", "namespace", namespaceMatcher="shop")], False),
    ("with setters", {"a.yaml": SETTERS}, [own("apply-setters", "tag")], False),
    ("with a function that searches in what is injected",
     PLAIN, [lambda _: Function("search-replace", config={
         "by-value": "zone-1", "put-value": "www"})], False),
    ("with objects that wait for others",
     {**PLAIN, "b.yaml": SERVICE.replace("'shop'", "shop\n  annotations:\n    "
      "config.kubernetes.io/depends-on: /namespaces/shop/Service/web")}, [NAMESPACE], False),
]  # fmt: skip


@pytest.mark.parametrize(("files", "functions", "expected"), rows(FORMS))
def test_variants_have_a_mould(files, functions, expected):
    variants = [cluster(f"{n}", *(make(f"{n}") for make in functions)) for n in "1234"]
    together, alone, made = in_turn(files, variants)
    assert together == alone
    assert bool(made) is expected


def test_one_variant_of_a_form_makes_no_mould():
    _, _, made = in_turn(PLAIN, [cluster("1"), cluster("2", settings=False)])
    assert not made


# ---- what a leaf can be ------------------------------------------------------------------------

LEAVES = [
    ("what is there already, in quotes", "a"),
    ("what needs quotes", "a: b"),
    ("what looks like a number", "0123"),
    ("several lines", "one\ntwo\n"),
    ("nothing", ""),
    ("what a mark looks like", "zz-leaf-2-zz"),
    ("what a slot looks like", "zz:slot:2:zz"),
]


@pytest.mark.parametrize("value", rows(LEAVES))
def test_a_leaf_is_written_as_it_would_be_alone(value):
    def variant(number, text):
        _, fields = cluster(f"{number}")
        return [config_map("here", data={"zone": text, "more": "x"})], fields

    variants = [variant(1, "one"), variant(2, "two"), variant(3, value)]
    together, alone, made = in_turn(PLAIN, variants)
    assert together == alone
    assert made


def test_a_value_that_a_function_refuses_fails_that_variant_alone():
    variants = [cluster(f"{n}", NAMESPACE(f"{n}")) for n in "12"]
    variants += [cluster("3", NAMESPACE("No Name")), cluster("4", NAMESPACE("4"))]
    together, alone, made = in_turn(PLAIN, variants)
    assert together == alone
    assert made
    assert "pipeline.mutators[0]" in together[2]
    assert "'No Name' is no name for a namespace" in together[2]
