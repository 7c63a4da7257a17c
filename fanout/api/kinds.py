"""The kinds by name, and how their fields are found by their YAML names."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel

from fanout.api.configuration import FanoutConfiguration
from fanout.api.faults import Path
from fanout.api.meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.records import Approval, Decision, Evidence
from fanout.api.repository import Repository
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
_ALL: tuple[type[KRMObject], ...] = (*CUSTOM_RESOURCES, FanoutConfiguration, Scenario)
KINDS: Mapping[str, type[KRMObject]] = {kind.__name__: kind for kind in _ALL}


def known_fields(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The YAML names of the fields that the object at this path of the model has."""
    here: Any = model
    for part in path:
        here = _inside(here, part)
    found = model_in(here)
    return tuple(str(field.alias) for field in found.model_fields.values()) if found else ()


def homes_of(model: type[BaseModel], name: str, path: Path = ()) -> Iterator[Path]:
    """The paths of the objects in this model that have a field of this YAML name."""
    for field in model.model_fields.values():
        inner = model_in(field.annotation)
        if field.alias == name:
            yield path
        if inner is not None and field.alias not in ("metadata", "status"):
            numbered = (0,) if "tuple" in str(field.annotation) else ()
            yield from homes_of(inner, name, (*path, str(field.alias), *numbered))


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation like ``tuple[Stage, ...] | None`` is about, if any."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (item for item in get_args(annotation) if item not in (NoneType, Ellipsis))
    return next(filter(None, map(model_in, inner)), None)


def _inside(annotation: Any, part: str | int) -> Any:
    if isinstance(part, int):
        return annotation  # `model_in` looks through the list
    model = model_in(annotation)
    for field in model.model_fields.values() if model else ():
        if field.alias == part:
            return field.annotation
    return None
