"""Settings of a run of `fanout`, from flags, environment and defaults."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from fanout.cli.process_exit import invalid_setting, not_found
from fanout.cli.terminal import Color
from fanout.errors import ErrorLocation, InvalidInput
from fanout.message_commands import FLAGS, MessageCommands
from fanout.values import Value

Choice = TypeVar("Choice", bound=StrEnum)
STANDARD_INPUT = Path("-")
POD_VARIABLE = "KUBERNETES_SERVICE_HOST"  # set in every container of a pod
# Git keeps no time before 1970; a calendar looks years ahead
_ACCEPTED_YEARS = range(1971, 9000)


class OutputFormat(StrEnum):
    """Output format: the values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    JSONPATH = "jsonpath"  # -o jsonpath=TEMPLATE
    CUSTOM_COLUMNS = "custom-columns"  # -o custom-columns=HEAD:PATH,…

    @property
    def is_data(self) -> bool:
        """True for formats that programs read, and not people."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)

    @property
    def is_table(self) -> bool:
        """True for the tables with columns of the verb."""
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)

    @property
    def needs_template(self) -> bool:
        """True for formats that are written with a value, as in `-o jsonpath=TEMPLATE`."""
        return self in (OutputFormat.JSONPATH, OutputFormat.CUSTOM_COLUMNS)


# Formats of verbs that print a report.
REPORT_FORMATS = (OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)


class Settings(Value):
    """Settings of every verb. A flag overrides the environment, and the environment the default."""

    files: tuple[Path, ...] = ()  # directories or files with objects; none: no file mode
    accepts_cluster: bool = False  # the verb can read the objects of a cluster
    reads_cluster: bool = False  # it does: the objects are not those of files
    context: str = ""  # of the kubeconfig file; "": its current one
    kubeconfig: Path | None = None  # None: as kubectl finds it
    is_controller: bool = False
    namespace: str = ""  # "": all namespaces
    config: Path | None = None  # a FanoutConfiguration
    state_dir: Path = Path(".fanout")  # mirrors, caches and the default records repository
    records: str = ""  # URL of the records repository; "": the configuration's, else the default
    new_records: bool = False  # start with empty records even if repositories show earlier activity
    output: OutputFormat = OutputFormat.TABLE
    template: str = ""  # of -o jsonpath= and custom-columns=
    sort_by: str = ""  # path of the field that objects are sorted by; "": the verb's order
    no_headers: bool = False
    quiet: bool = False
    dry_run: bool = False  # records and repositories are read, and nothing is written
    verbosity: int = 0
    color: Color = Color.AUTO
    now_override: datetime | None = None  # --now
    commands: MessageCommands = MessageCommands()  # that messages advise

    @property
    def names_cluster(self) -> bool:
        """True if an option names the cluster or the verb has no other source of objects."""
        return bool(self.context or self.kubeconfig or self.is_controller)

    @property
    def is_in_pod(self) -> bool:
        """True if this is a controller that runs as the service account of its pod."""
        return self.is_controller and not self.context and self.kubeconfig is None

    @property
    def uses_cluster(self) -> bool:
        """True if objects are read from an API server, and not from files."""
        return self.reads_cluster or self.is_controller

    @property
    def plans_only(self) -> bool:
        """True if a command that records carries nothing out, which the controller may do."""
        return self.dry_run or (self.uses_cluster and not self.is_controller)

    def now(self) -> datetime:
        """Return `--now`, or the present time in UTC in whole seconds, as Git stores it."""
        return self.now_override or datetime.now(UTC).replace(microsecond=0)

    def require_files(self) -> tuple[Path, ...]:
        """Return the files and directories of `-f`, `-` (standard input) among them.

        Raises InvalidInput if none was given, or one does not exist.
        """
        if not self.files:
            remedy = "use -f DIR, or set FANOUT_FILES"
            if self.accepts_cluster:
                remedy += "; for the objects of a cluster, use --kubeconfig FILE"
            raise InvalidInput("no directory of objects is given", reason="NoFiles", remedy=remedy)
        for path in self.files:
            # Path.exists raises if a directory cannot be searched.
            if path != STANDARD_INPUT and not os.path.exists(path):  # noqa: PTH110
                raise not_found(
                    f"there is no file or directory {path}", "check -f and FANOUT_FILES"
                )
        return self.files


# Environment variables by parameter name of the flag.
ENVIRONMENT_VARIABLES = {
    "files": "FANOUT_FILES",  # separated like PATH
    "namespace": "FANOUT_NAMESPACE",
    "config": "FANOUT_CONFIG",
    "state_dir": "FANOUT_STATE_DIR",
    "records": "FANOUT_RECORDS",
    "output": "FANOUT_OUTPUT",
    "verbosity": "FANOUT_VERBOSITY",
    "color": "FANOUT_COLOR",
    "now": "FANOUT_NOW",
}


def resolve_settings(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    formats: tuple[OutputFormat, ...] = tuple(OutputFormat),
    *,
    accepts_cluster: bool = False,
) -> Settings:
    """Build the settings from the flags that were given and the environment.

    A flag that is absent or empty counts as not given. `formats`: output formats that the
    verb can print, its default first. FANOUT_OUTPUT applies to all verbs, so a verb that
    cannot print it uses its default. `accepts_cluster`: the verb reads objects of a cluster, too:
    without any files those of the cluster that kubectl would use, if there is one. Raises
    InvalidInput that names the flag or the variable.
    """
    _refuse_exclusive_flags(flags)
    sources: dict[str, tuple[Any, str]] = {
        name: (environment[variable], variable)
        for name, variable in ENVIRONMENT_VARIABLES.items()
        if environment.get(variable)
    }
    # Flags come last so that they override the environment, with their name as origin for errors.
    sources.update({name: (value, f"--{name}") for name, value in flags.items() if value})

    values: dict[str, Any] = {}
    for name, (value, origin) in sources.items():
        match name:
            case "files":
                parts = value.split(os.pathsep) if isinstance(value, str) else value
                values["files"] = tuple(Path(part) for part in parts if part)
            case "config" | "state_dir" | "kubeconfig":
                values[name] = Path(value)
            case "color":
                values["color"] = _parse_choice(Color, value, origin)
            case "output":
                values["output"], values["template"] = _parse_output(value, origin)
            case "verbosity":
                if not isinstance(value, int) and not value.isdecimal():
                    raise invalid_setting(f"{value!r} is not a number", "use 0, 1 or 2", origin)
                values["verbosity"] = int(value)
            case "now":
                values["now_override"] = parse_instant_option(value, origin)
            case "all_namespaces":
                pass  # handled below
            case _:
                values[name] = value
    if flags.get("all_namespaces"):
        values["namespace"] = ""  # FANOUT_NAMESPACE does not apply
    if values.get("output") not in formats:
        values["output"], values["template"] = formats[0], ""
    values["accepts_cluster"] = accepts_cluster
    # Where kubectl finds a cluster without options: in a pod, or by a kubeconfig file.
    named = environment.get("KUBECONFIG")
    paths = named.split(os.pathsep) if named else [os.path.expanduser("~/.kube/config")]  # noqa: PTH111 as the client of Kubernetes finds it
    values["reads_cluster"] = bool(flags.get("context") or flags.get("kubeconfig")) or (
        accepts_cluster
        and not values.get("files")
        and (bool(environment.get(POD_VARIABLE)) or any(map(os.path.isfile, paths)))
    )
    reads_cluster = values["reads_cluster"]
    # Commands that messages advise need the same flags as this one. The environment is there for
    # the next command, too, but kubectl does not know the variable for the namespace.
    given = {**flags, "namespace": values.get("namespace", "")} if reads_cluster else flags
    options: list[tuple[str, str]] = []
    for name in FLAGS:
        value = given.get(name) or ()
        texts = value if isinstance(value, (list, tuple)) else (value,)
        # A flag without a value has an empty text.
        options += ((name, "" if text is True else str(text)) for text in texts)
    return Settings(**values, commands=MessageCommands(tuple(options), in_cluster=reads_cluster))


def _refuse_exclusive_flags(flags: Mapping[str, Any]) -> None:
    """Raise InvalidInput for flags of which only one can be used."""
    if flags.get("all_namespaces") and flags.get("namespace"):
        raise invalid_setting(
            "-n and --all-namespaces exclude each other", "keep one of them", "--all-namespaces"
        )
    if flags.get("files") and (flags.get("context") or flags.get("kubeconfig")):
        raise invalid_setting(
            "-f reads objects from files, and --context and --kubeconfig from a cluster",
            "drop -f, or the other option",
            "--files",
        )


def _parse_output(value: str, origin: str) -> tuple[OutputFormat, str]:
    name, equals, template = value.partition("=")
    output = _parse_choice(OutputFormat, name, origin)
    if output.needs_template and not template:
        example = "jsonpath='{.items[*].metadata.name}'"
        if output is OutputFormat.CUSTOM_COLUMNS:
            example = "custom-columns=NAME:.metadata.name,STATE:.status.state"
        raise invalid_setting(f"-o {name} has no template", f"write -o {example}", origin)
    if equals and not output.needs_template:
        raise invalid_setting(f"-o {name} takes no value", f"write -o {name}", origin)
    return output, template


def parse_instant_option(text: str, origin: str) -> datetime:
    """Return an RFC 3339 time with offset in UTC. Raises InvalidInput naming `origin`."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None and instant.year in _ACCEPTED_YEARS:
            return instant.astimezone(UTC).replace(microsecond=0)
    except ValueError:
        pass
    raise InvalidInput(
        f"{text!r} is not a time",
        reason="InvalidTime",
        remedy="write it with its offset from UTC, as in 2026-03-01T12:00:00Z",
        where=ErrorLocation(field=origin),
    )


def _parse_choice(choices: type[Choice], value: str, origin: str) -> Choice:
    try:
        return choices(value)
    except ValueError:
        raise invalid_setting(
            f"{value!r} is not supported", f"use one of {', '.join(choices)}", origin
        ) from None
