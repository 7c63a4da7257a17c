"""The command line: `verbs` has one file per verb, each a thin layer over the rooms below."""
