"""One file per verb, named like it; the table in `fanout.cli.main` loads it when it is called."""
