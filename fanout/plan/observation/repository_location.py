"""Host and name of a repository on a forge, by its Git URL."""

from urllib.parse import urlsplit

from fanout.errors import InvalidInput
from fanout.plan.observation.observed_request import RepositoryName


def locate_repository(url: str) -> tuple[str, RepositoryName]:
    """Return host and name of the repository at a Git URL.

    The port belongs to the host of http:// and https://, not of ssh://, where it is another
    service's. Raises InvalidInput for a URL without a host, or without owner and name.
    """
    host, path = "", ""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
        host = f"[{host}]" if ":" in host else host
        if parts.scheme != "ssh" and parts.port is not None:
            host = f"{host}:{parts.port}"
    elif ":" in url:  # git@host:path
        host, _, path = url.rpartition("@")[2].partition(":")
        host = host.lower()
    segments = path.strip("/").removesuffix(".git").split("/")
    if not host or len(segments) < 2:
        raise InvalidInput(
            f"the URL {url} names no repository of a forge",
            reason="InvalidObject",
            remedy="write one like https://git.example.com/OWNER/NAME.git",
        )
    return host, RepositoryName(segments[-2], segments[-1])
