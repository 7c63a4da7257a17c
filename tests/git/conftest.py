"""Real bare repositories, and stores that work on them."""

import subprocess
from pathlib import Path

import pygit2
import pytest
from drafted_packages import PackageDraft, draft_fields

from fanout.errors import FanoutError
from fanout.git.mirror_store import MirrorStore
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.plan.changes.commit_chain import split_by_commit
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    MergedDraft,
    PublicationMerge,
    PushedChange,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
    VendorCommit,
)
from fanout.telemetry.metrics import Counters

FANOUT = CommitIdentity("fanout", "fanout@localhost")
WHEN = 1_700_000_000
UNDER = "refs/heads/drafts/default/"
VENDOR = "refs/heads/fanout/default/rendered"
KEEP = ("refs/heads/*", "refs/tags/*")


class Bare:
    """A remote repository as its owner sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path)
        self.remote = Remote(self.url)

    def git(self, *words: str, stdin: bytes | None = None) -> str:
        """Run git in it."""
        done = subprocess.run(
            ["git", *words], cwd=self.path, input=stdin, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().rstrip("\n")

    def refs(self) -> dict[str, str]:
        """All refs with their own ids."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def commit(self, files: dict[str, str], branch: str = "main", message: str = "Edit") -> str:
        """A person's commit on a branch, which is made when it is not there; answers its id."""
        try:
            repo = pygit2.Repository(str(self.path))
        except pygit2.InvalidError:  # the SHA-256 format
            return self._import(files, branch, message)
        ref, index = f"refs/heads/{branch}", pygit2.Index()
        parents = [repo.references[ref].target] if ref in repo.references else []
        for parent in parents:
            index.read_tree(repo[parent].peel(pygit2.Tree))
        for path, text in files.items():
            blob = repo.create_blob(text.encode())
            index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
        person = pygit2.Signature("Ada", "ada@example.com", 1699000000, 0)
        tree = index.write_tree(repo)
        return str(repo.create_commit(ref, person, person, message, tree, parents))

    def _import(self, files: dict[str, str], branch: str, message: str) -> str:
        ref = f"refs/heads/{branch}"
        lines = [f"commit {ref}", "committer Ada <ada@example.com> 1699000000 +0000"]
        lines += [f"data {len(message)}", message]
        if ref in self.refs():
            lines.append(f"from {ref}^0")
        for path, text in files.items():
            lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        self.git("fast-import", "--quiet", "--force", stdin=("\n".join(lines) + "\n").encode())
        return self.git("rev-parse", ref)

    def files(self, commit: str) -> dict[str, str]:
        """Content of all files of a commit, by path."""
        rows = [row.split("\t", 1) for row in self.git("ls-tree", "-rz", commit).split("\0") if row]
        oids = [entry.rpartition(" ")[2] for entry, _ in rows]
        done = subprocess.run(
            ["git", "cat-file", "--batch"],
            cwd=self.path, input="\n".join(oids).encode(), capture_output=True, check=True,
        )  # fmt: skip
        objects, end = {}, 0
        for (_, path), oid in zip(rows, oids, strict=True):
            head = done.stdout[end : done.stdout.index(b"\n", end)]
            assert head.startswith(f"{oid} blob ".encode()), (path, head)
            begin = end + len(head) + 1
            size = int(head.rpartition(b" ")[2])
            objects[path] = done.stdout[begin : begin + size].decode().rstrip("\n")
            end = begin + size + 1
        return objects

    def parents(self, commit: str) -> list[str]:
        """Ids of the parents of a commit."""
        return self.git("rev-parse", f"{commit}^@").split()

    def hook(self, name: str, script: str) -> None:
        """Install a server-side hook."""
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def check(self) -> None:
        """Assert that `git fsck` finds no error in it."""
        done = subprocess.run(
            ["git", "fsck", "--strict", "--full", "--no-dangling"],
            cwd=self.path,
            capture_output=True,
            check=False,
        )
        output = done.stdout + done.stderr.replace(
            b"notice: HEAD points to an unborn branch (main)\n", b""
        )
        assert (done.returncode, output) == (0, b"")


def make_bare(path: Path, *options: str) -> Bare:
    """An empty bare repository whose branch is `main`; `options` are those of `git init`."""
    if options:
        init = ["git", "init", "-q", "--bare", "-b", "main", *options, str(path)]
        subprocess.run(init, check=True)
    else:
        pygit2.init_repository(str(path), bare=True, initial_head="main")
    return Bare(path)


@pytest.fixture
def new_bare(tmp_path):
    """Makes further repositories, by name."""
    return lambda name, *options: make_bare(tmp_path / f"{name}.git", *options)


@pytest.fixture
def bare(tmp_path):
    """A repository with one commit on main."""
    made = make_bare(tmp_path / "remote.git")
    made.commit({"README.md": "hello\n"})
    return made


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def make_store(tmp_path):
    """Makes a store with its mirrors in the named directory."""

    def make(name: str = "mirrors", **options) -> MirrorStore:
        settings = {"install": "default", "secrets": lambda *_: None, "counters": Counters()}
        return MirrorStore(tmp_path / name, **(settings | options))

    return make


@pytest.fixture
def store(make_store, counters):
    return make_store(counters=counters)


class Downstream:
    """A remote and a store that works on it, with changes as the planner would ask for them."""

    main = "refs/heads/main"
    under = UNDER
    vendor = VENDOR
    when = WHEN
    identity = FANOUT

    def __init__(self, store: MirrorStore, bare: Bare) -> None:
        self.store = store
        self.bare = bare

    @staticmethod
    def ref(path: str) -> str:
        """The branch of a package's draft."""
        return f"{UNDER}{path or 'root'}/policy"

    @staticmethod
    def draft(path: str, files: dict[str, str], base: str) -> PackageDraft:
        """A draft with these files at the path."""
        entries = {
            name: TreeEntry("100644", blob_id(text.encode())) for name, text in files.items()
        }
        message = f"Draft of {path}\n"
        ref = Downstream.ref(path)
        return PackageDraft(
            ref=ref,
            base=base,
            path=path,
            entries=entries,
            tree=tree_id(entries),
            message=message,
            timestamp=WHEN,
        )

    @staticmethod
    def package(name: str, size: int = 3) -> dict[str, str]:
        """Files of a package; one of them is the package's own."""
        shared = {f"manifest-{number}.yaml": f"number: {number}\n" for number in range(size - 2)}
        return {"Kptfile": f"name: {name}\n", **shared, "deep/er/file.yaml": "a: b\n"}

    @staticmethod
    def blobs(*packages: dict[str, str]) -> dict[str, bytes]:
        """Content by id."""
        texts = {text.encode() for files in packages for text in files.values()}
        return {blob_id(data): data for data in sorted(texts)}

    def look(self, *keep: str) -> RefListing:
        """One listing; a failure is raised."""
        remote = self.bare.remote
        request = RefListingRequest(remote, keep or KEEP)
        return _answer(self.store.list_refs([request]), remote.key)

    def change(self, **what) -> PushedChange:
        """One change; a failure is raised. `expected` is of the last look where it is not given."""
        fields = draft_fields(what.pop("drafts", ()))
        fields["trees"] = (*what.pop("trees", ()), *fields["trees"])
        head = {"remote": self.bare.remote, "identity": FANOUT}
        change = RepositoryChange(**(head | fields | what))
        return _answer(self.store.change([change]), self.bare.remote.key)

    def write(self, packages: dict[str, dict[str, str]], **more) -> PushedChange:
        """Look, then write a draft for each package and the vendor branch, in one change."""
        refs = self.look().refs
        drafts = [self.draft(path, files, refs[self.main]) for path, files in packages.items()]
        vendor = VendorCommit(
            ref=VENDOR,
            parent=refs.get(VENDOR, ""),
            trees_by_path={f"drafts/{item.path}": item.tree for item in drafts},
            dropped_paths=(),
            message="Render\n",
            timestamp=WHEN,
        )
        touched = [item.ref for item in drafts] + [VENDOR]
        return self.change(
            **{
                "expected": {ref: refs.get(ref, "") for ref in touched},
                "blobs": self.blobs(*packages.values()),
                "drafts": tuple(drafts),
                "vendor": vendor,
            }
            | more
        )

    def publish(self, paths: list[str], **more) -> PushedChange:
        """Look, then merge the drafts of these packages, tag them, and remove the drafts."""
        refs = self.look().refs
        merged = []
        with self.store.reader(self.bare.remote) as reader:
            for path in paths:
                commit = refs[self.ref(path)]
                tree = reader.paths(commit, [path])[path].tree
                merged.append(
                    MergedDraft(commit=commit, path=path, tree=tree, tag=f"refs/tags/{path}/v1")
                )
        vendor = VendorCommit(
            ref=VENDOR,
            parent=refs[VENDOR],
            trees_by_path={f"published/{item.path}": item.tree for item in merged},
            dropped_paths=tuple(f"drafts/{item.path}" for item in merged),
            message="Publish\n",
            timestamp=WHEN + 1,
        )
        removed = tuple(self.ref(path) for path in paths)
        touched = [*removed, *(item.tag for item in merged), "refs/heads/main", VENDOR]
        return self.change(
            **{
                "expected": {ref: refs.get(ref, "") for ref in touched},
                "branch": "refs/heads/main",
                "merges": tuple(
                    PublicationMerge(tuple(drafts), "Publish\n", WHEN + 1)
                    for drafts in split_by_commit(merged)
                ),
                "vendor": vendor,
                "removed_drafts": removed,
                "drafts_under": UNDER,
            }
            | more
        )


@pytest.fixture
def downstream(store, bare):
    return Downstream(store, bare)


def _answer(answers, url):
    answer = answers[url]
    if isinstance(answer, FanoutError):
        raise answer
    return answer


@pytest.fixture
def downstream_of():
    """Puts a store and a repository together."""
    return Downstream
