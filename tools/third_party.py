"""Generator of the notices and the SBOM of the libraries of fanout (`make notices`).

The lock files and the metadata of the installed distributions are the only sources:
THIRD-PARTY-NOTICES has the licenses and their texts, fanout.cdx.json is CycloneDX.
"""

import json
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
NOTICES, SBOM = "THIRD-PARTY-NOTICES", "fanout.cdx.json"
LOCKS = (
    "runtime",
    "serve",
    "kubernetes",
    "github-app",
)  # the first has those of every installation, the others those of extras
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "implementation_name": "cpython"}
SPDX_IDS = frozenset(["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0"])
# Licenses by words of their text, for distributions whose metadata name none.
TEXTS = {"Apache License Version 2.0": "Apache-2.0", "The MIT License": "MIT"}
_LICENSE_FILE = re.compile(r"(?i)(licen[cs]e|copying|notice|authors)")
_CLASSIFIER = re.compile(r"License :: OSI Approved :: (.+)")
_HEAD = """\
Third-party notices of fanout

fanout is licensed under Apache-2.0, see LICENSE. It runs with the libraries below, each under a
license of its own. They are not part of the wheel; the container image has them installed. Source
code of a library: https://pypi.org/project/NAME/VERSION/#files. Wheels of libraries with compiled
code have an SBOM of their own for what they were built with. `make notices` writes this file.

"""


def read_locked(root: Path = ROOT) -> dict[str, tuple[str, bool]]:
    """Return version of each locked distribution by name, and whether every installation has it."""
    locked: dict[str, tuple[str, bool]] = {}
    for lock in LOCKS:
        text = (root / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
        for line in re.findall(r"(?m)^\w.*==.*$", text):
            requirement = Requirement(line.rstrip(" \\"))
            if requirement.marker is None or requirement.marker.evaluate(LINUX):
                version = str(requirement.specifier).removeprefix("==")
                locked.setdefault(canonicalize_name(requirement.name), (version, lock == LOCKS[0]))
    return dict(sorted(locked.items()))


def find_distributions(locked: Iterable[tuple[str, str]]) -> dict[str, Distribution]:
    """Return the installed distributions. Raises ValueError for one that is not as locked."""
    distributions: dict[str, Distribution] = {}
    for name, version in locked:
        try:
            distributions[name] = distribution(name)
            installed = distributions[name].version
        except PackageNotFoundError:
            installed = "not installed"
        if installed != version:
            raise ValueError(f"{name}: {version} is locked, and {installed}; run `make .venv/test`")
    return distributions


def read_texts(package: Distribution) -> dict[str, str]:
    """Return the license files of a distribution by name."""
    texts: dict[str, str] = {}
    for path in sorted(package.files or ()):
        [directory, *names] = path.parts
        if directory.endswith(".dist-info") and _LICENSE_FILE.match(path.name):
            lines = Path(package.locate_file(path)).read_text("utf-8", "replace").splitlines()
            name = "/".join(names).removeprefix("licenses/")
            texts[name] = "\n".join(map(str.rstrip, lines)).strip("\n")
    return texts


def name_license(package: Distribution) -> str:
    """Return the license as the distribution names it. Raises ValueError if it names none."""
    metadata = package.metadata
    classifiers = [_CLASSIFIER.match(it) for it in metadata.get_all("Classifier") or ()]
    stated = [metadata.get("License-Expression"), metadata.get("License")]
    stated += [" and ".join(it[1] for it in classifiers if it)]
    words = " ".join(" ".join(read_texts(package).values()).split())
    stated += [name for text, name in TEXTS.items() if text in words]
    # Some distributions have the whole text of the license as its name.
    name = next((it for it in stated if it and "\n" not in it), None)
    if name is None:
        raise ValueError(f"{metadata['Name']}: names no license; add words of its text to TEXTS")
    return name


def build_notices(packages: Mapping[str, Distribution]) -> str:
    """Return the notices: a list of the libraries, then each text with the libraries it is of."""
    owners: dict[str, list[str]] = {}
    lines = []
    for name, package in packages.items():
        title = f"{name} {package.version}"
        lines.append(f"{title}: {name_license(package)}")
        for file, text in read_texts(package).items():
            owners.setdefault(text, []).append(f"{title}, {file}")
    parts = ["\n".join([*titles, "", text]) for text, titles in owners.items()]
    rule = f"\n\n{'-' * 78}\n\n"
    return _HEAD + rule.join(["\n".join(lines), *parts]) + "\n"


def build_sbom(packages: Mapping[str, Distribution], required: Iterable[str]) -> str:
    """Return the SBOM as JSON of CycloneDX 1.6; it has no time and no version of fanout."""
    required = frozenset(required)
    refs = {name: f"pkg:pypi/{name}@{it.version}" for name, it in packages.items()}
    root = "pkg:pypi/fanout-gitops"
    own = distribution("fanout-gitops")
    # Libraries are asked for with extras of their own, as in pyjwt[crypto].
    asked = {canonicalize_name(it.name): it.extras for it in map(Requirement, own.requires or ())}
    fanout = {"type": "application", "bom-ref": root, "name": "fanout-gitops", "purl": root}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**fanout, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [
            {
                "type": "library",
                "bom-ref": refs[name],
                "name": name,
                "version": it.version,
                "purl": refs[name],
                "scope": "required" if name in required else "optional",
                "licenses": [_license_of(it)],
            }
            for name, it in packages.items()
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(refs[it] for it in names if it in refs)}
            for ref, names in [
                (root, _requirements_of(own, LOCKS[1:])),
                *(
                    (refs[name], _requirements_of(it, asked.get(name, ())))
                    for name, it in packages.items()
                ),
            ]
        ],
    }
    return json.dumps(bom, indent=2) + "\n"


def _license_of(package: Distribution) -> Mapping[str, object]:
    name = name_license(package)
    if package.metadata.get("License-Expression"):
        return {"expression": name}
    return {"license": {"id" if name in SPDX_IDS else "name": name}}


def _requirements_of(package: Distribution, extras: Iterable[str] = ()) -> set[str]:
    requirements = map(Requirement, package.requires or ())
    environments = [{**LINUX, "extra": it} for it in ("", *extras)]
    return {
        canonicalize_name(it.name)
        for it in requirements
        if it.marker is None or any(map(it.marker.evaluate, environments))
    }


def build() -> dict[str, str]:
    """Return the content of both files by name."""
    locked = read_locked()
    packages = find_distributions((name, version) for name, (version, _) in locked.items())
    required = [name for name, (_, is_required) in locked.items() if is_required]
    return {NOTICES: build_notices(packages), SBOM: build_sbom(packages, required)}


if __name__ == "__main__":
    for file_name, content in build().items():
        (ROOT / file_name).write_text(content, encoding="utf-8")
