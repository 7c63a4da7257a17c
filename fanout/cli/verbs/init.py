"""`fanout init`: make a first working directory from questions or flags."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, namespace_option, with_settings
from fanout.cli.output.object_templates import (
    build_metadata,
    check_objects,
    create_files,
    format_cluster,
    format_policy,
    format_promotion,
    format_repository,
    join_documents,
    refuse_existing,
    split_list,
)
from fanout.cli.output.printer import write_lines, write_stdout
from fanout.cli.process_exit import invalid_setting
from fanout.cli.settings import OutputFormat, Settings

_URL = re.compile(r"[a-z+]+://|[\w.-]+@?[\w.-]*:")
_DOWNSTREAM = re.compile(r"([a-z0-9][-a-z0-9]*)=(.+)")
_KEPT_HINTS = {".gitignore": "; add the line .fanout/ to it"}
_CLUSTERS_COMMENT = (
    "# Examples: replace them with the objects of your inventory, one for each cluster.\n"
)
_README = """\
# {name}

The objects of fanout, a GitOps fan-out controller, are in `policies/`: repositories, the
UpstreamPolicy {name}, and the PromotionPolicy that allows automatic publication. Commit this
directory to Git; `.fanout/` is local state.

```sh
fanout validate -f policies
fanout plan -f policies     # what a sweep would do
fanout sweep -f policies    # write drafts; run it again to publish what is allowed
fanout status -f policies
```

`fanout docs getting-started` prints the tutorial, `fanout docs` the list of all pages.
"""


@click.command(cls=VerbCommand)
@click.argument("directory", default=".", metavar="[DIR]")
@click.option(
    "--upstream", metavar="URL", help="URL of the upstream repository, which contains the package."
)
@click.option("--package", metavar="PATH", help="Path of the package in the upstream repository.")
@click.option(
    "--downstream",
    multiple=True,
    metavar="[NAME=]URL",
    help="Downstream repository; can be repeated, in the order of the stages.",
)
@click.option(
    "--stages", metavar="STAGE,…", help="Stages, in the order of the rollout.  [default: dev,prod]"
)
@click.option(
    "--targets",
    type=click.Choice(["repositories", "clusters"]),
    help="Make a variant for each downstream repository, or for each Cluster object.  [default:"
    " repositories]",
)
@click.option("--dry-run", is_flag=True, help="Print what would be created, and create nothing.")
@with_settings(
    ("namespace", *ERROR_OPTIONS),
    namespace=namespace_option("Namespace of the new objects.  [default: default]", "-n"),
    formats=(OutputFormat.TABLE, OutputFormat.YAML),
)
def command(  # noqa: PLR0913  # one argument for each option
    settings: Settings,
    *,
    directory: str,
    upstream: str | None,
    package: str | None,
    downstream: tuple[str, ...],
    stages: str | None,
    targets: str | None,
    dry_run: bool,
) -> None:
    """Create a working directory with a first policy.

    On a terminal, prompts for values that no flag sets. Keeps an existing README.md or .gitignore.
    Creates nothing if it would overwrite a YAML file.
    """
    root = Path(directory)
    upstream = upstream or _ask("URL of the upstream repository", "--upstream")
    package = (package or _ask("Path of the package in it", "--package")).strip("/")
    downstream = downstream or tuple(
        _ask("URLs of the downstream repositories, separated by spaces", "--downstream").split()
    )
    stages = stages or _ask("Stages", default="dev,prod")
    targets = targets or _ask("Targets: repositories or clusters", default="repositories")
    with_clusters = targets == "clusters"
    built = _build_files(settings, upstream, package, downstream, split_list(stages), with_clusters)
    texts = {root / name: text for name, text in built.items()}
    objects = [text for path, text in texts.items() if path.suffix == ".yaml"]
    check_objects(join_documents(objects))
    existing = [path for path in texts if path.exists()]
    refuse_existing([path for path in existing if path.suffix == ".yaml"])
    new_files = {path: text for path, text in texts.items() if path not in existing}
    create_files(new_files, dry_run=dry_run)
    if settings.output is OutputFormat.YAML:
        write_stdout(join_documents(objects))
        return
    verb = "would create" if dry_run else "created"
    write_lines(
        [
            *(f"{verb} {path}" for path in new_files),
            *(f"kept {path}, which exists{_KEPT_HINTS.get(path.name, '')}" for path in existing),
            f"next: {'' if root == Path() else f'cd {root} && '}fanout validate -f policies",
        ]
    )


def _ask(question: str, flag: str = "", default: str = "") -> str:
    """Ask on the terminal; on stderr, so that stdout has the result alone.

    Where nobody can be asked, return the default, or raise InvalidInput for a missing flag.
    """
    if sys.stdin.isatty():
        return str(click.prompt(question, default=default or None, err=True)).strip()
    if flag:
        raise invalid_setting(
            "a value is missing, and there is no terminal to ask for it", f"give {flag}", flag
        )
    return default


def _build_files(
    settings: Settings,
    upstream: str,
    package: str,
    downstream: Sequence[str],
    stages: Sequence[str],
    with_clusters: bool,
) -> dict[str, str]:
    """Return the text of each file of the working directory, by path."""
    name = _to_name(package.rpartition("/")[2] or "package")
    upstream_name = _to_name(_last_part(upstream))
    comment = "Upstream: has the package."
    repositories = {
        upstream_name: format_repository(
            build_metadata(settings, upstream_name), _absolute(upstream), comment=comment
        )
    }
    comment = "Downstream: gets variants. It needs a branch main with a first commit."
    for text in downstream:
        named = _DOWNSTREAM.fullmatch(text)
        wanted, url = (named[1], named[2]) if named else (_to_name(_last_part(text)), text)
        unique, number = wanted, 1  # a second repository of a name gets a number
        while unique in repositories:
            number += 1
            unique = f"{wanted}-{number}"
        metadata = build_metadata(settings, unique)
        repositories[unique] = format_repository(metadata, _absolute(url), comment=comment)
    targets = list(repositories)[1:]
    # In their order; surplus ones go with the last of the other.
    pairs = [
        (stages[min(index, len(stages) - 1)], targets[min(index, len(targets) - 1)])
        for index in range(max(len(stages), len(targets)))
    ]
    targeted = () if with_clusters else pairs
    metadata, promotion = build_metadata(settings, name), build_metadata(settings, "automation")
    texts = {
        ".gitignore": ".fanout/\n",
        "README.md": _README.format(name=name),
        "policies/repositories.yaml": join_documents(repositories.values()),
        f"policies/policy-{name}.yaml": format_policy(
            metadata, upstream_name, package, stages, downstream=targeted
        ),
        "policies/promotion.yaml": format_promotion(promotion, [name], stages[:1]),
    }
    if with_clusters:
        clusters = [
            format_cluster(build_metadata(settings, f"{stage}-1"), stage, repository)
            for stage, repository in pairs
        ]
        texts["policies/clusters.yaml"] = _CLUSTERS_COMMENT + join_documents(clusters)
    return texts


def _last_part(url: str) -> str:
    return re.split(r"[/:]", url.rstrip("/").removesuffix(".git"))[-1]


def _to_name(text: str) -> str:
    """Return a valid name of an object that is like the text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-") or "repository"


def _absolute(url: str) -> str:
    """Return a local path as absolute path: fanout may run in another directory."""
    return url if _URL.match(url) else str(Path(url).absolute())
