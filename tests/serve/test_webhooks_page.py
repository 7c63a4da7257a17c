"""The guide about webhooks: its objects are valid, and its table is the program's."""

import re
from pathlib import Path

import yaml

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.serve.hook_receiver import HookOutcome

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "webhooks.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def test_the_configuration_is_valid():
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)
    configuration = FanoutConfiguration.model_validate(yaml.safe_load(block))
    assert [it.webhook_secret_ref.name for it in configuration.forges] == ["gitea-hooks"]


def test_the_answers_are_those_of_the_program():
    rows = re.findall(r"\| (\d+|none) \| `([\w-]+)` \|$", TEXT, flags=re.MULTILINE)
    statuses = {it.value: str(it.status) for it in HookOutcome}
    # Who has left, or was too slow, gets none.
    assert {outcome: status for status, outcome in rows} == {**statuses, HookOutcome.CUT: "none"}
