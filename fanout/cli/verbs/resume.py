"""`fanout resume`: resume what a recorded Decision suspended."""

from fanout.api.gate_vocabulary import Action
from fanout.cli.recording.suspend_resume import build_suspension_command

command = build_suspension_command(
    Action.RESUME,
    "Resume a suspended policy, stage or variant, or everything. Ends only "
    "suspensions that `fanout suspend` recorded. If the field `suspend` of an object causes the "
    "suspension, remove the field from the file of the object. If there is nothing to "
    "resume, nothing is recorded. Exits with code 4 if nothing is resumed.",
)
