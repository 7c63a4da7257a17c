"""The options that verbs share, and how they become a verb's `settings`.

As with kubectl they may stand before the verb or behind it; behind it wins, `-f` and `-v` add up.
A verb is written so:

    @click.command()
    @click.argument("name")
    @with_settings()
    def command(settings: Settings, name: str) -> ExitCode: ...
"""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from fanout.cli.settings import Format, resolve
from fanout.cli.terminal import Color

Function = Callable[..., Any]
Option = Callable[[Function], Function]

_ADDING = frozenset({"files", "verbosity"})

# Parameter name → the option.
_SOURCES: dict[str, Option] = {
    "files": click.option(
        "-f",
        "--files",
        multiple=True,
        metavar="DIR",
        help="Directory or file with objects; may be given more than once.  [FANOUT_FILES]",
    ),
    "namespace": click.option(
        "-n", "--namespace", metavar="NAME", help="Only this namespace.  [FANOUT_NAMESPACE]"
    ),
    "config": click.option(
        "--config", metavar="FILE", help="The administrator's FanoutConfiguration.  [FANOUT_CONFIG]"
    ),
    "state_dir": click.option(
        "--state-dir",
        metavar="DIR",
        help="Mirrors and default records; .fanout if not said.  [FANOUT_STATE_DIR]",
    ),
    "records": click.option(
        "--records", metavar="URL", help="The records repository.  [FANOUT_RECORDS]"
    ),
    "new_records": click.option(
        "--new-records",
        is_flag=True,
        help="Where nothing is on record, begin anew, though fanout was at work downstream.",
    ),
}

# For verbs that read objects and look at no repository; some of them have another -n.
_FILES: dict[str, Option] = {
    "files": _SOURCES["files"],
    "namespace": click.option(
        "--namespace", metavar="NAME", help="Only this namespace.  [FANOUT_NAMESPACE]"
    ),
}

_TERMINAL: dict[str, Option] = {
    "verbosity": click.option(
        "-v",
        "--verbose",
        "verbosity",
        count=True,
        help="Say more, and where an error came from.  [FANOUT_VERBOSITY]",
    ),
    "color": click.option(
        "--color",
        type=click.Choice([choice.value for choice in Color]),
        help="Colour for people; auto, the default, heeds NO_COLOR.  [FANOUT_COLOR]",
    ),
    "now": click.option("--now", metavar="TIME", hidden=True, help="Pretend that it is this time."),
}


@dataclass(slots=True)
class Session:
    """What one run knows beside its settings: flags from before the verb, and how to report."""

    before: dict[str, Any] = field(default_factory=dict)
    verbosity: int = 0
    color: Color = Color.AUTO
    detailed: bool = False  # --detailed-exitcode: every error exits with 1

    def together(self, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """The flags from before the verb and those behind it."""
        both = dict(self.before)
        for name, value in flags.items():
            if value and name in _ADDING and both.get(name):
                both[name] += value
            elif value:
                both[name] = value
        self.verbosity = both.get("verbosity", 0)
        self.color = Color(both.get("color") or Color.AUTO)
        return both


detailed_option: Option = click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 0 when there are no changes, 2 when there are, and 1 for every error.",
)


def shared_options(function: Function) -> Function:
    """All options that verbs share, for the group itself."""
    return _apply({**_SOURCES, **_TERMINAL}, function)


def with_settings(
    *,
    sources: bool = True,
    files: bool = False,
    config: bool = False,
    formats: tuple[Format, ...] = (),
) -> Option:
    """Give a verb its `settings`.

    `sources`: it reads objects, so it takes `-f` and what belongs to it; `files`: `-f` and the
    namespace alone, without its short form; `config`: it asks the configuration alone. `formats`:
    what `-o` may say, the default first; without any there is no `-o`.
    """
    options: dict[str, Option] = {
        **(_SOURCES if sources else {}),
        **(_FILES if files else {}),
        **({"config": _SOURCES["config"]} if config else {}),
        **({"output": _output(formats)} if formats else {}),
        **_TERMINAL,
    }

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(**given: Any) -> Any:
            session = click.get_current_context().ensure_object(Session)
            session.detailed = bool(given.get("detailed"))
            flags = session.together({name: given.pop(name) for name in options})
            settings = resolve(flags, os.environ, formats or (Format.TABLE,))
            session.verbosity, session.color = settings.verbosity, settings.color
            return function(settings=settings, **given)

        return _apply(options, call)

    return decorate


def _output(formats: tuple[Format, ...]) -> Option:
    return click.option(
        "-o",
        "--output",
        type=click.Choice([choice.value for choice in formats]),
        help=f"How to print; {formats[0]} if not said.  [FANOUT_OUTPUT]",
    )


def _apply(options: Mapping[str, Option], function: Function) -> Function:
    for option in reversed(list(options.values())):
        function = option(function)
    return function
