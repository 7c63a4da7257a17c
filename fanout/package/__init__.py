"""A package as a value: YAML text, patches, tree ids, revisions."""
