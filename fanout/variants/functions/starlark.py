"""starlark: a script of the package changes, adds, removes or judges objects.

The script is configuration: a `StarlarkRun` has it as `source`, a ConfigMap as `data.source`; it
reads the whole configuration as `ctx.resource_list["functionConfig"]`. It is run in the sandbox,
because packages may be written by many, and sees all objects at once, as a program does.
"""

import json
from collections.abc import Mapping
from typing import Any

from fanout.errors import InvalidInput
from fanout.values import frozen
from fanout.variants.canonical import canonical
from fanout.variants.functions.config import is_own_kind
from fanout.variants.functions.function import External, Object, mapping
from fanout.variants.questions import Program, Question, Script

_KIND = "StarlarkRun"


@frozen
class Scripted(External):
    """The function `starlark`: it asks for its script to be run instead of a program."""

    def configure(self, config: Object) -> str:
        """The configuration as it is handed on. Raises InvalidInput where it has no script."""
        _source(config)
        return canonical(config)

    def question(self, config: str, listed: Mapping[str, Any]) -> Question:
        """The script and the ResourceList that it is given."""
        return Script(_source(json.loads(config)), json.dumps(listed, ensure_ascii=False))


def _source(config: Object) -> str:
    own = is_own_kind(config, _KIND)
    source = config.get("source") if own else mapping(config.get("data")).get("source")
    if not isinstance(source, str) or not source.strip():
        field = "source" if own else "data.source"
        raise InvalidInput(f"{field} is missing or no text", remedy="put the script there")
    return source


# The version grows whenever a script can come to something else: with starlark-pyo3 as well.
STARLARK = Scripted(Program("starlark", "", version="1"))
