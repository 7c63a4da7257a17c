"""What set-labels and set-annotations change in which object."""

import pytest
from variants.builders import rows
from variants.functions import changes, function_config, meta, thing

TERM = {"labelSelector": {"matchLabels": {"env": "old", "app": "x"}}}
OTHER_TERM = {"labelSelector": {"matchLabels": {"app": "x"}}}
POD = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "topologySpreadConstraints": [TERM, OTHER_TERM],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [OTHER_TERM, TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": TERM}],
            }
        },
    },
}
ANTI = "spec.template.spec.affinity.podAntiAffinity"
REQUIRED = f"{ANTI}.requiredDuringSchedulingIgnoredDuringExecution"

LABELS = [
    ("every object gets them", thing("example.com/v1", "Gadget"), {"metadata.labels.env": "prod"}),
    ("one that has them stays", thing("v1", "Secret", **meta(labels={"env": "prod"})), {}),
    (
        "another value is replaced",
        thing("v1", "Secret", **meta(labels={"env": "dev"})),
        {"metadata.labels.env": "prod"},
    ),
    (
        "the pods of a Service are chosen by them",
        thing("v1", "Service", spec={"selector": {"app": "x"}}),
        {"metadata.labels.env": "prod", "spec.selector.env": "prod"},
    ),
    (
        "a Service that chooses no pods goes on choosing none",
        thing("v1", "Service", spec={}),
        {"metadata.labels.env": "prod"},
    ),
    (
        "a workload's selector and its pods get them",
        thing(
            "apps/v1",
            "StatefulSet",
            spec={
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            },
        ),
        {
            "metadata.labels.env": "prod",
            "spec.selector.matchLabels.env": "prod",
            "spec.template.metadata.labels.env": "prod",
            "spec.volumeClaimTemplates.0.metadata.labels.env": "prod",
        },
    ),
    (
        "affinities and spreading get them",
        thing("apps/v1", "Deployment", spec={"template": POD}),
        {
            "metadata.labels.env": "prod",
            "spec.template.metadata.labels.env": "prod",
            "spec.template.spec.topologySpreadConstraints.0.labelSelector.matchLabels.env": "prod",
            "spec.template.spec.topologySpreadConstraints.1.labelSelector.matchLabels.env": "prod",
            f"{REQUIRED}.0.labelSelector.matchLabels.env": "prod",
            f"{REQUIRED}.1.labelSelector.matchLabels.env": "prod",
            f"{ANTI}.preferredDuringSchedulingIgnoredDuringExecution.0.podAffinityTerm.labelSelector"
            ".matchLabels.env": "prod",
        },
    ),
    (
        "the jobs and pods of a CronJob get them",
        thing(
            "batch/v1",
            "CronJob",
            spec={"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}},
        ),
        {
            "metadata.labels.env": "prod",
            "spec.jobTemplate.metadata.labels.env": "prod",
            "spec.jobTemplate.spec.template.metadata.labels.env": "prod",
        },
    ),
    (
        "a budget's selector gets them",
        thing("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"app": "x"}}}),
        {"metadata.labels.env": "prod", "spec.selector.matchLabels.env": "prod"},
    ),
    (
        "a selector that means all pods goes on meaning all",
        thing(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": {},
                "ingress": [{"from": [{"podSelector": {"matchLabels": {}}}, {"ipBlock": {}}]}],
                "egress": [{}],
            },
        ),
        {"metadata.labels.env": "prod"},
    ),
    (
        "a selector that is written by expressions stays",
        thing(
            "policy/v1",
            "PodDisruptionBudget",
            spec={"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        ),
        {"metadata.labels.env": "prod"},
    ),
    (
        "a Job's selector gets them, and its pods",
        thing(
            "batch/v1",
            "Job",
            spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"nodeName": "n"}}},
        ),
        {
            "metadata.labels.env": "prod",
            "spec.selector.matchLabels.env": "prod",
            "spec.template.metadata.labels.env": "prod",
        },
    ),
    (
        "all selectors of pods of a network policy get them, those of namespaces do not",
        thing(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": {"matchLabels": {"env": "dev"}},
                "ingress": [
                    {
                        "from": [
                            {
                                "podSelector": {"matchLabels": {"app": "y"}},
                                "namespaceSelector": {"matchLabels": {"app": "y"}},
                            }
                        ]
                    }
                ],
                "egress": [{"to": [{"podSelector": {"matchLabels": {"env": "dev"}}}]}],
            },
        ),
        {
            "metadata.labels.env": "prod",
            "spec.podSelector.matchLabels.env": "prod",
            "spec.ingress.0.from.0.podSelector.matchLabels.env": "prod",
            "spec.egress.0.to.0.podSelector.matchLabels.env": "prod",
        },
    ),
    (
        "a custom kind's spec is its own affair",
        thing("example.com/v1", "Deployment", spec={"selector": {"matchLabels": {"app": "x"}}}),
        {"metadata.labels.env": "prod"},
    ),
]


@pytest.mark.parametrize(("item", "expected"), rows(LABELS))
def test_set_labels(item, expected):
    assert changes("set-labels", function_config(env="prod"), item) == expected


ANNOTATIONS = [
    ("every object gets them", thing("v1", "Secret"), {"metadata.annotations.team": "edge"}),
    (
        "pods of a workload too",
        thing("apps/v1", "Deployment", spec={"template": {"spec": {"a": 1}}}),
        {"metadata.annotations.team": "edge", "spec.template.metadata.annotations.team": "edge"},
    ),
    (
        "jobs and pods of a CronJob too",
        thing(
            "batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": {"spec": {"a": 1}}}}}
        ),
        {
            "metadata.annotations.team": "edge",
            "spec.jobTemplate.metadata.annotations.team": "edge",
            "spec.jobTemplate.spec.template.metadata.annotations.team": "edge",
        },
    ),
]


@pytest.mark.parametrize(("item", "expected"), rows(ANNOTATIONS))
def test_set_annotations(item, expected):
    assert changes("set-annotations", function_config(team="edge"), item) == expected


EXTRA = [
    (
        "a further field is made where that is asked for",
        {"path": "data/notes", "kind": "Gadget", "create": True},
        {},
        {"data.notes.team": "edge"},
    ),
    ("and else only extended", {"path": "data/notes", "kind": "Gadget"}, {}, {}),
    (
        "where it is there it is extended",
        {"path": "data/notes"},
        {"data": {"notes": {"a": "b"}}},
        {"data.notes.team": "edge"},
    ),
    (
        "a path goes into lists",
        {"path": "pods[]/notes", "create": True},
        {"pods": [{"a": 1}, {"a": 1}]},
        {"pods.0.notes.team": "edge", "pods.1.notes.team": "edge"},
    ),
    ("other groups are not meant", {"path": "data/notes", "group": "apps", "create": True}, {}, {}),
    (
        "other versions are not meant",
        {"path": "data/notes", "version": "v2", "create": True},
        {},
        {},
    ),
]


@pytest.mark.parametrize(("row", "content", "expected"), rows(EXTRA))
def test_additional_annotation_fields(row, content, expected):
    config = {
        "apiVersion": "fn.kpt.dev/v1alpha1",
        "kind": "SetAnnotations",
        "annotations": {"team": "edge"},
        "additionalAnnotationFields": [row],
    }
    item = thing("example.com/v1", "Gadget", **content)
    wanted = {"metadata.annotations.team": "edge", **expected}
    assert changes("set-annotations", config, item) == wanted
