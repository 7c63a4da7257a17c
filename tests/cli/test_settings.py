"""A flag wins over the environment, that over the default; what is wrong is named."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fanout.cli.settings import OutputFormat, Settings, resolve_settings
from fanout.cli.terminal import Color, is_colored
from fanout.errors import InvalidInput
from fanout.message_commands import MessageCommands
from fanout.values import replace


def test_without_anything_the_defaults_hold():
    assert resolve_settings({}, {}) == Settings()


RESOLVED = {
    "a flag is taken": ({"namespace": "a"}, {}, {"namespace": "a"}),
    "the environment is taken": ({}, {"FANOUT_NAMESPACE": "b"}, {"namespace": "b"}),
    "a flag wins": ({"namespace": "a"}, {"FANOUT_NAMESPACE": "b"}, {"namespace": "a"}),
    "an empty variable says nothing": ({}, {"FANOUT_STATE_DIR": ""}, {}),
    "files are separated as in PATH": (
        {},
        {"FANOUT_FILES": "a:b/c"},
        {"files": (Path("a"), Path("b/c"))},
    ),
    "files as flags replace those of the environment": (
        {"files": ("x",)},
        {"FANOUT_FILES": "a"},
        {"files": (Path("x"),)},
    ),
    "a time is read in any zone": (
        {"now": "2026-03-01T13:00:00.9+01:00"},
        {},
        {"now_override": datetime(2026, 3, 1, 12, tzinfo=UTC)},
    ),
    "verbosity is a number in the environment": ({}, {"FANOUT_VERBOSITY": "2"}, {"verbosity": 2}),
    "the output": ({"output": "wide"}, {"FANOUT_OUTPUT": "json"}, {"output": OutputFormat.WIDE}),
    "colour": ({}, {"FANOUT_COLOR": "never"}, {"color": Color.NEVER}),
}


@pytest.mark.parametrize("sentence", RESOLVED)
def test_resolve(sentence):
    flags, environment, expected = RESOLVED[sentence]
    resolved = resolve_settings(flags, environment)
    assert replace(resolved, commands=MessageCommands()) == Settings(**expected)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, "fanout explain edge"),
        ({"files": ("a", "b"), "quiet": True}, "fanout explain edge -f a -f b"),
        ({"context": "kind", "namespace": "shop"}, "fanout explain edge -n shop --context kind"),
    ],
    ids=str,
)
def test_messages_advise_commands_with_the_same_flags(flags, expected):
    environment = {"FANOUT_STATE_DIR": "state", "FANOUT_RECORDS": "records"}
    commands = resolve_settings(flags, environment).commands
    assert commands.complete("fanout explain edge") == expected


CLUSTERS = [
    ("files are read where they are named", {"files": ("a",)}, ["KUBECONFIG"], False),
    ("also by the environment", {}, ["KUBECONFIG", "FANOUT_FILES"], False),
    ("an option has precedence over the environment", {"context": "a"}, ["FANOUT_FILES"], True),
    ("without files it is the cluster of kubectl", {}, ["KUBECONFIG"], True),
    ("which is in the home directory, too", {}, ["HOME"], True),
    ("or around the pod", {}, ["KUBERNETES_SERVICE_HOST"], True),
    ("without any there is none", {}, [], False),
]


@pytest.mark.parametrize(
    ("flags", "variables", "expected"),
    [row[1:] for row in CLUSTERS],
    ids=[row[0] for row in CLUSTERS],
)
def test_a_cluster_is_found_as_kubectl_finds_it(flags, variables, expected, tmp_path, monkeypatch):
    values = {
        "KUBECONFIG": str(tmp_path / ".kube/config"),
        "FANOUT_FILES": "policies",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "HOME": str(tmp_path),
    }
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").touch()
    monkeypatch.setenv("HOME", values["HOME"] if "HOME" in variables else str(tmp_path / "none"))
    environment = {name: values[name] for name in variables}
    assert resolve_settings(flags, environment, accepts_cluster=True).reads_cluster is expected
    named = bool(flags.get("context"))
    assert resolve_settings(flags, environment).reads_cluster is named, "sweep reads files"


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        ({}, {}, ""),
        ({}, {"FANOUT_NAMESPACE": "shop"}, " -n shop"),
        ({"namespace": "a"}, {"FANOUT_NAMESPACE": "shop"}, " -n a"),
        ({"all_namespaces": True}, {"FANOUT_NAMESPACE": "shop"}, " -A"),
    ],
    ids=str,
)
def test_kubectl_gets_the_namespace_that_the_environment_names(flags, environment, expected):
    commands = resolve_settings({"context": "kind", **flags}, environment).commands
    assert commands.complete("kubectl get x") == f"kubectl get x{expected} --context kind"


WRONG = {
    "FANOUT_OUTPUT": "xml",
    "FANOUT_COLOR": "blue",
    "FANOUT_VERBOSITY": "very",
    "FANOUT_NOW": "2026-03-01T12:00:00",
}


@pytest.mark.parametrize("variable", WRONG)
def test_a_wrong_variable_is_named_with_its_value(variable):
    with pytest.raises(InvalidInput) as caught:
        resolve_settings({}, {variable: WRONG[variable]})
    assert str(caught.value).startswith(f"{variable}: '{WRONG[variable]}'")


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-03-01", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-10:00"]
)
def test_a_malformed_instant_is_refused(text):
    with pytest.raises(InvalidInput, match="is not a time"):
        resolve_settings({}, {"FANOUT_NOW": text or " "})


def test_a_verb_that_cannot_print_the_environment_s_format_keeps_its_own():
    formats = (OutputFormat.YAML, OutputFormat.JSON)
    assert resolve_settings({}, {"FANOUT_OUTPUT": "wide"}, formats).output is OutputFormat.YAML
    assert resolve_settings({}, {"FANOUT_OUTPUT": "json"}, formats).output is OutputFormat.JSON


def test_pretended_time_stands_still_and_real_time_has_whole_seconds():
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert Settings(now_override=at).now() == at
    assert Settings().now().microsecond == 0
    assert Settings().now().tzinfo is UTC


def test_a_verb_that_needs_files_says_how_to_name_them():
    with pytest.raises(InvalidInput, match="-f DIR"):
        Settings().require_files()


class Screen:
    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


COLOURED = [
    ("a terminal is coloured", Color.AUTO, True, {}, True),
    ("a file is not", Color.AUTO, False, {}, False),
    ("NO_COLOR is heeded", Color.AUTO, True, {"NO_COLOR": "1"}, False),
    ("an empty NO_COLOR says nothing", Color.AUTO, True, {"NO_COLOR": ""}, True),
    ("always wins over NO_COLOR", Color.ALWAYS, False, {"NO_COLOR": "1"}, True),
    ("never wins over the terminal", Color.NEVER, True, {}, False),
]


@pytest.mark.parametrize(
    ("choice", "terminal", "environment", "expected"),
    [row[1:] for row in COLOURED],
    ids=[row[0] for row in COLOURED],
)
def test_colour(choice, terminal, environment, expected):
    assert is_colored(choice, Screen(terminal), environment) is expected
