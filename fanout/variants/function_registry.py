"""Registry of functions: which one an image or executable of a pipeline entry means.

A function runs in process, as a program that the administrator allows, as a script in the sandbox
(`starlark`), or is unavailable; then the error tells the remedy.
"""

import json
from collections.abc import Mapping
from typing import Any

from fanout.api.field_errors import VERY_SIMILAR, find_similar_name
from fanout.api.function_catalog import IN_PROCESS_FUNCTIONS, catalog_name, full_image
from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import canonical_text
from fanout.variants.function_requests import (
    AllowedPrograms,
    FunctionRequest,
    KrmProgram,
    ScriptRun,
)
from fanout.variants.functions.apply_replacements import APPLY_REPLACEMENTS, APPLY_REPLACEMENTS_V0_1
from fanout.variants.functions.ensure_name_substring import ENSURE_NAME_SUBSTRING
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    ExternalFunction,
    Object,
    is_function_kind,
    mapping,
)
from fanout.variants.functions.kubeconform import KUBECONFORM, KUBEVAL
from fanout.variants.functions.label_functions import SET_ANNOTATIONS, SET_LABELS
from fanout.variants.functions.resource_functions import (
    REMOVE_LOCAL_CONFIG_RESOURCES,
    UPSERT_RESOURCE,
)
from fanout.variants.functions.search_replace import SEARCH_REPLACE
from fanout.variants.functions.set_image import SET_IMAGE
from fanout.variants.functions.set_namespace import SET_NAMESPACE
from fanout.variants.functions.setters import APPLY_SETTERS, CREATE_SETTERS, LIST_SETTERS


class StarlarkFunction(ExternalFunction):
    """The function `starlark`: a script that changes, adds, removes or validates objects.

    The script is configuration: `source` of a `StarlarkRun`, `data.source` of a ConfigMap. It can
    read the complete configuration as `ctx.resource_list["functionConfig"]`. It runs in the
    sandbox, because packages may have many authors, and gets all objects at once, like a program.
    """

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
    is_own_kind = is_function_kind(config, "StarlarkRun")
    source = config.get("source") if is_own_kind else mapping(config.get("data")).get("source")
    if not isinstance(source, str) or not source.strip():
        field = "source" if is_own_kind else "data.source"
        raise InvalidInput(f"{field} is missing or not a string", remedy="write the script there")
    return source


# Raise the version whenever a script may give another result, also with a new starlark-pyo3.
STARLARK = StarlarkFunction(KrmProgram("starlark", "", version="1"))


FUNCTIONS_BY_NAME: Mapping[str, CatalogFunction] = {
    function.name: function
    for function in (
        APPLY_REPLACEMENTS,
        APPLY_SETTERS,
        CREATE_SETTERS,
        ENSURE_NAME_SUBSTRING,
        KUBECONFORM,
        KUBEVAL,
        LIST_SETTERS,
        REMOVE_LOCAL_CONFIG_RESOURCES,
        SEARCH_REPLACE,
        SET_ANNOTATIONS,
        SET_IMAGE,
        SET_LABELS,
        SET_NAMESPACE,
        UPSERT_RESOURCE,
    )
}


# Versions whose outcome differs from that of the newest, by name and tag.
_FUNCTIONS_BY_TAG: Mapping[tuple[str, str], CatalogFunction] = {
    (APPLY_REPLACEMENTS.name, tag): APPLY_REPLACEMENTS_V0_1 for tag in ("v0.1", "v0.1.0", "v0.1.1")
}


def find_function(image: str, tag: str = "") -> CatalogFunction | None:
    """Return the in-process function for the image, or None.

    `tag`: instead of the image's own. A tag counts only where that version of the catalog's
    function has another outcome. A bare name means the catalog, as it does for kpt; an image
    elsewhere is not one of the catalog's.
    """
    name = catalog_name(image)
    tag = tag or image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return _FUNCTIONS_BY_TAG.get((name, tag)) or FUNCTIONS_BY_NAME.get(name)


def find_script_function(image: str) -> StarlarkFunction | None:
    """Return the function that runs a script for the image, or None for other images."""
    return STARLARK if catalog_name(image) == STARLARK.name else None


_ALLOW_REMEDY = "ask an administrator to allow it in functions.{} of the FanoutConfiguration"
_UNSUPPORTED_REMEDIES = {
    "gatekeeper": "check the policies where the package is published",
    "render-helm-chart": "render the chart upstream; functions have no network access",
    "inflate-helm-chart": "render the chart upstream; functions have no network access",
}


def resolve_function(
    entry: Object, programs: AllowedPrograms, where: ErrorLocation
) -> CatalogFunction | ExternalFunction:
    """Return the function of a pipeline entry: an in-process one, or an allowed program.

    Raises InvalidInput (FunctionUnavailable), which names the function and the remedy.
    """
    if command := str(entry.get("exec") or ""):
        if command in programs.executables:
            return _external_function(programs.executables[command], "executables", where)
        raise _unavailable_error(
            f"the executable {command} is not allowed", _ALLOW_REMEDY.format("executables"), where
        )
    image, tag = str(entry.get("image") or ""), str(entry.get("tag") or "")
    # In-process functions come before allowed images: they need no container runtime, and their
    # results are shared between variants.
    if (function := find_function(image, tag)) is not None:
        return function
    if (tagged_image := full_image(image, tag)) in programs.images:
        return _external_function(
            programs.images[tagged_image]._replace(name=image), "images", where
        )
    # after allowed images: the administrator's choice precedes
    if (script_function := find_script_function(image)) is not None:
        return script_function
    name = catalog_name(image)
    remedy = f"{_ALLOW_REMEDY.format('images')}, or use an in-process function"
    if name in _UNSUPPORTED_REMEDIES:
        remedy = f"{_UNSUPPORTED_REMEDIES[name]}, or {_ALLOW_REMEDY.format('images')}"
    elif name:
        similar_name = find_similar_name(name, list(IN_PROCESS_FUNCTIONS), VERY_SIMILAR)
        remedy = (
            f"did you mean {similar_name}?"
            if similar_name
            else f"{remedy}: {', '.join(IN_PROCESS_FUNCTIONS)}"
        )
    raise _unavailable_error(
        f"the function {image or '(none is named)'} is not available", remedy, where
    )


def _external_function(program: KrmProgram, field: str, where: ErrorLocation) -> ExternalFunction:
    if program.missing:
        remedy = f"ask an administrator to check functions.{field} of the FanoutConfiguration"
        problem = f"the function {program.name} cannot be run: {program.missing}"
        raise _unavailable_error(problem, remedy, where)
    return ExternalFunction(program)


def _unavailable_error(problem: str, remedy: str, where: ErrorLocation) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.FUNCTION_UNAVAILABLE, remedy=remedy, where=where)
