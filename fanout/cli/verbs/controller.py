"""`fanout controller`: run continuously on the objects of a Kubernetes API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from platform import node
from typing import Any

import click
import structlog

from fanout.cli.continuous_operation import (
    build_dependencies,
    configure_log,
    hooks_option,
    interval_option,
    listen_option,
    operate,
    parse_operation,
)
from fanout.cli.declarations import open_cluster_connection
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.lazy_import import load_module
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import Settings
from fanout.cli.startup import OpenCluster, Program, check_configuration, open_program
from fanout.declared.declared_objects import DeclaredObjects
from fanout.ports import Secrets
from fanout.reconcile.execution.plan_execution import is_final, run_pass
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode, list_requests
from fanout.schedule.loop_health import LoopObserver
from fanout.schedule.run_loop import LoopDependencies, RunLoop, SettlingTime
from fanout.schedule.status_thread import StatusThread
from fanout.telemetry.redaction import Redactor
from fanout.values import replace

# Objects that are applied together arrive within milliseconds of each other.
_SETTLING = SettlingTime(quiet=0.1, longest=3.0)

_log = structlog.get_logger()


@click.command(cls=VerbCommand)
@interval_option
@hooks_option
@listen_option
@with_settings([name for name in READ_OPTIONS if name not in ("files", "new_records")])
def command(settings: Settings, interval: str, hooks: str | None, listen: str | None) -> ExitCode:
    """Run continuously on the objects of a Kubernetes cluster.

    Objects are read from the API server and watched: those of fanout, and those of kinds that
    policies name. In a pod the service account is used, unless --context or --kubeconfig is given.
    Drafts and publications are as with `fanout run`; before anything is published, restrictions
    are read again. SIGTERM and SIGINT stop the process after the current pass.
    """
    operation = parse_operation(settings, interval, hooks, listen)
    settings = replace(settings, is_controller=True)
    # Before anything is connected to: what is configured may be wrong.
    check_configuration(settings)
    with _watch_cluster(settings) as cluster:
        opened = OpenCluster(cluster.inventory, cluster.open_secrets)
        observers: list[LoopObserver] = []
        with (
            open_program(settings, check=False, long_running=True, cluster=opened) as program,
            cluster.write_statuses(settings, observers),
        ):
            configure_log(program)
            operate(
                program,
                operation,
                cluster.build_dependencies(program, observers),
                observers,
                settling=_SETTLING,
                on_loop=cluster.connect,
            )
    return ExitCode.OK


class _WatchedCluster:
    """Watched objects of a cluster, and how a loop uses them."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._loop: RunLoop | None = None
        self.source = load_module("kube.watched_objects").WatchedObjects(
            connection, self._notify_loop
        )
        self.inventory = load_module("kube.api_inventory").ApiInventory(self.source)

    def connect(self, loop: RunLoop) -> None:
        """Wake a loop after each change."""
        self._loop = loop

    def _notify_loop(self) -> None:
        if self._loop is not None:
            self._loop.wake()

    def open_secrets(self, administrator_secrets: Secrets, redactor: Redactor) -> Secrets:
        """Return the Secrets of namespaces, with those of the administrator."""
        secrets: Secrets = load_module("kube.api_secrets").ApiSecrets(
            self._connection, administrator_secrets, redactor
        )
        return secrets

    @contextmanager
    def write_statuses(self, settings: Settings, observers: list[LoopObserver]) -> Iterator[None]:
        """Write statuses while open, between rounds. Adds an observer of the loop."""
        writer = load_module("kube.status_writer").ApiStatusWriter(self._connection, node())
        thread = StatusThread(writer, self.inventory.read, settings.namespace)
        observers.append(thread)
        with thread.run():
            yield

    def build_dependencies(
        self, program: Program, observers: list[LoopObserver]
    ) -> LoopDependencies:
        """Build the dependencies of the loop from an open program."""

        def confirm(pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
            # Packages may inject kinds that no policy names.
            self.inventory.require(program.reconciler.list_injected_kinds())
            if is_final(pass_plan):
                _log.debug("Restrictions are read")
                # A watch may be late: what the API server has acknowledged binds what begins now.
                self.source.refresh()
            present: DeclaredObjects = self.inventory.read()
            return None if present is declared else present

        def run(declared: DeclaredObjects, now: datetime, mode: PassMode) -> PassReport:
            return run_pass(program.world, program.reconciler, declared, now, mode, confirm)

        return replace(
            build_dependencies(program, observers), run_pass=run, list_requests=list_requests
        )


@contextmanager
def _watch_cluster(settings: Settings) -> Iterator[_WatchedCluster]:
    """Watch the objects of a cluster while open. Raises InvalidInput, Denied, Unavailable."""
    cluster = _WatchedCluster(open_cluster_connection(settings))
    cluster.source.start()
    try:
        yield cluster
    finally:
        cluster.source.stop()
