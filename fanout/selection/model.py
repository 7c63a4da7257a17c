"""What selection yields: targets, and the variants that are made for them."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from fanout.errors import Where
from fanout.values import frozen

_NOWHERE = Where()


@frozen
class Function:
    """One entry of a pipeline: a function by image or executable, and its configuration."""

    image: str
    name: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    exec: str = ""  # instead of the image
    tag: str = ""
    config_path: str = ""  # a file of the package, instead of `config`
    selectors: tuple[Mapping[str, object], ...] = ()
    exclude: tuple[Mapping[str, object], ...] = ()

    @property
    def called(self) -> str:
        """The image or the executable."""
        return self.image or self.exec

    def further(self) -> dict[str, object]:
        """What an entry may say beside function and texts, as in a Kptfile; what is not said is
        left out."""
        if not (self.exec or self.tag or self.config_path or self.selectors or self.exclude):
            return {}
        said: dict[str, object] = {
            "exec": self.exec,
            "tag": self.tag,
            "configPath": self.config_path,
            "selectors": [dict(row) for row in self.selectors],
            "exclude": [dict(row) for row in self.exclude],
        }
        return {key: value for key, value in said.items() if value}


@frozen
class Injector:
    """Chooses a cluster object by name for the injection points whose kind it fits."""

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None


@frozen
class VariantSpec:
    """One variant as it should be, but for its upstream revision: that is the gates' to choose.

    Everything in here comes from the policy and its target; what a rendering depends on enters the
    digest.
    """

    name: str  # metadata.name: unique in the namespace, at most 63 characters
    namespace: str
    policy: str  # "" for a PackageVariant written by hand
    stage: str  # "" when it is in no stage
    target: str  # the target's key, stable over renames of paths: "Cluster/platform/eu-1"
    upstream_repository: str  # name of a Repository object
    upstream_package: str  # path of the package in it
    repository: str  # name of the downstream Repository object
    path: str  # downstream directory from the root of the Git repository, no slash at either end
    context: Mapping[str, str] = field(default_factory=dict)  # packageContext.data
    remove_keys: tuple[str, ...] = ()
    mutators: tuple[Function, ...] = ()
    validators: tuple[Function, ...] = ()
    injectors: tuple[Injector, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0  # higher goes first
    suspended: bool = False
    offline: bool = False  # its target says so
    unclear: str = ""  # why nobody can say whether its target is offline
    where: Where = field(default=_NOWHERE, compare=False)

    @property
    def package(self) -> str:
        """The package's own name: the last segment of its path."""
        return self.path.rpartition("/")[2]


@frozen
class TargetFailure:
    """A target for which no variant can be made; the others are not affected."""

    policy: str
    target: str
    reason: str
    problem: str
    field: str = ""  # of the policy, where one is at fault


@frozen
class Broken:
    """An expression or template that gave no value: reason, sentence, and what helps if known."""

    reason: str
    problem: str
    remedy: str = ""


Object = Mapping[str, Any]  # a Kubernetes object as plain data
