"""Requests of pipeline functions to the outside, and their responses, as data.

A rendering stops with such a request if its pipeline needs a program's output or a table
that is not at hand, and is made again once there is a response (`fanout.pending_inputs`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fanout.values import Value
from fanout.variants.schema_validation import KindSchemas


class KrmProgram(NamedTuple):
    """A KRM function that runs outside fanout because the administrator allows it."""

    name: str  # as used in packages and policies
    command: str  # path of the executable, or the image
    image: bool = False  # run by the container runtime
    version: str = ""  # of what is run; enters the digest
    missing: str = ""  # reason why it cannot run, or ""


class SchemaRequest(NamedTuple):
    """Request for the schemas of a Kubernetes version; "" is the newest version shipped."""

    version: str = ""


class ProgramRun(NamedTuple):
    """Request to run a program on a ResourceList."""

    program: KrmProgram
    stdin: bytes


class ScriptRun(NamedTuple):
    """Request to run a Starlark script on a ResourceList, given as JSON."""

    source: str
    resource_list: str


class ScriptOutput(Value):
    """Output of a script: items (plain data, not to be modified) and printed lines."""

    items: Any
    printed: tuple[str, ...] = ()


class ProgramOutput(NamedTuple):
    """Output of a program that exited by itself."""

    status: int
    stdout: bytes
    stderr: str  # last part only


class ResponseError(Value):
    """Response to a request that cannot be fulfilled: the problem and its remedy."""

    problem: str
    remedy: str = ""
    is_final: bool = True  # False: the next pass requests it again


FunctionRequest = SchemaRequest | ProgramRun | ScriptRun
Response = KindSchemas | ProgramOutput | ScriptOutput | ResponseError


class AllowedPrograms(Value):
    """Programs that the administrator allows, by the names that pipelines may use."""

    executables: Mapping[str, KrmProgram]
    images: Mapping[str, KrmProgram]


NO_PROGRAMS = AllowedPrograms({}, {})
