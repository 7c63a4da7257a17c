"""Every reason has a cause and a remedy; their commands exist, and pages name existing reasons."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from fanout.api.reasons import Reason
from fanout.cli.main import VERBS, cli

PAGES = Path(__file__).parents[2] / "docs" / "troubleshooting"
SYMPTOMS = (PAGES / "README.md").read_text(encoding="utf-8")
REMEDIES = yaml.safe_load((PAGES / "remedies.yaml").read_text(encoding="utf-8"))
COMMAND = re.compile(r"`fanout ([^`]+)`")
TEXTS = {reason: f"{entry['cause']} {entry['remedy']}" for reason, entry in REMEDIES.items()}
COMMANDS = sorted({it for text in (*TEXTS.values(), SYMPTOMS) for it in COMMAND.findall(text)})


def test_every_reason_has_a_remedy_in_the_order_of_the_reasons():
    assert list(REMEDIES) == list(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_remedies_are_whole_sentences(reason):
    assert not reason.meaning.endswith(".")
    for text in (REMEDIES[reason]["cause"], REMEDIES[reason]["remedy"]):
        assert text.endswith(".")
        assert not re.search(r"\bPLEASE\b|\bwhoever\b|  ", text)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_a_remedy_exists_with_its_options(line):
    words = shlex.split(line.split(" -- ")[0])
    context = click.Context(cli, info_name="fanout")
    if words[0].startswith("-"):
        return
    assert words[0] in VERBS
    command = cli.get_command(context, words[0])
    words = words[1:]
    if isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
    assert command is not None
    options = {name for parameter in command.params for name in parameter.opts}
    assert [it for it in words if it.startswith("-") and it not in options] == []
    required = {parameter.opts[0] for parameter in command.params if parameter.required}
    if "--reason" in options and "POLICY" in words:
        assert {it for it in required if it.startswith("-")} <= set(words)


def test_the_page_of_symptoms_links_reasons_that_exist():
    linked = re.findall(r"\[(\w+)\]\(reasons\.md#(\w+)\)", SYMPTOMS)
    assert len(linked) > 40
    assert [name for name, anchor in linked if Reason(name).lower() != anchor] == []
