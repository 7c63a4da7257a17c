"""Rules about the fields of records: Evidence, Approval and Decision.

They are checked on the data as written: see `fanout.api.field_errors`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, Rule, as_mapping


def _check_record_subject(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Check that a record names a policy, or else variants written by hand."""
    spec = as_mapping(data, "spec")
    if spec.get("policy"):
        return
    if not spec.get("variants"):
        problem = "policy and variants are both empty"
        yield FieldError(("spec", "policy"), problem, "set one of them")
    if spec.get("stage"):
        problem = "a stage needs a policy"
        yield FieldError(("spec", "stage"), problem, "add the policy, or remove the stage")


def _check_stage_present(data: Mapping[str, Any]) -> Iterator[FieldError]:
    spec = as_mapping(data, "spec")
    if spec.get("policy") and not spec.get("stage"):
        yield FieldError(("spec", "stage"), "the stage is missing", "name the stage of the policy")


def _check_approval(data: Mapping[str, Any]) -> Iterator[FieldError]:
    spec = as_mapping(data, "spec")
    if not spec.get("trees") and not spec.get("revokes"):
        problem = "trees is empty, so nothing is approved"
        yield FieldError(("spec", "trees"), problem, "list the trees of the drafts")
    # An approval without a revision is about removals.
    if not spec.get("revision") and spec.get("variants"):
        problem = "an approval of some variants needs a revision"
        remedy = "add it, or remove the variants to approve removals"
        yield FieldError(("spec", "revision"), problem, remedy)


REASONED_ACTIONS = {
    "Publish": "a decision to publish",
    "Rollback": "a rollback",
    "Skip": "a skip",
    "Retry": "a retry",
}


def missing_revision(action: str, path: FieldPath) -> FieldError:
    """Return the error of a Publish, Rollback, Skip or Retry at this path without a revision."""
    return FieldError((*path, "revision"), f"{REASONED_ACTIONS[action]} needs a revision", "add it")


def check_effect(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield why a record can never have an effect by its own content.

    Kept apart from `check_rules`, because records never change: one that was recorded before there
    was such a rule stays readable.
    """
    spec = as_mapping(data, "spec")
    is_publish = data.get("kind") == "Decision" and spec.get("action") == "Publish"
    if is_publish and not spec.get("revision"):
        yield missing_revision("Publish", ("spec",))


def _check_decision(data: Mapping[str, Any]) -> Iterator[FieldError]:
    spec = as_mapping(data, "spec")
    action, overrides = spec.get("action"), spec.get("overrides")
    if isinstance(action, str) and action in REASONED_ACTIONS:
        if not str(spec.get("reason") or "").strip():
            problem = f"{REASONED_ACTIONS[action]} needs a reason"
            yield FieldError(("spec", "reason"), problem, "add a reason, for later readers")
        yield from _check_stage_present(data)
        if action != "Publish" and not spec.get("revision"):  # for which see `check_effect`
            yield missing_revision(action, ("spec",))
    # A confirmation covers nothing that nobody named.
    for named_action, verb in (("Skip", "skip"), ("ConfirmRemoval", "remove")):
        if action == named_action and not spec.get("variants"):
            remedy = f"list the variants to {verb}"
            yield FieldError(("spec", "variants"), "variants is empty", remedy)
    if action == "Rollback" and isinstance(overrides, list):
        if set(map(str, overrides)) - {"window"}:
            problem = "a Rollback can override window only"
            yield FieldError(("spec", "overrides"), problem, "remove the others")
    elif action != "Publish" and overrides:
        problem = "only Publish and Rollback can override gates"
        yield FieldError(("spec", "overrides"), problem, "remove them")
    if action not in ("Publish", "ConfirmRemoval") and spec.get("trees"):
        problem = "only Publish and ConfirmRemoval can have trees"
        yield FieldError(("spec", "trees"), problem, "remove them")
    if action != "Resolve" and spec.get("choices"):
        yield FieldError(("spec", "choices"), "only Resolve can have choices", "remove them")
    if spec.get("acceptConflicts"):
        path = ("spec", "acceptConflicts")
        if action != "Publish":
            yield FieldError(path, "only Publish accepts merge conflicts", "remove it")
        elif not (spec.get("variants") and spec.get("trees")):
            problem = "acceptConflicts needs variants and trees"
            yield FieldError(path, problem, "list the variants, and the trees of their drafts")
    if (action == "Withdraw") != bool(spec.get("withdraws")):
        problem = "withdraws is for Withdraw, which requires it"
        yield FieldError(("spec", "withdraws"), problem, "add it, or remove the field")


RECORD_RULES: Mapping[str, tuple[Rule, ...]] = {
    "Evidence": (_check_record_subject, _check_stage_present),
    "Approval": (_check_record_subject, _check_stage_present, _check_approval),
    "Decision": (_check_record_subject, _check_decision),
}
