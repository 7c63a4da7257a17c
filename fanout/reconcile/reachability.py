"""Repositories as objects for people and machines: whether each answered, and what goes there."""

from collections import Counter
from typing import Any

from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.reconcile.names import repository_key
from fanout.reconcile.report import Observed

Plain = dict[str, Any]


def repositories(observed: Observed, declared: Declared) -> list[Plain]:
    """Every Repository with how it was found and how many variants go there."""
    # None: its listing brought no failure.
    failures: dict[str, FanoutError | None] = {}
    for item in observed.policies:
        if item.named.upstream is not None:
            failures[repository_key(item.named.upstream)] = item.upstream_failure
    for item in observed.policies:
        for case in item.cases:
            key = repository_key(item.named.repositories[case.spec.name])
            if not isinstance(failures.get(key), FanoutError):
                failures[key] = case.view.failure
    counts = Counter(
        repository_key(item.named.repositories[case.spec.name])
        for item in observed.policies
        for case in item.cases
    )
    bodies: list[Plain] = []
    for repository in declared.repositories:
        body: Plain = repository.model_dump(mode="json", by_alias=True, exclude_unset=True)
        key = repository_key(repository)
        body["status"] = {"variants": counts[key]}
        if key in failures:
            failure = failures[key]
            condition = {"type": "Ready", "status": "False" if failure else "True"}
            condition["reason"] = failure.reason if failure else "Listed"
            condition["message"] = str(failure) if failure else "it answered"
            body["status"]["conditions"] = [condition]
        bodies.append(body)
    return bodies
