"""Porch's expressions yield the same after their translation, and fail where they failed."""

from operator import itemgetter

import pytest

from fanout.api.field_errors import InvalidValue
from fanout.migrate.porch_conversion import translate_expression
from fanout.sandbox.cel_worker import CelEngine
from fanout.sandbox.worker_protocol import RefusedError

ENGINE = CelEngine()
OBJECTS = {
    "all there": {
        "name": "eu",
        "namespace": "platform",
        "labels": {"tier": "prod", "a/b": "x", "target": "t"},
        "annotations": {"note": "n"},
    },
    "other labels": {
        "name": "us",
        "namespace": "platform",
        "labels": {"x": "y"},
        "annotations": {"x": "y"},
    },
    "no labels": {"name": "ap", "namespace": "platform", "labels": {}, "annotations": {}},
}


def yields(expression, target, repository):
    try:
        return ENGINE.evaluate(expression, {"target": target, "repository": repository})
    except RefusedError:
        return "an error"


def whole(reduced):
    """The object as fanout shows it: without labels it has no field for them."""
    return {"kind": "Cluster", "metadata": {key: it for key, it in reduced.items() if it}}


SAME = [
    "target.name",
    "target.namespace + '/' + target . name",
    "target.labels.tier",
    "target.labels['a/b']",
    'target["labels"]["a/b"]',
    "target['name']",
    "target.labels['a' + '/' + 'b'] + repository.name",
    "has(target.labels.tier) ? target.labels.tier : 'none'",
    "has( target.labels . tier ) && target.labels.tier == 'prod' ? 'p' : 'o'",
    "!has(target.annotations.note) ? 'a' : 'b'",
    "has(target.labels) ? 'a' : 'b'",
    "has(target.name) ? 'a' : 'b'",
    "'a/b' in target.labels ? 'a' : 'b'",
    "!('a/b' in target.labels) || 'tier' in repository.annotations ? 'a' : 'b'",
    "size(target.labels) > 0 ? 'a' : 'b'",
    "target.labels.size() == 0 ? 'a' : 'b'",
    "target.labels.exists(k, k == 'tier') ? 'a' : 'b'",
    "target.labels == {} ? 'a' : 'b'",
    "target.labels.target",
    "target.labels[target.name == 'eu' ? 'tier' : 'x']",
    "{'eu': repository.name}[target.name]",
    "'target.name is ' + target.name",
    '"it\'s target.name" + target.name',
    r"'\'target.name' + r'\' + target.name",
    "'''target.name ' ''' + target.name",
    "target.name // target.labels is not read",
    "repository.labels.tier + repository.namespace",
    "'nothing of either'",
]


@pytest.mark.parametrize("expression", SAME)
def test_a_translated_expression_yields_the_same(expression):
    translated = translate_expression(expression, target_is_object=True)
    for target in OBJECTS.values():
        for repository in OBJECTS.values():
            before = yields(expression, target, repository)
            assert yields(translated, whole(target), whole(repository)) == before


SPELLED = [
    ("what needs nothing stays", "repoDefault + '-' + packageDefault", None),
    ("a plain field", "target.name", "target.metadata.name"),
    ("spaces and comments stay", "target.name  + // x\n 'y'", "target.metadata.name  + // x\n 'y'"),
    ("a label", "target.labels['a/b']", "target.metadata.labels['a/b']"),
    ("a field of that name", "target.labels.repository", "target.metadata.labels.repository"),
]


@pytest.mark.parametrize(("_", "before", "after"), SPELLED, ids=map(itemgetter(0), SPELLED))
def test_a_translated_expression_has_the_expected_text(_, before, after):
    assert translate_expression(before, target_is_object=True) == (after or before)


def test_a_target_that_is_repository_and_package_is_the_same_to_both():
    assert (
        translate_expression("target.repo + target", target_is_object=False)
        == "target.repo + target"
    )
    assert (
        translate_expression("repository.name", target_is_object=False)
        == "repository.metadata.name"
    )


REFUSED = [
    ("the upstream's revision", "upstream.name"),
    ("an object as a whole", "string(target)"),
    ("a name that a macro binds", "['x'].map(target, target)[0]"),
    ("a map's key that is a name", "{target: 'x'}"),
    ("a field that Porch does not show", "target.spec.size"),
    ("a computed field", "target['na' + 'me']"),
    ("a question about a key in brackets", "has(target['labels'].tier)"),
    ("a question further down", "has(target.labels.tier.x)"),
    ("a dot before the name", ".target.name"),
    ("a string without an end", "'x + target.name"),
    ("nothing after the dot", "target."),
    ("nothing after the name", "target"),
]


@pytest.mark.parametrize("expression", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_an_unrecognized_expression_is_refused(expression):
    with pytest.raises(InvalidValue):
        translate_expression(expression, target_is_object=True)
