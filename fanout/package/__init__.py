"""Packages as values: YAML and JSON manifests, edits, Kptfiles, tree ids, revisions."""
