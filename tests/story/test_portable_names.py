"""Paths that not every system tells apart are refused where they meet, and nothing else waits."""

from pathlib import Path

from companies import company
from fleet import PLAIN, PROMOTION, Fleet


@company
def fleet(root: Path) -> Fleet:
    made = Fleet(root)
    for name in ("blueprints", "edge"):
        made.repository(name)
    made.release("v1")
    made.write("policy.yaml", PLAIN)
    made.write("promotion.yaml", PROMOTION)
    return made


def test_two_variants_whose_paths_differ_in_case(fleet: Fleet):
    fleet.settle()
    both = PLAIN.replace("sites/ber]", "sites/ber, Sites/Ams]")
    fleet.write("policy.yaml", both)
    assert fleet.sweep().code == 3
    assert fleet.states() == {"sites/ams": "Ready", "sites/ber": "Ready", "Sites/Ams": "Held"}
    reason, sentence = fleet.condition("Sites/Ams")
    assert reason == "PathCollision"
    assert "differs only in case or Unicode form from that of variant" in sentence
    assert fleet.repos["edge"].drafts() == []


def test_a_path_with_a_reserved_name(fleet: Fleet):
    fleet.write("policy.yaml", PLAIN.replace("sites/ber", "sites/aux"))
    swept = fleet.sweep()
    assert "'aux', which Windows reserves" in swept.err
    assert fleet.run("validate").code != 0


def test_a_path_in_the_place_of_the_drafts_of_stages_in_another_case(fleet: Fleet):
    fleet.write("policy.yaml", PLAIN.replace("sites/ber", "_Stages/ber"))
    sentence = "'_Stages/ber' begins with _Stages, which is reserved"
    assert sentence in fleet.sweep().err
    assert sentence in fleet.run("validate").out
    assert fleet.repos["edge"].drafts() == []


def test_files_of_a_revision_that_differ_in_case_hold_that_revision(fleet: Fleet):
    fleet.settle()
    fleet.release("v2", {"Deployment.yaml": "a: b\n"})
    swept = fleet.sweep()
    assert swept.code == 3
    assert "differs from Deployment.yaml only in case or Unicode form" in swept.err
    assert set(fleet.published().values()) == {"v1"}


def test_a_file_that_a_person_adds_to_a_draft(fleet: Fleet):
    fleet.sweep("--drafts-only")
    branch = "drafts/default/sites/ams/monitoring"
    fleet.repos["edge"].commit(branch, {"sites/ams/aux.yaml": "a: b\n"})
    fleet.sweep()
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "DraftBroken"
    assert "sites/ams/aux.yaml" in sentence
    assert fleet.published() == {"sites/ams": "", "sites/ber": "v1"}
