"""YAML text of new objects, in the order in which people write them, with comments.

The text is what `fanout init` and `fanout create` write: values are quoted where YAML needs it,
and the result is validated before anybody sees it. `metadata` are name, namespace and labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fanout.api.field_errors import FieldError, format_path
from fanout.api.object_meta import API_VERSION, DEFAULT_NAMESPACE
from fanout.api.validators.object_validation import validate_object
from fanout.cli.process_exit import invalid_setting
from fanout.cli.settings import Settings
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import format_flow

CLUSTER_API_VERSION = "infra.example.com/v1"
Metadata = Mapping[str, object]


def build_metadata(settings: Settings, name: str) -> dict[str, object]:
    """Return the metadata of a new object in the namespace of the settings."""
    return {"name": name, "namespace": settings.namespace or DEFAULT_NAMESPACE}


def format_repository(
    metadata: Metadata,
    url: str,
    branch: str = "",
    directory: str = "",
    forge: str = "",
    secret: str = "",
    comment: str = "",
) -> str:
    """Format a Repository; `comment` stands above it."""
    fields = {
        "url": url,
        "branch": branch,
        "directory": directory,
        "forge": {"type": forge} if forge else {},
        "secretRef": {"name": secret} if secret else {},
    }
    lines = [f"{name}: {format_flow(value)}" for name, value in fields.items() if value]
    return _format_object("Repository", metadata, lines, comment)


def format_policy(
    metadata: Metadata,
    repository: str,
    package: str,
    stages: Sequence[str],
    revision: str = ">=1",
    downstream: Sequence[tuple[str, str]] = (),
) -> str:
    """Format an UpstreamPolicy; `downstream` has (stage, repository) pairs.

    Without any the targets are `Cluster` objects, which name the stage and the repository.
    """
    revisions = {"latest": True} if revision == "latest" else {"semver": revision}
    upstream = {"repository": repository, "package": package, "revision": revisions}
    lines = [
        f"# Revisions are tags such as {package}/v1 or {package}/v1.2.3.",
        f"upstream: {format_flow(upstream)}",
        "targets:",
    ]
    # Several stages in one repository need a path each.
    is_shared = len({it for _, it in downstream}) < len(downstream)
    for stage, name in downstream:
        entry = {"name": name, "packageNames": [f"{stage}/{package}" if is_shared else package]}
        lines += [
            f"- repositories: {format_flow([entry])}",
            f"  template: {format_flow({'stage': stage})}",
        ]
    if not downstream:
        selector = {"apiVersion": CLUSTER_API_VERSION, "kind": "Cluster"}
        path = format_flow(f"target.metadata.name + '/{package}'")
        lines += [
            f"- objectSelector: {format_flow(selector)}",
            "  template: # expressions are CEL; target is the whole Cluster",
            "    stageExpr: target.metadata.labels.tier",
            "    downstream:",
            "      repositoryExpr: target.spec.repositoryRef.name",
            f"      packageExpr: {path}",
        ]
    lines.append("stages: # an after can have soak: 24h, a stage requires: and rollout:")
    for before, stage in zip(("", *stages), stages, strict=False):
        lines.append(f"- name: {format_flow(stage)}")
        if before:
            lines.append(f"  after: {format_flow({'stages': [before]})}")
        lines.append(
            "  verification: [{name: tests, report: {}}]"
            f" # fanout report {metadata['name']} --stage {stage} --check tests …"
        )
    return _format_object("UpstreamPolicy", metadata, lines)


def format_promotion(
    metadata: Metadata,
    policies: Sequence[str],
    automatic_stages: Sequence[str],
    schedule: str = "",
    time_zone: str = "",
    approvers: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Format a PromotionPolicy; `approvers`: subjects by group."""
    lines = [f"policies: {format_flow(list(policies))}"]
    if automatic_stages:
        stages = format_flow({"stages": list(automatic_stages)})
        lines.append(f"autoPromotion: {stages} # other stages wait for `fanout promote`")
    if schedule:
        lines.append(f"schedule: {format_flow(schedule)}")
    else:
        lines.append('# schedule: "*/15 8-16 * * 1-5" # publish at these times only')
    if time_zone:
        lines.append(f"timeZone: {format_flow(time_zone)}")
    if approvers:
        groups = [{"group": name, "subjects": list(it)} for name, it in approvers.items()]
        lines.append(f"approvers: {format_flow(groups)}")
    else:
        lines.append("# approvers: [{group: sre, subjects: [ann@example.com]}]")
    return _format_object("PromotionPolicy", metadata, lines)


def format_cluster(metadata: Metadata, stage: str, repository: str) -> str:
    """Format an example `Cluster` of a stage, whose variants are in the repository."""
    metadata = {**metadata, "labels": {"tier": stage}}
    lines = [f"repositoryRef: {format_flow({'name': repository})}"]
    return _format_object("Cluster", metadata, lines, api_version=CLUSTER_API_VERSION)


def _format_object(
    kind: str,
    metadata: Metadata,
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


def join_documents(documents: Iterable[str]) -> str:
    """Join objects to the text of one file."""
    return "---\n".join(documents)


def split_list(text: str) -> list[str]:
    """Split a list with commas."""
    return [part for part in map(str.strip, text.split(",")) if part]


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


def create_files(texts: Mapping[Path, str], *, dry_run: bool) -> None:
    """Create files, with their directories; with `dry_run` none.

    Raises InvalidInput for files that exist, before any is created, and if one cannot be written.
    """
    refuse_existing([path for path in texts if path.exists()])
    for path, text in {} if dry_run else texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive creation: a file that somebody wrote in between is not replaced either.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            refuse_existing([path])
        except OSError as error:
            raise invalid_setting(
                f"{path} cannot be written: {error.strerror}", "choose another directory"
            ) from error


def refuse_existing(paths: Sequence[Path]) -> None:
    """Raise InvalidInput if there are files that exist already."""
    if paths:
        raise invalid_setting(
            f"{', '.join(map(str, paths))} {'exists' if len(paths) == 1 else 'exist'} already;"
            " nothing is overwritten",
            "choose another directory or name, or move the file away",
        )
