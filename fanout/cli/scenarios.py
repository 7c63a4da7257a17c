"""Scenarios of the files, ready to be played: what `fanout simulate` and `fanout test` share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fanout.api.kinds import KINDS
from fanout.api.scenario import Scenario
from fanout.cli.settings import STANDARD_INPUT, Settings
from fanout.cli.start import open_sandbox
from fanout.cluster.declared import Declared
from fanout.cluster.files import FileCluster
from fanout.cluster.findings import Finding
from fanout.errors import InvalidInput
from fanout.plan.scenarios.load import Cast, cast, script, setting
from fanout.plan.scenarios.play import Moment, play
from fanout.reconcile.compile import uncompilable
from fanout.reconcile.conditions import Conditions
from fanout.values import frozen, replace


@frozen
class Scenarios:
    """The declared objects, and what is needed to play their scenarios."""

    declared: Declared
    conditions: Conditions
    findings: tuple[Finding, ...]
    namespace: str = ""  # of which scenarios are played; "": of all

    def scenarios(self, paths: Sequence[Path]) -> tuple[Scenario, ...]:
        """The usable ones in these files and directories, in the order in which they stand."""
        places = [(self.declared.where(it), it) for it in self.declared.scenarios]
        mine = [
            (where, it)
            for where, it in places
            if _below(where.file, paths) and self.namespace in ("", it.metadata.namespace)
        ]
        return tuple(it for _, it in sorted(mine, key=lambda one: (one[0].file, one[0].line)))

    def faults(self, paths: Sequence[Path]) -> tuple[Finding, ...]:
        """What is wrong with scenarios in these files and directories."""
        return tuple(
            it
            for it in self.findings
            if it.severity == "error" and _below(it.where.file, paths) and _is_scenario(it)
        )

    def usable(self, paths: Sequence[Path]) -> list[Scenario]:
        """Those of them without errors."""
        broken = {(it.where.file, it.where.object) for it in self.faults(paths)}
        found = [(self.declared.where(it), it) for it in self.scenarios(paths)]
        return [it for where, it in found if (where.file, where.object) not in broken]

    def cast(self, scenario: Scenario) -> Cast:
        """The policy that the scenario is about. Raises InvalidInput when it cannot be used."""
        found = cast(scenario, self.declared.policies, self.declared.promotions)
        if found is None:
            raise InvalidInput(
                f"UpstreamPolicy {scenario.spec.policy} is declared and cannot be used",
                reason="InvalidObject",
                remedy="see `fanout validate`",
                where=self.declared.where(scenario, "spec.policy"),
            )
        beside = found.policy.metadata.namespace
        lost = [
            it
            for it in self.declared.left_out
            if (it.kind, it.namespace) == ("PromotionPolicy", beside)
        ]
        if not scenario.spec.stages and lost:
            raise InvalidInput(
                f"PromotionPolicy {lost[0].name} is declared and cannot be used",
                reason="InvalidObject",
                remedy="see `fanout validate`: it may restrict this policy",
                where=self.declared.where(scenario, "spec.policy"),
            )
        return found

    def play(self, scenario: Scenario) -> tuple[Cast, tuple[Moment, ...]]:
        """The scenario, played. Raises InvalidInput when that is not possible."""
        found = self.cast(scenario)
        made = setting(scenario, found, self.conditions.condition)
        played = play(scenario, made, script(scenario, found), self.conditions.decide)
        return found, played


@contextmanager
def open_scenarios(settings: Settings, paths: Sequence[Path]) -> Iterator[Scenarios]:
    """The objects of `-f` and of these paths. Raises InvalidInput where there is none."""
    named = replace(settings, files=(*settings.files, *paths)).sources()
    if STANDARD_INPUT in named:
        raise InvalidInput(
            "scenarios and their policies are not read from standard input",
            reason="InvalidSetting",
            remedy="name files or directories",
        )
    declared = FileCluster(named).read()
    with open_sandbox(settings) as sandbox:
        findings = (*declared.faults, *uncompilable(declared, sandbox))
        yield Scenarios(declared, Conditions(sandbox), findings, settings.namespace)


def _is_scenario(found: Finding) -> bool:
    """Is it about a scenario, or about what may have been meant as one?"""
    kind = found.where.object.partition("/")[0]
    return kind == Scenario.__name__ or kind not in KINDS


def _below(file: str, paths: Sequence[Path]) -> bool:
    """Is it one of these, however they were written? A file that is named twice is read once."""
    real = Path(file).resolve()
    return any(real.is_relative_to(path.resolve()) for path in paths)
