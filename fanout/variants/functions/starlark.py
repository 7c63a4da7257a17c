"""starlark: run a script that changes, adds, removes or validates objects.

The script is configuration: `source` of a `StarlarkRun`, `data.source` of a ConfigMap. It can read
the complete configuration as `ctx.resource_list["functionConfig"]`. It runs in the sandbox, because
packages may have many authors, and gets all objects at once, like a program.
"""

import json
from collections.abc import Mapping
from typing import Any

from fanout.errors import InvalidInput
from fanout.package.field_edits import canonical_text
from fanout.variants.function_requests import FunctionRequest, KrmProgram, ScriptRun
from fanout.variants.functions.function_config import is_function_kind
from fanout.variants.functions.function_interface import ExternalFunction, Object, mapping

_KIND = "StarlarkRun"


class StarlarkFunction(ExternalFunction):
    """The function `starlark`, which requests the run of a script instead of a program."""

    def configure(self, config: Object) -> str:
        """Return the configuration as canonical JSON. Raises InvalidInput if it has no script."""
        _script_source(config)
        return canonical_text(config)

    def build_request(self, config: str, resource_list: Mapping[str, Any]) -> FunctionRequest:
        """Return the request to run the script on a ResourceList."""
        return ScriptRun(
            _script_source(json.loads(config)), json.dumps(resource_list, ensure_ascii=False)
        )


def _script_source(config: Object) -> str:
    is_own_kind = is_function_kind(config, _KIND)
    source = config.get("source") if is_own_kind else mapping(config.get("data")).get("source")
    if not isinstance(source, str) or not source.strip():
        field = "source" if is_own_kind else "data.source"
        raise InvalidInput(f"{field} is missing or not a string", remedy="write the script there")
    return source


# Raise the version whenever a script may give another result, also with a new starlark-pyo3.
STARLARK = StarlarkFunction(KrmProgram("starlark", "", version="1"))
