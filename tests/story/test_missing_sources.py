"""A cluster object that a published variant was made of disappears: it stays, and it is told."""

from pathlib import Path

from fleet import PACKAGE, Fleet


def test_a_required_source_that_disappears_is_reported_though_the_variant_is_ready(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    required = PACKAGE["settings.yaml"].replace("optional", "required")
    fleet.release("v2", {"settings.yaml": required})
    fleet.settle()
    fleet.report("dev", "v2")
    site = (tmp_path / "policies" / "site-ams.yaml").read_text()
    fleet.write("site-ams.yaml", site.partition("---")[0])
    for result in (fleet.later(minutes=1).plan(), fleet.sweep()):
        missing = "edge:sites/ams: nothing to inject: ConfigMap.settings"
        assert missing in result.err
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": "v2"}
    assert 'retention: "7d"' in fleet.repos["edge"].file("main", "sites/ams/settings.yaml")
