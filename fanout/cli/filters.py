"""What `fanout get` shows of what there is: by name, by label, and by policy, stage and state."""

from collections.abc import Sequence
from typing import Any

from fanout.api.labels import Label
from fanout.api.reasons import Reason
from fanout.cli.called import target_names
from fanout.cli.lookup import check_policies, not_found
from fanout.cli.nouns import RECORDS, singular
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput, Where
from fanout.selection.selectors import matches
from fanout.selection.typed_selectors import TypedSelector
from fanout.values import frozen

Item = dict[str, Any]
_STATEFUL = ("variants", "targets", "drafts")
_FITTING = {
    "policy": (*_STATEFUL, "stages", *RECORDS),
    "stage": (*_STATEFUL, "stages", *RECORDS),
    "state": _STATEFUL,
}


@frozen
class Filter:
    """What was asked for; what is empty asks for nothing."""

    noun: str
    names: Sequence[str]
    labels: TypedSelector
    policy: str = ""
    stage: str = ""
    state: str = ""

    def check(self, declared: Declared, namespace: str) -> None:
        """Raises InvalidInput for what the noun has not, and for names that nothing has."""
        asked = {"policy": self.policy, "stage": self.stage, "state": self.state}
        for option in [name for name, value in asked.items() if value]:
            if self.noun not in _FITTING[option]:
                raise InvalidInput(
                    f"{self.noun} have no {option} to choose by",
                    reason="InvalidSetting",
                    remedy="name them, or choose by label with -l",
                    where=Where(field=f"--{option}"),
                )
        if self.policy:
            check_policies([self.policy], declared, namespace)
        stages = {
            stage.name
            for policy in declared.policies
            if self.policy in ("", policy.metadata.name)
            for stage in policy.spec.stages
        }
        if self.stage and self.stage not in stages:
            raise not_found("stage", [self.stage], stages)

    def refuse_unknown(self, items: Sequence[Item]) -> None:
        """Raises InvalidInput for a name that nothing has."""
        known = {name for item in items for name in _names(item)}
        missing = sorted(set(self.names) - known)
        if missing and self.noun not in RECORDS:
            there = [item["metadata"]["name"] for item in items]
            raise not_found(singular(self.noun), missing, there)

    def chosen(self, items: Sequence[Item]) -> list[Item]:
        """The items that are asked for; records were asked for by policy."""
        every = not self.names or self.noun in RECORDS
        return [
            item
            for item in items
            if (every or not _names(item).isdisjoint(self.names))
            and matches(self.labels, item["metadata"].get("labels") or {})
            and self.policy in ("", _of(item, Label.POLICY, "policy"))
            and self.stage in ("", _of(item, Label.STAGE, "stage"))
            and self.state in ("", item.get("state") or item.get("status", {}).get("state"))
        ]


def refuse_gone(names: Sequence[str], variants: Sequence[Item], targets: Sequence[Item]) -> None:
    """Raises InvalidInput for the name of a variant that is none any more: where its package is."""
    missing = set(names) - {name for item in variants for name in _names(item)}
    for gone in filter(_is_gone, targets):
        if not _names(gone).isdisjoint(missing):
            raise InvalidInput(
                f"the target of {gone['target']} is gone; what is left of it is at"
                f" {gone['repository']}:{gone['path']}",
                reason=Reason.TARGET_GONE,
                remedy=f"`fanout remove {gone['policy']} {gone['target']}` removes it",
            )


def _names(item: Item) -> frozenset[str]:
    """Its name; what is a variant's goes by the names of its target and of its place too."""
    target = item.get("target") or item.get("status", {}).get("target") or ""
    place = item.get("spec", {}).get("downstream") or item
    path = place.get("package") or place.get("path") or ""
    names = [item["metadata"]["name"], item.get("variant", "")]
    names += [item["stage"]] if item["kind"] == "StageView" else []
    names += [path, f"{place['repository']}:{path}"] if path else []
    names += [target, *target_names(target)] if target else []
    if _is_gone(item):  # it goes by its variant's name, in which its own stands between others
        names.append(target.removeprefix(f"{item['policy']}-").rpartition("-")[0])
    return frozenset(filter(None, names))


def _is_gone(item: Item) -> bool:
    holds = item.get("holds") or ()
    return item["kind"] == "TargetView" and any(it["reason"] == Reason.TARGET_GONE for it in holds)


def _of(item: Item, label: Label, field: str) -> str:
    """What fanout's label says; a record says it itself."""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get(label.value) or item.get("spec", {}).get(field) or "")
