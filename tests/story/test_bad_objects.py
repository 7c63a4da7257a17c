"""What is wrong in files: told all at once with file, line and field; the rest is served.

One company with one file per fault beside the sound ones.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION, Fleet, Result

HEAD = "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
ON = "apiVersion: fanout.dev/v1alpha1\nkind: UpstreamPolicy\n"
CYCLE = POLICY.replace("monitoring}", "cycle}", 1).replace(
    "{name: dev,", "{name: dev, after: {stages: [prod]},"
)
NOBODY = POLICY.replace("name: monitoring", "name: nobody").replace("sites/", "nobody/")
NOBODY = NOBODY.replace("target.metadata.labels.tier", "\"'prod'\"")
LATER = NOBODY.replace("nobody", "later") + "  history: 5\n"
DECISION = """\
apiVersion: fanout.dev/v1alpha1
kind: Decision
metadata: {name: x6}
spec: {policy: monitoring, action: Suspend}
"""
MARKED = b"\xef\xbb\xbf" + (HEAD + "metadata: {name: x7}\nspec: {url: /x}\n").encode()
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

# File, its bytes, and what is told: place, object and field, problem and remedy.
FAULTS = [
    ("an unknown field", "field", HEAD + "metadata: {name: x1}\nspec: {url: /x, brunch: main}\n",
     ":4: Repository/x1: spec.brunch: ", "did you mean branch?"),
    ("a wrong type", "type", HEAD + "metadata: {name: x2}\nspec: {url: /x, branch: 7}\n",
     ":4: Repository/x2: spec.branch: ", ""),
    ("a key that stands twice", "twice",
     HEAD + "metadata: {name: x3}\nspec:\n  url: /x\n  url: /y\n",
     ":6: ", ""),
    ("tabs", "tabs", HEAD + "metadata:\n\tname: x4\n", ":4: ", "indent with spaces"),
    ("bytes that are no UTF-8", "bytes", b"a: \xff\n", ":1: ", "save the file as UTF-8"),
    ("a YAML bomb", "bomb", BOMB, ":", ""),
    ("a cycle of stages", "cycle", CYCLE,
     ":15: UpstreamPolicy/cycle: spec.stages[0].after.stages[0]: ", "remove one of these"),
    ("two objects of one name", "two",
     2 * (HEAD + "metadata: {name: x5}\nspec: {url: /x}\n---\n"),
     ":8: Repository/x5: metadata.name: ", "rename or remove one"),
    ("a field of a later release", "later",
     LATER,
     ":17: UpstreamPolicy/later: spec.history", "not supported yet"),
    ("a record among declarations", "record",
     DECISION,
     ":2: Decision/x6: kind: ", "use fanout promote, suspend or resume"),
]  # fmt: skip
# No fault at all, though other programs stumble over them.
SOUND = [
    ("an empty document", "empty", "---\n---\n# nothing\n"),
    ("a byte order mark", "mark", MARKED),
    ("a stage that nobody is in", "nobody", NOBODY),
]


@dataclass(frozen=True)
class Story:
    """What happened in the company."""

    fleet: Fleet
    validated: Result
    swept: Result


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    fleet = Fleet.build(tmp_path_factory.mktemp("company"), {"ams": ("dev", "edge")})
    for _, name, content, *_ in (*FAULTS, *SOUND):
        path = fleet.write(f"bad-{name}.yaml", "")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Story(fleet, fleet.run("validate"), fleet.sweep())


def test_all_errors_are_reported_in_a_run_and_sound_objects_are_served(story: Story):
    assert (story.validated.code, story.swept.code) == (2, 3)
    drafts = ["nobody/ams/nobody", "sites/ams/monitoring"]
    assert story.fleet.repos["edge"].drafts() == drafts


@pytest.mark.parametrize(
    ("_", "name", "content", "place", "remedy"), FAULTS, ids=[row[0] for row in FAULTS]
)
def test_a_fault_has_its_place_and_a_remedy(story: Story, _, name, content, place, remedy):
    file = story.fleet.root / story.fleet.policies / f"bad-{name}.yaml"
    [line] = [line for line in story.validated.out.splitlines() if f"{file}{place}" in line]
    assert not line.startswith("warning")
    assert "; " in line
    assert remedy in line
    assert line in story.swept.err


@pytest.mark.parametrize(("_", "name", "content"), SOUND, ids=[row[0] for row in SOUND])
def test_odd_objects_are_no_error(story: Story, _, name, content):
    lines = [it for it in story.validated.out.splitlines() if f"bad-{name}.yaml" in it]
    assert [line for line in lines if not line.startswith("warning")] == []


def test_a_stage_that_nobody_is_in_waits_and_says_so(story: Story):
    result = story.fleet.run("explain", "nobody/dev")
    assert result.code == 3  # other files of this company have faults
    assert "NoTargets" in result.out


def test_a_policy_with_an_error_is_not_reported_missing(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.policy("broken", ("stageExpr:", "stageExp:"))
    refused = fleet.run("approve", "broken", "--stage", "dev", "--by", "Ann <ann@example.com>")
    assert refused.code == 2
    assert "UpstreamPolicy/broken: spec.targets[0].template.stageExp: " in refused.err
    absent = fleet.run("approve", "absent", "--stage", "dev", "--by", "Ann <ann@example.com>")
    assert (absent.code, "there is no policy absent" in absent.err) == (1, True)


def test_an_unreadable_file_switches_automatic_promotion_off(story: Story):
    """Fail closed: it may have been there to restrict somebody."""
    before = story.fleet.refs()
    swept = story.fleet.sweep()
    assert (swept.code, swept.out) == (3, "nothing to do; failed: 10 errors in the objects\n")
    assert story.fleet.refs() == before
    file = story.fleet.root / story.fleet.policies / "bad-tabs.yaml"
    assert (
        f"automatic promotion is off while {file} cannot be read: a PromotionPolicy can restrict"
        " what others allow; correct it" in swept.err
    )


WINDOW = """\
  windows:
  - deny: {schedule: "0 0 20 12 *", duration: 336h, timeZone: Europe/Oslo}
"""
PROMOTIONS = [
    ("has a fault", PROMOTION.replace("policies:", "polices:")),
    ("is there twice", f"{PROMOTION}---\n{PROMOTION}"),
    ("is no YAML", PROMOTION.replace("  policies", "\tpolicies")),
    ("has a schedule that is none", f'{PROMOTION}  schedule: "*/2 * * *"\n'),
    ("has a window that is none", f"{PROMOTION}{WINDOW}".replace("0 20 12", "0 31 2")),
    ("has a window in a zone that is none", f"{PROMOTION}{WINDOW}".replace("Oslo", "Olso")),
    ("has a zone that is none", f'{PROMOTION}  schedule: "0 9 * * *"\n  timeZone: Oslo\n'),
]


@pytest.mark.parametrize("text", [row[1] for row in PROMOTIONS], ids=[row[0] for row in PROMOTIONS])
def test_a_promotion_policy_that_cannot_be_used_keeps_automation_off(tmp_path: Path, text: str):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.sweep("--drafts-only")
    fleet.write("restricting.yaml", text.replace("name: everything", "name: restricting"))
    swept = fleet.sweep()
    assert swept.code == 3
    assert swept.out.startswith("nothing to do; failed: ")
    assert fleet.repos["edge"].tags() == []
    fleet.remove("restricting.yaml")
    fleet.sweep()
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


LABELS = [
    ("a number", "{tier: 1}", 'matchLabels: {tier: "1"}', False),
    ("a truth value", "{tier: dev, monitored: on}", 'matchLabels: {monitored: "on"}', False),
    ("a number that nobody asks for", "{tier: dev, size: 3}", "matchLabels: {tier: dev}", True),
]


@pytest.mark.parametrize(
    ("_", "labels", "selector", "served"), LABELS, ids=[row[0] for row in LABELS]
)
def test_a_target_whose_label_is_no_text_is_reported_by_name(
    tmp_path: Path, _, labels: str, selector: str, served: bool
):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    site = fleet.root / fleet.policies / "site-ams.yaml"
    site.write_text(site.read_text().replace("{tier: dev}", labels))
    fleet.write("policy.yaml", POLICY.replace("kind: Cluster}", f"kind: Cluster, {selector}}}"))
    validated, swept = fleet.run("validate"), fleet.sweep()
    assert (validated.code, swept.code) == (2, 3)
    assert f"{site}:3: Cluster/ams: metadata.labels." in validated.out
    assert "quote it" in validated.out
    assert fleet.repos["edge"].drafts() == (["sites/ams/monitoring"] if served else [])
    [target] = fleet.run("get", "targets", "-o", "json").views
    assert (target["target"], target["state"]) == (
        "Cluster.infra.example.com/default/ams",
        "Proposed" if served else "Failed",
    )
    if not served:
        assert "cannot decide whether Cluster.infra.example.com/default/ams is a targ" in swept.err
