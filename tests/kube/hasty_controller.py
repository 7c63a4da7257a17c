"""`fanout`, for which a test need not wait minutes.

What waits is the real program; only the constants for slow clusters and slow people are those of a
test: admission policies are in force after a second, and policies are installed with their kinds.
"""

from datetime import timedelta

from fanout.cli.main import run
from fanout.kube import pending_records
from fanout.reconcile.removal import orphaned_variants

pending_records.IN_FORCE_AFTER = timedelta(seconds=1)
orphaned_variants.INSTALLATION_TIME = timedelta(seconds=2)

if __name__ == "__main__":
    run()
