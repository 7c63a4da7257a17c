"""Execution of a plan: releases, pushes, removals, and the records of their results."""
