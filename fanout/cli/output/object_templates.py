"""YAML text of new objects, in the order in which people write them, with comments.

The text is what `fanout init` and `fanout create` write: values are quoted where YAML needs it,
and the result is validated before anybody sees it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fanout.api.field_errors import FieldError, format_path
from fanout.api.object_meta import API_VERSION
from fanout.api.validators.object_validation import validate_object
from fanout.cli.command_errors import invalid_setting
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import format_flow
from fanout.values import Value, field

CLUSTER_API_VERSION = "infra.example.com/v1"


class RepositoryTemplate(Value):
    """Values of a new Repository."""

    name: str
    namespace: str
    url: str
    branch: str = ""
    directory: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    forge: str = ""
    secret: str = ""
    comment: str = ""

    def __str__(self) -> str:
        """Format the object."""
        forge = {"type": self.forge} if self.forge else {}
        secret = {"name": self.secret} if self.secret else {}
        fields = {
            "url": self.url,
            "branch": self.branch,
            "directory": self.directory,
            "forge": forge,
            "secretRef": secret,
        }
        return _format_object(
            "Repository",
            {"name": self.name, "namespace": self.namespace, "labels": dict(self.labels)},
            [f"{name}: {format_flow(value)}" for name, value in fields.items() if value],
            self.comment,
        )


class PolicyTemplate(Value):
    """Values of a new UpstreamPolicy; `downstream` has (stage, repository) pairs.

    Without `downstream` the targets are `Cluster` objects, whose labels and spec name the stage
    and the repository.
    """

    name: str
    namespace: str
    repository: str
    package: str
    stages: Sequence[str]
    revision: str = ">=1"
    downstream: Sequence[tuple[str, str]] = ()

    def __str__(self) -> str:
        """Format the object."""
        is_latest = self.revision == "latest"
        revision = {"latest": True} if is_latest else {"semver": self.revision}
        upstream = {
            "repository": self.repository,
            "package": self.package,
            "revision": revision,
        }
        targets = self._repository_targets() if self.downstream else self._cluster_targets()
        return _format_object(
            "UpstreamPolicy",
            {"name": self.name, "namespace": self.namespace},
            [
                f"# Revisions are tags such as {self.package}/v1 or {self.package}/v1.2.3.",
                f"upstream: {format_flow(upstream)}",
                "targets:",
                *targets,
                "stages: # an after can have soak: 24h, a stage requires: and rollout:",
                *self._stage_lines(),
            ],
        )

    def _repository_targets(self) -> list[str]:
        repositories = [repository for _, repository in self.downstream]
        # Several stages in one repository need a path each.
        is_shared = len(set(repositories)) < len(repositories)
        lines = []
        for stage, repository in self.downstream:
            path = f"{stage}/{self.package}" if is_shared else self.package
            entry = [{"name": repository, "packageNames": [path]}]
            lines += [
                f"- repositories: {format_flow(entry)}",
                f"  template: {format_flow({'stage': stage})}",
            ]
        return lines

    def _cluster_targets(self) -> list[str]:
        selector = {"apiVersion": CLUSTER_API_VERSION, "kind": "Cluster"}
        path = format_flow(f"target.metadata.name + '/{self.package}'")
        return [
            f"- objectSelector: {format_flow(selector)}",
            "  template: # expressions are CEL; target is the whole Cluster",
            "    stageExpr: target.metadata.labels.tier",
            "    downstream:",
            "      repositoryExpr: target.spec.repositoryRef.name",
            f"      packageExpr: {path}",
        ]

    def _stage_lines(self) -> list[str]:
        lines = []
        for before, stage in zip(("", *self.stages), self.stages, strict=False):
            lines.append(f"- name: {format_flow(stage)}")
            if before:
                lines.append(f"  after: {format_flow({'stages': [before]})}")
            lines.append(
                "  verification: [{name: tests, report: {}}]"
                f" # fanout report {self.name} --stage {stage} --check tests …"
            )
        return lines


class PromotionTemplate(Value):
    """Values of a new PromotionPolicy."""

    name: str
    namespace: str
    policies: Sequence[str]
    automatic_stages: Sequence[str] = ()
    schedule: str = ""
    time_zone: str = ""
    approvers: Mapping[str, Sequence[str]] = field(default_factory=dict)  # subjects by group

    def __str__(self) -> str:
        """Format the object."""
        groups = [{"group": name, "subjects": list(it)} for name, it in self.approvers.items()]
        lines = [f"policies: {format_flow(list(self.policies))}"]
        if self.automatic_stages:
            stages = format_flow({"stages": list(self.automatic_stages)})
            lines.append(f"autoPromotion: {stages} # other stages wait for `fanout promote`")
        if self.schedule:
            lines.append(f"schedule: {format_flow(self.schedule)}")
        else:
            lines.append('# schedule: "*/15 8-16 * * 1-5" # publish at these times only')
        if self.time_zone:
            lines.append(f"timeZone: {format_flow(self.time_zone)}")
        if groups:
            lines.append(f"approvers: {format_flow(groups)}")
        else:
            lines.append("# approvers: [{group: sre, subjects: [ann@example.com]}]")
        metadata = {"name": self.name, "namespace": self.namespace}
        return _format_object("PromotionPolicy", metadata, lines)


def format_clusters(namespace: str, clusters: Iterable[tuple[str, str]]) -> str:
    """Format one example `Cluster` for each (stage, repository) pair."""
    documents = [
        _format_object(
            "Cluster",
            {"name": f"{stage}-1", "namespace": namespace, "labels": {"tier": stage}},
            [f"repositoryRef: {format_flow({'name': repository})}"],
            api_version=CLUSTER_API_VERSION,
        )
        for stage, repository in clusters
    ]
    comment = "# Examples: replace them with the objects of your inventory, one for each cluster.\n"
    return comment + join_documents(documents)


def join_documents(documents: Iterable[object]) -> str:
    """Join objects to the text of one file."""
    return "---\n".join(map(str, documents))


def check_objects(text: str) -> None:
    """Validate the objects of a file. Raises InvalidInput for the first error."""
    for document in Manifest.parse(text.encode(), "").documents:
        kind, name = document.value["kind"], document.value["metadata"]["name"]
        if document.value["apiVersion"] != API_VERSION:
            continue
        parsed, errors = validate_object(document.value)
        faults: list[FieldError] = [*errors, *find_schedule_errors(parsed)]
        if faults:
            raise InvalidInput(
                faults[0].problem,
                reason="InvalidObject",
                remedy=faults[0].remedy,
                where=ErrorLocation(f"{kind}/{name}", format_path(faults[0].path)),
            )


def _format_object(
    kind: str,
    metadata: Mapping[str, object],
    spec_lines: Iterable[str],
    comment: str = "",
    api_version: str = API_VERSION,
) -> str:
    lines = [
        *([f"# {comment}"] if comment else []),
        f"apiVersion: {api_version}",
        f"kind: {kind}",
        f"metadata: {format_flow({name: value for name, value in metadata.items() if value})}",
        "spec:",
        *(f"  {line}" for line in spec_lines),
    ]
    return "".join(f"{line}\n" for line in lines)


def create_files(texts: Mapping[Path, str]) -> None:
    """Create files, with their directories. Raises InvalidInput if one cannot be written."""
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive creation: a file that somebody wrote in between is not replaced either.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise build_exists_error([path]) from None
        except OSError as error:
            raise invalid_setting(
                f"{path} cannot be written: {error.strerror}", "choose another directory"
            ) from error


def build_exists_error(paths: list[Path]) -> InvalidInput:
    """Build the error for files that exist already."""
    verb = "exists" if len(paths) == 1 else "exist"
    return invalid_setting(
        f"{', '.join(map(str, paths))} {verb} already; nothing is overwritten",
        "choose another directory or name, or move the file away",
    )
