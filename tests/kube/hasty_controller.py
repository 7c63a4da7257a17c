"""`fanout`, for which admission policies are in force after a second in place of a minute.

What waits is the real program; only the constant for slow clusters is that of a test.
"""

from datetime import timedelta

from fanout.cli.main import run
from fanout.kube import admission_check

admission_check.IN_FORCE_AFTER = timedelta(seconds=1)

if __name__ == "__main__":
    run()
