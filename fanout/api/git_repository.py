"""Repository: a Git repository that variants come from or go to."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from fanout.api.object_meta import KRMObject, Model, ObjectStatus, ObservedStatus, optional
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

    type: ForgeType = Field(
        default=ForgeType.NONE,
        description="Program that hosts the repository; with `none`, fanout merges drafts itself.",
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
    branch: Branch = Field(
        default="main",
        description="Branch that packages are read from and published to. Of the Repository objects"
        " with one URL and one secret, only those of one branch are published to: of the branch"
        " with publications, else of the first object by namespace and name.",
    )
    directory: Directory = Field(
        default="",
        description="Directory that package paths are relative to; default: the root of the"
        " repository.",
    )
    forge: RepositoryForge = Field(
        default=RepositoryForge.model_construct(), description="Program that hosts the repository."
    )
    tags: TagPolicy = Field(
        default=TagPolicy.EACH,
        description="Tags of publications. `Each`: every publication is tagged; `None`:"
        " only the vendor branch has tags.",
    )
    secret_ref: SecretRef | None = optional(
        "Secret with the credentials; absent if none are needed."
    )
    allowed_namespaces: Distinct[Name] = Field(
        default=(),
        max_length=MAX_VALUES,
        description="Further namespaces whose objects may use the Repository, besides its own.",
    )
    allowed_objects: Distinct[CommitId] = Field(
        default=(),
        max_length=MAX_VALUES,
        description="Ids of Git objects that are fetched although `git fsck` refuses them.",
    )


class Repository(KRMObject):
    """A Git repository that variants come from or go to."""

    PLURAL: ClassVar[str] = "repositories"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("frepo",)

    kind: Literal["Repository"] = Field(
        default="Repository", description="Kind of the object; always `Repository`."
    )
    spec: RepositorySpec = Field(
        description="URL, branch and credentials of the repository, and the namespaces that"
        " may use it."
    )
    status: ObservedStatus = ObjectStatus.model_construct()
