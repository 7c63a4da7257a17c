"""Which functions run in process, and under which image names."""

from collections.abc import Mapping

from fanout.api.functions import catalog_name
from fanout.variants.functions.apply_replacements import APPLY_REPLACEMENTS
from fanout.variants.functions.apply_setters import APPLY_SETTERS
from fanout.variants.functions.create_setters import CREATE_SETTERS
from fanout.variants.functions.ensure_name_substring import ENSURE_NAME_SUBSTRING
from fanout.variants.functions.function import InProcess
from fanout.variants.functions.kubeconform import KUBECONFORM, KUBEVAL
from fanout.variants.functions.list_setters import LIST_SETTERS
from fanout.variants.functions.remove_local_config_resources import REMOVE_LOCAL_CONFIG_RESOURCES
from fanout.variants.functions.search_replace import SEARCH_REPLACE
from fanout.variants.functions.set_annotations import SET_ANNOTATIONS
from fanout.variants.functions.set_image import SET_IMAGE
from fanout.variants.functions.set_labels import SET_LABELS
from fanout.variants.functions.set_namespace import SET_NAMESPACE
from fanout.variants.functions.starlark import STARLARK, Scripted
from fanout.variants.functions.upsert_resource import UPSERT_RESOURCE

FUNCTIONS: Mapping[str, InProcess] = {
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


def find(image: str) -> InProcess | None:
    """The function that stands for the image, whatever its tag; None when there is none.

    A bare name means the catalog, as it does for kpt; an image elsewhere is somebody else's.
    """
    return FUNCTIONS.get(catalog_name(image))


def find_scripted(image: str) -> Scripted | None:
    """The function that runs a script for the image; None when the image is none of that kind."""
    return STARLARK if catalog_name(image) == STARLARK.name else None
