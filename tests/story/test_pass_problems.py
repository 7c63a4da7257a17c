"""What could not be served is told by the plan as by the sweep, once, and the status says so."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, PROMOTION, Fleet

AMS = {"ams": ("dev", "edge")}


@company
def at_rest(root: Path) -> Fleet:
    """What there is to do is done."""
    made = Fleet.build(root, AMS)
    made.settle()
    return made


def unknown_repository(fleet: Fleet) -> None:
    fleet.site("ber", "dev", "nosuch")


def bad_package(fleet: Fleet) -> None:
    fleet.release("v2", {"deployment.yaml": "a: [\n"})


def moved_tag(fleet: Fleet) -> None:
    upstream = fleet.repos["blueprints"]
    upstream.git("update-ref", "refs/tags/monitoring/v1", fleet.release("v2"))


def upstream_away(fleet: Fleet) -> None:
    fleet.repos["blueprints"].path.rename(fleet.root / "away")


def downstream_away(fleet: Fleet) -> None:
    fleet.repos["edge"].path.rename(fleet.root / "away")


TROUBLES: list[tuple[str, Callable[[Fleet], None], str, str]] = [
    ("a target in an unknown repository", unknown_repository, "1 target", "no Repository nosuch"),
    ("a package that cannot be parsed", bad_package, "1 variant", "deployment.yaml"),
    ("a tag that was moved", moved_tag, "1 policy", "tag monitoring/v1 pointed to"),
    ("an upstream that does not answer", upstream_away, "1 policy", "blueprints"),
    ("a downstream that does not answer", downstream_away, "1 variant", "edge"),
]


@pytest.mark.parametrize(
    ("_", "happens", "failed", "sentence"), TROUBLES, ids=map(itemgetter(0), TROUBLES)
)
def test_a_plan_tells_what_the_sweep_tells(
    at_rest: Fleet, _: str, happens: Callable[[Fleet], None], failed: str, sentence: str
):
    fleet = at_rest
    happens(fleet)
    plan, swept = fleet.plan(), fleet.sweep()
    assert (plan.code, swept.code) == (3, 3)
    assert (plan.out, plan.err) == (swept.out, swept.err)
    assert plan.out == f"nothing to do; failed: {failed}\n"
    assert sentence in plan.err


def test_a_plan_for_machines_has_the_troubles_of_the_sweep(at_rest: Fleet):
    fleet = at_rest
    unknown_repository(fleet)
    bad_package(fleet)
    plan, swept = fleet.plan("-o", "json"), fleet.sweep("-o", "json")
    sorts = ("problems", "failedTargets", "failedVariants", "held", "warnings")
    assert {sort: plan.json[sort] for sort in sorts} == {sort: swept.json[sort] for sort in sorts}
    assert [it["reason"] for it in plan.json["failedTargets"]] == ["UnknownRepository"]
    assert [it["reason"] for it in plan.json["failedVariants"]] == ["InvalidManifest"]


@pytest.mark.parametrize(
    ("broken", "code"), [(False, 0), (True, 3)], ids=["something to do is 0", "failures are 3"]
)
def test_a_plan_exits_with_its_code(tmp_path: Path, broken: bool, code: int):
    fleet = Fleet.build(tmp_path, AMS)
    if broken:
        unknown_repository(fleet)
    plan = fleet.plan()
    assert plan.code == code
    assert "WriteDraft" in plan.out


def test_a_plan_of_drafts_alone_is_what_such_a_sweep_does(tmp_path: Path):
    """Publications that nobody recorded are recorded by it too."""
    fleet = Fleet.build(tmp_path, AMS)
    fleet.sweep()
    edge = fleet.repos["edge"]
    edge.git("update-ref", "refs/heads/main", edge.refs()[f"refs/heads/drafts/default/{DRAFT}"])
    plan, swept = fleet.plan("--drafts-only", "-o", "json"), fleet.sweep("--drafts-only", "-v")
    assert [it["kind"] for it in plan.json["actions"]] == ["RemoveDraft", "Record"]
    assert swept.out.splitlines()[-1] == "1 draft removed, 1 recorded"


DRAFT = "sites/ams/monitoring"


def test_a_plan_printed_as_json_can_be_swept(tmp_path: Path):
    fleet = Fleet.build(tmp_path, AMS)
    unknown_repository(fleet)
    saved = tmp_path / "plan.json"
    saved.write_text(fleet.plan("-o", "json").out)
    assert fleet.sweep("--plan", str(saved)).out == "1 draft written\n"
    outdated = fleet.sweep("--plan", str(saved))
    assert outdated.code == 4
    assert "plan again" in outdated.err
    saved.write_text("[]")
    assert fleet.sweep("--plan", str(saved)).code == 2


def test_help_says_what_an_outdated_plan_leaves_with():
    fleet = Fleet(Path())
    for arguments in (["--help"], ["sweep", "--help"]):
        text = " ".join(fleet.run(*arguments, files=False).out.split())
        assert "outdated" in text


def test_an_error_of_many_targets_is_printed_once(tmp_path: Path):
    fleet = Fleet.build(tmp_path, AMS)
    for number in range(5):
        fleet.site(f"x{number}", "dev", "nosuch")
        fleet.site(f"y{number}", "nowhere", "edge")
    for result in (fleet.plan(), fleet.sweep()):
        lines = result.err.splitlines()
        assert len(lines) == 2
        assert "5 targets (Cluster.infra.example.com/default/x0, " in lines[0]
        assert " and 2 more): " in lines[0]
        assert "5 variants (y0, y1, y2 and 2 more): " in lines[1]
        assert "is in stage nowhere" in lines[1]


def test_variants_whose_targets_are_gone_are_one_line_with_a_command_that_works(tmp_path: Path):
    fleet = Fleet.build(tmp_path, dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge")))
    fleet.settle()
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    fleet.remove("site-ber.yaml")
    fleet.remove("site-cph.yaml")
    plan = fleet.plan()
    assert plan.code == 0
    [line] = plan.err.splitlines()
    assert "2 variants (" in line
    command = line.partition("`fanout remove ")[2].partition("`")[0].split()
    assert command[-1] == "WHY"
    done = fleet.run("remove", *command[:-1], "sold", "--by", "Ann <ann@x.org>")
    assert done.code == 0, done.err
    assert len(fleet.plan().err.splitlines()) == 1
    assert "2 variants" not in fleet.plan().err


def conflict(fleet: Fleet) -> None:
    """A person and upstream set the same value differently."""
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {"sites/ams/deployment.yaml": text})
    fleet.release("v2")


@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "by hand"])
def test_a_sweep_names_conflicts_and_what_to_do(at_rest: Fleet, automatic: bool):
    fleet = at_rest
    conflict(fleet)
    if not automatic:
        fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    plan, first, second = fleet.plan(), fleet.sweep(), fleet.sweep()
    assert plan.err == first.err
    assert "fanout explain monitoring/dev/" in second.err
    assert fleet.plan("-o", "json").reasons == {"MergeConflict"}
    command = plan.err.partition("fanout resolve ")[2].partition("`")[0].split()
    done = fleet.run("resolve", *command[:-1], "as it is", "--by", "Ann <ann@x.org>")
    assert done.code == 0, done.err
    assert fleet.sweep().err == ""


def test_a_sweep_names_injections_that_find_nothing(tmp_path: Path):
    fleet = Fleet.build(tmp_path, AMS)
    settings = PACKAGE["settings.yaml"].replace("optional", "required")
    fleet.release("v2", {"settings.yaml": settings})
    (fleet.root / "policies" / "site-ams.yaml").write_text(
        "apiVersion: infra.example.com/v1\nkind: Cluster\n"
        "metadata: {name: ams, labels: {tier: dev}}\nspec: {repository: edge}\n"
    )
    swept = fleet.sweep()
    assert swept.code == 3  # a person has to mend it
    assert "RequiredInjectionMissing" in fleet.plan("-o", "json").reasons


def test_a_sweep_with_a_faulty_policy_does_not_say_that_all_is_done(at_rest: Fleet):
    fleet = at_rest
    broken = POLICY.replace("name: monitoring", "name: broken", 1)
    fleet.write("policy-broken.yaml", broken.replace("stages:", "stagez:"))
    for result in (fleet.plan(), fleet.sweep()):
        assert result.code == 3
        assert result.out == "nothing to do; failed: 1 error in the objects\n"


def test_a_push_that_fails_is_not_nothing_to_do(at_rest: Fleet):
    fleet = at_rest
    fleet.release("v2")
    fleet.repos["edge"].hook("pre-receive", "exit 1")
    swept = fleet.sweep()
    assert (swept.code, swept.out) == (3, "nothing to do; failed: 1 action\n")
