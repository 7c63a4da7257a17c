"""A small company for whole-program tests: an upstream repository, downstream ones, policies.

Everything is real: bare Git repositories on disk, files with objects, the command line in process.
The test sets the time, so that soak and expiry can be played.
"""

import contextlib
import io
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from unittest.mock import patch

import jsonschema
import pygit2

from fanout.api.crd_schemas import build_json_schemas
from fanout.api.object_statuses import build_resource_schema
from fanout.cli.main import run_arguments
from fanout.cli.settings import Settings
from fanout.cli.startup import Program, open_program
from fanout.reconcile.pass_scope import PassMode


@cache
def view_validators() -> Mapping[str, jsonschema.Draft202012Validator]:
    """Return a validator of each view that fanout prints, by its schema."""
    return {
        name: jsonschema.Draft202012Validator(schema)
        for name, schema in build_json_schemas().items()
        if name.endswith("View")
    }


@cache
def status_validator(kind: str) -> jsonschema.Draft202012Validator:
    """Return a validator of the status of a kind, whose schema has been checked."""
    schema = build_resource_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_status(kind: str, status: Mapping[str, Any]) -> None:
    """Raise an error if the status of an object is not as the schema of its kind says."""
    status_validator(kind).validate(status)


HOST_PATIENCE = 300  # seconds until a host must do what it was asked to, on a slow machine
# A host tidies up when it likes, no test cuts the power, and no repository borrows objects: of one
# that it borrows from git lists the refs in a process of its own, for each push.
HOST_CONFIG = """\
[receive]
	autogc = false
[core]
	fsync = none
	alternateRefsCommand = true
"""
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday morning

PACKAGE = {
    "Kptfile": """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: monitoring
info:
  description: one Prometheus
""",
    "package-context.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: example
""",
    "deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: prometheus # ours
spec:
  replicas: 1
""",
    "settings.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations:
    kpt.dev/config-injection: optional
data:
  retention: 15d
""",
}

RULE = 'package: monitoring, revision: {semver: ">=1 <9"}'
WHERE = "\"'sites/' + target.metadata.name\""
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster}
    template:
      stageExpr: target.metadata.labels.tier
      downstream:
        repositoryExpr: target.spec.repository
        packageExpr: "'sites/' + target.metadata.name"
      injectors: [{kind: ConfigMap, nameExpr: target.metadata.name}]
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: prod, after: {stages: [dev], soak: 1h}}
"""

PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: everything}
spec:
  policies: ["*"]
  autoPromotion: {stages: ["*"]}
  approvers: [{group: sre, subjects: [ann@example.com, bob@example.com]}]
"""
# Without expressions, so that no process waits for a sandbox.
PLAIN = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge, packageNames: [sites/ams, sites/ber]}]
    template: {stage: dev}
  stages: [{name: dev}]
"""

Content = str | bytes | tuple[str, bytes] | None  # of a file; see Repo.commit


@dataclass(frozen=True)
class Result:
    """Result of one command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The objects of a List, or the one object that was asked for by its name.

        Each view must be as its schema says.
        """
        value = self.json
        items = list(value["items"]) if value["kind"] == "List" else [value]
        for item in items:
            if model := view_validators().get(item["kind"]):
                model.validate(item)
        return items

    @property
    def views(self) -> list[dict[str, Any]]:
        """The items with the fields of their spec and status beside their own."""
        return [it | it.get("spec", {}) | it.get("status", {}) for it in self.items]

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Subject and reason of each problem and hold of a pass that was printed as JSON.

        The subject is a repository, target or variant; "" is the policy.
        """
        lists = ("problems", "failedTargets", "failedVariants", "held")
        return [
            (next((it[noun] for noun in ("repository", "target", "variant") if noun in it), ""),
             it["reason"])
            for name in lists
            for it in self.json[name]
        ]  # fmt: skip

    @property
    def reasons(self) -> set[str]:
        """The reasons of `problems`."""
        return {reason for _, reason in self.problems}


def stored(content: str | bytes | tuple[str, bytes]) -> tuple[str, bytes]:
    """Mode and bytes of a file."""
    if isinstance(content, tuple):
        return content
    return "100644", content.encode() if isinstance(content, str) else content


def _signature(role: str, name: str, address: str) -> pygit2.Signature:
    """The author or committer, at the time that git would take from the environment."""
    date = os.environ.get(f"GIT_{role}_DATE")
    when = datetime.fromisoformat(date) if date else datetime.now(UTC)
    return pygit2.Signature(name, address, int(when.timestamp()))


@dataclass
class Repo:
    """A bare repository, looked at and pushed to with plain git."""

    path: Path
    author: str = "Ada Author <ada@example.com>"  # of what `commit` makes

    def git(self, *args: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002
        done = subprocess.run(
            ["git", *args], cwd=self.path, input=input, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Return what each ref below a prefix points to, by name."""
        try:
            repo = pygit2.Repository(str(self.path))
        except pygit2.InvalidError:  # the SHA-256 format
            form = "--format=%(refname) %(objectname)"
            return dict(it.split(" ") for it in self.git("for-each-ref", form, prefix).splitlines())
        names = sorted(it for it in repo.listall_references() if it.startswith(prefix))
        return {name: str(repo.lookup_reference(name).target) for name in names}

    def drafts(self) -> list[str]:
        prefix = "refs/heads/drafts/default/"
        return [ref.removeprefix(prefix) for ref in self.refs(prefix)]

    def tags(self) -> list[str]:
        return [ref.removeprefix("refs/tags/") for ref in self.refs("refs/tags/")]

    def file(self, revision: str, path: str) -> str:
        """Return the text of a file, with one line break at its end."""
        blob = self._tree(revision)[path]
        assert isinstance(blob, pygit2.Blob), path
        return blob.data.decode().strip() + "\n"

    def files(self, revision: str = "main") -> list[str]:
        """Return the paths of all files of a revision."""
        index = pygit2.Index()
        index.read_tree(self._tree(revision))
        return [entry.path for entry in index]

    def object_id(self, revision: str) -> str:
        """Return the id of an object that is named as for `git rev-parse`."""
        return str(pygit2.Repository(str(self.path)).revparse_single(revision).id)

    def _tree(self, revision: str) -> pygit2.Tree:
        return pygit2.Repository(str(self.path)).revparse_single(revision).peel(pygit2.Tree)

    def commit(self, branch: str, files: Mapping[str, Content], message: str = "by hand") -> str:
        """A person's commit on a branch; in process, because tests do little else so often.

        Content is text or bytes of an ordinary file, or a mode with bytes; None removes the file.
        """
        ref = f"refs/heads/{branch}"
        repo, index = pygit2.Repository(str(self.path)), pygit2.Index()
        parents = [repo.references[ref].target] if ref in repo.references else []
        for parent in parents:
            index.read_tree(repo[parent].peel(pygit2.Tree))
        for path, content in files.items():
            if content is None:
                index.remove(path)
            else:
                mode, data = stored(content)
                index.add(
                    pygit2.IndexEntry(
                        path, repo.create_blob(data), pygit2.enums.FileMode(int(mode, 8))
                    )
                )
        name, _, address = self.author.rstrip(">").partition(" <")
        people = (_signature(role, name, address) for role in ("AUTHOR", "COMMITTER"))
        return str(
            repo.create_commit(ref, *people, message + "\n", index.write_tree(repo), parents)
        )

    def hook(self, name: str, script: str) -> None:
        """Install a hook in the repository."""
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def fsck(self) -> None:
        self.git("fsck", "--full", "--strict")


@dataclass
class Fleet:
    """The company; `root` is an empty directory."""

    root: Path
    now: datetime = START
    policies: str = "policies"  # the directory of objects, below the root
    state: str = "state"  # the program's own directory, below the root
    repos: dict[str, Repo] = field(default_factory=dict)
    options: tuple[str, ...] = ()  # of every command line that takes files

    @classmethod
    def build(cls, root: Path, sites: dict[str, tuple[str, str]] | None = None) -> "Fleet":
        """`sites`: cluster → (stage, downstream repository)."""
        fleet = cls(root)
        fleet.populate(sites)
        return fleet

    def populate(self, sites: dict[str, tuple[str, str]] | None = None) -> None:
        """Make the repositories, the sites and the policies."""
        self.repository("blueprints")
        self.release("v1")
        sites = sites or {"ams": ("dev", "edge"), "ber": ("prod", "edge"), "cph": ("prod", "core")}
        for name in sorted({repository for _, repository in sites.values()}):
            self.repository(name)
        for name, (tier, repository) in sites.items():
            self.site(name, tier, repository)
        self.write("policy.yaml", POLICY)
        self.write("promotion.yaml", PROMOTION)

    # ---- the world -----------------------------------------------------------------------------

    def repository(
        self, name: str, *options: str, declare: bool = True, first: bool = True
    ) -> Repo:
        """A bare repository; `options` are those of `git init`."""
        path = self.root / "git" / f"{name}.git"
        path.parent.mkdir(parents=True, exist_ok=True)
        if options:
            init = ["git", "init", "-q", "--bare", "--template=", "-b", "main", *options, str(path)]
            subprocess.run(init, check=True)
        else:
            pygit2.init_repository(str(path), bare=True, initial_head="main")
        with (path / "config").open("a") as config:
            config.write(HOST_CONFIG)
        repo = self.repos[name] = Repo(path)
        if first:
            repo.commit("main", {"README.md": f"# {name}\n"}, "first commit")
        if declare:
            self.write(
                f"repository-{name}.yaml",
                "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
                f"metadata: {{name: {name}}}\nspec: {{url: {path}}}\n",
            )
        return repo

    def release(self, name: str, files: dict[str, str | None] | None = None) -> str:
        """Tag a new revision of the upstream package."""
        upstream = self.repos["blueprints"]
        package: dict[str, str | None] = dict(PACKAGE) if name == "v1" else {}
        package |= files if files is not None else {}
        if name != "v1" and files is None:
            replicas = name.removeprefix("v")
            text = PACKAGE["deployment.yaml"].replace("replicas: 1", f"replicas: {replicas}")
            package["deployment.yaml"] = text
        inside = {f"monitoring/{path}": text for path, text in package.items()}
        commit = upstream.commit("main", inside, f"monitoring {name}")
        tags = pygit2.Repository(str(upstream.path)).references
        tags.create(f"refs/tags/monitoring/{name}", commit, force=True)
        return commit

    def site(
        self, name: str, tier: str, repository: str, retention: str = "7d", **spec: object
    ) -> None:
        """A cluster object, with more in its spec if wanted, and its ConfigMap."""
        spec = {"repository": repository, **spec}
        self.write(
            f"site-{name}.yaml",
            "apiVersion: infra.example.com/v1\nkind: Cluster\n"
            f"metadata: {{name: {name}, labels: {{tier: {tier}}}}}\n"
            f"spec: {json.dumps(spec)}\n"
            "---\napiVersion: v1\nkind: ConfigMap\n"
            f"metadata: {{name: {name}}}\ndata: {{retention: {retention}}}\n",
        )

    def policy(self, name: str, *edits: tuple[str, str]) -> Path:
        """One more policy for all sites, below a directory of its name; `edits` are replaced."""
        text = POLICY
        for old, new in (("name: monitoring", f"name: {name}"), ("sites/", f"{name}/"), *edits):
            assert old in text, old
            text = text.replace(old, new, 1)
        return self.write(f"policy-{name}.yaml", text)

    def write(self, name: str, text: str) -> Path:
        path = self.root / self.policies / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def refs(self) -> dict[str, dict[str, str]]:
        """Every ref of every repository."""
        return {name: repo.refs() for name, repo in self.repos.items()}

    def records(self) -> Repo:
        """The records repository."""
        return Repo(self.root / self.state / "records.git")

    def remove(self, name: str) -> None:
        (self.root / self.policies / name).unlink()

    def later(self, **time: float) -> "Fleet":
        self.now += timedelta(**time)
        return self

    # ---- the program ---------------------------------------------------------------------------

    def run(self, *args: str, files: bool = True) -> Result:
        """One command line, in process, at the fleet's time.

        What all command lines share is in the environment, so that messages advise none of it.
        """
        shared = {
            "FANOUT_FILES": str(self.root / self.policies),
            "FANOUT_STATE_DIR": str(self.root / self.state),
            "FANOUT_NOW": self.now.isoformat(),
        }
        line = [*args, *(self.options if files else [])]
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, shared if files else {}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_arguments(line)
        config = self.records().path / "config"
        if config.exists() and HOST_CONFIG not in (text := config.read_text()):
            config.write_text(text + HOST_CONFIG)
        return Result(code, out.getvalue(), err.getvalue())

    def sweep(self, *args: str) -> Result:
        return self.run("sweep", *args)

    def plan(self, *args: str) -> Result:
        return self.run("plan", *args)

    def settings(self) -> Settings:
        """Settings from the flags that `run` gives."""
        return Settings(
            files=(self.root / self.policies,),
            state_dir=self.root / self.state,
            now_override=self.now,
        )

    def opened(self, *, long_running: bool = False) -> contextlib.AbstractContextManager[Program]:
        """The program, open for several passes at the fleet's time."""
        return open_program(self.settings(), long_running=long_running)

    def counted(self) -> dict[str, int]:
        """Sweep in a fresh program; answers what the pass cost."""
        with self.opened() as program:
            program.sweep(PassMode())
            return dict(program.world.counters.read())

    def settle(self, limit: int = 12, status: int = 0) -> int:
        """Sweep until there is nothing to do; answers how many sweeps that took.

        `status` is what all of them exit with; 3 is also 0 where everything was served and a person
        has something to mend. Sweeps that only wait for a host do not count.
        """
        count, end = 0, monotonic() + HOST_PATIENCE
        while count < limit and monotonic() < end:
            swept = self.sweep("-o", "json")
            lists = ("problems", "failedTargets", "failedVariants")
            served = swept.code == 3 and not any(swept.json[name] for name in lists)
            assert swept.code == status or (served and status == 0), swept.err
            outcomes = swept.json["outcomes"]
            if not outcomes:
                return count
            if any(it["done"] for it in outcomes):
                count += 1
            else:
                sleep(0.2)
        raise AssertionError(f"the sweeps do not come to an end: {outcomes}")

    def targets(self) -> dict[str, dict[str, Any]]:
        """Every target as a TargetView, by its name."""
        items = self.run("get", "targets", "-o", "json").views
        return {item["target"].rpartition("/")[2]: item for item in items}

    def report(self, stage: str, revision: str, status: str = "passed", *args: str) -> Result:
        return self.run(
            "report", "monitoring", "--stage", stage, "--check", "e2e", "--status", status,
            "--revision", revision, "--by", "Ci <ci@example.com>", *args,
        )  # fmt: skip

    def variants(self) -> dict[str, dict[str, Any]]:
        """The status of every variant, by its path."""
        items = self.run("get", "variants", "-o", "json").items
        return {item["spec"]["downstream"]["package"]: item["status"] for item in items}

    def statements(self) -> list[dict[str, Any]]:
        """All records of people and machines, without publications."""
        items = self.run("get", "records", "-o", "json").items
        return [item for item in items if item["kind"] != "PublicationView"]

    def states(self) -> dict[str, str]:
        return {path: status["state"] for path, status in self.variants().items()}

    def published(self) -> dict[str, str]:
        return {
            path: status.get("published", {}).get("revision", "")
            for path, status in self.variants().items()
        }

    def condition(self, path: str) -> tuple[str, str]:
        """Reason and sentence of a variant's Ready condition."""
        condition = self.variants()[path]["conditions"][0]
        return condition["reason"], condition["message"]


def two_stages(root: Path, sites: dict[str, tuple[str, str]]) -> Fleet:
    """A fleet whose sites in dev, and behind them those in prod, are all published."""
    made = Fleet.build(root, sites)
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.settle()
    made.report("dev", "v1")
    made.settle()
    assert set(made.published().values()) == {"v1"}
    return made.later(minutes=5)
