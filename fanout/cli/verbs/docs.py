"""`fanout docs`: print the documentation and the examples that are installed with fanout."""

from importlib import resources
from pathlib import Path

import click

from fanout.api.field_errors import suggest_name
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import format_table, write_stdout
from fanout.cli.process_exit import not_found
from fanout.cli.settings import Settings

_PACKAGE = Path(str(resources.files("fanout")))
SUFFIXES = (".md", ".yaml")


def find_directory() -> Path:
    """Return the directory with `docs/` and `policies/`: in the package, or in its source tree."""
    installed = _PACKAGE / "pages"
    return installed if installed.is_dir() else _PACKAGE.parent


def find_pages() -> dict[str, Path]:
    """Return the pages by topic, such as `concepts/gates` or `policies/clusters.yaml`, sorted."""
    root = find_directory()
    topics = {str(it.relative_to(root)): it for it in (root / "policies").glob("*")}
    docs = root / "docs"
    topics |= {str(it.relative_to(docs).with_suffix("")): it for it in docs.rglob("*.md")}
    return {topic: topics[topic] for topic in sorted(topics) if topics[topic].suffix in SUFFIXES}


@click.command(cls=VerbCommand)
@click.argument(
    "topic",
    required=False,
    shell_complete=lambda _ctx, _param, text: [it for it in find_pages() if it.startswith(text)],
)
@click.option("--path", is_flag=True, help="Print the path of the page instead of the page.")
@with_settings(ERROR_OPTIONS)
def command(settings: Settings, topic: str | None, path: bool) -> None:  # noqa: ARG001
    """Print a page of the documentation, or an example.

    TOPIC is a page or an example, such as concepts/gates or policies/clusters.yaml. Without TOPIC,
    prints the list of topics. The last part of a topic, such as gates, is enough if no other topic
    has the same last part. With --path but without TOPIC, prints the directory that contains docs
    and policies.
    """
    pages = find_pages()
    if topic is not None:
        name = topic.removesuffix(".md")
        matches = [name] if name in pages else [it for it in pages if it.endswith(f"/{name}")]
        if len(matches) > 1:
            raise not_found(f"{len(matches)} topics end in {topic}", f"use {' or '.join(matches)}")
        if not matches:
            names = [*pages, *(it.rpartition("/")[2] for it in pages)]
            remedy = suggest_name(name, names, "run `fanout docs` for the list of topics")
            raise not_found(f"there is no topic {topic}", remedy)
        page = pages[matches[0]]
        write_stdout(f"{page}\n" if path else page.read_text(encoding="utf-8"))
    elif path:
        write_stdout(f"{find_directory()}\n")
    else:
        rows = []
        for name, page in pages.items():
            # The first heading, or an example's first comment.
            with page.open(encoding="utf-8") as lines:
                first = next((line for line in lines if line.startswith("# ")), "")
            rows.append((name, first.removeprefix("# ").strip()))
        write_stdout(format_table(["TOPIC", "TITLE"], rows))
