"""Filter of `fanout get`: by name, by label, and by policy, stage and state."""

from collections.abc import Sequence
from typing import Any

from fanout.api.object_meta import Label
from fanout.api.reasons import Reason
from fanout.cli.declarations import build_not_found, check_policies
from fanout.cli.input.name_lookup import target_names
from fanout.cli.input.resource_types import RECORD_TYPES, singular_of
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.errors import ErrorLocation, InvalidInput
from fanout.selection.label_selector import matches
from fanout.selection.selector_flag import FlagSelector
from fanout.values import frozen

Item = dict[str, Any]
_TYPES_WITH_STATE = ("variants", "targets", "drafts")
_TYPES_BY_OPTION = {
    "policy": (*_TYPES_WITH_STATE, "stages", *RECORD_TYPES),
    "stage": (*_TYPES_WITH_STATE, "stages", *RECORD_TYPES),
    "state": _TYPES_WITH_STATE,
}


@frozen
class ObjectFilter:
    """Filter criteria of one `fanout get`; an empty criterion matches everything."""

    resource_type: str
    names: Sequence[str]
    labels: FlagSelector
    policy: str = ""
    stage: str = ""
    state: str = ""

    def check_criteria(self, declared: DeclaredObjects, namespace: str) -> None:
        """Raise InvalidInput for a criterion that does not apply, or an unknown name."""
        criteria = {"policy": self.policy, "stage": self.stage, "state": self.state}
        for option in [name for name, value in criteria.items() if value]:
            if self.resource_type not in _TYPES_BY_OPTION[option]:
                raise InvalidInput(
                    f"{self.resource_type} have no {option} to choose by",
                    reason="InvalidSetting",
                    remedy="name them, or choose by label with -l",
                    where=ErrorLocation(field=f"--{option}"),
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
            raise build_not_found("stage", [self.stage], stages)

    def refuse_unknown(self, items: Sequence[Item]) -> None:
        """Raise InvalidInput for a name that none of the items has."""
        known_names = {name for item in items for name in _names_of_item(item)}
        missing = sorted(set(self.names) - known_names)
        if missing and self.resource_type not in RECORD_TYPES:
            item_names = [item["metadata"]["name"] for item in items]
            raise build_not_found(singular_of(self.resource_type), missing, item_names)

    def select(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that match.

        Records are not matched by name: they were read by policy.
        """
        # Names given for records are names of policies.
        ignores_names = not self.names or self.resource_type in RECORD_TYPES
        return [
            item
            for item in items
            if (ignores_names or not _names_of_item(item).isdisjoint(self.names))
            and matches(self.labels, item["metadata"].get("labels") or {})
            and self.policy in ("", _label_or_field(item, Label.POLICY, "policy"))
            and self.stage in ("", _label_or_field(item, Label.STAGE, "stage"))
            and self.state in ("", item.get("state") or item.get("status", {}).get("state"))
        ]


def refuse_orphaned(
    names: Sequence[str], variants: Sequence[Item], targets: Sequence[Item]
) -> None:
    """Raise InvalidInput for the name of an orphaned variant, with its location."""
    missing = set(names) - {name for item in variants for name in _names_of_item(item)}
    for target in filter(_is_orphaned, targets):
        if not _names_of_item(target).isdisjoint(missing):
            raise InvalidInput(
                f"the target of {target['target']} is gone; what is left of it is at"
                f" {target['repository']}:{target['path']}",
                reason=Reason.TARGET_GONE,
                remedy=f"`fanout remove {target['policy']} {target['target']}` removes it",
            )


def _names_of_item(item: Item) -> frozenset[str]:
    """Return all names of an item; for variants and targets also those of target and path."""
    target = item.get("target") or item.get("status", {}).get("target") or ""
    place = item.get("spec", {}).get("downstream") or item
    path = place.get("package") or place.get("path") or ""
    names = [item["metadata"]["name"], item.get("variant", "")]
    names += [item["stage"]] if item["kind"] == "StageView" else []
    names += [path, f"{place['repository']}:{path}"] if path else []
    names += [target, *target_names(target)] if target else []
    # The target object is deleted, so its own name is cut out of the variant's: policy, name,
    # digest.
    if _is_orphaned(item):
        names.append(target.removeprefix(f"{item['policy']}-").rpartition("-")[0])
    return frozenset(filter(None, names))


def _is_orphaned(item: Item) -> bool:
    holds = item.get("holds") or ()
    return item["kind"] == "TargetView" and any(it["reason"] == Reason.TARGET_GONE for it in holds)


def _label_or_field(item: Item, label: Label, field: str) -> str:
    """Return the value of fanout's label on the item; for a record, of its spec field."""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get(label.value) or item.get("spec", {}).get(field) or "")
