"""`fanout resume`: resume what a recorded Decision suspended."""

from fanout.api.gate_vocabulary import Action
from fanout.cli.recording.suspend_resume import build_suspension_command

command = build_suspension_command(
    Action.RESUME,
    "Resume what was suspended. What a file suspends, a file resumes; where no decision suspends"
    " what is named, nothing is recorded. Exits with 4 when nothing goes on by it.",
)
