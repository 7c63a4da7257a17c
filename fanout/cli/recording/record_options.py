"""Options and steps of verbs that record: author, subject, record and pass.

A verb can be killed between the push of its record and the end of what follows from it.
Run again, it must answer like the first run, and record nothing (design §3).
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from fanout.api.object_meta import API_VERSION
from fanout.api.promotion_policy import normalize_person
from fanout.cli.input.completion import complete_policies, complete_stages
from fanout.cli.input.name_lookup import find_variant_of, refuse_unknown_stage
from fanout.cli.startup import Program
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.git.git_identity import read_identity
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

policy_argument: Option = click.argument("policy", shell_complete=complete_policies)
reason_option: Option = click.option("--reason", required=True, help="Why; it is recorded.")
by_option: Option = click.option(
    "--by",
    metavar='"NAME <ADDRESS>"',
    help="Who says it; by default the author of your commits.  [FANOUT_BY]",
)


def subject_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add POLICY, --stage and --variant, the subject of a record, to a command."""
    return policy_argument(scope_options(function))


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --stage and --variant, the recorded part of a policy, to a command."""
    stage = click.option(
        "--stage",
        metavar="STAGE",
        shell_complete=complete_stages,
        default="",
        help="The stage that it is about.",
    )
    variants = click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        help="A variant that it is about, by any of its names; may be given more than once. All, if"
        " not said.",
    )
    return stage(variants(function))


def resolve_author(by: str | None) -> CommitIdentity:
    """Return the author of a record: --by, else FANOUT_BY, else the author of Git commits.

    Raises InvalidInput if none of them names a person.
    """
    author = by or os.environ.get("FANOUT_BY")
    if author:
        name, bracket, address = author.partition("<")
        if not bracket or not address.endswith(">") or not name.strip() or not address[:-1].strip():
            raise InvalidInput(
                f"{author!r} names nobody",
                reason="InvalidSetting",
                remedy='write --by "Name <address>"',
            )
        return CommitIdentity(name.strip(), address[:-1].strip())
    # Git would make up a name from account and machine, which is not acceptable for a record.
    git_author = read_identity(os.environ)
    if git_author is None:
        raise InvalidInput(
            "nobody is known to say this",
            reason="InvalidSetting",
            remedy='say --by "Name <address>", or configure user.name and user.email in Git',
        )
    return git_author


def build_subject(item: PolicyResult, stage: str, variants: Sequence[str]) -> dict[str, Any]:
    """Return the subject fields of a record: policy, stage and variants.

    Raises InvalidInput for a stage or a variant that does not exist.
    """
    refuse_unknown_stage(item, stage)
    chosen = sorted({find_variant_of(item, name, stage).spec.name for name in variants})
    if item.resolved_policy.upstream_policy is None:
        return {"variants": [item.resolved_policy.name]}
    return {
        "policy": item.resolved_policy.name,
        **({"stage": stage} if stage else {}),
        **({"variants": chosen} if chosen else {}),
    }


def current_trees(variants: Sequence[RenderedVariant], revision: str) -> list[str]:
    """Return the trees of the up-to-date drafts, which people can have reviewed."""
    return sorted(
        {
            variant.observed.draft.tree
            for variant in variants
            if variant.observed.draft is not None
            and variant.observed.draft.tree
            and variant.selected.has_current_draft
            and variant.observed.draft.trailers.revision == revision
        }
    )


def copy_subject(earlier: RecordEntry) -> dict[str, Any]:
    """Return the subject fields of an earlier record, for a record that withdraws it."""
    return {
        name: earlier.spec[name] for name in ("policy", "stage", "variants") if name in earlier.spec
    }


def append_record(
    program: Program, item: PolicyResult, kind: str, spec: Mapping[str, Any], by: CommitIdentity
) -> str:
    """Append one record to the records of the policy and return its name."""
    manifest = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"namespace": item.resolved_policy.namespace},
        "spec": dict(spec),
    }
    key = item.resolved_policy.records_key
    return program.world.records.append(key, [manifest], by, program.settings.now())[0]


def record_and_run(
    program: Program,
    item: PolicyResult,
    spec: Mapping[str, Any],
    by: CommitIdentity,
    earlier: str = "",
) -> tuple[str, PassReport]:
    """Record a Decision and run the pass that acts on it.

    Return its name and the report of the pass. The pass is no sweep: if there is a
    schedule, automation publishes nothing in it. `earlier`: name of an equal decision on
    record; if it is given, nothing is recorded.
    """
    fields = {key: it for key, it in spec.items() if it}
    name = earlier or append_record(program, item, "Decision", fields, by)
    return name, program.sweep(decision_mode(item))


def format_recorded(name: str, subject: str, *, is_repeated: bool) -> str:
    """Return the line that names a decision, whether new or recorded before."""
    return (
        f"decision.fanout.dev/{name} {'already recorded' if is_repeated else 'recorded'}{subject}\n"
    )


def decision_mode(item: PolicyResult) -> PassMode:
    """Return the mode of the pass that acts on a decision about one policy."""
    return PassMode(
        sweep=False,
        only=frozenset([item.resolved_policy.name]),
        namespace=item.resolved_policy.namespace,
    )


# Fields that a verb derives from the observed state. A killed run may have published or removed
# part of it.
_DERIVED_FIELDS = ("trees", "variants", "acceptConflicts")


def find_equal_record(
    item: PolicyResult, kind: str, spec: Mapping[str, Any], by: CommitIdentity
) -> RecordEntry | None:
    """Return the latest record of the subject if this person recorded the same.

    `spec`: what the verb would record now. A later decision about the stage or one of the
    variants makes it a new record, as does later evidence of the same reporter about the
    same check: either may have ended or overruled the earlier record.
    """
    author = normalize_person(f"{by.name} <{by.email}>")
    # Latest first: whatever was recorded after the equal record may have ended it.
    for record in reversed(item.records):
        if not _overlap(record.spec, spec):
            continue
        if (
            record.kind == kind
            and normalize_person(record.by) == author
            and _is_equal(record.spec, spec)
        ):
            return record
        if record.kind == "Decision" or _overrules(record, kind, spec, author):
            return None
    return None


def find_equal_decision(
    item: PolicyResult,
    spec: Mapping[str, Any],
    by: CommitIdentity,
    now: datetime,
    statuses: Collection[DecisionStatus] = (DecisionStatus.ACTIVE,),
) -> RecordEntry | None:
    """Return the equal decision of this person with one of `statuses`, else None."""
    earlier = find_equal_record(item, "Decision", spec, by)
    return (
        earlier
        if earlier is not None and item.decision_statuses(now).get(earlier.name) in statuses
        else None
    )


def evaluate_without(item: PolicyResult, decision: RecordEntry | None) -> PolicyResult:
    """Return the policy evaluated without this decision, to compare with its state since.

    Conditions that need the sandbox are not evaluated here: they are held, like in a first
    pass.
    """
    if decision is None or item.facts is None:
        return item
    records = item.facts.records
    other_decisions = tuple(it for it in records.decisions if it.name != decision.name)
    facts = replace(item.facts, records=replace(records, decisions=other_decisions))
    return replace(item, facts=facts, decision=evaluate_gates(facts))


def _overlap(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether two records share a variant.

    A record that names none is about all of its stage.
    """
    stages = {recorded.get("stage", ""), spec.get("stage", "")} - {""}
    recorded_variants, spec_variants = recorded.get("variants", ()), spec.get("variants", ())
    return len(stages) < 2 and (
        not recorded_variants
        or not spec_variants
        or not set(recorded_variants).isdisjoint(spec_variants)
    )


def _is_equal(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether a record states all of what would be recorded.

    Its reason is part of that.
    """
    return _typed_fields(recorded) == _typed_fields(spec) and _covers(recorded, spec)


def _typed_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a person typed, without empty ones.

    Not every verb writes empty fields.
    """
    return {
        name: sorted(value) if isinstance(value, list | tuple) else value
        for name, value in spec.items()
        if value and name not in _DERIVED_FIELDS
    }


def _covers(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether all variants and trees that remain now are among the recorded ones."""
    variants, remaining = recorded.get("variants", ()), spec.get("variants", ())
    if bool(variants) != bool(remaining) or not set(remaining) <= set(variants):
        return False
    if spec.get("acceptConflicts") and not recorded.get("acceptConflicts"):
        return False
    trees = recorded.get("trees", ())
    # A Publish without trees is about the drafts that its own pass has written since.
    written_since = spec.get("action") == "Publish" and not trees
    return written_since or set(spec.get("trees", ())) <= set(trees)


def _overrules(record: RecordEntry, kind: str, spec: Mapping[str, Any], author: str) -> bool:
    """Return whether the record is a later answer of the same reporter to the same check."""
    same_check = record.spec.get("check") == spec.get("check")
    return (
        record.kind == kind == "Evidence" and normalize_person(record.by) == author and same_check
    )
