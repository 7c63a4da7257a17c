"""CEL and Jinja in limited child processes, simple CEL in process; programs that are allowed."""
