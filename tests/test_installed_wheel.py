"""Two pages of commands, played with `fanout` from a wheel in an empty environment."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from fleet import POLICY, Fleet
from pages import parts, pattern, write
from preloaded import write_program

ROOT = Path(__file__).parent.parent
PAGES = ("tutorial/first-quarter-of-an-hour.md", "guides/day-two.md")
# The last one that refuses releases with `by` (decision 0076).
OLDER_COMMIT = "e00d54a"
# What a page shows of a command that exits with 3: something that a person must mend.
NEEDS_PERSON = re.compile(r"merge conflict|Needs a person|MergeConflict|VerificationFailed")


def run(command: list[str], directory: Path, **environment: str) -> tuple[int, str]:
    """Run a command without a terminal. Return its exit code, and what it prints."""
    completed = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return completed.returncode, completed.stdout


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def install(root: Path, source: Path) -> Path:
    """Return the directory of the programs of an environment with a wheel of `source` alone.

    Nothing is fetched: the wheel is built with the tools of this environment.
    """
    build = [*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(root)]
    code, output = run([*build, str(source)], root)
    assert code == 0, output
    [wheel] = root.glob("*.whl")
    return install_wheel(root, wheel)


def install_wheel(root: Path, wheel: Path) -> Path:
    """Return the directory of the programs of an environment with the wheel alone."""
    programs, _ = create_environment(root)
    target = ["--python", str(programs / "python")]
    # Python compiles what is imported, which is less.
    options = ["--no-deps", "--no-index", "--no-compile"]
    code, output = run([*PIP, *target, "install", *options, str(wheel)], root)
    assert code == 0, output
    return programs


def create_environment(root: Path) -> tuple[Path, Path]:
    """Return the directories of the programs and the packages of an environment without fanout.

    Nothing is fetched: its dependencies are those that are installed here.
    """
    venv.create(root / "venv", symlinks=True)
    [packages] = (root / "venv" / "lib").glob("python*/site-packages")
    [dependencies] = {path for path in sys.path if Path(path, "click").is_dir()}
    # Files of .pth in that directory are not read, so the editable install does not count.
    (packages / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    return root / "venv" / "bin", packages


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """Directory of the programs of an environment with the wheel and nothing of the source tree."""
    return install(tmp_path_factory.mktemp("environment"), ROOT)


@pytest.fixture
def older_programs(tmp_path) -> Path:
    """Directory of the programs of the version before objects of releases were recorded."""
    source = tmp_path / "source"
    source.mkdir()
    archive = tmp_path / "older.tar"
    code, output = run(["git", "archive", "-o", str(archive), OLDER_COMMIT], ROOT)
    if code:
        pytest.skip(f"the clone has no commit {OLDER_COMMIT}: {output}")
    with tarfile.open(archive) as packed:
        packed.extractall(source, filter="data")
    return install(tmp_path, source)


@pytest.fixture(scope="module")
def preloaded(programs, tmp_path_factory) -> Path:
    """Directory of a program `fanout` that runs commands of that environment.

    Each is a process of its own, for which modules are not loaded again.
    """
    directory = tmp_path_factory.mktemp("preloaded")
    write_program(directory, str(programs / "python"))
    return directory


def test_the_pages_of_the_first_days(preloaded, tmp_path):
    environment = {"PATH": f"{preloaded}{os.pathsep}{os.environ['PATH']}"}
    commands = 0
    for page in PAGES:
        for what, subject, content in parts((ROOT / "docs" / page).read_text(encoding="utf-8")):
            if what == "write":
                write(tmp_path, subject, content)
            elif subject.startswith("export "):
                name, _, value = subject.removeprefix("export ").partition("=")
                environment[name] = value
            else:
                code, output = run(["bash", "-c", subject], tmp_path, **environment)
                assert re.fullmatch(pattern(content), output), f"{page}: {subject}\n{output}"
                assert code == (3 if NEEDS_PERSON.search(content) else 0), f"{page}: {subject}"
                commands += 1
    assert commands > 40


def test_the_build_context_of_the_image_makes_a_wheel_of_the_given_version(tmp_path):
    containerfile = (ROOT / "Containerfile").read_text(encoding="utf-8")
    build, _, _ = containerfile.partition("\nFROM ${BASE}\n")
    for line in re.findall(r"^COPY (.+)$", build, flags=re.MULTILINE):
        *sources, target = line.split()
        for name in sources:
            path = tmp_path / target / ("" if len(sources) == 1 else name)
            path.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, path)
    variables = dict(re.findall(r"(\w+)=\$\{(VERSION|REVISION)\}", build))
    values = {"VERSION": "7.8.9", "REVISION": "a" * 40}
    given = {name: values[argument] for name, argument in variables.items()}
    options = ["--no-deps", "--no-index", "--no-build-isolation", "-w", str(tmp_path), "."]
    code, output = run([*PIP, "wheel", *options], tmp_path, **given)
    assert code == 0, output
    with zipfile.ZipFile(tmp_path / "fanout_gitops-7.8.9-py3-none-any.whl") as wheel:
        assert wheel.read("fanout/commit.txt") == b"a" * 40 + b"\n"
        info = "fanout_gitops-7.8.9.dist-info"
        for name in ("licenses/LICENSE", "licenses/THIRD-PARTY-NOTICES", "sboms/fanout.cdx.json"):
            assert wheel.read(f"{info}/{name}") == (ROOT / Path(name).name).read_bytes()
        assert b"License-File: THIRD-PARTY-NOTICES\n" in wheel.read(f"{info}/METADATA")


def test_the_wheel_has_its_documentation_its_version_and_its_commit(programs, tmp_path):
    fanout = str(programs / "fanout")
    code, directory = run([fanout, "docs", "--path"], tmp_path)
    assert (code, Path(directory.strip()).name) == (0, "pages")
    assert programs.parent in Path(directory.strip()).parents
    page = (ROOT / "docs" / "concepts" / "gates.md").read_text(encoding="utf-8")
    assert run([fanout, "docs", "gates"], tmp_path) == (0, page)
    example = (ROOT / "policies" / "clusters.yaml").read_text(encoding="utf-8")
    assert run([fanout, "docs", "policies/clusters.yaml"], tmp_path) == (0, example)
    code, version = run([fanout, "version", "-o", "yaml"], tmp_path)
    _, commit = run(["git", "rev-parse", "HEAD"], ROOT)
    assert code == 0
    if re.fullmatch(r"[0-9a-f]{40}\n", commit):  # else the source tree is no work tree of Git
        assert f"commit: {commit}" in version


def test_a_new_version_reads_what_an_older_one_wrote_and_the_older_one_refuses_what_is_new(
    preloaded, older_programs, tmp_path
):
    fleet = Fleet.build(tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    approval = "requires: [{name: ok, approval: {atLeast: 1, from: [sre]}}]"
    fleet.write("policy.yaml", POLICY.replace("soak: 1h}}", "soak: 1h}, " + approval + "}"))

    def new(*arguments: str) -> tuple[int, str]:
        return run([str(preloaded / "fanout"), *arguments], fleet.root, FANOUT_FILES="policies")

    def old(*arguments: str) -> tuple[int, str]:
        command = [str(older_programs / "fanout"), *arguments]
        return run(command, fleet.root, FANOUT_FILES="policies")

    def states(fanout) -> dict[str, tuple[str, str]]:
        items = json.loads(fanout("get", "variants", "-o", "json")[1])["items"]
        return {
            it["metadata"]["name"]: (it["status"]["state"], it["status"].get("published", ""))
            for it in items
        }

    def status_on_record() -> str:
        records = str(fleet.root / ".fanout" / "records.git")
        branch = "fanout/default/default/monitoring"
        return run(["git", "-C", records, "rev-parse", branch], fleet.root)[1]

    passed = ("--check", "e2e", "--status", "passed", "--revision", "v1", "--by", "ci <ci@e.com>")
    hurry = ("--override", "soak", "--reason", "now", "--by", "ann <ann@e.com>")
    for arguments in (("sweep",), ("sweep",), ("report", "monitoring", "--stage", "dev", *passed)):
        assert old(*arguments)[0] == 0
    before = states(old)
    assert new("validate")[0] == 0
    # Drafts of a version whose commits named no branch are written anew.
    planned = (
        "record that stage dev has passed v1\nPlan: 1 draft to be written, 1 to be recorded.\n"
    )
    assert planned in new("plan")[1]
    assert states(new) == before
    assert new("promote", "monitoring", "--stage", "prod", *hurry)[0] == 0
    assert new("sweep")[0] == 0
    recorded = status_on_record()
    code, output = old("sweep")
    assert code == 3
    # Of the directories that records lie in since decision 0114; before it read any status.
    assert "is in more than 1 directories" in output
    assert status_on_record() == recorded
    assert new("sweep")[0] == 0
