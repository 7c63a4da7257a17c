"""The command line: one file per verb, each a thin layer over the rooms below."""
