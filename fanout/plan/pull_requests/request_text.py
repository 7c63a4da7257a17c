"""Title and text of a pull request, from its content.

The text is a function of the content alone: instants are absolute, so that nothing in it moves
with the clock.

The part of the text that is fanout's own is between two comments. The last one names what the
request is for, and the digest of what fanout wrote, so that a request is changed only when fanout
has something else to say. Which request is which, the head branch decides: a comment that is
missing, or copied from another request, only makes fanout write its part again.
"""

import re
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote

from fanout.plan.pull_requests.markdown_text import format_title
from fanout.plan.pull_requests.request_layout import (
    MAX_TEXT,
    NOTES,
    build_body,
    build_title,
    without_siblings,
)
from fanout.plan.pull_requests.request_values import RequestContent
from fanout.values import Value, replace

_BEGIN: Final = (
    "<!-- fanout: from here to the last comment fanout writes; text around it is kept -->"
)
# Only whole lines are comments of fanout: no line of foreign content begins like them.
_BEGIN_LINE: Final = r"^<!-- fanout:[^\n]*-->[ \t\r]*$"
_END_LINE: Final = r"^<!-- fanout install=[^\n]*-->[ \t\r]*$"
_END: Final = re.compile(
    r"^<!-- fanout install=(?P<install>\S*) policy=(?P<policy>\S*) stage=(?P<stage>\S*)"
    r" digest=(?P<digest>\S*)(?: title=(?P<title>\S*))?(?: siblings=(?P<numbers>\S*))? -->"
    r"[ \t\r]*$",
    re.MULTILINE,
)
_OWN_PART: Final = re.compile(rf"{_BEGIN_LINE}.*?{_END_LINE}", re.MULTILINE | re.DOTALL)
_WITHOUT_BEGIN: Final = re.compile(rf"\A.*{_END_LINE}", re.MULTILINE | re.DOTALL)
_WITHOUT_END: Final = re.compile(rf"{_BEGIN_LINE}.*\Z", re.MULTILINE | re.DOTALL)
_FORGED: Final = re.compile(r"^[ \t]*<!--(?=[ \t]*fanout)", re.MULTILINE)


class RequestMarker(Value, kw_only=True):
    """Installation, policy and stage of a pull request, and the digest of title and text.

    `title` is fanout's part of the title; "" in the texts of earlier versions. `numbers` are
    those of the requests of the same stage that the text names, with their repositories.
    """

    install: str
    policy: str  # "<namespace>/<name>"
    stage: str
    digest: str  # "sha256:<hex>"
    title: str = ""
    numbers: str = ""  # "edge-us/12 edge-ap/3"


class RequestText(Value):
    """Title and text of a pull request as fanout writes them; `text` has both comments."""

    title: str
    text: str
    digest: str


def build_request_text(
    install: str,
    policy: str,
    stage: str,
    title: str,
    text: str,
    compared_text: str = "",
    numbers: str = "",
) -> RequestText:
    """Put a text between the comments that make it fanout's own.

    The digest is of the title and of `compared_text` (default: the text). Lines of the text that
    look like one of the comments are changed.
    """
    own = _FORGED.sub("&lt;!--", text.strip())
    compared = _FORGED.sub("&lt;!--", (compared_text or text).strip())
    digest = "sha256:" + sha256(f"{title}\0{compared}".encode()).hexdigest()
    install, policy, stage = (quote(it, safe="/") for it in (install, policy, stage))
    # Two dashes would end the comment for some readers.
    title_field, numbers_field = (
        quote(it, safe="/").replace("-", "%2D") for it in (title, numbers)
    )
    end = (
        f"<!-- fanout install={install} policy={policy} stage={stage} digest={digest}"
        f" title={title_field} siblings={numbers_field} -->"
    )
    return RequestText(title, f"{_BEGIN}\n\n{own}\n\n{end}\n", digest)


def parse_marker(text: str) -> RequestMarker | None:
    """Return the last marker in the text of a pull request; None without any."""
    markers = [
        RequestMarker(**{name: unquote(value) for name, value in match.groupdict("").items()})
        for match in _END.finditer(text)
    ]
    return markers[-1] if markers else None


def needs_update(present_text: str, new: RequestText) -> bool:
    """Return whether title and text must be written.

    They are when fanout has something else to say, or when its part of the text is lost. What
    people changed in the title or in fanout's part stays until then. A request of the same stage
    that is merged is no reason to write the texts of all others, but one that is opened is.
    """
    parts = _OWN_PART.findall(present_text)
    present = parse_marker(parts[0]) if len(parts) == 1 else None
    marker = parse_marker(new.text)
    if present is None or marker is None:
        return True
    if replace(marker, numbers=present.numbers) != present:
        return True
    return not set(marker.numbers.split()) <= set(present.numbers.split())


def replace_own_text(present_text: str, new: RequestText) -> str:
    """Return the present text of a pull request with fanout's part written anew.

    What people wrote before and after it stays. Of several parts the first is replaced and the
    others are dropped. Where one of the two comments is missing, everything on its side is taken
    for fanout's; where both are, everything is a person's, and fanout's part follows.
    """
    own = new.text.rstrip("\n")
    first = True

    def write_once(_: re.Match[str]) -> str:
        nonlocal first
        text, first = (own if first else ""), False
        return text

    for pattern in (_OWN_PART, _WITHOUT_BEGIN, _WITHOUT_END):
        if pattern.search(present_text):
            return pattern.sub(write_once, present_text).strip("\r\n") + "\n"
    kept = present_text.strip()
    return f"{kept}\n\n{own}\n" if kept else f"{own}\n"


def replace_own_title(present_title: str, present_text: str, new: RequestText) -> str:
    """Return the present title of a pull request with fanout's part written anew.

    What people wrote before and after it stays. A title without fanout's part is replaced: a text
    of an earlier version does not tell which part it is.
    """
    marker = parse_marker(present_text)
    own = marker.title if marker is not None else ""
    if not own or own not in present_title:
        return new.title
    before, _, after = present_title.partition(own)
    room = _FORGE_TITLE - len(before) - len(after)
    return f"{before}{new.title[: max(room, 0)]}{after}"


_FORGE_TITLE: Final = 250  # characters of a title with what people added and the prefix of a draft
MAX_TITLE: Final = 240  # characters; forges take 255, and some put a prefix before it


def format_request(content: RequestContent, title: str = "", body: str = "") -> RequestText:
    """Format title and text; `title` and `body` replace the built-in ones if they are not empty."""
    text = body.strip()
    data = text.encode()
    if len(data) > MAX_TEXT:
        # Cut at the end of a line, if the text has several.
        text = data[: MAX_TEXT - NOTES].decode(errors="ignore")
        text = text.rpartition("\n")[0] or text
        omitted = len(data) - len(text.encode())
        text += f"\n\n{omitted:,} of {len(data):,} bytes not shown: the text would be too long."
    return build_request_text(
        content.install,
        content.policy,
        content.stage,
        format_title(title.strip() or build_title(content), MAX_TITLE),
        text or build_body(content),
        "" if text else build_body(without_siblings(content)),
        " ".join(f"{quote(it.repository)}/{it.number}" for it in content.siblings),
    )
