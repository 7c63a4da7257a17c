"""Variants whose target is gone, as the pass finds them in status lines and drafts."""

from datetime import UTC, datetime, timedelta

import pytest
from reconcile.builders import open_draft, parsed, repository_state, resolved, variant_name

from fanout.declared.declared_objects import DeclarationFailure, DeclaredObjects
from fanout.plan.records.policy_status import RecordedStatus, VariantLine
from fanout.reconcile.removal.orphaned_variants import find_orphans, find_removal_doubt

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
AMS, BER = variant_name("ams"), variant_name("ber")


def status(*targets):
    """A status with a line for each target's variant."""
    lines = {
        variant_name(it): VariantLine(repository="edge", path=f"sites/{it}", stage="dev")
        for it in targets
    }
    return RecordedStatus(variants=lines)


POLICIES = [
    ("all targets are there", resolved("ams", "ber"), []),
    ("one is gone", resolved("ams"), [BER]),
    ("all are gone", resolved(), [AMS, BER]),
    ("a target that fails is not gone", resolved("ams", failing=("ber",)), []),
    ("targets that could not be found out are not gone", resolved(is_complete=False), []),
]


@pytest.mark.parametrize(
    ("policy", "orphans"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES]
)
def test_variants_on_record_without_a_target_are_orphans(policy, orphans):
    orphaned = find_orphans(policy, status("ams", "ber"), [repository_state()])
    assert [it.name for it in orphaned] == sorted(orphans)


DRAFTS = [
    ("a draft", open_draft(BER, "sites/ber"), [BER]),
    ("a draft that a person edited", open_draft(BER, "sites/ber", edited=True), [BER]),
    ("another policy's", open_draft(BER, "sites/ber", policy="platform/logging"), []),
    ("one whose target is there", open_draft(AMS, "sites/ams"), []),
]


@pytest.mark.parametrize(
    ("draft", "orphans"), [row[1:] for row in DRAFTS], ids=[row[0] for row in DRAFTS]
)
def test_a_draft_alone_shows_a_variant_without_a_target(draft, orphans):
    orphaned = find_orphans(resolved("ams"), RecordedStatus(), [repository_state(draft)])
    assert [it.name for it in orphaned] == orphans
    assert [location.place[1] for it in orphaned for location in it.locations] == [
        "sites/ber" for _ in orphans
    ]


DECLARED = [
    ("all is usable", DeclaredObjects(), ""),
    (
        "a file is unread",
        DeclaredObjects(unread=(DeclarationFailure("sites.yaml"),)),
        "sites.yaml",
    ),
    ("an object is unusable", DeclaredObjects(unusable=(DeclarationFailure("ber"),)), "ber"),
]


@pytest.mark.parametrize(
    ("declared", "named"), [row[1:] for row in DECLARED], ids=[row[0] for row in DECLARED]
)
def test_unreadable_files_may_hold_a_target(declared, named):
    doubt = find_removal_doubt(declared, resolved("ams").upstream_policy, NOW)
    assert (doubt is not None) == bool(named)
    assert doubt is None or named in doubt.message


@pytest.mark.parametrize(
    ("policy_age", "definition_age", "is_doubtful"),
    [
        (timedelta(days=9), timedelta(minutes=59), True),
        (timedelta(days=9), timedelta(hours=1), False),
        (timedelta(minutes=5), timedelta(minutes=9), False),
        (timedelta(minutes=29), timedelta(minutes=20), False),  # as at an installation
        (None, timedelta(minutes=9), False),  # from a file
    ],
)
def test_a_kind_that_was_defined_anew_may_have_its_objects_restored(
    policy_age, definition_age, is_doubtful
):
    selector = {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}
    policy = parsed(
        "UpstreamPolicy",
        "monitoring",
        upstream={"repository": "blueprints", "package": "app", "revision": {"latest": True}},
        targets=[{"objectSelector": selector, "template": {"stage": "dev"}}],
        stages=[{"name": "dev"}],
    )
    created = None if policy_age is None else NOW - policy_age
    meta = policy.metadata.model_copy(update={"creation_timestamp": created})
    policy = policy.model_copy(update={"metadata": meta})
    kind = ("infra.example.com", "Cluster")
    declared = DeclaredObjects(definition_times={kind: NOW - definition_age})
    doubt = find_removal_doubt(declared, policy, NOW)
    assert (doubt is not None) == is_doubtful
    assert doubt is None or "2026-03-02T09:01:00Z" in doubt.message
