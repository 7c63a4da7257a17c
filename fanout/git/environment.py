"""The environment of every git process, made anew: what is not listed here is not in it.

The caller's own settings must change nothing, and what else is in the surroundings (tokens of a
pipeline, secrets of other repositories) is not for git, its helpers, and hooks of repositories on
this machine. docs/concepts/security.md lists the same.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from fanout.api.urls import Protocol

# Taken over where they are set. The last one is for measuring.
_ALWAYS = ("PATH", "TMPDIR", "GIT_TRACE2_EVENT")
# curl reads these; it takes the proxy for http:// from the small letters alone.
_WEB = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_INHERITED: Mapping[Protocol | None, tuple[str, ...]] = {
    None: _ALWAYS,
    Protocol.FILE: _ALWAYS,
    Protocol.HTTP: (*_ALWAYS, *_WEB),
    Protocol.HTTPS: (*_ALWAYS, *_WEB),
    Protocol.SSH: (*_ALWAYS, "SSH_AUTH_SOCK"),  # a secret's key comes without the agent
}


def fixed(allowed: Collection[str], home: Path) -> dict[str, str]:
    """Variables that every git process has, whatever the surroundings say (design §9).

    `home` is an empty directory of ours, so that no ``.netrc`` answers for a secret.
    """
    return {
        "GIT_ALLOW_PROTOCOL": ":".join(allowed),
        "GIT_ASKPASS": "",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(home),
        "LANGUAGE": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def inherited(ambient: Mapping[str, str], protocol: Protocol | None) -> dict[str, str]:
    """Variables of the surroundings for a process that talks over a protocol, or to no remote."""
    found = {name: ambient[name] for name in _INHERITED[protocol] if name in ambient}
    return {"PATH": os.defpath, **found}
