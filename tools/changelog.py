"""Joins the fragments in `changes/` into CHANGELOG.md (`make changelog VERSION=0.2.0`).

A fragment is the text of one entry, named `<words>.<section>.md`. Its entry goes to the end of that
section under "Unreleased", and the fragment is deleted. With a version these entries become the
section of that version.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SECTIONS = ("Security", "Removed", "Deprecated", "Added", "Changed", "Fixed")
UNRELEASED = "## Unreleased\n"


def section_of(name: str) -> str:
    """Return the section in the file name of a fragment. Raises ValueError for other names."""
    match = re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", name)
    section = match[1].capitalize() if match else ""
    if section not in SECTIONS:
        names = ", ".join(map(str.lower, SECTIONS))
        raise ValueError(f"{name}: must be <words>.<section>.md; sections: {names}")
    return section


def format_entry(name: str, text: str) -> str:
    """Return a fragment as a list item. Raises ValueError if it is not a single paragraph."""
    lines = text.strip().splitlines()
    if not lines or not all(map(str.strip, lines)) or lines[0].startswith(("-", "*", "#")):
        raise ValueError(f"{name}: must be one paragraph, without a bullet or a heading")
    return "- " + "\n  ".join(map(str.strip, lines)) + "\n"


def join_fragments(changelog: str, fragments: Mapping[str, str]) -> str:
    """Return the changelog with all fragments added, and its sections in their order.

    `fragments` has texts by file name. Raises ValueError for an invalid name or text.
    """
    head, _, rest = changelog.partition(UNRELEASED)
    unreleased, *releases = re.split(r"(?m)^(?=## )", rest, maxsplit=1)
    sections: dict[str, str] = dict.fromkeys(SECTIONS, "")
    for part in re.split(r"(?m)^### ", unreleased)[1:]:
        title, _, entries = part.partition("\n")
        sections[title] += entries.strip("\n") + "\n"
    for name, text in sorted(fragments.items()):
        sections[section_of(name)] += format_entry(name, text)
    listed = (f"\n### {title}\n\n{entries}" for title, entries in sections.items() if entries)
    return head + UNRELEASED + "".join(listed) + "".join(f"\n{it}" for it in releases)


def name_version(changelog: str, version: str) -> str:
    """The changelog with what is unreleased as the section of a version.

    Without unreleased entries the version must have a section. Raises ValueError otherwise, and if
    there are both.
    """
    head, _, rest = changelog.partition(UNRELEASED)
    unreleased = re.split(r"(?m)^## ", rest, maxsplit=1)[0].strip()
    if bool(unreleased) == (find_notes(changelog, version) != ""):
        problem = "entries both in its section and below Unreleased" if unreleased else "no entries"
        raise ValueError(f"CHANGELOG.md: {version} has {problem}")
    return f"{head}{UNRELEASED}\n## {version}\n{rest}" if unreleased else changelog


def find_notes(changelog: str, version: str) -> str:
    """The text of the section of a version, or ""."""
    pattern = rf"(?ms)^## {re.escape(version)}(?: .*?)?\n(.*?)(?=^## |\Z)"
    match = re.search(pattern, changelog)
    return match[1].strip() if match else ""


def find_fragments(directory: Path) -> list[Path]:
    """Return the files of all fragments in a directory."""
    return sorted(it for it in directory.glob("*.md") if it.name != "README.md")


def main() -> None:
    """Rewrite CHANGELOG.md, then delete the fragments. The argument is a version, if any."""
    changelog, paths = ROOT / "CHANGELOG.md", find_fragments(ROOT / "changes")
    fragments = {it.name: it.read_text(encoding="utf-8") for it in paths}
    text = join_fragments(changelog.read_text(encoding="utf-8"), fragments)
    for version in sys.argv[1:]:
        text = name_version(text, version)
    changelog.write_text(text, encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
