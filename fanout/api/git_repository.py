"""Repository: a Git repository that variants come from or go to."""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from fanout.api.object_meta import KRMObject, Model, ObjectStatus
from fanout.api.text_fields import Branch, Directory, Distinct, Name, ObjectName
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
        description="Which program hosts the repository; none: fanout merges drafts by itself.",
    )


class TagPolicy(StrEnum):
    """Rule for the tags of publications."""

    EACH = "Each"
    NONE = "None"


class SecretRef(Model):
    """Name of a secret, never its content."""

    name: ObjectName = Field(description="The secret's name.")


class RepositorySpec(Model):
    """Location of the repository, its credentials, and the namespaces that may use it."""

    url: GitUrl = Field(
        description="Where Git finds it: a path, file://, https://, http://, ssh:// or "
        "git@host:path. Never with a password."
    )
    branch: Branch = Field(
        default="main", description="The branch that packages are read from and published to."
    )
    directory: Directory = Field(
        default="", description="The directory that package paths start from; empty: the root."
    )
    forge: RepositoryForge = Field(
        default=RepositoryForge(), description="The program that hosts the repository."
    )
    tags: TagPolicy = Field(
        default=TagPolicy.EACH,
        description="Whether each publication is tagged; None: the vendor branch alone has them.",
    )
    secret_ref: SecretRef | None = Field(
        default=None, description="The secret with the credentials, if any are needed."
    )
    allowed_namespaces: Distinct[Name] = Field(
        default=(), description="Namespaces, besides its own, whose objects may use it."
    )


class Repository(KRMObject):
    """A Git repository that variants come from or go to."""

    PLURAL: ClassVar[str] = "repositories"

    kind: Literal["Repository"] = Field(default="Repository", description="Repository.")
    spec: RepositorySpec = Field(description="Where the repository is and who may use it.")
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")
