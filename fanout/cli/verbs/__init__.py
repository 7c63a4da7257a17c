"""Modules of the verbs; `fanout.cli.main` loads one when its verb runs."""
