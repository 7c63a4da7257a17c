"""Which functions of the catalog there are, and how images name them.

A bare name means the catalog, as it does for kpt. What is in the catalog and does not run in
process runs where an administrator allows its image.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.nearest import suggestion
from fanout.api.pipeline import Pipeline
from fanout.api.places import places
from fanout.api.targets import PipelineTemplate

CATALOG = "ghcr.io/kptdev/krm-functions-catalog/"
_CATALOGS = (CATALOG, "gcr.io/kpt-fn/")
FUNCTIONS = (
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
_BY_FILE = {"apply-replacements", "upsert-resource"}  # texts cannot configure them
_OTHERS = (
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
_SECTIONS = tuple(
    f"{pipeline}.{section}[*]"
    for pipeline in ("spec.targets[*].template.pipeline", "spec.pipeline")
    for section in ("mutators", "validators")
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def short_name(image: str) -> str:
    """`ghcr.io/…/set-labels:v0.2.0` is `set-labels`, as is the short name with or without a tag."""
    path = image.partition("@")[0]
    return path.rpartition("/")[2].partition(":")[0]


@lru_cache(maxsize=1024)
def catalog_name(image: str) -> str:
    """The name in the catalog that an image means, `set-labels`; "" when it is somebody else's."""
    path = image.partition("@")[0]
    return "" if "/" in path and not path.startswith(_CATALOGS) else short_name(image)


def full_image(image: str, tag: str = "") -> str:
    """The image as a container runtime knows it; a bare name is one of the catalog."""
    whole = image if "/" in image.partition("@")[0] else f"{CATALOG}{image}"
    if not tag:
        return whole
    path = whole.partition("@")[0]
    last = path.rpartition("/")[2]
    return f"{path.removesuffix(last)}{last.partition(':')[0]}:{tag}"


def program_doubts(pipeline: Pipeline | PipelineTemplate, path: Path) -> Iterator[Fault]:
    """Warnings for functions that run only where an administrator allows them as programs."""
    for section in ("mutators", "validators"):
        for index, function in enumerate(getattr(pipeline, section)):
            if function.exec or catalog_name(function.image) not in FUNCTIONS:
                field, name = (
                    ("exec", function.exec) if function.exec else ("image", function.image)
                )
                problem = f"{name} does not run in process: it fails unless it is allowed"
                remedy = "have an administrator list it in functions of the FanoutConfiguration"
                yield Fault((*path, section, index, field), problem, remedy, "warning")


def function_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults for functions that cannot be what is meant, in a policy or a variant."""
    for section in _SECTIONS:
        for path, entry in places(data, section):
            image = entry.get("image") if isinstance(entry, Mapping) else None
            if not isinstance(image, str) or not image:
                continue
            name = catalog_name(image)
            if name and name not in (*FUNCTIONS, *_OTHERS):
                problem = f"there is no function {name if _NAME.fullmatch(name) else image}"
                remedy = suggestion(name, FUNCTIONS, f"there are {', '.join(FUNCTIONS)}")
                yield Fault((*path, "image"), problem, remedy)
            elif name in _BY_FILE and not entry.get("configPath"):
                problem = f"{name} is configured by an object, and none is named"
                yield Fault((*path, "configPath"), problem, "name a file of the package")
