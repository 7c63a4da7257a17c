"""Loads a module when it is wanted: the one place that imports by name (decision 0003).

A verb, with the rooms behind it, is loaded when it runs; a library that most runs have no use for,
when somebody has.
"""

import importlib
from typing import Any


def load(module: str) -> Any:
    """The module of this name below `fanout`."""
    return importlib.import_module(f"fanout.{module}")
