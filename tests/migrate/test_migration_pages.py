"""Pages on migrating have the tables that translations go by; this file, run, writes them."""

from pathlib import Path

import pytest

from fanout.api.kind_registry import KINDS, field_names_at
from fanout.migrate import kargo_fields as kargo
from fanout.migrate.porch_import import PORCH_KINDS

DOCS = Path(__file__).parents[2] / "docs" / "guides"
TABLES = {
    DOCS / "migrating-from-porch.md": PORCH_KINDS,
    DOCS / "migrating-from-kargo.md": kargo.KARGO_KINDS,
}
EVERY = [origin for origins in TABLES.values() for origin in origins]
BEGIN, END = "test_migration_pages.py` -->\n", "<!-- end of fields -->"


def build_field_tables(origins):
    """Return Markdown with a section and a table of fields for every converted kind."""
    mappings_by_kind = [
        {(row.source, row.target, row.description): row for row in it.rows} for it in origins
    ]
    common_mappings = [
        row
        for key, row in mappings_by_kind[0].items()
        if all(key in rows for rows in mappings_by_kind)
    ]
    sections = [_build_section("All kinds", common_mappings)]
    for origin, rows in zip(origins, mappings_by_kind, strict=True):
        own_mappings = (
            row for key, row in rows.items() if not all(key in other for other in mappings_by_kind)
        )
        title = f"{origin.kind} ({origin.api_version}) becomes {origin.target_kind}"
        sections.append(_build_section(title, own_mappings))
    return "\n".join("\n".join(section) for section in sections)


def _build_section(title, rows):
    yield f"### {title}\n"
    yield "| field | becomes | how |\n|---|---|---|"
    for row in rows:
        target = f"`{row.target.replace('[*]', '[]')}`" if row.target else "nothing"
        yield f"| `{row.source.replace('[*]', '[]')}` | {target} | {row.description} |"
    yield ""


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
def test_a_page_has_the_table_of_its_translation(page):
    written = page.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == build_field_tables(TABLES[page])


@pytest.mark.parametrize("origin", EVERY, ids=lambda origin: origin.kind)
def test_every_counterpart_is_a_field_that_there_is(origin):
    for row in origin.rows:
        steps = row.target.replace("[*]", "").split(".") if row.target else ()
        for length, step in enumerate(steps):
            assert step in field_names_at(KINDS[origin.target_kind], tuple(steps[:length])), (
                row.target
            )


@pytest.mark.parametrize("origin", EVERY, ids=lambda origin: origin.kind)
def test_no_field_is_in_the_table_twice(origin):
    sources = [row.source for row in origin.rows]
    assert len(sources) == len(set(sources))


if __name__ == "__main__":
    for path, table in TABLES.items():
        head, mark, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        tail = rest.partition(END)[2]
        path.write_text(f"{head}{mark}{build_field_tables(table)}{END}{tail}", encoding="utf-8")
