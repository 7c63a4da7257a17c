"""Records and status as bytes: what is written is read back, what is broken is told."""

import json
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.record_objects import ApprovalSpec, EvidenceSpec
from fanout.cluster.record_files import (
    RecordContent,
    UnreadableStateError,
    branch_ref,
    build_record_name,
    check_record,
    encode_canonical,
    encode_shard,
    is_record_name_of,
    parse_record,
    parse_shard,
    shard_path,
)
from fanout.plan.records.policy_records import RecordsKey

KEY = RecordsKey("platform", "monitoring")
JO = "Jo <jo@example.com>"
AT = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
names = st.text(max_size=6)
values = st.dictionaries(names.filter(lambda name: name != "key"), plain, max_size=3)


def evidence(**spec):
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "platform"},
        "spec": {
            "policy": "monitoring",
            "stage": "dev",
            "check": "e2e",
            "status": "passed",
            "revision": "v1",
            **spec,
        },
    }


def test_the_branch_of_a_policy_has_its_name():
    assert branch_ref("default", KEY) == "refs/heads/fanout/default/platform/monitoring"
    assert branch_ref("eu", RecordsKey("platform", "")) == "refs/heads/fanout/eu/platform/_"


def test_a_record_s_name_sorts_by_time_and_tells_people_apart():
    name = build_record_name(b"{}\n", JO, AT)
    assert name.startswith("20260301t123005z-")
    assert build_record_name(b"{}\n", JO, AT) == name
    assert build_record_name(b"{}\n", "Kim <kim@example.com>", AT) != name
    assert build_record_name(b"[]\n", JO, AT) != name


def test_a_record_s_name_proves_its_content_and_person():
    name = build_record_name(b"{}\n", JO, AT)
    assert is_record_name_of(name, b"{}\n", JO)
    assert not is_record_name_of(name, b"[]\n", JO)
    assert not is_record_name_of(name, b"{}\n", "Kim <kim@example.com>")


def test_a_record_s_name_may_stand_in_a_revocation():
    approval = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Approval",
        "metadata": {"namespace": "platform", "name": build_record_name(b"{}", JO, AT)},
        "spec": {
            "policy": "monitoring",
            "stage": "prod",
            "check": "signed-off",
            "revision": "v1",
            "revokes": build_record_name(b"{}\n", JO, AT),
        },
    }
    assert check_record(approval, KEY) == ApprovalSpec.model_validate(approval["spec"])


def test_a_record_is_read_as_it_was_written():
    record = evidence(link="https://ci.example.com/ü")
    assert parse_record(encode_canonical(record), KEY) == RecordContent(
        EvidenceSpec.model_validate(record["spec"])
    )


BROKEN = [
    ("bytes that are not JSON", b"{", "is not JSON"),
    ("bytes that are not UTF-8", b'"\xff"', "is not JSON"),
    ("a list", b"[]", "is none of Evidence, Approval, Decision"),
    ("an object that is no record", b'{"kind": "Repository"}', "is none of"),
    ("a key that stands twice", b'{"kind": "Evidence", "kind": "Decision"}', "twice"),
    ("nesting without end", b"[" * 100_000, "is not JSON"),
    ("a field that nobody knows", encode_canonical(evidence(colour="red")), "spec.colour"),
    (
        "a record of another policy",
        encode_canonical(evidence(policy="logging")),
        "platform/logging",
    ),
    (
        "a record of another namespace",
        encode_canonical(evidence() | {"metadata": {}}),
        "default/monitoring",
    ),
]


@pytest.mark.parametrize(("sentence", "data", "problem"), BROKEN, ids=map(itemgetter(0), BROKEN))
def test_a_broken_record_is_reported(sentence, data, problem):
    with pytest.raises(UnreadableStateError, match=problem):
        parse_record(data, KEY)


@given(st.dictionaries(names, values, max_size=6))
def test_status_is_read_as_it_was_written(lines):
    shards: dict[str, dict[str, Any]] = {}
    for key, value in lines.items():
        shards.setdefault(shard_path(key), {})[key] = value
    for path, shard in shards.items():
        data = encode_shard(shard)
        assert parse_shard(data, path) == shard
        assert encode_shard(dict(reversed(shard.items()))) == data


BROKEN_LINES = [
    ("a line that is not JSON", b'{"key": "a"}\n{', "in line 2 is not JSON"),
    ("a line without a key", b'{"x": 1}\n', "no key in line 1"),
    ("a line that is no object", b"3\n", "no key in line 1"),
    ("an empty line", b"\n", "in line 1 is not JSON"),
    ("a key that stands twice", encode_canonical({"key": "a"}) * 2, "line 2"),
    ("a key that belongs elsewhere", encode_canonical({"key": "b"}), "'b'"),
]


@pytest.mark.parametrize(
    ("sentence", "data", "problem"), BROKEN_LINES, ids=map(itemgetter(0), BROKEN_LINES)
)
def test_a_broken_status_file_is_reported(sentence, data, problem):
    with pytest.raises(UnreadableStateError, match=problem):
        parse_shard(data, shard_path("a"))


def test_a_value_outside_json_is_not_encoded():
    with pytest.raises(ValueError, match="JSON"):
        encode_canonical({"x": float("nan")})


def test_a_line_of_text_may_hold_any_line_separator():
    line = {"a": {"text": "one\u2028two\x85three"}}
    assert parse_shard(encode_shard(line), shard_path("a")) == line
    assert json.loads(encode_canonical(line)) == line
