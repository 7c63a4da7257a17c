"""Import of modules by name on first use; the one place that does so (decision 0003).

A verb and the packages behind it are loaded when the verb runs; a library that most
runs do not need is loaded on its first use.
"""

import importlib
from typing import Any


def load_module(module: str) -> Any:
    """Import and return the module of this name below `fanout`, such as `cli.main`."""
    return importlib.import_module(f"fanout.{module}")
