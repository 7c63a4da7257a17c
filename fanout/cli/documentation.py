"""Documentation and examples that are installed with fanout, and the commit it was built from."""

from importlib import resources
from pathlib import Path

_PACKAGE = Path(str(resources.files("fanout")))
SUFFIXES = (".md", ".yaml")


def find_directory() -> Path:
    """Return the directory with `docs/` and `policies/`: in the package, or in its source tree."""
    installed = _PACKAGE / "pages"
    return installed if installed.is_dir() else _PACKAGE.parent


def find_pages() -> dict[str, Path]:
    """Return the pages by topic, such as `concepts/gates` or `policies/clusters.yaml`, sorted."""
    root = find_directory()
    paths = [*(root / "docs").rglob("*.md"), *(root / "policies").glob("*")]
    topics = {_build_topic(path.relative_to(root)): path for path in paths}
    return {topic: topics[topic] for topic in sorted(topics) if topics[topic].suffix in SUFFIXES}


def _build_topic(path: Path) -> str:
    below = path.relative_to("docs") if path.parts[0] == "docs" else path
    return str(below.with_suffix("") if below.suffix == ".md" else below)


def read_commit() -> str:
    """Return the commit that an installed package was built from; "" for a source tree."""
    try:
        return (_PACKAGE / "commit.txt").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
