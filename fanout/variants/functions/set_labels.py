"""set-labels: set labels on every object of a package and in the matching selectors.

Fields are those listed in the catalog's documentation. The selector of a workload is
created if missing. In other selectors (of policies, budgets, affinities) labels are
set only where `matchLabels` exist, because an empty selector means all pods.
"""

from fanout.api.text_fields import LABEL_VALUE
from fanout.variants.functions.field_specs import (
    APPS,
    BATCH,
    CORE,
    WORKLOADS,
    FieldSpec,
    SortedTexts,
    pod_template_fields,
    set_values,
)
from fanout.variants.functions.function_config import check_words, parse_values
from fanout.variants.functions.function_interface import CatalogFunction, Object, kind_values

_NETWORK = frozenset({"networking.k8s.io"})
_POLICY = frozenset({"policy"})
_LABELS = ("metadata", "labels")
_MATCH_LABELS = "matchLabels"

_AFFINITIES = tuple(
    ("spec", "affinity", affinity, *term, "labelSelector", _MATCH_LABELS)
    for affinity in ("podAffinity", "podAntiAffinity")
    for term in (
        ("requiredDuringSchedulingIgnoredDuringExecution", "*"),
        ("preferredDuringSchedulingIgnoredDuringExecution", "*", "podAffinityTerm"),
    )
)


def _match_labels_field(
    selector_path: tuple[str, ...], kind: str, groups: frozenset[str]
) -> FieldSpec:
    return FieldSpec((*selector_path, _MATCH_LABELS), (), frozenset({kind}), groups)


FIELDS: tuple[FieldSpec, ...] = (
    FieldSpec((), _LABELS),
    FieldSpec(("spec", "selector"), (), frozenset({"Service", "ReplicationController"}), CORE),
    FieldSpec(("spec", "selector"), (_MATCH_LABELS,), WORKLOADS, APPS),
    FieldSpec(("spec", "volumeClaimTemplates", "*"), _LABELS, frozenset({"StatefulSet"}), APPS),
    FieldSpec(("spec", "jobTemplate"), _LABELS, frozenset({"CronJob"}), BATCH),
    *pod_template_fields((), _LABELS),
    *pod_template_fields(
        ("spec", "topologySpreadConstraints", "*", "labelSelector", _MATCH_LABELS)
    ),
    *(field for path in _AFFINITIES for field in pod_template_fields(path)),
    _match_labels_field(("spec", "selector"), "Job", BATCH),
    _match_labels_field(("spec", "jobTemplate", "spec", "selector"), "CronJob", BATCH),
    _match_labels_field(("spec", "selector"), "PodDisruptionBudget", _POLICY),
    _match_labels_field(("spec", "podSelector"), "NetworkPolicy", _NETWORK),
    _match_labels_field(
        ("spec", "ingress", "*", "from", "*", "podSelector"), "NetworkPolicy", _NETWORK
    ),
    _match_labels_field(
        ("spec", "egress", "*", "to", "*", "podSelector"), "NetworkPolicy", _NETWORK
    ),
)


def _configure(config: Object) -> SortedTexts:
    values = parse_values(config, "SetLabels", "labels")
    check_words([value for _, value in values], LABEL_VALUE)
    return values


SET_LABELS = CatalogFunction(
    "set-labels",
    "2",
    _configure,
    lambda values, item, _facts: set_values(FIELDS, values, item),
    depends_on=kind_values,
)
