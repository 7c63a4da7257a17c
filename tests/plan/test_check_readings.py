"""What an answer of a machine comes to: three values, the revision it has seen, and a sentence."""

from typing import Any

import pytest

from fanout.api.gate_vocabulary import Verdict
from fanout.api.stages import Check
from fanout.pending_inputs import ExpressionRequest, InputPending
from fanout.plan import plan_wording
from fanout.plan.evidence.check_readings import (
    build_reading,
    parse_commit,
    read_check,
    unusable_response,
)
from fanout.plan.evidence.due_checks import DueCheck, machine_checks
from fanout.plan.evidence.probe_queries import ProbeQuery, ProbeResponse
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import ExpressionFailure

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NO_FIELD = ExpressionFailure("ExpressionError", "no field status")

SEEN = [
    ("Flux", f"main@sha1:{COMMIT}", COMMIT),
    ("Flux, of a tag", f"v1.2.0@sha1:{COMMIT}", COMMIT),
    ("Flux, before 2.0", f"main/{COMMIT}", COMMIT),
    ("a branch with a slash in it", f"release/1.2@sha1:{COMMIT}", COMMIT),
    ("Argo CD", COMMIT, COMMIT),
    ("a line end", f"{COMMIT}\n", COMMIT),
    ("a revision", "v2", "v2"),
    ("half a commit", COMMIT[:7], COMMIT[:7]),
    ("something longer", f"x{COMMIT}", f"x{COMMIT}"),
    ("a digest of an image", f"main@sha256:{'a' * 64}", f"main@sha256:{'a' * 64}"),
    ("no end of text", "x" * 1000, "x" * 128),
]


@pytest.mark.parametrize(("text", "seen"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_a_commit_is_parsed_from_a_response(text, seen):
    assert parse_commit(text) == seen


def due(way="object", observed="", draft="", cel="object.ok"):
    asked = {"cel": cel}
    if observed:
        asked["observedRevision"] = observed
    if way == "object":
        asked |= {"apiVersion": "v1", "kind": "ConfigMap", "name": "state"}
    else:
        asked |= {"address": "http://127.0.0.1/", "query": "up", "cel": observed or "result > 0"}
    check = Check.model_validate({"name": "health", way: asked})
    row = {"upstream": {"revision": "v2"}}
    return DueCheck(
        variant="ams",
        check=check,
        digest="d1",
        variables=row,
        namespace="default",
        draft_commit=draft,
    )


NEITHER = "object.ok is neither true nor false"
ANSWERS = [
    ("true is passed", True, "", Verdict.PASSED, "object.ok is true"),
    ("false is failed", False, "", Verdict.FAILED, "object.ok is false"),
    ("null is neither", None, "", Verdict.PENDING, NEITHER),
    ("a text is neither", "true", "", Verdict.PENDING, NEITHER),
    ("one is not true", 1, "", Verdict.PENDING, NEITHER),
    ("an error is neither", NO_FIELD, "", Verdict.PENDING, "object.ok: no field status"),
    ("true of an unknown revision is neither", True, NO_FIELD, Verdict.PENDING,
     "object.seen: no field status"),
    ("nor is it of a number", True, 2, Verdict.PENDING,
     "object.seen yields no text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "observed", "verdict", "detail"),
    [row[1:] for row in ANSWERS],
    ids=[row[0] for row in ANSWERS],
)
def test_reading_of_an_answer(outcome, observed, verdict, detail):
    item = due(observed="object.seen" if observed else "")
    reading = build_reading(item, "ConfigMap state", ProbeResponse({}), outcome, observed or None)
    assert (reading.check, reading.digest, reading.verdict) == ("health", "d1", verdict)
    assert reading.message.startswith("ConfigMap state: ")
    assert reading.message.endswith(detail)


READY = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == "


def test_a_long_expression_is_repeated_with_its_end():
    """That is where two checks that begin alike differ."""
    long = [due(cel=f"{READY}'True') ? true : {READY}'{it}') ? false : null") for it in ("No", "F")]
    messages = [
        build_reading(item, "it", ProbeResponse({}), outcome=False, observed=None).message
        for item in long
    ]
    assert all(words.startswith(f"it: {READY[:60]}…") for words in messages)
    assert messages[0].endswith("c.status == 'No') ? false : null is false")
    assert messages[1].endswith("c.status == 'F') ? false : null is false")


def test_an_object_says_itself_why():
    conditions = [{"type": "Ready", "message": "health check\n failed"}]
    answer = ProbeResponse({"status": {"conditions": conditions}})
    reading = build_reading(due(), "it", answer, outcome=False, observed=None)
    assert reading.message == (
        "it: object.ok is false; its Ready condition says: health check failed"
    )


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": 3}, {"conditions": [4]}])
def test_an_object_of_any_shape_is_no_accident(status):
    reading = build_reading(
        due(), "it", ProbeResponse({"status": status}), outcome=False, observed=None
    )
    assert reading.verdict is Verdict.FAILED


def test_a_draft_s_own_commit_is_its_revision():
    reading = build_reading(
        due(observed="x", draft=COMMIT), "it", ProbeResponse({}), outcome=True, observed=COMMIT
    )
    assert reading.observed_revision == "v2"


def test_an_index_into_several_series_is_chance():
    one, two = [{"value": 1}], [{"value": 1}, {"value": 2}]
    index, whole = due("prometheus", "result[0].value > 0"), due("prometheus", "result.size() > 0")
    assert [bool(unusable_response(index, ProbeResponse(it))) for it in (one, two, 0.5)] == [
        False,
        True,
        False,
    ]
    assert unusable_response(whole, ProbeResponse(two)) == ""


def test_people_are_no_machines():
    report = Check.model_validate({"name": "e2e", "report": {}})
    approval = Check.model_validate({"name": "ok", "approval": {"from": ["sre"]}})
    status = Check.model_validate({"name": "ci", "commitStatus": {"context": "ci"}})
    assert machine_checks([report, approval, status]) == (status,)


def http_check(url):
    rule = {"urlExpr": url, "cel": "response.ok", "observedRevision": "response.seen"}
    return due_check({"name": "smoke", "http": rule})


def due_check(check, **variables):
    return DueCheck(
        variant="ams",
        check=Check.model_validate(check),
        digest="d1",
        variables={"target": {"name": "ams"}, **variables},
        namespace="default",
    )


def pending_requests(item, responses, objects=()):
    with pytest.raises(InputPending) as pending:
        read_check(item, ClusterObjectIndex(objects), responses)
    return list(pending.value.requests)


def test_a_check_of_a_service_requests_its_address_then_the_answer_then_their_values():
    item = http_check("target.url")
    responses: dict[Any, Any] = {}
    [address] = pending_requests(item, responses)
    assert address == ExpressionRequest("target.url", item.variables)
    responses[address] = "http://127.0.0.1/"
    [probe] = pending_requests(item, responses)
    assert probe == ProbeQuery(url="http://127.0.0.1/")
    answer = responses[probe] = ProbeResponse({"ok": True, "seen": "v2"})
    values = pending_requests(item, responses)
    variables = {**item.variables, "response": answer.value}
    texts = ("response.ok", "response.seen")
    assert values == [ExpressionRequest(text, variables) for text in texts]
    responses |= dict(zip(values, (True, "v2"), strict=True))
    reading = read_check(item, ClusterObjectIndex(), responses)
    assert (reading.verdict, reading.observed_revision) == (Verdict.PASSED, "v2")


def test_a_check_of_an_object_requests_no_probe():
    rule = {"apiVersion": "v1", "kind": "ConfigMap", "name": "state", "cel": "object.data.ok"}
    item = due_check({"name": "health", "object": rule})
    state = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "state", "namespace": "default"},
        "data": {"ok": "yes"},
    }
    [value] = pending_requests(item, {}, [state])
    assert value == ExpressionRequest("object.data.ok", {**item.variables, "object": state})
    missing = read_check(item, ClusterObjectIndex(), {})
    assert missing.verdict is Verdict.PENDING
    assert missing.message == "there is no ConfigMap default/state"


SECRETIVE = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"ok": "yes"}}


@pytest.mark.parametrize("objects", [[], [("payments", "state")]], ids=["missing", "present"])
def test_a_check_reads_no_object_of_another_namespace(objects):
    """Nor does its message tell whether there is one."""
    rule = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "state", "namespace": "payments",
        "cel": "true", "observedRevision": "object.data.ok",
    }  # fmt: skip
    item = due_check({"name": "health", "object": rule})
    index = ClusterObjectIndex(
        [{**SECRETIVE, "metadata": {"namespace": it, "name": name}} for it, name in objects]
    )
    reading = read_check(item, index, {})
    assert reading.verdict is Verdict.PENDING
    assert reading.message == plan_wording.describe_unreadable_namespace("payments", "default")


def test_a_check_reads_objects_of_namespaces_that_an_administrator_names():
    rule = {"apiVersion": "v1", "kind": "ConfigMap", "name": "state", "namespace": "payments"}
    item = due_check({"name": "health", "object": {**rule, "cel": "object.data.ok"}})
    state = {**SECRETIVE, "metadata": {"namespace": "payments", "name": "state"}}
    with pytest.raises(InputPending) as pending:
        read_check(item, ClusterObjectIndex([state]), {}, frozenset({"payments"}))
    [request] = pending.value.requests
    assert request == ExpressionRequest("object.data.ok", {**item.variables, "object": state})


def test_a_check_reads_its_object_in_the_version_that_it_names():
    names = {("default", "state"): {"apiVersion": "example.com/v2", "kind": "State"}}
    earlier = {("default", "state"): {"apiVersion": "example.com/v1", "kind": "State"}}
    objects = ClusterObjectIndex().with_objects(
        {("example.com", "State"): names}, {("example.com", "State", "v1"): earlier}
    )
    for version in ("v1", "v2"):
        api_version = f"example.com/{version}"
        rule = {"apiVersion": api_version, "kind": "State", "name": "state", "cel": "object.ok"}
        with pytest.raises(InputPending) as pending:
            read_check(due_check({"name": "health", "object": rule}), objects, {})
        [request] = pending.value.requests
        assert isinstance(request, ExpressionRequest)
        assert request.variables["object"]["apiVersion"] == api_version


def test_an_address_without_a_text_leaves_the_check_pending():
    item = http_check("target.url")
    responses = {ExpressionRequest("target.url", item.variables): 3}
    reading = read_check(item, ClusterObjectIndex(), responses)
    assert reading.verdict is Verdict.PENDING
    assert reading.message == "target.url yields no text"
