"""A package that was read once and can be rendered for any number of variants."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

from fanout.package.limits import SizeLimits
from fanout.package.manifests import Manifest
from fanout.package.tree import Entry
from fanout.values import frozen
from fanout.variants.functions.function import Facts, Result
from fanout.variants.growth import Growth
from fanout.variants.model import UpstreamPackage
from fanout.variants.overlay import Outcome
from fanout.variants.parts import Part
from fanout.variants.pipeline import Declared, Step
from fanout.variants.points import Point
from fanout.variants.questions import Programs
from fanout.variants.treeform import TreeForm

Place = tuple[str, int]  # file, and number of an object in it (`parts_of`)


DeclaredScopes = tuple[tuple[str, str, bool], ...]  # group, kind, whether it has a namespace


class Found(NamedTuple):
    """What a function found in one object."""

    step: int  # its number in the pipeline
    place: Place
    result: Result


@frozen
class Settled:
    """What one pipeline makes of the package, but for the documents in which targets differ."""

    steps: tuple[tuple[Step, Facts], ...]  # each with what it may know of the package
    outcomes: Mapping[Place, Outcome]  # in files that have such a document
    entries: Mapping[str, Entry]
    blobs: Mapping[str, bytes]
    tree: TreeForm
    results: tuple[Found, ...] = ()


@frozen
class PreparedPackage:
    """An upstream package at one revision, with everything that no target has a say in."""

    upstream: UpstreamPackage
    entries: Mapping[str, Entry]  # of all upstream files
    manifests: Mapping[str, Manifest]  # of the files with objects, and of the package context
    kptfile: Manifest  # with this revision's `upstream` and `upstreamLock`, and the gates
    points: tuple[Point, ...]
    fillable: frozenset[str]  # keys of the points that an administrator lets be filled
    has_context: bool  # False: other objects are in the file of the package context
    varying: tuple[str, ...]  # files in which targets differ, the Kptfile aside
    parts: Mapping[Place, Part]  # all documents, and the items of Lists
    objects: Mapping[Place, Part]  # what functions see of them
    local: frozenset[Place]  # those that are for tools alone: only few functions see them
    functions: tuple[Declared, ...]  # of the package's own pipeline
    configuring: frozenset[str]  # files that they read their configuration from
    programs: Programs  # that pipelines may name
    unknown: frozenset[tuple[str, str]]  # custom kinds (group, kind) that it does not define
    declared_scopes: DeclaredScopes  # of those, what declared definitions say
    policy_at: int  # how many of them run before the policy's
    facts: Facts
    waits: bool  # some object names others that it waits for
    limits: SizeLimits
    size: int  # of all upstream files
    fingerprint: str  # the part of the digest that all variants share
    # What was made before, by pipeline: memories, no part of the value.
    forms: dict[object, Manifest] = field(default_factory=dict, compare=False, repr=False)
    settled: dict[object, Settled] = field(default_factory=dict, compare=False, repr=False)
    moulds: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def growth(self) -> Growth:
        """Begins to count what one rendering adds."""
        return Growth(self.limits, self.upstream.files, self.size)
