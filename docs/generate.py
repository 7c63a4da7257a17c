"""Generator of the reference pages (`make docs`).

A test compares the pages in the repository with its output.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import yaml
from kind_pages import build_kind_page

from fanout import ports
from fanout.api.kind_registry import KINDS
from fanout.api.reasons import NEEDS_REPAIR, Reason, ReasonClass, classify_reason
from fanout.cli.main import TERMS, VERBS, cli
from fanout.cli.process_exit import EXIT_CODE_HELP
from fanout.forge.gitea import GiteaForge
from fanout.forge.github import GitHubForge
from fanout.serve.metric_table import METRICS

DOCS = Path(__file__).parent
WIDTH = 96
REMEDIES = DOCS / "troubleshooting" / "remedies.yaml"
# Class in the index for reasons that are neither from a gate nor errors.
_STATUS, _STATUS_MEANING = "status", "no error; nothing has to be done"
_NO_ERRORS = frozenset(
    {
        Reason.CONFLICT_DECIDED,
        Reason.ENFORCED,
        Reason.LISTED,
        Reason.PROGRESSING,
        Reason.READY,
        Reason.REMOVAL_AWAITS,
        Reason.UNUSED,
    }
)


def pages() -> dict[Path, str]:
    """Return the text of every generated page by its path."""
    kind_pages = {
        DOCS / "reference" / "kinds" / f"{_spell_with_dashes(kind)}.md": build_kind_page(kind)
        for kind in KINDS
    }
    return kind_pages | {
        DOCS / "reference" / "commands.md": "\n".join(_build_commands()),
        DOCS / "reference" / "forges.md": "\n".join(_build_forges()),
        DOCS / "reference" / "metrics.md": "\n".join(_build_metrics()),
        DOCS / "troubleshooting" / "reasons.md": "\n".join(_build_reasons()),
    }


def _spell_with_dashes(kind: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", kind).lower()


def _build_reasons() -> Iterator[str]:
    """Yield the index of reasons: a table by class, then cause and remedy of each."""
    yield "# Index of reasons\n\nGenerated from the program by `make docs`.\n"
    yield "Every hold, condition and error has one of these reasons. `fanout plan` and"
    yield "`fanout sweep` exit with code 3 while a variant has a reason in **bold**.\n"
    yield "A pass is one reconciliation, by `fanout sweep` or `fanout run`; a sweep is a pass that"
    yield "publishes what is allowed. The candidate of a stage is the revision to roll out in it."
    yield "The [glossary](../glossary.md) has all terms.\n"
    yield "| class | meaning | reasons |\n|---|---|---|"
    meanings = {it.value: it.meaning for it in ReasonClass} | {_STATUS: _STATUS_MEANING}
    for reason_class, meaning in meanings.items():
        links = (
            f"**{link}**" if reason in NEEDS_REPAIR else link
            for reason in Reason
            if _display_class(reason) == reason_class
            for link in [f"[{reason}](#{reason.lower()})"]
        )
        yield f"| `{reason_class}` | {meaning} | {', '.join(links)} |"
    remedies = yaml.safe_load(REMEDIES.read_text(encoding="utf-8"))
    for reason in Reason:
        yield f"\n## {reason}\n\nClass `{_display_class(reason)}`: {reason.meaning}.\n"
        yield "- Cause: {cause}\n- Remedy: {remedy}".format(**remedies[reason])
    yield ""


def _display_class(reason: Reason) -> str:
    return _STATUS if reason in _NO_ERRORS else classify_reason(reason).value


def _build_commands() -> Iterator[str]:
    """Yield the command reference: `--help` of each verb, in the order of the table."""
    yield "# Commands\n\nGenerated from the program by `make docs`.\n"
    yield "| command | what it does |\n|---|---|"
    for name, text in VERBS.items():
        yield f"| [`fanout {name}`](#fanout-{name}) | {text} |"
    yield "\n## Exit codes\n\n| code | meaning |\n|---|---|"
    for code, meaning in EXIT_CODE_HELP.items():
        yield f"| {int(code)} | {meaning} |"
    yield "\n## Terms\n\nThe [glossary](../glossary.md) explains all terms.\n"
    yield "| term | meaning |\n|---|---|"
    for term, meaning in TERMS.items():
        yield f"| {term} | {meaning} |"
    root = _context(cli, "fanout", None)
    for name in VERBS:
        command = cli.get_command(root, name)
        assert command is not None
        yield from _build_section(command, name, root)
    yield ""


_FORGES = {"Gitea": GiteaForge, "GitHub": GitHubForge}
_ABILITIES = (
    ports.RequestSearch,
    ports.RequestPoll,
    ports.ReviewReader,
    ports.StatusStore,
    ports.BranchReader,
    ports.RequestMerger,
    ports.ClosingReader,
    ports.ChangedPathReader,
)


def _build_forges() -> Iterator[str]:
    """Yield the abilities of the clients of forges."""
    yield "# Forges\n\nGenerated from the program by `make docs`.\n"
    yield "A forge is the program that hosts a repository and its pull requests. All that a client"
    yield "must have beside pull requests are labels and requests for reviews. All else is an"
    yield "ability: where it is missing, fanout does without it, or says why it holds.\n"
    yield f"| ability | {' | '.join(_FORGES)} |\n|---|{'---|' * len(_FORGES)}"
    for ability in _ABILITIES:
        words = (ability.__doc__ or "").partition("\n")[0].removeprefix("Ability of a forge to ")
        # Protocols with properties have no subclass test.
        names = [it for it in vars(ability) if not it.startswith("_")]
        has = [
            "yes" if all(hasattr(it, name) for name in names) else "no" for it in _FORGES.values()
        ]
        yield f"| {words.rstrip('.')} | {' | '.join(has)} |"
    yield "| merge automatically when checks have passed (`merge: AutoMerge`) | no | no |"
    yield "| add pull requests to a merge queue (`merge: Queue`) | no | no |"
    yield "\nGitea is tried on a real one (1.26); Forgejo has the same API and is not tried."
    yield "GitHub is tried on a double of its published description of 2026-03-10. GitLab is not"
    yield "supported yet. The guides for [Gitea](../guides/gitea.md) and for"
    yield "[GitHub](../guides/github.md) describe accounts, rights and rules;"
    yield "[rate limits](rate-limits.md) are a page of their own."
    yield ""


def _build_metrics() -> Iterator[str]:
    """Yield the page of metrics."""
    yield "# Metrics\n\nGenerated from the program by `make docs`.\n"
    yield (
        "`fanout run` and `fanout controller` serve these metrics with `--listen ADDRESS` on"
        " `/metrics`,"
        " and the `process_` metrics of their own process. [Monitoring](../guides/monitoring.md)"
        " shows how to use them. No label names a variant\nor a target: the number of series"
        " grows with policies and stages, not with the fleet.\n\nThere is no metric of a"
        " leader: any number of processes may run, and a compare-and-swap in Git decides"
        " whose\nwrites count.\n"
    )
    yield "| metric | type | labels | meaning |\n|---|---|---|---|"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.type} | {labels} | {metric.meaning} |"
    yield ""


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """Return a context as the program creates it, independent of earlier commands."""
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )


def _build_section(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    context = _context(command, name, parent)
    level = "#" * (len(context.command_path.split()))
    yield f"\n{level} {context.command_path}\n\n```\n{context.get_help()}\n```"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            subcommand = command.get_command(context, inner)
            assert subcommand is not None
            yield from _build_section(subcommand, inner, context)


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
