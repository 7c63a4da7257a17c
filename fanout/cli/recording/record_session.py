"""Session of a verb that records: a policy, a person, and what is already on record.

A verb can be killed between the push of its record and the end of what follows from it.
Run again, it must answer like the first run, and record nothing (design §3).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from typing import Any

from fanout.api.approver_names import format_group, format_user, parse_group
from fanout.api.gate_vocabulary import OverridableGate
from fanout.api.object_meta import API_VERSION, GROUP, Label
from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import RECORD_MODELS
from fanout.cli.command_errors import invalid_setting, not_found
from fanout.cli.input.name_lookup import (
    find_evaluated_policy,
    find_variant_of,
    refuse_unknown_stage,
)
from fanout.cli.output.pass_output import print_report
from fanout.cli.recording.dry_run import (
    describe_record,
    list_new_records,
    print_new_records,
    print_recorded,
)
from fanout.cli.recording.record_options import RecordRequest, resolve_author
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import print_message
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_rules import ApprovalRule
from fanout.plan.observation.record_trace import RecordTrace
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.trace_changes import find_due_traces
from fanout.reconcile.execution.trace_execution import write_traces
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import Value, replace

PolicyLookup = Callable[[Program, str], PolicyResult]


class RecordSession(Value):
    """Open program, the policy that a verb records about, and what is requested by whom."""

    program: Program
    item: PolicyResult
    request: RecordRequest
    author: CommitIdentity

    def find_groups(self, rule: ApprovalRule) -> frozenset[str]:
        """Return the groups of a cluster for which the author may approve by the rule.

        They are subjects of the rule; none in file mode.
        """
        creator = self.program.record_creator
        if creator is None:
            return frozenset()
        return rule.subjects.intersection(map(format_group, creator.user.groups))

    def build_subject(self) -> dict[str, Any]:
        """Return the subject fields of a record: policy, stage and variants.

        Raises InvalidInput for a stage or a variant that does not exist.
        """
        item, stage = self.item, self.request.stage
        refuse_unknown_stage(item, stage)
        requested = self.request.variants
        chosen = sorted({find_variant_of(item, name, stage).spec.name for name in requested})
        if item.resolved_policy.upstream_policy is None:
            return {"variants": [item.resolved_policy.name]}
        return {
            "policy": item.resolved_policy.name,
            **({"stage": stage} if stage else {}),
            **({"variants": chosen} if chosen else {}),
        }

    def find_record_name(self, name: str, kinds: Sequence[str]) -> str:
        """Return the name that a record of one of `kinds` has among the records of the policy.

        On a cluster `name` may be that of the object, which is what the verb printed that created
        it. A name that neither a record nor an object has is returned as it is. Raises InvalidInput
        if the object is not on record.
        """
        name = reduce(str.removeprefix, (f"{it.lower()}.{GROUP}/" for it in kinds), name)
        creator, policy = self.program.record_creator, self.item.resolved_policy
        if creator is None or any(it.name == name for it in self.item.records):
            return name
        for kind in kinds:
            uid = creator.find_uid(kind, policy.namespace, name)
            recorded = [it.name for it in self.item.records if uid and it.uid == uid]
            if recorded:
                return recorded[0]
            if uid:
                plural = next(it.PLURAL for it in RECORD_MODELS if it.__name__ == kind)
                where = f"{plural}.{GROUP} {name} -n {policy.namespace}"
                raise not_found(
                    f"{kind.lower()} {name} is not on record for {self.item.title}",
                    f"see its condition Recorded: `kubectl get {where} -o yaml`",
                )
        return name

    def append(self, kind: str, spec: Mapping[str, Any], groups: Collection[str] = ()) -> str:
        """Append one record to the records of the policy and return its name.

        On a cluster it is created as an object. `groups`: subjects for which the author speaks.
        """
        metadata: dict[str, Any] = {"namespace": self.item.resolved_policy.namespace}
        if groups:
            names = sorted(map(parse_group, groups))
            metadata["annotations"] = {Label.GROUPS.value: "\n".join(names)}
        manifest = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": metadata,
            "spec": dict(spec),
        }
        key, now = self.item.resolved_policy.records_key, self.program.settings.now()
        return self.program.world.records.append(key, [manifest], self.author, now)[0]

    def record_and_run(self, spec: Mapping[str, Any], earlier: str = "") -> tuple[str, PassReport]:
        """Record a Decision and run the pass that acts on it.

        Return its name and the report of the pass. `earlier`: name of an equal decision on
        record; if it is given, nothing is recorded.
        """
        fields = {key: it for key, it in spec.items() if it}
        return earlier or self.append("Decision", fields), self.run_pass()

    def run_pass(self) -> PassReport:
        """Run the pass that acts on a decision about the policy.

        It is no sweep: if there is a schedule, automation publishes nothing in it.
        """
        policy = self.item.resolved_policy
        only = frozenset([policy.name])
        return self.program.sweep(PassMode(sweep=False, only=only, namespace=policy.namespace))

    def record_once(self, spec: Mapping[str, Any], subject: str = "") -> str:
        """Record a Decision unless an equal one is active, print its name and return it."""
        earlier = self.find_equal_decision(spec)
        name = earlier.name if earlier else self.append("Decision", spec)
        settings = self.program.settings
        recorded = format_recorded(settings, name, subject, is_repeated=earlier is not None)
        print_recorded(settings, recorded)
        return name

    def find_equal_decision(
        self,
        spec: Mapping[str, Any],
        statuses: Collection[DecisionStatus] = (DecisionStatus.ACTIVE,),
    ) -> RecordEntry | None:
        """Return the equal decision of this person with one of `statuses`, else None."""
        earlier = self.find_equal_record("Decision", spec)
        if earlier is None:
            return None
        status = self.item.decision_statuses(self.program.settings.now()).get(earlier.name)
        return earlier if status in statuses else None

    def find_equal_record(self, kind: str, spec: Mapping[str, Any]) -> RecordEntry | None:
        """Return the latest record of the subject if this person recorded the same.

        `spec`: what the verb would record now. A later decision about the stage or one of the
        variants makes it a new record, as does later evidence of the same reporter about the
        same check: either may have ended or overruled the earlier record.
        """
        author = normalize_person(f"{self.author.name} <{self.author.email}>")
        # Latest first: whatever was recorded after the equal record may have ended it.
        for record in reversed(self.item.records):
            fields = record.fields
            if not _overlap(fields, spec):
                continue
            is_own = normalize_person(record.by) == author
            if record.kind == kind and is_own and _is_equal(fields, spec):
                return record
            # A later answer of the same reporter to the same check overrules the earlier one.
            same_check = fields.get("check") == spec.get("check")
            is_overruled = record.kind == kind == "Evidence" and is_own and same_check
            if record.kind == "Decision" or is_overruled:
                return None
        return None


def with_trace(item: PolicyResult, name: str, at: datetime) -> PolicyResult:
    """Return the policy with the traces that are due after a record that stops something.

    With "" as its name nothing was recorded, and those of an earlier run may be due.
    """
    if not name:
        return item
    key, trace = item.resolved_policy.records_key, RecordTrace(name, at)
    return replace(item, traces=find_due_traces(item.repository_states, key, trace))


def write_record_traces(program: Program, items: Collection[PolicyResult]) -> None:
    """Write the traces that are due, and print which repositories cannot take them.

    For verbs that run no pass, which would do it. On a cluster the controller does, and a dry run
    writes nothing.
    """
    if program.overlay is not None:
        return
    errors = write_traces(program.world, [trace for item in items for trace in item.traces])
    for item in items:
        for problem in replace(item, trace_errors=errors).unwritten_traces:
            print_message(f"warning: {problem.message}", program.settings.color)


@contextmanager
def open_record_session(
    settings: Settings, request: RecordRequest, find: PolicyLookup = find_evaluated_policy
) -> Iterator[RecordSession]:
    """Open the program and look up the policy, or variant written by hand, of the request.

    Raises InvalidInput if the request's author is nobody, and what `find` raises.
    """
    with open_recording(settings, request) as (program, author):
        yield RecordSession(program, find(program, request.policy), request, author)


@contextmanager
def open_recording(
    settings: Settings, request: RecordRequest
) -> Iterator[tuple[Program, CommitIdentity]]:
    """Open the program with the author of the request's records.

    On a cluster this is the user of the API server. Raises InvalidInput if it is nobody.
    """
    if settings.uses_cluster and request.by:
        raise invalid_setting(
            "--by and a cluster exclude each other",
            "omit --by: the API server knows who you are",
            "--by",
        )
    author = None if settings.uses_cluster else resolve_author(request.by)
    with open_program(settings) as program:
        if author is None:
            assert program.record_creator is not None, "a cluster has objects of records"
            user = program.record_creator.user.name
            author = CommitIdentity(user, format_user(user))
        yield program, author


def format_recorded(settings: Settings, name: str, subject: str = "", *, is_repeated: bool) -> str:
    """Return the line that names a decision, whether new or recorded before."""
    return f"{describe_record(settings, 'Decision', name, is_repeated=is_repeated)}{subject}\n"


def print_decision(
    program: Program, recorded: str, report: PassReport, effect: str, notes: Iterable[str]
) -> None:
    """Print a decision, the report of the pass that acted on it, its effect, and notes.

    `recorded`: line of `format_recorded`, for people only. Empty notes are left out.
    """
    settings = program.settings
    if settings.output is OutputFormat.TABLE:
        print_recorded(settings, recorded)
        print_new_records(program)
    print_report(report, settings, effect, new_records=list_new_records(program))
    for note in filter(None, notes):
        print_message(note, settings.color)


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


# Fields that a verb derives from the observed state. A killed run may have published or removed
# part of it.
_DERIVED_FIELDS = ("trees", "variants", "acceptConflicts")


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
    """Return whether a record states all of what would be recorded. Its reason is part of that."""
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
    # A Publish without trees, or one that overrides `after`, is about drafts written since, too.
    is_about_revision = not trees or OverridableGate.AFTER in recorded.get("overrides", ())
    written_since = spec.get("action") == "Publish" and is_about_revision
    return written_since or set(spec.get("trees", ())) <= set(trees)
