"""`fanout suspend`: a policy, a stage or a variant stops, by a recorded Decision."""

from fanout.cli.suspension import verb

command = verb(
    "Suspend",
    "Suspend a policy, a stage or a variant. No file is edited; `fanout resume` ends it.",
)
