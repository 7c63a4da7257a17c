"""Ports and installation settings of a pass: the only things outside that it may touch."""

from collections.abc import Mapping

from fanout.api.fanout_configuration import ForgeProgram
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.ports import ForgeDirectory, FunctionRunner, GitStore, ProbeClient, RecordStore, Sandbox
from fanout.telemetry.metrics import Counters, ProgressReporter
from fanout.values import Value, field
from fanout.variants.render_model import RenderLimits


class Setup(Value):
    """Settings that an administrator configures."""

    install: str = "default"
    identity: CommitIdentity = CommitIdentity("fanout", "fanout@localhost")
    limits: RenderLimits = RenderLimits()
    check_namespaces: frozenset[str] = frozenset()  # that checks may read besides their own
    forge_programs: Mapping[str, ForgeProgram] = field(default_factory=dict)  # by host
    new_records: bool = False  # a person confirmed that missing records are no loss


class World(Value, kw_only=True):
    """Ports of a pass. Declared and cluster objects are handed to each pass already parsed."""

    git: GitStore
    records: RecordStore
    sandbox: Sandbox
    setup: Setup
    counters: Counters
    progress: ProgressReporter
    function_runtime: FunctionRunner
    probes: ProbeClient
    forges: ForgeDirectory
    makes_rounds: bool = False  # passes of many tenants follow each other, so none takes long
