"""kubeconform and kubeval: do objects fit the schemas of their kinds?

The schemas are those of Kubernetes that are shipped with fanout, and for other kinds those of the
CustomResourceDefinitions in the package. Nothing is fetched. Objects that are for tools alone reach
no cluster and are not judged.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fanout.errors import InvalidInput
from fanout.variants.functions.config import data_of
from fanout.variants.functions.function import Facts, Finding, InProcess, Object, nothing
from fanout.variants.questions import SchemasOf
from fanout.variants.schemas import Schemas, custom_faults

_TRUE, _FALSE = ("true", "1"), ("", "false", "0")
_VERSION = "kubernetes_version"  # ours: the catalog's functions know one version alone
_REMOTE = ("schema_location", "additional_schema_locations")


class _Config(NamedTuple):
    strict: bool
    ignore_missing: bool
    skipped: frozenset[str]
    version: str


def _configure(config: Object) -> _Config:
    data = dict(data_of(config))
    for key in _REMOTE:
        if data.pop(key, ""):
            raise InvalidInput(
                f"data.{key}: schemas are not fetched",
                remedy="remove it; kinds of CustomResourceDefinitions in the package are known",
            )
    found = _Config(
        _flag(data, "strict"),
        _flag(data, "ignore_missing_schemas"),
        frozenset(filter(None, map(str.strip, data.pop("skip_kinds", "").split(",")))),
        data.pop(_VERSION, "").removeprefix("v"),
    )
    if data:
        raise InvalidInput(
            f"data.{next(iter(data))} is not understood",
            remedy=f"there are strict, ignore_missing_schemas, skip_kinds and {_VERSION}",
        )
    return found


def _flag(data: dict[str, str], key: str) -> bool:
    text = data.pop(key, "").strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise InvalidInput(f"data.{key}: {text!r} is no boolean", remedy="write 'true' or 'false'")
    return text in _TRUE


def _asks(config: _Config) -> SchemasOf:
    return SchemasOf(config.version)


def _judges(config: _Config, item: Object, facts: Facts) -> Iterator[Finding]:
    kind = (str(item.get("apiVersion")), str(item.get("kind")))
    if config.skipped & {kind[1], "/".join(kind)}:
        return
    schemas: Schemas = facts.answer
    found = schemas.faults(item, strict=config.strict)
    if found is None and kind in facts.custom:
        found = custom_faults(facts.custom[kind], item, strict=config.strict)
    if found is None and not config.ignore_missing:
        yield Finding(
            ("kind",),
            f"there is no schema of {kind[0]} {kind[1]} in Kubernetes {schemas.version} or in the"
            " package; add its CustomResourceDefinition, or set ignore_missing_schemas or"
            " skip_kinds",
        )
    for fault in found or ():
        yield Finding(fault.path, fault.problem)


KUBECONFORM, KUBEVAL = (
    InProcess(name, "1", _configure, nothing, judges=_judges, asks=_asks)
    for name in ("kubeconform", "kubeval")
)
