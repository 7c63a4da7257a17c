"""Who is promoted without a person: promotionPolicies as names of stages.

The first policy that chooses a Stage decides, and whatever cannot be read decides nothing. Labels
belong to those who write Stages, so what a selector chooses is written down by name.
"""

from collections.abc import Collection, Iterator, Sequence

from fanout.api.faults import BadValue, Path
from fanout.api.foreign.pieces import Put, Remark
from fanout.api.kargo.objects import Item, dashed
from fanout.api.kargo.selectors import Selector, by_name, selector
from fanout.api.places import fields, items
from fanout.values import frozen

POLICIES: Path = ("spec", "promotionPolicies")
_TO: Path = ("spec", "autoPromotion", "stages")


@frozen
class _Policy:
    path: Path
    enabled: bool
    selector: Selector | None  # none: it cannot be read


def automation(
    config: Item,
    stages: Sequence[Item],
    joins: Sequence[Item],
    there: Collection[str],
    shut: Collection[str],
) -> Iterator[Put | Remark]:
    """Names of stages that go by themselves.

    `stages`: those of the Project that have targets. `joins`: the others. `there`: the names of
    those that could be translated. `shut`: the names of those where automation must stay off.
    """
    policies = []
    for index, entry in enumerate(items(config.spec.get("promotionPolicies"))):
        path: Path = (*POLICIES, index)
        enabled = fields(entry).get("autoPromotionEnabled") is True
        try:
            policies.append(_Policy(path, enabled, _selector(entry)))
        except BadValue as error:
            policies.append(_Policy(path, enabled, None))
            problem = f"{error.problem}; nothing after it is automatic"
            yield Remark(path, problem, error.remedy)
    decided = {stage.name: _decisive(stage, policies) for stage in stages}
    on = {
        name: policy.path
        for name, policy in decided.items()
        if policy and policy.enabled and dashed(name) in there and name not in shut
    }
    written: dict[str, Path] = {}
    for policy, pattern in _patterns(policies, stages, on):
        written.setdefault(pattern, policy.path)
        on = {name: path for name, path in on.items() if path != policy.path}
    for name, path in on.items():
        written.setdefault(dashed(name), path)
    for number, (text, path) in enumerate(written.items()):
        yield Put((*_TO, number), text, path)
    for policy in policies:
        if policy.enabled and policy.selector:
            names = [name for name, path in on.items() if path == policy.path]
            yield from _told(policy, policy.selector, stages, joins, names)


def _selector(entry: object) -> Selector:
    said = fields(entry)
    chosen = said.get("stageSelector")
    return by_name(said.get("stage")) if chosen is None else selector(chosen)


def _decisive(stage: Item, policies: Sequence[_Policy]) -> _Policy | None:
    for policy in policies:
        if policy.selector is None:
            return None
        if policy.selector.chooses(stage):
            return policy
    return None


def _patterns(
    policies: Sequence[_Policy], stages: Sequence[Item], on: Collection[str]
) -> Iterator[tuple[_Policy, str]]:
    """Patterns that may stay: what they fit is all automatic, whatever Stages are to come."""
    for policy in policies:
        if policy.selector is None or not policy.enabled:
            return
        chosen = [stage.name for stage in stages if policy.selector.chooses(stage)]
        if policy.selector.pattern and chosen and all(name in on for name in chosen):
            yield policy, policy.selector.pattern


def _told(
    policy: _Policy,
    chooses: Selector,
    stages: Sequence[Item],
    joins: Sequence[Item],
    names: Sequence[str],
) -> Iterator[Remark]:
    joined = [stage.name for stage in joins if chooses.chooses(stage)]
    if any(chooses.chooses(stage) for stage in stages):
        if names and chooses.exact is None:
            problem = f"of the Stages in the input it chooses {', '.join(names)}, now by name"
            remedy = "add later ones to spec.autoPromotion.stages"
            yield Remark(policy.path, problem, remedy, lost=False)
    elif joined:
        problem = (
            f"it chooses control-flow Stages alone ({', '.join(joined)}): nothing is published in"
            " those, so there is nothing to promote"
        )
        yield Remark(policy.path, problem, "remove it", lost=False)
    else:
        problem = f"there is no Stage {chooses.exact}" if chooses.exact else "it chooses no Stage"
        yield Remark(policy.path, f"{problem} in the input", "import the Stages with it")
