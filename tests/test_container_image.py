"""The build file of the image names what there is: no container engine is needed to see that."""

import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
COPIES = [line.split() for line in re.findall(r"^COPY (.+)$", CONTAINERFILE, re.MULTILINE)]
SOURCES = sorted({it for words in COPIES if "--from" not in words[0] for it in words[:-1]})
LOCKS = sorted(set(re.findall(r"-r requirements/(\S+)", CONTAINERFILE)))


def read_pins(name: str) -> dict[str, str]:
    """The pinned version of each library in a lock file."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", [".containerignore", ".dockerignore"])
def test_every_path_that_is_copied_is_in_the_build_context(name):
    everything, *lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert everything == "*"
    allowed = {it.removeprefix("!") for it in lines if it.startswith("!")}
    assert len(SOURCES) > 10
    for source in SOURCES:
        path = source.removeprefix("./")
        assert (ROOT / path).exists(), path
        assert path in allowed, path
    assert allowed == {it.removeprefix("./") for it in SOURCES}


def test_files_that_pyproject_reads_are_copied():
    build = PROJECT["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    needed = {
        PROJECT["project"]["readme"],
        *PROJECT["project"]["license-files"],
        build["hooks"]["custom"]["path"],
        *wheel["packages"],
        *wheel["sbom-files"],
        *wheel["force-include"],
        "pyproject.toml",
        "requirements",
    }
    assert needed == set(SOURCES)


def test_the_lock_files_have_what_is_built_and_run():
    assert LOCKS == ["build.txt", "github-app.txt", "kubernetes.txt", "serve.txt"]
    tools = read_pins("build.txt")
    for requirement in PROJECT["build-system"]["requires"]:
        assert re.split(r"[<>=]", requirement)[0] in tools
    run = {
        re.split(r"[<>=\[]", requirement)[0]
        for requirements in (
            PROJECT["project"]["dependencies"],
            *PROJECT["project"]["optional-dependencies"].values(),
        )
        for requirement in requirements
    }
    locks = [read_pins(it) for it in LOCKS if it != "build.txt"]
    assert {it.replace(".", "-") for it in run} <= {name for lock in locks for name in lock}
    # pip refuses two versions of one library.
    for first, second in combinations(locks, 2):
        assert {it: first[it] for it in first.keys() & second.keys()}.items() <= second.items()


def test_the_image_runs_the_program_that_was_installed():
    [entrypoint] = re.findall(r"^ENTRYPOINT \[(.+)\]$", CONTAINERFILE, re.MULTILINE)
    reaper, _, program = re.findall(r'"([^"]+)"', entrypoint)
    assert program in PROJECT["project"]["scripts"]
    [packages] = re.findall(
        r"apt-get install --yes --no-install-recommends (.+?) &&", CONTAINERFILE
    )
    assert {reaper, "git", "openssh-client"} <= set(packages.split())
    [(option, installed, place)] = [words for words in COPIES if words[0].startswith("--from")]
    assert re.search(
        rf"^FROM \S+ AS {option.removeprefix('--from=')}$", CONTAINERFILE, re.MULTILINE
    )
    assert (
        f"{installed}/bin/pip install --no-cache-dir --no-index --no-deps /wheels/" in CONTAINERFILE
    )
    assert f"ENV PATH={place}/bin:$PATH" in CONTAINERFILE


def test_make_passes_what_the_build_asks_for():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    asked = set(re.findall(r"^ARG (\w+)", CONTAINERFILE, re.MULTILINE))
    assert asked == {"BASE", *re.findall(r"--build-arg (\w+)=", makefile)}
    [version] = re.findall(r"^ARG BASE=\S+/python:([\d.]+)-", CONTAINERFILE, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]
