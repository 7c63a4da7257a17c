"""Status of fanout on pull requests of other people: they must not change its packages.

Where a branch requires this status, somebody has to set it on every request to the branch, or none
of them could be merged.
"""

from collections.abc import Iterable

from fanout.api.text_fields import fold_path
from fanout.plan.actions import ActionKind, RepositorySubject, RequestChange, RequestStatus
from fanout.plan.observation.observed_request import StatusState
from fanout.plan.pull_requests.request_plan import (
    format_status,
    shorten_description,
    status_context,
)
from fanout.values import Value, replace


class OtherStatuses(Value):
    """Statuses to set on other people's requests, and warnings about those that are not judged."""

    statuses: tuple[RequestChange, ...]
    warnings: tuple[str, ...]


def find_changed_packages(
    changed_paths: Iterable[str], owned_paths: Iterable[str]
) -> tuple[str, ...]:
    """Return the packages, by their paths, that changes of files touch.

    A file in place of a directory above a package touches it, too. As in collisions of packages,
    paths that differ in case or Unicode form alone are one path.
    """
    package_by_path: dict[str, str] = {}
    packages_below: dict[str, list[str]] = {}
    for package in sorted(owned_paths):
        path = fold_path(package)
        package_by_path[path] = package
        for parent in _parents(path):
            packages_below.setdefault(parent, []).append(package)
    packages: set[str] = set()
    for changed_path in changed_paths:
        path = fold_path(changed_path)
        packages.update(packages_below.get(path, ()))
        enclosing = ("", *_parents(path), path)
        packages.update(package_by_path[it] for it in enclosing if it in package_by_path)
    return tuple(sorted(packages))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def build_other_status(changed_packages: tuple[str, ...], install: str) -> RequestStatus:
    """Return the status of a request that changes these packages of the installation."""
    context = status_context(install)
    if not changed_packages:
        return RequestStatus(
            context, StatusState.SUCCESS, "it changes no package that fanout manages"
        )
    path, others = changed_packages[0] or "/", len(changed_packages) - 1
    sentence = f"it changes a package that fanout manages: {path}"
    if others:
        sentence = f"it changes packages that fanout manages: {path} and {others} more"
    return RequestStatus(context, StatusState.FAILURE, shorten_description(sentence))


def plan_other_statuses(subjects: Iterable[RepositorySubject], install: str) -> OtherStatuses:
    """Plan the statuses of other people's requests in all repositories, each given once.

    The calls are counted for the policy, or the variant written by hand, of each subject.
    """
    statuses: list[RequestChange] = []
    warnings: list[str] = []
    for subject in subjects:
        forge = subject.state.forge
        for request in forge.other_requests if forge is not None else ():
            if request.problem:
                warnings.append(
                    f"{subject.repository}: pull request {request.number} gets no status of"
                    f" fanout: {request.problem}"
                )
                continue
            status = build_other_status(request.changed_packages, install)
            if format_status(status) == request.status:
                continue
            # Branches of several forks may have the same name.
            head_ref = f"refs/pull/{request.number}/head"
            change = RequestChange(
                remote=subject.state.remote,
                repository=subject.state.identity,
                policy=f"{subject.namespace}/{subject.policy or subject.variant}",
                head_ref=head_ref,
                head_commit=request.head_commit,
                status=status,
            )
            action = subject.build_action(
                ActionKind.SET_STATUS,
                repository=subject.repository,
                ref=head_ref,
                expected=request.head_commit,
                detail=format_status(status),
                number=str(request.number),
            )
            statuses.append(replace(change, actions=(action,)))
    return OtherStatuses(tuple(statuses), tuple(warnings))
