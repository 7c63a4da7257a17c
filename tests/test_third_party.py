"""Notices and SBOM of the libraries: nothing is missing, and nothing is edited."""

import json
import re
import runpy
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "third_party.py"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def declared() -> set[str]:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(it for names in extras for it in names)]
    return {canonicalize_name(Requirement(it).name) for it in texts}


def pinned() -> dict[str, str]:
    """Return the versions of the lock files, without those that Linux never has."""
    lines = [
        line
        for lock in ("runtime", "serve", "kubernetes", "github-app")
        for line in read(f"requirements/{lock}.txt").splitlines()
        if re.match(r"[a-z]", line) and "sys_platform == 'emscripten'" not in line
    ]
    return dict(re.split(r"==|[ ;]", it)[:2] for it in lines)


@pytest.mark.parametrize("name", ["THIRD-PARTY-NOTICES", "fanout.cdx.json"])
def test_a_file_is_what_the_installed_distributions_say(name: str):
    assert read(name) == TOOL["build"]()[name], "run `make notices`"


def test_every_dependency_is_named_with_its_version_and_license():
    notices = read("THIRD-PARTY-NOTICES")
    listed = dict(re.findall(r"(?m)^([a-z0-9-]+) \S+: (\S.*)$", notices))
    assert listed.keys() == pinned().keys() >= declared()
    for name, version in pinned().items():
        assert f"\n{name} {version}: " in notices
        assert re.search(rf"(?m)^{name} {re.escape(version)}, \S+$", notices), "has a text"
    assert listed["certifi"] == "MPL-2.0"
    assert listed["pygit2"] == "GPLv2 with linking exception"
    words = " ".join(notices.split())
    assert "unlimited permission to link the compiled version of this library" in words


def test_the_sbom_has_every_dependency_with_its_license():
    bom = json.loads(read("fanout.cdx.json"))
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.6", 1)
    components = {it["name"]: it for it in bom["components"]}
    assert {name: it["version"] for name, it in components.items()} == pinned()
    for it in components.values():
        assert it["purl"] == it["bom-ref"] == f"pkg:pypi/{it['name']}@{it['version']}"
        [license_] = it["licenses"]
        [name] = license_.get("license", {"": license_.get("expression")}).values()
        assert name, it["name"]
    optional = {name for name, it in components.items() if it["scope"] == "optional"}
    assert "kubernetes" in optional
    assert "pygit2" not in optional
    refs = {it["bom-ref"] for it in components.values()}
    edges = {it["ref"]: it["dependsOn"] for it in bom["dependencies"]}
    root = bom["metadata"]["component"]["bom-ref"]
    assert edges.keys() == {root, *refs}
    assert {components_of(ref) for ref in edges[root]} == declared()
    reached, rest = set(), [root]
    while rest:
        for ref in edges[rest.pop()]:
            if ref not in reached:
                reached.add(ref)
                rest.append(ref)
    assert reached == refs, "each is there because another one needs it"


def components_of(ref: str) -> str:
    return ref.removeprefix("pkg:pypi/").partition("@")[0]


def test_a_distribution_that_names_no_license_is_refused(tmp_path: Path):
    info = tmp_path / "odd-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    with pytest.raises(ValueError, match="odd: names no license"):
        TOOL["name_license"](Distribution.at(info))


def test_a_version_that_is_not_the_locked_one_is_refused():
    with pytest.raises(ValueError, match=r"pytest: 0\.1 is locked"):
        TOOL["find_distributions"]([("pytest", "0.1")])
    with pytest.raises(ValueError, match="no-such-thing: 1 is locked, and not installed"):
        TOOL["find_distributions"]([("no-such-thing", "1")])
