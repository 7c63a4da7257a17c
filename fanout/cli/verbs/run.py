"""`fanout run`: passes in a loop, until a signal, with notifications, webhooks and metrics.

`fanout controller` runs the same loop. It differs in what it reads objects from.
"""

import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import Any

import click
import structlog

from fanout.api.durations import parse_duration
from fanout.api.field_errors import InvalidValue
from fanout.cli.input.options import PASS_OPTIONS, Function, VerbCommand, with_settings
from fanout.cli.lazy_import import load_extra
from fanout.cli.notification_delivery import build_notifier
from fanout.cli.process_exit import ExitCode, invalid_setting
from fanout.cli.settings import Settings
from fanout.cli.startup import Program, open_program, warn_about_records
from fanout.cli.terminal import is_colored
from fanout.cluster.file_secrets import FileSecrets
from fanout.controller.declaration_reader import SettlingTime
from fanout.controller.loop_health import LoopObserver
from fanout.controller.notification_thread import NotificationThread
from fanout.controller.run_loop import LoopDependencies, RunLoop
from fanout.disk_cache import installed_version
from fanout.present.notifications.notifier import Notifier
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.telemetry.error_isolation import LOGGER_NAME, TracebackFilter
from fanout.telemetry.logging_setup import configure_logging
from fanout.values import Value

_HOOK_MODULES = ("http_server", "hook_receiver")
_MONITORING_MODULES = ("http_server", "run_metrics")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = structlog.get_logger()


def operation_options(function: Function) -> Function:
    """Add the options of continuous operation to a command."""
    interval = click.option(
        "--interval",
        default="1m",
        show_default=True,
        metavar="DURATION",
        help="Time between two checks of all repositories for changes.",
    )
    hooks = click.option(
        "--hooks",
        metavar="ADDRESS",
        help="Receive webhooks of forges on HOST:PORT; requires the installation of"
        " `fanout-gitops[serve]`.",
    )
    listen = click.option(
        "--listen",
        metavar="ADDRESS",
        help="Serve /metrics, /healthz and /readyz on HOST:PORT; requires the installation "
        "of `fanout-gitops[serve]`. --listen and --hooks can have the same address.",
    )
    return interval(hooks(listen(function)))


class Operation(Value):
    """Options of continuous operation."""

    interval: timedelta
    hooks: str | None  # address; None: no webhooks are received
    listen: str | None  # address; None: neither metrics nor health are served


def parse_operation(
    settings: Settings, interval: str, hooks: str | None, listen: str | None
) -> Operation:
    """Build the value of the options. Raises InvalidInput."""
    try:
        parsed_interval = parse_duration(interval)
    except InvalidValue as error:
        raise invalid_setting(error.problem, error.remedy, "--interval") from error
    # An interval of zero would list all refs of all repositories without a pause.
    if not parsed_interval:
        raise invalid_setting("the interval is zero", "write 1s or more", "--interval")
    if settings.new_records:  # the loop would accept lost records again and again
        raise invalid_setting(
            "--new-records is not supported by a process that runs continuously",
            "run `fanout sweep --new-records` once",
            "--new-records",
        )
    if settings.now_override is not None:
        raise invalid_setting(
            "--now is not supported by a process that runs continuously",
            "remove it, or use `fanout sweep`",
            "--now",
        )
    return Operation(parsed_interval, hooks, listen)


def operate(
    program: Program,
    operation: Operation,
    dependencies: LoopDependencies,
    observers: list[LoopObserver],
    *,
    settling: SettlingTime | None = None,
    on_loop: Callable[[RunLoop], None] | None = None,
) -> None:
    """Run passes until a signal.

    Its log is written to standard error. `observers` of the dependencies get more here. `on_loop`
    gets the loop before it runs.
    """
    settings = program.settings
    level = logging.DEBUG if settings.verbosity else logging.INFO
    configure_logging(
        program.redactor,
        level=logging.WARNING if settings.quiet else level,  # the level of failed passes
        use_color=is_colored(settings.color, sys.stderr),
        commands=settings.commands,
    )
    # An error can occur in every pass.
    logging.getLogger(LOGGER_NAME).addFilter(TracebackFilter())
    # The metrics observe the loop and read its health, so they are added after it is made.
    loop = RunLoop(
        dependencies,
        operation.interval,
        settings.namespace,
        program.configuration.drafts_per_round,
        settling,
    )
    if on_loop is not None:
        on_loop(loop)
    git = program.world.git
    git.report_answers(loop.notify_answer)

    def stop() -> None:
        loop.stop()
        git.hurry()

    with ExitStack() as stack:
        stack.enter_context(_handle_signals(stop))
        if (notifier := build_notifier(program)) is not None:
            thread = NotificationThread(notifier, settings.now)
            observers.append(thread)
            stack.enter_context(thread.run())
        _serve(stack, program, loop, observers, notifier, operation)
        install, seconds = program.world.setup.install, operation.interval.total_seconds()
        _log.info("Started", install=install, interval=f"{seconds:g}s")
        loop.run()
        _log.info("Stopped")


def build_dependencies(
    program: Program, observers: Sequence[LoopObserver] = ()
) -> LoopDependencies:
    """Build the dependencies of the loop from an open program."""
    return LoopDependencies(
        program.inventory,
        program.reconciler.find_concerned,
        partial(run_pass, program.world, program.reconciler),
        program.sweeps,
        program.settings.now,
        observers,
    )


def _serve(
    stack: ExitStack,
    program: Program,
    loop: RunLoop,
    observers: list[LoopObserver],
    notifier: Notifier | None,
    operation: Operation,
) -> None:
    """Serve hooks, and metrics and health, each on its address if there is one, until `stack` ends.

    Adds the metrics to the observers of the loop. Raises InvalidInput or Denied if it cannot.
    """
    hooks, listen, forges = operation.hooks, operation.listen, program.configuration.forges
    world = program.world
    secret_names = {it.host: it.webhook_secret_ref.name for it in forges if it.webhook_secret_ref}
    routes: dict[str, tuple[str, list[Any]]] = {}  # option and routes by address
    if hooks is not None:
        if not secret_names:
            raise invalid_setting(
                "no host in forges of the FanoutConfiguration has a webhookSecretRef",
                "name the secret that its webhooks are signed with",
                "--hooks",
            )
        server, receivers = (load_extra(f"serve.{it}", "serve", "--hooks") for it in _HOOK_MODULES)
        secrets = FileSecrets(program.redactor, program.settings.state_dir / "secrets")
        receiver = receivers.HookReceiver(
            secret_names,
            partial(secrets.get, ""),
            loop.notify,
            world.counters.events,
            {it.host: it.type for it in forges},
        )
        routes[hooks] = "--hooks", server.route_hooks(receiver)
    if listen is not None:
        server, module = (
            load_extra(f"serve.{it}", "serve", "--listen") for it in _MONITORING_MODULES
        )
        metrics = module.RunMetrics(
            installed_version(),
            world.counters,
            loop.health,
            world.forges.remaining_calls,
            notifier.count_waiting if notifier is not None else dict,
        )
        observers.append(metrics)
        option, others = routes.get(listen, ("--listen", []))
        monitoring = server.route_monitoring(metrics.format_page, loop.health)
        routes[listen] = option, [*others, *monitoring]
    for address, (option, served) in routes.items():
        server = load_extra("serve.http_server", "serve", option)
        actual = stack.enter_context(server.serve_http(address, option, served))
        if address == hooks:
            _log.info("Receiving webhooks", address=actual, hosts=sorted(secret_names))
        if address == listen:
            _log.info("Serving metrics and health", address=actual)
            if not server.is_loopback(actual):
                _log.warning(
                    "Metrics are readable by everybody who reaches the address",
                    address=actual,
                    remedy="listen on 127.0.0.1, or let only Prometheus and probes through",
                )


@contextmanager
def _handle_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the first SIGTERM or SIGINT; the next one has its default action."""
    previous_handlers = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle_first(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for signal_number in _SIGNALS:
            # Both are reset by the first signal, so that any second one ends a pass that hangs.
            signal.signal(signal_number, signal.SIG_DFL)
        stop()

    for number in _SIGNALS:
        signal.signal(number, handle_first)
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@click.command(cls=VerbCommand)
@operation_options
@with_settings([name for name in PASS_OPTIONS if name != "new_records"])
def command(settings: Settings, **options: Any) -> ExitCode:
    """Run continuously and sweep on schedule.

    Drafts are always kept up to date. If a PromotionPolicy sets a schedule for a policy, the drafts
    of the policy are published at the scheduled times. Drafts of other policies are published as
    soon as their gates open. If scheduled sweeps were missed while no process ran, one sweep is
    done at the start. SIGTERM and SIGINT stop the process after the current pass. A second signal
    stops the process at once.
    """
    operation = parse_operation(settings, **options)
    with open_program(settings, long_running=True) as program:
        warn_about_records(program, program.read_declared())
        observers: list[LoopObserver] = []
        operate(program, operation, build_dependencies(program, observers), observers)
    return ExitCode.OK
