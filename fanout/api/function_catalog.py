"""Catalog of KRM functions: names, images, and functions that run in process.

A name without a registry means the catalog, as in kpt. Functions of the catalog that do
not run in process run where an administrator allows their image.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, find_fields, suggest_name
from fanout.api.package_variant import Pipeline
from fanout.api.upstream_policy import PipelineTemplate

CATALOG = "ghcr.io/kptdev/krm-functions-catalog/"
# The catalog moved; packages still name its former registry.
_CATALOGS = (CATALOG, "gcr.io/kpt-fn/")
IN_PROCESS_FUNCTIONS = (
    "apply-replacements",
    "apply-setters",
    "create-setters",
    "ensure-name-substring",
    "kubeconform",
    "kubeval",
    "list-setters",
    "remove-local-config-resources",
    "search-replace",
    "set-annotations",
    "set-image",
    "set-labels",
    "set-namespace",
    "starlark",
    "upsert-resource",
)
_CONFIGURED_BY_FILE = {"apply-replacements", "upsert-resource"}  # texts cannot configure them
_OTHER_CATALOG_FUNCTIONS = (
    "annotate-apply-time-mutations",
    "enable-gcp-services",
    "export-terraform",
    "fix",
    "format",
    "gatekeeper",
    "generate-folders",
    "generate-kpt-pkg-docs",
    "inflate-helm-chart",
    "kustomize-build",
    "remove-local-config",
    "render-helm-chart",
    "set-enforcement-action",
    "set-project-id",
    "sops",
)
_FUNCTION_LISTS = tuple(
    f"{pipeline}.{section}[*]"
    for pipeline in ("spec.targets[*].template.pipeline", "spec.pipeline")
    for section in ("mutators", "validators")
)
_FUNCTION_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def short_name(image: str) -> str:
    """Return `set-labels` for `ghcr.io/.../set-labels:v0.2.0`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def catalog_name(image: str) -> str:
    """Return the catalog function that an image means: `set-labels`; "" for other registries."""
    path = image.partition("@")[0]
    return "" if "/" in path and not path.startswith(_CATALOGS) else short_name(image)


def full_image(image: str, tag: str = "") -> str:
    """Return the image as a container runtime needs it. A bare name gets the catalog's prefix."""
    qualified_image = image if "/" in image.partition("@")[0] else f"{CATALOG}{image}"
    if not tag:
        return qualified_image
    path = qualified_image.partition("@")[0]
    last = path.rpartition("/")[2]
    return f"{path.removesuffix(last)}{last.partition(':')[0]}:{tag}"


def warn_external_functions(
    pipeline: Pipeline | PipelineTemplate, path: FieldPath
) -> Iterator[FieldError]:
    """Yield warnings for functions that run only where an administrator allows them."""
    for section in ("mutators", "validators"):
        for index, function in enumerate(getattr(pipeline, section)):
            if function.exec or catalog_name(function.image) not in IN_PROCESS_FUNCTIONS:
                field = "exec" if function.exec else "image"
                name = getattr(function, field)
                problem = f"{name} does not run in process: it fails unless it is allowed"
                remedy = "have an administrator list it in functions of the FanoutConfiguration"
                yield FieldError((*path, section, index, field), problem, remedy, "warning")


def check_functions(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for unknown functions and missing function configurations."""
    for section in _FUNCTION_LISTS:
        for path, entry in find_fields(data, section):
            image = entry.get("image") if isinstance(entry, Mapping) else None
            if not isinstance(image, str) or not image:
                continue
            name = catalog_name(image)
            if name and name not in (*IN_PROCESS_FUNCTIONS, *_OTHER_CATALOG_FUNCTIONS):
                shown = name if _FUNCTION_NAME.fullmatch(name) else image
                problem = f"there is no function {shown}"
                alternatives = f"use one of {', '.join(IN_PROCESS_FUNCTIONS)}"
                remedy = suggest_name(name, IN_PROCESS_FUNCTIONS, alternatives)
                yield FieldError((*path, "image"), problem, remedy)
            elif name in _CONFIGURED_BY_FILE and not entry.get("configPath"):
                problem = f"{name} needs a configuration object"
                yield FieldError((*path, "configPath"), problem, "set it to a file of the package")
