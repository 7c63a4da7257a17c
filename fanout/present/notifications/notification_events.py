"""Events of conditions that began, as CloudEvents."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.notifications import NotificationEvent
from fanout.message_commands import MessageCommands
from fanout.present.notifications import event_wording as wording
from fanout.present.notifications.notification_conditions import NotificationCondition
from fanout.values import Value

MAX_NAMES = 20  # variants that one event names; it counts all
TYPE_PREFIX = "dev.fanout."


class EventSource(Value):
    """Origin that all events of one policy in one pass share."""

    install: str
    namespace: str
    policy: str
    at: datetime  # of the pass
    in_cluster: bool = False  # the objects are those of a cluster


class BuiltEvent(Value):
    """One event with its HTTP body."""

    event: NotificationEvent
    body: str


def build_events(
    source: EventSource,
    conditions: Mapping[NotificationCondition, str],
    redact: Callable[[Any], Any],
) -> list[BuiltEvent]:
    """Build one event for each kind, stage and revision, however many variants it is about.

    `conditions` are those that began, each with a sentence. `redact` takes secrets out of data.
    """
    groups: defaultdict[tuple[NotificationEvent, str, str], dict[str, str]] = defaultdict(dict)
    for condition, sentence in sorted(conditions.items()):
        key = condition.event, condition.stage, condition.revision
        groups[key][condition.variant] = sentence
    return [
        BuiltEvent(key[0], json.dumps(redact(_build_envelope(source, *key, sentences))))
        for key, sentences in groups.items()
    ]


def _build_envelope(
    source: EventSource,
    event: NotificationEvent,
    stage: str,
    revision: str,
    sentences: Mapping[str, str],
) -> dict[str, Any]:
    """Return a CloudEvent (specification 1.0, JSON format); `sentences` are by variant."""
    names = [name for name in sentences if name]
    title = f"{source.namespace}/{source.policy}"
    at = format_instant(source.at)
    commands = MessageCommands((("namespace", source.namespace),), source.in_cluster)
    message = wording.describe_transition(
        event, revision, stage, names, next(iter(sentences.values()), "")
    )
    facts = {
        "namespace": source.namespace,
        "policy": source.policy,
        "stage": stage,
        "revision": revision,
        "event": event.value,
        "variants": names[:MAX_NAMES],
        "variantCount": len(names),
        "message": commands.complete_text(message),
        "command": f"fanout explain {source.policy} --namespace {source.namespace}",
    }
    # The same transition in the same pass has the same id, however often it is delivered.
    identity = json.dumps([source.install, at, facts])
    return {
        "specversion": "1.0",
        "id": hashlib.sha256(identity.encode()).hexdigest()[:32],
        "source": f"/fanout/{source.install}",
        "type": f"{TYPE_PREFIX}{event.value}",
        "subject": f"{title}/{stage}" if stage else title,
        "time": at,
        "datacontenttype": "application/json",
        "data": {name: value for name, value in facts.items() if value},
    }
