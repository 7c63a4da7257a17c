"""Scenarios of files, ready to run, for `fanout test`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fanout.api.kind_registry import KINDS
from fanout.api.scenario import Scenario
from fanout.cli.command_errors import invalid_setting
from fanout.cli.settings import STANDARD_INPUT, Settings
from fanout.cli.startup import open_sandbox
from fanout.cluster.file_cluster import FileCluster
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import InvalidInput
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.validation.expression_validation import validate_expressions
from fanout.scenarios.scenario_player import PlayedPass, play_scenario
from fanout.scenarios.scenario_settings import ScenarioPolicy, find_policy
from fanout.values import Value, replace


class DeclaredScenarios(Value):
    """Scenarios of files, with the objects declared beside them, and the means to run them.

    `scenarios` are those without errors, by file and line; `errors` are those of all others.
    """

    declared: DeclaredObjects
    conditions: PropagationConditions
    scenarios: tuple[Scenario, ...]
    errors: tuple[Finding, ...]

    def find_policy(self, scenario: Scenario) -> ScenarioPolicy:
        """Return the policy of the scenario and its PromotionPolicies.

        Raises InvalidInput if the policy is invalid, or a PromotionPolicy beside it is: it
        might restrict the policy.
        """
        scenario_policy = find_policy(scenario, self.declared.policies, self.declared.promotions)
        if scenario_policy is None:
            raise InvalidInput(
                f"UpstreamPolicy {scenario.spec.policy} has an error",
                reason="InvalidObject",
                remedy="run `fanout validate`",
                where=self.declared.where(scenario, "spec.policy"),
            )
        namespace = scenario_policy.policy.metadata.namespace
        invalid_promotions = [
            it
            for it in self.declared.left_out
            if (it.kind, it.namespace) == ("PromotionPolicy", namespace)
        ]
        # The invalid PromotionPolicy may restrict this policy, so a run without it would prove
        # nothing.
        if not scenario.spec.stages and invalid_promotions:
            raise InvalidInput(
                f"PromotionPolicy {invalid_promotions[0].name} has an error",
                reason="InvalidObject",
                remedy="run `fanout validate`; it may restrict this policy",
                where=self.declared.where(scenario, "spec.policy"),
            )
        return scenario_policy

    def run_scenario(self, scenario: Scenario) -> tuple[PlayedPass, ...]:
        """Run the scenario and return its passes. Raises InvalidInput if it cannot be run."""
        scenario_policy = self.find_policy(scenario)
        conditions = self.conditions
        return play_scenario(scenario, scenario_policy, conditions.get_condition, conditions.decide)


@contextmanager
def open_scenarios(settings: Settings, paths: Sequence[Path]) -> Iterator[DeclaredScenarios]:
    """Load the objects of `-f` and of these files and directories, whose scenarios are to run.

    Raises InvalidInput if a path does not exist.
    """
    sources = replace(settings, files=(*settings.files, *paths)).require_files()
    if STANDARD_INPUT in sources:
        problem = "scenarios and their policies cannot be read from standard input"
        raise invalid_setting(problem, "pass files or directories")
    # A scenario is a test: an error in one document must not hide what the others come to.
    declared = FileCluster(sources, keep_valid=True).read()
    with open_sandbox(settings) as sandbox:
        findings = (*declared.faults, *validate_expressions(declared, sandbox))
        errors = tuple(
            it
            for it in findings
            if it.severity == "error" and _is_in_paths(it.where.file, paths) and _is_scenario(it)
        )
        yield DeclaredScenarios(
            declared,
            PropagationConditions(sandbox),
            _find_valid(declared, errors, paths, settings.namespace),
            errors,
        )


def _find_valid(
    declared: DeclaredObjects, errors: Sequence[Finding], paths: Sequence[Path], namespace: str
) -> tuple[Scenario, ...]:
    """Return the scenarios in the paths that have no errors; an empty namespace means all."""
    with_errors = {(it.where.file, it.where.object) for it in errors}
    located = [
        (where.file, where.line, scenario)
        for scenario in declared.scenarios
        if namespace in ("", scenario.metadata.namespace)
        and _is_in_paths((where := declared.where(scenario)).file, paths)
        and (where.file, where.object) not in with_errors
    ]
    return tuple(scenario for *_, scenario in sorted(located, key=lambda entry: entry[:2]))


def _is_scenario(finding: Finding) -> bool:
    """Return whether the finding is about a Scenario, or an unknown kind that may mean one."""
    kind = finding.where.object.partition("/")[0]
    return kind == Scenario.__name__ or kind not in KINDS


def _is_in_paths(file: str, paths: Sequence[Path]) -> bool:
    """Return whether the file is one of the paths or below one.

    The spelling of the paths does not matter.
    """
    # A file that is given under two names is read once only, under one of them.
    real = Path(file).resolve()
    return any(real.is_relative_to(path.resolve()) for path in paths)
