"""The page on migrating has the table that the translation goes by; this file, run, writes it."""

from pathlib import Path

import pytest

from fanout.api.foreign.page import field_tables
from fanout.api.kinds import KINDS, known_fields
from fanout.api.porch.rows import ORIGINS
from fanout.api.porch.translate import GROUP

PAGE = Path(__file__).parents[2] / "docs" / "migrating-from-porch.md"


def written(page: str) -> str:
    return page.partition("test_porch_page.py` -->\n")[2].partition("<!-- end of fields -->")[0]


def test_the_page_has_the_table_of_the_translation():
    assert written(PAGE.read_text(encoding="utf-8")) == field_tables(ORIGINS, GROUP)


@pytest.mark.parametrize("origin", ORIGINS, ids=lambda origin: origin.kind)
def test_every_counterpart_is_a_field_that_there_is(origin):
    for row in origin.rows:
        steps = row.target.replace("[*]", "").split(".") if row.target else ()
        for length, step in enumerate(steps):
            assert step in known_fields(KINDS[origin.becomes], tuple(steps[:length])), row.target


@pytest.mark.parametrize("origin", ORIGINS, ids=lambda origin: origin.kind)
def test_no_field_is_in_the_table_twice(origin):
    sources = [row.source for row in origin.rows]
    assert len(sources) == len(set(sources))


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    head, mark, rest = text.partition("test_porch_page.py` -->\n")
    tail = rest.partition("<!-- end of fields -->")[2]
    PAGE.write_text(
        f"{head}{mark}{field_tables(ORIGINS, GROUP)}<!-- end of fields -->{tail}", encoding="utf-8"
    )
