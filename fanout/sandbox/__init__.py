"""Evaluation of CEL, Jinja and Starlark in worker processes, and allowed programs.

Simple CEL expressions are computed in process.
"""
