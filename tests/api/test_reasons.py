"""The closed lists are sorted, explained, and the configuration's rules hold."""

import re
from pathlib import Path

import pytest

from fanout.api.commit_trailers import Trailer
from fanout.api.fanout_configuration import FanoutConfiguration, InjectableKind, InjectionRules
from fanout.api.object_meta import Label
from fanout.api.reasons import WARNING_REASONS, EventReason, NotificationEvent, Reason


@pytest.mark.parametrize("vocabulary", [EventReason, Label, Reason, Trailer])
def test_a_vocabulary_is_sorted(vocabulary):
    assert [item.value for item in vocabulary] == sorted(item.value for item in vocabulary)


def test_a_reason_is_a_camel_case_word_with_a_meaning():
    for reason in Reason:
        assert re.fullmatch(r"([A-Z][a-z]+)+", reason), reason
        assert reason.name == re.sub(r"(?<!^)(?=[A-Z])", "_", reason.value).upper()
        assert reason.meaning
        assert f"{reason}" == reason.value


def test_a_reason_of_events_is_a_camel_case_word_with_a_meaning():
    for reason in EventReason:
        assert re.fullmatch(r"([A-Z][a-z]+)+", reason), reason
        assert reason.meaning
    # Every notification has an event in a cluster.
    assert {it.value for it in NotificationEvent} <= {it.value for it in EventReason}


def test_the_page_about_statuses_has_every_reason_of_events():
    page = Path(__file__).parent.parent.parent / "docs" / "concepts" / "status.md"
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z]\w+)` \| (Normal|Warning) \| (.+) \|$", text, re.MULTILINE)
    types = {True: "Warning", False: "Normal"}
    assert rows == [(it.value, types[it in WARNING_REASONS], it.meaning) for it in EventReason]


def test_trailers_are_those_of_the_commits():
    assert {trailer.value.removeprefix("Fanout-") for trailer in Trailer} == {
        "Install", "Policy", "Variant", "Stage", "Revision", "Commit", "Digest", "Onto", "Tree",
        "Conflicts", "Takes", "Rendered", "Records", "Base", "Package", "Removed", "Merge", "Tag",
        "Previous", "Approved-By", "Restored", "Set", "Used",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("group", "kind", "field", "allowed"),
    [
        ("", "ConfigMap", "data", True),
        ("", "ConfigMap", "spec", True),
        ("infra.example.com", "Cluster", "spec", True),
        ("infra.example.com", "Cluster", "data", False),
        ("", "Secret", "data", False),
        ("", "Secret", "spec", False),
        ("example.com", "ConfigMap", "data", False),
    ],
)
def test_the_default_configuration_limits_injected_kinds(group, kind, field, allowed):
    assert FanoutConfiguration().injection.allows(group, kind, field) is allowed


def test_secrets_only_when_they_are_named():
    wild = InjectionRules(kinds=(InjectableKind(group="*", kind="*", fields_=("data",)),))
    named = InjectionRules(kinds=(InjectableKind(group="", kind="Secret", fields_=("data",)),))
    assert not wild.allows("", "Secret", "data")
    assert named.allows("", "Secret", "data")
