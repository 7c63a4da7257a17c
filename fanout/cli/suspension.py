"""Records a Decision that suspends or resumes."""

from collections.abc import Mapping, Sequence

from fanout.cli.output import write
from fanout.cli.recording import about, identity, judged, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program


def decide(
    settings: Settings,
    action: str,
    policy: str,
    said: Mapping[str, str],
    variants: Sequence[str],
    by: str | None,
) -> None:
    """Record that a policy, a stage of it or variants of it are suspended or go on."""
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, said["stage"], variants)
        spec |= {"action": action, "reason": said["reason"]}
        name = record(program, item, "Decision", spec, who)
    write(f"decision.fanout.dev/{name} recorded\n")
