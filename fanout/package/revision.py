"""Upstream revisions: names, order, ranges. (Design §1, "upstream revision".)"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Revision:
    """One immutable state of a package: its name ("v3", or the commit id) and its commit."""

    name: str
    commit: str
    when: int  # the commit's time, Unix seconds UTC
