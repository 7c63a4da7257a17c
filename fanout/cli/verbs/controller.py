"""`fanout controller`: run continuously on the objects of a Kubernetes API server."""

import socket
from typing import Any

import click

from fanout.cli.declarations import open_watched_cluster
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import Settings
from fanout.cli.startup import OpenCluster, check_configuration, open_program
from fanout.cli.terminal import set_commands
from fanout.cli.verbs.run import build_dependencies, operate, operation_options, parse_operation
from fanout.controller.cluster_operation import ClusterOperation, FinalizedInventory
from fanout.controller.declaration_reader import SettlingTime
from fanout.controller.loop_health import LoopObserver
from fanout.message_commands import MessageCommands
from fanout.values import replace

# A controller serves all namespaces: who takes records in must not be in doubt.
_UNUSED_OPTIONS = ("files", "namespace", "all_namespaces", "new_records")
# Objects that are applied together arrive within milliseconds of each other.
_SETTLING = SettlingTime(quiet=0.1, longest=3.0)


@click.command(cls=VerbCommand)
@operation_options
@with_settings([name for name in READ_OPTIONS if name not in _UNUSED_OPTIONS])
def command(settings: Settings, **options: Any) -> ExitCode:
    """Run continuously on the objects of a Kubernetes cluster.

    Objects are read from the API server and watched: those of fanout, and those of kinds that
    policies name. In a pod the service account is used, unless --context or --kubeconfig is given.
    Drafts and publications are as with `fanout run`; before anything is published, restrictions
    are read again. The records repository has no default here: name it with --records, or in the
    FanoutConfiguration. SIGTERM and SIGINT stop the process after the current pass.
    """
    operation = parse_operation(settings, **options)
    settings = replace(settings, is_controller=True, namespace="")
    # Messages advise commands of the machine on which it runs. In a pod without a kubeconfig the
    # options are of no use to a reader, who is elsewhere.
    given = () if settings.is_in_pod else settings.commands.options
    kept = (it for it in given if it[0] != "namespace")
    commands = MessageCommands((("all_namespaces", ""), *kept), in_cluster=True)
    settings = replace(settings, commands=commands)
    set_commands(commands)
    # Before anything is connected to: what is configured may be wrong.
    check_configuration(settings)
    cluster = open_watched_cluster(settings)
    with cluster.watched():
        inventory = FinalizedInventory(cluster.inventory, cluster.finalizers)
        opened = OpenCluster(inventory, cluster.open_secrets)
        with open_program(settings, check=False, long_running=True, cluster=opened) as program:
            cluster_operation = ClusterOperation(
                cluster,
                inventory,
                program.world,
                program.reconciler,
                program.configuration.record_retention,
                cluster.open_lease(program.world.setup.install, program.records_url),
            )
            observers: list[LoopObserver] = []
            writer = cluster.open_status_writer(socket.gethostname())
            with cluster_operation.run_observers(writer, observers):
                operate(
                    program,
                    operation,
                    cluster_operation.complete(build_dependencies(program, observers)),
                    observers,
                    settling=_SETTLING,
                    on_loop=cluster_operation.connect,
                )
    return ExitCode.OK
