"""The Git repositories that URLs in Kargo's objects stand for, each as one Repository."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from fanout.api.faults import BadValue
from fanout.api.meta import API_VERSION
from fanout.api.paths import check_branch
from fanout.api.texts import shown
from fanout.api.urls import canonical_url, check_url

FILL_IN = "fill-in"
NOWHERE = "https://fill-in.invalid/repository.git"  # no such host can exist (RFC 2606)
_ODD = re.compile(r"[^a-z0-9]+")
_MAIN = "main"
_USUAL = (_MAIN, "master")
_LONGEST = 63


class Repositories:
    """Names for the repositories of one namespace, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._urls: dict[str, tuple[str, str | None]] = {}

    def named(self, url: Any, branch: Any) -> tuple[str, str]:
        """The name for this URL and branch, and what is wrong with them; "" if nothing is."""
        try:
            if not isinstance(url, str) or not 0 < len(url) <= 2048:
                raise BadValue(f"{shown(url)} is no URL", "")
            check_url(url)
            if branch is not None and (not isinstance(branch, str) or len(branch) > 255):
                raise BadValue(f"{shown(branch)} is no branch", "")
            check_branch(branch or _MAIN)
        except BadValue as error:
            return FILL_IN, error.problem
        key = (canonical_url(url), branch or _MAIN)
        if key not in self._names:
            self._names[key] = self._free(url, key[1])
            self._urls[self._names[key]] = (url, branch)
        return self._names[key], ""

    def objects(self, names: Collection[str], namespace: str | None) -> Iterator[dict[str, Any]]:
        """Those of these names, as objects."""
        for name, (url, branch) in {**self._urls, FILL_IN: (NOWHERE, None)}.items():
            if name in names:
                meta = {"name": name} | ({"namespace": namespace} if namespace else {})
                spec = {"url": url} | ({"branch": branch} if branch else {})
                yield {
                    "apiVersion": API_VERSION,
                    "kind": "Repository",
                    "metadata": meta,
                    "spec": spec,
                }

    def _free(self, url: str, branch: str) -> str:
        last = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git").lower()
        branched = "" if branch in _USUAL else f"-{branch.lower()}"
        name = _ODD.sub("-", f"{last}{branched}")[: _LONGEST - 6].strip("-") or "repository"
        number, free = 1, name
        while free in self._urls or free == FILL_IN:
            number += 1
            free = f"{name}-{number}"
        return free
