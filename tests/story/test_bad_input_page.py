"""What docs/reference/input-errors.md says is so: each of its rows is played by the whole program.

Rows about files are played together, one policy or PromotionPolicy for each, beside a sound one.
What people and changes do is played row by row, by the function that is named after the row.
"""

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from bad_input import CHANGES, PEOPLE
from companies import company
from fleet import POLICY, PROMOTION, Fleet, Result

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "input-errors.md"
DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"
PROD = "{name: prod, after: {stages: [dev], soak: 1h}}"
SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge")}
LIMITS = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
sandbox: {cpuSeconds: 1, memoryMiB: 192}
"""


def tables() -> dict[str, list[list[str]]]:
    """The rows of each section, without the quotes of code; the head and its line are left out.

    A section without a table, on what fanout does of its own, has no rows.
    """
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    rows_by_table = {}
    for section in sections:
        title, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
        rows_by_table[title] = [[cell.strip(" `") for cell in line.strip("| ").split(" | ")]
                        for line in lines]  # fmt: skip
    return {title: rows for title, rows in rows_by_table.items() if rows}


TABLES = tables()
TABLES.pop("What `validate` evaluates")  # played by tests/cli/test_validate_targets.py
POLICIES, EXPRESSIONS, PROMOTIONS, DOUBTS, SAID, CHANGED = TABLES.values()


def says(message: str, text: str) -> bool:
    """Is the message of the page what was printed? `…` stands for any text of a line."""
    return re.search(re.escape(message).replace("…", ".*"), text) is not None


def by_input(rows: list[list[str]]) -> list[str]:
    return [row[0] for row in rows]


def test_no_row_is_left_out():
    assert [len(rows) for rows in TABLES.values()] == [18, 4, 8, 2, 7, 9]
    assert set(by_input(SAID)) == set(PEOPLE)
    assert set(by_input(CHANGED)) == set(CHANGES)


# ---- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """What a company with all faulty files came to."""

    fleet: Fleet
    validated: Result
    swept: Result
    held: dict[str, tuple[str, str]]  # what is held in dev: policy → reason and sentence
    names: dict[str, str]  # row → the name of its policy

    def lines_of(self, row: str, *, of: str) -> str:
        """The lines about the policy of a row."""
        lines = (line for line in of.splitlines() if f"/{self.names[row]}.yaml:" in line)
        return "\n".join(lines)


def fields(row: str) -> tuple[str, str]:
    """The stage that a row is about as it is in the sound policy, and as the row has it."""
    if row.startswith("propagateWhen"):
        return DEV, f"{DEV[:-1]}, {row}}}"
    if row.startswith("after"):
        return PROD, f"{{name: prod, {row}}}"
    return PROD, f"{PROD[:-1]}, {row}}}"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    root = tmp_path_factory.mktemp("company")
    fleet = Fleet.build(root, SITES)
    fleet.site("ams", "dev", "edge", many=list(range(3000)))
    names = {}
    for row, number in zip(by_input([*POLICIES, *EXPRESSIONS, *DOUBTS]), count()):
        names[row] = f"policy-p{number}"
        fleet.policy(f"p{number}", fields(row))
    config = root / "config.yaml"
    config.write_text(LIMITS)
    validated = fleet.run("validate", "--config", str(config))
    fleet.sweep("--drafts-only", "--config", str(config))
    swept = fleet.sweep("--config", str(config))
    targets = fleet.run("get", "targets", "-o", "json", "--config", str(config)).views
    held = {
        item["policy"]: (item["holds"][0]["reason"], item["holds"][0]["message"])
        for item in targets
        if item.get("stage") == "dev" and item["holds"]
    }
    return Played(fleet, validated, swept, held, names)


def published(fleet: Fleet) -> set[str]:
    return {path.partition("/")[0] for path in fleet.repos["edge"].tags()}


@pytest.mark.parametrize(("row", "message"), POLICIES, ids=by_input(POLICIES))
def test_a_fault_of_a_policy_is_reported_and_holds_it_alone(played: Played, row, message):
    name = played.names[row]
    for output in (played.validated.out, played.swept.err):
        assert f"/{name}.yaml:" in output
        assert says(f"UpstreamPolicy/{name[7:]}: {message}", played.lines_of(row, of=output))
    assert not any(draft.endswith(f"/{name[7:]}") for draft in played.fleet.repos["edge"].drafts())
    assert name[7:] not in published(played.fleet)


@pytest.mark.parametrize(("row", "message"), DOUBTS, ids=by_input(DOUBTS))
def test_doubtful_input_is_a_warning_and_is_published(played: Played, row, message):
    lines = played.lines_of(row, of=played.validated.out)
    assert says(f"UpstreamPolicy/{played.names[row][7:]}: {message}", lines)
    assert all(line.startswith("warning: ") for line in lines.splitlines())
    assert played.names[row][7:] in published(played.fleet)


@pytest.mark.parametrize(("row", "message", "holds"), EXPRESSIONS, ids=by_input(EXPRESSIONS))
def test_a_fault_of_an_expression_holds_releases(played: Played, row, message, holds):
    reason, sentence = played.held[played.names[row][7:]]
    assert reason in ("ExpressionError", "LimitExceeded")
    assert says(message, f"{played.lines_of(row, of=played.validated.out)}\n{sentence}")
    assert holds == "releases in that stage"
    assert played.names[row][7:] not in published(played.fleet)


def test_all_other_policies_go_on(played: Played):
    assert (played.validated.code, played.swept.code) == (2, 3)
    assert "sites" in published(played.fleet)


@pytest.fixture(scope="module")
def administered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Result, Result]:
    fleet = Fleet.build(tmp_path_factory.mktemp("company"), SITES)
    for number, row in enumerate(by_input(PROMOTIONS)):
        text = PROMOTION.replace("everything", f"p{number}").replace("spec:\n", f"spec: {{{row}, ")
        text = re.sub(r"\n  (policies|autoPromotion)", r" \1", text)
        text = text.replace('["*"] auto', '["*"], auto').partition("\n  approvers")[0]
        fleet.write(f"promotion-p{number}.yaml", text + "}\n")
    validated = fleet.run("validate")
    fleet.sweep()
    return fleet, validated, fleet.sweep()


@pytest.mark.parametrize(
    ("number", "message"),
    list(enumerate(row[1] for row in PROMOTIONS)),
    ids=by_input(PROMOTIONS),
)
def test_a_fault_of_a_promotion_policy_is_reported(administered, number, message):
    _, validated, swept = administered
    for output in (validated.out, swept.err):
        assert says(f"promotion-p{number}.yaml:4: PromotionPolicy/p{number}: {message}", output)


def test_a_fault_of_a_promotion_policy_holds_automation_and_no_draft(administered):
    fleet, _, swept = administered
    assert (
        "automatic promotion is off while PromotionPolicy default/p0 cannot be read: a"
        " PromotionPolicy can restrict what others allow; correct it" in swept.err
    )
    assert sorted(fleet.repos["edge"].drafts()) == ["sites/ams/monitoring", "sites/ber/monitoring"]
    assert published(fleet) == set()


# ---- people, machines and changes ----------------------------------------------------------------


@company
def fleet(root: Path) -> Fleet:
    """A site in dev, where v1 is published, and one in prod that two people have to approve."""
    made = Fleet.build(root, SITES)
    rule = "requires: [{name: signed-off, approval: {atLeast: 2, from: [sre]}}]"
    made.write(
        "policy.yaml", POLICY.replace(PROD, f"{{name: prod, after: {{stages: [dev]}}, {rule}}}")
    )
    made.settle()
    return made


@pytest.mark.parametrize(("row", "message", "_"), SAID, ids=by_input(SAID))
def test_an_unusable_command_is_answered_as_the_page_states(fleet: Fleet, row, message, _):
    printed = PEOPLE[row](fleet)
    assert says(message, printed), printed


@pytest.mark.parametrize(("row", "message", "_"), CHANGED, ids=by_input(CHANGED))
def test_a_change_during_a_pass_is_answered_as_the_page_states(fleet: Fleet, row, message, _):
    printed = CHANGES[row](fleet)
    assert says(message, printed), printed
