"""`fanout forecast`: the earliest time at which each stage can be reached."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import click

from fanout.api.durations import parse_duration
from fanout.api.faults import BadValue
from fanout.api.views import ForecastView, HoldView, ViewMeta
from fanout.cli.completing import complete_policies
from fanout.cli.exit_codes import ExitCode
from fanout.cli.lookup import check_policies, not_found
from fanout.cli.options import with_settings
from fanout.cli.output import Column, Object, show
from fanout.cli.settings import Format, Settings
from fanout.cli.start import Program, open_program
from fanout.cli.telling import tell_faults
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput, Where
from fanout.gates.facts import PolicyFacts
from fanout.gates.forecast import NextSweep, Reach, forecast
from fanout.plan.status import written
from fanout.reconcile.passes import Mode, Subject
from fanout.reconcile.report import PolicyPass
from fanout.schedule.sweeps import timetable

_SECOND = timedelta(seconds=1)
_COLUMNS = (
    Column("STAGE", lambda view: view["stage"]),
    Column("REVISION", lambda view: view["revision"]),
    Column("BEGINS", lambda view: view.get("begins")),
    Column("PASSES", lambda view: view.get("passes")),
    Column("WAITS FOR", lambda view: "; ".join(it["message"] for it in view["holds"])),
    Column("IF", lambda view: "; ".join(view["assumptions"])),
)


@click.command()
@click.argument("policy", shell_complete=complete_policies)
@click.option("--revision", help="The upstream revision; the newest allowed one, if not said.")
@click.option(
    "--takes",
    multiple=True,
    metavar="STAGE=DURATION",
    help="How long a variant of the stage takes to become ready; as was seen, if not said.",
)
@with_settings(formats=tuple(Format))
def command(
    settings: Settings, policy: str, revision: str | None, takes: Sequence[str]
) -> ExitCode:
    """Say when each stage can have a revision at the earliest.

    Soaks, windows, sweeps and budgets are reckoned with. What people still have to do is taken to
    be done at once, and told. How long variants took to become ready is known of what they have at
    present, not of what they had before. Exits with 3 when a stage can never be reached without a
    person.
    """
    with open_program(settings) as program:
        faults = tell_faults(program.declared())
        item = _item(program, policy)
        reaches = _forecast(program.declared(), item, revision, takes)
    show([_view(item, reach) for reach in reaches], _COLUMNS, settings.output)
    if faults:
        return ExitCode.SOME_FAILED
    reached = all(reach.passes is not None for reach in reaches)
    return ExitCode.OK if reached else ExitCode.SOME_FAILED


def _item(program: Program, policy: str) -> PolicyPass:
    """The one policy of the name. Raises InvalidInput when there is none, or several."""
    namespace = program.settings.namespace
    check_policies([policy], program.declared(), namespace)
    mode = Mode(only=frozenset([policy]), namespace=namespace)
    found = program.observe(mode).policies
    if len(found) > 1:
        there = ", ".join(item.named.namespace for item in found)
        raise InvalidInput(
            f"policy {policy} is in several namespaces: {there}",
            reason="NotFound",
            remedy="name one with --namespace",
        )
    if found[0].problem is not None:
        raise found[0].problem
    return found[0]


def _forecast(
    declared: Declared, item: PolicyPass, revision: str | None, takes: Sequence[str]
) -> tuple[Reach, ...]:
    facts = item.facts
    assert facts is not None, "a policy without a problem was judged"
    wanted = revision or next(reversed(facts.revisions), "")
    if wanted not in facts.revisions:
        raise not_found("revision", [wanted or "at all"], facts.revisions)
    about = Subject(item.named.namespace, item.named.name)
    durations = _durations(takes, facts)
    return forecast(facts, wanted, _sweeps(declared, about), durations)


def _durations(takes: Sequence[str], facts: PolicyFacts) -> Mapping[str, timedelta]:
    known = [rule.name for rule in facts.stages]
    found: dict[str, timedelta] = {}
    for text in takes:
        stage, _, duration = text.partition("=")
        if stage not in known:
            raise not_found("stage", [stage], known)
        try:
            found[stage] = parse_duration(duration)
        except BadValue as error:
            raise InvalidInput(
                f"{text}: {error.problem}",
                reason="InvalidSetting",
                remedy="write it as STAGE=DURATION, like dev=10m",
                where=Where(field="--takes"),
            ) from None
    return found


def _sweeps(declared: Declared, about: Subject) -> NextSweep:
    """When automation publishes: whenever a gate opens, or in the sweeps of its schedules."""
    table = timetable(declared)
    mine = [timed for timed in table.timed if about in timed.names]
    if about not in table.bound or not mine:
        return _whenever
    return _earliest([timed.next for timed in mine])


def _whenever(at: datetime) -> datetime:
    return at


def _earliest(schedules: Sequence[Callable[[datetime], datetime]]) -> NextSweep:
    return lambda at: min(following(at - _SECOND) for following in schedules)


def _view(item: PolicyPass, reach: Reach) -> Object:
    name = item.named.name
    view = ForecastView(
        metadata=ViewMeta(
            name=f"{name}/{reach.stage}" if reach.stage else name, namespace=item.named.namespace
        ),
        policy=name if item.named.policy is not None else "",
        stage=reach.stage,
        revision=reach.revision,
        begins=written(reach.begins) if reach.begins else None,
        passes=written(reach.passes) if reach.passes else None,
        assumptions=reach.assumptions,
        holds=tuple(
            HoldView(reason=str(hold.reason), message=hold.sentence, who=hold.who)
            for hold in reach.holds
        ),
    )
    return view.model_dump(mode="json", by_alias=True, exclude_none=True)
