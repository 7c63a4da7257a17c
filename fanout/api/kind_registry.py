"""Registry of the kinds by name, and lookup of their fields by YAML name."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel

from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.field_errors import FieldPath
from fanout.api.git_repository import Repository
from fanout.api.object_meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.record_objects import Approval, Decision, Evidence
from fanout.api.scenario import Scenario
from fanout.api.upstream_policy import UpstreamPolicy

CUSTOM_RESOURCES: tuple[type[KRMObject], ...] = (
    Repository,
    UpstreamPolicy,
    PackageVariant,
    PromotionPolicy,
    Evidence,
    Approval,
    Decision,
)
_ALL_KINDS: tuple[type[KRMObject], ...] = (*CUSTOM_RESOURCES, FanoutConfiguration, Scenario)
KINDS: Mapping[str, type[KRMObject]] = {kind.__name__: kind for kind in _ALL_KINDS}


def field_names_at(model: type[BaseModel], path: FieldPath) -> tuple[str, ...]:
    """Return the YAML names of the fields of the object at this path of the model."""
    annotation: Any = model
    for part in path:
        if isinstance(part, str):  # `unwrap_model` looks through a list
            outer_model = unwrap_model(annotation)
            outer_fields = outer_model.model_fields.values() if outer_model else ()
            annotation = next((it.annotation for it in outer_fields if it.alias == part), None)
    inner_model = unwrap_model(annotation)
    fields = inner_model.model_fields.values() if inner_model else ()
    return tuple(str(field.alias) for field in fields)


def find_field_parents(
    model: type[BaseModel], name: str, path: FieldPath = ()
) -> Iterator[FieldPath]:
    """Yield the paths of the objects in this model that have a field of this YAML name."""
    for field in model.model_fields.values():
        inner = unwrap_model(field.annotation)
        if field.alias == name:
            yield path
        if inner is not None and field.alias not in ("metadata", "status"):
            # Any index will do: messages print the parent of a list's entry with empty brackets.
            list_index = (0,) if "tuple" in str(field.annotation) else ()
            yield from find_field_parents(inner, name, (*path, str(field.alias), *list_index))


def unwrap_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside an annotation like `tuple[Stage, ...] | None`, or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (item for item in get_args(annotation) if item not in (NoneType, Ellipsis))
    return next(filter(None, map(unwrap_model, inner)), None)
