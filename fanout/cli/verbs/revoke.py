"""`fanout revoke`: revoke an approval."""

import click

from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import ApprovalSpec
from fanout.cli.command_errors import not_found
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode
from fanout.cli.recording.approval_eligibility import format_not_entitled, is_approver
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    policy_argument,
    print_recorded,
    with_request,
)
from fanout.cli.settings import Settings
from fanout.cli.terminal import print_message
from fanout.gates.approval_index import find_revoked


@click.command(cls=VerbCommand)
@policy_argument
@click.argument("approval")
@with_request()
def command(settings: Settings, request: RecordRequest, approval: str) -> ExitCode:
    """Revoke an approval.

    APPROVAL is the name that `fanout approve` printed. Exits with code 4 if the revocation has no
    effect.
    """
    with open_record_session(settings, request) as session:
        item, author = session.item, session.author
        name = session.find_record_name(approval, ("Approval",))
        matches = [
            record
            for record in item.policy_state.records
            if isinstance(record.spec, ApprovalSpec)
            and record.name == name
            and not record.spec.revokes
        ]
        if not matches:
            raise not_found(
                f"{item.title} has no approval {name}",
                f"run `fanout get approvals {item.resolved_policy.name}`",
            )
        revoked_approval = matches[0]
        facts = item.facts
        if facts and name in find_revoked(facts.records.approvals, facts.stages):
            print_message(f"nothing to do: {name} is already revoked", settings.color)
            session.write_traces()
            return ExitCode.OK
        assert isinstance(revoked_approval.spec, ApprovalSpec), "it is an approval"
        check_key = (revoked_approval.spec.stage, revoked_approval.spec.check)
        stages = facts.stages if facts else ()
        rules = {(stage.name, rule.name): rule for stage in stages for rule in stage.approvals}
        rule = rules.get(check_key)  # None if no stage requires it any more
        groups = session.find_groups(rule) if rule is not None else frozenset()
        spec = {**revoked_approval.fields, "revokes": name}
        revoked = session.append("Approval", spec, groups)
        print_recorded(settings, f"approval.fanout.dev/{revoked} revokes {name}")
        session.write_traces(revoked)
        session.print_consequences()
    # Whoever gave an approval may revoke it, also after leaving the group of approvers.
    is_own = normalize_person(f"{author.name} <{author.email}>") == normalize_person(
        revoked_approval.by
    )
    if rule is not None and not is_own and not is_approver(rule, author, groups):
        print_message(
            f"recorded, but it does not count: {author.email} is not its author, and"
            f" {format_not_entitled(rule, author)}",
            settings.color,
        )
        return ExitCode.NO_EFFECT
    return ExitCode.OK
