"""Help texts and remedies use the words of kubectl, Git and GitOps tools."""

import re
from pathlib import Path

import click
import pytest
import yaml

from fanout.api.reasons import Reason, ReasonClass
from fanout.cli.main import VERBS, cli

REMEDIES = Path(__file__).parents[2] / "docs" / "troubleshooting" / "remedies.yaml"
PRIVATE = re.compile(
    r"\b(anew|bears?|colour|faults?|heeds?|judged?|may be|mend(ed)?|nobody|if not said|reckoned"
    r"|says?|said|stands?|tells?|told|whoever|who (says|can act))\b",
    re.IGNORECASE,
)


def find_texts(command, path):
    """Yield every help text of a command and of those below it, with the path of the command."""
    yield path, command.help or ""
    for parameter in command.params:
        yield f"{path} {parameter.name}", getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from find_texts(
                command.get_command(click.Context(command), name), f"{path} {name}"
            )


TEXTS = list(VERBS.items())
TEXTS += find_texts(cli, "fanout")
TEXTS += [
    (reason.value, reason.meaning) for vocabulary in (Reason, ReasonClass) for reason in vocabulary
]
TEXTS += [
    (reason, f"{it['cause']} {it['remedy']}")
    for reason, it in yaml.safe_load(REMEDIES.read_text(encoding="utf-8")).items()
]


def test_every_verb_has_help():
    assert len(TEXTS) > 400
    assert [name for name, text in VERBS.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_no_private_words(verb):
    command = cli.get_command(click.Context(cli), verb)
    private_words = {
        path: it[0] for path, text in find_texts(command, verb) if (it := PRIVATE.search(text))
    }
    assert private_words == {}


def test_no_reason_has_private_words():
    private_words = {
        name: it[0] for name, text in TEXTS if name in set(Reason) and (it := PRIVATE.search(text))
    }
    assert private_words == {}
