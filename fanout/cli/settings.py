"""What a run of `fanout` was told, from flags, environment and defaults, as one frozen value."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from fanout.cli.terminal import Color
from fanout.errors import InvalidInput, Where
from fanout.values import frozen

Choice = TypeVar("Choice", bound=StrEnum)
STANDARD_INPUT = Path("-")
_YEARS = range(1971, 9000)  # Git keeps no time before 1970; a calendar needs room to look ahead


class Format(StrEnum):
    """`-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@frozen
class Settings:
    """What holds for every verb; a flag wins over the environment, that over the default."""

    files: tuple[Path, ...] = ()  # directories or files with objects; none: no file mode
    namespace: str = ""  # "": all namespaces
    config: Path | None = None  # a FanoutConfiguration
    state_dir: Path = Path(".fanout")  # mirrors, caches and the default records repository
    records: str = ""  # URL of the records repository; "": the configuration's, else the default
    new_records: bool = False  # where nothing is on record, begin anew whatever is downstream
    output: Format = Format.TABLE
    verbosity: int = 0
    color: Color = Color.AUTO
    pretended: datetime | None = None  # --now

    def now(self) -> datetime:
        """The present in UTC, in whole seconds as Git keeps them; `--now` stands in for it."""
        return self.pretended or datetime.now(UTC).replace(microsecond=0)

    def sources(self) -> tuple[Path, ...]:
        """The files and directories of `-f`, `-` among them.

        Raises InvalidInput when none was given, or one that is not there.
        """
        if not self.files:
            raise InvalidInput(
                "no directory of objects was given",
                reason="NoFiles",
                remedy="name one with -f DIR or FANOUT_FILES",
            )
        for path in self.files:
            # Path.exists raises where a directory may not be searched
            if path != STANDARD_INPUT and not os.path.exists(path):  # noqa: PTH110
                raise InvalidInput(
                    f"there is no file or directory {path}",
                    reason="NotFound",
                    remedy="check what is given to -f or FANOUT_FILES",
                )
        return self.files


# Name of the flag's parameter → environment variable that stands in for it.
ENVIRONMENT = {
    "files": "FANOUT_FILES",  # separated as in PATH
    "namespace": "FANOUT_NAMESPACE",
    "config": "FANOUT_CONFIG",
    "state_dir": "FANOUT_STATE_DIR",
    "records": "FANOUT_RECORDS",
    "output": "FANOUT_OUTPUT",
    "verbosity": "FANOUT_VERBOSITY",
    "color": "FANOUT_COLOR",
    "now": "FANOUT_NOW",
}


def resolve(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    formats: tuple[Format, ...] = tuple(Format),
) -> Settings:
    """Settings from the flags that were given (absent or empty: not given) and the environment.

    `formats` are those the verb can print, its default first; FANOUT_OUTPUT is meant for all
    verbs, so one that cannot print it keeps its default. Raises InvalidInput naming flag or
    variable.
    """
    said: dict[str, tuple[Any, str]] = {
        name: (environment[variable], variable)
        for name, variable in ENVIRONMENT.items()
        if environment.get(variable)
    }
    said.update({name: (value, f"--{name}") for name, value in flags.items() if value})

    values: dict[str, Any] = {}
    for name, (value, origin) in said.items():
        match name:
            case "files":
                parts = value.split(os.pathsep) if isinstance(value, str) else value
                values["files"] = tuple(Path(part) for part in parts if part)
            case "config" | "state_dir":
                values[name] = Path(value)
            case "color":
                values["color"] = _one_of(Color, value, origin)
            case "output":
                values["output"] = _one_of(Format, value, origin)
            case "verbosity":
                values["verbosity"] = _count(value, origin)
            case "now":
                values["pretended"] = parse_instant(value, origin)
            case _:
                values[name] = value
    if values.get("output") not in formats:
        values["output"] = formats[0]
    return Settings(**values)


def parse_instant(text: str, origin: str) -> datetime:
    """An RFC 3339 time with its offset, in UTC. Raises InvalidInput naming `origin`."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None and instant.year in _YEARS:
            return instant.astimezone(UTC).replace(microsecond=0)
    except ValueError:
        pass
    raise InvalidInput(
        f"{text!r} is no instant",
        reason="InvalidTime",
        remedy="write it with its offset from UTC, as in 2026-03-01T12:00:00Z",
        where=Where(field=origin),
    )


def _one_of(choices: type[Choice], value: str, origin: str) -> Choice:
    try:
        return choices(value)
    except ValueError:
        raise InvalidInput(
            f"{value!r} is not known",
            reason="InvalidSetting",
            remedy=f"use one of {', '.join(choices)}",
            where=Where(field=origin),
        ) from None


def _count(value: str | int, origin: str) -> int:
    if isinstance(value, int):
        return value
    if not value.isdecimal():
        raise InvalidInput(
            f"{value!r} is no number",
            reason="InvalidSetting",
            remedy="use 0, 1 or 2",
            where=Where(field=origin),
        )
    return int(value)
