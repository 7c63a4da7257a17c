"""Variants of one form are filled into what was made once, with the bytes that each gets alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import KPTFILE, by, config_map, package, point, rows, site, spec

from fanout.errors import InvalidInput
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.compiled_template import CompiledTemplate
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

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
SET = """\
apiVersion: example.com/v1
kind: Thing
metadata: {name: thing}
spec:
  tag: old # kpt-set: ${tag}
  both: a-b # kpt-set: ${zone}-${tag}
  quoted: "x" # kpt-set: ${zone}
  number: 1.5 # kpt-set: 1.${tag}
  list: [x] # kpt-set: ${zone}
"""
SITE = point("Site", "example.com/v1") + "spec:\n  zone: a\n  asn: 64512\n  dns: [10.0.0.1]\n"
CONFIGURED = KPTFILE + "pipeline:\n  mutators:\n  - {{image: {}, configPath: {}}}\n"
FILES = {
    "service.yaml": SERVICE,
    "all.yaml": f"{SERVICE}---\n{DEPLOYMENT}",
    "setters.yaml": SET,
    "settings.yaml": point() + "data:\n  zone: 'a'\n  gone: x\n",
    "site.yaml": SITE,
    "rbac.json": '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}}\n',
    "deep/down/service.yaml": SERVICE,
    "notes.md": "text\n",
}


def rendering(prepared, objects, fields):
    variant = spec(**fields)
    return render_variant(
        prepared, variant, resolve_inputs(prepared, variant, ClusterObjectIndex(objects))
    )


def outcome(prepared, objects, fields):
    try:
        return rendering(prepared, objects, fields)
    except InvalidInput as error:
        return str(error)


def moulds(prepared):
    return [
        mould for mould in prepared.template_cache.values() if isinstance(mould, CompiledTemplate)
    ]


def in_turn(files, variants):
    """What each variant gets after the others, and what it gets alone; and the moulds that were
    made for it."""
    upstream = package(files)
    prepared = prepare_package(upstream, RenderLimits())
    together = [outcome(prepared, *variant) for variant in variants]
    alone = [outcome(prepare_package(upstream, RenderLimits()), *variant) for variant in variants]
    return together, alone, moulds(prepared)


# ---- the law -----------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["shop", "eu", "a", "edge-1", "x.y_z", "true", "1", "1e3", "0x1f", "null", "1.0", "web"]
)
TEXTS = WORDS | st.sampled_from(
    ["a: b", "a:b", "# no", "it's", '"', " blank ", "line\nline\n", "é\u2028", "zz-leaf-1-zz"]
)
SETTINGS = st.sampled_from(["eu", "shop", "x.y_z", "1.2.3", "edge-1"])
NUMBERS = st.sampled_from(
    [st.integers(-5, 70_000) | st.just(64512), st.floats(-10, 10), st.booleans() | st.none()]
)


def function(image, /, **config):
    return st.fixed_dictionaries(config).map(lambda it: FunctionSpec(image, config=it))


FUNCTIONS = [
    function("set-labels", site=WORDS, app=WORDS),
    function("set-labels", tier=WORDS),
    function("set-namespace", namespace=WORDS),
    function("set-namespace", namespace=WORDS, namespaceMatcher=st.just("shop")),
    function("set-image", name=st.just("example.com/web"), newTag=WORDS),
    function("set-annotations", note=TEXTS),
    function("apply-setters", tag=SETTINGS, zone=SETTINGS),
    function("apply-setters", tag=TEXTS, zone=st.just("[a, b]")),
    function("search-replace", **{"by-value": st.just("web"), "put-value": WORDS}),
    TEXTS.map(lambda it: FunctionSpec("set-annotations", config={"note": it},
                                  selectors=({"kind": "Service"},))),
]  # fmt: skip


@st.composite
def families(draw):
    """Variants that mostly differ in leaves alone."""
    used = draw(st.lists(st.sampled_from(FUNCTIONS), max_size=3))
    asked = draw(st.lists(st.sampled_from(["zone", "more", "list"]), unique=True))
    texts, numbers = draw(st.sampled_from([TEXTS, TEXTS, TEXTS | st.just("")])), draw(NUMBERS)
    variants = []
    for number in range(draw(st.integers(3, 6))):
        data = {name: draw(texts) for name in asked}
        zone = {"zone": draw(texts), "asn": draw(numbers), "dns": [draw(texts)], "on": True}
        fields = {
            "name": f"monitoring-eu-{number}",
            "path": f"clusters/{draw(WORDS)}",
            "context": {"region": draw(texts)},
            "labels": {"tier": draw(texts)},
            "injectors": (by("here"),),
            "mutators": tuple(draw(one) for one in used),
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
    defaults = {
        "name": f"monitoring-{name}",
        "path": f"clusters/{name}",
        "context": {"region": f"region-{name}"},
        "injectors": (by("here"),) if settings else (),
        "mutators": functions,
    }
    return [config_map("here", data=data)], defaults | fields


def own(image, *values, **config):
    """For each name one function, with the name in some of its settings."""
    return lambda name: FunctionSpec(image, config=config | dict.fromkeys(values, name))


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
     {"a.yaml": DEPLOYMENT}, [lambda _: FunctionSpec("ensure-name-substring", config={
         "prepend": "new-"}), NAMESPACE], True),
    ("configured by the package context",
     {**PLAIN, "Kptfile": CONFIGURED.format("set-namespace", "package-context.yaml")}, [], True),
    ("with a function that goes by a value that a function before it has set",
     PLAIN, [NAMESPACE, own("set-namespace", "namespace", namespaceMatcher="shop")], False),
    ("with setters of texts", {"a.yaml": SETTERS},
     [lambda name: FunctionSpec("apply-setters", config={"tag": f"v{name}"})], True),
    ("with setters of numbers, which are no text where no quotes are",
     {"a.yaml": SETTERS}, [lambda name: own("apply-setters", "tag")(name[1:])], False),
    ("with setters from the package context", {
        "a.yaml": SETTERS.replace("tag", "region"),
        "Kptfile": CONFIGURED.format("apply-setters", "package-context.yaml")}, [], True),
    ("with a function that searches in what is injected",
     PLAIN, [lambda _: FunctionSpec("search-replace", config={
         "by-value": "zone-e1", "put-value": "www"})], False),
    ("with objects that wait for others",
     {**PLAIN, "b.yaml": SERVICE.replace("'shop'", "shop\n  annotations:\n    "
      "config.kubernetes.io/depends-on: /namespaces/shop/Service/web")}, [NAMESPACE], False),
]  # fmt: skip


@pytest.mark.parametrize(("files", "functions", "expected"), rows(FORMS))
def test_variants_of_a_shape_share_a_compiled_template(files, functions, expected):
    names = ("e1", "e2", "e3", "e4")
    variants = [cluster(name, *(make(name) for make in functions)) for name in names]
    together, alone, made = in_turn(files, variants)
    assert together == alone
    assert bool(made) is expected


def test_a_variant_that_does_not_fit_leaves_the_template_to_the_others():
    """The second one, for which it would be made, has a number where the others have texts."""
    kptfile = CONFIGURED.format("apply-setters", "package-context.yaml")
    files = {"a.yaml": SETTERS.replace("tag", "region"), "Kptfile": kptfile}
    regions = ("north", "12", "south", "13", "1.20", "[a, b]", "west")
    variants = [cluster("e", context={"region": region}) for region in regions]
    together, alone, made = in_turn(files, variants)
    assert together == alone
    assert made


def test_a_single_variant_of_a_shape_compiles_no_template():
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
    assert "'No Name' is not a valid namespace name" in together[2]


SPELLINGS = [
    ("alone", "a"),
    ("in single quotes", "'a'"),
    ("in double quotes", '"a"'),
    ("before a comment", "a   # here"),
    ("as a block", "|-\n    a"),
    ("as a folded block", ">-\n    a"),
    ("with an anchor", "&zone a"),
]


@pytest.mark.parametrize("spelling", rows(SPELLINGS))
def test_a_value_that_is_there_already_stays_as_it_is_spelled(spelling):
    def variant(zone):
        _, fields = cluster(zone)
        return [config_map("here", data={"zone": zone, "more": "x", "next": zone})], fields

    settings = f"{point()}data:\n  zone: {spelling}\n  next: b\n  gone: x\n"
    variants = [variant(zone) for zone in ("one", "two", "a", "b", "c")]
    together, alone, made = in_turn({**PLAIN, "settings.yaml": settings}, variants)
    assert together == alone
    assert made
    assert f"zone: {spelling}\n".encode() in b"".join(together[2].blobs.values())


ALIKE = [
    ("the same number", "0x1", 1),
    ("another kind of number", "1", 1.0),
    ("a number where a truth is", "true", 1),
]


@pytest.mark.parametrize(("present", "number"), rows(ALIKE))
def test_numbers_are_compared_with_their_kind(present, number):
    def variant(name, asn):
        _, fields = cluster(name, settings=False, injectors=(by("here"),))
        return [site("here", spec={"zone": name, "asn": asn})], fields

    files = {"a.yaml": DEPLOYMENT, "site.yaml": SITE.replace("64512", present)}
    numbers = (number + 1, number + 2, number, number + 3)
    together, alone, made = in_turn(files, [variant(f"e{it}", it) for it in numbers])
    assert together == alone
    assert made
