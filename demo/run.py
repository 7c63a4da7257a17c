"""`make demo`: the whole story of fanout on repositories of this machine, left under build/demo/.

It needs no network, no account and no cluster. Every command is the one that a user would type; the
only pretence is the time, which FANOUT_NOW tells, so that a day of soaking is over at once. Leaves
with 1 when anything comes out otherwise than it says.
"""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from teller import FANOUT, NotAsToldError, Teller
from world import FLEET, World

ROOT = Path(__file__).parent.parent / "build" / "demo"
MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANN, BOB, CI = (f'--by "{name} <{name.lower()}@example.com>"' for name in ("Ann", "Bob", "Ci"))

OK = "--check e2e --status passed"


def main() -> int:
    """Play the story; answers the exit status."""
    began = time.monotonic()
    world, tell = World(ROOT), Teller(ROOT, MONDAY)
    try:
        prepare(world, tell)
        fan_out(world, tell)
        first_stages(world, tell)
        one_fails(world, tell)
        the_fix(world, tell)
        production(world, tell)
        look_around(tell)
    except NotAsToldError as error:
        print(f"\nnot as told: {error}", file=sys.stderr)
        return 1
    print(f"\n{tell.steps} commands, {time.monotonic() - began:.0f} seconds.")
    return 0


def prepare(world: World, tell: Teller) -> None:
    """The repositories and the objects, and that they have no fault."""
    tell.chapter("The company")
    tell.say(
        "Six repositories of four clusters each, and one that the package `monitoring` comes"
        " from: bare repositories on this disk. Policies, repositories and clusters are files."
    )
    world.make(tell.now)
    print("$ cd build/demo\n$ export FANOUT_FILES=policies")
    tell.say("`validate` names every fault of every file, with its line.")
    tell.fanout("validate")


def fan_out(world: World, tell: Teller) -> None:
    """24 drafts, and what is in one."""
    tell.chapter("Fan out", minutes=1)
    tell.say("`plan` says what a sweep would do. Nothing is done.")
    tell.fanout("plan", lines=5)
    tell.say("`sweep` does it: a draft, which is a branch, for every cluster.")
    tell.fanout("sweep")
    tell.check(drafts(world), 24, "24 draft branches in 6 repositories; no main branch has moved")
    tell.say("`diff` shows what one cluster gets: its namespace and its settings are filled in.")
    text = tell.fanout("diff eu-north:clusters/osl --against upstream", lines=14)
    tell.check('+  retention: "30d"' in text or "+  retention: 30d" in text, True, "osl keeps 30d")


def first_stages(world: World, tell: Teller) -> None:
    """The stages that wait for nobody; evidence; the Any edge."""
    tell.chapter("The first stages", minutes=30)
    tell.say("The next sweep publishes where gates are open: dev-eu and dev-us wait for nobody.")
    tell.fanout("sweep")
    tell.check(world.published(), {"v1": 4, "none": 20}, "4 variants are published, 20 wait")
    tell.say("A pipeline reports what it found; fanout itself never guesses.")
    tell.fanout(f"report monitoring --stage dev-eu {OK} --revision v1 {CI}")
    tell.say("staging needs Any of the two: dev-eu alone is enough for it.")
    tell.fanout("sweep")
    tell.check(world.published(), {"v1": 10, "none": 14}, "the 6 variants of staging are published")


def one_fails(world: World, tell: Teller) -> None:
    """One variant holds its stage, and the All join behind it."""
    tell.chapter("One variant fails", hours=1)
    tell.say("In dev-us one of the two clusters is not well.")
    tell.fanout(
        "report monitoring --stage dev-us --variant clusters/sea --check e2e --status failed"
        f" --revision v1 --link https://ci.example.com/17 {CI}"
    )
    tell.say("A sweep changes nothing in prod, however long one waits. It exits with 3.")
    tell.fanout("sweep", leaves=3)
    tell.say("`status` shows the fleet on one screen: first what needs a person, and what to run.")
    tell.fanout("status", leaves=3, lines=24)
    tell.say("prod needs All three. `explain` lists what blocks it, and the commands that end it.")
    text = tell.fanout("explain monitoring/prod", lines=24)
    blocked = "AfterFailed" in text and "fanout skip monitoring --stage dev-us" in text
    tell.check(blocked, True, "sea blocks dev-us, and dev-us blocks prod")
    tell.check(world.published("prod"), {"none": 14}, "nothing is published in prod")


def the_fix(world: World, tell: Teller) -> None:
    """An upstream bump goes the same way."""
    tell.chapter("An upstream bump", hours=2)
    tell.say("The authors give it more memory and tag v2. This is plain git; fanout notices.")
    world.edit("deployment.yaml", "limits: {memory: 2Gi}", "limits: {memory: 4Gi}")
    world.release("v2", "Give Prometheus room for the large clusters", tell.now)
    tell.git("-C blueprints log --oneline --decorate -2")
    tell.say("Drafts at v2 where v2 may be next; once more to publish in dev-eu and dev-us.")
    tell.fanout("sweep")
    tell.fanout("sweep")
    tell.check(world.published("dev-us"), {"v2": 2}, "dev-us has v2")
    tell.say("This time both are well, and staging follows: drafts, then publications.")
    for stage in ("dev-eu", "dev-us"):
        tell.fanout(f"report monitoring --stage {stage} {OK} --revision v2 {CI}")
    tell.fanout("sweep")
    tell.fanout("sweep")
    tell.fanout(f"report monitoring --stage staging {OK} --revision v2 {CI}")


def production(world: World, tell: Teller) -> None:
    """Soak, approvals, promotion by hand."""
    tell.chapter("Production", minutes=5)
    tell.say("The sweep that sees it starts the clock: v2 soaks a day in all three stages.")
    tell.fanout("sweep")
    tell.fanout("status", lines=24)
    tell.chapter("A day later", hours=25)
    tell.say("Two people of the group `sre` approve exactly the drafts that stand there.")
    for who in (ANN, BOB):
        tell.fanout(f"approve monitoring --stage prod --revision v2 {who}")
    tell.say("No automation is switched on for prod: a person promotes, through the same gates.")
    tell.fanout(f'promote monitoring --stage prod --reason "change 4711" {ANN}')
    tell.check(world.published("prod"), {"none": 13, "v2": 1}, "one of the 14 has v2")
    waves(world, tell)


def waves(world: World, tell: Teller) -> None:
    """A rollout inside a stage, with a failure that it bears."""
    everywhere = f"report monitoring --stage prod {OK} --revision v2 {CI}"
    tell.chapter("In waves", minutes=20)
    tell.say("The rollout of prod lets one go, and then six for each that is ready.")
    tell.fanout("explain monitoring/prod", lines=24)
    tell.fanout(everywhere)
    tell.fanout("sweep")
    tell.check(world.published("prod"), {"none": 7, "v2": 7}, "seven of 14 have v2")
    tell.chapter("One of them fails", minutes=20)
    tell.say("Five of the six are well. The stage bears one failure; with two it would halt.")
    tell.fanout(everywhere)
    tell.fanout(
        "report monitoring --stage prod --variant clusters/bom --check e2e --status failed"
        f" --revision v2 {CI}"
    )
    tell.fanout("sweep", leaves=3)
    tell.check(world.published(), {"v2": 24}, "all 24 variants are at v2")
    tell.fanout("status", leaves=3, lines=24)
    tell.chapter("The end", minutes=20)
    tell.say("bom has come back: evidence that passes takes its failure back.")
    tell.fanout(everywhere)
    tell.fanout("sweep")
    tell.fanout("plan")
    tell.check(drafts(world), 0, "there is nothing to do, and no draft is left")


def look_around(tell: Teller) -> None:
    """Print the places to look at afterwards."""
    tell.chapter("Look around")
    tell.say("Everything is in plain Git. A publication is one merge per stage and repository:")
    tell.git("-C git/eu-north.git log --oneline --first-parent main")
    tell.say("Each publication of a variant has its tag, as kpt reads it:")
    tell.git("-C git/eu-north.git tag --format='%(refname:short)  %(subject)'")
    tell.say("Who said what is in Git too, one branch per policy:")
    tell.git(
        "-C .fanout/records.git log --format='%h %an: %s' -4 fanout/default/platform/monitoring"
    )
    tell.say("`graph` shows the stages with their state, `history` who let what in, and why.")
    tell.fanout("graph monitoring")
    tell.fanout("history monitoring/staging")
    tell.fanout("history monitoring/prod/bom")
    programs = os.path.relpath(FANOUT.parent, ROOT)
    print(f"\nThe repositories are left under {os.path.relpath(ROOT)}. To go on:\n")
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
