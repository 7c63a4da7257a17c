"""FanoutConfiguration: settings of the program by an administrator.

Read by `--config`. Like other component configurations of Kubernetes it has no `spec`:
its fields are at the top.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StringConstraints

from fanout.api.durations import Duration
from fanout.api.field_errors import InvalidValue
from fanout.api.git_repository import SecretRef
from fanout.api.object_meta import KRMObject, Model, ObjectMeta, kind_field, listed, optional
from fanout.api.reasons import NotificationEvent
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
from fanout.api.urls import GitProtocol, GitUrl, HttpUrl, Origin, ServerUrl


class Author(Model):
    """Author of fanout's commits; environment variables of Git are ignored."""

    name: Text = optional("Name of the author and committer.", default="fanout")
    email: Text = optional(
        "E-mail address of the author and committer.", default="fanout@localhost"
    )


class InjectableKind(Model):
    """Kind that may be injected, and the fields of it that may be."""

    group: str = optional(
        'API group; `""` is the core group, `"*"` matches all groups.', default=""
    )
    kind: Kind | Literal["*"] = Field(description='Kind; `"*"` matches all kinds except Secret.')
    fields_: NonEmptyDistinct[Literal["data", "spec"]] = Field(
        description="Top-level fields that may be injected."
    )

    def allows(self, group: str, kind: str, field: str) -> bool:
        """Return whether a field of a kind may be injected. A wildcard never means Secrets."""
        # A wildcard that was written for custom resources must not expose Secrets to packages.
        matches_kind = self.kind == kind or (self.kind == "*" and kind != "Secret")
        return matches_kind and self.group in {group, "*"} and field in self.fields_


_DEFAULT_INJECTABLE_KINDS = (
    InjectableKind.model_construct(group="", kind="ConfigMap", fields_=("data",)),
    InjectableKind.model_construct(group="*", kind="*", fields_=("spec",)),
)


class InjectionRules(Model):
    """Cluster objects that may be injected into packages."""

    kinds: tuple[InjectableKind, ...] = optional(
        "Injectable kinds and their fields; default: `data` of ConfigMaps and"
        " `spec` of all other kinds except Secret.",
        default=_DEFAULT_INJECTABLE_KINDS,
    )

    def allows(self, group: str, kind: str, field: str) -> bool:
        """Return whether this field of this kind may be injected."""
        return any(entry.allows(group, kind, field) for entry in self.kinds)


class SandboxLimits(Model):
    """Limits of time and memory after which expressions and templates are ended."""

    cpu_seconds: StrictInt = optional(
        "CPU time limit in seconds for evaluating one expression for 100 targets.",
        default=10,
        ge=1,
        le=3600,
    )
    memory_mib: StrictInt = optional(
        "Memory limit of a process, in MiB.", default=512, ge=64, le=65536
    )
    wall_seconds: StrictInt = optional(
        "Elapsed time limit in seconds for evaluating one expression for 100 targets.",
        default=30,
        ge=1,
        le=3600,
    )


class PackageLimits(Model):
    """Limits on the size of a package: upstream, rendered, in a draft and downstream.

    They are checked while a package is read, rendered and merged, before all of it is in
    memory.
    """

    files: StrictInt = optional(
        "Maximum number of files, and maximum number of directories.", default=1000, ge=1
    )
    bytes_: StrictInt = optional(
        "Maximum size of all files together, in bytes; each path counts.", default=16777216, ge=1
    )
    file_bytes: StrictInt = optional("Maximum size of one file, in bytes.", default=16777216, ge=1)
    depth: StrictInt = optional("Maximum depth of nested directories.", default=100, ge=1, le=200)
    values: StrictInt = optional(
        "Maximum number of YAML and JSON values in all files together; keys do not count.",
        default=150000,
        ge=1,
    )


class AllowedExecutable(Model):
    """Executable that pipelines may run."""

    path: Executable = Field(
        description="Absolute path of the executable on the machine that runs fanout."
    )
    name: FunctionName | None = optional(
        "Name by which pipelines may call the executable; its path is always accepted."
    )


class ContainerRuntime(StrEnum):
    """Program that runs container images."""

    DOCKER = "docker"
    PODMAN = "podman"
    NERDCTL = "nerdctl"


class Functions(Model):
    """Functions outside the built-in catalog that may be run, and their limits."""

    executables: tuple[AllowedExecutable, ...] = listed(
        "Executables that `exec` of a pipeline may name; others are refused. Default: none."
    )
    images: Distinct[Text] = listed(
        "Images that `image` of a pipeline may name, besides the functions that"
        " run in process; others are refused. Default: none."
    )
    container_runtime: ContainerRuntime | None = optional(
        "Program that runs the images; default: none, and no image is run."
    )
    wall_seconds: StrictInt = optional(
        "Elapsed time limit of one function run, in seconds.", default=60, ge=1, le=3600
    )
    memory_mib: StrictInt = optional(
        "Memory limit of one process of a function run, in MiB.", default=512, ge=16, le=65536
    )
    output_mib: StrictInt = optional(
        "Maximum size of the output of one function run, in MiB.", default=16, ge=1, le=1024
    )


class CheckRules(Model):
    """Namespaces that checks of all policies may read."""

    namespaces: Distinct[Name] = listed(
        "Namespaces, besides a policy's own, whose objects checks of every policy"
        " may read; default: none."
    )


class CheckSecret(Model):
    """Secret that checks of policies may use, and the services it may be sent to."""

    name: ObjectName = Field(description="Name of the secret, as in `secretRef` of a check.")
    addresses: NonEmptyDistinct[Origin] = Field(
        description="Services that the secret may be sent to, each as scheme, host and"
        " port, like `https://prometheus.example.com`."
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
        description="Host name in the URLs of the Repositories, with the port if the URLs have one."
    )
    type: ForgeProgram = Field(description="Program that the host runs.")
    api: ServerUrl | None = optional(
        "URL of the API; default: the usual one of the program on this host."
    )
    secret_ref: SecretRef = Field(
        description="Secret with the token for the API; may be the same secret as for Git."
    )
    webhook_secret_ref: SecretRef | None = optional("Secret that the host signs its webhooks with.")
    certificate_authority: CertificateText | None = optional(
        "Certificate authorities that are trusted for the host, in PEM;"
        " default: those of the system."
    )
    calls_per_minute: Annotated[StrictInt, Field(ge=1, le=100000)] | None = optional(
        "Maximum number of API calls in a minute; default: depends on `type`."
    )
    creations_per_hour: Annotated[StrictInt, Field(ge=1, le=100000)] | None = optional(
        "Maximum number of pull requests opened in an hour; default: depends on `type`."
    )


_POLICY = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"
PolicyTitle = Annotated[str, StringConstraints(pattern=_POLICY)]


class NotificationTarget(Model):
    """Address that is notified of transitions, and the secret that signs what it gets."""

    name: ObjectName = Field(description="Name of the webhook in messages and metrics.")
    url: HttpUrl = Field(description="URL that events are posted to.")
    secret_ref: SecretRef = Field(description="Secret that requests are signed with.")
    events: NonEmptyDistinct[NotificationEvent] = optional(
        "Events to send; default: all.", default=tuple(NotificationEvent)
    )
    policies: Distinct[PolicyTitle] = listed(
        "Policies whose events are sent, as `NAME` or `NAMESPACE/NAME`;"
        " default: all policies and all manually written PackageVariants."
    )

    def covers(self, event: NotificationEvent, namespace: str, policy: str) -> bool:
        """Return whether the address gets an event of a policy."""
        titles = {policy, f"{namespace}/{policy}"}
        return event in self.events and (not self.policies or not titles.isdisjoint(self.policies))


def check_names(targets: tuple[NotificationTarget, ...]) -> tuple[NotificationTarget, ...]:
    """Return the targets. Raises InvalidValue if two have one name."""
    names = [it.name for it in targets]
    if duplicates := sorted({it for it in names if names.count(it) > 1}):
        raise InvalidValue(f"duplicate name {duplicates[0]}", "rename one webhook")
    return targets


NotificationTargets = Annotated[tuple[NotificationTarget, ...], AfterValidator(check_names)]


class RecordsLocation(Model):
    """The records repository, and the secret that it is reached with."""

    url: GitUrl = optional(
        "URL or path of the records repository; default: a bare repository in"
        " the working directory.",
        default=".fanout/records.git",
    )
    secret_ref: SecretRef | None = optional(
        "Secret with the credentials, also of a repository that `--records` names;"
        " absent if none are needed."
    )


class FanoutConfiguration(KRMObject):
    """Settings of the program; a file that is named with --config."""

    PLURAL: ClassVar[str] = "fanoutconfigurations"

    kind: Literal["FanoutConfiguration"] = kind_field("FanoutConfiguration")
    metadata: ObjectMeta = optional(
        "Name of the configuration; informational only.",
        default=ObjectMeta.model_construct(name="fanout"),
    )
    install_id: Name = optional(
        "Identifier of this installation in refs, labels and trailers; must be"
        " unique among installations that share repositories.",
        default="default",
    )
    author: Author = optional(
        "Author and committer of fanout's commits.", default=Author.model_construct()
    )
    signing_key: Text | None = optional("Key that signs commits.")
    records: Annotated[
        RecordsLocation,
        BeforeValidator(lambda value: {"url": value} if isinstance(value, str) else value),
    ] = optional(
        "The records repository; a string is its `url`.", default=RecordsLocation.model_construct()
    )
    mirrors: Text = optional(
        "Path of the directory with the private mirrors of repositories.", default=".fanout/mirrors"
    )
    git_engine: Text | None = optional("Program that writes commits into the mirrors.")
    injection: InjectionRules = optional(
        "Cluster objects that may be injected into packages.",
        default=InjectionRules.model_construct(),
    )
    functions: Functions = optional(
        "Functions that may be run besides those that run in process, and their limits.",
        default=Functions.model_construct(),
    )
    checks: CheckRules = optional(
        "What checks of policies may read.", default=CheckRules.model_construct()
    )
    check_secrets: tuple[CheckSecret, ...] = listed(
        "Secrets that checks may use, and the services that they may be sent to; default: none."
    )
    forges: tuple[ForgeHost, ...] = listed("Hosts where fanout opens pull requests; default: none.")
    notifications: NotificationTargets = listed(
        "Webhooks that are called when an event occurs; default: none."
    )
    allowed_protocols: Distinct[GitProtocol] = optional(
        "Protocols by which Git may access repositories; local paths use"
        " `file`. Default: all; in a pod of a cluster all but `file`.",
        default=tuple(GitProtocol),
    )
    sandbox: SandboxLimits = optional(
        "Resource limits of expressions and templates.", default=SandboxLimits.model_construct()
    )
    package_limits: PackageLimits = optional(
        "Size limits of packages.", default=PackageLimits.model_construct()
    )
    concurrency: StrictInt = optional(
        "Maximum number of repositories processed at once; for repositories on"
        " local disks, and for processes, at most two per processor.",
        default=16,
        ge=1,
        le=64,
    )
    drafts_per_round: StrictInt = optional(
        "Maximum number of drafts that `fanout run` and `fanout controller` write for a"
        " policy before they serve other policies. `fanout sweep` writes all drafts at once.",
        default=1000,
        ge=1,
    )
    record_retention: Duration = optional(
        "Time after which an Evidence, Approval or Decision of a cluster is deleted;"
        " it counts from when the record is in the records repository, which keeps it.",
        default=timedelta(hours=168),
    )
