"""Every command of docs/tutorial/getting-started.md prints what the page shows."""

from pathlib import Path

from pages import play_in_shell

PAGE = Path(__file__).parent.parent / "docs" / "tutorial" / "getting-started.md"


def test_the_page_does_what_it_says(tmp_path):
    assert play_in_shell(PAGE.read_text(encoding="utf-8"), tmp_path) > 20
