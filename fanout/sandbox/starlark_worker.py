"""Starlark, in a child process: scripts that packages bring for the catalog's function `starlark`.

A script gets `ctx.resource_list` and nothing else: no files, no network, no clock, no environment.
What bounds it are instructions and depth of calls, which come out the same on every machine, and
the limits of the process for what takes long or much in one instruction.
"""

import json
import re
from typing import Any

import starlark

from fanout.sandbox.worker import RefusedError, serve

STEPS = 20_000  # thousands of instructions; about half a second
DEPTH = 200  # calls within calls
_PRINTED = 50  # lines that are told
_LONGEST = 300  # characters of one of them, and of an error
_SCRIPT = "source"
_INPUT = "_resource_list"
_PRELUDE = f"ctx = struct(resource_list = {_INPUT}, environment = {{}}, open_api = {{}})"
# The catalog's own library, the only one of its libraries that needs nothing else.
_LIBRARY = "krmfn.star"
_KRMFN = """
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


class Scripts:
    """Runs scripts, each in a module of its own: nothing of one is seen by the next."""

    def __init__(self) -> None:
        self._globals = starlark.Globals.extended_by(
            [starlark.LibraryExtension.StructType, starlark.LibraryExtension.Json]
        )
        self._dialect = starlark.Dialect.extended()
        self._dialect.enable_top_level_stmt = True
        self._dialect.enable_types = starlark.DialectTypes.DISABLE
        library = starlark.Module()
        self._evaluate(library, _LIBRARY, _KRMFN)
        self._library = library.freeze()

    def run(self, source: str, resource_list: dict[str, Any]) -> dict[str, Any]:
        """Run a script; returns the items as it leaves them and the lines that it printed.

        Raises RefusedError for a script that fails or takes more than it may.
        """
        module = starlark.Module()
        printed: list[str] = []
        steps = 0

        def show(*values: object) -> None:
            if len(printed) < _PRINTED:
                printed.append(_shortened(" ".join(map(str, values))))

        def exhausted() -> bool:
            nonlocal steps
            steps += 1
            return steps > STEPS

        module.add_callable("print", show)
        module[_INPUT] = resource_list
        self._evaluate(module, "ctx", _PRELUDE)
        options = starlark.EvalOptions(check_cancelled=exhausted, max_callstack_size=DEPTH)
        try:
            tree = starlark.parse(_SCRIPT, source, self._dialect)
            for wanted in tree.loads():
                _check_library(wanted.module_id)
            loader = starlark.FileLoader(lambda _name: self._library)
            starlark.eval_with(options, module, tree, self._globals, loader)
            returned = module[_INPUT]
        except starlark.StarlarkError as error:
            if steps > STEPS:
                problem = f"the script takes more than {STEPS},000 instructions"
                raise RefusedError("LimitExceeded", problem) from None
            raise RefusedError("RenderFailed", _problem(str(error))) from None
        except BaseException as error:
            if "out of memory" in str(error):  # a panic in Rust, of which nothing else is known
                raise MemoryError from None
            raise
        items = returned.get("items") if isinstance(returned, dict) else None
        return {"items": [] if items is None else items, "printed": printed}

    def _evaluate(self, module: Any, name: str, source: str) -> None:
        starlark.eval(module, starlark.parse(name, source, self._dialect), self._globals)


def answer(scripts: Scripts, question: dict[str, Any]) -> str:
    """`{source, list}` asks for what a script makes of a ResourceList, as JSON."""
    try:
        made = scripts.run(question["source"], question["list"])
        encoded = json.dumps(made, ensure_ascii=False, allow_nan=False)
        encoded.encode()
    except RefusedError as refusal:
        return json.dumps({"refused": refusal.answer})
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the script leaves what is no plain data: {_shortened(str(error))}"
        return json.dumps({"refused": ["RenderFailed", problem, ""]})
    return encoded


def _check_library(name: str) -> None:
    if name != _LIBRARY:
        remedy = f"only {_LIBRARY} can be loaded; or have an administrator allow the image"
        raise RefusedError("RenderFailed", f"the script loads {name}", remedy)


def _problem(text: str) -> str:
    """What is wrong, and in which line of the script."""
    found = re.search(rf"^error: (.*?)\n\s*--> {_SCRIPT}:(\d+):", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return _shortened(text)
    return f"line {found[2]} of the script: {_shortened(found[1].removeprefix('fail: '))}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


if __name__ == "__main__":
    serve(Scripts, answer)
