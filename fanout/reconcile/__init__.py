"""Reconciliation pass in a fixed order: observe, evaluate, plan, execute (docs/architecture.md)."""
