"""FanoutConfiguration: settings of the program by an administrator.

Read by `--config`. Like other component configurations of Kubernetes it has no `spec`:
its fields are at the top.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt, StringConstraints

from fanout.api.git_repository import SecretRef
from fanout.api.notifications import NotificationTargets
from fanout.api.object_meta import KRMObject, Model, ObjectMeta
from fanout.api.text_fields import (
    Distinct,
    Executable,
    FunctionName,
    Kind,
    Name,
    NonEmptyDistinct,
    ObjectName,
    Text,
)
from fanout.api.urls import GitProtocol, GitUrl, Origin, ServerUrl


class Author(Model):
    """Author of fanout's commits; environment variables of Git are ignored."""

    name: Text = Field(default="fanout", description="The name.")
    email: Text = Field(default="fanout@localhost", description="The address.")


class InjectableKind(Model):
    """Kind that may be injected, and the fields of it that may be."""

    group: str = Field(default="", description='The API group; "" is the core group, "*" any.')
    kind: Kind | Literal["*"] = Field(description='The kind; "*" is any but Secret.')
    fields_: NonEmptyDistinct[Literal["data", "spec"]] = Field(
        description="The fields that may be injected."
    )

    def allows(self, group: str, kind: str, field: str) -> bool:
        """Return whether this field of this kind may be injected.

        A wildcard never means Secrets.
        """
        # A wildcard that was written for custom resources must not expose Secrets to packages.
        matches_kind = self.kind == kind or (self.kind == "*" and kind != "Secret")
        return matches_kind and self.group in {group, "*"} and field in self.fields_


_DEFAULT_INJECTABLE_KINDS = (
    InjectableKind(group="", kind="ConfigMap", fields_=("data",)),
    InjectableKind(group="*", kind="*", fields_=("spec",)),
)


class InjectionRules(Model):
    """Cluster objects that may be injected into packages."""

    kinds: tuple[InjectableKind, ...] = Field(
        default=_DEFAULT_INJECTABLE_KINDS,
        description="The kinds and their fields; by default `data` of ConfigMaps and `spec` of "
        "all other kinds, Secrets never.",
    )

    def allows(self, group: str, kind: str, field: str) -> bool:
        """Return whether this field of this kind may be injected."""
        return any(entry.allows(group, kind, field) for entry in self.kinds)


class SandboxLimits(Model):
    """Limits of time and memory after which expressions and templates are ended."""

    cpu_seconds: StrictInt = Field(
        default=10, ge=1, le=3600, description="Processor time of one expression over 100 targets."
    )
    memory_mib: StrictInt = Field(default=512, ge=64, le=65536, description="Memory of a process.")
    wall_seconds: StrictInt = Field(
        default=30, ge=1, le=3600, description="Elapsed time of one expression over 100 targets."
    )


class PackageLimits(Model):
    """Limits on the size of a package: upstream, rendered, in a draft and downstream.

    They are checked while a package is read, rendered and merged, before all of it is in
    memory.
    """

    files: StrictInt = Field(
        default=1000, ge=1, description="The number of files, and that of directories."
    )
    bytes_: StrictInt = Field(
        default=16777216, ge=1, description="The size of all files together, counted by path."
    )
    file_bytes: StrictInt = Field(default=16777216, ge=1, description="The size of one file.")
    depth: StrictInt = Field(
        default=100, ge=1, le=200, description="The number of directories inside each other."
    )
    values: StrictInt = Field(
        default=150000,
        ge=1,
        description="The number of YAML and JSON values of all files together, keys not counted.",
    )


class AllowedExecutable(Model):
    """Executable that pipelines may run."""

    path: Executable = Field(description="Where it is on the machine that fanout runs on.")
    name: FunctionName | None = Field(
        default=None, description="What pipelines may call it, beside its path."
    )


class ContainerRuntime(StrEnum):
    """Program that runs container images."""

    DOCKER = "docker"
    PODMAN = "podman"
    NERDCTL = "nerdctl"


class Functions(Model):
    """Functions outside the built-in catalog that may be run, and their limits."""

    executables: tuple[AllowedExecutable, ...] = Field(
        default=(), description="Executables that `exec` may name; no others are run."
    )
    images: Distinct[Text] = Field(
        default=(), description="Images that `image` may name; no others are run."
    )
    container_runtime: ContainerRuntime | None = Field(
        default=None, description="What runs the images; none are run without it."
    )
    wall_seconds: StrictInt = Field(
        default=60, ge=1, le=3600, description="Elapsed time of one run."
    )
    memory_mib: StrictInt = Field(
        default=512, ge=16, le=65536, description="Memory of one process of a run."
    )
    output_mib: StrictInt = Field(
        default=16, ge=1, le=1024, description="The size of what one run answers."
    )


class CheckSecret(Model):
    """Secret that checks of policies may use, and the services it may be sent to."""

    name: ObjectName = Field(description="The secret's name, as a check's secretRef says it.")
    addresses: NonEmptyDistinct[Origin] = Field(
        description="The services that may get it, like https://prometheus.example.com."
    )


_HOST_NAME = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$"
HostName = Annotated[str, StringConstraints(pattern=_HOST_NAME)]
CertificateText = Annotated[str, StringConstraints(min_length=1, max_length=65536)]


class ForgeProgram(StrEnum):
    """Program of a host that fanout opens pull requests on."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


class ForgeHost(Model):
    """Host of repositories, its API, fanout's credential for it, and its limits.

    One account and one set of limits for all repositories of a host: its limits count by
    account.
    """

    host: HostName = Field(
        description="The host in the URLs of Repositories, with its port if the URLs have one."
    )
    type: ForgeProgram = Field(description="Which program it is.")
    api: ServerUrl | None = Field(
        default=None, description="The address of its API; absent: where the program has it."
    )
    secret_ref: SecretRef = Field(
        description="The secret with the token for its API; it may be the one for Git."
    )
    webhook_secret_ref: SecretRef | None = Field(
        default=None, description="The secret that its webhooks are signed with."
    )
    certificate_authority: CertificateText | None = Field(
        default=None,
        description="Authorities for its certificate, in PEM; absent: those of the system.",
    )
    calls_per_minute: Annotated[StrictInt, Field(ge=1, le=100000)] | None = Field(
        default=None, description="How many calls it takes in a minute; absent: by the program."
    )
    creations_per_hour: Annotated[StrictInt, Field(ge=1, le=100000)] | None = Field(
        default=None,
        description="How many pull requests may be opened in an hour; absent: by the program.",
    )


class FanoutConfiguration(KRMObject):
    """Settings of the program; a file that is named with --config."""

    PLURAL: ClassVar[str] = "fanoutconfigurations"

    kind: Literal["FanoutConfiguration"] = Field(
        default="FanoutConfiguration", description="FanoutConfiguration."
    )
    metadata: ObjectMeta = Field(
        default=ObjectMeta(name="fanout"), description="A name, for people."
    )
    install_id: Name = Field(
        default="default",
        description="This installation in every ref, label and trailer; two must differ.",
    )
    author: Author = Field(default=Author(), description="Who writes fanout's commits.")
    signing_key: Text | None = Field(default=None, description="The key that signs commits.")
    records: GitUrl = Field(
        default=".fanout/records.git",
        description="The records repository; by default a bare one in the working directory.",
    )
    mirrors: Text = Field(
        default=".fanout/mirrors", description="The directory for private mirrors of repositories."
    )
    git_engine: Text | None = Field(default=None, description="What writes commits into mirrors.")
    injection: InjectionRules = Field(
        default=InjectionRules(), description="Which cluster objects may be injected."
    )
    functions: Functions = Field(
        default=Functions(), description="How functions that are not built in are run."
    )
    check_secrets: tuple[CheckSecret, ...] = Field(
        default=(),
        description="Which secrets checks may be asked with, and where; none by default.",
    )
    forges: tuple[ForgeHost, ...] = Field(
        default=(), description="The hosts that fanout opens pull requests on."
    )
    notifications: NotificationTargets = Field(
        default=(),
        description="The addresses that are notified when something needs a person, or when a"
        " rollout ends.",
    )
    allowed_protocols: Distinct[GitProtocol] = Field(
        default=tuple(GitProtocol), description="How Git may reach repositories; paths are `file`."
    )
    sandbox: SandboxLimits = Field(
        default=SandboxLimits(), description="What expressions and templates may take."
    )
    package_limits: PackageLimits = Field(
        default=PackageLimits(), description="How big a package may be."
    )
    concurrency: StrictInt = Field(
        default=16,
        ge=1,
        le=64,
        description="How many repositories are worked on at once; of those on the machine's own "
        "disks, and of programs, at most two for each processor.",
    )
