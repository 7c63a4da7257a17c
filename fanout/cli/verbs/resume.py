"""`fanout resume`: what was suspended by a recorded Decision goes on."""

from fanout.cli.suspension import verb

command = verb("Resume", "Resume what was suspended. What a file suspends, a file resumes.")
