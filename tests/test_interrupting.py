"""Children that tests interrupt take SIGINT, however the test run was started."""

import signal
import subprocess
import sys

import pytest
from interrupting import start_interruptible

WAITING = "print(flush=True); import time; time.sleep(60)"


@pytest.fixture
def ignored_interrupt():
    """SIGINT is ignored, as in a background job of a shell."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, previous)


def test_an_interruptible_child_is_interrupted_though_its_parent_ignores_sigint(ignored_interrupt):
    command = [sys.executable, "-c", WAITING]
    with start_interruptible(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
