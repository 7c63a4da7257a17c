"""The sentences of `plan`, as people read them."""

from operator import itemgetter

import pytest

from fanout.plan import plan_wording as wording

SENTENCES = [
    (wording.format_maintainers("edge"), "the maintainers of edge"),
    (wording.format_decision_command("resume", "web", ""), "fanout resume web --reason WHY"),
    (wording.format_decision_command("suspend", "web", "prod"),
     "fanout suspend web --stage prod --reason WHY"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
