"""Every line, ours or a library's, is redacted and readable by whom it is for."""

import io
import json
import logging
import re

import pytest
import structlog

from fanout.message_commands import MessageCommands
from fanout.telemetry.logging_setup import configure_logging
from fanout.telemetry.redaction import Redactor


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _restored():
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    for name in ("git", "apscheduler", "celpy", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def redactor():
    redactor = Redactor()
    redactor.register("s3cret-token")
    return redactor


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_away_from_a_terminal_a_line_is_json(redactor):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream)
    structlog.get_logger().info("Draft written", variant="mon-eu", files=3)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "Draft written", "level": "info", "variant": "mon-eu", "files": 3}


def test_on_a_terminal_a_line_is_for_people(redactor):
    stream = Terminal()
    configure_logging(redactor, stream=stream, use_color=False)
    structlog.get_logger().info("Draft written", variant="mon-eu")
    assert "Draft written" in stream.getvalue()
    assert "variant=mon-eu" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal], ids=["as JSON", "for people"])
def test_no_secret_is_shown(redactor, stream):
    stream = stream()
    configure_logging(redactor, stream=stream)
    log = structlog.get_logger().bind(bound="s3cret-token")
    structlog.contextvars.bind_contextvars(context="s3cret-token")
    log.warning(
        "Push failed with s3cret-token", url="https://u:pw@h/", error=OSError("s3cret-token")
    )
    library = logging.getLogger("library")
    library.warning("retrying %s", "https://u:pw@h/?x=s3cret-token")
    for logger in (log.exception, library.exception):
        try:
            raise ValueError("s3cret-token")
        except ValueError:
            logger("it broke")
    text = stream.getvalue()
    assert "s3cret-token" not in text
    assert "u:pw" not in text
    assert text.count("ValueError: ***") == 2


def test_a_library_s_line_has_the_same_shape(redactor):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream)
    logging.getLogger("library").error("lost %s", "connection")
    (line,) = lines(stream)
    del line["timestamp"]
    assert line == {"event": "lost connection", "level": "error"}


def test_lines_below_the_level_are_not_written(redactor):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream, level=logging.WARNING)
    structlog.get_logger().info("nobody wants this")
    logging.getLogger("library").info("nor this")
    assert stream.getvalue() == ""


def test_some_libraries_log_only_problems(redactor):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream, level=logging.DEBUG)
    names = ("apscheduler.scheduler", "git.cmd", "httpx2", "httpcore2.http11")
    for name in names:
        logging.getLogger(name).info("Adding job tentatively")
        logging.getLogger(name).warning("missed")
    assert [line["event"] for line in lines(stream)] == ["missed"] * len(names)


def test_a_line_is_one_write_so_that_lines_of_threads_do_not_mix(redactor):
    class Recording(io.StringIO):
        def __init__(self):
            super().__init__()
            self.writes = []

        def write(self, text):
            self.writes.append(text)
            return super().write(text)

    stream = Recording()
    configure_logging(redactor, stream=stream)
    structlog.get_logger().info("Draft written")
    logging.getLogger("asyncio").info("Using selector")
    assert [it.count("\n") for it in stream.writes] == [1, 1]
    assert all(it.endswith("\n") for it in stream.writes)


def log_problem(redactor, commands, **fields):
    """Return the problem of a line that advises a command."""
    stream = io.StringIO()
    configure_logging(redactor, stream=stream, commands=commands)
    problem = "restore it, or run `fanout accept-records mon`, then `fanout sweep`"
    structlog.get_logger().warning("Policy has a problem", problem=problem, **fields)
    (line,) = lines(stream)
    return line["problem"]


def test_commands_have_the_options_of_their_reader(redactor):
    files = MessageCommands((("files", "policies"),))
    assert log_problem(redactor, files, policy="web/mon") == (
        "restore it, or run `fanout accept-records mon -f policies -n web`,"
        " then `fanout sweep -f policies -n web`"
    )


def test_commands_about_a_cluster_name_no_file(redactor):
    cluster = MessageCommands((("context", "prod"),), in_cluster=True)
    problem = log_problem(redactor, cluster, policy="web/mon")
    assert "`fanout accept-records mon -n web --context prod`" in problem
    assert "fanout sweep" not in problem


def test_commands_about_many_policies_name_no_namespace(redactor):
    cluster = MessageCommands((("context", "prod"),), in_cluster=True)
    for fields in ({}, {"policy": "web/mon, shop/mon and 3 more"}):
        problem = log_problem(redactor, cluster, **fields)
        assert "`fanout accept-records mon --context prod`" in problem


def test_options_of_commands_are_redacted(redactor):
    commands = MessageCommands((("records", "https://ann:s3cret-token@git.example.com/r"),))
    assert "s3cret-token" not in log_problem(redactor, commands)


@pytest.mark.parametrize("value", ["x" * 1_000_000, ["x" * 500_000] * 2, {"x": "y" * 1_000_000}])
def test_a_field_is_cut(redactor, value):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream)
    structlog.get_logger().info("Draft written", problem=value)
    (line,) = lines(stream)
    assert len(line["problem"]) < 17_000
    assert re.search(r"… \(10000\d\d characters\)$", line["problem"])


def test_a_shortened_text_is_redacted_before_it_is_cut(redactor):
    stream = io.StringIO()
    configure_logging(redactor, stream=stream)
    problem = "x" * ((1 << 14) - 5) + "s3cret-token" + "x" * 100
    structlog.get_logger().info("Draft written", problem=problem)
    assert "s3c" not in stream.getvalue()
