"""`fanout resume`: what was suspended by a recorded Decision goes on."""

from fanout.cli.suspension import verb
from fanout.gates.records import Action

command = verb(
    Action.RESUME,
    "Resume what was suspended. What a file suspends, a file resumes; where no decision suspends"
    " what is named, nothing is recorded. Exits with 4 when nothing goes on by it.",
)
