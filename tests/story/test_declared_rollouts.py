"""What a policy says about its rollout, from the file to what is published."""

from pathlib import Path

from companies import company
from fleet import POLICY, PROMOTION, Fleet, Repo

DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"
# Parts of the findings about values of expressions, and of the line that everything is valid.
OF_TARGETS = ("spec.targets[0].", "expected true or false", "objects are valid")
ENTRY = "    template:\n"
SITES = dict.fromkeys(("ams", "ber", "cph", "dub"), ("dev", "edge"))
SHARED = "injectors: [{kind: ConfigMap, nameExpr: target.metadata.name}]"


@company
def four(root: Path) -> Fleet:
    """Four sites in dev."""
    return Fleet.build(root, SITES)


@company
def six(root: Path) -> Fleet:
    """A dev site and a prod site, and a stage for each of four lands between them."""
    lands = {name: (name, "edge") for name in ("at", "be", "ch", "dk")}
    return Fleet.build(root, {"ams": ("dev", "edge"), **lands, "prod": ("prod", "edge")})


def declare(fleet: Fleet, *edits: tuple[str, str]) -> None:
    text = POLICY
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    fleet.write("policy.yaml", text)
    errors = [it for it in fleet.run("validate").out.splitlines() if not it.startswith("warning")]
    # What an expression gives for the targets is told by the tests that are about it.
    assert [it for it in errors if not any(part in it for part in OF_TARGETS)] == []


def dev(fields: str) -> tuple[str, str]:
    return DEV, f"{DEV[:-1]}, {fields}}}"


def released(fleet: Fleet) -> list[str]:
    """Who is published, or may be, by name."""
    states = fleet.states()
    return [
        path.removeprefix("sites/")
        for path in sorted(states)
        if states[path] not in ("Drafted", "Held", "Skipped")
    ]


def ready(fleet: Fleet, site: str) -> None:
    report = fleet.report("dev", "v1", "passed", "--variant", f"sites/{site}")
    assert report.code == 0, report.err
    fleet.settle()


# ---- conditions ----------------------------------------------------------------------------------


def test_a_condition_over_aggregates_counts_on_with_each_release(four: Fleet):
    declare(four, dev('propagateWhen: ["stage.inFlight < 3"]'))
    four.settle()
    assert released(four) == ["ams", "ber", "cph"]
    sentence = "propagateWhen is false: stage.inFlight < 3"
    assert four.condition("sites/dub") == ("PropagationHeld", sentence)


def test_a_condition_that_needs_the_sandbox_continues_the_same_count(four: Fleet):
    condition = "target.metadata.name.matches('^[a-z]+$') && stage.inFlight < 3"
    declare(four, dev(f'propagateWhen: ["{condition}"]'))
    four.settle()
    assert released(four) == ["ams", "ber", "cph"]
    ready(four, "ams")
    assert released(four) == ["ams", "ber", "cph", "dub"]


def test_a_condition_that_yields_text_holds(four: Fleet):
    declare(four, dev("propagateWhen: [\"target.metadata.name == 'ams' ? 'yes' : 'no'\"]"))
    four.settle()
    assert released(four) == []
    reason, sentence = four.condition("sites/ams")
    assert reason == "ExpressionError"
    assert sentence.endswith("yields 'yes', expected true or false")


# ---- order ---------------------------------------------------------------------------------------


def test_a_higher_priority_goes_first(four: Fleet):
    declare(
        four,
        dev("rollout: {strategy: Linear}"),
        (ENTRY, f"{ENTRY}      priorityExpr: \"target.metadata.name == 'cph' ? 1 : 0\"\n"),
    )
    four.settle()
    assert released(four) == ["cph"]
    ready(four, "cph")
    assert released(four) == ["ams", "cph"]


def test_a_priority_that_is_no_whole_number_fails_its_target_by_name(four: Fleet):
    expression = "target.metadata.name == 'cph' ? dyn('high') : dyn(0)"
    declare(four, (ENTRY, f'{ENTRY}      priorityExpr: "{expression}"\n'))
    swept = four.sweep()
    assert swept.code == 3
    assert "Cluster.infra.example.com/default/cph" in swept.err
    assert "priorityExpr: " in swept.err
    assert "yields text where a whole number is needed; use int(...)" in swept.err
    assert sorted(four.states()) == ["sites/ams", "sites/ber", "sites/dub"]


def test_groups_go_one_after_the_other_by_the_labels_of_variant_and_target(four: Fleet):
    groups = "rollout: {groups: [{matchLabels: {ring: canary}}, {matchLabels: {ring: early}}]}"
    declare(
        four,
        dev(groups),
        (
            ENTRY,
            (
                f"{ENTRY}      labelExprs: [{{key: ring, valueExpr: \"target.metadata.name == 'dub'"
                " ? 'canary' : target.metadata.name == 'ber' ? 'early' : 'late'\"}]\n"
            ),
        ),
    )
    four.settle()
    assert released(four) == ["dub"]
    ready(four, "dub")
    assert released(four) == ["ber", "dub"]
    ready(four, "ber")
    assert released(four) == ["ams", "ber", "cph", "dub"]


# ---- who counts ----------------------------------------------------------------------------------


def test_a_site_that_is_offline_blocks_nobody(four: Fleet):
    four.site("dub", "prod", "edge")
    four.site("cph", "dev", "edge", off=True)
    declare(four, (ENTRY, f"    offlineWhen: has(target.spec.off) && target.spec.off\n{ENTRY}"))
    four.settle()
    assert released(four) == ["ams", "ber"]
    assert four.condition("sites/cph")[0] == "Offline"
    four.report("dev", "v1")
    four.settle()
    four.later(hours=1).settle()
    assert released(four) == ["ams", "ber", "dub"]
    four.site("cph", "dev", "edge")
    four.settle()
    assert released(four) == ["ams", "ber", "cph", "dub"]


def test_a_site_of_which_nobody_can_say_is_held_and_reported_where(four: Fleet):
    four.site("cph", "dev", "edge", off="no")
    declare(four, (ENTRY, f"    offlineWhen: has(target.spec.off) && target.spec.off\n{ENTRY}"))
    four.settle()
    assert released(four) == ["ams", "ber", "dub"]
    reason, sentence = four.condition("sites/cph")
    assert reason == "ExpressionError"
    field = "policy.yaml:8: UpstreamPolicy/monitoring: spec.targets[0].offlineWhen: "
    assert field in sentence
    four.report("dev", "v1", "passed", "--variant", "sites/ams")
    four.settle()
    assert four.run("explain", "monitoring/dev").code == 3


# ---- joins ---------------------------------------------------------------------------------------


def test_enough_stages_of_several_let_a_joining_stage_pass(six: Fleet):
    lands = "".join(
        f"  - {{name: {land}, after: {{stages: [dev]}},"
        " verification: [{name: e2e, report: {}}]}\n"
        for land in ("at", "be", "ch", "dk")
    )
    join = (
        '  - {name: most, after: {stages: [at, be, ch, dk], atLeast: "51%"}, controlFlow: true}\n'
    )
    prod = "  - {name: prod, after: {stages: [dev], soak: 1h}}\n"
    declare(six, (prod, f"{lands}{join}{prod.replace('[dev], soak: 1h', '[most]')}"))
    six.settle()
    six.report("dev", "v1")
    six.settle()
    for land in ("at", "be"):
        six.report(land, "v1")
    six.settle()
    assert "prod" not in released(six)
    six.report("dk", "v1")
    six.settle()
    assert "prod" in released(six)


# ---- objects that several stages read ------------------------------------------------------------


def test_a_changed_object_goes_through_the_stages_in_order(four: Fleet):
    four.site("dub", "prod", "edge")
    shared = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {retention: "
    four.write("shared.yaml", f"{shared}1d}}\n")
    declare(four, (SHARED, "injectors: [{kind: ConfigMap, name: shared}]"))
    four.settle()
    four.report("dev", "v1")
    four.settle()
    four.later(hours=1).settle()
    assert released(four) == ["ams", "ber", "cph", "dub"]
    four.write("shared.yaml", f"{shared}2d}}\n")
    four.settle()
    assert four.condition("sites/dub")[0] == "SourceAwaits"
    assert "2d" in four.repos["edge"].file("main", "sites/ams/settings.yaml")
    assert "1d" in four.repos["edge"].file("main", "sites/dub/settings.yaml")
    four.later(minutes=1).report("dev", "v1")
    four.settle()
    assert "2d" in four.repos["edge"].file("main", "sites/dub/settings.yaml")


# ---- separation ----------------------------------------------------------------------------------


def test_an_author_of_a_draft_does_not_approve_it(four: Fleet):
    people = "[ada@example.com, ann@example.com]"
    apart = f"  requiresSeparation: true\n  approvers: [{{group: sre, subjects: {people}}}]\n"
    four.write("promotion.yaml", PROMOTION.partition("  approvers")[0] + apart)
    declare(four, dev("requires: [{name: signed, approval: {from: [sre]}}]"))
    four.settle()
    commit_on_draft(four.repos["edge"], "Ann", "sites/ber")
    four.settle()

    def published_after(name: str) -> list[str]:
        line = ("--stage", "dev", "--revision", "v1", "--by", f"{name} <{name}@example.com>")
        assert four.run("approve", "monitoring", *line).code == (4 if name == "ada" else 0)
        four.settle()
        return [path for path, revision in sorted(four.published().items()) if revision]

    assert published_after("ada") == []  # she released the revision upstream
    assert four.condition("sites/ams")[0] == "ApprovalMissing"
    assert published_after("ann") == ["sites/ams", "sites/cph", "sites/dub"]
    assert four.condition("sites/ber")[0] == "ApprovalMissing"


def commit_on_draft(repo: Repo, name: str, path: str) -> None:
    """Somebody's commit with another number of replicas on a draft."""
    branch = f"drafts/default/{path}/monitoring"
    file = f"{path}/deployment.yaml"
    text = repo.file(branch, file).replace("replicas: 1", "replicas: 7")
    tip = repo.commit(branch, {file: text})
    tree, parent = repo.git("rev-parse", f"{tip}^{{tree}}"), repo.git("rev-parse", f"{tip}^")
    who = ("-c", f"user.name={name}", "-c", f"user.email={name}@example.com")
    mine = repo.git(*who, "commit-tree", tree, "-p", parent, "-m", "more")
    repo.git("update-ref", f"refs/heads/{branch}", mine)
