"""Every object of our kinds in the examples, fixtures and pages of this repository."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fanout.api.kind_registry import CUSTOM_RESOURCES
from fanout.api.object_meta import GROUP
from fanout.package.manifest import Manifest

ROOT = Path(__file__).parents[2]
KINDS = {model.__name__ for model in CUSTOM_RESOURCES}
_BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def read_samples() -> list[tuple[str, dict[str, Any]]]:
    """Return file and object, in the order of the files."""
    return [
        (str(path.relative_to(ROOT)), document.value)
        for path in _files()
        for text in _texts(path)
        for document in Manifest.parse_valid(text.encode(), path.name).documents
        if is_sample(document.value)
    ]


def is_sample(value: Any) -> bool:
    """Return whether this is an object of our kinds that has a specification.

    Pages of kinds begin with objects that have names of fields alone.
    """
    return (
        isinstance(value, dict)
        and str(value.get("apiVersion")).startswith(f"{GROUP}/")
        and value["kind"] in KINDS
        and "spec" in value
    )


def _files() -> Iterator[Path]:
    for folder in ("policies", "fixtures", "tests/api/examples"):
        yield from sorted((ROOT / folder).rglob("*.yaml"))
    yield from sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _texts(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return _BLOCK.findall(text) if path.suffix == ".md" else [text]
