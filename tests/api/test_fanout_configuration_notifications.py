"""Notifications of a FanoutConfiguration: what is refused, and the guide about them."""

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from fanout.api.fanout_configuration import FanoutConfiguration, NotificationTarget
from fanout.api.reasons import NotificationEvent
from fanout.notify import SIGNATURE_HEADER

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "notifications.md"
TEXT = GUIDE.read_text(encoding="utf-8")
ENTRY = {"name": "chat", "url": "https://relay.example.com/a", "secretRef": {"name": "key"}}

REFUSED = [
    ("a password in the address", {"url": "https://ann:pass@relay.example.com/"}, "a password"),
    ("a token in the query", {"url": "https://relay.example.com/?token=x"}, "secret in its query"),
    ("another protocol", {"url": "file:///etc/passwd"}, "does not begin with https://"),
    ("an address of cloud credentials", {"url": "http://169.254.169.254/"}, "169.254.169.254"),
    ("no secret", {"secretRef": None}, "secretRef"),
    ("an unknown event", {"events": ["Everything"]}, "events"),
    ("no event", {"events": []}, "events"),
    ("an unknown field", {"headers": {}}, "headers"),
    ("no name of a policy", {"policies": ["a/b/c"]}, "policies"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "change", "problem"), REFUSED, ids=[it[0] for it in REFUSED])
def test_refused(sentence, change, problem):
    with pytest.raises(ValidationError, match=re.escape(problem)):
        FanoutConfiguration.model_validate({"notifications": [{**ENTRY, **change}]})


def test_two_with_one_name_are_refused():
    with pytest.raises(ValidationError, match="duplicate name chat"):
        FanoutConfiguration.model_validate({"notifications": [ENTRY, ENTRY]})


COVERED = [
    ([], "platform", "a", True),
    (["a"], "platform", "a", True),
    (["platform/a"], "platform", "a", True),
    (["edge/a"], "platform", "a", False),
    (["b"], "platform", "a", False),
]


@pytest.mark.parametrize(("policies", "namespace", "policy", "expected"), COVERED)
def test_policies(policies, namespace, policy, expected):
    target = NotificationTarget.model_validate({**ENTRY, "policies": policies})
    assert target.covers(NotificationEvent.STAGE_HALTED, namespace, policy) is expected


def test_the_guide_shows_what_is_valid():
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)
    configuration = FanoutConfiguration.model_validate(yaml.safe_load(block))
    assert [it.name for it in configuration.notifications] == ["chat", "on-call"]


def test_the_guide_lists_all_events_with_their_meaning():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXT, flags=re.MULTILINE)
    assert rows == [(it.value, it.meaning) for it in NotificationEvent]


def test_the_example_of_the_guide_is_json_and_names_the_header():
    (block,) = re.findall(r"```json\n(.*?)```", TEXT, flags=re.DOTALL)
    assert json.loads(block)["specversion"] == "1.0"
    assert f"`{SIGNATURE_HEADER}`" in TEXT
