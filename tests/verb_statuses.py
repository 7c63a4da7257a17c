"""A company with a release to promote, changes to it, and the exit status of each verb then."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fleet import PACKAGE, POLICY, PROMOTION, Fleet

ANN = ("--by", "Ann <ann@example.com>")
EVE = ("--by", "Eve <eve@example.com>")
WHY = ("--reason", "as agreed", *ANN)
BER, CPH = "sites/ber", "sites/cph"
SIGNED = "requires: [{name: signed, approval: {atLeast: 1, from: [sre]}}]"
VERIFIED = "verification: [{name: e2e, report: {}}]"
STAGES = POLICY[POLICY.index("  stages:") :]
MANUAL = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")
PROD = ("monitoring", "--stage", "prod")

Change = Callable[[Fleet], object]


def stages(*lines: str) -> str:
    return POLICY.replace(STAGES, "  stages:\n" + "".join(f"  - {{{line}}}\n" for line in lines))


def build_waiting_release(root: Path) -> Fleet:
    """Two sites in prod, published at v1 and drafted at v2, which a person is to publish."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", stages(f"name: prod, {VERIFIED}"))
    made.settle()
    made.report("prod", "v1")
    made.write("promotion.yaml", MANUAL)
    made.release("v2")
    made.later(minutes=5).settle()
    return made.later(minutes=5)


def nothing(fleet: Fleet) -> None:
    """The world stays as it is."""


def newer(fleet: Fleet) -> None:
    fleet.release("v3")


def automatic(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION)
    fleet.settle()


def signed(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages(f"name: prod, {VERIFIED}, {SIGNED}"))
    fleet.later(minutes=5).settle()


def window(fleet: Fleet) -> None:
    closed = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'
    fleet.write("promotion.yaml", MANUAL + closed)


def bad_expression(fleet: Fleet) -> None:
    fleet.site("dub", "prod", "edge")
    path = fleet.root / "policies" / "site-dub.yaml"
    path.write_text(path.read_text().replace("labels: {tier: prod}", "labels: {}"))


def bad_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages("nam: prod"))


def away(fleet: Fleet) -> None:
    path = fleet.root / "state" / "records.git"
    path.rename(path.with_name("away.git"))
    path.write_text("no repository\n")


def source_gone(fleet: Fleet) -> None:
    """A required point of the published package finds nothing any more."""
    fleet.release("v3", {"settings.yaml": PACKAGE["settings.yaml"].replace("optional", "required")})
    fleet.remove("site-ber.yaml")
    fleet.site("ber", "prod", "edge")
    path = fleet.root / "policies" / "site-ber.yaml"
    path.write_text(path.read_text().partition("---")[0])


def published(fleet: Fleet) -> None:
    assert fleet.run("promote", *PROD, *WHY).code == 0
    fleet.later(minutes=5)


def failed(fleet: Fleet) -> None:
    published(fleet)
    fleet.report("prod", "v2", "failed", "--variant", BER)
    fleet.later(minutes=5)


def suspended(fleet: Fleet) -> None:
    assert fleet.run("suspend", *PROD, *WHY).code == 0


def resumed(fleet: Fleet) -> None:
    suspended(fleet)
    assert fleet.run("resume", *PROD, *WHY).code == 0


def suspended_twice(fleet: Fleet) -> None:
    suspended(fleet)
    assert fleet.run("suspend", "monitoring", *WHY).code == 0


def suspended_in_the_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", stages(f"name: prod, suspend: true, {VERIFIED}"))


def remove_site(fleet: Fleet) -> None:
    fleet.remove("site-cph.yaml")


def gone_while_closed(fleet: Fleet) -> None:
    remove_site(fleet)
    window(fleet)


def all_gone(fleet: Fleet) -> None:
    for site in ("ber", "cph"):
        fleet.remove(f"site-{site}.yaml")


def edited_and_gone(fleet: Fleet) -> None:
    fleet.repos["core"].commit("main", {"sites/cph/deployment.yaml": "kind: Mine\n"})
    remove_site(fleet)


def skipped(fleet: Fleet) -> None:
    assert fleet.run("skip", *PROD, "--variant", BER, *WHY).code == 0


VERB_ROWS: list[tuple[str, Change, Sequence[str], int]] = [
    ("plan with changes", nothing, ["plan"], 0),
    ("plan with changes, in detail", newer, ["plan", "--detailed-exitcode"], 2),
    ("plan without changes, in detail", nothing, ["plan", "--detailed-exitcode"], 0),
    ("plan of an unknown policy", nothing, ["plan", "monitorin"], 1),
    ("plan of an unknown policy, in detail", nothing, ["plan", "x", "--detailed-exitcode"], 1),
    ("plan with an unknown flag", nothing, ["plan", "--no-such"], 1),
    ("plan of a policy with errors", bad_file, ["plan", "monitoring"], 2),
    ("plan with a failing target", bad_expression, ["plan"], 3),
    ("plan with a failing target, in detail", bad_expression, ["plan", "--detailed-exitcode"], 1),
    ("plan with a failed check", failed, ["plan"], 3),
    ("plan without its records", away, ["plan"], 1),
    ("sweep", nothing, ["sweep"], 0),
    ("sweep that publishes", automatic, ["sweep"], 0),
    ("sweep of an unknown policy", nothing, ["sweep", "x"], 1),
    ("sweep without its records", away, ["sweep"], 1),
    ("sweep with another's error", bad_file, ["sweep"], 3),
    ("sweep with a failing target", bad_expression, ["sweep"], 3),
    ("sweep with a failed check", failed, ["sweep"], 3),
    ("sweep without a required source", source_gone, ["sweep"], 3),
    ("sweep with too many removals", all_gone, ["sweep"], 3),
    ("sweep that a window holds", window, ["sweep"], 0),
    ("sweep of what is suspended", suspended, ["sweep"], 0),
    ("sweep with a plan that is none", nothing, ["sweep", "--plan", "/dev/null"], 2),
    ("promote", nothing, ["promote", *PROD, *WHY], 0),
    ("promote again", published, ["promote", *PROD, *WHY], 0),
    ("promote in an unknown stage", nothing, ["promote", "monitoring", "--stage", "x", *WHY], 1),
    ("promote an unknown revision", nothing, ["promote", *PROD, "--revision", "v9", *WHY], 1),
    ("promote until what is no time", nothing, ["promote", *PROD, "--expires", "x", *WHY], 1),
    ("promote without its records", away, ["promote", *PROD, *WHY], 1),
    ("promote while a window is closed", window, ["promote", *PROD, *WHY], 4),
    ("promote what is suspended", suspended, ["promote", *PROD, *WHY], 4),
    ("promote what nobody approved", signed, ["promote", *PROD, *WHY], 0),  # it is released
    ("promote an older revision", published, ["promote", *PROD, "--revision", "v1", *WHY], 4),
    ("promote what is not drafted", newer, ["promote", *PROD, *WHY], 0),  # its draft is written
    ("approve", signed, ["approve", *PROD, "--revision", "v2", *ANN], 0),
    ("approve as nobody's approver", signed, ["approve", *PROD, "--revision", "v2", *EVE], 4),
    ("approve what has no draft", signed, ["approve", *PROD, "--revision", "v1", *ANN], 4),
    ("approve what nobody asks for", nothing, ["approve", *PROD, "--revision", "v2", *ANN], 1),
    ("approve without its records", away, ["approve", *PROD, "--revision", "v2", *ANN], 1),
    ("rollback", published, ["rollback", "-y", *PROD, *WHY], 0),
    ("rollback of nothing", nothing, ["rollback", "-y", *PROD, *WHY], 4),
    ("rollback to what never was", published,
     ["rollback", "-y", *PROD, "--revision", "v9", *WHY], 4),
    ("rollback in an unknown stage", nothing,
     ["rollback", "-y", "monitoring", "--stage", "x", *WHY], 1),
    ("skip", nothing, ["skip", *PROD, "--variant", BER, *WHY], 0),
    ("skip again", skipped, ["skip", *PROD, "--variant", BER, *WHY], 0),
    ("skip nobody", nothing, ["skip", *PROD, *WHY], 1),
    ("retry", failed, ["retry", *PROD, *WHY], 0),
    ("retry where nothing failed", nothing, ["retry", *PROD, *WHY], 4),
    ("report", published, ["report", *PROD, "--check", "e2e", "--status", "passed",
                           "--revision", "v2", *ANN], 0),
    ("report what is not published", nothing, ["report", *PROD, "--check", "e2e", "--status",
                                               "passed", "--revision", "v2", *ANN], 4),
    ("report to an unknown check", nothing, ["report", *PROD, "--check", "x", "--status", "passed",
                                             "--revision", "v1", *ANN], 1),
    ("suspend", nothing, ["suspend", *PROD, *WHY], 0),
    ("suspend again", suspended, ["suspend", *PROD, *WHY], 0),
    ("suspend an unknown stage", nothing, ["suspend", "monitoring", "--stage", "x", *WHY], 1),
    ("resume", suspended, ["resume", *PROD, *WHY], 0),
    ("resume again", resumed, ["resume", *PROD, *WHY], 0),
    ("resume what nobody suspended", nothing, ["resume", *PROD, *WHY], 4),
    ("resume less than was suspended", suspended_twice, ["resume", *PROD, *WHY], 4),
    ("resume what a file suspends", suspended_in_the_file, ["resume", *PROD, *WHY], 4),
    ("resolve what has no conflict", nothing, ["resolve", *PROD, *WHY], 4),
    ("remove", remove_site, ["remove", "monitoring", "cph", *WHY], 0),
    ("remove in a closed window", gone_while_closed, ["remove", "monitoring", "cph", *WHY], 4),
    ("remove what people edited", edited_and_gone, ["remove", "monitoring", "cph", *WHY], 4),
    ("remove an unknown target", nothing, ["remove", "monitoring", "x", *WHY], 1),
    ("remove all, and nothing is gone", nothing, ["remove", "monitoring", "--all-gone", *WHY], 4),
    ("revoke what nobody gave", nothing, ["revoke", "monitoring", "x", *ANN], 1),
    ("withdraw what nobody decided", nothing, ["withdraw", "monitoring", "x", *WHY], 1),
    ("diff with differences", nothing, ["diff", BER], 0),
    ("diff with differences, in detail", nothing, ["diff", BER, "--detailed-exitcode"], 2),
    ("diff without, in detail", published, ["diff", BER, "--detailed-exitcode"], 0),
    ("diff of an unknown variant, in detail", nothing, ["diff", "x", "--detailed-exitcode"], 1),
    ("diff of an unknown variant", nothing, ["diff", "x"], 1),
    ("explain what waits", nothing, ["explain", "monitoring"], 0),
    ("explain what failed", failed, ["explain", "monitoring"], 3),
    ("explain an unknown policy", nothing, ["explain", "x"], 1),
    ("forecast", nothing, ["forecast", "monitoring"], 0),
    ("forecast of what is suspended", suspended, ["forecast", "monitoring"], 3),
    ("get", nothing, ["get", "variants"], 0),
    ("get nothing known", nothing, ["get", "things"], 1),
    ("get beside errors", bad_file, ["get", "variants"], 3),
    ("validate", nothing, ["validate"], 0),
    ("validate errors", bad_file, ["validate"], 2),
]  # fmt: skip
