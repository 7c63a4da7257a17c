"""Import of modules by name on first use; the one place that does so (decision 0003).

A verb is loaded when it runs, and a library that most runs do not need on its first use.
"""

import importlib
from typing import Any

from fanout.cli.process_exit import invalid_setting
from fanout.message_commands import DISTRIBUTION


def load_module(module: str, package: str = "fanout") -> Any:
    """Import and return the module of this name below a package, such as `cli.main`."""
    return importlib.import_module(f"{package}.{module}")


def load_extra(module: str, extra: str, option: str) -> Any:
    """Import and return a module that needs an extra, for this option of the command line.

    Raises InvalidInput if a library of the extra is not installed.
    """
    try:
        return load_module(module)
    except ModuleNotFoundError as error:
        if (library := str(error.name).partition(".")[0]) == "fanout":
            raise
        problem = f"the library {library} is not installed"
        remedy = f"install the extra: pip install '{DISTRIBUTION}[{extra}]'"
        raise invalid_setting(problem, remedy, option) from error
