"""`fanout render`: print the files of a variant as fanout renders them now."""

from pathlib import Path

import click

from fanout.api.field_errors import as_mapping
from fanout.cli.input.completion import complete_variants
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.package_directory import require_new_directory, write_files
from fanout.cli.input.variant_files import open_variant_files
from fanout.cli.output.printer import write_stdout
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.control_characters import escape_unprintable
from fanout.gates.gate_wording import format_names
from fanout.package.ignored_files import find_ignored
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.variants.manifest_objects import find_objects
from fanout.variants.overlay import remove_objects

_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = "---\n"


def format_applicable(path: str, data: bytes) -> str:
    """Return the objects of a file that a cluster accepts, as they are written.

    "" if there is none. The Kptfile and local configuration are left out: an API server would
    refuse the one, and the other would litter it. Raises InvalidManifest for what cannot be read.
    """
    if not path.endswith(_SUFFIXES):
        return ""
    manifest, local_objects = Manifest.parse(data, path), []
    for number, item in find_objects(manifest).items():
        value = as_mapping(item.value)
        annotations = as_mapping(as_mapping(value.get("metadata")).get("annotations"))
        is_local = str(annotations.get(LOCAL_CONFIG)).lower() == "true"
        if not {"apiVersion", "kind"} <= value.keys() or value["kind"] == "Kptfile" or is_local:
            local_objects.append(number)
    remaining = remove_objects(manifest, local_objects)
    if remaining is None:
        return ""
    # Every file is printed behind a separator of its own; a byte order mark inside a stream is
    # an error.
    text = remaining.decode("utf-8-sig").removeprefix(_SEPARATOR)
    return text if text.endswith("\n") else f"{text}\n"


@click.command(cls=VerbCommand)
@click.argument("variant", shell_complete=complete_variants)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files to this new or empty directory.",
)
@with_settings(READ_OPTIONS)
def command(settings: Settings, variant: str, to: Path | None) -> None:
    """Print the files of a variant.

    The files are rendered for the variant's candidate. Each file starts with `---` and a comment
    with its path. `kubectl apply -f -` accepts the output. The Kptfile, local configuration and
    files that are not manifests are left out. With --to, all files are written, as a kpt package.
    VARIANT is the name of a variant, its target, or its repository:path.
    """
    with open_program(settings) as program:
        files = open_variant_files(program, variant).read_merged()
    if to is not None:
        write_files(require_new_directory(to), {}, files)
        return
    ignored = find_ignored(files)
    printed = {
        path: format_applicable(path, files[path][1]) if path not in ignored else ""
        for path in sorted(files)
    }
    for path, text in printed.items():
        write_stdout(f"---\n# {escape_unprintable(path)}\n{text}" if text else "")
    omitted = format_names(escape_unprintable(path) for path, text in printed.items() if not text)
    if omitted:
        print_message(
            f"omitted, not for a cluster: {omitted}; use --to DIR to write all files",
            settings.color,
        )
