"""`fanout suspend`: suspend a policy, a stage or a variant by a recorded Decision."""

from fanout.cli.recording.suspend_resume import build_suspension_command
from fanout.gates.record_facts import GateAction

command = build_suspension_command(
    GateAction.SUSPEND,
    "Suspend a policy, a stage, a variant, or --all. No file is edited; `fanout resume` ends it.",
)
