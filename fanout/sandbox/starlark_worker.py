"""Worker program for Starlark: package scripts for the function `starlark`.

A script gets `ctx.resource_list` and nothing else: no files, no network, no clock, no environment.
It is bounded by instructions and call depth, which are the same on every machine, and by the limits
of the process for single instructions that take long or much memory.
"""

import json
import re
from typing import Any

import starlark

from fanout.sandbox.worker_protocol import RefusedError, serve_requests

MAX_STEPS = 20_000  # thousands of instructions; about half a second
MAX_CALL_DEPTH = 200  # calls within calls
_MAX_PRINTED_LINES = 50  # lines that are reported
_MAX_LINE_LENGTH = 300  # characters of one of them, and of an error
_SCRIPT_NAME = "source"
_INPUT_NAME = "_resource_list"
_ERROR = rf"^error: (.*?)\n\s*--> {_SCRIPT_NAME}:(\d+):"
_PRELUDE = f"ctx = struct(resource_list = {_INPUT_NAME}, environment = {{}}, open_api = {{}})"
# The only library of the catalog that imports no other.
_LIBRARY_NAME = "krmfn.star"
_LIBRARY_SOURCE = """
def _match_gvk(resource, api_version, kind):
    return resource.get("apiVersion") == api_version and resource.get("kind") == kind

def _metadata(resource):
    return resource.get("metadata") or {}

def _match_name(resource, name):
    return (_metadata(resource).get("name") or "") == name

def _match_namespace(resource, namespace):
    return (_metadata(resource).get("namespace") or "") == namespace

krmfn = struct(
    match_gvk = _match_gvk,
    match_name = _match_name,
    match_namespace = _match_namespace,
)
"""


class StarlarkEngine:
    """Engine for Starlark; each script has a module of its own, so none sees another."""

    def __init__(self) -> None:
        self._globals = starlark.Globals.extended_by(
            [starlark.LibraryExtension.StructType, starlark.LibraryExtension.Json]
        )
        self._dialect = starlark.Dialect.extended()
        self._dialect.enable_top_level_stmt = True
        self._dialect.enable_types = starlark.DialectTypes.DISABLE
        library = starlark.Module()
        self._evaluate(library, _LIBRARY_NAME, _LIBRARY_SOURCE)
        self._library = library.freeze()

    def run_source(self, source: str, resource_list: dict[str, Any]) -> dict[str, Any]:
        """Run a script; return the items it leaves, the lines it printed, and its steps.

        Raises RefusedError for a script that fails or exceeds a limit.
        """
        module = starlark.Module()
        printed: list[str] = []
        steps = 0

        def print_line(*values: object) -> None:
            if len(printed) < _MAX_PRINTED_LINES:
                printed.append(_shorten_line(" ".join(map(str, values))))

        def is_exhausted() -> bool:
            nonlocal steps
            steps += 1
            return steps > MAX_STEPS

        module.add_callable("print", print_line)
        module[_INPUT_NAME] = resource_list
        self._evaluate(module, "ctx", _PRELUDE)
        options = starlark.EvalOptions(
            check_cancelled=is_exhausted, max_callstack_size=MAX_CALL_DEPTH
        )
        try:
            tree = starlark.parse(_SCRIPT_NAME, source, self._dialect)
            for load in tree.loads():
                if load.module_id != _LIBRARY_NAME:
                    raise RefusedError(
                        "RenderFailed",
                        f"the script loads {load.module_id}",
                        f"only {_LIBRARY_NAME} can be loaded; or ask an administrator to allow the"
                        " image",
                    )
            loader = starlark.FileLoader(lambda _name: self._library)
            starlark.eval_with(options, module, tree, self._globals, loader)
            returned = module[_INPUT_NAME]
        except starlark.StarlarkError as error:
            if steps > MAX_STEPS:
                problem = f"the script takes more than {MAX_STEPS * 1000:,} instructions"
                raise RefusedError("LimitExceeded", problem) from None
            problem = _shorten_line(str(error))
            if match := re.search(_ERROR, str(error), re.DOTALL | re.MULTILINE):
                cause = _shorten_line(match[1].removeprefix("fail: "))
                problem = f"line {match[2]} of the script: {cause}"
            raise RefusedError("RenderFailed", problem) from None
        # A panic of the Rust library derives from BaseException; its text is all that says why.
        except BaseException as error:
            if "out of memory" in str(error):  # a panic in Rust has no other sign
                raise MemoryError from None
            raise
        items = returned.get("items") if isinstance(returned, dict) else None
        return {"items": [] if items is None else items, "printed": printed, "steps": steps}

    def _evaluate(self, module: Any, name: str, source: str) -> None:
        starlark.eval(module, starlark.parse(name, source, self._dialect), self._globals)


def answer_script(scripts: StarlarkEngine, request: dict[str, Any]) -> str:
    """Answer a request `{source, list}` with the script's result as JSON."""
    try:
        result = scripts.run_source(request["source"], request["list"])
        encoded = json.dumps(result, ensure_ascii=False, allow_nan=False)
        encoded.encode()
    except RefusedError as refusal:
        return json.dumps({"refused": refusal.as_answer})
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the script returns a value that is not plain data: {_shorten_line(str(error))}"
        return json.dumps({"refused": ["RenderFailed", problem, ""]})
    return encoded


def _shorten_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_LENGTH else f"{line[: _MAX_LINE_LENGTH - 1]}…"


if __name__ == "__main__":
    serve_requests(StarlarkEngine, answer_script)
