"""Ports and installation settings of a pass: the only things outside that it may touch."""

from collections.abc import Mapping, Sequence

from fanout.errors import Bug, InvalidInput
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.plan.observation.observed_request import RepositoryName
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.pull_requests.call_limits import HostLimits
from fanout.ports import (
    Forge,
    ForgeDirectory,
    FunctionRunner,
    GitStore,
    ProbeClient,
    RecordStore,
    Sandbox,
)
from fanout.telemetry.metrics import Counters, NoProgress, ProgressReporter
from fanout.values import Value, field
from fanout.variants.function_requests import (
    ProgramOutput,
    ProgramRun,
    ResponseError,
    ScriptOutput,
    ScriptRun,
)
from fanout.variants.render_model import RenderLimits


class Setup(Value):
    """Settings that an administrator configures."""

    install: str = "default"
    identity: CommitIdentity = CommitIdentity("fanout", "fanout@localhost")
    limits: RenderLimits = RenderLimits()
    check_namespaces: frozenset[str] = frozenset()  # that checks may read besides their own
    new_records: bool = False  # a person confirmed that missing records are no loss


class DisabledFunctionRuntime:
    """Function runtime that runs nothing, for installations that allow no programs."""

    def run(
        self,
        runs: Sequence[ProgramRun],
        budget: EvaluationBudget | None = None,  # noqa: ARG002 as of the port
    ) -> list[ProgramOutput | ResponseError]:
        """Raise Bug: no program is allowed, so none may be requested."""
        raise Bug(f"{runs[0].program.name} is to be run and no program is allowed")

    def run_scripts(
        self,
        scripts: Sequence[ScriptRun],
        budget: EvaluationBudget | None = None,  # noqa: ARG002 as of the port
    ) -> list[ScriptOutput | ResponseError]:
        """Return for each script that it cannot be run."""
        return [ResponseError("scripts are not run here") for _ in scripts]


class DisabledProbes:
    """Probes that query nothing and leave every check pending."""

    def ask(self, requests: Sequence[ProbeQuery]) -> list[ProbeResponse | ProbeFailure]:
        """Return for each probe the reason why there is no answer."""
        return [ProbeFailure(f"{question.url} is not asked here") for question in requests]


class NoForge:
    """Directory of an installation whose administrator lists no forges."""

    def forge_of(self, url: str) -> tuple[Forge, RepositoryName]:
        """Raise InvalidInput: the host is not listed."""
        raise InvalidInput(
            f"no forge is configured for {url}",
            reason="InvalidObject",
            remedy="have an administrator list its host in forges of the FanoutConfiguration",
        )

    def limits_of(self, url: str) -> HostLimits | None:  # noqa: ARG002 as of the port
        """Return None: no host is listed."""
        return None

    def remaining_calls(self) -> Mapping[tuple[str, str], int]:
        """Return nothing: no host is listed."""
        return {}


class World(Value, kw_only=True):
    """Ports of a pass.

    Declared and cluster objects are handed to each pass already parsed.
    """

    git: GitStore
    records: RecordStore
    sandbox: Sandbox
    setup: Setup
    counters: Counters = field(default_factory=Counters)
    progress: ProgressReporter = field(default_factory=NoProgress)
    function_runtime: FunctionRunner = field(default_factory=DisabledFunctionRuntime)
    probes: ProbeClient = field(default_factory=DisabledProbes)
    forges: ForgeDirectory = field(default_factory=NoForge)
    makes_rounds: bool = False  # passes of many tenants follow each other, so none takes long
