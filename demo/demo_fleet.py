"""Repositories and objects of the demo: six repositories of four clusters each, and upstream."""

import os
import shutil
import subprocess
from collections import Counter
from datetime import datetime
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "fixtures" / "packages" / "monitoring"
POLICIES = Path(__file__).parent / "policies"

# By repository: its region, then name, stage and data retention of each cluster.
CLUSTERS = {
    "eu-north": ("eu", "arn dev-eu 3d", "hel staging 7d", "cph prod 15d", "osl prod 30d"),
    "eu-south": ("eu", "lis dev-eu 3d", "mad staging 7d", "ath prod 15d", "fco prod 15d"),
    "us-east": ("us", "bos dev-us 3d", "jfk staging 7d", "atl prod 15d", "iad prod 90d"),
    "us-west": ("us", "sea dev-us 3d", "lax staging 7d", "den prod 15d", "sfo prod 30d"),
    "asia": ("ap", "sin staging 7d", "bom prod 15d", "hnd prod 30d", "icn prod 15d"),
    "oceania": ("ap", "syd staging 7d", "akl prod 15d", "mel prod 15d", "per prod 15d"),
}

CLUSTER_OBJECTS = """\
---
apiVersion: infra.example.com/v1
kind: Cluster
metadata:
  name: {name}
  namespace: platform
  labels: {{monitoring: "on", tier: {tier}, region: {region}}}
spec: {{repositoryRef: {{name: {repository}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: platform}}
data: {{cluster: {name}, region: {region}, retention: {retention}}}
"""

REPOSITORY_OBJECT = """\
---
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: platform}}
spec: {{url: {url}}}
"""


class DemoFleet:
    """Directory of the demo: bare repositories in `git/`, objects in `policies/`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self, now: datetime) -> None:
        """Create the directory; an earlier one is deleted."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(POLICIES, self.root / "policies")
        repositories, clusters = [], []
        for name in ("blueprints", *CLUSTERS):
            self._create_repository(name, now)
            repositories.append(REPOSITORY_OBJECT.format(name=name, url=f"git/{name}.git"))
        for repository, (region, *rows) in CLUSTERS.items():
            for row in rows:
                name, tier, retention = row.split()
                clusters.append(
                    CLUSTER_OBJECTS.format(
                        name=name,
                        tier=tier,
                        region=region,
                        repository=repository,
                        retention=retention,
                    )
                )
        self._write_objects("repositories.yaml", repositories)
        self._write_objects("clusters.yaml", clusters)
        shutil.copytree(PACKAGE, self.root / "blueprints" / "monitoring")
        self.git("-C", "blueprints", "add", "--all", now=now)
        self.release("v1", "Monitor one cluster", now)

    def release(self, revision: str, subject: str, now: datetime) -> None:
        """Commit, tag and push the upstream work tree."""
        self.git("-C", "blueprints", "commit", "--quiet", "--all", "-m", subject, now=now)
        self.git("-C", "blueprints", "tag", f"monitoring/{revision}", now=now)
        self.git("-C", "blueprints", "push", "--quiet", "origin", "HEAD", "--tags", now=now)

    def edit(self, file: str, old: str, new: str) -> None:
        """Change a file of the upstream package."""
        path = self.root / "blueprints" / "monitoring" / file
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def bare(self, name: str) -> Path:
        """Return the path of a bare repository."""
        return self.root / "git" / f"{name}.git"

    def git(self, *arguments: str, now: datetime | None = None) -> str:
        """Run git in the directory as the author of the package. Return what it printed."""
        roles = ("AUTHOR", "COMMITTER") if now else ()
        dates = {f"GIT_{role}_DATE": now.isoformat() for role in roles}
        completed = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={**os.environ, **GIT_ENVIRONMENT, **dates},
            text=True,
            check=True,
            capture_output=True,
        )
        return completed.stdout

    def refs(self, repository: str, prefix: str) -> list[str]:
        """Return the names of a repository's refs below a prefix."""
        output = self.git("-C", str(self.bare(repository)), "for-each-ref", "--format=%(refname)")
        return [ref for ref in output.split() if ref.startswith(prefix)]

    def published(self, stage: str = "") -> dict[str, int]:
        """Count the clusters of a stage, or all, by their revision on the main branch."""
        counts: Counter[str] = Counter()
        for repository, (_, *rows) in CLUSTERS.items():
            for name, tier, _ in (row.split() for row in rows):
                if stage in ("", tier):
                    counts[self._published_revision(repository, name)] += 1
        return dict(counts)

    def _published_revision(self, repository: str, cluster: str) -> str:
        """Return the revision in the Kptfile on the main branch; `none` if there is no package."""
        path = f"clusters/{cluster}/Kptfile"
        bare = str(self.bare(repository))
        if not self.git("-C", bare, "ls-tree", "main", path):
            return "none"
        text = self.git("-C", bare, "show", f"main:{path}")
        return text.partition("upstreamLock:")[2].partition("ref: monitoring/")[2].split()[0]

    def _create_repository(self, name: str, now: datetime) -> None:
        """Create a bare repository with a first commit; the upstream one keeps its work tree."""
        self.git("init", "--quiet", "--bare", str(self.bare(name)))
        self.git("clone", "--quiet", str(self.bare(name)), name)
        (self.root / name / "README.md").write_text(f"# {name}\n", encoding="utf-8")
        self.git("-C", name, "add", "README.md")
        self.git("-C", name, "commit", "--quiet", "-m", "First commit", now=now)
        self.git("-C", name, "push", "--quiet", "origin", "HEAD", now=now)
        if name != "blueprints":
            shutil.rmtree(self.root / name)

    def _write_objects(self, name: str, documents: list[str]) -> None:
        text = "".join(documents)
        (self.root / "policies" / name).write_text(text, encoding="utf-8")


# Identity and configuration for Git, so that commits are equal on every machine.
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "init.defaultBranch",
    "GIT_CONFIG_VALUE_0": "main",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}
