"""What docs/guides/rollback.md shows is so: its commands are run, in order, in a company."""

import re
import shlex
from pathlib import Path

import yaml
from fleet import POLICY, Fleet

from fanout.api.reasons import Reason
from fanout.api.stages import Stage

PAGE = Path(__file__).parent.parent / "docs" / "guides" / "rollback.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    command.partition("\n")
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]
NAME = re.compile(r"\d{8}t\d{6}z-[0-9a-f]{12}")
SAYS = ("rollback", "withdraw")


def company(root: Path) -> Fleet:
    """Two sites in prod at v2, one of which somebody edited while it had v1."""
    fleet = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    stages = POLICY[POLICY.index("  stages:") :]
    fleet.write("policy.yaml", POLICY.replace(stages, "  stages:\n  - {name: prod}\n"))
    fleet.settle()
    edge, path = fleet.repos["edge"], "sites/ber/deployment.yaml"
    edge.commit("main", {path: edge.file("main", path) + "# ours\n"})
    fleet.release("v2")
    fleet.later(minutes=5).settle()
    return fleet


def test_the_commands_print_what_the_page_shows(tmp_path: Path):
    fleet, decision = company(tmp_path), ""
    for line, _, shown in COMMANDS:
        words = [decision if NAME.fullmatch(word) else word for word in shlex.split(line)[1:]]
        by = ["--by", "Ann <ann@example.com>"] if words[0] in SAYS else []
        fleet.later(minutes=5 if by or words[0] == "sweep" else 0)
        done = fleet.run(*words, *by)
        assert done.code == 0, done.err
        pattern = NAME.pattern.join(map(re.escape, NAME.split(shown)))
        assert re.fullmatch(pattern, done.out), f"{line}\n{done.out}"
        if words[0] == "rollback":
            [decision] = NAME.findall(done.out)
    assert set(fleet.published().values()) == {"v2"}


def test_the_policy_that_is_shown_is_one():
    [shown] = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    [stage] = yaml.safe_load(shown)["stages"]
    assert Stage.model_validate(stage).pin == "v1"


def test_the_reasons_that_are_shown_are_there():
    reasons = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert len(reasons) == 5
    assert set(reasons) <= set(map(str, Reason))
