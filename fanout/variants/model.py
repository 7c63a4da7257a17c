"""What the cloner works on and what it yields."""

from collections.abc import Mapping
from dataclasses import field

from fanout.api.configuration import InjectionRules
from fanout.package.limits import SizeLimits
from fanout.package.revision import Revision
from fanout.package.tree import Entry
from fanout.selection.objects import Versions
from fanout.values import frozen
from fanout.variants.functions.function import Result
from fanout.variants.questions import NO_PROGRAMS, Programs


@frozen
class UpstreamPackage:
    """The upstream package at one revision, as read from Git."""

    repository: str  # the URL, as it goes into the Kptfile
    directory: str  # path of the package in the repository
    revision: Revision
    tree: str  # id of the package's tree
    files: Mapping[str, tuple[Entry, bytes]]  # by path inside the package
    author: str = ""  # of the revision's commit, as "name <email>"


@frozen
class Limits(SizeLimits):
    """What a package may be, and what may be put into it: an administrator's to say."""

    injectable: InjectionRules = InjectionRules()
    programs: Programs = NO_PROGRAMS  # functions that are run outside fanout


@frozen
class Injection:
    """What one injection point gets: the field's content, or the reason why it gets nothing."""

    point: str  # "<Kind>.<name>", as in the condition type config.injection.<Kind>.<name>
    required: bool
    source: str = ""  # name of the cluster object; "" when none was found
    value: object = None  # content of `data` (ConfigMap) or `spec`
    problem: str = ""
    key: str = ""  # which cluster object that is: "group/kind/namespace/name"


@frozen
class Inputs:
    """Everything a rendering depends on beside the upstream package, and its digest."""

    digest: str
    injections: tuple[Injection, ...] = ()
    versions: Versions = field(default_factory=Versions, compare=False, repr=False)

    @property
    def reads(self) -> Mapping[str, str]:
        """The version of every cluster object that the rendering reads, by its key."""
        found = ((item.key, item.value) for item in self.injections if item.key)
        return {key: self.versions.of(key, value) for key, value in found}

    @property
    def unmet(self) -> tuple[Injection, ...]:
        """Required injection points for which the cluster has nothing: they hold the draft."""
        return tuple([item for item in self.injections if item.required and not item.source])


@frozen
class Rendered:
    """A variant's files: ids of all of them, bytes of those that are not upstream's."""

    tree: str  # git id of the package's tree
    entries: Mapping[str, Entry]  # by path inside the package
    blobs: Mapping[str, bytes] = field(default_factory=dict)  # new content, by blob id
    results: tuple[Result, ...] = ()  # what functions of the pipeline had to say
