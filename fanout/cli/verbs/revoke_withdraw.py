"""`fanout revoke` and `fanout withdraw`: end what an approval, a decision or evidence does."""

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import ApprovalSpec
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode, exit_code_after, not_found
from fanout.cli.recording.eligibility import find_author
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    policy_argument,
    reason_option,
    with_request,
)
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.approval_index import find_revoked
from fanout.plan.records.policy_records import active_records


@click.command(cls=VerbCommand)
@policy_argument
@click.argument("approval")
@with_request()
def revoke(request: RecordRequest, approval: str) -> ExitCode:
    """Revoke an approval.

    APPROVAL is the name that `fanout approve` printed. Exits with code 4 if the revocation has no
    effect.
    """
    with open_record_session(request) as session:
        item, facts = session.item, session.item.facts
        name = session.find_record_name(approval, ("Approval",))
        record, check = next(
            (
                (it, (it.spec.stage, it.spec.check))
                for it in item.policy_state.records
                if isinstance(it.spec, ApprovalSpec) and it.name == name and not it.spec.revokes
            ),
            (None, None),
        )
        if record is None:
            raise not_found(
                f"{item.title} has no approval {name}",
                f"run `fanout get approvals {item.resolved_policy.name}`",
            )
        if facts and name in find_revoked(facts.records.approvals, facts.stages):
            session.print_notes([f"nothing to do: {name} is already revoked"])
            session.write_traces()
            return ExitCode.OK
        # None if no stage requires the check any more.
        author = next(
            (
                find_author(session, rule)
                for stage in (facts.stages if facts else ())
                for rule in stage.approvals
                if (stage.name, rule.name) == check
            ),
            None,
        )
        spec, groups = {**record.fields, "revokes": name}, author.groups if author else ()
        session.record("Approval", spec, f" {name}", verb="revokes", groups=groups, stops=True)
    # Whoever gave an approval may revoke it, also after leaving the group of approvers.
    is_own = session.person == normalize_person(record.by)
    if author is not None and not is_own and not author.is_approver:
        note = f"recorded, but it does not count: {session.author.email} is not its author, and"
        session.print_notes([f"{note} {author.format_not_entitled()}"])
        return ExitCode.NO_EFFECT
    return ExitCode.OK


# Decisions that stay in force until they are applied or withdrawn.
_WITHDRAWABLE_ACTIONS = ("Publish", "Resolve", "Rollback", "Skip", "Retry", "ConfirmRemoval")
_INACTIVE_SENTENCES = {
    DecisionStatus.APPLIED: "has been applied or superseded; publications stay",
    DecisionStatus.WITHDRAWN: "is already withdrawn",
    DecisionStatus.EXPIRED: "has expired",
}


@click.command(cls=VerbCommand)
@policy_argument
@click.argument("record_name", metavar="RECORD")
@reason_option
@with_request()
def withdraw(request: RecordRequest, record_name: str) -> ExitCode:
    """Withdraw an active decision, or evidence.

    RECORD is the name that `fanout promote`, `rollback`, `skip`, `retry`, `resolve`, `remove` or
    `report` printed. `fanout get records` lists all records with their names and states. The
    command itself changes no published package. After the withdrawal of a rollback, the next sweep
    continues with the newer revision. A check whose evidence is withdrawn is pending again, and so
    is a stage that failed by it alone. A stage that has already passed keeps this result; to make
    it fail, run `fanout report` with --status failed. Approvals are revoked with `fanout revoke`.
    Exits with code 4 if the decision is no longer active, because it was already carried out or has
    expired.
    """
    with open_record_session(request) as session:
        item, now = session.item, request.settings.now()
        name = session.find_record_name(record_name, ("Decision", "Evidence"))
        status = item.decision_statuses(now).get(name, DecisionStatus.ACTIVE)
        if any(it.withdrawn for it in active_records(item.records) if it.name == name):
            status = DecisionStatus.WITHDRAWN
        records = [it for it in item.records if it.kind != "Approval" and it.name == name]
        if not records:
            raise not_found(
                f"{item.title} has no decision or evidence {name}",
                f"run `fanout get records {item.resolved_policy.name}`",
            )
        record = records[-1]
        is_withdrawable = record.kind == "Evidence" or record.action in _WITHDRAWABLE_ACTIONS
        # A decision dated ahead has had no effect yet, so one of any action can be withdrawn.
        if not is_withdrawable and status is not DecisionStatus.AHEAD:
            undo = {"Suspend": "fanout resume", "Resume": "fanout suspend"}.get(str(record.action))
            raise not_found(
                f"{name} is a {record.action}, which cannot be withdrawn",
                f"use `{undo}`" if undo else "it was applied when it was recorded",
            )
        if inactive_sentence := _INACTIVE_SENTENCES.get(status):
            session.print_notes([f"nothing to do: {name} {inactive_sentence}"])
            session.write_traces()
            return exit_code_after(0, effect=status is DecisionStatus.WITHDRAWN)
        spec = {
            key: value
            for key, value in record.fields.items()
            if key in ("policy", "stage", "variants")
        }
        spec |= {"action": Action.WITHDRAW.value, "withdraws": name, "reason": request.reason}
        session.record("Decision", spec, f" {name}", verb="withdraws", stops=True)
    return ExitCode.OK
