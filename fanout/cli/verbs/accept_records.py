"""`fanout accept-records`: accept an older copy of the records, and the publications."""

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.cli.input.name_lookup import refuse_stopped
from fanout.cli.input.options import VerbCommand
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    policy_argument,
    reason_option,
    with_request,
)
from fanout.reconcile.records.lost_records import describe_missing_records


@click.command(cls=VerbCommand)
@policy_argument
@reason_option
@with_request()
def command(request: RecordRequest) -> None:
    """Accept records that were restored from an older copy.

    A policy is held with the reason RecordsRewound if its records lack entries that an earlier pass
    has read, or if they are older than its published packages. This command records a decision to
    continue with the older records. Published packages are kept, and soak times and deadlines start
    again. Suspensions, approvals and evidence that the older records lack are not restored. The
    command lists the missing records that it can identify.
    """
    with open_record_session(request, refuse=None) as session:
        item = session.item
        if item.error is None:
            problem = f"the records of {item.title} were not restored from an older copy"
            session.print_notes([f"nothing to do: {problem}"])
            return
        if item.error.reason != Reason.RECORDS_REWOUND:
            refuse_stopped(item)
        # Listed before the decision is recorded: after it, the older copy counts as complete.
        if (rewound := item.policy_state.rewound) is None or rewound.records is None:
            unknown = "the missing records are unknown"
            missing = [f"{unknown}; repeat the suspensions, approvals and reports that still apply"]
        else:
            missing = [f"missing from now on: {it}" for it in describe_missing_records(rewound)]
        spec = session.build_subject()
        spec |= {"action": Action.ACCEPT_RECORDS.value, "reason": request.reason}
        name, report = session.record_and_run(spec)
    session.print_decision(name, "", report, notes=missing)
