"""Two pages of commands, played with `fanout` from a wheel in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from pages import parts, pattern, write

ROOT = Path(__file__).parent.parent
PAGES = ("tutorial/first-quarter-of-an-hour.md", "guides/day-two.md")
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


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """Directory of the programs of an environment with the wheel and nothing of the source tree.

    Nothing is fetched: the wheel is built with the tools of this environment, and its
    dependencies are those that are installed here.
    """
    root = tmp_path_factory.mktemp("environment")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(root)]
    code, output = run([*build, str(ROOT)], root)
    assert code == 0, output
    [wheel] = root.glob("*.whl")
    venv.create(root / "venv", symlinks=True)
    [packages] = (root / "venv" / "lib").glob("python*/site-packages")
    [dependencies] = {path for path in sys.path if Path(path, "click").is_dir()}
    # Files of .pth in that directory are not read, so the editable install does not count.
    (packages / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    target = ["--python", str(root / "venv" / "bin" / "python")]
    install = [*pip, *target, "install", "--no-deps", "--no-index", str(wheel)]
    code, output = run(install, root)
    assert code == 0, output
    return root / "venv" / "bin"


def test_the_pages_of_the_first_days(programs, tmp_path):
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
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


def test_the_build_context_of_the_image_makes_a_wheel_of_the_version_it_is_told(tmp_path):
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
    told = {name: values[argument] for name, argument in variables.items()}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "-w", str(tmp_path), "."]
    code, output = run([*pip, *options], tmp_path, **told)
    assert code == 0, output
    with zipfile.ZipFile(tmp_path / "fanout-7.8.9-py3-none-any.whl") as wheel:
        assert wheel.read("fanout/commit.txt") == b"a" * 40 + b"\n"


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
