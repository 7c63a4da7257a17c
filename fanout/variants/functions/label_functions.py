"""set-labels and set-annotations, on every object of a package and on pod templates.

Labels are set in the matching selectors, too. Fields are those listed in the catalog's
documentation. The selector of a workload is created if missing. In other selectors (of policies,
budgets, affinities) labels are set only where `matchLabels` exist, because an empty selector means
all pods.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from fanout.api.text_fields import LABEL_KEY, LABEL_VALUE
from fanout.errors import InvalidInput
from fanout.values import Value
from fanout.variants.functions.field_specs import (
    APPS,
    BATCH,
    CORE,
    WORKLOADS,
    FieldSpec,
    SortedTexts,
    fields_of_kind,
    parse_field_specs,
    pod_template_fields,
    walk_path,
)
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Object,
    PackageFacts,
    VisibleObject,
    check_words,
    is_function_kind,
    kind_values,
    mapping,
    parse_texts,
)

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


_LABEL_FIELDS: tuple[FieldSpec, ...] = (
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


_ANNOTATIONS = ("metadata", "annotations")

_ANNOTATION_FIELDS: tuple[FieldSpec, ...] = (
    FieldSpec((), _ANNOTATIONS),
    FieldSpec(("spec", "jobTemplate"), _ANNOTATIONS, frozenset({"CronJob"}), BATCH),
    *pod_template_fields((), _ANNOTATIONS),
)


_FIELDS_BY_KIND = {"SetLabels": _LABEL_FIELDS, "SetAnnotations": _ANNOTATION_FIELDS}


class _Entries(Value):
    """Labels or annotations, with the fields in which they are set beside those of their kind."""

    values: SortedTexts
    kind: str  # of the function's own configuration
    further_fields: tuple[FieldSpec, ...] = ()

    @classmethod
    def parse(cls, config: Object, *, kind: str, field: str) -> "_Entries":
        """Parse the configuration: `data` of a ConfigMap, or `field` of the function's own kind.

        Raises InvalidInput if there are no entries, and for those that Kubernetes would reject.
        """
        is_own_kind = is_function_kind(config, kind)
        place = field if is_own_kind else "data"
        if not (values := parse_texts(config.get(place), place)):
            remedy = f"add at least one {field.removesuffix('s')}"
            raise InvalidInput(f"no {field} are given", remedy=remedy)
        check_words([key for key, _ in values], LABEL_KEY)
        if field == "labels":
            check_words([value for _, value in values], LABEL_VALUE)
            return cls(values, kind)
        rows = config.get("additionalAnnotationFields") if is_own_kind else None
        return cls(values, kind, parse_field_specs(rows, "additionalAnnotationFields"))

    def changes(self, visible: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
        item = visible.value
        api_version, kind = str(item.get("apiVersion", "")), str(item.get("kind", ""))
        # The fields of the kind are no part of the value, which is hashed with each lookup.
        fields = _FIELDS_BY_KIND[self.kind] + self.further_fields
        for field in fields_of_kind(fields, api_version, kind):
            for path, parent in walk_path(item, field.existing_path, ()):
                if not isinstance(parent, Mapping):
                    continue
                present: object = parent
                for key in field.created_path:
                    present = mapping(present).get(key)
                present_values = mapping(present)
                for key, value in self.values:
                    if present_values.get(key) != value:
                        yield (*path, *field.created_path, key), value


SET_LABELS = CatalogFunction(
    "set-labels",
    "2",
    partial(_Entries.parse, kind="SetLabels", field="labels"),
    _Entries.changes,
    depends_on=kind_values,
)
SET_ANNOTATIONS = CatalogFunction(
    "set-annotations",
    "1",
    partial(_Entries.parse, kind="SetAnnotations", field="annotations"),
    _Entries.changes,
    depends_on=kind_values,
)
