"""Startup of a verb: from settings and configuration to open ports and a reconciler."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fanout.api.fanout_configuration import FanoutConfiguration, RecordsLocation
from fanout.api.git_repository import Repository
from fanout.api.urls import GitProtocol
from fanout.cli.completion_index import PolicyNames, VariantNames, update_index
from fanout.cli.declarations import check_declared, open_inventory, open_record_creator
from fanout.cli.diagnostics import build_progress, format_costs, show_tracebacks
from fanout.cli.lazy_import import load_module
from fanout.cli.settings import Settings
from fanout.cli.terminal import print_message
from fanout.cluster.file_cluster import FileCluster, read_configuration
from fanout.cluster.file_secrets import FileSecrets
from fanout.cluster.policy_state_store import ObservedHeads, PolicyStateStore
from fanout.cluster.record_overlay import RecordOverlay
from fanout.cluster.records_repository import LocalRepository, RecordRefusals, RecordsRepository
from fanout.cluster.sweep_log_store import SweepLogStore
from fanout.declared.declared_objects import DeclaredObjects
from fanout.disk_cache import installed_version
from fanout.errors import InvalidInput
from fanout.git.mirror import create_bare
from fanout.git.mirror_store import MirrorStore
from fanout.git.remote_workers import COMMAND_PATIENCE, ROUND_PATIENCE, RemoteTimeout
from fanout.plan.actions import ActionResult
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.plan.observation.observed_request import RepositoryName
from fanout.plan.observation.repository_state import CommitIdentity, Remote
from fanout.plan.pull_requests.call_estimate import CallEstimate, estimate_calls
from fanout.plan.pull_requests.call_limits import HostLimits
from fanout.plan.records.trace_changes import build_trace_changes
from fanout.ports import (
    Credentials,
    Forge,
    ForgeDirectory,
    Inventory,
    ProbeClient,
    RecordCreator,
    Secrets,
)
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.memo.noop_snapshot import NoopSnapshotStore
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.pull_requests.request_memo import RequestMemos
from fanout.reconcile.reconciler import Reconciler
from fanout.reconcile.world import Setup, World
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.function_runner import ProgramRunner, find_allowed_programs
from fanout.sandbox.worker_protocol import WorkerLimits as SandboxLimits
from fanout.telemetry.metrics import Counters
from fanout.telemetry.redaction import Redactor
from fanout.values import Value, field, replace
from fanout.variants.render_model import RenderLimits


# Most policies have no HTTP checks, and most installations list no host: loading the HTTP library
# takes longer than a no-op pass.
class LazyProbes(Value):
    """Port `fanout.ports.ProbeClient` that opens its implementation on the first query."""

    open: Callable[[], ProbeClient]  # opens it once

    def ask(self, requests: Sequence[ProbeQuery]) -> list[ProbeResponse | ProbeFailure]:
        """Answer probes as `fanout.ports.ProbeClient` specifies; without any, load nothing."""
        return self.open().ask(requests) if requests else []


CALL_PATIENCE = 5.0  # seconds that a pass of many waits for a call of a forge


@dataclass(slots=True)
class LazyForgeDirectory:
    """Port `fanout.ports.ForgeDirectory` that opens its implementation when it is asked."""

    build: Callable[[], ForgeDirectory]
    _directory: Any = None

    def _open(self) -> ForgeDirectory:
        directory: ForgeDirectory = self._directory or self.build()
        self._directory = directory
        return directory

    def forge_of(self, url: str) -> tuple[Forge, RepositoryName]:
        """Return the forge of a repository as `fanout.ports.ForgeDirectory` specifies."""
        return self._open().forge_of(url)

    def limits_of(self, url: str) -> HostLimits | None:
        """Return the limits of a repository's host as `ForgeDirectory` specifies."""
        return self._open().limits_of(url)

    def exchange_secret(
        self, url: str, name: str, read_secret: Callable[[], Credentials]
    ) -> Credentials:
        """Return credentials of Git with a token of an App, as `ForgeDirectory` specifies."""
        return self._open().exchange_secret(url, name, read_secret)

    def remaining_calls(self) -> Mapping[tuple[str, str], int]:
        """Return how many more calls each host takes, by host and limit; load nothing for it."""
        return self._directory.remaining_calls() if self._directory is not None else {}

    def close(self) -> None:
        """End the connections that were made."""
        if self._directory is not None:
            self._directory.close()


@dataclass(slots=True)
class PassDeclarations:
    """Declared objects that were checked, and that no pass has used so far, and those read last."""

    checked: DeclaredObjects | None = None
    latest: DeclaredObjects | None = None


class Program(Value):
    """Open program of one command: settings, world, declared files and reconciler."""

    settings: Settings
    configuration: FanoutConfiguration
    world: World
    inventory: Inventory
    reconciler: Reconciler
    redactor: Redactor
    sweeps: SweepLogStore
    noop_snapshot: NoopSnapshotStore
    records_url: str
    overlay: RecordOverlay | None = None  # the records of a dry run, or of a cluster
    record_creator: RecordCreator | None = None  # of a command on a cluster
    next_pass: PassDeclarations = field(default_factory=PassDeclarations)

    def read_declared(self) -> DeclaredObjects:
        """Read the declared objects."""
        with self.world.counters.times.phase("files"):
            self.next_pass.latest = self.inventory.read()
        return self.next_pass.latest

    def _take_declared(self) -> DeclaredObjects:
        """Return what a pass is about: what a command checked, if no pass has used it.

        A file that breaks meanwhile would else be left out without a word.
        """
        declared = self.next_pass.checked or self.read_declared()
        self.next_pass.checked = None
        return declared

    def check_input(self) -> DeclaredObjects:
        """Read the declared objects of the next pass. Raises InvalidInput without any to serve."""
        declared = self.read_declared()
        check_declared(self.settings, declared)
        self.next_pass.checked = declared
        return declared

    def find_noop_result(self, mode: PassMode) -> PassPlan | None:
        """Return the result of a no-op pass if nothing changed since, else None.

        Compares a digest of the files and one listing of all refs with what that pass saw.
        Raises Unavailable or Denied if the records repository cannot be listed.
        """
        phase, files_digest = self.world.counters.times.phase, ""
        with phase("files"):
            if isinstance(self.inventory, FileCluster):
                files_digest = self.inventory.digest()
        with phase("listings"):
            noop_result = self.noop_snapshot.find_plan(mode, files_digest, self.settings.now())
        # A pass follows and must not list the same refs a second time.
        if noop_result is None:
            self.world.git.reuse_listings()
        return noop_result

    def observe(self, mode: PassMode) -> PassPlan:
        """Run one pass up to its plan, and change nothing."""
        declared = self._take_declared()
        observed = self.reconciler.plan_pass(declared, self.settings.now(), mode)
        # Packages may inject kinds that no policy names.
        if self.inventory.require(self.reconciler.list_injected_kinds(observed)):
            declared = self.read_declared()
            observed = self.reconciler.plan_pass(declared, self.settings.now(), mode)
        self._store_pass(mode, declared, observed)
        return observed

    def estimate_calls(self, observed: PassPlan) -> CallEstimate:
        """Estimate what the plan of a pass asks of the hosts."""
        refs_by_url: Counter[str] = Counter()
        traces = [it for item in observed.policies for it in item.traces]
        setup = self.world.setup
        trace_changes = build_trace_changes(traces, setup.install, setup.identity)
        for change in (*observed.changes, *trace_changes):
            refs_by_url[change.remote.url] += change.ref_count
        requests = [change for plan in observed.plans for change in plan.request_changes]
        requests += observed.other_statuses
        return estimate_calls(refs_by_url, requests, self.world.forges.limits_of)

    def sweep(self, mode: PassMode) -> PassReport:
        """Run one complete pass, including the actions of its plan.

        In a dry run and on a cluster no action is carried out, and all are reported as done.
        """
        if self.overlay is not None:
            observed = self.observe(mode)
            outcomes = (ActionResult(it, is_done=True) for it in observed.plan.actions)
            return PassReport(observed, tuple(outcomes))
        declared = self._take_declared()
        report = run_pass(self.world, self.reconciler, declared, self.settings.now(), mode)
        self._store_pass(mode, declared, report.pass_plan)
        return report

    def _store_pass(self, mode: PassMode, declared: DeclaredObjects, observed: PassPlan) -> None:
        """Store the names that shells complete, and the observed state as a no-op snapshot."""
        # A stopped policy keeps its earlier names.
        names = {
            item.resolved_policy.name: PolicyNames(
                tuple(
                    VariantNames(it.spec.name, it.spec.target.rpartition("/")[2], it.spec.stage)
                    for it in item.variants
                ),
                tuple(item.revisions),
            )
            for item in observed.policies
            if item.error is None and item.resolved_policy.upstream_policy is not None
        }
        is_all = mode.only is None and not mode.namespace and len(names) == len(observed.policies)
        update_index(self.settings.state_dir, names, is_all=is_all)
        # Of a cluster nothing tells without a listing whether objects changed. In a dry run the
        # state has records that nobody wrote.
        is_latest = declared is self.next_pass.latest
        if self.overlay is not None or not is_latest or not isinstance(self.inventory, FileCluster):
            return
        # A pass that is answered from the snapshot reads no file and so reports no error in one;
        # such files are therefore never answered from it.
        has_errors = any(fault.severity == "error" for fault in declared.faults)
        if not has_errors and not _find_remote_repositories(self, declared):
            self.noop_snapshot.store(mode, self.inventory.last_digest(), observed)


class OpenCluster(Value):
    """A cluster as a controller uses it."""

    inventory: Inventory
    # adds the Secrets of namespaces to those of the administrator
    open_secrets: Callable[[Secrets, Redactor], Secrets]


@contextmanager
def open_program(
    settings: Settings,
    *,
    check: bool = True,
    long_running: bool = False,
    cluster: OpenCluster | None = None,
) -> Iterator[Program]:
    """Open everything that a verb needs, and close it at the end.

    Raises InvalidInput for bad settings. Without `check` the files are not read or checked
    yet. A `long_running` program makes many passes and writes a log: it keeps more in
    memory, and its costs are not printed at the end. `cluster`: of a controller, in place of
    what the settings name.
    """
    inventory = cluster.inventory if cluster is not None else open_inventory(settings)
    configuration = load_configuration(settings)
    counters, redactor = Counters(), Redactor()
    expression_cache = settings.state_dir / "expressions.json"
    secrets: Secrets = FileSecrets(redactor, settings.state_dir / "secrets")
    if cluster is not None:
        secrets = cluster.open_secrets(secrets, redactor)
    is_traced = bool(settings.verbosity) and not long_running
    call_patience = CALL_PATIENCE if long_running else None
    forges = LazyForgeDirectory(
        lambda: load_module("forge.forge_hosts").ForgeHosts(
            configuration.forges, partial(secrets.get, ""), counters.events, call_patience, redactor
        )
    )
    with (
        show_tracebacks(redactor, enabled=is_traced),
        closing(forges),
        ProcessSandbox(_sandbox_limits(configuration), counters, expression_cache) as sandbox,
        ExitStack() as stack,
    ):
        patience = ROUND_PATIENCE if long_running else COMMAND_PATIENCE
        url, _ = _find_records(settings, configuration)
        world, sweeps = _open_world(
            settings, configuration, sandbox, counters, secrets, patience, forges
        )
        stack.enter_context(closing(world.git))
        creator = open_record_creator(settings)
        # The records of a command that writes none into Git.
        overlay = None
        if settings.dry_run:
            overlay = RecordOverlay(world.records)
        elif creator is not None:
            overlay = RecordOverlay(world.records, creator.create)
        records = overlay or world.records
        world = replace(world, records=records, makes_rounds=long_running)
        version = installed_version()
        request_memos = RequestMemos(
            settings.state_dir / "forges", f"{version}\0{configuration.install_id}"
        )
        budgets = BudgetStore(
            settings.state_dir / "pauses.json",
            f"{version}\0{configuration.sandbox}\0{configuration.functions}",
        )
        reconciler = Reconciler(world, request_memos, budgets=budgets, long_running=long_running)
        noop_snapshot = NoopSnapshotStore(
            world,
            reconciler.digest_unchanged_requests,
            settings.state_dir / "rest",
            f"{version}\0{url}\0{configuration.model_dump_json()}",
        )
        program = Program(
            settings,
            configuration,
            world,
            inventory,
            reconciler,
            redactor,
            sweeps,
            noop_snapshot,
            url,
            overlay,
            creator,
        )
        if check:
            check_declared(settings, program.read_declared())
        yield program
    if settings.verbosity and not long_running:
        for line in format_costs(counters):
            print_message(line, settings.color)


def _open_world(
    settings: Settings,
    configuration: FanoutConfiguration,
    sandbox: ProcessSandbox,
    counters: Counters,
    secrets: Secrets,
    patience: RemoteTimeout,
    forges: ForgeDirectory,
) -> tuple[World, SweepLogStore]:
    """Return the ports of a program, and the log of sweeps in its records repository."""
    progress, author = build_progress(settings), configuration.author
    setup = Setup(
        install=configuration.install_id,
        identity=CommitIdentity(author.name, author.email),
        limits=_package_limits(configuration),
        check_namespaces=frozenset(configuration.checks.namespaces),
        forge_programs={it.host: it.type for it in configuration.forges},
        new_records=settings.new_records,
    )
    url, is_configured = _find_records(settings, configuration)
    secret = configuration.records.secret_ref
    # Without a namespace it is a secret of the administrator.
    remote = Remote(url, secret=secret.name if secret else "", is_own=settings.uses_cluster)
    mirrors = Path(configuration.mirrors)
    if configuration.mirrors == FanoutConfiguration.model_fields["mirrors"].default:
        mirrors = settings.state_dir / "mirrors"
    # The paths of a pod lead to its mirrors, which hold what the secrets of others have shown. So
    # local ones are allowed there only where an administrator says so.
    is_default = "allowed_protocols" not in configuration.model_fields_set
    git = MirrorStore(
        mirrors,
        install=setup.install,
        secrets=secrets.get,
        counters=counters,
        allowed=tuple(
            it.value
            for it in configuration.allowed_protocols
            if not (is_default and settings.is_in_pod and it is GitProtocol.FILE)
        ),
        # Whoever creates a Repository would else use the key of the records.
        lends_credentials=not settings.is_controller,
        concurrency=configuration.concurrency,
        patience=patience,
        essential=(remote.key,),
        progress=progress,
        limits=setup.limits,
        exchange_secret=forges.exchange_secret,
    )
    repository = _open_records(settings, git, remote, counters, is_configured=is_configured)
    world = World(
        git=git,
        records=PolicyStateStore(
            repository,
            setup.install,
            setup.identity,
            ObservedHeads(settings.state_dir / "heads", repository.remote.url),
            ignore_observed_heads=setup.new_records,
            keeps_last_read=settings.is_controller,
        ),
        sandbox=sandbox,
        setup=setup,
        counters=counters,
        progress=progress,
        function_runtime=build_function_runner(configuration, counters),
        probes=LazyProbes(
            cache(
                lambda: load_module("probes").HttpProbes(
                    partial(secrets.get, ""),
                    {it.name: it.addresses for it in configuration.check_secrets},
                    report=partial(print_message, color=settings.color)
                    if settings.verbosity
                    else None,
                    # The limits of probes are shorter than the patience of a command.
                    patience=None if patience.is_shared else patience.seconds,
                )
            )
        ),
        forges=forges,
    )
    return world, SweepLogStore(repository, setup.install, setup.identity)


def _open_records(
    settings: Settings, git: MirrorStore, remote: Remote, counters: Counters, *, is_configured: bool
) -> RecordsRepository:
    """Return the repository of the records; a directory that is missing is created with the first.

    `is_configured`: somebody has named it. On a cluster it must be there.
    """
    if settings.uses_cluster:
        _require_records(remote.url)

    def create_records(path: Path) -> None:
        create_bare(path)
        # A repository that somebody named may be a mistyped path.
        if is_configured:
            print_message(f"records are kept in {path.absolute()}, a new repository")

    return RecordsRepository(
        git,
        remote,
        counters,
        None if settings.uses_cluster else _as_local_repository(remote.url, create_records),
        push_refusal=RecordRefusals.of_repository(settings.state_dir / "refusals", remote.url),
    )


def _require_records(url: str) -> None:
    """Raise InvalidInput if the records of a cluster are to be in a directory that is missing.

    An empty repository in its place would be that of a cluster whose records are lost.
    """
    local_records = _as_local_repository(url)
    if local_records is not None and not local_records.path.exists():
        path = local_records.path.absolute()
        raise InvalidInput(
            f"the records repository {path} does not exist",
            reason="RecordsNotConfigured",
            remedy="correct its path, or create it with"
            f" `{shlex.join(('git', 'init', '--bare', str(path)))}`",
        )


@contextmanager
def open_sandbox(settings: Settings) -> Iterator[ProcessSandbox]:
    """Open the sandbox alone, for verbs that read no repository."""
    configuration = load_configuration(settings)
    with ProcessSandbox(_sandbox_limits(configuration), Counters()) as sandbox:
        yield sandbox


def load_configuration(settings: Settings) -> FanoutConfiguration:
    """Return the FanoutConfiguration of --config, or the defaults. Raises InvalidInput."""
    return read_configuration(settings.config)[0] if settings.config else FanoutConfiguration()


def check_configuration(settings: Settings) -> None:
    """Raise InvalidInput if the configuration, or the records repository, is unusable."""
    url, _ = _find_records(settings, load_configuration(settings))
    if settings.uses_cluster:
        _require_records(url)


def build_function_runner(configuration: FanoutConfiguration, counters: Counters) -> ProgramRunner:
    """Build the runner of packages' scripts and of the programs that are allowed."""
    limits = _sandbox_limits(configuration)
    return ProgramRunner(configuration.functions, configuration.concurrency, counters, limits)


def _sandbox_limits(configuration: FanoutConfiguration) -> SandboxLimits:
    sandbox = configuration.sandbox
    return SandboxLimits(
        cpu=sandbox.cpu_seconds, memory=sandbox.memory_mib, wall_seconds=sandbox.wall_seconds
    )


def warn_about_records(program: Program, declared: DeclaredObjects) -> None:
    """Warn if records are kept on this machine's disk although Repositories are remote."""
    if remote_repositories := _find_remote_repositories(program, declared):
        print_message(
            f"warning: records are kept in {program.records_url}, on this machine only, and"
            f" {remote_repositories[0].identity} is remote; name a remote records repository"
            " with --records"
        )


def _find_remote_repositories(program: Program, declared: DeclaredObjects) -> list[Repository]:
    if _as_local_repository(program.records_url) is None:
        return []
    return [it for it in declared.repositories if _as_local_repository(it.spec.url) is None]


def _find_records(settings: Settings, configuration: FanoutConfiguration) -> tuple[str, bool]:
    """Return the URL of the records repository, and whether it is configured."""
    url = settings.records or configuration.records.url
    if not settings.records and url == RecordsLocation().url:
        if settings.uses_cluster:
            raise InvalidInput(
                "the records repository of the cluster is not configured",
                reason="RecordsNotConfigured",
                remedy="name it with --records, or in the FanoutConfiguration"
                + ("" if settings.names_cluster else "; to read objects of files, use -f DIR"),
            )
        return str((settings.state_dir / "records.git").absolute()), False
    return url, True


def _as_local_repository(
    url: str, create: Callable[[Path], None] = create_bare
) -> LocalRepository | None:
    """Return the repository of a local URL, created on its first write; None if it is remote."""
    scheme = urlsplit(url).scheme
    # `host:path` is the scp-like form of SSH, which urlsplit takes for a relative path.
    if scheme not in ("", "file") or (not scheme and ":" in url.partition("/")[0]):
        return None
    return LocalRepository(Path(urlsplit(url).path if scheme else url), create)


def _package_limits(configuration: FanoutConfiguration) -> RenderLimits:
    limits = configuration.package_limits
    return RenderLimits(
        files=limits.files,
        size=limits.bytes_,
        depth=limits.depth,
        file_size=limits.file_bytes,
        values=limits.values,
        injectable=configuration.injection,
        programs=find_allowed_programs(configuration.functions),
    )
