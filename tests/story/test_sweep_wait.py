"""`--wait`: passes are repeated until all is in force, only people can go on, or time is up."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from companies import company
from fleet import POLICY, Fleet
from interrupting import start_interruptible
from pseudo_terminal import run_on_terminal
from verb_statuses import PROD, WHY, automatic, build_waiting_release, published, signed, window

from fanout.cli.verbs import sweep
from fanout.reconcile.pass_scope import PassMode

STAGES = POLICY[POLICY.index("  stages:") :]


@company
def waiting(root: Path) -> Fleet:
    """Two sites in prod, published at v1 and drafted at v2, which a person is to publish."""
    return build_waiting_release(root)


@company
def simple(root: Path) -> Fleet:
    """Two sites in prod without checks; nothing is drafted yet."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", POLICY.replace(STAGES, "  stages:\n  - {name: prod}\n"))
    return made


def test_a_sweep_waits_until_all_is_ready(simple: Fleet):
    result = simple.run("sweep", "--wait", "monitoring")
    assert result.code == 0, result.err
    assert simple.states() == {"sites/ber": "Ready", "sites/cph": "Ready"}
    assert "2 drafts written, 2 published" in result.out
    assert "waiting for 2 variants: 2 Drafted" in result.err


def break_after(monkeypatch: pytest.MonkeyPatch, fleet: Fleet, name: str) -> None:
    """Write half a policy as soon as the command has called this function of the verb."""
    real = getattr(sweep, name)

    def called(*args: Any) -> Any:
        monkeypatch.undo()
        result = real(*args)
        fleet.write("policy.yaml", "kind: [")
        return result

    monkeypatch.setattr(sweep, name, called)


def test_a_sweep_is_about_what_was_checked_whatever_breaks_meanwhile(
    simple: Fleet, monkeypatch: pytest.MonkeyPatch
):
    break_after(monkeypatch, simple, "read_input")
    result = simple.sweep()
    assert (result.code, result.err) == (0, "")
    assert "2 drafts written" in result.out
    again = simple.sweep()
    assert again.code != 0
    assert "policy.yaml:2" in again.err


def test_declarations_read_after_the_check_are_no_idle_pass(simple: Fleet):
    """Else the next command would take its files for those of a pass that had nothing to do."""
    simple.settle()
    with simple.opened() as program:
        program.check_input()
        simple.site("osl", "prod", "edge")
        program.read_declared()
        assert program.sweep(PassMode()).outcomes == ()
    assert "1 draft written" in simple.sweep().out


def test_a_file_that_breaks_while_a_sweep_waits_is_reported_once(
    simple: Fleet, monkeypatch: pytest.MonkeyPatch
):
    real = sweep.wait_for_rollout

    def wait(*args: Any) -> Any:
        simple.write("policy.yaml", "kind: [")
        return real(*args)

    monkeypatch.setattr(sweep, "wait_for_rollout", wait)
    result = simple.run("sweep", "--wait=1s")
    assert result.code == 3, result.err
    assert result.err.count("policy.yaml:2") == 1


def test_a_sweep_ends_when_only_people_can_go_on(waiting: Fleet):
    result = waiting.run("sweep", "--wait")
    assert result.code == 4
    assert set(waiting.published().values()) == {"v1"}


def test_a_wait_ends_with_its_duration(waiting: Fleet):
    automatic(waiting)
    result = waiting.run("sweep", "--wait=1s")
    assert result.code == 4, (result.out, result.err)
    assert "stopped waiting after 1s" in result.err


def test_a_failure_comes_before_the_duration(waiting: Fleet):
    published(waiting)
    waiting.report("prod", "v2", "failed")
    assert waiting.later(minutes=5).run("sweep", "--wait=1s").code == 3


def test_a_promotion_waits_until_it_is_published(waiting: Fleet):
    result = waiting.run("promote", *PROD, *WHY, "--wait")
    assert result.code == 0, result.err
    assert set(waiting.published().values()) == {"v2"}


def test_a_promotion_that_needs_an_approval_ends(waiting: Fleet):
    signed(waiting)
    assert waiting.run("promote", *PROD, *WHY, "--wait").code == 4
    assert set(waiting.published().values()) == {"v1"}


def test_a_promotion_waits_for_its_window(waiting: Fleet):
    window(waiting)
    result = waiting.run("promote", *PROD, *WHY, "--wait=1s")
    assert result.code == 4
    assert "stopped waiting after 1s" in result.err


def test_a_rollback_waits(waiting: Fleet):
    published(waiting)
    assert waiting.run("rollback", "-y", *PROD, *WHY, "--wait=1m").code == 0
    assert set(waiting.published().values()) == {"v1"}


@pytest.mark.parametrize("option", ["--drafts-only", "--dry-run", "--plan=x"])
def test_an_option_that_excludes_wait_is_refused(simple: Fleet, option: str):
    result = simple.run("sweep", "--wait", option)
    assert (result.code, "exclude each other" in result.err) == (1, True)


@pytest.mark.parametrize("text", ["soon", "1d", ""])
def test_a_duration_that_is_none_is_refused(simple: Fleet, text: str):
    result = simple.run("sweep", f"--wait={text}")
    assert result.code in ((1,) if text else (0,))


def line_of(fleet: Fleet, *words: str) -> list[str]:
    state = ("--state-dir", str(fleet.root / "state"), "--now", fleet.now.isoformat())
    return [*words, "-f", str(fleet.root / "policies"), *state]


def test_an_interrupted_wait_loses_nothing(waiting: Fleet):
    automatic(waiting)
    command = [sys.executable, "-m", "fanout", *line_of(waiting, "sweep", "--wait")]
    process = start_interruptible(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"Verifying" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert (process.returncode, b"interrupted" in rest) == (130, True)
    assert set(waiting.published().values()) == {"v2"}
    waiting.report("prod", "v2")
    assert waiting.later(minutes=5).run("sweep", "--wait").code == 0


def test_a_terminal_shows_what_is_waited_for(simple: Fleet):
    screen = run_on_terminal(line_of(simple, "sweep", "--wait"))
    assert screen.code == 0
    assert "waiting for 2 variants" in screen.text
