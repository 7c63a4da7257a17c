"""The index of policies names everybody whom a changed object concerns, and few others."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reconcile.builders import parsed

from fanout.api.git_repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_validation import validate_object
from fanout.declared.declared_objects import DeclaredObjects
from fanout.pending_inputs import ExpressionRequest, InputPending
from fanout.plan.evidence.check_readings import read_check
from fanout.plan.evidence.due_checks import DueCheck, machine_checks
from fanout.reconcile.memo.resolution_memo import PolicyResolution, ResolutionMemo
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, resolve_policies
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.selection.cluster_objects import ClusterObjectIndex, group_by_kind, version_of
from fanout.selection.variant_spec import Object
from fanout.telemetry.metrics import Counters
from fanout.values import replace
from fanout.variants.injection_points import InjectionPoint, find_injection

NAME_EXPRESSION = "target.metadata.name"
POINTS = tuple(
    InjectionPoint("a.yaml", 0, 1, group, "v1", kind, "site", True, f"{kind}/site", field)
    for group, kind, field in (("", "ConfigMap", "data"), ("example.com", "Health", "spec"))
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(WorkerLimits(), Counters()) as opened:
        yield opened


def repository(name: str) -> Repository:
    made: Repository = parsed("Repository", name, url=f"https://git.example.com/{name}.git")
    labels = {"ring": name}
    meta = {"namespace": "a", "labels": labels}
    allowed = {"allowed_namespaces": ("*",)}
    return made.model_copy(
        update={
            "metadata": made.metadata.model_copy(update=meta),
            "spec": made.spec.model_copy(update=allowed),
        }
    )


REPOSITORIES = (repository("blueprints"), repository("edge"))


def policy(
    name: str,
    *targets: dict[str, Any],
    namespace: str = "a",
    checks: Sequence[dict[str, Any]] = (),
    injectors: Sequence[dict[str, Any]] = (),
) -> UpstreamPolicy:
    """Return a policy that chooses these targets, with object checks of its only stage."""
    template = {
        "stage": "dev",
        "downstream": {"repository": "edge", "packageExpr": "'sites/' + target.metadata.name"},
        "injectors": [*injectors],
    }
    verification = [
        {
            "name": f"c{index}",
            "freshFor": "10m",
            "settle": "1s",
            "object": {"cel": "object.ok", **check},
        }
        for index, check in enumerate(checks)
    ]
    document = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "UpstreamPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "upstream": {
                "repository": "blueprints",
                "package": "web",
                "revision": {"latest": True},
            },
            "targets": [{**it, "template": template} for it in targets],
            "stages": [{"name": "dev", "verification": verification}],
        },
    }
    item, errors = validate_object(document)
    assert errors == ()
    assert isinstance(item, UpstreamPolicy)
    return item


def choose(api_version: str = "example.com/v1", kind: str = "Cluster", **selector: Any) -> Any:
    return {"objectSelector": {"apiVersion": api_version, "kind": kind, **selector}}


def plain(
    kind: str, namespace: str, name: str, content: object = 0, labels: object = None, **more: Any
) -> Object:
    meta: dict[str, Any] = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels is not None:
        meta["labels"] = labels
    api_version = "v1" if kind == "ConfigMap" else "example.com/v1"
    field = "data" if kind == "ConfigMap" else "spec"
    item = {"apiVersion": api_version, "kind": kind, "metadata": meta, field: {"value": content}}
    return {**item, **more}


def index_of(previous: ClusterObjectIndex, objects: Sequence[Object]) -> ClusterObjectIndex:
    """Return an index of the objects; those in version v1beta1 are beside the others."""
    sides: list[dict[tuple[str, str], dict[tuple[str, str], Object]]] = [
        group_by_kind(it for it in objects if (version_of(it["apiVersion"]) == "v1beta1") is side)
        for side in (False, True)
    ]
    main, others = (
        {kind: {name: names[name] for name in sorted(names)} for kind, names in side.items()}
        for side in sides
    )
    return previous.with_objects(
        {**{kind: {} for kind in others}, **main},
        {(*kind, "v1beta1"): names for kind, names in others.items()},
    )


class Declared:
    """Policies, and the changes of the objects that they choose and read."""

    def __init__(self, sandbox: ProcessSandbox, *policies: UpstreamPolicy) -> None:
        self.sandbox, self.memo = sandbox, ResolutionMemo(sandbox)
        ordered = sorted(policies, key=lambda it: (it.metadata.namespace, it.metadata.name))
        self.declared = DeclaredObjects(repositories=REPOSITORIES, policies=tuple(ordered))

    def resolve(self, *objects: Object) -> PolicyResolution:
        """Resolve the policies with these objects in place of those of before."""
        index = index_of(self.declared.objects, objects)
        self.declared = replace(self.declared, objects=index)
        return self.memo.resolve(self.declared)

    def find_concerned(self, *objects: Object) -> set[str]:
        return {name for _, name, _ in self.resolve(*objects).concerned}


@pytest.mark.parametrize("labels", [{"tier": "prod"}, {}, None], ids=["another", "gone", "none"])
def test_a_target_that_loses_its_label_wakes_its_policy_and_loses_its_variant(
    sandbox: ProcessSandbox, labels: dict[str, str] | None
):
    declared = Declared(sandbox, policy("web", choose(matchLabels={"tier": "dev"})))
    [web] = declared.resolve(plain("Cluster", "a", "ams", labels={"tier": "dev"})).policies
    assert [it.path for it in web.variants] == ["sites/ams"]
    resolution = declared.resolve(plain("Cluster", "a", "ams", labels=labels))
    assert {name for _, name, _ in resolution.concerned} == {"web"}
    assert [it.variants for it in resolution.policies] == [()]


HEALTH = {"apiVersion": "example.com/v1", "kind": "Health"}


@pytest.mark.parametrize(
    ("check", "concerned_by"),
    [
        ({**HEALTH, "nameExpr": NAME_EXPRESSION}, {"", "a"}),
        ({**HEALTH, "name": "ams"}, {"", "a"}),
        ({**HEALTH, "name": "ams", "namespace": "b"}, {"b"}),
    ],
    ids=["its own", "its own by name", "another namespace"],
)
def test_a_changed_object_wakes_the_policies_whose_checks_may_read_it(
    sandbox: ProcessSandbox, check: dict[str, Any], concerned_by: set[str]
):
    declared = Declared(sandbox, policy("web", choose(), checks=[check]))
    site = plain("Cluster", "a", "ams")
    values = dict.fromkeys(("", "a", "b"), 0)
    state = [plain("Health", it, "ams", value) for it, value in values.items()]
    declared.resolve(site, *state)
    seen = set()
    for namespace in values:
        values[namespace] += 1
        state = [plain("Health", it, "ams", value) for it, value in values.items()]
        if declared.find_concerned(site, *state):
            seen.add(namespace)
    assert seen == concerned_by


def test_an_object_of_another_namespace_wakes_nobody(sandbox: ProcessSandbox):
    """A hundred tenants that check one kind cost each other nothing."""
    checks = [{**HEALTH, "nameExpr": NAME_EXPRESSION}]
    policies = [policy(f"web-{it}", choose(), namespace=it, checks=checks) for it in ("a", "b")]
    declared = Declared(sandbox, *policies)
    sites = [plain("Cluster", it, "ams") for it in ("a", "b")]
    declared.resolve(*sites, plain("Health", "a", "ams"), plain("Health", "b", "ams"))
    changed = plain("Health", "b", "ams", 1)
    assert declared.find_concerned(*sites, plain("Health", "a", "ams"), changed) == {"web-b"}


# ---- the law -----------------------------------------------------------------------------------

KEYS, VALUES = st.sampled_from(["tier", "region"]), st.sampled_from(["dev", "prod", ""])
NAMES, NAMESPACES = st.sampled_from(["ams", "ber"]), st.sampled_from(["", "a", "b"])
KINDS = st.sampled_from(["Cluster", "Health", "ConfigMap"])
LABELS = st.none() | st.just("none") | st.dictionaries(KEYS, VALUES | st.just(1))
CONTENTS = st.sampled_from([0, 1, True, "1"])
SETS = st.lists(VALUES, min_size=1, max_size=2, unique=True)
REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        SETS,
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        KEYS,
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
API_VERSIONS = st.sampled_from(["example.com/v1", "example.com/v1beta1"])


def build_selector(fields: Any) -> Any:
    return choose(**fields)


TARGETS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "api_version": API_VERSIONS,
            "kind": st.sampled_from(["Cluster", "Health"]),
            "name": NAMES,
            "matchLabels": st.dictionaries(KEYS, VALUES, max_size=1),
            "matchExpressions": st.lists(REQUIREMENTS, max_size=2),
        },
    ).map(build_selector),
    st.just({"repositorySelector": {"matchLabels": {"ring": "edge"}}}),
)
CHECKS = st.builds(
    lambda api_version, name, namespace: {
        "apiVersion": api_version,
        "kind": "Health",
        **({"name": name} if name else {"nameExpr": NAME_EXPRESSION}),
        **({"namespace": namespace} if namespace else {}),
    },
    API_VERSIONS,
    st.none() | NAMES,
    st.none() | st.sampled_from(["a", "b"]),
)
INJECTORS = st.builds(
    lambda kind, name: kind | name,
    st.sampled_from([{}, {"kind": "ConfigMap"}, {"kind": "Health", "version": "v1"}]),
    st.sampled_from([{"name": "ber"}, {"nameExpr": NAME_EXPRESSION}]),
)
POLICIES = st.lists(
    st.builds(
        lambda namespace, target, checks, injectors: (namespace, target, checks, injectors),
        st.sampled_from(["a", "b"]),
        TARGETS,
        st.lists(CHECKS, max_size=2),
        st.lists(INJECTORS, max_size=1),
    ),
    min_size=1,
    max_size=3,
).map(
    lambda rows: [
        policy(f"p{index}", row[1], namespace=row[0], checks=row[2], injectors=row[3])
        for index, row in enumerate(rows)
    ]
)
OBJECTS = st.dictionaries(
    st.tuples(KINDS, NAMESPACES, NAMES, st.sampled_from(["v1", "v1beta1"])),
    st.tuples(CONTENTS, LABELS),
    min_size=4,
    max_size=16,
).map(
    lambda items: [
        plain(kind, namespace, name, *content)
        if version == "v1" or kind == "ConfigMap"
        else plain(kind, namespace, name, *content, apiVersion="example.com/v1beta1")
        for (kind, namespace, name, version), content in items.items()
    ]
)


def read_inputs(resolved: ResolvedPolicy, objects: ClusterObjectIndex) -> str:
    """Return all that a policy makes of the objects: its variants, injections and readings."""
    assert resolved.upstream_policy is not None
    keys = {it.key for it in POINTS}
    injections = [
        find_injection(point, spec, objects, keys) for spec in resolved.variants for point in POINTS
    ]
    checks = machine_checks(resolved.upstream_policy.spec.stages[0].verification)
    readings = [
        read_object(
            DueCheck(
                variant=spec.name,
                check=check,
                digest="d1",
                variables=resolved.expression_variables[spec.name],
                namespace=spec.namespace,
            ),
            objects,
        )
        for spec in resolved.variants
        for check in checks
    ]
    return repr((resolved.variants, resolved.failures, resolved.targets, injections, readings))


def read_object(due: DueCheck, objects: ClusterObjectIndex) -> object:
    """Return the object that a check reads, or the reading without one."""
    target = due.variables["target"]
    name = target["metadata"]["name"]
    responses = {ExpressionRequest(NAME_EXPRESSION, due.variables): name}
    try:
        return read_check(due, objects, responses, ("a", "b"))
    except InputPending as pending:
        return [
            it.variables["object"] for it in pending.requests if isinstance(it, ExpressionRequest)
        ]


@settings(max_examples=80)
@given(POLICIES, OBJECTS, OBJECTS)
def test_a_change_wakes_everybody_who_makes_something_else_of_the_objects(
    sandbox: ProcessSandbox,
    policies: list[UpstreamPolicy],
    before: list[Object],
    after: list[Object],
):
    declared = Declared(sandbox, *policies)
    previous = {
        it.key: read_inputs(it, declared.declared.objects) for it in declared.resolve().policies
    }
    # With half of what comes: some objects are gone, some are new and some have changed.
    for objects in (before, [*before, *after[::2]], after, before[::2]):
        resolution = declared.resolve(*objects)
        fresh = resolve_policies(declared.declared, sandbox)
        present = {it.key: read_inputs(it, declared.declared.objects) for it in fresh}
        remembered = {
            it.key: read_inputs(it, declared.declared.objects) for it in resolution.policies
        }
        assert remembered == present
        differing = {key for key, inputs in present.items() if inputs != previous[key]}
        assert differing <= resolution.concerned
        previous = present
