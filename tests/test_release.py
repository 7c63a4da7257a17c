"""What docs/release.md describes for a maintainer, done in a clone up to the upload."""

import hashlib
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from test_installed_wheel import install_wheel, run

ROOT = Path(__file__).parent.parent
CHANGELOG = runpy.run_path(str(ROOT / "tools" / "changelog.py"))
name_version, find_notes = CHANGELOG["name_version"], CHANGELOG["find_notes"]
VERSION = "99.1.0"
TEXT = "# Changelog\n\n## Unreleased\n\n### Fixed\n\n- A fix.\n\n## 0.1.0\n\nThe first release.\n"


def test_unreleased_entries_become_the_section_of_a_version():
    named = name_version(TEXT, "0.2.0")
    assert named.startswith("# Changelog\n\n## Unreleased\n\n## 0.2.0\n\n### Fixed\n\n- A fix.\n")
    assert find_notes(named, "0.2.0") == "### Fixed\n\n- A fix."
    assert find_notes(named, "0.1.0") == "The first release."
    assert find_notes(named, "0.1") == ""
    assert name_version(named, "0.1.0") == named


@pytest.mark.parametrize(
    ("changelog", "version"),
    [(TEXT, "0.1.0"), (TEXT.replace("### Fixed\n\n- A fix.\n\n", ""), "0.2.0")],
    ids=["entries in its section and below Unreleased", "no entries"],
)
def test_a_version_whose_entries_are_unclear_is_refused(changelog, version):
    with pytest.raises(ValueError, match=version):
        name_version(changelog, version)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone without tags of the commit that is tested, with the files of its work tree."""
    if not (ROOT / ".git").exists():
        pytest.skip("the source tree is no work tree of Git")
    path = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--no-tags", "--shared", str(ROOT), str(path))
    for name in ("Makefile", "CHANGELOG.md", "pyproject.toml"):
        shutil.copy(ROOT / name, path)
    for name in ("changes", "tools"):
        shutil.copytree(ROOT / name, path / name, dirs_exist_ok=True)
    return path


def git(directory: Path, *arguments: str) -> str:
    """Run git as a person with a name, and return what it prints."""
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@e.com")
    return subprocess.check_output(["git", *who, *arguments], cwd=directory, text=True).strip()


def test_a_tagged_commit_is_built_and_its_wheel_runs(clone, tmp_path):
    release = [sys.executable, "tools/release.py"]
    (clone / "changes" / "one.fixed.md").write_text("One more fix.\n", encoding="utf-8")
    assert (run([sys.executable, "tools/changelog.py", VERSION], clone)) == (0, "")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", f"Release {VERSION}")
    code, output = run(release, clone)
    assert (code, "HEAD must have one tag" in output) == (1, True), output
    git(clone, "tag", "--annotate", "--message", f"fanout {VERSION}", f"v{VERSION}")
    code, output = run(release, clone)
    assert code == 0, output

    dist = clone / "dist"
    wheel = dist / f"fanout_gitops-{VERSION}-py3-none-any.whl"
    sdist = dist / f"fanout_gitops-{VERSION}.tar.gz"
    sums = dict(
        reversed(line.split("  "))
        for line in (dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
    assert sums.keys() == {wheel.name, sdist.name, "fanout.cdx.json", "NOTES.md"}
    assert {it.name for it in dist.iterdir()} == {*sums, "SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    assert "- One more fix." in (dist / "NOTES.md").read_text(encoding="utf-8")
    with tarfile.open(sdist) as packed:
        assert f"fanout_gitops-{VERSION}/fanout/commit.txt" in packed.getnames()
    programs = install_wheel(tmp_path, wheel)
    code, output = run([str(programs / "fanout"), "version"], tmp_path, PYTHONPATH="")
    assert code == 0
    commit = git(clone, "rev-parse", "HEAD")
    assert re.search(rf"\b{re.escape(VERSION)}\b", output)
    assert commit[:7] in output

    (clone / "README.md").write_text("changed\n", encoding="utf-8")
    code, output = run(release, clone)
    assert (code, "the work tree has changes" in output) == (1, True)


def test_the_release_page_names_what_is_built_and_the_targets_that_build_it():
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", page):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in ("SHA256SUMS", "fanout.cdx.json", "NOTES.md", ".tar.gz", ".whl"):
        assert name in page
