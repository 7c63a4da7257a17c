"""Where Kubernetes' own kinds keep pod templates."""

from fanout.variants.functions.fields import Field

APPS = frozenset({"apps", "extensions"})
WORKLOADS = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
BATCH = frozenset({"batch"})
CORE = frozenset({""})

_TEMPLATES: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (APPS, WORKLOADS, ("spec", "template")),
    (CORE, frozenset({"ReplicationController"}), ("spec", "template")),
    (BATCH, frozenset({"Job"}), ("spec", "template")),
    (BATCH, frozenset({"CronJob"}), ("spec", "jobTemplate", "spec", "template")),
)


def in_templates(at: tuple[str, ...], below: tuple[str, ...] = ()) -> tuple[Field, ...]:
    """The same field in the pod template of every kind that has one; `at` starts there."""
    return tuple(
        Field((*template, *at), below, kinds, groups) for groups, kinds, template in _TEMPLATES
    )
