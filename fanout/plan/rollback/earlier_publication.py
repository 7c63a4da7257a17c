"""Earlier publications to roll back to, and publications reverted by hand.

A package's Kptfile names its upstream state, and those fields are fanout's own. So a
change of them on the branch is no edit: another package stands in place of the
published one.
"""

from fanout.package.kptfile import UpstreamLock
from fanout.plan.commit_statement import PackageVersion
from fanout.values import Value


class EarlierPublication(PackageVersion):
    """A publication of a variant as it was when it was last in force."""

    pristine_tree: str = ""  # tree of the rendering without downstream edits; "": lost


class RevertedPublication(Value):
    """State of the branch where a publication was taken back by hand.

    `pristine_tree` is the id of the rendering that it was made from, or None if that is
    unknown; `is_other_package` means that another package is at the path.
    """

    description: str  # in words
    pristine_tree: str | None = None
    is_other_package: bool = False


def locked_revision(lock: UpstreamLock, package: str) -> str:
    """Return the revision that a lock names: tag without package path, or commit."""
    return lock.ref.removeprefix(f"{package.strip('/')}/") or lock.commit[:7]


def is_other_state(branch_lock: UpstreamLock, published_lock: UpstreamLock) -> bool:
    """Return whether the branch's package names another state than the published one."""
    # A lock may lack its ref; only two different refs are a difference.
    refs = {branch_lock.ref, published_lock.ref} - {""}
    return branch_lock.commit != published_lock.commit or len(refs) > 1
