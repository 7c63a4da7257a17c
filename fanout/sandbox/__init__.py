"""CEL and Jinja, evaluated in limited child processes."""
