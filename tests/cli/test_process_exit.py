"""The process ends with its status and all its output, whatever it still holds."""

import os
import subprocess
import sys
from operator import itemgetter
from textwrap import dedent

import pytest

HELD = "class Held:\n    def __del__(self): print('freed')\nheld = [Held()]\n"


def ended(work: str, **how) -> subprocess.CompletedProcess[str]:
    """A process whose `work` is ended by fanout."""
    start = "import atexit, sys, threading, time\nfrom fanout.cli.process_exit import exit_with\n"
    return subprocess.run(
        [sys.executable, "-c", f"{start}{dedent(work)}\nexit_with(work)\n"],
        text=True,
        check=False,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        **{"capture_output": True, **how},
    )


LINES = 100_000

ENDS = [
    ("it leaves with its status", "def work(): return 3", 3, "", ""),
    ("nothing is freed first", f"{HELD}def work(): print('done'); return 0", 0, "done\n", ""),
    (
        "whom atexit was asked to call is called",
        "def work(): atexit.register(print, 'called', end=''); return 4",
        4,
        "called",
        "",
    ),
    (
        "threads are waited for",
        """
        def late(): time.sleep(0.05); print('late')
        def work(): threading.Thread(target=late).start(); return 5
        """,
        5,
        "late\n",
        "",
    ),
    ("an exit by others is theirs", "def work(): print('gone'); sys.exit(6)", 6, "gone\n", ""),
    ("an error is shown", "def work(): raise ValueError('x')", 1, "", "ValueError: x\n"),
]


@pytest.mark.parametrize(
    ("sentence", "work", "status", "out", "err"), ENDS, ids=map(itemgetter(0), ENDS)
)
def test_the_end(sentence, work, status, out, err):
    answer = ended(work)
    assert answer.returncode == status
    assert answer.stdout == out
    assert answer.stderr.endswith(err)
    assert bool(answer.stderr) is bool(err)


def test_printed_output_arrives_whole_in_a_pipe():
    work = f"""
    def work():
        for number in range({LINES}):
            print(number)
            print(number, file=sys.stderr)
        return 3
    """
    answer = ended(work)
    whole = "".join(f"{number}\n" for number in range(LINES))
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, whole, whole)


def test_printed_output_arrives_whole_in_a_file(tmp_path):
    target = tmp_path / "out"
    with target.open("w") as out:
        answer = ended(
            f"def work(): sys.stdout.write('x' * {LINES}); return 0",
            capture_output=False,
            stdout=out,
        )
    assert answer.returncode == 0
    assert target.read_text() == "x" * LINES


def test_output_that_cannot_be_delivered_is_not_passed_over():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        answer = ended(
            "def work(): sys.stdout.write('x'); return 0",
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert answer.returncode == 120  # the interpreter's own
    assert "No space left on device" in answer.stderr


def test_output_that_nobody_wants_does_no_harm():
    answer = ended("sys.stdout.close()\ndef work(): return 3")
    assert (answer.returncode, answer.stderr) == (3, "")
