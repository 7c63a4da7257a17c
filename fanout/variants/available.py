"""Which function an entry of a pipeline means, and what to do where it cannot be run."""

from fanout.api.functions import FUNCTIONS, catalog_name, full_image
from fanout.api.nearest import VERY_NEAR, nearest
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.variants.functions.function import External, InProcess, Object
from fanout.variants.functions.registry import find, find_scripted
from fanout.variants.questions import Program, Programs

_ALLOW = "have an administrator allow it in functions.{} of the FanoutConfiguration"
_OTHERS = {
    "gatekeeper": "check the policies where the package is published",
    "render-helm-chart": "render the chart upstream: it would need the network",
    "inflate-helm-chart": "render the chart upstream: it would need the network",
}


def available(entry: Object, programs: Programs, where: Where) -> InProcess | External:
    """The function of an entry of a pipeline: in process, or a program that is allowed.

    Raises InvalidInput (FunctionUnavailable), naming the function and the remedy.
    """
    if command := str(entry.get("exec") or ""):
        if command in programs.executables:
            return _runnable(programs.executables[command], "executables", where)
        raise _unavailable(
            f"the executable {command} is not allowed", _ALLOW.format("executables"), where
        )
    image, tag = str(entry.get("image") or ""), str(entry.get("tag") or "")
    function = find(image)
    if function is not None:
        return function
    whole = full_image(image, tag)
    if whole in programs.images:
        return _runnable(programs.images[whole]._replace(name=image), "images", where)
    scripted = find_scripted(image)  # after the images: an administrator's choice comes first
    if scripted is not None:
        return scripted
    name = catalog_name(image)
    remedy = f"{_ALLOW.format('images')}, or use one that runs in process"
    if name in _OTHERS:
        remedy = f"{_OTHERS[name]}, or {_ALLOW.format('images')}"
    elif name:
        meant = nearest(name, list(FUNCTIONS), VERY_NEAR)
        remedy = f"did you mean {meant}?" if meant else f"{remedy}: {', '.join(FUNCTIONS)}"
    raise _unavailable(f"the function {image or '(none is named)'} is not available", remedy, where)


def _runnable(program: Program, field: str, where: Where) -> External:
    if program.missing:
        remedy = f"have an administrator look at functions.{field} of the FanoutConfiguration"
        problem = f"the function {program.name} cannot be run: {program.missing}"
        raise _unavailable(problem, remedy, where)
    return External(program)


def _unavailable(problem: str, remedy: str, where: Where) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.FUNCTION_UNAVAILABLE, remedy=remedy, where=where)
