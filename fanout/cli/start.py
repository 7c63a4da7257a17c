"""Builds the world that a verb works in: from settings and configuration to open ports."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from fanout.api.configuration import FanoutConfiguration
from fanout.api.repository import Repository
from fanout.cli.asking import LateProbes
from fanout.cli.costs import costs
from fanout.cli.ending import hold
from fanout.cli.files import files_of
from fanout.cli.lookup import check_files
from fanout.cli.progress import progress_for
from fanout.cli.settings import Settings
from fanout.cli.terminal import say
from fanout.cli.traces import traces_shown
from fanout.cluster.configuration import read_configuration
from fanout.cluster.declared import Declared
from fanout.cluster.files import FileCluster
from fanout.cluster.last_heads import LastHeads
from fanout.cluster.parsed import ParsedFiles
from fanout.cluster.records import GitRecords
from fanout.cluster.records_repository import LocalRepository, RecordsRepository
from fanout.cluster.secrets import FileSecrets
from fanout.cluster.sweep_log import SweepLog
from fanout.git.mirror import create_bare
from fanout.git.store import MirrorStore
from fanout.plan.repository import Identity, Remote
from fanout.reconcile.execute import run_pass
from fanout.reconcile.passes import Mode, Reconciler
from fanout.reconcile.report import Observed, Report
from fanout.reconcile.rest import Resting
from fanout.reconcile.world import Setup, World
from fanout.sandbox.limits import Limits as SandboxLimits
from fanout.sandbox.pool import ProcessSandbox
from fanout.sandbox.programs import ProgramRunner, allowed_programs
from fanout.telemetry.counters import Counters
from fanout.telemetry.redact import Redactor
from fanout.values import frozen
from fanout.variants.model import Limits


@frozen
class Program:
    """What a verb needs: the world, the files, and a reconciler over both."""

    settings: Settings
    configuration: FanoutConfiguration
    world: World
    cluster: FileCluster
    reconciler: Reconciler
    redactor: Redactor
    sweeps: SweepLog
    resting: Resting

    def declared(self) -> Declared:
        """What the files declare, restricted to the namespace that was asked for."""
        with self.world.counters.times.phase("files"):
            return self.cluster.read()

    def check(self) -> None:
        """Is there anything to work with? Raises InvalidInput."""
        check_files(self.settings.files, self.declared(), self.settings.namespace)

    def at_rest(self, mode: Mode) -> Observed | None:
        """What a pass would say, where everything is as it was when one had nothing to do.

        Raises Unavailable or Denied when the records cannot be listed.
        """
        phase = self.world.counters.times.phase
        with phase("files"):
            files = self.cluster.digest()
        with phase("listings"):
            found = self.resting.found(mode, files, self.settings.now())
        if found is None:
            self.world.git.reuse_listings()  # the pass that follows looks at the same moment
        return found

    def observe(self, mode: Mode) -> Observed:
        """One pass up to its plan."""
        declared, files = self.declared(), self.cluster.digest_read()
        observed = self.reconciler.observe(declared, self.settings.now(), mode)
        self._remember(mode, files, declared, observed)
        return observed

    def sweep(self, mode: Mode) -> Report:
        """One whole pass."""
        declared, files = self.declared(), self.cluster.digest_read()
        report = run_pass(self.world, self.reconciler, declared, self.settings.now(), mode)
        self._remember(mode, files, declared, report.observed)
        return report

    def _remember(self, mode: Mode, files: str, declared: Declared, observed: Observed) -> None:
        """What people have to be told of the files they are told every time."""
        faulty = any(fault.severity == "error" for fault in declared.faults)
        if not faulty and not _remote_beside_local_records(self, declared):
            self.resting.keep(mode, files, observed)


@contextmanager
def open_program(
    settings: Settings, *, read: bool = True, stays: bool = False
) -> Iterator[Program]:
    """Open everything; what was started is ended with it. Raises InvalidInput for bad settings.

    Without `read` no file has been looked into yet, nor checked. A program that `stays` makes many
    passes and writes a log: it remembers more, and its cost is not told at the end.
    """
    cluster = files_of(settings, ParsedFiles(settings.state_dir / "parsed"))
    configuration = configuration_of(settings)
    counters, redactor, progress = Counters(), Redactor(), progress_for(settings)
    author = configuration.author
    setup = Setup(
        install=configuration.install_id,
        identity=Identity(author.name, author.email),
        limits=_package_limits(configuration),
        new_records=settings.new_records,
    )
    secrets = FileSecrets(redactor, settings.state_dir / "secrets").get
    git = MirrorStore(
        _mirrors(settings, configuration),
        install=setup.install,
        secrets=secrets,
        counters=counters,
        allowed=tuple(protocol.value for protocol in configuration.allowed_protocols),
        concurrency=configuration.concurrency,
        progress=progress,
        engine=configuration.git_engine,
        limits=setup.limits,
    )
    url, named = _records(settings, configuration)
    local = _local(url, _create_and_say if named else create_bare)
    repository = RecordsRepository(git, Remote(url), counters, local)
    records = _git_records(repository, setup, settings)
    sweeps = SweepLog(repository, setup.install, setup.identity)
    kept = settings.state_dir / "expressions.json"
    traces = traces_shown(redactor, shown=bool(settings.verbosity) and not stays)
    with traces, ProcessSandbox(_sandbox_limits(configuration), counters, kept) as sandbox:
        workshop = function_runner(configuration, counters)
        lent = {it.name: it.addresses for it in configuration.check_secrets}
        tell = partial(say, color=settings.color) if settings.verbosity else None
        probes = LateProbes(lambda probes: probes.HttpProbes(secrets, lent, tell=tell))
        world = World(git, records, sandbox, setup, counters, progress, workshop, probes)
        resting = Resting(
            world,
            settings.state_dir / "rest",
            f"{version('fanout')}\0{url}\0{configuration.model_dump_json()}",
        )
        reconciler = Reconciler(world, stays=stays)
        program = Program(
            settings, configuration, world, cluster, reconciler, redactor, sweeps, resting
        )
        hold(program)
        if read:
            program.check()
        yield program
    if settings.verbosity and not stays:
        for line in costs(counters):
            say(line, settings.color)


def _git_records(repository: RecordsRepository, setup: Setup, settings: Settings) -> GitRecords:
    return GitRecords(
        repository,
        setup.install,
        setup.identity,
        LastHeads(settings.state_dir / "heads", repository.remote.url),
        begin_anew=setup.new_records,
    )


@contextmanager
def open_sandbox(settings: Settings) -> Iterator[ProcessSandbox]:
    """The sandbox alone, for verbs that look at no repository."""
    configuration = configuration_of(settings)
    with ProcessSandbox(_sandbox_limits(configuration), Counters()) as sandbox:
        yield sandbox


def configuration_of(settings: Settings) -> FanoutConfiguration:
    """The file of --config, or the defaults. Raises InvalidInput."""
    return read_configuration(settings.config) if settings.config else FanoutConfiguration()


def function_runner(configuration: FanoutConfiguration, counters: Counters) -> ProgramRunner:
    """Runs the programs that the configuration allows, and packages' scripts."""
    limits = _sandbox_limits(configuration)
    return ProgramRunner(configuration.functions, configuration.concurrency, counters, limits)


def _sandbox_limits(configuration: FanoutConfiguration) -> SandboxLimits:
    said = configuration.sandbox
    return SandboxLimits(cpu=said.cpu_seconds, memory=said.memory_mib, wall=said.wall_seconds)


def warn_about_records(program: Program, declared: Declared) -> None:
    """A local records repository beside remote Repositories is on one machine's disk only."""
    if remote := _remote_beside_local_records(program, declared):
        url, _ = _records(program.settings, program.configuration)
        say(
            f"warning: records are kept in {url}, on this machine only, and"
            f" {remote[0].identity} is remote; name a remote records repository with --records"
        )


def _remote_beside_local_records(program: Program, declared: Declared) -> list[Repository]:
    url, _ = _records(program.settings, program.configuration)
    if _local(url) is None:
        return []
    return [it for it in declared.repositories if _local(it.spec.url) is None]


def _mirrors(settings: Settings, configuration: FanoutConfiguration) -> Path:
    said = configuration.mirrors
    return settings.state_dir / "mirrors" if said == _default("mirrors") else Path(said)


def _records(settings: Settings, configuration: FanoutConfiguration) -> tuple[str, bool]:
    """The URL of the records repository, and whether somebody named it."""
    said = settings.records or configuration.records
    if not settings.records and said == _default("records"):
        return str((settings.state_dir / "records.git").absolute()), False
    return said, True


def _default(name: str) -> str:
    return str(FanoutConfiguration.model_fields[name].default)


def _create_and_say(path: Path) -> None:
    """Whoever named a path may have mistyped it."""
    create_bare(path)
    say(f"records are kept in {path.absolute()}, a new repository")


def _local(url: str, create: Callable[[Path], None] = create_bare) -> LocalRepository | None:
    """A repository on this machine is made when it is first written to."""
    scheme = urlsplit(url).scheme
    if scheme not in ("", "file") or (not scheme and ":" in url.partition("/")[0]):
        return None
    return LocalRepository(Path(urlsplit(url).path if scheme else url), create)


def _package_limits(configuration: FanoutConfiguration) -> Limits:
    limits = configuration.package_limits
    return Limits(
        files=limits.files,
        size=limits.bytes_,
        depth=limits.depth,
        file_size=limits.file_bytes,
        injectable=configuration.injection,
        programs=allowed_programs(configuration.functions),
    )
