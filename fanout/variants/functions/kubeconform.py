"""kubeconform and kubeval: validate objects against the schemas of their kinds.

Schemas are those of Kubernetes shipped with fanout, and for other kinds those of the
CustomResourceDefinitions in the package. Nothing is fetched. Local-config objects are
not validated, because they are not applied to a cluster.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fanout.errors import InvalidInput
from fanout.variants.function_requests import SchemaRequest
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Object,
    ObjectFinding,
    PackageFacts,
    VisibleObject,
    no_object_changes,
    parse_data,
)
from fanout.variants.schema_validation import KindSchemas, find_custom_faults

_TRUE_TEXTS, _FALSE_TEXTS = ("true", "1"), ("", "false", "0")
_VERSION_KEY = "kubernetes_version"  # fanout's extension: the catalog has one version only
_REMOTE_SCHEMA_KEYS = ("schema_location", "additional_schema_locations")


class _Config(NamedTuple):
    strict: bool
    ignore_missing: bool
    skipped_kinds: frozenset[str]
    version: str

    def check_object(self, item: VisibleObject, facts: PackageFacts) -> Iterator[ObjectFinding]:
        kind = (str(item.value.get("apiVersion")), str(item.value.get("kind")))
        if self.skipped_kinds & {kind[1], "/".join(kind)}:
            return
        schemas: KindSchemas = facts.response
        faults = schemas.find_faults(item.value, strict=self.strict)
        # Kubernetes' own schemas come first: a definition in the package cannot loosen them.
        if faults is None and kind in facts.custom_schemas:
            faults = find_custom_faults(facts.custom_schemas[kind], item.value, strict=self.strict)
        if faults is None and not self.ignore_missing:
            yield ObjectFinding(
                ("kind",),
                f"no schema exists for {kind[0]} {kind[1]} in Kubernetes {schemas.version} or in"
                " the package; add its CustomResourceDefinition, or set ignore_missing_schemas or"
                " skip_kinds",
            )
        for fault in faults or ():
            yield ObjectFinding(fault.path, fault.problem)


def _configure(config: Object) -> _Config:
    data = dict(parse_data(config))
    for key in _REMOTE_SCHEMA_KEYS:
        if data.pop(key, ""):
            raise InvalidInput(
                f"data.{key}: schemas are never downloaded",
                remedy="remove it; CustomResourceDefinitions of the package are used",
            )
    parsed = _Config(
        _parse_flag(data, "strict"),
        _parse_flag(data, "ignore_missing_schemas"),
        frozenset(filter(None, map(str.strip, data.pop("skip_kinds", "").split(",")))),
        data.pop(_VERSION_KEY, "").removeprefix("v"),
    )
    if data:
        raise InvalidInput(
            f"unknown field data.{next(iter(data))}",
            remedy=f"use strict, ignore_missing_schemas, skip_kinds and {_VERSION_KEY}",
        )
    return parsed


def _parse_flag(data: dict[str, str], key: str) -> bool:
    if (text := data.pop(key, "").strip().lower()) not in (*_TRUE_TEXTS, *_FALSE_TEXTS):
        raise InvalidInput(
            f"data.{key}: {text!r} is not a boolean", remedy="write 'true' or 'false'"
        )
    return text in _TRUE_TEXTS


KUBECONFORM, KUBEVAL = (
    CatalogFunction(
        name,
        "1",
        _configure,
        no_object_changes,
        check_object=_Config.check_object,
        build_request=lambda config: SchemaRequest(config.version),
    )
    for name in ("kubeconform", "kubeval")
)
