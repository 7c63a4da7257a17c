"""The frame: verbs are loaded when they run, and every end has its exit status."""

import importlib
import json
import subprocess
import sys
from operator import itemgetter
from types import SimpleNamespace

import click
import pytest

from fanout.api.reasons import Reason
from fanout.cli.input.options import with_settings
from fanout.cli.main import TERMS, VERBS, find_module, run_arguments
from fanout.cli.process_exit import (
    EXIT_CODE_HELP,
    NO_EFFECT_REASONS,
    USAGE_REASONS,
    ExitCode,
    exit_code_of,
)
from fanout.cli.terminal import print_message, set_commands, set_quiet
from fanout.errors import (
    Bug,
    Conflict,
    Denied,
    ErrorLocation,
    FanoutError,
    InvalidInput,
    LimitExceeded,
    Stopped,
    Unavailable,
    Waiting,
)
from fanout.message_commands import MessageCommands

# What most runs have no use for, though a verb may come to need it. pydantic loads its plugins
# when it builds the first model.
LATE = {"apscheduler", "asyncio", "celpy", "httpx2", "jinja2", "pydantic.plugin._loader", "re2"}
LATE |= {"git", "rich", "ruamel.yaml", "structlog"}
HEAVY = ["pydantic", "celpy", "git", "pygit2", "yaml", "ruamel", "rich", "jinja2", "apscheduler"]


@pytest.fixture
def verb(monkeypatch):
    """Add a verb to the table that ends as it is told."""

    def add(end) -> None:
        @click.command()
        @with_settings()
        def command(settings):
            return end(settings)

        monkeypatch.setitem(VERBS, "probe", "Ends as told.")
        monkeypatch.setitem(sys.modules, "fanout.cli.verbs.probe", SimpleNamespace(command=command))

    return add


def raising(error: BaseException):
    def end(settings):
        raise error

    return end


@pytest.mark.parametrize("arguments", [[], ["--help"], ["nothing-like-this"]], ids=str)
def test_help_loads_no_package_behind_a_verb(arguments):
    program = f"""
import json, sys
from fanout.cli.main import run_arguments
run_arguments({arguments!r})
print(json.dumps(sorted(sys.modules)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(answer.stdout.splitlines()[-1]))
    assert not loaded & set(HEAVY)
    rooms = {name.split(".")[1] for name in loaded if name.startswith("fanout.")}
    assert rooms == {"cli", "control_characters", "errors", "message_commands", "values"}


def loaded_by(verb):
    """Return the modules that a new process has loaded after the module of a verb."""
    program = f"""
import json, sys
from fanout.cli.lazy_import import load_module
load_module("cli.verbs.{find_module(verb)}")
print(json.dumps(sorted(sys.modules)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(answer.stdout))


@pytest.mark.parametrize("verb", ["sweep", "plan", "validate", "report"])
def test_a_verb_loads_no_library_before_it_has_a_use_for_it(verb):
    assert not loaded_by(verb) & LATE


@pytest.mark.parametrize("verb", ["completion", "docs", "help", "version"])
def test_a_verb_without_objects_loads_no_models(verb):
    assert "pydantic" not in loaded_by(verb)


@pytest.mark.parametrize(
    ("verb", "package"),
    [
        ("schedule", "fanout.plan.changes"),
        ("create", "fanout.selection"),
        ("init", "fanout.selection"),
    ],
)
def test_a_verb_without_a_pass_loads_nothing_of_it(verb, package):
    assert package not in loaded_by(verb)


def test_help_names_every_verb_in_one_line_each(capsys):
    assert run_arguments(["--help"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    for name, text in VERBS.items():
        assert [line for line in lines if line.split(maxsplit=1) == [name, text]], name


def test_without_arguments_it_helps_as_kubectl_does(capsys):
    assert run_arguments([]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("Usage: fanout")


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_of_the_table_is_there_and_helps_with_the_same_words(name, capsys):
    module = importlib.import_module(f"fanout.cli.verbs.{find_module(name)}")
    assert isinstance(getattr(module, "command", None) or getattr(module, name), click.Command)
    assert run_arguments([name, "--help"]) == ExitCode.OK
    assert VERBS[name] in " ".join(capsys.readouterr().out.split())


def test_help_lists_options_that_most_verbs_share_apart(capsys):
    assert run_arguments(["render", "--help"]) == ExitCode.OK
    own, shared = capsys.readouterr().out.split("\nOptions:\n")[1].split("\nGlobal options:\n")
    assert [line.split()[0] for line in own.splitlines() if line[2:3] == "-"] == ["--to"]
    assert len([line for line in shared.splitlines() if line[2:3] == "-"]) == 13
    assert shared.index("--files") < shared.index("--color") < shared.index("--help")


def test_help_explains_its_terms(capsys):
    assert run_arguments(["--help"]) == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    assert {term for term, meaning in TERMS.items() if f"{term} {meaning}" not in text} == set()


def test_settings_of_messages_end_with_their_command(verb, capsys):
    def end(settings):
        set_quiet(quiet=True)
        set_commands(MessageCommands((("files", "policies"),)))
        print_message("run `fanout status`", fg="red")

    verb(end)
    assert run_arguments(["probe"]) == ExitCode.OK
    print_message("run `fanout status`")
    assert capsys.readouterr().err == "run `fanout status -f policies`\nrun `fanout status`\n"


def test_a_removal_without_a_name_is_usage(capsys):
    assert run_arguments(["remove", "--reason", "gone"]) == ExitCode.ERROR
    assert "Error: name a policy or a variant\n" in capsys.readouterr().err


def test_a_mistyped_verb_is_usage_and_the_right_one_is_named(capsys):
    assert run_arguments(["sweap"]) == ExitCode.ERROR
    assert "'sweep'" in capsys.readouterr().err


def test_an_unknown_option_is_usage(capsys):
    assert run_arguments(["version", "--no-such"]) == ExitCode.ERROR
    assert "--no-such" in capsys.readouterr().err


ENDS = [
    ("an invalid object", InvalidInput("bad"), 2),
    ("an expression over its limit", LimitExceeded("too slow"), 2),
    ("a name that nothing has", InvalidInput("no such", reason="NotFound"), 1),
    ("a flag that is wrong", InvalidInput("no such", reason="InvalidSetting"), 1),
    ("what can change nothing", InvalidInput("none", reason="NothingToDo"), 4),
    ("an outdated plan", Conflict("moved", reason="PlanOutdated"), 4),
    ("a stopped policy", Stopped("halt", reason="WindowClosed"), 3),
    ("a server that is away", Unavailable("away"), 1),
    ("a server that refuses", Denied("no"), 1),
    ("a lost race", Conflict("moved"), 1),
    ("a world that is not ready", Waiting("not yet"), 1),
    ("a broken rule of ours", Bug("impossible"), 1),
    ("an error of no family", FanoutError("odd"), 1),
    ("an error nobody foresaw", KeyError("x"), 1),
    ("a child's pipe that broke unnoticed", BrokenPipeError(), 1),
]


@pytest.mark.parametrize(("sentence", "error", "status"), ENDS, ids=map(itemgetter(0), ENDS))
def test_every_family_has_its_status(sentence, error, status, verb, capsys):
    verb(raising(error))
    assert run_arguments(["probe"]) == status == exit_code_of(error)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err


def test_the_reasons_of_the_table_are_reasons():
    assert set(Reason) >= USAGE_REASONS | NO_EFFECT_REASONS
    assert not USAGE_REASONS & NO_EFFECT_REASONS


def test_the_help_has_every_status(capsys):
    run_arguments(["--help"])
    output = capsys.readouterr().out
    assert all(f"\n  {code} " in output for code in EXIT_CODE_HELP)


def test_an_error_is_its_own_sentence(verb, capsys):
    where = ErrorLocation("UpstreamPolicy/monitoring", "spec.stages[3].after", "edge.yaml", 41)
    verb(raising(InvalidInput("3 of 2 stages can never pass", remedy="lower it", where=where)))
    run_arguments(["probe"])
    assert capsys.readouterr().err == (
        "edge.yaml:41: UpstreamPolicy/monitoring: spec.stages[3].after: "
        "3 of 2 stages can never pass; lower it\n"
    )


def test_a_bug_shows_its_trace_only_when_asked(verb, capsys):
    verb(raising(KeyError("slot")))
    run_arguments(["probe"])
    quiet = capsys.readouterr().err
    assert "this is a bug in fanout" in quiet
    assert "-v" in quiet
    for arguments in (["probe", "-v"], ["-v", "probe"]):
        assert run_arguments(arguments) == ExitCode.ERROR
        assert "Traceback" in capsys.readouterr().err


def test_an_escape_sequence_in_a_message_does_not_reach_the_terminal(verb, capsys):
    verb(raising(InvalidInput("named \x1b[2Jgone")))
    run_arguments(["probe"])
    assert "\x1b" not in capsys.readouterr().err


def test_colour_is_for_those_who_ask(verb, capsys):
    verb(raising(InvalidInput("bad")))
    run_arguments(["probe", "--color", "always"])
    assert capsys.readouterr().err == "\x1b[31mbad\x1b[0m\n"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), click.Abort()], ids=["ctrl-c", "abort"])
def test_interrupted_is_130(end, verb):
    verb(raising(end))
    assert run_arguments(["probe"]) == 130


def test_a_verb_s_answer_is_the_status(verb):
    verb(lambda settings: ExitCode.SOME_FAILED)
    assert run_arguments(["probe"]) == 3
    verb(lambda settings: None)
    assert run_arguments(["probe"]) == 0


def test_shared_options_may_stand_before_or_behind_the_verb(verb):
    seen = []
    verb(seen.append)
    run_arguments(["-n", "one", "-f", "a", "probe", "-n", "two", "-f", "b"])
    run_arguments(["-n", "one", "-f", "a", "probe"])
    assert [(s.namespace, [str(path) for path in s.files]) for s in seen] == [
        ("two", ["a", "b"]),
        ("one", ["a"]),
    ]


def test_the_program_leaves_with_the_status():
    answer = subprocess.run(
        [sys.executable, "-m", "fanout", "schedule", "next", "61 * * * *"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "fanout", "schedule", "next", "* * * * *", "-n", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == ExitCode.BROKEN_PIPE
