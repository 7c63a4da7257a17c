"""What the verbs on plain directories need to run functions that are not in process."""

from fanout.cli.settings import Settings
from fanout.cli.start import configuration_of, function_runner
from fanout.reconcile.answers import Answering
from fanout.sandbox.programs import allowed_programs
from fanout.telemetry.counters import Counters
from fanout.values import frozen
from fanout.variants.questions import Programs


@frozen
class Workshop:
    """The programs that the configuration allows, and who runs them."""

    programs: Programs
    answering: Answering


def workshop(settings: Settings) -> Workshop:
    """As the file of --config says. Raises InvalidInput."""
    configuration = configuration_of(settings)
    allowed = configuration.functions
    runner = function_runner(configuration, Counters())
    return Workshop(allowed_programs(allowed), Answering(runner))
