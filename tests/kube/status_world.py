"""A fleet whose objects are in a namespace of an API server, with passes and their statuses."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from fleet import Fleet
from kind_pages import CONDITIONS_BY_KIND, STAGE_CONDITIONS
from kube.record_fleet import wait_until
from kube_server import KubeServer

from fanout.cli.settings import Settings
from fanout.cli.startup import Program, open_program
from fanout.controller.loop_health import ScheduledPass
from fanout.controller.status_thread import StatusThread
from fanout.errors import FanoutError
from fanout.kube.api_connection import open_connection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.object_sources import ListedObjects
from fanout.kube.status_writer import ApiStatusWriter
from fanout.plan.written_objects import WrittenObject
from fanout.ports import WriterResult
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.pass_scope import PassMode, list_subjects
from fanout.reconcile.validation.expression_validation import ObjectFindings

WRITES = ("APPLY", "PATCH", "PUT", "POST", "DELETE")


def count_requests(server: KubeServer, resource: str, verbs: Sequence[str], code: str = "") -> int:
    """Count the requests for a resource by all users, subresources included.

    `code`: with which the codes of their responses begin; default: any.
    """
    total = 0.0
    for line in server.kubectl("get", "--raw", "/metrics").stdout.splitlines():
        if line.startswith(f'apiserver_request_total{{code="{code}') and (
            f'resource="{resource}"' in line
        ):
            labels, _, number = line.rpartition(" ")
            if any(f'verb="{verb}"' in labels for verb in verbs):
                total += float(number)
    return int(total)


def count_writes(server: KubeServer, resource: str) -> int:
    """Count the writes of a resource by all users, subresources included."""
    return count_requests(server, resource, WRITES)


@dataclass
class StatusWorld:
    """The fleet of tests, and one process of the controller, whose thread is driven by hand."""

    server: KubeServer
    namespace: str
    fleet: Fleet
    program: Program | None = None
    thread: StatusThread | None = None
    writer: ApiStatusWriter | None = None
    connection: Any = None
    declared: Any = None
    problem: FanoutError | None = None  # that all policies are to show

    @classmethod
    def build(
        cls, server: KubeServer, namespace: str, root: Path, sites: dict[str, tuple[str, str]]
    ) -> "StatusWorld":
        fleet = Fleet.build(root, sites)
        cluster = cls(server, namespace, fleet)
        for path in (root / "policies").glob("*.yaml"):
            cluster.move(path)
        cluster.apply()
        return cluster

    def move(self, path: Path) -> None:
        """Write the namespace into the objects of a file."""
        documents = list(yaml.safe_load_all(path.read_text()))
        for document in documents:
            document["metadata"]["namespace"] = self.namespace
        path.write_text(yaml.safe_dump_all(documents))

    @property
    def records(self) -> Path:
        """Path of the records repository."""
        return self.fleet.root / "records.git"

    def apply(self) -> None:
        """Make the objects of the API server those of the files."""
        for path in sorted((self.fleet.root / "policies").glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                self.server.apply(document)

    @contextmanager
    def process(self, writer: str = "admin") -> Iterator["StatusWorld"]:
        """Run a process of the controller: its memory ends with the block.

        `writer`: the user who writes statuses.
        """
        if not self.records.exists():
            line = ["git", "init", "-q", "--bare", "--template=", "-b", "main", str(self.records)]
            subprocess.run(line, check=True)
        settings = Settings(
            kubeconfig=self.server.kubeconfig,
            context="admin",
            state_dir=self.fleet.root / "state",
            records=str(self.records),
            now_override=self.fleet.now,
            is_controller=True,
        )
        self.connection = open_connection(self.server.kubeconfig, "admin")
        self.writer = ApiStatusWriter(open_connection(self.server.kubeconfig, writer), "test")
        with open_program(settings, long_running=True) as program:
            self.program = program
            self.thread = StatusThread(
                self.writer,
                find_problem=lambda: self.problem,
                find_errors=ObjectFindings(program.world.sandbox).find_errors,
            )
            self.writer.start(lambda: None)
            try:
                yield self
            finally:
                self.writer.stop()

    def run_round(self, *, publish: bool = True, problem: str = "", show: bool = True) -> Any:
        """Make a pass over all policies, and show it unless somebody else does."""
        assert self.program is not None and self.thread is not None
        # A command lists once, and each round is to see what is there now.
        declared = ApiInventory(ListedObjects(self.connection)).read()
        self.declared, mode = declared, PassMode(publish=publish)
        self.thread.begin_round([], self.declared)
        access, reconciler = self.program.world, self.program.reconciler
        report = run_pass(access, reconciler, declared, self.fleet.now, mode)
        self.thread.end_round(ScheduledPass(report, list_subjects(declared)), None)
        if show:
            self.show(problem)
        return report

    def fail_round(self, failure: FanoutError) -> None:
        """Let a round fail as a whole, and show it."""
        assert self.thread is not None
        self.declared = ApiInventory(ListedObjects(self.connection)).read()
        self.thread.begin_round([], self.declared)
        self.thread.end_round(None, failure)
        self.show()

    def show(self, problem: str = "") -> None:
        """Write what is to be shown; `problem`: part of what is reported, "" for none."""
        assert self.thread is not None
        reported = self.thread.show()
        assert problem in reported and bool(problem) == bool(reported), reported

    def await_change(self) -> None:
        """Wait until the watches tell that somebody changed what was written."""
        assert self.writer is not None
        writer = self.writer
        wait_until(lambda: bool(writer.find_changed()), "the watches tell of no change")

    def stop_after(self, number: int) -> None:
        """Let the process end after this number of variants was taken to be written."""
        assert self.writer is not None and self.thread is not None
        write, thread = self.writer.write, self.thread

        def write_some(
            objects: Iterator[WrittenObject], await_turn: Callable[[], None]
        ) -> WriterResult:
            return write(take(objects), await_turn)

        def take(objects: Iterator[WrittenObject]) -> Iterator[WrittenObject]:
            count = 0
            for shown in objects:
                count += shown.name.kind == "PackageVariant"
                if count > number:
                    thread._stopped.set()
                    return
                yield shown

        self.writer.write = write_some  # type: ignore[method-assign,assignment]

    def add_site(self, name: str, stage: str) -> None:
        """Add a cluster with its ConfigMap."""
        self.fleet.site(name, stage, "edge")
        self.move(self.fleet.root / "policies" / f"site-{name}.yaml")
        self.apply()

    def report(self, stage: str, revision: str, status: str = "passed", *, only: str = "") -> None:
        """Record evidence as somebody does with files: records are in Git in both modes.

        `only`: name of the variant that it is about; "" for all of the stage.
        """
        line = ["-n", self.namespace, "--records", str(self.records)]
        line += ["--variant", only] if only else []
        done = self.fleet.report(stage, revision, status, *line)
        assert done.code == 0, done.err

    def wait(self, name: str, condition: str) -> None:
        """Let kubectl wait for a condition that the object has already."""
        line = ("wait", f"--for=condition={condition}", name, "--timeout=60s")
        self.server.kubectl(*line, namespace=self.namespace)

    def events(self) -> list[tuple[str, str]]:
        """Return reason and type of all events."""
        items = self.server.list("events.k8s.io/v1", "Event", self.namespace)
        return [(it["reason"], it["type"]) for it in items]

    def await_state(self, is_reached: Callable[[], bool]) -> None:
        """Wait until the objects of the API server are as they are to be."""
        wait_until(is_reached, "the objects do not become what they are to be")

    def settle(self, limit: int = 12, *, show: bool = True) -> int:
        """Make rounds until there is nothing to do; return how many acted."""
        for count in range(limit):
            if not self.run_round(show=show).outcomes:
                self.check_conditions()
                return count
        raise AssertionError("the rounds do not come to an end")

    def check_conditions(self) -> None:
        """Check that all conditions of the namespace are of types that their kind has."""
        for kind, types in CONDITIONS_BY_KIND.items():
            for item in self.server.list("fanout.dev/v1alpha1", kind, self.namespace):
                status = item.get("status", {})
                assert {it["type"] for it in status.get("conditions", ())} <= set(types)
                conditions = [
                    it for stage in status.get("stages", ()) for it in stage["conditions"]
                ]
                assert {it["type"] for it in conditions} <= set(STAGE_CONDITIONS)

    def get(self, kind: str, name: str) -> Any:
        return self.server.get(self.manifest(kind, name))

    def manifest(self, kind: str, name: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "metadata": meta}

    def variants(self) -> dict[str, Any]:
        """Return the PackageVariants of the namespace by the last part of their package."""
        items = self.server.list("fanout.dev/v1alpha1", "PackageVariant", self.namespace)
        return {it["spec"]["downstream"]["package"].rpartition("/")[2]: it for it in items}

    def ready(self, item: Any) -> tuple[str, str]:
        """Return status and reason of the condition Ready."""
        ready = next(it for it in item["status"]["conditions"] if it["type"] == "Ready")
        return ready["status"], ready["reason"]
