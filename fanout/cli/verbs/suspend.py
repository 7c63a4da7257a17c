"""`fanout suspend`: suspend a policy, a stage or a variant by a recorded Decision."""

from fanout.api.gate_vocabulary import Action
from fanout.cli.recording.suspend_resume import build_suspension_command

command = build_suspension_command(
    Action.SUSPEND,
    "Suspend a policy, a stage, a variant, or everything. Records a decision; no file is changed."
    " `fanout resume` ends the suspension.",
)
