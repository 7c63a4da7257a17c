"""Notifications of commands: the notifier of an installation, and one delivery after a pass."""

from collections.abc import Callable, Sequence
from functools import partial

from fanout.cli.lazy_import import load_module
from fanout.cli.startup import Program
from fanout.cli.terminal import print_message
from fanout.cluster.file_secrets import FileSecrets
from fanout.errors import FanoutError
from fanout.ports import BatchResult, Credentials, EventBatch, EventSender
from fanout.present.notifications.notifier import Notifier
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import list_subjects
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value


class LazyEventSender(Value):
    """Port `fanout.ports.EventSender` that loads the HTTP library when there is an event."""

    secrets: Callable[[str], Credentials]  # of the administrator, by name

    def send(self, batches: Sequence[EventBatch]) -> list[BatchResult]:
        """Send batches as `fanout.ports.EventSender` specifies. Load nothing if there are none."""
        if not batches:
            return []
        sender: EventSender = load_module("notify").HttpEventSender(self.secrets)
        return sender.send(batches)


def build_notifier(program: Program) -> Notifier | None:
    """Return the notifier of an installation; None if it has no addresses, or in a dry run."""
    configuration, state_dir = program.configuration, program.settings.state_dir
    if not configuration.notifications or program.settings.dry_run:
        return None
    secrets = partial(FileSecrets(program.redactor, state_dir / "secrets").get, "")
    for target in configuration.notifications:
        # Only a secret that was looked up is taken out of events. A missing one is reported when
        # an event is to be sent.
        run_isolated(partial(secrets, target.secret_ref.name))
    return Notifier(
        configuration.notifications,
        configuration.install_id,
        state_dir / "notifications.json",
        LazyEventSender(secrets),
        program.redactor.redact_value,
        program.world.counters.events,
        in_cluster=program.settings.uses_cluster,
    )


def notify_of_pass(program: Program, notifier: Notifier | None, report: PassReport) -> None:
    """Deliver the events of a pass, and what waits since earlier ones; warn of what fails.

    Takes seconds at most. Nothing that fails here changes the result of the pass.
    """
    if notifier is None:
        return

    def deliver() -> list[str]:
        if report.pass_plan.policies:  # else it is the answer of an earlier pass
            notifier.observe(report, list_subjects(program.read_declared()))
        delivery, waiting = notifier.deliver(program.settings.now()), notifier.count_waiting()
        return [
            f"notification {name} cannot be delivered: {problem}; waiting: {waiting[name]}"
            for name, problem in delivery.problems.items()
        ]

    problems = run_isolated(deliver)
    if isinstance(problems, FanoutError):
        problems = [f"notifications: {problems}"]
    for problem in problems:
        print_message(f"warning: {program.redactor.redact_text(problem)}", program.settings.color)
