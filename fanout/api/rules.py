"""Rules that concern more than one field of an object, each as a small generator of faults.

They are checked on the data as written: see `fanout.api.places`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fanout.api.check_rules import check_faults
from fanout.api.choices import wrong_choices
from fanout.api.faults import Fault, Path
from fanout.api.functions import function_faults
from fanout.api.people import is_person
from fanout.api.pipeline import RESERVED_KEYS
from fanout.api.places import fields, items, places
from fanout.api.stage_fields import stage_field_faults
from fanout.api.stage_order import repeated, stage_faults
from fanout.api.texts import shown

Rule = Callable[[Mapping[str, Any]], Iterator[Fault]]


def rule_faults(kind: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    """What the rules say about an object of this kind."""
    yield from wrong_choices(kind, data)
    for rule in _RULES.get(kind, ()):
        yield from rule(data)


def _reserved_context_keys(data: Mapping[str, Any]) -> Iterator[Fault]:
    """kpt writes `name` and `package-path` itself (as in Porch)."""
    for where in ("spec.packageContext", "spec.targets[*].template.packageContext"):
        named: list[tuple[Path, Any]] = [
            ((*path, key), key)
            for path, value in places(data, f"{where}.data")
            for key in fields(value)
        ]
        named += places(data, f"{where}.removeKeys[*]")
        named += places(data, f"{where}.dataExprs[*].key")
        for path, key in named:
            if key in RESERVED_KEYS:
                yield Fault(path, f"the key {key} is reserved for kpt", "choose another key")


_SELECTORS = (
    "spec.targets[*].repositorySelector",
    "spec.targets[*].objectSelector",
    "spec.stages[*].rollout.groups[*]",
)


def _selector_values(data: Mapping[str, Any]) -> Iterator[Fault]:
    for selector in _SELECTORS:
        for path, entry in places(data, f"{selector}.matchExpressions[*]"):
            operator = fields(entry).get("operator")
            values = items(fields(entry).get("values"))
            if "values" in fields(entry) and not isinstance(entry["values"], list):
                continue
            if operator in ("In", "NotIn") and not values:
                yield Fault((*path, "values"), f"{operator} needs values", "add at least one")
            if operator in ("Exists", "DoesNotExist") and values:
                yield Fault((*path, "values"), f"{operator} takes no values", "remove them")


def _check_names(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Evidence and approvals name a check, so a stage has no two of one name."""
    for index, stage in enumerate(items(fields(data.get("spec")).get("stages"))):
        seen: set[str] = set()
        for group in ("verification", "requires"):
            for path, name in places(stage, f"{group}[*].name"):
                if isinstance(name, str) and name in seen:
                    whole = ("spec", "stages", index, *path)
                    yield Fault(whole, f"two checks have the name {name}", "rename one of them")
                seen.add(str(name))


def _function_names(data: Mapping[str, Any]) -> Iterator[Fault]:
    for section in ("mutators", "validators"):
        yield from repeated(data, f"spec.pipeline.{section}[*].name", "function")
        for index, entry in enumerate(items(fields(data.get("spec")).get("targets"))):
            names = f"template.pipeline.{section}[*].name"
            for fault in repeated(fields(entry), names, "function"):
                yield Fault(("spec", "targets", index, *fault.path), fault.problem, fault.remedy)


def _own_upstream(data: Mapping[str, Any]) -> Iterator[Fault]:
    spec = fields(data.get("spec"))
    up, down = fields(spec.get("upstream")), fields(spec.get("downstream"))
    both = [(side.get("repository"), side.get("package")) for side in (up, down)]
    if all(both[0]) and both[0] == both[1]:
        problem = "the variant would be written over its own upstream"
        yield Fault(("spec", "downstream"), problem, "choose another repository or package")


def _dependencies(data: Mapping[str, Any]) -> Iterator[Fault]:
    """A policy's variant is named by policy and target together."""
    own = fields(data.get("metadata")).get("name")
    first: dict[str, Path] = {}
    for path, entry in places(data, "spec.dependsOn[*]"):
        named = fields(entry)
        if "policy" in named and "target" not in named:
            problem = f"which variant of policy {named['policy']} is not said"
            yield Fault((*path, "target"), problem, "add the target's key, as `get targets` shows")
        if "target" in named and "policy" not in named:
            yield Fault((*path, "policy"), "a target belongs to a policy", "name the policy")
        if named and own and named.get("variant") == own:
            yield Fault((*path, "variant"), "the variant waits for itself", "remove it")
        same = first.setdefault(repr(sorted(named.items(), key=str)), path)
        if same != path:
            yield Fault(path, "it is in the list twice", "remove one of them")


def _approver_groups(data: Mapping[str, Any]) -> Iterator[Fault]:
    yield from repeated(data, "spec.approvers[*].group", "group")
    for path, subject in places(data, "spec.approvers[*].subjects[*]"):
        if isinstance(subject, str) and subject and not is_person(subject):
            problem = f"{shown(subject)} is nobody that Git knows"
            yield Fault(path, problem, "write Name <ann@example.com>, or the address alone")


def _lent_twice(data: Mapping[str, Any]) -> Iterator[Fault]:
    yield from repeated(data, "checkSecrets[*].name", "secret")


def _names_something(data: Mapping[str, Any]) -> Iterator[Fault]:
    spec = fields(data.get("spec"))
    if not spec.get("policies") and not spec.get("variants"):
        problem = "neither policies nor variants are named, so it binds nothing"
        yield Fault(("spec", "policies"), problem, 'name some, or write ["*"]')


def _schedule_fields(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Fields that say how something is to be done, where it is not asked for."""
    spec = fields(data.get("spec"))
    windows = bool(items(spec.get("windows")))
    timed = "schedule" in spec
    for field in ("startingDeadlineSeconds", "jitter"):
        if field in spec and not timed:
            yield Fault(("spec", field), "means nothing without a schedule", "add spec.schedule")
    if "timeZone" in spec and not timed and not windows:
        problem = "means nothing without a schedule or windows"
        yield Fault(("spec", "timeZone"), problem, "add spec.schedule or spec.windows")
    if spec.get("atClose", "Hold") != "Hold" and not windows:
        problem = "means nothing without windows"
        yield Fault(("spec", "atClose"), problem, "add spec.windows")


def _about(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Records name a policy, or else variants that were written by hand (design §2)."""
    spec = fields(data.get("spec"))
    if spec.get("policy"):
        return
    if not spec.get("variants"):
        yield Fault(("spec", "policy"), "neither a policy nor variants are named", "name one")
    if spec.get("stage"):
        problem = "a stage belongs to a policy, and none is named"
        yield Fault(("spec", "stage"), problem, "name the policy, or remove the stage")


def _stage_of_policy(data: Mapping[str, Any]) -> Iterator[Fault]:
    spec = fields(data.get("spec"))
    if spec.get("policy") and not spec.get("stage"):
        yield Fault(("spec", "stage"), "the stage is missing", "name the stage of the policy")


def _approved_trees(data: Mapping[str, Any]) -> Iterator[Fault]:
    spec = fields(data.get("spec"))
    if not spec.get("trees") and not spec.get("revokes"):
        problem = "no tree is listed, so nothing is approved"
        yield Fault(("spec", "trees"), problem, "list the trees of the drafts")


def _removal(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Nothing is removed that nobody has named."""
    if not spec.get("variants"):
        yield Fault(("spec", "variants"), "no variant is named", "name those that are to go")


_ORDERS = {
    "Publish": "a decision to publish",
    "Rollback": "a rollback",
    "Skip": "a skip",
    "Retry": "a retry",
}


def _order(data: Mapping[str, Any], action: str) -> Iterator[Fault]:
    """What is published, taken back, skipped or tried again, and why."""
    spec = fields(data.get("spec"))
    if not str(spec.get("reason") or "").strip():
        problem = f"{_ORDERS[action]} needs a reason"
        yield Fault(("spec", "reason"), problem, "say why, for those who ask later")
    yield from _stage_of_policy(data)
    if action != "Publish" and not spec.get("revision"):
        problem = f"{_ORDERS[action]} is about a revision, and none is named"
        yield Fault(("spec", "revision"), problem, "name it")
    if action == "Skip" and not spec.get("variants"):
        yield Fault(("spec", "variants"), "no variant is named", "name those that are skipped")


def _overrides(spec: Mapping[str, Any], action: object) -> Iterator[Fault]:
    lifted = spec.get("overrides")
    if action == "Rollback" and isinstance(lifted, list):
        if set(map(str, lifted)) - {"window"}:
            problem = "a rollback lifts the window alone; nothing else binds it"
            yield Fault(("spec", "overrides"), problem, "remove the others")
    elif action != "Publish" and lifted:
        yield Fault(("spec", "overrides"), "only Publish lifts anything", "remove them")


def _accepted(spec: Mapping[str, Any], action: object) -> Iterator[Fault]:
    """Merge conflicts are accepted variant by variant, by whoever has seen the drafts."""
    if not spec.get("acceptConflicts"):
        return
    path = ("spec", "acceptConflicts")
    if action != "Publish":
        yield Fault(path, "only Publish accepts merge conflicts", "remove it")
    elif not (spec.get("variants") and spec.get("trees")):
        problem = "merge conflicts are accepted for variants and drafts that are named"
        yield Fault(path, problem, "name the variants, and the trees of their drafts")


def _decisions(data: Mapping[str, Any]) -> Iterator[Fault]:
    spec = fields(data.get("spec"))
    action = spec.get("action")
    if isinstance(action, str) and action in _ORDERS:
        yield from _order(data, action)
    if action == "ConfirmRemoval":
        yield from _removal(spec)
    yield from _overrides(spec, action)
    if action not in ("Publish", "ConfirmRemoval") and spec.get("trees"):
        problem = "only Publish and ConfirmRemoval are about what is drafted or published"
        yield Fault(("spec", "trees"), problem, "remove them")
    if action != "Resolve" and spec.get("choices"):
        yield Fault(("spec", "choices"), "only Resolve decides conflicts", "remove them")
    yield from _accepted(spec, action)
    if (action == "Withdraw") != bool(spec.get("withdraws")):
        problem = "a Withdraw, and nothing else, names the record that is taken back"
        yield Fault(("spec", "withdraws"), problem, "name it, or remove the field")


_RULES: Mapping[str, tuple[Rule, ...]] = {
    "UpstreamPolicy": (
        stage_faults,
        stage_field_faults,
        _check_names,
        check_faults,
        _reserved_context_keys,
        _selector_values,
        _function_names,
        function_faults,
    ),
    "PackageVariant": (
        _own_upstream,
        _dependencies,
        _reserved_context_keys,
        _function_names,
        function_faults,
    ),
    "PromotionPolicy": (_names_something, _approver_groups, _schedule_fields),
    "FanoutConfiguration": (_lent_twice,),
    "Evidence": (_about, _stage_of_policy),
    "Approval": (_about, _stage_of_policy, _approved_trees),
    "Decision": (_about, _decisions),
}
