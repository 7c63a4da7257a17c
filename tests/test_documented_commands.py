"""Commands that pages show: each verb, each option and each target of make exists."""

import re
from pathlib import Path

import click
import pytest

from fanout.cli.main import cli

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / "policies").glob("*"),
    *(ROOT / "docs").rglob("*.md"),
]
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A command remembers its option for help, so the context is the one of the program.
TOP = click.Context(cli, info_name="fanout", **cli.context_settings)
# What follows is another command, a comment or the output of the command.
END = re.compile(r"\s(?:#|\\?\||>|<|&&|;|\))|\n|$")


def fenced_and_inline(text: str) -> tuple[str, list[str]]:
    """Return the code blocks of a page with long lines joined, and its inline code."""
    blocks = "\n".join(FENCE.findall(text)).replace("\\\n", " ")
    return blocks, [" ".join(it.split()) for it in re.findall(r"`([^`]+)`", FENCE.sub("", text))]


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of fanout in a page."""
    blocks, inline = fenced_and_inline(text)
    text = "\n".join([blocks, *inline])
    starts = [match.end() for match in re.finditer(r"(?m)(?:^|[$|(&] |- )fanout (?=[a-z-])", text)]
    return [text[it : END.search(text, it).start()].split() for it in starts]


def unknown_words(words: list[str]) -> list[str]:
    """Return the verb if there is none of this name, or the options that the verb does not have."""
    command, context = cli, TOP
    while isinstance(command, click.Group):
        names = [it for it in words if re.fullmatch(r"[a-z][a-z-]*", it)]
        if not names:
            break
        nested = command.get_command(context, names[0])
        if nested is None:
            return names[:1]
        words = words[words.index(names[0]) + 1 :]
        command, context = nested, click.Context(nested, parent=context)
    options = {"-h", "--help"} | {
        name
        for it in (*command.get_params(context), *cli.params)
        for name in (*it.opts, *it.secondary_opts)
    }
    named = [it.partition("=")[0].rstrip(".,:]") for it in words]
    quoted = re.sub(r"""(["']).*?\1""", "", " ".join(named)).split()
    return [it for it in quoted if re.match(r"--?[a-z]", it, re.IGNORECASE) and it not in options]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    unknown = {" ".join(it): unknown_words(it) for it in commands(text)}
    assert {line: words for line, words in unknown.items() if words} == {}


def test_commands_are_compared():
    text = "Run `fanout gett` or `fanout get --tall`.\n```sh\nfanout package merge --orign a\n```\n"
    assert [unknown_words(it) for it in commands(text)] == [["--orign"], ["gett"], ["--tall"]]
    shown = [it for page in PAGES for it in commands(page.read_text(encoding="utf-8"))]
    assert len(shown) > 400


def test_the_targets_of_make_on_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    shown = set()
    for page in PAGES:
        blocks, inline = fenced_and_inline(page.read_text(encoding="utf-8"))
        for line in [*blocks.splitlines(), *inline]:
            if match := re.match(r"make ([a-z-]+)", line):
                shown.add(match[1])
    assert {"demo", "test", "wheel"} <= shown
    assert sorted(shown - targets) == []
