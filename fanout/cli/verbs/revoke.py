"""`fanout revoke`: revoke an approval."""

import click

from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import ApprovalSpec
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode, not_found
from fanout.cli.recording.approval_eligibility import find_author
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    policy_argument,
    with_request,
)
from fanout.gates.approval_index import find_revoked


@click.command(cls=VerbCommand)
@policy_argument
@click.argument("approval")
@with_request()
def command(request: RecordRequest, approval: str) -> ExitCode:
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
