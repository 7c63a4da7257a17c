"""`fanout accept-records`: an older copy of the records is meant, and what is published counts."""

import click

from fanout.api.reasons import Reason
from fanout.cli.naming import found, refuse_stopped
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about,
    by_option,
    carried_out,
    identity,
    policy_argument,
    reason_option,
)
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.telling import tell_report
from fanout.cli.terminal import say
from fanout.plan.book import ACCEPT_RECORDS
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.rewound import missing_records


@click.command()
@policy_argument
@reason_option
@by_option
@with_settings()
def command(settings: Settings, policy: str, reason: str, by: str | None) -> None:
    """Accept records that were put back to an older state.

    A policy whose records are older than what was seen of them, or than what is published, is held
    (RecordsRewound). This records a decision that the older copy is meant: what the repositories
    have published is taken as it is, with clocks that start now. Suspensions, approvals and
    evidence that are missing stay missing; those that are known are printed.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = found(program, policy)
        if item.problem is None:
            say(f"nothing to do: the records of {item.title} were not put back", settings.color)
            return
        if item.problem.reason != Reason.RECORDS_REWOUND:
            refuse_stopped(item)
        missing = _missing(item)
        spec = about(item, "", ()) | {"action": ACCEPT_RECORDS, "reason": reason}
        name, report = carried_out(program, item, spec, who)
    write(f"decision.fanout.dev/{name} recorded\n")
    for line in missing:
        say(line, settings.color)
    tell_report(report, settings)


def _missing(item: PolicyPass) -> list[str]:
    """Return what is to be told of the records that are missing."""
    rewound = item.book.rewound
    if rewound is None or rewound.records is None:
        unknown = "which records are missing is not known here"
        return [f"{unknown}; suspend, approve and report again what is still meant"]
    return [f"missing from now on: {line}" for line in missing_records(rewound)]
