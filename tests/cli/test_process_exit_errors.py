"""Commands of kubectl, flux, argocd and kpt get the command that does the same; `fanout help`."""

import re
import shlex

import pytest

from fanout.cli.main import REPLACED_VERBS, VERBS, run_arguments


@pytest.mark.parametrize("words", REPLACED_VERBS)
def test_a_command_of_another_program_is_answered_with_one_of_ours(words, capsys):
    assert run_arguments([*words.split(), "monitoring"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"there is no command {words}; run {REPLACED_VERBS[words]}" in " ".join(err.split())


@pytest.mark.parametrize("words", REPLACED_VERBS)
def test_a_hint_names_commands_and_options_that_are_there(words, capsys):
    commands = re.findall(r"`fanout ([^`]+)`", REPLACED_VERBS[words])
    assert commands
    for line in commands:
        verb, *arguments = shlex.split(line)
        assert verb in VERBS
        assert run_arguments(["help", verb]) == 0
        shown = capsys.readouterr().out
        for option in (it for it in arguments if it.startswith("-")):
            assert option in shown, f"{verb} {option}"


def test_no_hint_hides_a_command():
    assert not REPLACED_VERBS.keys() & VERBS.keys()


def shown(capsys, *arguments: str) -> str:
    assert run_arguments(arguments) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize("path", [(), ("sweep",), ("package", "merge")])
def test_help_is_what_the_option_prints(path, capsys):
    assert shown(capsys, "help", *path) == shown(capsys, *path, "--help")


def test_help_for_a_command_that_is_not_there(capsys):
    assert run_arguments(["help", "package", "nothing"]) == 1
    assert "there is no command package nothing" in capsys.readouterr().err
