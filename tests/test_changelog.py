"""Fragments of the changelog are joined in their sections and lose nothing."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "changelog.py"))
join_fragments, find_fragments = TOOL["join_fragments"], TOOL["find_fragments"]

BEFORE = """\
# Changelog

What users notice.

## Unreleased

### Changed

- One thing
  on two lines.

### Removed

- Another thing.

### Changed

- A third thing.

## 0.1.0

### Fixed

- An old thing.
"""
AFTER = """\
# Changelog

What users notice.

## Unreleased

### Removed

- Another thing.

### Changed

- One thing
  on two lines.
- A third thing.
- A change
  on two lines.

### Fixed

- A fix.

## 0.1.0

### Fixed

- An old thing.
"""


def test_fragments_are_joined_in_the_order_of_sections():
    fragments = {"b.fixed.md": "A fix.\n", "a-change.changed.md": "A change\non two lines.\n"}
    assert join_fragments(BEFORE, fragments) == AFTER
    assert join_fragments(AFTER, {}) == AFTER


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a-fix.md", "A fix."),
        ("a-fix.mended.md", "A fix."),
        ("A fix.fixed.md", "A fix."),
        ("a.fixed.md", ""),
        ("a.fixed.md", "- A fix."),
        ("a.fixed.md", "A fix.\n\nAnother."),
    ],
    ids=["no section", "unknown section", "spaces", "empty", "a bullet", "two paragraphs"],
)
def test_a_fragment_of_another_form_is_refused_by_name(name, text):
    with pytest.raises(ValueError, match=name):
        join_fragments(BEFORE, {name: text})


def test_the_fragments_that_are_there_can_be_joined_and_every_entry_stays():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    fragments = {
        path.name: path.read_text(encoding="utf-8") for path in find_fragments(ROOT / "changes")
    }
    joined = join_fragments(changelog, fragments)
    assert {line for line in changelog.splitlines() if line} <= set(joined.splitlines())
    assert joined.count("\n- ") == changelog.count("\n- ") + len(fragments)
