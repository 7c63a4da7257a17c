"""`fanout run`: stay, watch the files, sweep by schedule, end at a safe point."""

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import FrameType

import click
import structlog

from fanout.api.durations import parse_duration
from fanout.api.faults import BadValue
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.settings import Settings
from fanout.cli.start import Program, open_program, warn_about_records
from fanout.cli.terminal import colored
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput, Where
from fanout.reconcile.execute import run_pass
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Report
from fanout.schedule.loop import Loop, Plant
from fanout.telemetry.barrier import LOGGER, TracesOnce
from fanout.telemetry.logs import configure

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = structlog.get_logger()


@click.command()
@click.option(
    "--interval",
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="How long after one look at all repositories the next one comes.",
)
@with_settings()
def command(settings: Settings, interval: str) -> ExitCode:
    """Stay, and sweep by schedule.

    Drafts are kept up to date at all times. A policy that a PromotionPolicy with a schedule names
    is published at its instants; any other as soon as its gates open. A sweep that was missed while
    nobody ran is made up once. SIGTERM and SIGINT end it after the pass that runs; a second one
    ends it at once.
    """
    pause = _interval(interval)
    _refuse_to_forget(settings)
    _refuse_pretended_time(settings)
    with open_program(settings, stays=True) as program:
        warn_about_records(program, program.declared())
        configure(
            program.redactor,
            level=logging.DEBUG if settings.verbosity else logging.INFO,
            colour=colored(settings.color, sys.stderr),
        )
        logging.getLogger(LOGGER).addFilter(TracesOnce())  # the same may come in every pass
        loop = Loop(_plant(program), pause, settings.namespace)
        with _on_signals(loop.stop):
            _log.info("Started", install=program.world.setup.install, interval=interval)
            loop.run()
            _log.info("Stopped")
    return ExitCode.OK


def _plant(program: Program) -> Plant:
    def run(declared: Declared, now: datetime, mode: Mode) -> Report:
        return run_pass(program.world, program.reconciler, declared, now, mode)

    return Plant(program.cluster.read, run, program.sweeps, program.settings.now)


def _interval(text: str) -> timedelta:
    where = Where(field="--interval")
    try:
        interval = parse_duration(text)
    except BadValue as error:
        raise InvalidInput(
            error.problem, reason="InvalidSetting", remedy=error.remedy, where=where
        ) from error
    if not interval:
        problem = "without an interval it would never rest"
        raise InvalidInput(problem, reason="InvalidSetting", remedy="write 1s or more", where=where)
    return interval


def _refuse_pretended_time(settings: Settings) -> None:
    if settings.pretended is not None:
        raise InvalidInput(
            "a process that stays goes by the real clock",
            reason="InvalidSetting",
            remedy="leave it out, or use `fanout sweep`",
            where=Where(field="--now"),
        )


def _refuse_to_forget(settings: Settings) -> None:
    """It would begin anew whenever the records are lost, for as long as it stays."""
    if settings.new_records:
        raise InvalidInput(
            "a process that stays begins nothing anew",
            reason="InvalidSetting",
            remedy="say `fanout sweep --new-records` once",
            where=Where(field="--new-records"),
        )


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT calls `stop`; the next one does what it always does."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal wants it
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        stop()

    for number in _SIGNALS:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
