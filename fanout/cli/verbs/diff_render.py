"""`fanout diff` and `fanout render`: compare a variant with what is there, or print its files."""

from itertools import pairwise
from pathlib import Path

import click

from fanout.api.field_errors import as_mapping
from fanout.cli.input.completion import complete_variants
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.input.package_directory import require_new_directory, write_files
from fanout.cli.input.variant_files import open_variant_files
from fanout.cli.output.merge_view import format_masked_three_way, print_patch
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, detailed_exit_code
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.control_characters import escape_unprintable
from fanout.gates.gate_wording import format_names
from fanout.package.ignored_files import find_ignored
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.package.package_patch import format_masked_patch
from fanout.variants.manifest_objects import find_objects
from fanout.variants.overlay import remove_objects


@click.command(cls=VerbCommand)
@click.argument("variant", shell_complete=complete_variants)
@click.option(
    "--against",
    type=click.Choice(["published", "draft", "upstream"]),
    default="published",
    show_default=True,
    help="What to compare the next draft with.",
)
@click.option(
    "--three-way",
    "each_side",
    is_flag=True,
    help="Print what upstream and downstream changed since their common base, and the conflicts.",
)
@detailed_option
@with_settings(READ_OPTIONS)
def diff(settings: Settings, variant: str, against: str, each_side: bool, **how: bool) -> int:
    """Compare the next draft of a variant with the published package.

    Prints a patch from the published package to the draft that the next sweep would write. The next
    draft includes downstream edits. With --against upstream, the patch starts from the upstream
    package. With --against draft, prints two patches: the edits that people committed to the
    current draft, and the changes from the current draft to the next draft.

    With --three-way, prints what upstream and downstream changed since their common base. By
    default, the base is the package as fanout published it. The upstream side is the package as it
    would be rendered now, without downstream edits. The downstream side is the package on the
    branch. With --against draft, the base is the draft as fanout wrote it, and the downstream side
    is the draft on its branch. With --against upstream, the base is the upstream package at the
    published revision, and the upstream side is the upstream package at the candidate.

    VARIANT is the name of a variant, its target, or its repository:path. Values of Secrets are
    masked as `***`. If the variant is held, it has no next draft, and the command exits with code
    3.
    """
    with open_program(settings) as program:
        files = open_variant_files(program, variant)
        files.refuse_without_draft()
        written, draft = files.read_draft_change() if against == "draft" else ({}, {})
        lines: list[str] = []
        if each_side:
            match against:
                case "published":
                    before, after = files.read_published_change()
                    sides = before, files.read_rendering(), after
                case "draft":
                    sides = written, files.read_rendering(), draft
                case _:
                    sides = (
                        files.read_published_upstream(),
                        files.read_upstream(),
                        files.read_published(),
                    )
            lines = format_masked_three_way(*sides)
        else:
            match against:
                case "published":
                    steps = [("published", files.read_published())]
                case "draft":
                    steps = [("written", written), ("draft", draft)]
                case _:
                    steps = [("upstream", files.read_upstream())]
            steps.append(("rendered", files.read_merged()))
            for (old, old_files), (new, new_files) in pairwise(steps):
                lines += format_masked_patch(old_files, new_files, (old, new))
            notes = [f"# note: {note}" for note in files.notes] if lines else []
            disputed = [f"# conflict: {it} [{it.key}]" for it in files.undecided]
            lines = [*disputed, *notes, *lines]
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK


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
    if (remaining := remove_objects(manifest, local_objects)) is None:
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
def render(settings: Settings, variant: str, to: Path | None) -> None:
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
