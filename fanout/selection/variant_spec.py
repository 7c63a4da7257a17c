"""Specification of variants, their failures and expressions."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from fanout.errors import ErrorLocation
from fanout.values import KeyedValue, Value, field

_NOWHERE = ErrorLocation()


class FunctionSpec(Value):
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
    def command(self) -> str:
        """Return the image or the executable."""
        return self.image or self.exec

    def extra_fields(self) -> dict[str, object]:
        """Return the optional fields, named as in a Kptfile, without empty ones."""
        if not (self.exec or self.tag or self.config_path or self.selectors or self.exclude):
            return {}
        fields: dict[str, object] = {
            "exec": self.exec,
            "tag": self.tag,
            "configPath": self.config_path,
            "selectors": [dict(row) for row in self.selectors],
            "exclude": [dict(row) for row in self.exclude],
        }
        return {key: value for key, value in fields.items() if value}


class InjectorSpec(Value):
    """Selects a cluster object by name for the injection points whose kind it matches."""

    name: str
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class VariantSpec(KeyedValue):
    """One variant as its policy asks for it, without the upstream revision.

    The gates choose that. Everything in it comes from the policy and its target; what a
    rendering depends on enters the digest.
    """

    UNCOMPARED: ClassVar = ("where",)

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
    mutators: tuple[FunctionSpec, ...] = ()
    validators: tuple[FunctionSpec, ...] = ()
    injectors: tuple[InjectorSpec, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0  # higher goes first
    suspended: bool = False
    offline: bool = False  # offlineWhen is true for its target
    offline_error: str = ""  # why it is unknown whether its target is offline
    where: ErrorLocation = _NOWHERE

    @property
    def package(self) -> str:
        """Return the package's own name: the last segment of its path."""
        return self.path.rpartition("/")[2]


class TargetFailure(Value):
    """A target for which no variant can be built; other targets are not affected."""

    target: str  # its key
    reason: str
    problem: str
    field: str = ""  # field of the policy that causes the failure
    # It follows from errors of another object, which are reported by themselves.
    is_consequence: bool = False


class ExpressionFailure(Value):
    """Failure of an expression or template: reason, sentence, and the remedy if known."""

    reason: str
    problem: str
    remedy: str = ""


Object = Mapping[str, Any]  # a Kubernetes object as plain data

ASK: Any = object()  # result of an expression in process: the sandbox must evaluate it


class InProcessExpression(KeyedValue):
    """An expression that is evaluated in process, once per variant.

    Called with a row of variables it returns plain data, not to be modified, or `ASK`. The result
    depends on the row alone and equals that of the sandbox. Its cost is bounded by the length of
    the text and by the size of what it reads.
    """

    UNCOMPARED: ClassVar = ("evaluate",)

    text: str
    reads: Mapping[str, Any]  # free variables (see fanout.sandbox.free_variables)
    evaluate: Callable[[Mapping[str, Any]], Any]

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """Evaluate the expression over the row: plain data, or `ASK`."""
        return self.evaluate(row)


MAX_NAME_LENGTH = 63  # characters of a name that is also a label's value

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def build_variant_name(namespace: str, policy: str, target: str, readable: str) -> str:
    """Build `<policy>-<target, cut>-<10 hex>`; injective but for SHA-256.

    `target` is the target's key, which alone makes the name unique; `readable` is for people.
    """
    digest = variant_digest(namespace, policy, target)
    available = MAX_NAME_LENGTH - len(digest) - 2
    readable = _NOT_IN_A_NAME.sub("-", readable.lower()).strip("-")
    # The policy's name gets what the target leaves, and at least half, so both stay recognizable.
    head = policy[: max(available // 2, available - len(readable) - 1)].rstrip("-.")
    target_part = readable[: available - len(head)].strip("-")
    return "-".join([part for part in (head, target_part, digest) if part])


def variant_digest(namespace: str, policy: str, target: str) -> str:
    """Compute the hash of a variant's identity, the last part of its name."""
    identity = "\0".join(("UpstreamPolicy", namespace, policy, target))
    return hashlib.sha256(identity.encode()).hexdigest()[:10]
