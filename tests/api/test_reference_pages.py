"""The pages of the kinds, which `make docs` makes of the models."""

from pathlib import Path

from kind_pages import build_kind_page

from fanout.api.kind_registry import CUSTOM_RESOURCES, KINDS

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "kinds"


def page_of(kind):
    return PAGES / f"{''.join('-' * c.isupper() + c.lower() for c in kind)[1:]}.md"


def test_every_reference_page_is_of_a_kind():
    assert set(PAGES.glob("*.md")) == {page_of(kind) for kind in KINDS}


def test_a_page_says_who_writes_the_status():
    with_status = {kind for kind in KINDS if "## Status" in build_kind_page(kind)}
    assert with_status == {model.__name__ for model in CUSTOM_RESOURCES}
    for kind in with_status:
        introduction = build_kind_page(kind).partition("## Status\n\n")[2].partition("\n")[0]
        assert introduction.startswith("`fanout controller` writes the status (")
        page = "records-as-objects" if kind in ("Evidence", "Approval", "Decision") else "status"
        assert f"../../concepts/{page}.md" in introduction


def test_a_page_has_what_works_first_and_what_does_not_yet_after():
    fields, later = build_kind_page("UpstreamPolicy").split("## Not supported yet")
    assert "spec.stages[].after.soak` | duration |" in fields
    assert "spec.history" not in fields
    assert "`spec.history`" in later
