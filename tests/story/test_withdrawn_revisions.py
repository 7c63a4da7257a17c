"""A promoted revision is withdrawn upstream before it is published: its variant waits."""

import pytest
from fleet import PLAIN, PROMOTION, Fleet

TWO_STAGES = """\
  - repositories: [{name: edge, packageNames: [sites/ams]}]
    template: {stage: dev}
  - repositories: [{name: edge, packageNames: [sites/ber]}]
    template: {stage: prod}
  stages: [{name: dev}, {name: prod, after: {stages: [dev]}}]
"""
WHY = ("--reason", "why", "--by", "Ann <ann@example.com>")


@pytest.mark.parametrize(
    "by_rule", [False, True], ids=["its tag is deleted", "the rule excludes it"]
)
def test_a_withdrawn_revision_holds_its_variant_and_fails_nothing(tmp_path, by_rule: bool):
    fleet = Fleet(tmp_path)
    fleet.repository("blueprints")
    fleet.repository("edge")
    policy = PLAIN[: PLAIN.index("  - repositories")] + TWO_STAGES
    fleet.write("policy.yaml", policy)
    fleet.write("promotion.yaml", PROMOTION)
    for revision in ("v1", "v2"):
        fleet.release(revision)
        fleet.settle()
    fleet.run("rollback", "monitoring", "--stage", "prod", "--yes", *WHY)
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    fleet.run("promote", "monitoring", "--stage", "prod", "--revision", "v3", *WHY)
    if by_rule:
        fleet.write("policy.yaml", policy.replace("<9", "<3"))
    else:
        fleet.repos["blueprints"].git("tag", "-d", "monitoring/v3")
    for _ in range(2):
        swept = fleet.later(minutes=1).sweep()
        assert "the mirror is damaged" not in swept.err
        reason = (
            "spec.upstream.revision does not allow it"
            if by_rule
            else "tag monitoring/v3 is missing"
        )
        assert f"a decision names v3, but {reason}" in swept.err
    assert fleet.states()["sites/ber"] == "Held"
