"""`fanout` with a loop whose clock runs ten times as fast and that looks around ten times as often.

What waits is the real program; only the constants for people's patience are those of a test.
"""

import time
from functools import partial

from fanout.cli.main import run
from fanout.cli.verbs import run as continuous
from fanout.controller import run_loop

FASTER = 10
continuous.LoopDependencies = partial(
    run_loop.LoopDependencies, monotonic_clock=lambda: FASTER * time.monotonic()
)
run_loop.FILE_CHECK_INTERVAL /= FASTER

if __name__ == "__main__":
    run()
