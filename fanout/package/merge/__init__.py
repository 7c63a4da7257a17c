"""Three-way merge of packages (docs/concepts/merge.md)."""
