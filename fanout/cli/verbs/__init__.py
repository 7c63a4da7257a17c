"""Verbs, one file each, named like the verb.

`fanout.cli.main` loads a file when its verb runs.
"""
