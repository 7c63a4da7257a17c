"""The Git repositories that URLs in Kargo's objects stand for, each as one Repository."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from fanout.api.faults import BadValue
from fanout.api.kargo.steps import Place
from fanout.api.meta import API_VERSION
from fanout.api.paths import check_branch
from fanout.api.texts import shown
from fanout.api.urls import canonical_url, check_url

FILL_IN = "fill-in"
NOWHERE = "https://fill-in.invalid/repository.git"  # no such host can exist (RFC 2606)
_ODD = re.compile(r"[^a-z0-9]+")
_MAIN = "main"
_LONGEST = 63


class Repositories:
    """Names for the repositories of one namespace, in the order in which they are asked for.

    One for each URL, with one branch: a repository is published to on one (decision 0009). It is
    the one that all write to, where they agree.
    """

    def __init__(self, written: Iterable[Place]) -> None:
        self._written: dict[str, set[str]] = {}
        for place in written:
            if not _problem(place.url, place.branch):
                branches = self._written.setdefault(canonical_url(place.url), set())
                branches |= {place.branch} if place.branch else set()
        self._names: dict[str, str] = {}
        self._specs: dict[str, dict[str, Any]] = {}

    def named(self, url: Any, branch: Any) -> tuple[str, str]:
        """The name for this URL, and what is wrong with it or with the branch; "" if nothing is."""
        if problem := _problem(url, branch):
            return FILL_IN, problem
        key = canonical_url(url)
        if key not in self._names:
            self._names[key] = name = self._free(url)
            said = self._written.get(key) or ({branch} if branch else set())
            self._specs[name] = {"url": url} | ({"branch": min(said)} if len(said) == 1 else {})
        return self._names[key], ""

    def branch(self, name: str) -> str:
        """The branch of the repository of this name."""
        return str(self._specs.get(name, {}).get("branch", _MAIN))

    def objects(self, names: Collection[str], namespace: str | None) -> Iterator[dict[str, Any]]:
        """Those of these names, as objects."""
        for name, spec in {**self._specs, FILL_IN: {"url": NOWHERE}}.items():
            if name in names:
                meta = {"name": name} | ({"namespace": namespace} if namespace else {})
                head = {"apiVersion": API_VERSION, "kind": "Repository"}
                yield {**head, "metadata": meta, "spec": spec}

    def _free(self, url: str) -> str:
        last = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git").lower()
        name = _ODD.sub("-", last)[: _LONGEST - 6].strip("-") or "repository"
        number, free = 1, name
        while free in self._specs or free == FILL_IN:
            number += 1
            free = f"{name}-{number}"
        return free


def _problem(url: Any, branch: Any) -> str:
    try:
        if not isinstance(url, str) or not 0 < len(url) <= 2048:
            return f"{shown(url)} is no URL"
        if branch is not None and (not isinstance(branch, str) or len(branch) > 255):
            return f"{shown(branch)} is no branch"
        check_url(url)
        check_branch(branch or _MAIN)
    except BadValue as error:
        return error.problem
    return ""
