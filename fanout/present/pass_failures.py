"""Statuses while passes fail as a whole, for example because no record can be read.

Nothing is evaluated then. Policies and hand-written variants say why; everything else of a status,
and the variants of policies, stay as the last pass left them.
"""

from fanout.api.gate_vocabulary import VariantState
from fanout.api.object_meta import KRMObject
from fanout.api.view_base import dump_views
from fanout.errors import FanoutError
from fanout.plan.written_objects import PROGRESS_TYPES, ObjectName, WrittenObject
from fanout.present.conditions import build_error_conditions
from fanout.present.status_views import finish_status
from fanout.present.view_meta import Plain
from fanout.values import replace

_DEFAULTS: dict[str, Plain] = {"PackageVariant": {"state": VariantState.HELD.value}}


def with_failure(item: WrittenObject, failure: FanoutError) -> WrittenObject:
    """Return an object as the last pass saw it, which says why there are no passes now."""
    others = [it for it in item.status["conditions"] if it["type"] not in PROGRESS_TYPES]
    conditions = [*_build_conditions(failure, item.name.namespace), *others]
    return replace(item, status={**item.status, "conditions": conditions})


def build_unevaluated_status(declaration: KRMObject, failure: FanoutError) -> WrittenObject:
    """Return a policy or hand-written variant that this process has not evaluated yet."""
    meta = declaration.metadata
    return WrittenObject(
        ObjectName(declaration.kind, meta.namespace, meta.name),
        {"conditions": _build_conditions(failure, meta.namespace)},
        generation=meta.generation or 0,
        defaults=_DEFAULTS.get(declaration.kind, {}),
    )


def _build_conditions(failure: FanoutError, namespace: str) -> list[Plain]:
    status = finish_status({"conditions": dump_views(build_error_conditions(failure))}, namespace)
    conditions: list[Plain] = status["conditions"]
    return conditions
