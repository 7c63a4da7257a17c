"""Scenarios of files, ready to run, for `fanout simulate` and `fanout test`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fanout.api.kind_registry import KINDS
from fanout.api.scenarios.scenario import Scenario
from fanout.cli.settings import STANDARD_INPUT, Settings
from fanout.cli.startup import open_sandbox
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.file_cluster import FileCluster
from fanout.cluster.manifest_documents import FileFinding
from fanout.errors import InvalidInput
from fanout.plan.scenarios.scenario_player import PlayedPass, play_scenario
from fanout.plan.scenarios.scenario_timeline import (
    ScenarioPolicy,
    build_setting,
    build_timeline,
    find_policy,
)
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.validation.expression_validation import validate_expressions
from fanout.values import frozen, replace


@frozen
class DeclaredScenarios:
    """Declared objects with their scenarios, and the means to run these.

    `namespace`: the one whose scenarios are run; empty for all.
    """

    declared: DeclaredObjects
    conditions: PropagationConditions
    findings: tuple[FileFinding, ...]
    namespace: str = ""  # "": all namespaces

    def find_scenarios(self, paths: Sequence[Path]) -> tuple[Scenario, ...]:
        """Return the scenarios in these files and directories, by file and line."""
        located = [(self.declared.where(it), it) for it in self.declared.scenarios]
        matching = [
            (where, it)
            for where, it in located
            if _is_in_paths(where.file, paths) and self.namespace in ("", it.metadata.namespace)
        ]
        return tuple(
            it for _, it in sorted(matching, key=lambda entry: (entry[0].file, entry[0].line))
        )

    def find_errors(self, paths: Sequence[Path]) -> tuple[FileFinding, ...]:
        """Return the errors of scenarios in these files and directories."""
        return tuple(
            it
            for it in self.findings
            if it.severity == "error" and _is_in_paths(it.where.file, paths) and _is_scenario(it)
        )

    def find_valid(self, paths: Sequence[Path]) -> list[Scenario]:
        """Return the scenarios in these files and directories that have no errors."""
        with_errors = {(it.where.file, it.where.object) for it in self.find_errors(paths)}
        located = [(self.declared.where(it), it) for it in self.find_scenarios(paths)]
        return [it for where, it in located if (where.file, where.object) not in with_errors]

    def find_cast(self, scenario: Scenario) -> ScenarioPolicy:
        """Return the policy of the scenario and its PromotionPolicies.

        Raises InvalidInput if the policy is invalid, or a PromotionPolicy beside it is: it
        might restrict the policy.
        """
        found_cast = find_policy(scenario, self.declared.policies, self.declared.promotions)
        if found_cast is None:
            raise InvalidInput(
                f"UpstreamPolicy {scenario.spec.policy} is declared and cannot be used",
                reason="InvalidObject",
                remedy="see `fanout validate`",
                where=self.declared.where(scenario, "spec.policy"),
            )
        namespace = found_cast.policy.metadata.namespace
        invalid_promotions = [
            it
            for it in self.declared.left_out
            if (it.kind, it.namespace) == ("PromotionPolicy", namespace)
        ]
        # The invalid PromotionPolicy may restrict this policy, so a run without it would prove
        # nothing.
        if not scenario.spec.stages and invalid_promotions:
            raise InvalidInput(
                f"PromotionPolicy {invalid_promotions[0].name} is declared and cannot be used",
                reason="InvalidObject",
                remedy="see `fanout validate`: it may restrict this policy",
                where=self.declared.where(scenario, "spec.policy"),
            )
        return found_cast

    def run_scenario(self, scenario: Scenario) -> tuple[ScenarioPolicy, tuple[PlayedPass, ...]]:
        """Run the scenario and return its cast and its moments.

        Raises InvalidInput if it cannot be run.
        """
        found_cast = self.find_cast(scenario)
        scenario_setting = build_setting(scenario, found_cast, self.conditions.get_condition)
        moments = play_scenario(
            scenario, scenario_setting, build_timeline(scenario, found_cast), self.conditions.decide
        )
        return found_cast, moments


@contextmanager
def open_scenarios(settings: Settings, paths: Sequence[Path]) -> Iterator[DeclaredScenarios]:
    """Load the objects of `-f` and of these paths.

    Raises InvalidInput if a path does not exist.
    """
    sources = replace(settings, files=(*settings.files, *paths)).require_files()
    if STANDARD_INPUT in sources:
        raise InvalidInput(
            "scenarios and their policies are not read from standard input",
            reason="InvalidSetting",
            remedy="name files or directories",
        )
    # A scenario is a test: an error in one document must not hide what the others come to.
    declared = FileCluster(sources, keep_valid=True).read()
    with open_sandbox(settings) as sandbox:
        findings = (*declared.faults, *validate_expressions(declared, sandbox))
        yield DeclaredScenarios(
            declared, PropagationConditions(sandbox), findings, settings.namespace
        )


def _is_scenario(finding: FileFinding) -> bool:
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
