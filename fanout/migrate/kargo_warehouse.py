"""Conversion of Warehouses to upstream packages, and of Git URLs to Repositories.

A Warehouse watches the commits of a repository, a policy the tags of a package in one.
If the Warehouse does not say which package that is, an obvious placeholder is written.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any

from fanout.api.field_errors import FieldPath, InvalidValue, as_list, as_mapping
from fanout.api.object_meta import API_VERSION
from fanout.api.text_fields import check_branch, find_path_problem, format_value
from fanout.api.urls import canonicalize_url, check_url
from fanout.migrate.field_mapping import (
    Conversion,
    FieldConverter,
    Remark,
    SourceField,
    TargetField,
    report_unsupported,
)
from fanout.migrate.kargo_stages import KargoObject, StepTarget, replace_dots

PLACEHOLDER = "fill-in"
PLACEHOLDER_URL = "https://fill-in.invalid/repository.git"  # no such host can exist (RFC 2606)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_DEFAULT_BRANCH = "main"
_MAX_NAME_LENGTH = 63


class RepositoryNames:
    """Names of the repositories of one namespace, in the order of requests.

    One for each URL, with one branch, since a repository is published to on one branch
    (decision 0009): the branch that all steps push to, if they agree.
    """

    def __init__(self, step_targets: Iterable[StepTarget]) -> None:
        self._pushed_branches: dict[str, set[str]] = {}
        for step_target in step_targets:
            if not _find_url_problem(step_target.url, step_target.branch):
                key = canonicalize_url(step_target.url)
                branches = self._pushed_branches.setdefault(key, set())
                branches |= {step_target.branch} if step_target.branch else set()
        self._names: dict[str, str] = {}
        self._specs: dict[str, dict[str, Any]] = {}

    def name_repository(self, url: Any, branch: Any) -> tuple[str, str]:
        """Return the name for this URL, and the problem of the URL or branch, or ""."""
        if problem := _find_url_problem(url, branch):
            return PLACEHOLDER, problem
        if (key := canonicalize_url(url)) not in self._names:
            last = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git").lower()
            # Six characters are kept free for a dash and a number.
            base = _NOT_IN_NAMES.sub("-", last)[: _MAX_NAME_LENGTH - 6].strip("-") or "repository"
            candidates = chain([base], (f"{base}-{number}" for number in count(2)))
            taken = {*self._specs, PLACEHOLDER}
            self._names[key] = name = next(it for it in candidates if it not in taken)
            branches = self._pushed_branches.get(key) or ({branch} if branch else set())
            self._specs[name] = {"url": url}
            if len(branches) == 1:
                self._specs[name]["branch"] = min(branches)
        return self._names[key], ""

    def branch_of(self, name: str) -> str:
        """Return the branch of the repository of this name."""
        return str(self._specs.get(name, {}).get("branch", _DEFAULT_BRANCH))

    def build_objects(
        self, names: Collection[str], namespace: str | None
    ) -> Iterator[dict[str, Any]]:
        """Yield the Repository objects of these names."""
        for name, spec in {**self._specs, PLACEHOLDER: {"url": PLACEHOLDER_URL}}.items():
            if name in names:
                meta = {"name": name} | ({"namespace": namespace} if namespace else {})
                head = {"apiVersion": API_VERSION, "kind": "Repository"}
                yield {**head, "metadata": meta, "spec": spec}


def _find_url_problem(url: Any, branch: Any) -> str:
    try:
        if not isinstance(url, str) or not 0 < len(url) <= 2048:
            return f"{format_value(url)} is not a URL"
        if branch is not None and (not isinstance(branch, str) or len(branch) > 255):
            return f"{format_value(branch)} is not a branch"
        check_url(url)
        check_branch(branch or _DEFAULT_BRANCH)
    except InvalidValue as error:
        return error.problem
    return ""


SUBSCRIPTIONS_PATH: FieldPath = ("spec", "subscriptions")
_UPSTREAM_PATH: FieldPath = ("spec", "upstream")
_PATTERN_PREFIXES = ("glob:", "regex:", "regexp:")
_HYPHEN_RANGE = re.compile(r"(\S+)\s+-\s+(\S+)")
_BRANCH_STRATEGY = "NewestFromBranch"
_TAG_STRATEGIES = ("NewestTag", "Lexical")


def convert_subscription(warehouse: KargoObject, repositories: RepositoryNames) -> Conversion:
    """Yield the fields of the upstream, and remarks about placeholders."""
    if (subscription_index := _first_git_subscription(warehouse.data)) is None:
        yield from placeholder_upstream(replace_dots(warehouse.name), SUBSCRIPTIONS_PATH)
        problem = "there is no Git subscription, and a policy clones a package from Git"
        remedy = f"put the package into a Git repository, and replace {PLACEHOLDER}"
        yield Remark(SUBSCRIPTIONS_PATH, problem, remedy)
        return
    path: FieldPath = (*SUBSCRIPTIONS_PATH, subscription_index, "git")
    git = as_mapping(as_list(warehouse.spec, "subscriptions")[subscription_index], "git")
    name, problem = repositories.name_repository(git.get("repoURL"), git.get("branch") or None)
    source = (*path, "repoURL") if "repoURL" in git else path
    yield TargetField((*_UPSTREAM_PATH, "repository"), name, source)
    if problem:
        yield Remark(source, problem, f"correct the Repository {name}")
    included = as_list(git, "includePaths")
    source = (*path, "includePaths") if included else path
    package = f"{PLACEHOLDER}-{replace_dots(warehouse.name)}"
    problem = "the directory of the package is unknown; one plain path is required"
    if len(included) == 1 and isinstance(included[0], str):
        plain = included[0].strip("/")
        if not plain.startswith(_PATTERN_PREFIXES) and plain and not find_path_problem(plain):
            package, problem = plain, ""
    yield TargetField((*_UPSTREAM_PATH, "package"), package, source)
    if problem:
        yield Remark(source, problem, f"replace {package} by its path")
    yield from _convert_revision_rule(git, path)


def placeholder_upstream(policy: str, source: FieldPath) -> Iterator[TargetField]:
    """Yield an upstream of placeholders that a person has to fill in."""
    yield TargetField((*_UPSTREAM_PATH, "repository"), PLACEHOLDER, source)
    yield TargetField((*_UPSTREAM_PATH, "package"), f"{PLACEHOLDER}-{policy}", source)
    yield TargetField((*_UPSTREAM_PATH, "revision", "latest"), True, source)


def for_first_subscription(converter: FieldConverter) -> FieldConverter:
    """Return a converter for the first Git subscription; others are reported whole."""

    def convert_first(source: SourceField) -> Conversion:
        if source.path[2] == _first_git_subscription(source.source_object):
            yield from converter(source)

    return convert_first


def report_tag_filter(subject: str) -> FieldConverter:
    """Return a converter that reports a filter of tags or commits as unsupported."""
    problem = f"{subject} have no effect here; a range of versions selects revisions"
    return for_first_subscription(
        report_unsupported("", [], problem=problem, remedy="write spec.upstream.revision.semver")
    )


def report_further_subscription(source: SourceField) -> Conversion:
    """Report every Git subscription after the first, which becomes the upstream."""
    if source.path[2] != _first_git_subscription(source.source_object):
        problem = "a policy has one upstream package, that of the first Git subscription"
        yield Remark(source.path, problem, "write a policy of its own for this one")


def _first_git_subscription(warehouse: Mapping[str, Any]) -> int | None:
    subscriptions = as_list(warehouse, "spec", "subscriptions")
    return next(
        (index for index, entry in enumerate(subscriptions) if as_mapping(entry).get("git")), None
    )


def _convert_revision_rule(git: Mapping[str, Any], subscription_path: FieldPath) -> Conversion:
    field = "commitSelectionStrategy"
    strategy = git.get(field) or _BRANCH_STRATEGY
    source = (*subscription_path, field) if field in git else subscription_path
    constraint = git.get("semverConstraint")
    if strategy == "SemVer" and constraint:
        # A space means AND here, and hyphen ranges do not exist.
        if isinstance(constraint, str):
            words = _HYPHEN_RANGE.sub(r">=\1 <=\2", constraint).replace(",", " ").split()
            constraint = " ".join(words)
        constraint_path = (*subscription_path, "semverConstraint")
        yield TargetField((*_UPSTREAM_PATH, "revision", "semver"), constraint, constraint_path)
    else:
        yield TargetField((*_UPSTREAM_PATH, "revision", "latest"), True, source)
    if strategy == _BRANCH_STRATEGY:
        problem = "a policy does not follow a branch; a revision is a tag of the package"
    elif strategy in _TAG_STRATEGIES:
        problem = f"{strategy} has no counterpart; revisions are ordered by version"
    elif strategy == "SemVer":
        problem = "Kargo uses tags like v1.2.3, which name no package"
    else:
        problem = f"{format_value(strategy)} is not a known strategy"
    yield Remark(source, problem, "tag the package: <path>/v1, or <path>/v1.2.3")
