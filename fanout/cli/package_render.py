"""`fanout package render`: the functions of a package's own pipeline, run on a directory."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fanout.api.reasons import Reason
from fanout.cli.directories import (
    LIMITS,
    differing,
    located,
    new_directory,
    read_files,
    write_files,
)
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.package_merge import DIRECTORY, NEW_DIRECTORY
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import printable
from fanout.cli.workshop import Workshop, workshop
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.merge.packages import Content, Files
from fanout.package.revision import Revision
from fanout.package.tree import Entry, blob_id
from fanout.variants.context import CONTEXT
from fanout.variants.functions.function import Result, mapping
from fanout.variants.model import UpstreamPackage
from fanout.variants.overlay import Overlay
from fanout.variants.prepare import prepare
from fanout.variants.prepared import PreparedPackage
from fanout.variants.questions import Answers
from fanout.variants.results import errors_of
from fanout.variants.whole import Whole

_BREADTH_FIRST = "kpt.dev/bfs-rendering"


@click.command()
@click.argument("directory", type=DIRECTORY)
@click.option("--to", type=NEW_DIRECTORY, help="Write to a new or empty directory instead.")
@with_settings(sources=False, config=True, formats=(Format.TABLE, Format.JSON, Format.YAML))
def render(settings: Settings, directory: Path, to: Path | None) -> ExitCode:
    """Run the functions of a package's Kptfile.

    Those of subpackages run first. The package is changed in place, as a whole or not at all; not
    at all where a function finds an error.
    """
    target = directory if to is None else new_directory(to)
    before = read_files(directory)
    try:
        after, results = rendered(before, workshop(settings))
    except InvalidInput as error:
        raise located(error, directory) from None
    failed = bool(errors_of(results))
    if not failed:
        write_files(target, before if to is None else {}, after)
    changed = [] if failed else differing(before, after)
    if settings.output is Format.TABLE:
        write("".join(f"{printable(line)}\n" for line in _lines(before, after, changed, results)))
    else:
        show_value(_report(changed, results), settings.output)
    return ExitCode.INVALID if failed else ExitCode.OK


def rendered(files: Files, tools: Workshop) -> tuple[dict[str, Content], tuple[Result, ...]]:
    """The package after its pipeline, and what the functions had to say.

    As it stands, it is a package like one that a variant is made of; nothing is cloned, injected or
    written to the Kptfile. Raises InvalidInput with file and line inside the package.
    """
    _check(files)
    entries = {path: (Entry(mode, blob_id(data)), data) for path, (mode, data) in files.items()}
    nowhere = Revision(name="", commit="", when=0)
    limits = replace(LIMITS, programs=tools.programs)
    prepared = _without_context(prepare(UpstreamPackage("", "", nowhere, "", entries), limits))
    whole = tools.answering.through(lambda answers: _run(prepared, answers))
    result, blobs = whole.write()
    known = {entry.oid: data for entry, data in entries.values()} | blobs
    after = {path: (entry.mode, known[entry.oid]) for path, entry in sorted(result.items())}
    return after, tuple(whole.results)


def _run(prepared: PreparedPackage, answers: Answers) -> Whole:
    overlays = {place: Overlay(place[0], found) for place, found in prepared.objects.items()}
    whole = Whole(prepared, {}, overlays, answers=answers)
    whole.run(prepared.functions)
    return whole


def _check(files: Files) -> None:
    if KPTFILE not in files:
        raise InvalidInput(
            "there is no Kptfile",
            reason=Reason.INVALID_PACKAGE,
            remedy="name the directory of a package, or make it one with `kpt pkg init`",
        )


def _without_context(prepared: PreparedPackage) -> PreparedPackage:
    """Without the package context that a variant would get, if the package has none."""
    _refuse_breadth_first(prepared)
    if CONTEXT in prepared.entries:
        return prepared
    for function in prepared.functions:
        if function.config_file == CONTEXT:
            raise InvalidInput(
                f"{function.function.name}: there is no {CONTEXT}",
                reason=Reason.RENDER_FAILED,
                remedy="add the file, or correct configPath",
                where=function.where,
            )
    return replace(
        prepared,
        manifests={path: it for path, it in prepared.manifests.items() if path != CONTEXT},
        objects={place: it for place, it in prepared.objects.items() if place[0] != CONTEXT},
        local=frozenset(place for place in prepared.local if place[0] != CONTEXT),
    )


def _refuse_breadth_first(prepared: PreparedPackage) -> None:
    document = prepared.manifests[KPTFILE].documents[0]
    metadata = mapping(mapping(document.value).get("metadata"))
    subpackages = any(path.endswith(f"/{KPTFILE}") for path in prepared.manifests)
    if mapping(metadata.get("annotations")).get(_BREADTH_FIRST) == "true" and subpackages:
        path = ("metadata", "annotations", _BREADTH_FIRST)
        raise InvalidInput(
            "the package around a subpackage cannot be rendered before it",
            reason=Reason.RENDER_FAILED,
            remedy="take the annotation away; subpackages are rendered first",
            where=Where(KPTFILE, ".".join(path), KPTFILE, document.line_of(path)),
        )


def _lines(
    before: Files, after: Files, changed: list[str], results: tuple[Result, ...]
) -> Iterator[str]:
    for result in results:
        yield f"{result.severity}: {result.sentence}"
    for path in changed:
        verb = "changed" if path in before and path in after else "added"
        yield f"{verb if path in after else 'removed'}: {path}"


def _report(changed: list[str], results: tuple[Result, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "RenderReport",
        "changed": changed,
        "results": [result._asdict() for result in results],
    }
