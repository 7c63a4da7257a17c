"""A publication that somebody took back on the branch: reverted, reset, or pointed elsewhere.

A package says in its Kptfile which state of upstream it is, and these fields are fanout's own. So
whoever changes them has not edited what was published: something else stands there.
"""

from fanout.gates.facts import Hold
from fanout.plan.adoption import Lock
from fanout.plan.status import PublishedLine
from fanout.selection.model import VariantSpec
from fanout.values import frozen


@frozen
class Reverted:
    """What stands on the branch in place of what was published."""

    shows: str  # in words
    pristine: str | None = None  # the rendering from which it was made; None: nobody knows it
    elsewhere: bool = False  # it is another package altogether


def revision_of(lock: Lock, package: str) -> str:
    """The revision that a lock names: its tag without the package's path, or its commit."""
    return lock.ref.removeprefix(f"{package.strip('/')}/") or lock.commit[:7]


def differs(found: Lock, published: Lock) -> bool:
    """Does the package on the branch say that it is another state than the published one?"""
    refs = {found.ref, published.ref} - {""}
    return found.commit != published.commit or len(refs) > 1


def taken_back(spec: VariantSpec, at: str, found: Reverted, published: PublishedLine) -> Hold:
    """What happened, and what a person can do: put it back, or publish the draft over it."""
    restore = "put it back, as with `git revert`"
    if found.elsewhere or found.pristine is None:
        remedy = restore
    else:
        remedy = f"{restore}, or publish the next draft over it: {_promotion(spec)}"
    return Hold(
        "EditedDownstream",
        f"{at} {found.shows}, and {published.revision} was published: somebody took that back;"
        f" nothing goes on by itself; {remedy}",
        who="the maintainers of " + spec.repository,
    )


def _promotion(spec: VariantSpec) -> str:
    if not spec.policy:
        return f"fanout promote {spec.name} --reason WHY"
    return f"fanout promote {spec.policy} --stage {spec.stage} --variant {spec.name} --reason WHY"
