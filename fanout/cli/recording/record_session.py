"""Session of a verb that records: a policy, a person, and what is already on record.

A verb can be killed between the push of its record and the end of what follows from it.
Run again, it must answer like the first run, and record nothing (docs/concepts/records.md).
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import reduce, wraps
from textwrap import indent
from typing import Any

import click

from fanout.api.approver_names import format_user, parse_group
from fanout.api.gate_vocabulary import OverridableGate
from fanout.api.object_meta import API_VERSION, GROUP, Label
from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import RECORD_MODELS
from fanout.cli.input.completion import (
    complete_policies,
    complete_revisions,
    complete_stages,
    complete_variants,
)
from fanout.cli.input.name_lookup import find_policy, find_variant_of, refuse_stopped
from fanout.cli.input.options import READ_OPTIONS, Function, Option, with_settings
from fanout.cli.output.pass_output import print_actions, print_problems, print_report
from fanout.cli.output.printer import format_yaml, write_stdout
from fanout.cli.process_exit import invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import escape_control, print_message
from fanout.gates.active_decisions import DecisionStatus
from fanout.git.git_identity import read_identity
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.observation.repository_state import CommitIdentity, RecordTrace
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.trace_changes import find_due_traces
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.execution.repository_pushes import write_traces
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import Value, replace

policy_argument: Option = click.argument("policy", shell_complete=complete_policies)
reason_option: Option = click.option(
    "--reason", required=True, help="Reason for the command. The reason is recorded."
)
_by_option: Option = click.option(
    "--by",
    metavar='"NAME <ADDRESS>"',
    help="Author of the record.  [default: author of your Git commits]  [FANOUT_BY]",
)


class RecordRequest(Value):
    """Settings of a verb that records, and subject, reason and author as its options name them."""

    settings: Settings
    policy: str = ""
    stage: str = ""
    variants: tuple[str, ...] = ()
    reason: str = ""
    by: str | None = None
    wait_limit: timedelta | None = None  # of --wait; None: do not wait


def with_request(*formats: OutputFormat) -> Option:
    """Return a decorator that adds --by and the shared options to a verb.

    It passes the verb its `request`. `formats`: accepted values of `-o`, the default first.
    """
    request_fields = RecordRequest.__struct_fields__

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call_with_request(**arguments: Any) -> Any:
            fields = {name: arguments.pop(name) for name in request_fields if name in arguments}
            return function(request=RecordRequest(**fields), **arguments)

        with_options = with_settings(READ_OPTIONS, records=True, formats=formats)
        return _by_option(with_options(call_with_request))

    return decorate


def revision_option(help_text: str) -> Option:
    """Return the option --revision with this help."""
    return click.option("--revision", default="", shell_complete=complete_revisions, help=help_text)


def subject_options(function: Function) -> Function:
    """Add POLICY, --stage and --variant, the subject of a record, to a command."""
    return policy_argument(scope_options(function))


def scope_options(function: Function) -> Function:
    """Add --stage and --variant, the recorded part of a policy, to a command."""
    stage = click.option(
        "--stage",
        metavar="STAGE",
        shell_complete=complete_stages,
        default="",
        help="Stage of the policy.",
    )
    variants = click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        shell_complete=complete_variants,
        help="Only the variant with this name; can be repeated.",
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
            raise invalid_setting(
                f"{author!r} is not a name with an address", 'write --by "Name <address>"'
            )
        return CommitIdentity(name.strip(), address[:-1].strip())
    # Git would make up a name from account and machine, which is not acceptable for a record.
    if (git_author := read_identity(os.environ)) is None:
        raise invalid_setting(
            "the author of the record is unknown",
            'give --by "Name <address>", or configure user.name and user.email in Git',
        )
    return git_author


def current_trees(
    variants: Sequence[RenderedVariant], revision: str, *, written_only: bool
) -> list[str]:
    """Return the trees of the up-to-date drafts, which people can have reviewed.

    With `written_only` without drafts that are written when released, seen in `fanout diff` only.
    """
    trees = set()
    for variant in variants:
        draft = find_release_draft(variant)
        if draft is None or draft.trailers.revision != revision or not draft.tree:
            continue
        is_written = bool(draft.commit)
        if variant.selected.has_current_draft if is_written else not written_only:
            trees.add(draft.tree)
    return sorted(trees)


def print_recorded(settings: Settings, line: str) -> None:
    """Print the line that names a record; in a dry run with a mark, as kubectl has it."""
    mark = " (dry run)" if settings.dry_run else ""
    write_stdout(f"{line.rstrip()}{mark}\n")


def print_new_records(program: Program) -> None:
    """Print the records that a dry run has not written; nothing if there are none."""
    overlay = program.overlay if program.settings.dry_run else None
    for manifest in overlay.manifests if overlay is not None else ():
        write_stdout("would be recorded:\n")
        write_stdout(indent(escape_control(format_yaml(manifest)), "  "))


REPEATED = "already recorded"


class RecordSession(Value):
    """Open program, the policy that a verb records about, and what is requested by whom."""

    program: Program
    item: PolicyResult
    request: RecordRequest
    author: CommitIdentity

    @property
    def settings(self) -> Settings:
        """Settings of the verb."""
        return self.program.settings

    @property
    def person(self) -> str:
        """Author by the name that approvals and groups know."""
        return normalize_person(f"{self.author.name} <{self.author.email}>")

    def build_subject(self, *, needs_stage: bool = False) -> dict[str, Any]:
        """Return the subject fields of a record: policy, stage and variants.

        Raises InvalidInput for a missing stage or variant, with `needs_stage` also without a stage.
        """
        item, stage = self.item, self.request.stage
        is_hand_written = item.resolved_policy.upstream_policy is None
        stages = [rule.name for rule in item.rules if rule.name]
        if needs_stage and not is_hand_written and not stage:
            remedy = f"use --stage with one of: {', '.join(stages)}"
            raise not_found(f"the stage of {item.title} is missing", remedy)
        if stage and stage not in stages:
            remedy = f"choose one of: {', '.join(stages)}" if stages else "omit the stage"
            raise not_found(f"{item.title} has no stage {stage}", remedy)
        requested = self.request.variants
        chosen = sorted({find_variant_of(item, name, stage).spec.name for name in requested})
        if is_hand_written:
            return {"variants": [item.resolved_policy.name]}
        return {
            "policy": item.resolved_policy.name,
            **({"stage": stage} if stage else {}),
            **({"variants": chosen} if chosen else {}),
        }

    def find_record_name(self, name: str, kinds: Sequence[str]) -> str:
        """Return the name that a record of one of `kinds` has among the records of the policy.

        On a cluster `name` may be that of the object, which the verb printed that created it. A
        name that nothing has is returned. Raises InvalidInput if the object is not on record.
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
        head = {"apiVersion": API_VERSION, "kind": kind}
        manifest = {**head, "metadata": metadata, "spec": dict(spec)}
        key, now = self.item.resolved_policy.records_key, self.settings.now()
        return self.program.world.records.append(key, [manifest], self.author, now)[0]

    def record(
        self,
        kind: str,
        spec: Mapping[str, Any],
        subject: str = "",
        *,
        verb: str = "",
        groups: Collection[str] = (),
        stops: bool = False,
    ) -> None:
        """Append one record, and print its name and in a dry run its consequences.

        `subject`: end of the printed line; `verb`: what it prints in place of "recorded". `stops`:
        the record stops something, which traces in repositories are to show.
        """
        name = self.append(kind, spec, groups)
        self.print_name(name, subject, kind, verb)
        if stops:
            self.write_traces(name)
        self.print_consequences()

    def print_name(self, name: str, subject: str, kind: str = "Decision", verb: str = "") -> None:
        """Print the name of a record with what became of it; on a cluster it is an object."""
        verb = verb or ("created" if self.settings.uses_cluster else "recorded")
        print_recorded(self.settings, f"{kind.lower()}.fanout.dev/{name} {verb}{subject}")

    def print_notes(self, notes: Iterable[str]) -> None:
        """Print notes for people; empty ones are left out."""
        for note in filter(None, notes):
            print_message(note, self.settings.color)

    def record_and_run(self, spec: Mapping[str, Any], earlier: str = "") -> tuple[str, PassReport]:
        """Record a Decision and run the pass that acts on it.

        Return its name, or that of an `earlier` equal one on record, and the report of the pass.
        """
        fields = {key: it for key, it in spec.items() if it}
        return earlier or self.append("Decision", fields), self.run_pass()

    def print_decision(
        self,
        name: str,
        subject: str,
        report: PassReport,
        effect: str = "",
        notes: Iterable[str] = (),
        *,
        is_repeated: bool = False,
    ) -> None:
        """Print a decision, the report of the pass that acted on it, its effect, and notes.

        The name and what it is about are for people only.
        """
        if self.settings.output is OutputFormat.TABLE:
            self.print_name(name, subject, verb=REPEATED if is_repeated else "")
            print_new_records(self.program)
        # Those of a dry run, or the objects of a cluster.
        overlay = self.program.overlay
        records = list(overlay.manifests) if overlay is not None else []
        print_report(report, self.settings, effect, new_records=records)
        self.print_notes(notes)

    def run_pass(self) -> PassReport:
        """Run the pass that acts on a decision about the policy.

        It is no sweep: if there is a schedule, automation publishes nothing in it.
        """
        policy = self.item.resolved_policy
        only = frozenset([policy.name])
        return self.program.sweep(PassMode(sweep=False, only=only, namespace=policy.namespace))

    def record_once(self, spec: Mapping[str, Any], subject: str = "") -> None:
        """Record a Decision unless an equal one is active, and print its name."""
        earlier = self.find_equal_decision(spec)
        name = earlier.name if earlier else self.append("Decision", spec)
        self.print_name(name, subject, verb=REPEATED if earlier else "")

    def print_consequences(self) -> None:
        """In a dry run, print the new records, and what the next sweep of the policy would do."""
        if not self.settings.dry_run:
            return
        print_new_records(self.program)
        policy = self.item.resolved_policy
        mode = PassMode(only=frozenset([policy.name]), namespace=policy.namespace)
        observed = self.program.observe(mode)
        write_stdout("the next sweep would do:\n")
        print_problems(observed, self.settings)
        print_actions(observed)

    def write_traces(self, name: str = "") -> None:
        """Write the traces that are due after a record that stops something, or after earlier ones.

        `name`: of the record; "" if nothing was recorded.
        """
        write_record_traces(self.program, [with_trace(self.item, name, self.settings.now())])

    def find_equal_decision(
        self,
        spec: Mapping[str, Any],
        statuses: Collection[DecisionStatus] = (DecisionStatus.ACTIVE,),
    ) -> RecordEntry | None:
        """Return the equal decision of this person with one of `statuses`, else None."""
        if (earlier := self.find_equal_record("Decision", spec)) is None:
            return None
        status = self.item.decision_statuses(self.settings.now()).get(earlier.name)
        return earlier if status in statuses else None

    def find_equal_record(self, kind: str, spec: Mapping[str, Any]) -> RecordEntry | None:
        """Return the latest record of the subject if this person recorded the same.

        `spec`: what the verb would record now. A later decision about the stage or one of the
        variants makes it a new record, as does later evidence of the same reporter about the
        same check: either may have ended or overruled the earlier record.
        """
        # Latest first: whatever was recorded after the equal record may have ended it.
        for record in reversed(self.item.records):
            fields = record.fields
            stages = {fields.get("stage", ""), spec.get("stage", "")} - {""}
            variants, own_variants = fields.get("variants"), spec.get("variants")
            # A record that names no variant is about all of its stage.
            is_apart = variants and own_variants and set(variants).isdisjoint(own_variants)
            if len(stages) > 1 or is_apart:
                continue
            is_own = normalize_person(record.by) == self.person
            # The reason is one of the fields that a person typed.
            is_same = (
                record.kind == kind and is_own and _typed_fields(fields) == _typed_fields(spec)
            )
            if is_same and _covers(fields, spec):
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

    For verbs that run no pass, which would do it. On a cluster the controller does.
    """
    if program.overlay is not None:
        return
    errors = write_traces(program.world, [trace for item in items for trace in item.traces])
    for item in items:
        for problem in replace(item, trace_errors=errors).unwritten_traces:
            print_message(f"warning: {problem.message}", program.settings.color)


@contextmanager
def open_record_session(
    request: RecordRequest,
    refuse: Callable[[PolicyResult], None] | None = refuse_stopped,
    find: Callable[[Program, str], PolicyResult] = find_policy,
) -> Iterator[RecordSession]:
    """Open the program and look up the policy, or variant written by hand, of the request.

    Raises InvalidInput if the request's author is nobody, and what `find` and `refuse` raise.
    """
    with open_recording(request) as (program, author):
        item = find(program, request.policy)
        if refuse is not None:
            refuse(item)
        yield RecordSession(program, item, request, author)


@contextmanager
def open_recording(request: RecordRequest) -> Iterator[tuple[Program, CommitIdentity]]:
    """Open the program with the author of the request's records.

    On a cluster this is the user of the API server. Raises InvalidInput if it is nobody.
    """
    settings = request.settings
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


# Fields that a verb derives from the observed state. A killed run may have published or removed
# part of it.
_DERIVED_FIELDS = ("trees", "variants", "acceptConflicts")


def _typed_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a person typed, without empty ones, which not every verb writes."""
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
