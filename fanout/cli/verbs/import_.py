"""`fanout import`: objects of other programs as fanout's."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from fanout.api.faults import Fault, field_name
from fanout.api.faults import Path as FieldPath
from fanout.api.foreign.assembly import Judge
from fanout.api.foreign.pieces import Imported, Remark
from fanout.api.kargo.translate import translate as from_kargo
from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.api.places import fields
from fanout.api.porch.translate import expressions
from fanout.api.porch.translate import translate as from_porch
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validation import validate
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import list_of, show_value, write
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_sandbox
from fanout.cli.terminal import say
from fanout.cluster.discovery import discover
from fanout.cluster.findings import Finding, InvalidFiles
from fanout.cluster.times import time_faults
from fanout.errors import InvalidInput, Where
from fanout.package.dump import dump_all
from fanout.package.invalid import InvalidManifest
from fanout.package.manifests import Document, Manifest
from fanout.package.revision import parse_range
from fanout.ports import Sandbox
from fanout.reconcile.compile import Code, code_faults

_STDIN = Path("-")


class _Item(NamedTuple):
    """An object of the input and where it stands: its document, and the way through a List."""

    value: Any
    file: str
    document: Document
    prefix: FieldPath

    def is_in(self, namespace: str) -> bool:
        """Is the object in this namespace? Everything is in ""."""
        meta = fields(fields(self.value).get("metadata"))
        return not namespace or (meta.get("namespace") or DEFAULT_NAMESPACE) == namespace

    def line(self, path: FieldPath) -> int:
        """The line of a field, or of what is nearest above it."""
        return self.document.line_of((*self.prefix, *path))

    def __str__(self) -> str:
        """`Kind/name`, as far as it can be said."""
        name = fields(fields(self.value).get("metadata")).get("name")
        return "/".join(str(part) for part in (fields(self.value).get("kind"), name) if part)


@click.group()
def command() -> None:
    """Print objects of other programs as fanout's."""


@command.command("porch")
@with_settings(formats=(Format.YAML, Format.JSON))
def porch(settings: Settings) -> ExitCode:
    """Print Porch's objects as fanout's.

    PackageVariant, PackageVariantSet (v1alpha2) and Repository, from files, directories or
    standard input (-f -). What has no translation is named on stderr, with its file, line and
    field, and the status is 3; a line that begins with `note:` is about something that differs and
    is not lost. The result passes `fanout validate`.
    """
    with open_sandbox(settings) as sandbox:
        return _import(settings, lambda objects: from_porch(objects, _judge_expressions(sandbox)))


@command.command("kargo")
@with_settings(formats=(Format.YAML, Format.JSON))
def kargo(settings: Settings) -> ExitCode:
    """Print Kargo's objects as fanout's.

    Warehouses with Git subscriptions, Stages and ProjectConfigs, from files, directories or
    standard input (-f -). A Warehouse and the Stages that request its freight become an
    UpstreamPolicy. What has no translation is named on stderr, with its file, line and field, and
    the status is 3; a line that begins with `note:` is about something that differs and is not
    lost. What a person has to fill in is called `fill-in` in the result, which passes `fanout
    validate`.
    """
    return _import(settings, lambda objects: from_kargo(objects, _judge_times))


def _import(settings: Settings, translate: Callable[[Sequence[Any]], Imported]) -> ExitCode:
    """Translate what -f names, print the result, and tell what is to be said about it."""
    found = [item for item in _items(settings.sources()) if item.is_in(settings.namespace)]
    imported = translate([item.value for item in found])
    remarks = [(index, found[index].line(it.path), it) for index, it in imported.remarks]
    for index, line, remark in sorted(remarks, key=lambda told: told[:2]):
        _tell(found[index], line, remark, settings)
    if settings.output is Format.JSON:
        show_value(list_of(imported.objects), Format.JSON)
    else:
        write(dump_all([dict(item) for item in imported.objects]))
    return ExitCode.OK if imported.complete else ExitCode.SOME_FAILED


def _judge_times(data: Mapping[str, Any]) -> Iterator[Fault]:
    """As `fanout validate` judges one object that has no expressions: its range, its times."""
    item, faults = validate(data)
    yield from faults
    yield from time_faults(item)
    semver = item.spec.upstream.revision.semver if isinstance(item, UpstreamPolicy) else None
    try:
        if semver:
            parse_range(semver)
    except InvalidInput as error:
        path = ("spec", "upstream", "revision", "semver")
        yield Fault(path, error.problem, error.remedy)


def _judge_expressions(sandbox: Sandbox) -> Judge:
    """As `fanout validate` judges one object: its fields, then its expressions."""

    def judge(data: Mapping[str, Any]) -> Iterable[Fault]:
        _, faults = validate(data)
        asked = () if faults else tuple(expressions(data))
        if not asked:
            return faults
        found = code_faults([Code(field_name(path), text) for path, text in asked], sandbox)
        return [Fault(path, *words) for (path, _), words in zip(asked, found, strict=True) if words]

    return judge


def _tell(item: _Item, line: int, remark: Remark, settings: Settings) -> None:
    where = Where(str(item), field_name(remark.path), item.file, line)
    sentence = str(Finding(where, remark.problem, remark.remedy))
    if remark.lost:
        say(sentence, settings.color, fg="yellow")
    else:
        say(f"note: {sentence}", settings.color)


def _items(paths: Iterable[Path]) -> Iterator[_Item]:
    """All objects of the input. Raises InvalidInput when a part of it cannot be read."""
    named = discover([path for path in paths if path != _STDIN])
    if named.findings:
        raise InvalidFiles(named.findings)
    texts = [(str(path), _bytes(path)) for path in named.files]
    if _STDIN in paths:
        texts.append(("<stdin>", sys.stdin.buffer.read()))
    problems: list[InvalidInput] = []
    for file, data in texts:
        try:
            documents = Manifest.parse(data, file).documents
        except InvalidManifest as error:
            problems += error.problems
            continue
        for document in documents:
            yield from _unrolled(document.value, file, document, ())
    if problems:
        raise InvalidManifest(problems)


def _unrolled(value: Any, file: str, document: Document, prefix: FieldPath) -> Iterator[_Item]:
    """The object itself, or those of a List."""
    listed = isinstance(value, Mapping) and str(value.get("kind")).endswith("List")
    if listed and isinstance(value.get("items"), list):
        for index, inner in enumerate(value["items"]):
            yield from _unrolled(inner, file, document, (*prefix, "items", index))
    else:
        yield _Item(value, file, document, prefix)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        finding = Finding(Where(file=str(path)), problem, "make it readable")
        raise InvalidFiles([finding]) from error
