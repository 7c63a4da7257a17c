"""`fanout suspend`: a policy, a stage or a variant stops, by a recorded Decision."""

from fanout.cli.suspension import verb
from fanout.gates.records import Action

command = verb(
    Action.SUSPEND,
    "Suspend a policy, a stage, a variant, or --all. No file is edited; `fanout resume` ends it.",
)
