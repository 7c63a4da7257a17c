"""`fanout resume`: resume what a recorded Decision suspended."""

from fanout.api.gate_vocabulary import Action
from fanout.cli.recording.suspend_resume import build_suspension_command

command = build_suspension_command(
    Action.RESUME,
    "Resume a suspended policy, stage or variant, or everything. Ends suspensions by"
    " `fanout suspend`, not those by a field of a file. If no decision suspends the subject,"
    " nothing is recorded. Exits with code 4 if nothing is resumed.",
)
