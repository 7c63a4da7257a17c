"""Builds what is published of the tagged commit, into `dist/` (`make release`, docs/release.md).

That is the sdist, the wheel, the bill of materials, the notes of the version, and their checksums.
The wheel is built from the sdist, so that the sdist is known to be complete. Nothing is uploaded or
signed.
"""

import hashlib
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
SBOM = "fanout.cdx.json"
CHANGELOG = runpy.run_path(str(ROOT / "tools" / "changelog.py"))


def find_version() -> str:
    """The version that is tagged. Raises ValueError if the commit is not ready to be released."""
    changed = _git("status", "--porcelain")
    if changed:
        raise ValueError(f"the work tree has changes:\n{changed}")
    tags = _git("tag", "--points-at", "HEAD", "--list", "v[0-9]*").split()
    versions = [it[1:] for it in tags if re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", it)]
    if len(versions) != 1:
        raise ValueError(f"HEAD must have one tag such as v0.1.0, and has {tags}")
    fragments = CHANGELOG["find_fragments"](ROOT / "changes")
    if fragments:
        raise ValueError(f"changes/ has {len(fragments)} fragments: run `make changelog`")
    return versions[0]


def build(directory: Path, version: str) -> list[Path]:
    """Build the files of a version into an empty directory. Raises ValueError without notes."""
    notes = CHANGELOG["find_notes"]((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if not notes:
        raise ValueError(f"CHANGELOG.md has no section {version}")
    _hatch("sdist", directory, ROOT)
    [sdist] = directory.glob("*.tar.gz")
    with TemporaryDirectory() as temporary, tarfile.open(sdist) as packed:
        packed.extractall(temporary, filter="data")
        [source] = Path(temporary).iterdir()
        _hatch("wheel", directory, source)
    (directory / "commit.txt").unlink(missing_ok=True)  # left by tools/commit_file.py
    shutil.copy(ROOT / SBOM, directory)
    (directory / "NOTES.md").write_text(f"{notes}\n", encoding="utf-8")
    files = sorted(directory.iterdir())
    built = [it.name for it in files]
    stem = f"fanout_gitops-{version}"
    if not {f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"} <= set(built):
        raise ValueError(f"what was built is not of version {version}: {', '.join(built)}")
    sums = [f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.name}\n" for it in files]
    (directory / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return sorted(directory.iterdir())


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    return completed.stdout.strip()


def _hatch(target: str, directory: Path, source: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run([*command, "--directory", str(directory)], cwd=source, check=True)


def main() -> None:
    """Build into an empty `dist/`, and name the files."""
    version = find_version()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for path in build(DIST, version):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"release.py: {error}")
