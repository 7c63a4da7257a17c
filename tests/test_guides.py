"""The guides about rollouts: every command is run, in its order, and prints what the page shows."""

from pathlib import Path

import pytest
from pages import play

GUIDES = Path(__file__).parent.parent / "docs" / "guides"
FIRST = (GUIDES / "first-staged-rollout.md").read_text(encoding="utf-8")
PREPARED = FIRST[FIRST.index("## A package") : FIRST.index("## Three stages")]
PAGES = {
    "first-staged-rollout.md": 40,
    "canary-by-label.md": 24,
    "two-of-three-sites.md": 20,
    "emergency-change.md": 28,
}


@pytest.mark.parametrize("name", PAGES)
def test_the_guide_does_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (GUIDES / name).read_text(encoding="utf-8")
    if PREPARED not in text:
        assert "(first-staged-rollout.md#a-package-and-two-repositories) first." in text
        text = PREPARED + text
    assert play(text, monkeypatch) >= PAGES[name]
