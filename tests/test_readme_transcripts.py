"""Every command that README shows with its output is in a guide, which a test runs."""

from pathlib import Path

from pages import parts

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guides" / "first-staged-rollout.md"


def transcripts(page: Path) -> list[tuple[str, str]]:
    """Return each command of the page with the output that is shown."""
    steps = parts(page.read_text(encoding="utf-8"))
    return [(line.removesuffix(" || true"), shown) for what, line, shown in steps if what == "run"]


def test_what_readme_shows_is_what_the_guide_shows(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(text[text.index("## See what is stuck") :], encoding="utf-8")
    shown = transcripts(page)
    assert len(shown) == 2
    assert set(shown) <= set(transcripts(GUIDE))
