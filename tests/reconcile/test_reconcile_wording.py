"""The sentences of a pass, as people read them."""

from operator import itemgetter

import pytest

from fanout.reconcile import reconcile_wording as wording

SENTENCES = [
    # Adoption, edits and drafts.
    (wording.remind_lost_renderings("web"),
     "the vendor branch lacks published packages; run `fanout explain web`"),
    (wording.describe_accepted_conflicts(1),
     "its draft is published with 1 merge conflict that a person accepted"),
    # Tags and repositories.
    (wording.describe_foreign_request(7, "main", "drafts/x"),
     "pull request 7 from drafts/x to main was not opened by fanout and is ignored"),
    # Records.
    # Removal.
    (wording.append_actor("it waits", ""), "it waits"),
    (wording.append_actor("it waits", "ann"), "it waits; who can act: ann"),
    # Pull requests.
    # Pins and promotion.
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
