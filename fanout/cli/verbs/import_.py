"""`fanout import`: print objects of Porch and Kargo as fanout's."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from fanout.api.field_errors import FieldError, FieldPath, as_mapping, format_path
from fanout.api.object_meta import DEFAULT_NAMESPACE
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_validation import validate_object
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import build_list, print_value, write_stdout
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import open_sandbox
from fanout.cli.terminal import print_message
from fanout.cluster.manifest_discovery import ManifestDiscovery
from fanout.cluster.manifest_documents import InvalidFiles
from fanout.declared.finding import Finding
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import ErrorLocation, InvalidInput
from fanout.migrate.field_mapping import ImportResult, Remark
from fanout.migrate.kargo_import import import_kargo_objects as from_kargo
from fanout.migrate.porch_import import find_expressions
from fanout.migrate.porch_import import import_porch_objects as from_porch
from fanout.package.manifest import Document, Manifest
from fanout.package.revision import parse_range
from fanout.package.yaml_nodes import InvalidManifest
from fanout.package.yaml_scalars import dump_all
from fanout.reconcile.validation.expression_validation import DeclaredCode, find_code_faults

_STDIN = Path("-")
_INPUT_OPTIONS = ("files", "namespace", "all_namespaces", "quiet", *ERROR_OPTIONS)
_FORMATS = (OutputFormat.YAML, OutputFormat.JSON)


class _Item(NamedTuple):
    """Object of the input with its file, its document, and its path inside a List."""

    value: Any
    file: str
    document: Document
    prefix: FieldPath

    def is_in(self, namespace: str) -> bool:
        """Return whether the object is in this namespace; "" stands for all namespaces."""
        meta = as_mapping(as_mapping(self.value).get("metadata"))
        return not namespace or (meta.get("namespace") or DEFAULT_NAMESPACE) == namespace

    def __str__(self) -> str:
        """Return `Kind/name`, as far as the object has them."""
        name = as_mapping(as_mapping(self.value).get("metadata")).get("name")
        return "/".join(str(part) for part in (as_mapping(self.value).get("kind"), name) if part)


@click.group()
def command() -> None:
    """Convert objects of Kargo or Porch."""


@command.command("porch", cls=VerbCommand)
@with_settings((*_INPUT_OPTIONS, "config"), formats=_FORMATS, reads_other_files=True)
def porch(settings: Settings) -> ExitCode:
    """Convert objects of Porch.

    Reads PackageVariant, PackageVariantSet (v1alpha2) and Repository objects from files,
    directories or standard input (-f -). Fields that cannot be converted are reported on stderr
    with file, line and field, and the command exits with code 3. A line that starts with `note:`
    describes a difference in behavior. The result passes `fanout validate`.
    """
    with open_sandbox(settings) as sandbox:

        def validate(data: Mapping[str, Any]) -> Iterable[FieldError]:
            """Validate the fields of one object, then its expressions."""
            _, faults = validate_object(data)
            codes = () if faults else tuple(find_expressions(data))
            if not codes:
                return faults
            declared = [DeclaredCode(format_path(path), text) for path, text in codes]
            messages = zip(codes, find_code_faults(declared, sandbox), strict=True)
            return [FieldError(path, *words) for (path, _), words in messages if words]

        return _import_objects(settings, lambda objects: from_porch(objects, validate))


@command.command("kargo", cls=VerbCommand)
@with_settings(_INPUT_OPTIONS, formats=_FORMATS, reads_other_files=True)
def kargo(settings: Settings) -> ExitCode:
    """Convert objects of Kargo.

    Reads Stages, ProjectConfigs, and Warehouses that have Git subscriptions, from files,
    directories or standard input (-f -). A Warehouse and the Stages that request its freight become
    an UpstreamPolicy. Fields that cannot be converted are reported on stderr with file, line and
    field, and the command exits with code 3. A line that starts with `note:` describes a difference
    in behavior. Values that you must supply are written as `fill-in`. The result passes `fanout
    validate` even before you replace these values.
    """
    return _import_objects(settings, lambda objects: from_kargo(objects, _validate_object))


def _import_objects(
    settings: Settings, translate: Callable[[Sequence[Any]], ImportResult]
) -> ExitCode:
    """Translate the objects of -f, print the result, and report what has no translation."""
    items = [it for it in _read_items(settings.require_files()) if it.is_in(settings.namespace)]
    imported = translate([it.value for it in items])
    remarks: list[tuple[int, int, Remark]] = []
    for index, remark in imported.remarks:
        path = (*items[index].prefix, *remark.path)
        remarks.append((index, items[index].document.line_of(path), remark))
    for index, line, remark in sorted(remarks, key=lambda entry: entry[:2]):
        item = items[index]
        where = ErrorLocation(str(item), format_path(remark.path), item.file, line)
        sentence = str(Finding(where, remark.problem, remark.remedy))
        if remark.is_lost:
            print_message(sentence, settings.color, fg="yellow")
        else:
            print_message(f"note: {sentence}", settings.color)
    if settings.output is OutputFormat.JSON:
        print_value(build_list(imported.objects), OutputFormat.JSON)
    else:
        write_stdout(dump_all([dict(it) for it in imported.objects]))
    return ExitCode.OK if imported.is_complete else ExitCode.SOME_FAILED


def _validate_object(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Validate one object without expressions: fields, times and revision range."""
    item, faults = validate_object(data)
    yield from faults
    yield from find_schedule_errors(item)
    semver = item.spec.upstream.revision.semver if isinstance(item, UpstreamPolicy) else None
    try:
        if semver:
            parse_range(semver)
    except InvalidInput as error:
        yield FieldError(("spec", "upstream", "revision", "semver"), error.problem, error.remedy)


def _read_items(paths: Iterable[Path]) -> Iterator[_Item]:
    """Yield all objects of the input. Raises InvalidInput if a part of it cannot be read."""
    discovered = ManifestDiscovery([path for path in paths if path != _STDIN])
    if discovered.findings:
        raise InvalidFiles(discovered.findings)
    texts: list[tuple[str, bytes]] = []
    for path in discovered.files:
        try:
            texts.append((str(path), path.read_bytes()))
        except OSError as error:
            problem, where = f"cannot be read: {error.strerror}", ErrorLocation(file=str(path))
            raise InvalidFiles([Finding(where, problem, "make it readable")]) from error
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
            yield from _expand_lists(document.value, file, document, ())
    if problems:
        raise InvalidManifest(problems)


def _expand_lists(value: Any, file: str, document: Document, prefix: FieldPath) -> Iterator[_Item]:
    """Yield the object itself, or the objects of a List, at any depth."""
    is_list = isinstance(value, Mapping) and str(value.get("kind")).endswith("List")
    if is_list and isinstance(value.get("items"), list):
        for index, element in enumerate(value["items"]):
            yield from _expand_lists(element, file, document, (*prefix, "items", index))
    else:
        yield _Item(value, file, document, prefix)
