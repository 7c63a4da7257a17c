"""Repository: a Git repository that variants come from or go to."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from fanout.api.object_meta import (
    KRMObject,
    Model,
    ObjectStatus,
    ObservedStatus,
    kind_field,
    listed,
    optional,
)
from fanout.api.text_fields import (
    MAX_VALUES,
    Branch,
    CommitId,
    Directory,
    Distinct,
    Name,
    ObjectName,
)
from fanout.api.urls import GitUrl


class ForgeType(StrEnum):
    """Program that hosts the repository; with `none` fanout merges drafts by itself."""

    NONE = "none"
    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


class RepositoryForge(Model):
    """The program that hosts the repository."""

    type: ForgeType = optional(
        "Program that hosts the repository; with `none`, fanout merges drafts itself.",
        default=ForgeType.NONE,
    )


class TagPolicy(StrEnum):
    """Rule for the tags of publications."""

    EACH = "Each"
    NONE = "None"


class SecretRef(Model):
    """Name of a secret, never its content."""

    name: ObjectName = Field(description="Name of the secret.")


class RepositorySpec(Model):
    """Location of the repository, its credentials, and the namespaces that may use it."""

    url: GitUrl = Field(
        description="URL or path for Git: a path, `file://`, `https://`, `http://`,"
        " `ssh://` or `git@host:path`. Must not contain a password."
    )
    branch: Branch = optional(
        "Branch that packages are read from and published to. Of the Repository objects"
        " with one URL and one secret, only those of one branch are published to: of the branch"
        " with publications, else of the first object by namespace and name.",
        default="main",
    )
    directory: Directory = optional(
        "Directory that package paths are relative to; default: the root of the repository.",
        default="",
    )
    forge: RepositoryForge = optional(
        "Program that hosts the repository.", default=RepositoryForge.model_construct()
    )
    tags: TagPolicy = optional(
        "Tags of publications. `Each`: every publication is tagged; `None`:"
        " only the vendor branch has tags.",
        default=TagPolicy.EACH,
    )
    secret_ref: SecretRef | None = optional(
        "Secret with the credentials; absent if none are needed."
    )
    allowed_namespaces: Distinct[Name] = listed(
        "Further namespaces whose objects may use the Repository, besides its own.", MAX_VALUES
    )
    allowed_objects: Distinct[CommitId] = listed(
        "Ids of Git objects that are fetched although `git fsck` refuses them.", MAX_VALUES
    )


class Repository(KRMObject):
    """A Git repository that variants come from or go to."""

    PLURAL: ClassVar[str] = "repositories"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("frepo",)

    kind: Literal["Repository"] = kind_field("Repository")
    spec: RepositorySpec = Field(
        description="URL, branch and credentials of the repository, and the namespaces that"
        " may use it."
    )
    status: ObservedStatus = ObjectStatus.model_construct()
