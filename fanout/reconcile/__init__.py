"""Reconciliation pass in a fixed order: observe, evaluate, plan, execute (design §3)."""
