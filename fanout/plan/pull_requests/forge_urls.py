"""Addresses of pages about an upstream repository on the host that it is on.

Only of hosts whose program is known: those that the administrator lists as forges, and a few that
everybody knows. Of others nobody can tell what is where.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from fanout.api.fanout_configuration import ForgeProgram
from fanout.values import Value

_KNOWN_HOSTS: Final = {
    "codeberg.org": ForgeProgram.GITEA,
    "gitea.com": ForgeProgram.GITEA,
    "github.com": ForgeProgram.GITHUB,
    "gitlab.com": ForgeProgram.GITLAB,
}
_TAG_PAGES: Final = {
    ForgeProgram.GITEA: "src/tag",
    ForgeProgram.GITHUB: "tree",
    ForgeProgram.GITLAB: "-/tags",
}
_MIN_SEGMENTS: Final = 2  # owner and name


class RepositoryUrls(Value):
    """Pages of a repository on a host whose program is known."""

    url: str  # of the repository, without `.git`
    program: ForgeProgram

    def find_tag(self, tag: str) -> str:
        """Return the address of the page of a tag, without `refs/tags/`."""
        return f"{self.url}/{_TAG_PAGES[self.program]}/{quote(tag, safe='/')}"

    def find_commit(self, commit: str) -> str:
        """Return the address of the page of a commit."""
        return f"{self.url}/{self._prefix}commit/{commit}"

    def compare(self, old_commit: str, commit: str) -> str:
        """Return the address of the page that compares two commits."""
        return f"{self.url}/{self._prefix}compare/{old_commit}...{commit}"

    @property
    def _prefix(self) -> str:
        return "-/" if self.program is ForgeProgram.GITLAB else ""


def find_urls(url: str, programs: Mapping[str, ForgeProgram]) -> RepositoryUrls | None:
    """Return the pages of the repository at a Git URL; None where the host's are not known.

    `programs`: that of each host that is listed as a forge, by host as in the URLs.
    """
    scheme, host, path = "https", "", ""
    if "://" in url:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return None
        host, path = parts.hostname or "", parts.path
        host = f"[{host}]" if ":" in host else host
        # The port of ssh:// is another service's.
        if parts.scheme in ("http", "https"):
            scheme, host = parts.scheme, f"{host}:{port}" if port is not None else host
        elif parts.scheme != "ssh":
            return None
    elif ":" in url:  # git@host:path
        host, _, path = url.rpartition("@")[2].partition(":")
        host = host.lower()
    program = programs.get(host) or _KNOWN_HOSTS.get(host)
    path = path.strip("/").removesuffix(".git")
    if program is None or len(path.split("/")) < _MIN_SEGMENTS:
        return None
    return RepositoryUrls(f"{scheme}://{host}/{quote(path, safe='/')}", program)
