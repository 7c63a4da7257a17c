"""What becomes of each field of another program's: its table for the page on migrating."""

from collections.abc import Iterable, Iterator, Sequence

from fanout.api.foreign.rows import Origin, Row


def field_tables(origins: Sequence[Origin], group: str) -> str:
    """A section with a table of all fields, for every kind that is translated, as Markdown."""
    said = [{(row.source, row.target, row.about): row for row in it.rows} for it in origins]
    alike = [row for key, row in said[0].items() if all(key in rows for rows in said)]
    sections = [_section("All kinds", alike)]
    for origin, rows in zip(origins, said, strict=True):
        own = (row for key, row in rows.items() if not all(key in other for other in said))
        sections.append(_section(_title(origin, group), own))
    return "\n".join("\n".join(section) for section in sections)


def _title(origin: Origin, group: str) -> str:
    return f"{origin.kind} ({group}/{origin.version}) becomes {origin.becomes}"


def _section(title: str, rows: Iterable[Row]) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| field | becomes | how |\n|---|---|---|"
    for row in rows:
        target = f"`{row.target.replace('[*]', '[]')}`" if row.target else "nothing"
        yield f"| `{row.source.replace('[*]', '[]')}` | {target} | {row.about} |"
    yield ""
