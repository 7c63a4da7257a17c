"""Statuses of objects that are used although they have errors, which `fanout validate` reports."""

from collections.abc import Sequence

from fanout.api.reasons import Reason
from fanout.plan.written_objects import PROGRESS_TYPES, WrittenObject
from fanout.present.view_meta import Plain
from fanout.values import replace


def with_errors(item: WrittenObject, errors: Sequence[str]) -> WrittenObject:
    """Return an object that is stalled by its errors, and not ready.

    What the pass says comes first where it has stalled the object already.
    """
    if not errors:
        return item
    by_type: dict[str, Plain] = {it["type"]: it for it in item.status["conditions"]}
    sentences = "\n".join(errors)
    invalid = {"reason": Reason.INVALID_OBJECT.value, "message": sentences}
    ready, stalled = by_type["Ready"], by_type.get("Stalled")
    if ready["status"] == "True":
        ready = {"type": "Ready", "status": "False", **invalid}
    if stalled is None:
        stalled = {"type": "Stalled", "status": "True", **invalid}
    else:
        stalled = {**stalled, "message": f"{stalled['message']}\n{sentences}"}
    others = (it for it in item.status["conditions"] if it["type"] not in PROGRESS_TYPES)
    conditions = [ready, stalled, *others]
    return replace(item, status={**item.status, "conditions": conditions})
