"""Where a commit has a status: on a forge, and nowhere else."""

from collections.abc import Collection, Iterator, Sequence

from fanout.api.faults import Fault, Path
from fanout.api.repository import ForgeType, Repository
from fanout.api.upstream_policy import UpstreamPolicy


def commit_status_faults(
    policy: UpstreamPolicy, named: Collection[str], usable: Sequence[Repository]
) -> Iterator[Fault]:
    """A fault for every check by commitStatus that nobody could answer.

    `named` are the downstream repositories that the policy names; where expressions or selectors
    choose them it is one of the `usable`.
    """
    bare = [it.metadata.name for it in usable if it.spec.forge.type is ForgeType.NONE]
    if named:
        without = sorted(set(bare) & set(named))
    else:
        without = sorted(bare) if len(bare) == len(usable) else []
    if not without:
        return
    where = f"Repository {without[0]}"
    if len(without) > 1:
        where = f"{where} and {len(without) - 1} more"
    problem = f"a commit has a status on a forge, and that of {where} is none"
    for number, stage in enumerate(policy.spec.stages):
        for group in ("verification", "requires"):
            for index, check in enumerate(getattr(stage, group)):
                if check.commit_status is not None:
                    at: Path = ("spec", "stages", number, group, index, "commitStatus")
                    yield Fault(at, problem, "let the pipeline report: use report: {}")
