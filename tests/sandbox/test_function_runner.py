"""Real programs: what they are given, what they may take, and that they end."""

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fanout.api.fanout_configuration import Functions
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.sandbox.function_runner import ProgramRunner, find_allowed_programs
from fanout.sandbox.worker_protocol import WorkerLimits as ScriptLimits
from fanout.telemetry.metrics import Counters, EventName
from fanout.variants.function_requests import ProgramOutput, ProgramRun, ResponseError

ALLOWED = {"wallSeconds": 20, "outputMiB": 1, "memoryMiB": 128}
RUNTIME = """\
#!/bin/sh
# stands in for a container runtime: notes what it was told, and is the function itself
printf '%s\\n' "$*" >> "$HOME/told"
[ "$1" = run ] || exit 0
case "$*" in *slow*) sleep 30;; *broken*) echo 'no such image' >&2; exit 125;; esac
env > "$HOME/environment"
exec cat
"""


@pytest.fixture
def executable(tmp_path):
    """Writes a script and answers its path."""

    def write(body, name="fn"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


def run(path, stdin=b"", counters=None, **limits):
    """Run an executable as the one that is allowed."""
    functions = Functions.model_validate({**ALLOWED, **limits, "executables": [{"path": path}]})
    program = find_allowed_programs(functions).executables[path]
    runner = ProgramRunner(functions, 2, counters or Counters(), ScriptLimits())
    [answer] = runner.run([ProgramRun(program, stdin)])
    return answer


def test_a_program_gets_its_input_and_returns_its_output_and_errors(executable):
    path = executable("tr a-z A-Z; echo done >&2; exit 3")
    assert run(path, b"abc") == ProgramOutput(3, b"ABC", "done\n")


def test_more_than_a_pipe_holds_goes_both_ways(executable):
    data = b"x" * 900_000
    assert run(executable("exec cat"), data).stdout == data


def test_a_program_has_its_own_environment_and_directory(executable, monkeypatch):
    monkeypatch.setenv("GIT_TOKEN", "secret")
    output = run(executable("env; pwd; ls -A; touch $TMPDIR/x $HOME/y; ls -A")).stdout.decode()
    lines = output.splitlines()
    names = {line.partition("=")[0] for line in lines if "=" in line}
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}
    assert lines[-2:] == ["x", "y"]
    home = next(line for line in lines if line.startswith("HOME=")).removeprefix("HOME=")
    assert home in lines
    assert not Path(home).exists()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except FileNotFoundError:
        return False


def pids_in(path):
    return [int(word) for word in path.read_text().split()]


def have_ended(path):
    """Have all processes ended whose numbers the program wrote down?"""
    for _ in range(200):
        if not any(map(alive, pids_in(path))):
            return True
        time.sleep(0.02)
    return False


ENDLESS = [
    ("an endless run", "echo $$ > {pids}; sleep 60 & echo $! >> {pids}; wait",
     "it took longer than 1 s", "wall_time"),
    ("a run that does not read or write", "echo $$ > {pids}; exec <&- >&- 2>&-; sleep 60",
     "it took longer than 1 s", "wall_time"),
    ("endless output", "echo $$ > {pids}; exec yes",
     "its output is longer than 1,048,576 bytes", "output"),
    ("a signal", "echo $$ > {pids}; kill -ABRT $$", "it was ended by signal 6", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "problem", "cause"), [row[1:] for row in ENDLESS], ids=[row[0] for row in ENDLESS]
)
def test_a_program_over_a_limit_is_killed_with_its_children(
    executable, tmp_path, body, problem, cause
):
    pids, counters = tmp_path / "pids", Counters()
    path = executable(body.replace("{pids}", str(pids)))
    answer = run(path, b"x" * 500_000, counters, wallSeconds=1)
    assert isinstance(answer, ResponseError)
    assert answer.problem == problem
    assert counters.events.read(EventName.SANDBOX_KILL) == {(cause,): 1}
    assert have_ended(pids)


def test_endless_last_words_are_cut_and_harm_nothing(executable):
    answer = run(executable("yes | head -c 3000000 >&2; echo end >&2"))
    assert answer.status == 0
    assert len(answer.stderr) <= 4096
    assert answer.stderr.endswith("end\n")


def test_children_that_a_program_leaves_are_killed_and_not_awaited(executable, tmp_path):
    pids = tmp_path / "pids"
    answer = run(executable(f"sleep 60 & echo $! > {pids}; echo out"))
    assert answer == ProgramOutput(0, b"out\n", "")
    assert have_ended(pids)


def test_memory_is_limited(executable):
    body = f"exec {shutil.which('python3')} -c 'x = b\"x\" * (400 << 20)'"
    answer = run(executable(body), memoryMiB=64)
    assert answer.status != 0
    assert "MemoryError" in answer.stderr


def test_a_program_that_is_killed_says_by_what(executable):
    assert run(executable("kill -SEGV $$")).problem == "it was ended by signal 11"


def test_a_missing_program_is_reported(tmp_path, executable):
    text = tmp_path / "text"
    text.write_text("words")
    functions = Functions.model_validate(
        {"executables": [{"path": "/no/such"}, {"path": str(text), "name": "words"}]}
    )
    executables = find_allowed_programs(functions).executables
    assert executables["/no/such"].missing == "/no/such: No such file or directory"
    assert executables["words"].missing == f"{text} is not executable"
    text.chmod(0o755)
    assert run(str(text)).status != 0


def test_another_content_is_another_version(executable):
    versions = set()
    for body in ("true", "false", "true"):
        path = executable(body)
        functions = Functions.model_validate({"executables": [{"path": path}]})
        versions.add(find_allowed_programs(functions).executables[path].version)
    assert len(versions) == 2


def test_many_run_beside_each_other_and_are_answered_in_order(executable):
    path = executable("sleep 0.$(shuf -i 0-2 -n 1); exec cat")
    functions = Functions.model_validate({**ALLOWED, "executables": [{"path": path}]})
    program = find_allowed_programs(functions).executables[path]
    counters = Counters()
    questions = [ProgramRun(program, str(number).encode()) for number in range(8)]
    answers = ProgramRunner(functions, 4, counters, ScriptLimits()).run(questions)
    assert [answer.stdout for answer in answers] == [question.stdin for question in questions]
    assert counters.read()["programs"] == 8


def test_after_the_first_program_that_takes_too_long_the_others_of_a_budget_are_left(executable):
    slow, quick = executable("sleep 60", "slow"), executable("exec cat", "quick")
    paths = [{"path": path} for path in (slow, quick)]
    functions = Functions.model_validate({**ALLOWED, "wallSeconds": 1, "executables": paths})
    programs = find_allowed_programs(functions).executables
    runner = ProgramRunner(functions, 1, Counters(), ScriptLimits())
    now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    budget = EvaluationBudget(now)
    runs = [ProgramRun(programs[slow], b""), ProgramRun(programs[quick], b"a")]
    broken, skipped = runner.run(runs, budget)
    assert isinstance(broken, ResponseError)
    assert isinstance(skipped, ResponseError)
    assert (broken.problem, broken.is_final) == ("it took longer than 1 s", False)
    assert "it was not run: it is left for the next pass, because slow exceeded" in skipped.problem
    # In the next pass the other one is run, and the slow one when its pause is over.
    counters = runner.counters.events.read(EventName.SANDBOX_KILL)
    paused, done = runner.run(runs, EvaluationBudget(now, budget.pauses))
    assert isinstance(paused, ResponseError)
    assert "tried again from 2026-03-02T09:01:00Z" in paused.remedy
    assert done == ProgramOutput(0, b"a", "")
    assert runner.counters.events.read(EventName.SANDBOX_KILL) == counters


# ---- containers, with a stand-in for the runtime -------------------------------------------------


@pytest.fixture
def podman(tmp_path, monkeypatch):
    """A stand-in for podman on the PATH; what it was told stands in the home directory."""
    directory = tmp_path / "bin"
    directory.mkdir()
    script = directory / "podman"
    script.write_text(RUNTIME)
    script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    return home


def run_image(image, stdin=b"", **limits):
    settings = {**ALLOWED, **limits, "images": [image], "containerRuntime": "podman"}
    functions = Functions.model_validate(settings)
    [program] = find_allowed_programs(functions).images.values()
    [answer] = ProgramRunner(functions, 1, Counters(), ScriptLimits()).run(
        [ProgramRun(program, stdin)]
    )
    return answer


def test_an_image_runs_without_network_privileges_or_anything_to_write_to(podman, monkeypatch):
    monkeypatch.setenv("GIT_TOKEN", "secret")
    assert run_image("starlark:v0.5", b"list") == ProgramOutput(0, b"list", "")
    [arguments] = (podman / "told").read_text().splitlines()
    words = arguments.split()
    assert words[0] == "run"
    assert words[-1] == "ghcr.io/kptdev/krm-functions-catalog/starlark:v0.5"
    assert {
        "--rm",
        "--interactive",
        "--network=none",
        "--user=65534:65534",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--memory=128m",
    } <= set(words)
    assert not any(word.startswith(("--volume", "-v", "--mount", "--env", "-e")) for word in words)
    assert "GIT_TOKEN" not in (podman / "environment").read_text()


def test_a_container_that_takes_too_long_is_removed(podman):
    answer = run_image("example.com/slow:v1", wallSeconds=1)
    assert answer == ResponseError("it took longer than 1 s", is_final=False)
    first, last = (podman / "told").read_text().splitlines()
    name = first.split()[first.split().index("--name") + 1]
    assert last == f"rm --force {name}"


def test_an_error_of_the_container_runtime_is_returned(podman):
    assert run_image("example.com/broken:v1") == ProgramOutput(125, b"", "no such image\n")


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        ({"containerRuntime": "nerdctl"}, "nerdctl is not on the PATH"),
        ({}, "no containerRuntime is named"),
    ],
    ids=["a runtime that is not there", "no runtime"],
)
def test_without_a_runtime_an_image_is_not_run(problem, why, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    functions = Functions.model_validate({**problem, "images": ["example.com/fn:v1"]})
    assert find_allowed_programs(functions).images["example.com/fn:v1"].missing == why
