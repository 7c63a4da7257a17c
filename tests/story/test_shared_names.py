"""A PackageVariant with the name of a policy is refused: both would be one in records and plans."""

from fleet import PROMOTION, Fleet

MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""
SENTENCE = (
    "PackageVariant/monitoring: metadata.name: UpstreamPolicy monitoring in namespace default has"
    " the same name; rename one of them"
)


def test_a_variant_with_the_name_of_a_policy_is_refused_and_the_policy_goes_on(fleet: Fleet):
    fleet.settle()
    fleet.write("mine.yaml", MINE)
    fleet.write("promotion.yaml", PROMOTION + "  variants: [monitoring]\n")
    fleet.release("v2")
    for _ in range(3):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 3
        assert SENTENCE in swept.err
    assert fleet.published()["sites/ams"] == "v2"
    assert "own/mine" not in fleet.published()
    assert SENTENCE in fleet.run("validate").out
    fleet.write("mine.yaml", MINE.replace("name: monitoring}\nspec", "name: mine}\nspec"))
    fleet.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    fleet.later(minutes=1).settle()
    assert fleet.published()["own/mine"] == "v2"


def test_a_variant_on_record_waits_while_a_policy_has_its_name(fleet: Fleet):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.remove("policy.yaml")
    fleet.write("mine.yaml", MINE)
    fleet.write("promotion.yaml", PROMOTION + "  variants: [monitoring]\n")
    fleet.settle()
    assert fleet.published() == {"own/mine": "v1"}
    fleet.write("policy.yaml", policy)
    fleet.release("v2")
    for _ in range(4):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 3
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": "", "sites/cph": ""}
    fleet.remove("policy.yaml")
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert fleet.published() == {"own/mine": "v2"}
