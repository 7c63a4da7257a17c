"""Packages that are small in a repository and without end, or far too large, when they are read."""

import subprocess
from pathlib import Path

import pygit2

DEPTH = 40  # 2**40 files
NAMES = 900
LARGE = 15_000_000  # bytes; within every limit alone
ZEROS = 200_000_000  # bytes of zeros, some hundred kilobytes in a pack
KPTFILE = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: x\n"


class Hostile:
    """Writes such packages into a bare repository, without the tools that would look at them."""

    def __init__(self, path: Path) -> None:
        self.repo = pygit2.Repository(str(path))
        self.path = path

    def tree(self, rows: dict[str, str]) -> str:
        """A directory; names of directories end with a slash."""
        builder = self.repo.TreeBuilder()
        for name, oid in rows.items():
            mode = 0o40000 if name.endswith("/") else 0o100644
            builder.insert(name.rstrip("/"), oid, mode)
        return str(builder.write())

    def blob(self, data: bytes) -> str:
        return str(self.repo.create_blob(data))

    @property
    def kptfile(self) -> str:
        return self.blob(KPTFILE)

    def doubling(self) -> str:
        """Each directory holds the next one twice: a trillion files in some kilobytes."""
        tree = self.tree({"a.yaml": self.blob(b"a: b\n")})
        for _ in range(DEPTH):
            tree = self.tree({"a/": tree, "b/": tree})
        return self.tree({"Kptfile": self.kptfile, "x/": tree})

    def empty_directories(self) -> str:
        """Return a deep package of directories without files but for its Kptfile."""
        tree = self.tree({})
        for _ in range(DEPTH):
            tree = self.tree({"a/": tree, "b/": tree})
        return self.tree({"Kptfile": self.kptfile, "x/": tree})

    def one_file_of_many_names(self) -> str:
        oid = self.blob(b"#" * LARGE)
        names = {f"{number}.yaml": oid for number in range(NAMES)}
        return self.tree({"Kptfile": self.kptfile, **names})

    def zeros(self) -> str:
        return self.tree({"Kptfile": self.kptfile, "zeros.bin": self.large_blob()})

    def large_blob(self) -> str:
        """A blob of zeros, written as git would write it but without holding it in memory."""
        done = subprocess.run(
            f"head -c {ZEROS} /dev/zero | git -c core.bigFileThreshold=1m hash-object -w --stdin",
            shell=True, cwd=self.path, capture_output=True, check=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def deep(self, levels: int = 1000) -> str:
        tree = self.tree({"a.yaml": self.blob(b"a: b\n")})
        for _ in range(levels):
            tree = self.tree({"d/": tree})
        return self.tree({"Kptfile": self.kptfile, "x/": tree})

    def long_names(self) -> str:
        """Paths that grow with each directory."""
        tree = self.tree({"a.yaml": self.blob(b"a: b\n")})
        for _ in range(90):
            tree = self.tree({"n" * 250 + "/": tree})
        return self.tree({"Kptfile": self.kptfile, "x/": tree})

    def large_directory(self) -> str:
        """One directory of more rows than any package has."""
        row = b"100644 %08d\0" + bytes.fromhex(self.blob(b"a: b\n"))
        raw = b"".join(row % number for number in range(100_000))
        return str(self.repo.write(pygit2.enums.ObjectType.TREE, raw))

    def commit(self, ref: str, path: str, tree: str, message: str = "by hand\n") -> str:
        """A commit on the ref in which the package at the path is this tree."""
        parents = [self.repo.references[ref].target] if ref in self.repo.references else []
        root = str(self.repo[parents[0]].peel(pygit2.Tree).id) if parents else ""
        who = pygit2.Signature("Mallory", "mallory@example.com", 1_770_000_000)
        made = self._with(root, path.split("/"), tree)
        return str(self.repo.create_commit(ref, who, who, message, made, parents))

    def _with(self, root: str, names: list[str], tree: str) -> str:
        if not names:
            return tree
        name, *rest = names
        old = self.repo[root].peel(pygit2.Tree) if root else None
        builder = self.repo.TreeBuilder(old) if old is not None else self.repo.TreeBuilder()
        below = str(old[name].id) if old is not None and name in old else ""
        builder.insert(name, self._with(below, rest, tree), 0o40000)
        return str(builder.write())


PACKAGES = [
    # what it is, how it is made, the limit, words of the message
    ("2**40 files", Hostile.doubling, "files", "has more than 1,000"),
    ("2**40 empty directories", Hostile.empty_directories, "files", "more than 1,000 directories"),
    ("900 names of 15 MB", Hostile.one_file_of_many_names, "bytes",
     f"has {NAMES * LARGE + len(KPTFILE):,} bytes, more than 16,777,216"),
    ("one file of zeros", Hostile.zeros, "fileBytes",
     f"has {ZEROS:,} bytes, more than 16,777,216"),
    ("1,000 directories deep", Hostile.deep, "depth", "more than 100 directories"),
    ("paths without end", Hostile.long_names, "", "more than 4,096 characters"),
    ("a directory of 100,000 files", Hostile.large_directory, "files", "has more than 1,000"),
]  # fmt: skip
