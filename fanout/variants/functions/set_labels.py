"""set-labels: the same labels on every object of a package, and in the selectors that go with them.

The fields are those that the catalog's documentation lists. The selector of a workload is made
where it is missing; in all other selectors (of policies, budgets, affinities) the labels are set
where there are `matchLabels`, because an empty selector means all pods.
"""

from collections.abc import Iterator

from fanout.api.texts import LABEL_KEY, LABEL_VALUE
from fanout.errors import InvalidInput
from fanout.variants.functions.config import check_words, text_values
from fanout.variants.functions.fields import Field, Values, set_values
from fanout.variants.functions.function import Change, Facts, InProcess, Object, kinds_only
from fanout.variants.functions.pods import APPS, BATCH, CORE, WORKLOADS, in_templates

_NETWORK = frozenset({"networking.k8s.io"})
_POLICY = frozenset({"policy"})
_LABELS = ("metadata", "labels")
_MATCH = "matchLabels"

_AFFINITIES = tuple(
    ("spec", "affinity", affinity, *term, "labelSelector", _MATCH)
    for affinity in ("podAffinity", "podAntiAffinity")
    for term in (
        ("requiredDuringSchedulingIgnoredDuringExecution", "*"),
        ("preferredDuringSchedulingIgnoredDuringExecution", "*", "podAffinityTerm"),
    )
)


def _matching(at: tuple[str, ...], kind: str, groups: frozenset[str]) -> Field:
    return Field((*at, _MATCH), (), frozenset({kind}), groups)


FIELDS: tuple[Field, ...] = (
    Field((), _LABELS),
    Field(("spec", "selector"), (), frozenset({"Service", "ReplicationController"}), CORE),
    Field(("spec", "selector"), (_MATCH,), WORKLOADS, APPS),
    Field(("spec", "volumeClaimTemplates", "*"), _LABELS, frozenset({"StatefulSet"}), APPS),
    Field(("spec", "jobTemplate"), _LABELS, frozenset({"CronJob"}), BATCH),
    *in_templates((), _LABELS),
    *in_templates(("spec", "topologySpreadConstraints", "*", "labelSelector", _MATCH)),
    *(field for path in _AFFINITIES for field in in_templates(path)),
    _matching(("spec", "selector"), "Job", BATCH),
    _matching(("spec", "jobTemplate", "spec", "selector"), "CronJob", BATCH),
    _matching(("spec", "selector"), "PodDisruptionBudget", _POLICY),
    _matching(("spec", "podSelector"), "NetworkPolicy", _NETWORK),
    _matching(("spec", "ingress", "*", "from", "*", "podSelector"), "NetworkPolicy", _NETWORK),
    _matching(("spec", "egress", "*", "to", "*", "podSelector"), "NetworkPolicy", _NETWORK),
)


def _configure(config: Object) -> Values:
    values = text_values(config, "SetLabels", "labels")
    if not values:
        raise InvalidInput("no labels are given", remedy="name at least one label")
    check_words([key for key, _ in values], LABEL_KEY)
    check_words([value for _, value in values], LABEL_VALUE)
    return values


def _changes(values: Values, item: Object, _facts: Facts) -> Iterator[Change]:
    return set_values(FIELDS, values, item)


SET_LABELS = InProcess("set-labels", "2", _configure, _changes, heeds=kinds_only)
