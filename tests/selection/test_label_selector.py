"""The index of labels leaves out nothing that a selector matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.upstream_policy import ObjectSelector
from fanout.selection import label_selector
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.label_selector import match_raw_labels

KIND = ("infra.example.com", "Cluster")
KEYS, VALUES = st.sampled_from(["tier", "region"]), st.sampled_from(["a", "b", ""])
LABELS = st.none() | st.just("none") | st.dictionaries(KEYS, VALUES | st.just(1) | st.none())
NAMESPACES = st.sampled_from(["", "platform", "other"])
OBJECTS = st.dictionaries(st.tuples(NAMESPACES, st.sampled_from("abcdef")), LABELS)
REQUIREMENTS = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        **({"values": values} if operator in ("In", "NotIn") else {}),
    },
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(VALUES, min_size=1, max_size=2, unique=True),
)
SELECTORS = st.builds(
    lambda labels, expressions: ObjectSelector.model_validate(
        {
            "apiVersion": "infra.example.com/v1",
            "kind": "Cluster",
            "matchLabels": labels,
            "matchExpressions": expressions,
        }
    ),
    st.dictionaries(KEYS, VALUES),
    st.lists(REQUIREMENTS, max_size=2),
)


def index_of(labels_by_name):
    return ClusterObjectIndex(
        {
            "apiVersion": "infra.example.com/v1",
            "kind": "Cluster",
            "metadata": {
                "namespace": namespace,
                "name": name,
                **({"labels": labels} if labels is not None else {}),
            },
        }
        for (namespace, name), labels in labels_by_name.items()
    )


@given(OBJECTS, SELECTORS, NAMESPACES)
def test_the_candidates_have_every_object_that_may_match(labels_by_name, selector, namespace):
    candidates = [
        name for name, _ in index_of(labels_by_name).find_candidates(KIND, namespace, selector)
    ]
    assert len(set(candidates)) == len(candidates)
    assert {name[0] for name in candidates} <= {namespace}
    matched = {
        name
        for name, labels in labels_by_name.items()
        if name[0] == namespace and match_raw_labels(selector, labels) is not False
    }
    assert matched <= set(candidates)


@given(OBJECTS, OBJECTS, SELECTORS, NAMESPACES)
def test_an_index_after_changes_has_the_candidates_of_a_new_one(before, after, selector, namespace):
    previous, fresh = index_of(before), index_of(after)
    [*previous.find_candidates(KIND, namespace, selector)]
    present = previous.with_objects({KIND: fresh.of_kind(*KIND)})
    assert [*present.find_candidates(KIND, namespace, selector)] == [
        *fresh.find_candidates(KIND, namespace, selector)
    ]


@given(OBJECTS, OBJECTS, st.lists(st.tuples(SELECTORS, NAMESPACES), min_size=1, max_size=3))
def test_a_changed_index_is_a_new_one_and_leaves_the_previous_one_as_it_was(before, after, asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_selector, "_FEW", 100)  # else so few objects are indexed anew
        previous_objects, objects = (index_of(it).of_kind(*KIND) for it in (before, after))
        previous = label_selector.LabelIndex(previous_objects)
        selector, namespace = asked[0]
        previous.find_candidates(namespace, selector)
        present = previous.with_objects(previous_objects, objects)
        for selector, namespace in asked:
            for index, items in ((present, objects), (previous, previous_objects)):
                fresh = label_selector.LabelIndex(items)
                assert [*index.find_candidates(namespace, selector)] == [
                    *fresh.find_candidates(namespace, selector)
                ]


@given(OBJECTS, OBJECTS)
def test_the_changes_lead_from_one_index_to_the_next(before, after):
    previous = index_of(before)
    present = previous.with_objects({KIND: index_of(after).of_kind(*KIND)})
    objects = dict(previous.of_kind(*KIND))
    for change in present.find_changes(previous):
        assert objects.pop(change.name, None) is change.previous
        if change.present is not None:
            objects[change.name] = change.present
    assert objects == present.of_kind(*KIND)
    assert all(item is objects[name] for name, item in present.of_kind(*KIND).items())


@given(OBJECTS, OBJECTS, OBJECTS)
def test_the_names_of_changed_objects_are_known_for_one_step(first, second, third):
    steps = [index_of(first)]
    for objects in (second, third):
        steps.append(steps[-1].with_objects({KIND: index_of(objects).of_kind(*KIND)}))
    for previous in steps:
        for present in steps[steps.index(previous) :]:
            names = present.find_changed_names(previous.stamp)
            changes = {change.name for change in present.find_changes(previous)}
            # Two steps are known as one if one of them changed nothing.
            assert set(names or ()) == (changes if names is not None else set())
            assert names is not None or (present is steps[2] and previous is steps[0])
    assert steps[2].find_changed_names(index_of(third).stamp) is None


def test_two_indexes_made_from_one_know_nothing_of_each_other():
    previous = index_of({("platform", "a"): {"tier": "a"}})
    one, other = (
        previous.with_changes({KIND: index_of({("platform", "a"): {"tier": it}}).of_kind(*KIND)})
        for it in ("b", "c")
    )
    assert set(one.find_changed_names(previous.stamp)) == {("platform", "a")}
    assert one.find_changed_names(other.stamp) is None


def test_an_object_with_equal_content_stays_the_same_object():
    previous = index_of({("platform", "a"): {"tier": "a"}, ("platform", "b"): {"tier": 1}})
    read_again = index_of({("platform", "a"): {"tier": "a"}, ("platform", "b"): {"tier": True}})
    present = previous.with_objects({KIND: read_again.of_kind(*KIND)})
    assert present.get(*KIND, "platform", "a") is previous.get(*KIND, "platform", "a")
    assert [it.name for it in present.find_changes(previous)] == [("platform", "b")]
    again = present.with_objects(
        {
            KIND: index_of(
                {("platform", "a"): {"tier": "a"}, ("platform", "b"): {"tier": True}}
            ).of_kind(*KIND)
        }
    )
    assert again.of_kind(*KIND) is present.of_kind(*KIND)
