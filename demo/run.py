"""`make demo`: a complete rollout on local repositories, which stay under build/demo/.

Needs no network, account or cluster. The commands are those of a user; FANOUT_NOW sets the time, so
that no soak time has to be waited for. Exits with 1 if a result differs from the expected one.
"""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from storyteller import FANOUT, Storyteller, UnexpectedResultError
from world import FLEET, World

ROOT = Path(__file__).parent.parent / "build" / "demo"
MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANN, BOB, CI = (f'--by "{name} <{name.lower()}@example.com>"' for name in ("Ann", "Bob", "Ci"))

OK = "--check e2e --status passed"


def main() -> int:
    """Run all chapters. Return the exit code."""
    began = time.monotonic()
    world, story = World(ROOT), Storyteller(ROOT, MONDAY)
    try:
        prepare(world, story)
        fan_out(world, story)
        first_stages(world, story)
        one_fails(world, story)
        the_fix(world, story)
        production(world, story)
        look_around(story)
    except UnexpectedResultError as error:
        print(f"\nunexpected result: {error}", file=sys.stderr)
        return 1
    print(f"\n{story.steps} commands, {time.monotonic() - began:.0f} seconds.")
    return 0


def prepare(world: World, story: Storyteller) -> None:
    """Create repositories and objects, and validate them."""
    story.chapter("The fleet")
    story.say(
        "Six downstream repositories with four clusters each, and the upstream repository of the"
        " package `monitoring`, all on this disk. Policies, repositories and clusters are files."
    )
    world.make(story.now)
    print("$ cd build/demo\n$ export FANOUT_FILES=policies")
    story.say("`validate` reports every error of every file, with its line.")
    story.fanout("validate")


def fan_out(world: World, story: Storyteller) -> None:
    """Write 24 drafts, and show one."""
    story.chapter("Fan out", minutes=1)
    story.say("`plan` shows what a sweep would do, and changes nothing.")
    story.fanout("plan", lines=5)
    story.say("`sweep` writes a draft for every cluster. A draft is a branch.")
    story.fanout("sweep")
    story.check(drafts(world), 24, "24 draft branches in 6 repositories; no main branch has moved")
    story.say("`diff` shows the draft of one cluster, with its own namespace and settings.")
    text = story.fanout("diff eu-north:clusters/osl --against upstream", lines=14)
    story.check('+  retention: "30d"' in text or "+  retention: 30d" in text, True, "osl keeps 30d")


def first_stages(world: World, story: Storyteller) -> None:
    """Publish in the first stages, report evidence, and pass a gate with `require: Any`."""
    story.chapter("The first stages", minutes=30)
    story.say("The next sweep publishes in dev-eu and dev-us, which have no earlier stage.")
    story.fanout("sweep")
    story.check(world.published(), {"v1": 4, "none": 20}, "4 variants are published, 20 wait")
    story.say("A pipeline reports the result of its tests.")
    story.fanout(f"report monitoring --stage dev-eu {OK} --revision v1 {CI}")
    story.say("staging has `require: Any`, so dev-eu alone is sufficient.")
    story.fanout("sweep")
    story.check(world.published(), {"v1": 10, "none": 14}, "6 variants of staging are published")


def one_fails(world: World, story: Storyteller) -> None:
    """Let one variant fail, which holds its stage and the stage after it."""
    story.chapter("One variant fails", hours=1)
    story.say("The tests fail in one of the two clusters of dev-us.")
    story.fanout(
        "report monitoring --stage dev-us --variant clusters/sea --check e2e --status failed"
        f" --revision v1 --link https://ci.example.com/17 {CI}"
    )
    story.say("A sweep reports the failure, publishes nothing in prod, and exits with code 3.")
    story.fanout("sweep", exits_with=3)
    story.say("`status` shows the fleet on one screen, and first what needs a person.")
    story.fanout("status", exits_with=3, lines=24)
    story.say(
        "`explain` lists what blocks prod, which needs all three stages, and how to unblock it."
    )
    text = story.fanout("explain monitoring/prod", lines=24)
    blocked = "AfterFailed" in text and "fanout skip monitoring --stage dev-us" in text
    story.check(blocked, True, "sea blocks dev-us, and dev-us blocks prod")
    story.check(world.published("prod"), {"none": 14}, "nothing is published in prod")


def the_fix(world: World, story: Storyteller) -> None:
    """Release a fix upstream, which passes through the same stages."""
    story.chapter("A new upstream revision", hours=2)
    story.say("The authors of the package raise a memory limit and tag v2, with plain git.")
    world.edit("deployment.yaml", "limits: {memory: 2Gi}", "limits: {memory: 4Gi}")
    world.release("v2", "Give Prometheus room for the large clusters", story.now)
    story.git("-C blueprints log --oneline --decorate -2")
    story.say("The first sweep writes drafts of v2, the second publishes in dev-eu and dev-us.")
    story.fanout("sweep")
    story.fanout("sweep")
    story.check(world.published("dev-us"), {"v2": 2}, "dev-us has v2")
    story.say("This time both stages pass, and staging follows: drafts, then publications.")
    for stage in ("dev-eu", "dev-us"):
        story.fanout(f"report monitoring --stage {stage} {OK} --revision v2 {CI}")
    story.fanout("sweep")
    story.fanout("sweep")
    story.fanout(f"report monitoring --stage staging {OK} --revision v2 {CI}")


def production(world: World, story: Storyteller) -> None:
    """Soak, approve, and promote manually."""
    story.chapter("Production", minutes=5)
    story.say("The next sweep starts the soak time: a day, in all three stages.")
    story.fanout("sweep")
    story.fanout("status", lines=24)
    story.chapter("A day later", hours=25)
    story.say("Two people of the group `sre` approve the current drafts.")
    for who in (ANN, BOB):
        story.fanout(f"approve monitoring --stage prod --revision v2 {who}")
    story.say("Automatic promotion is off for prod, so a person promotes, through the same gates.")
    story.fanout(f'promote monitoring --stage prod --reason "change 4711" {ANN}')
    story.check(world.published("prod"), {"none": 13, "v2": 1}, "one of the 14 has v2")
    waves(world, story)


def waves(world: World, story: Storyteller) -> None:
    """Roll out in waves inside a stage that tolerates one failure."""
    everywhere = f"report monitoring --stage prod {OK} --revision v2 {CI}"
    story.chapter("In waves", minutes=20)
    story.say("The rollout of prod releases one variant, then six for each that is ready.")
    story.fanout("explain monitoring/prod", lines=24)
    story.fanout(everywhere)
    story.fanout("sweep")
    story.check(world.published("prod"), {"none": 7, "v2": 7}, "seven of 14 have v2")
    story.chapter("One of them fails", minutes=20)
    story.say("Five of the six pass. The stage tolerates one failure; a second one would halt it.")
    story.fanout(everywhere)
    story.fanout(
        "report monitoring --stage prod --variant clusters/bom --check e2e --status failed"
        f" --revision v2 {CI}"
    )
    story.fanout("sweep", exits_with=3)
    story.check(world.published(), {"v2": 24}, "all 24 variants are at v2")
    story.fanout("status", exits_with=3, lines=24)
    story.chapter("The end", minutes=20)
    story.say("bom is repaired: a later report replaces its failure.")
    story.fanout(everywhere)
    story.fanout("sweep")
    story.fanout("plan")
    story.check(drafts(world), 0, "there is nothing to do, and no draft is left")


def look_around(story: Storyteller) -> None:
    """Show where everything is in Git."""
    story.chapter("Look around")
    story.say("All state is in plain Git. A publication is one merge per stage and repository:")
    story.git("-C git/eu-north.git log --oneline --first-parent main")
    story.say("Each publication of a variant has a tag, in the format of kpt:")
    story.git("-C git/eu-north.git tag --format='%(refname:short)  %(subject)'")
    story.say("Reports, approvals and decisions are in Git too, on one branch per policy:")
    story.git(
        "-C .fanout/records.git log --format='%h %an: %s' -4 fanout/default/platform/monitoring"
    )
    story.say("`graph` shows the stages with their state, `history` who published what, and why.")
    story.fanout("graph monitoring")
    story.fanout("history monitoring/staging")
    story.fanout("history monitoring/prod/bom")
    programs = os.path.relpath(FANOUT.parent, ROOT)
    print(f"\nThe repositories are in {os.path.relpath(ROOT)}. To continue:\n")
    print(f"  cd {os.path.relpath(ROOT)}")
    print(f'  export FANOUT_FILES=policies PATH="$PWD/{programs}:$PATH"')
    for line in ("get variants", "explain monitoring/prod", "status", "render clusters/osl"):
        print(f"  fanout {line}")
    print("  git -C git/asia.git log --graph --oneline --all")


def drafts(world: World) -> int:
    """Count the draft branches of all repositories."""
    return sum(len(world.refs(name, "refs/heads/drafts/")) for name in FLEET)


if __name__ == "__main__":
    sys.exit(main())
