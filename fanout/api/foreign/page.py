"""What becomes of each field of another program's: its table for the page on migrating."""

from collections.abc import Iterable, Iterator, Sequence

from fanout.api.foreign.rows import Origin, Row


def field_tables(origins: Sequence[Origin], group: str) -> str:
    """A section with a table of all fields, for every kind that is translated, as Markdown."""
    alike = [row for row in origins[0].rows if _in_all(row)]
    sections = [_section("All kinds", alike)]
    sections += (
        _section(_title(it, group), (r for r in it.rows if not _in_all(r))) for it in origins
    )
    return "\n".join("\n".join(section) for section in sections)


def _in_all(row: Row) -> bool:
    return not row.source.startswith("spec")


def _title(origin: Origin, group: str) -> str:
    return f"{origin.kind} ({group}/{origin.version}) becomes {origin.becomes}"


def _section(title: str, rows: Iterable[Row]) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| field | becomes | how |\n|---|---|---|"
    for row in rows:
        target = f"`{row.target.replace('[*]', '[]')}`" if row.target else "nothing"
        yield f"| `{row.source.replace('[*]', '[]')}` | {target} | {row.about} |"
    yield ""
