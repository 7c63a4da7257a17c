"""`fanout schema`: print JSON Schemas for validation and completion in editors."""

import click

from fanout.api.crd_schemas import build_json_schemas
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import print_value
from fanout.cli.settings import OutputFormat, Settings
from fanout.errors import InvalidInput


@click.command(cls=VerbCommand)
@click.argument("kind", required=False)
@with_settings(ERROR_OPTIONS, formats=(OutputFormat.JSON, OutputFormat.YAML))
def command(settings: Settings, kind: str | None) -> None:
    """Print the JSON Schemas of all kinds.

    KIND is a kind that users write, such as UpstreamPolicy, or that `fanout get` prints, such as
    StageView. Without KIND, prints one object with the schema of each kind. Editors use the schemas
    to complete and check files.
    """
    schemas = build_json_schemas()
    if kind is None:
        print_value(schemas, settings.output)
        return
    by_lower = {name.lower(): name for name in schemas}
    if kind.lower() not in by_lower:
        raise InvalidInput(
            f"there is no kind {kind!r}",
            reason="UnknownKind",
            remedy=f"use one of {', '.join(schemas)}",
        )
    print_value(schemas[by_lower[kind.lower()]], settings.output)
