"""Drafts of stages: one branch for all variants of a stage that are released together."""
