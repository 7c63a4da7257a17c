"""The history of a policy: what was in force when, and what released it, over the real command."""

import shutil
import subprocess
from pathlib import Path

import pytest
from companies import company
from editing import one_site
from fleet import POLICY, PROMOTION, START, Fleet
from moving import NEW, place, two_sites

from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.policy_history import read_policy_history

ANN = ("--by", "Ann <ann@example.com>")
RECORDS_BRANCH = "fanout/default/default/monitoring"
AUTOMATIC = "automatic (everything)"
URGENT = "Ann, promote with override after, soak: urgent"
SIGNED = "requires: [{name: signed, approval: {atLeast: 1, from: [sre]}}]"


@company
def fleet(root: Path) -> Fleet:
    """Return dev and prod at v1; prod at v2 by override, and taken back to v1."""
    made = Fleet.build(root)
    made.settle()
    made.later(minutes=5).report("dev", "v1")
    made.settle()
    made.later(hours=2).settle()
    made.release("v2")
    made.later(minutes=1).settle()
    prod = ("monitoring", "--stage", "prod", *ANN)
    overrides = ("--override", "after", "--override", "soak")
    made.later(minutes=1).run(
        "promote", *prod, "--revision", "v2", "--reason", "urgent", *overrides
    )
    made.later(minutes=1).settle()
    assert made.later(minutes=1).run("rollback", *prod, "--reason", "bad", "--yes").code == 0
    return made


def rows(fleet: Fleet, *args: str) -> list[str]:
    """Return the lines of the table, without its head and with single spaces."""
    result = fleet.run("history", *args)
    assert result.code == 0, result.err
    return [" ".join(line.split()) for line in result.out.splitlines()[1:]]


def admissions(fleet: Fleet, variant: str) -> list[tuple[str, str]]:
    """Return type and person of what let each publication in, newest first."""
    items = fleet.run("history", f"monitoring/{variant}", "-o", "json").items
    return [(it["status"]["admission"]["type"], it["status"]["admission"]["by"]) for it in items]


# ---- what was in force when --------------------------------------------------------------------

POLICY_TABLE = """\
BEGAN (UTC)        STAGE   REVISION   VARIANTS   PASSED     RELEASED BY
2026-03-02 11:09   prod    v1         2          <none>     Ann, rollback: bad
2026-03-02 11:08   prod    v2         2          after 0s   Ann, promote with override after, soak: urgent
2026-03-02 11:06   dev     v2         1          <none>     automatic (everything)
2026-03-02 11:05   prod    v1         2          after 0s   automatic (everything)
2026-03-02 09:00   dev     v1         1          after 5m   automatic (everything)
"""  # noqa: E501


def test_a_policy_shows_each_revision_of_each_stage(fleet: Fleet):
    assert fleet.run("history", "monitoring").out == POLICY_TABLE


def test_a_stage_shows_its_revisions_alone(fleet: Fleet):
    assert [row.split()[2:4] for row in rows(fleet, "monitoring/prod")] == [
        ["prod", "v1"], ["prod", "v2"], ["prod", "v1"],
    ]  # fmt: skip


def test_a_variant_shows_each_publication(fleet: Fleet):
    edge = fleet.repos["edge"]
    commits = [edge.git("rev-parse", f"sites/ber/v{it}")[:8] for it in (3, 2, 1)]
    assert rows(fleet, "monitoring/prod/ber") == [
        f"2026-03-02 11:09 v3 v1 {commits[0]} <none> 0 Ann, rollback: bad",
        f"2026-03-02 11:08 v2 v2 {commits[1]} <none> 0 {URGENT}",
        f"2026-03-02 11:05 v1 v1 {commits[2]} <none> 0 {AUTOMATIC}",
    ]


def test_rollbacks_and_overrides_are_distinguished(fleet: Fleet):
    [back, urgent, first] = fleet.run("history", "monitoring/prod/ber", "-o", "json").items
    assert back["status"]["admission"]["type"] == "RolledBack"
    assert urgent["status"]["admission"] == {
        "type": "Promoted",
        "by": "Ann <ann@example.com>",
        "decision": fleet.run("get", "decisions", "-o", "json").items[0]["metadata"]["name"],
        "reason": "urgent",
        "overrides": ["after", "soak"],
        "promotionPolicies": [],
        "message": URGENT,
    }
    assert first["status"]["admission"]["promotionPolicies"] == ["everything"]
    assert [it["status"]["state"] for it in (back, urgent, first)] == [
        "InForce", "Replaced", "Replaced",
    ]  # fmt: skip
    assert first["status"]["until"] == urgent["metadata"]["creationTimestamp"]


def test_entries_have_unique_names(fleet: Fleet):
    for subject in ("monitoring", "monitoring/prod/ber"):
        names = fleet.run("history", subject, "-o", "name").out.splitlines()
        assert len(set(names)) == len(names) > 1
    assert names[0] == "publicationview.fanout.dev/monitoring-ber-928771694f/v3"


@pytest.mark.parametrize(
    ("args", "count", "first"),
    [
        (("--limit", "2"), 2, "11:09"),
        (("--reverse",), 5, "09:00"),
        (("--limit", "2", "--reverse"), 2, "11:08"),
        (("--since", "2m"), 2, "11:09"),
        (("--since", "2026-03-02T11:06:00Z"), 3, "11:09"),
        (("--since", "2026-03-02T12:06:00+01:00", "--reverse"), 3, "11:06"),
    ],
)
def test_entries_are_limited_and_ordered(fleet: Fleet, args, count, first):
    table = rows(fleet, "monitoring", *args)
    assert (len(table), table[0].split()[1]) == (count, first)


BAD = [
    (("monitoring/nowhere",), "there is no stage nowhere; there are: dev, prod"),
    (("monitoring/prod/ams",), "there is no variant ams; there are:"),
    (("nothing",), "there is no policy nothing; there are: monitoring"),
    (("monitoring", "--since", "2d"), "--since: 2d: 2d is in days"),
    (("monitoring", "--since", "2026-03-02"), "'2026-03-02' is not a time"),
    (("monitoring", "--limit", "0"), "0 is not in the range x>=1"),
]


@pytest.mark.parametrize(("args", "message"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_bad_input_gets_a_message(fleet: Fleet, args, message):
    result = fleet.run("history", *args)
    assert result.code in (1, 2)
    assert message in result.err
    assert result.out == ""


def test_a_policy_that_published_nothing_has_no_history(tmp_path: Path):
    made = Fleet.build(tmp_path)
    result = made.run("history", "monitoring")
    assert (result.code, result.out, result.err) == (0, "", "nothing was published\n")
    assert made.run("history", "monitoring", "-o", "json").items == []


def test_records_list_publications_beside_statements_of_people(fleet: Fleet):
    kinds = [it["kind"] for it in fleet.run("get", "records", "-o", "json").items]
    assert kinds == [
        "PublicationView", "Evidence", "PublicationView", "PublicationView", "PublicationView",
        "Decision", "PublicationView", "PublicationView", "Decision", "PublicationView",
        "PublicationView",
    ]  # fmt: skip
    in_prod = fleet.run("get", "publications", "--stage", "prod", "-o", "name").out.splitlines()
    assert len(in_prod) == 6
    last = fleet.run("get", "records", "-o", "wide").out.splitlines()[-1].split()
    assert last[:6] == ["0s", "Publication", "v1", "sites/cph/v3", "InForce", "ann@example.com"]
    assert last[8:10] == ["monitoring-cph-78e79ab5bd/v3", "monitoring-cph-78e79ab5bd"]


# ---- what is known about a publication ---------------------------------------------------------


def test_evidence_is_that_of_the_publication(fleet: Fleet):
    fleet.report("dev", "v2", "failed", "--link", "https://ci.example.com/7")
    [second, first] = fleet.run("history", "monitoring/dev/ams", "-o", "json").items
    [answer] = second["status"]["evidence"]
    assert (answer["check"], answer["result"]) == ("e2e", "Failed")
    assert (answer["by"], answer["link"]) == ("Ci <ci@example.com>", "https://ci.example.com/7")
    assert [it["result"] for it in first["status"]["evidence"]] == ["Passed"]
    assert " e2e=Failed " in rows(fleet, "monitoring/dev/ams")[0]


def test_evidence_about_a_commit_counts_where_the_package_is_the_same(fleet: Fleet):
    later = fleet.repos["edge"].commit("main", {"other.txt": "beside\n"})
    line = ("--stage", "dev", "--check", "e2e", "--status", "passed", "--commit", later)
    assert fleet.run("report", "monitoring", *line, "--variant", "ams", *ANN).code == 0
    [second, first] = fleet.run("history", "monitoring/dev/ams", "-o", "json").items
    assert [it["by"] for it in second["status"]["evidence"]] == ["Ann <ann@example.com>"]
    assert len(first["status"]["evidence"]) == 1


def test_approvals_are_those_of_the_published_draft(tmp_path: Path):
    made = Fleet.build(tmp_path)
    policy = POLICY.replace(", verification: [{name: e2e, report: {}}]", "")
    made.write("policy.yaml", policy.replace("soak: 1h}", f"soak: 0s}}, {SIGNED}"))
    made.settle()
    line = ("--stage", "prod", "--revision", "v1")
    assert made.later(minutes=1).run("approve", "monitoring", *line, *ANN).code == 0
    made.settle()
    [published] = made.run("history", "monitoring/prod/ber", "-o", "json").items
    [approval] = published["status"]["approvals"]
    assert (approval["by"], approval["check"]) == ("Ann <ann@example.com>", "signed")
    assert "Ann <ann@example.com>" in made.run("history", "monitoring/prod/ber", "-o", "wide").out


def approvers(fleet: Fleet) -> list[tuple[str, list[str]]]:
    """Return revision and approvers of each publication of the variant ber, newest first."""
    items = fleet.run("history", "monitoring/prod/ber", "-o", "json").items
    return [
        (it["spec"]["revision"], [approval["by"] for approval in it["status"]["approvals"]])
        for it in items
    ]


def signed_fleet(root: Path, check: str) -> Fleet:
    """Return a company where prod requires the approval check, with a draft of v1 there."""
    made = Fleet.build(root)
    policy = POLICY.replace(", verification: [{name: e2e, report: {}}]", "")
    made.write("policy.yaml", policy.replace("soak: 1h}", f"soak: 0s}}, {check}"))
    made.settle()
    return made


def approve(fleet: Fleet, person: str, *more: str) -> None:
    line = ("approve", "monitoring", "--stage", "prod", "--revision", "v1", *more)
    assert fleet.later(minutes=1).run(*line, "--by", f"{person} <{person}@example.com>").code == 0


PEOPLE = "subjects: [ann@example.com, bob@example.com]"


def test_a_person_who_was_not_entitled_is_no_approver(tmp_path: Path):
    made = signed_fleet(tmp_path, SIGNED.replace("atLeast: 1", "atLeast: 2"))
    approve(made, "bob")
    three = PROMOTION.replace(PEOPLE, "subjects: [ann@example.com, cat@example.com]")
    made.write("promotion.yaml", three)
    approve(made, "ann")
    approve(made, "cat")
    made.settle()
    assert approvers(made) == [("v1", ["ann <ann@example.com>", "cat <cat@example.com>"])]


def test_a_person_entitled_after_the_release_is_an_approver(tmp_path: Path):
    made = signed_fleet(tmp_path, SIGNED)
    policy = (made.root / "policies/policy.yaml").read_text()
    made.write("policy.yaml", policy.replace("soak: 0s", "soak: 3h"))
    approve(made, "ann")
    made.write("promotion.yaml", PROMOTION.replace(PEOPLE, "subjects: [bob@example.com]"))
    made.later(hours=4).settle()  # released
    assert approvers(made) == []
    made.write("promotion.yaml", PROMOTION)
    made.later(minutes=1).settle()
    assert approvers(made) == [("v1", ["ann <ann@example.com>"])]


def test_an_expired_approval_is_none(tmp_path: Path):
    made = signed_fleet(tmp_path, SIGNED.replace("1, from", "2, expires: 30m, from"))
    approve(made, "ann")
    made.later(hours=1).settle()
    approve(made, "bob")
    assert approvers(made) == []
    policy = (made.root / "policies/policy.yaml").read_text()
    made.write("policy.yaml", policy.replace("2, e", "1, e"))
    made.settle()
    assert approvers(made) == [("v1", ["bob <bob@example.com>"])]


def test_an_approval_that_an_override_made_needless_is_none(tmp_path: Path):
    made = signed_fleet(tmp_path, SIGNED.replace("atLeast: 1", "atLeast: 2"))
    approve(made, "ann")
    override = ("--override", "requires", "--revision", "v1", "--reason", "now")
    made.later(minutes=1).run("promote", "monitoring", "--stage", "prod", *override, *ANN)
    made.settle()
    assert approvers(made) == [("v1", [])]


def test_a_rollback_has_no_approvers(tmp_path: Path):
    made = signed_fleet(tmp_path, SIGNED)
    approve(made, "ann")
    made.settle()
    made.release("v2")
    made.later(minutes=1).settle()
    line = ("--stage", "prod", "--revision", "v2")
    assert made.later(minutes=1).run("approve", "monitoring", *line, *ANN).code == 0
    made.settle()
    back = ("rollback", "monitoring", "--stage", "prod", "--reason", "bad", "--yes", *ANN)
    assert made.later(minutes=1).run(*back).code == 0
    made.settle()
    assert approvers(made) == [
        ("v1", []), ("v2", ["Ann <ann@example.com>"]), ("v1", ["ann <ann@example.com>"]),
    ]  # fmt: skip


def test_a_conflict_shows_what_it_dropped(tmp_path: Path):
    made = one_site(tmp_path)
    policy = (tmp_path / "policies" / "policy.yaml").read_text()
    made.write(
        "policy.yaml", policy.replace("  stages:\n", "  onConflict: UpstreamWins\n  stages:\n")
    )
    edit = made.repos["edge"].file("main", "sites/ams/deployment.yaml")
    made.repos["edge"].commit(
        "main", {"sites/ams/deployment.yaml": edit.replace("replicas: 1", "replicas: 7")}
    )
    made.release("v2")
    made.later(minutes=1).settle()
    [second, first] = made.run("history", "monitoring/ams", "-o", "json").items
    field = "deployment.yaml: Deployment/prometheus: spec.replicas"
    [dropped] = second["status"]["dropped"]
    key, _, conflict = dropped.partition(" ")
    assert len(key) == 16
    assert conflict == f"{field}: upstream 2 stands, local 7 not taken (base 1)"
    assert first["status"]["dropped"] == []
    assert rows(made, "monitoring/ams")[0].split()[6] == "1"
    assert "local 7 not taken" in made.run("history", "monitoring/ams", "-o", "wide").out


def test_a_merge_by_a_person_is_out_of_band(tmp_path: Path):
    made = Fleet.build(tmp_path)
    made.write("promotion.yaml", PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', ""))
    made.settle()
    edge = made.repos["edge"]
    tree = edge.git("rev-parse", "drafts/default/sites/ams/monitoring^{tree}")
    merge = edge.git(
        "-c", "user.name=Bob", "-c", "user.email=bob@example.com", "commit-tree", tree,
        "-p", "main", "-p", "drafts/default/sites/ams/monitoring", "-m", "Merge by hand",
    )  # fmt: skip
    edge.git("update-ref", "refs/heads/main", merge)
    made.later(minutes=1).settle()
    assert admissions(made, "dev/ams") == [("OutOfBand", "Bob <bob@example.com>")]
    assert rows(made, "monitoring")[0].endswith("out of band: merged by Bob")


# ---- what is not there any more ----------------------------------------------------------------


def test_a_moved_variant_shows_both_places(tmp_path: Path):
    made = two_sites(tmp_path)
    place(made, "ams", NEW)
    made.later(minutes=1).settle()
    [new, old] = made.run("history", "monitoring/ams", "-o", "json").items
    assert [it["spec"]["path"] for it in (new, old)] == [NEW, "sites/ams"]
    assert [it["status"]["state"] for it in (new, old)] == ["InForce", "Replaced"]
    assert made.run("history", "monitoring/dev/sites/ams", "-o", "json").items == [new, old]


def test_a_removed_variant_is_found_by_its_names(tmp_path: Path):
    made = two_sites(tmp_path)
    made.remove("site-ber.yaml")
    made.later(minutes=1).settle()
    for name in ("ber", "sites/ber", "dev/ber"):
        [removed] = made.run("history", f"monitoring/{name}", "-o", "json").items
        assert removed["status"]["state"] == "Removed"
        assert removed["status"]["until"] == "2026-03-02T09:01:00Z"


def test_publications_before_lost_records_are_read_from_the_repository(fleet: Fleet):
    before = fleet.run("history", "monitoring/prod/ber", "-o", "json").items
    shutil.rmtree(fleet.root / fleet.state)
    fleet.later(days=1).sweep("--new-records")
    after = fleet.run("history", "monitoring/prod/ber", "-o", "json").items
    for field in ("creationTimestamp", "name"):
        assert [it["metadata"][field] for it in after] == [it["metadata"][field] for it in before]
    for field in ("commit", "tag", "tree", "until", "state"):
        assert [it["status"].get(field) for it in after] == [
            it["status"].get(field) for it in before
        ]
    assert [it["spec"] for it in after] == [it["spec"] for it in before]
    assert {it["status"]["admission"]["type"] for it in after} == {"Unknown"}
    assert all(it["status"]["recovered"] for it in after)


def without_releasers(text: str) -> str:
    """Return a status file as versions before wrote it, whose releases named no objects."""
    for entry in ("PromotionPolicy/everything", "Decision/"):
        start = text.find(f'"by":["{entry}')
        if start >= 0:
            end = text.index("],", start) + 2
            text = text[:start] + text[end:]
    return text


def test_releases_of_older_versions_name_decisions_and_assume_no_automation(fleet: Fleet):
    records = fleet.records()
    commits = records.git("rev-list", "--reverse", RECORDS_BRANCH).splitlines()
    parent = ""
    for commit in commits:
        listing = records.git("ls-tree", "-r", commit).splitlines()
        lines = []
        for line in listing:
            mode, kind, oid, path = line.replace("\t", " ").split(" ")
            content = records.git("cat-file", "blob", oid) + "\n"
            old = without_releasers(content) if path.startswith("status/") else content
            if old != content:
                oid = records.git("hash-object", "-w", "--stdin", input=old)
            lines.append((path, f"{mode} {kind} {oid}"))
        trees = {
            name: records.git(
                "mktree", input="".join(f"{row}\t{path.rpartition('/')[2]}\n" for path, row in lines
                                        if path.startswith(f"{name}/"))
            )
            for name in sorted({path.split("/")[0] for path, _ in lines})
        }  # fmt: skip
        tree = records.git(
            "mktree", input="".join(f"040000 tree {it}\t{n}\n" for n, it in trees.items())
        )
        header = records.git("cat-file", "commit", commit).split("\n")
        body = [line for line in header if not line.startswith(("tree ", "parent "))]
        top = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
        parent = records.git(
            "hash-object", "-t", "commit", "-w", "--stdin", input="\n".join([*top, *body]) + "\n"
        )
    records.git("update-ref", f"refs/heads/{RECORDS_BRANCH}", parent)
    shutil.rmtree(fleet.root / fleet.state / "heads")
    assert admissions(fleet, "prod/ber") == [
        ("RolledBack", "Ann <ann@example.com>"),
        ("Promoted", "Ann <ann@example.com>"),
        ("Unknown", ""),
    ]


def test_a_variant_written_by_hand_shows_its_publications(tmp_path: Path):
    made = Fleet.build(tmp_path)
    made.remove("policy.yaml")
    made.write(
        "mine.yaml",
        "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: mine}\nspec:\n"
        "  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}\n"
        "  downstream: {repository: edge, package: own/mine}\n",
    )
    made.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    made.settle()
    [published] = made.run("history", "mine", "-o", "json").items
    assert published["spec"]["policy"] == ""
    assert published["metadata"]["name"] == "mine/v1"
    assert published["status"]["admission"]["message"] == AUTOMATIC


# ---- what it costs -----------------------------------------------------------------------------


def test_the_history_starts_no_git_process_beyond_the_pass(tmp_path: Path):
    processes = []
    for count in (3, 30):
        sites = {f"s{number:02d}": ("dev", "edge") for number in range(count)}
        root = tmp_path / str(count)
        root.mkdir()
        made = Fleet.build(root, sites)
        made.settle()
        made.release("v2")
        made.later(minutes=1).settle()
        with made.opened() as program:
            [item] = program.observe(PassMode()).policies
            program.world.counters.reset()
            history = read_policy_history(program.world, item)
            processes.append(program.world.counters.read().get("git_processes", 0))
        assert len(history.entries) == 2 * count
        assert history.entries[0].at == START
    assert processes == [0, 0]


# ---- what cannot be read -----------------------------------------------------------------------


def mirror_of(fleet: Fleet, url: str) -> Path:
    configs = (fleet.root / fleet.state / "mirrors").glob("*/config")
    return next(it.parent for it in configs if url in it.read_text())


def list_status(records: Path, commit: str) -> set[str]:
    """Return the ids of the status files of a policy at a commit of its records."""
    command = ["git", "-C", records, "ls-tree", "-r", "--object-only", commit, "status"]
    return set(subprocess.check_output(command, text=True).split())


def spoil_object(repository: Path, oid: str) -> None:
    """Make one object of a repository unreadable, and leave all others alone."""
    for number, pack in enumerate((repository / "objects" / "pack").glob("*.pack")):
        away = repository / f"{number}.pack"
        pack.rename(away)
        pack.with_suffix(".idx").unlink()
        command = ["git", "-C", repository, "unpack-objects", "-q"]
        subprocess.run(command, input=away.read_bytes(), check=True)
    loose = repository / "objects" / oid[:2] / oid[2:]
    loose.chmod(0o600)
    loose.write_bytes(b"no object")


def test_a_repository_that_cannot_be_read_hides_only_what_it_alone_knows(tmp_path: Path):
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "core")})
    made.settle()
    made.release("v2")
    made.later(minutes=1).settle()
    first = made.repos["core"].git("rev-parse", "sites/ber/v1")
    before = made.run("get", "publications", "-o", "json").items
    url = str(made.repos["core"].path)
    made.repos["core"].git("pack-refs", "--all")  # else the listing looks at the commits of tags
    spoil_object(mirror_of(made, url), first)
    result = made.run("get", "records", "-o", "json")
    assert [it["metadata"]["name"] for it in result.items] == [
        it["metadata"]["name"] for it in before
    ]
    assert result.code == 3
    assert [url in line for line in result.err.splitlines()] == [True]
    # The mirror is marked as damaged, and the next command makes it again.
    assert made.run("get", "records").code == 0
    spoil_object(mirror_of(made, url), first)
    of_policy = made.run("history", "monitoring")
    assert (of_policy.code, of_policy.err) == (3, result.err)
    assert len(of_policy.out.splitlines()) == 3


def test_a_repository_that_is_away_is_named_beside_its_publications(tmp_path: Path):
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "core")})
    made.settle()
    made.repos["core"].path.rename(tmp_path / "away")
    result = made.run("get", "publications", "-o", "json")
    assert [it["spec"]["path"] for it in result.items] == ["sites/ams", "sites/ber"]
    assert (result.code, len(result.err.splitlines())) == (3, 1)
    assert f"repository {made.repos['core'].path}: " in result.err


def test_a_damaged_history_of_one_policy_hides_no_record_of_another(tmp_path: Path):
    made = Fleet.build(tmp_path)
    made.policy("logging")
    made.settle()
    made.release("v2")
    made.later(minutes=1).settle()
    records = made.root / made.state / "records.git"
    statuses = [list_status(records, it) for it in (f"{RECORDS_BRANCH}~2", RECORDS_BRANCH)]
    spoil_object(mirror_of(made, str(records)), min(statuses[0] - statuses[1]))
    result = made.run("get", "records", "-o", "json")
    assert {it["spec"]["policy"] for it in result.items} == {"logging"}
    assert result.code == 3
    assert ["monitoring" in line for line in result.err.splitlines()] == [True]


def test_damaged_records_are_named_once_and_fetched_again(tmp_path: Path):
    made = Fleet.build(tmp_path)
    made.settle()
    records = made.root / made.state / "records.git"
    spoil_object(mirror_of(made, str(records)), min(list_status(records, RECORDS_BRANCH)))
    result = made.run("get", "records")
    assert (result.code, result.out, len(result.err.splitlines())) == (1, "", 1)
    assert made.run("get", "records").code == 0
