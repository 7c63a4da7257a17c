"""The draft of a variant is that of its own namespace and policy, whatever the name is."""

import pytest
from reconcile.builders import open_draft, repository_state

from fanout.plan.changes.next_drafts import locate_draft
from fanout.selection.variant_spec import VariantSpec
from fanout.values import replace

REF = "refs/heads/drafts/default/sites/ams/ams"


def by_hand(namespace: str) -> VariantSpec:
    return VariantSpec("ams", namespace, "", "", "ams", "up", "monitoring", "edge", "sites/ams")


@pytest.mark.parametrize(("policy", "is_own"), [("abe/", True), ("zed/", False), ("abe/x", False)])
def test_a_draft_of_another_with_the_same_name_is_in_the_way(policy, is_own):
    draft = replace(open_draft("ams", "sites/ams", policy=policy), ref=REF)
    location = locate_draft(by_hand("abe"), repository_state(draft), "default", is_shared=False)
    assert location.ref == REF
    draft_and_occupant = (location.draft, location.occupant)
    assert draft_and_occupant == ((draft, None) if is_own else (None, draft))
