"""`make demo`: a complete rollout on local repositories, which stay under build/demo/.

Needs no network, account or cluster. The commands are those of a user; FANOUT_NOW sets the time, so
that no soak time has to be waited for. Exits with 1 if a result differs from the expected one.
"""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from command_runner import FANOUT, CommandRunner, UnexpectedResultError
from demo_fleet import CLUSTERS, DemoFleet

ROOT = Path(__file__).parent.parent / "build" / "demo"
MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANN, BOB, CI = (f'--by "{name} <{name.lower()}@example.com>"' for name in ("Ann", "Bob", "Ci"))

PASSED = "--check e2e --status passed"


def main() -> int:
    """Run all chapters. Return the exit code."""
    start = time.monotonic()
    fleet, runner = DemoFleet(ROOT), CommandRunner(ROOT, MONDAY)
    try:
        prepare(fleet, runner)
        fan_out(fleet, runner)
        publish_first_stages(fleet, runner)
        fail_one_variant(fleet, runner)
        release_fix(fleet, runner)
        promote_to_production(fleet, runner)
        show_git_history(runner)
    except UnexpectedResultError as error:
        print(f"\nunexpected result: {error}", file=sys.stderr)
        return 1
    print(f"\n{runner.commands_run} commands, {time.monotonic() - start:.0f} seconds.")
    return 0


def prepare(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Create repositories and objects, and validate them."""
    runner.chapter("The fleet")
    runner.describe(
        "Six downstream repositories with four clusters each, and the upstream repository of the"
        " package `monitoring`, all on this disk. Policies, repositories and clusters are files."
    )
    fleet.create(runner.now)
    print("$ cd build/demo\n$ export FANOUT_FILES=policies")
    runner.describe("`validate` reports every error of every file, with its line.")
    runner.fanout("validate")


def fan_out(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Write 24 drafts, and show one."""
    runner.chapter("Fan out", minutes=1)
    runner.describe("`plan` shows what a sweep would do, and changes nothing.")
    runner.fanout("plan", lines=5)
    runner.describe("`sweep` writes a draft for every cluster. A draft is a branch.")
    runner.fanout("sweep")
    runner.check(
        count_drafts(fleet), 24, "24 draft branches in 6 repositories; no main branch has moved"
    )
    runner.describe("`diff` shows the draft of one cluster, with its own namespace and settings.")
    text = runner.fanout("diff eu-north:clusters/osl --against upstream", lines=14)
    runner.check(
        '+  retention: "30d"' in text or "+  retention: 30d" in text, True, "osl keeps 30d"
    )


def publish_first_stages(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Publish in the first stages, report evidence, and pass a gate with `require: Any`."""
    runner.chapter("The first stages", minutes=30)
    runner.describe("The next sweep publishes in dev-eu and dev-us, which have no earlier stage.")
    runner.fanout("sweep")
    runner.check(fleet.published(), {"v1": 4, "none": 20}, "4 variants are published, 20 wait")
    runner.describe("A pipeline reports the result of its tests.")
    runner.fanout(f"report monitoring --stage dev-eu {PASSED} --revision v1 {CI}")
    runner.describe("staging has `require: Any`, so dev-eu alone is sufficient.")
    runner.fanout("sweep")
    runner.check(fleet.published(), {"v1": 10, "none": 14}, "6 variants of staging are published")


def fail_one_variant(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Let one variant fail, which holds its stage and the stage after it."""
    runner.chapter("One variant fails", hours=1)
    runner.describe("The tests fail in one of the two clusters of dev-us.")
    runner.fanout(
        "report monitoring --stage dev-us --variant clusters/sea --check e2e --status failed"
        f" --revision v1 --link https://ci.example.com/17 {CI}"
    )
    runner.describe(
        "A sweep reports the failure, publishes nothing in prod, and exits with code 3."
    )
    runner.fanout("sweep", exits_with=3)
    runner.describe("`status` shows the fleet on one screen, and first what needs a person.")
    runner.fanout("status", exits_with=3, lines=24)
    runner.describe(
        "`explain` lists what blocks prod, which needs all three stages, and how to unblock it."
    )
    text = runner.fanout("explain monitoring/prod", lines=24)
    blocked = "AfterFailed" in text and "fanout skip monitoring --stage dev-us" in text
    runner.check(blocked, True, "sea blocks dev-us, and dev-us blocks prod")
    runner.check(fleet.published("prod"), {"none": 14}, "nothing is published in prod")


def release_fix(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Release a fix upstream, which passes through the same stages."""
    runner.chapter("A new upstream revision", hours=2)
    runner.describe("The authors of the package raise a memory limit and tag v2, with plain git.")
    fleet.edit("deployment.yaml", "limits: {memory: 2Gi}", "limits: {memory: 4Gi}")
    fleet.release("v2", "Give Prometheus room for the large clusters", runner.now)
    runner.git("-C blueprints log --oneline --decorate -2")
    runner.describe(
        "The first sweep writes drafts of v2, the second publishes in dev-eu and dev-us."
    )
    runner.fanout("sweep")
    runner.fanout("sweep")
    runner.check(fleet.published("dev-us"), {"v2": 2}, "dev-us has v2")
    runner.describe("This time both stages pass, and staging follows: drafts, then publications.")
    for stage in ("dev-eu", "dev-us"):
        runner.fanout(f"report monitoring --stage {stage} {PASSED} --revision v2 {CI}")
    runner.fanout("sweep")
    runner.fanout("sweep")
    runner.fanout(f"report monitoring --stage staging {PASSED} --revision v2 {CI}")


def promote_to_production(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Wait for the soak time, approve, and promote manually."""
    runner.chapter("Production", minutes=5)
    runner.describe("The next sweep starts the soak time: a day, in all three stages.")
    runner.fanout("sweep")
    runner.fanout("status", lines=24)
    runner.chapter("A day later", hours=25)
    runner.describe("Two people of the group `sre` approve the current drafts.")
    for approver in (ANN, BOB):
        runner.fanout(f"approve monitoring --stage prod --revision v2 {approver}")
    runner.describe(
        "Automatic promotion is off for prod, so a person promotes, through the same gates."
    )
    runner.fanout(f'promote monitoring --stage prod --reason "change 4711" {ANN}')
    runner.check(fleet.published("prod"), {"none": 13, "v2": 1}, "one of the 14 has v2")
    roll_out_in_waves(fleet, runner)


def roll_out_in_waves(fleet: DemoFleet, runner: CommandRunner) -> None:
    """Roll out in waves inside a stage that tolerates one failure."""
    report_passed = f"report monitoring --stage prod {PASSED} --revision v2 {CI}"
    runner.chapter("Waves", minutes=20)
    runner.describe("The rollout of prod releases one variant, then six for each that is ready.")
    runner.fanout("explain monitoring/prod", lines=24)
    runner.fanout(report_passed)
    runner.fanout("sweep")
    runner.check(fleet.published("prod"), {"none": 7, "v2": 7}, "seven of 14 have v2")
    runner.chapter("A failure within the tolerance", minutes=20)
    runner.describe(
        "Five of the six pass. The stage tolerates one failure; a second one would halt it."
    )
    runner.fanout(report_passed)
    runner.fanout(
        "report monitoring --stage prod --variant clusters/bom --check e2e --status failed"
        f" --revision v2 {CI}"
    )
    runner.fanout("sweep", exits_with=3)
    runner.check(fleet.published(), {"v2": 24}, "all 24 variants are at v2")
    runner.fanout("status", exits_with=3, lines=24)
    runner.chapter("The last variant", minutes=20)
    runner.describe("bom is repaired: a later report replaces its failure.")
    runner.fanout(report_passed)
    runner.fanout("sweep")
    runner.fanout("plan")
    runner.check(count_drafts(fleet), 0, "there is nothing to do, and no draft is left")


def show_git_history(runner: CommandRunner) -> None:
    """Show publications, tags and records in Git, and the commands to continue with."""
    runner.chapter("State in Git")
    runner.describe(
        "All state is in plain Git. A publication is one merge per stage and repository:"
    )
    runner.git("-C git/eu-north.git log --oneline --first-parent main")
    runner.describe("Each publication of a variant has a tag, in the format of kpt:")
    runner.git("-C git/eu-north.git tag --format='%(refname:short)  %(subject)'")
    runner.describe("Reports, approvals and decisions are in Git too, on one branch per policy:")
    runner.git(
        "-C .fanout/records.git log --format='%h %an: %s' -4 fanout/default/platform/monitoring"
    )
    runner.describe(
        "`graph` shows the stages with their state, `history` who published what, and why."
    )
    runner.fanout("graph monitoring")
    runner.fanout("history monitoring/staging")
    runner.fanout("history monitoring/prod/bom")
    commands_directory = os.path.relpath(FANOUT.parent, ROOT)
    print(f"\nThe repositories are in {os.path.relpath(ROOT)}. To continue:\n")
    print(f"  cd {os.path.relpath(ROOT)}")
    print(f'  export FANOUT_FILES=policies PATH="$PWD/{commands_directory}:$PATH"')
    for line in ("get variants", "explain monitoring/prod", "status", "render clusters/osl"):
        print(f"  fanout {line}")
    print("  git -C git/asia.git log --graph --oneline --all")


def count_drafts(fleet: DemoFleet) -> int:
    """Return the number of draft branches in all repositories."""
    return sum(len(fleet.refs(name, "refs/heads/drafts/")) for name in CLUSTERS)


if __name__ == "__main__":
    sys.exit(main())
