"""Title and text of a pull request, from its content.

The text is a function of the content alone: instants are absolute, so that nothing in it moves
with the clock. A text that is too long is cut by whole entries of its sections, changes of
files first, conflicts and gates last.

The part of the text that is fanout's own is between two comments. The last one names what the
request is for, and the digest of what fanout wrote, so that a request is changed only when fanout
has something else to say. Which request is which, the head branch decides: a comment that is
missing, or copied from another request, only makes fanout write its part again.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote

from fanout.api.durations import format_instant
from fanout.api.promotion_policy import MergeMethod
from fanout.api.reasons import Reason
from fanout.api.results import CheckResult, Hold
from fanout.api.text_fields import pluralize
from fanout.message_commands import MessageCommands
from fanout.plan.pull_requests.markdown_text import (
    format_block,
    format_code,
    format_names,
    format_sentence,
    format_title,
)
from fanout.plan.pull_requests.request_holds import HOLD_LABEL
from fanout.plan.rendered_variant import ChangeVerb
from fanout.values import Value

_BEGIN: Final = (
    "<!-- fanout: from here to the last comment fanout writes; text around it is kept -->"
)
# Only whole lines are comments of fanout: no line of foreign content begins like them.
_BEGIN_LINE: Final = r"^<!-- fanout:[^\n]*-->[ \t\r]*$"
_END_LINE: Final = r"^<!-- fanout install=[^\n]*-->[ \t\r]*$"
_END: Final = re.compile(
    r"^<!-- fanout install=(?P<install>\S*) policy=(?P<policy>\S*) stage=(?P<stage>\S*)"
    r" digest=(?P<digest>\S*) -->[ \t\r]*$",
    re.MULTILINE,
)
_OWN_PART: Final = re.compile(rf"{_BEGIN_LINE}.*?{_END_LINE}", re.MULTILINE | re.DOTALL)
_WITHOUT_BEGIN: Final = re.compile(rf"\A.*{_END_LINE}", re.MULTILINE | re.DOTALL)
_WITHOUT_END: Final = re.compile(rf"{_BEGIN_LINE}.*\Z", re.MULTILINE | re.DOTALL)
_FORGED: Final = re.compile(r"^[ \t]*<!--(?=[ \t]*fanout)", re.MULTILINE)


class RequestMarker(Value, kw_only=True):
    """Installation, policy and stage of a pull request, and the digest of title and text."""

    install: str
    policy: str  # "<namespace>/<name>"
    stage: str
    digest: str  # "sha256:<hex>"


class RequestText(Value):
    """Title and text of a pull request as fanout writes them; `text` has both comments."""

    title: str
    text: str
    digest: str


def build_request_text(install: str, policy: str, stage: str, title: str, text: str) -> RequestText:
    """Put a text between the comments that make it fanout's own.

    The digest is of title and text. Lines of the text that look like one of the comments are
    changed.
    """
    own = _FORGED.sub("&lt;!--", text.strip())
    digest = "sha256:" + sha256(f"{title}\0{own}".encode()).hexdigest()
    install, policy, stage = (quote(it, safe="/") for it in (install, policy, stage))
    end = f"<!-- fanout install={install} policy={policy} stage={stage} digest={digest} -->"
    return RequestText(title, f"{_BEGIN}\n\n{own}\n\n{end}\n", digest)


def parse_marker(text: str) -> RequestMarker | None:
    """Return the last marker in the text of a pull request; None without any."""
    markers = [
        RequestMarker(**{name: unquote(value) for name, value in match.groupdict().items()})
        for match in _END.finditer(text)
    ]
    return markers[-1] if markers else None


def needs_update(present_text: str, new: RequestText) -> bool:
    """Return whether title and text must be written.

    They are when fanout has something else to say, or when its part of the text is lost. What
    people changed in the title or in fanout's part stays until then.
    """
    parts = _OWN_PART.findall(present_text)
    marker = parse_marker(parts[0]) if len(parts) == 1 else None
    return marker is None or marker != parse_marker(new.text)


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


MAX_TITLE: Final = 240  # characters; forges take 255, and some put a prefix before it
MAX_TEXT: Final = 60_000  # bytes; GitHub takes 65,536 characters, and people add theirs
_NOTES: Final = 1_000  # bytes for the sentences about what was left out
_MAX_PATHS: Final = 50  # of packages with equal changes


class RequestVariant(Value, kw_only=True):
    """Variant in a pull request, with the change of its package."""

    name: str
    path: str
    verb: ChangeVerb
    target: str = ""
    old_path: str = ""  # before a move
    old_revision: str = ""  # in force now; "": none is, or it is not known
    revision: str = ""  # in the request; "": the package is removed
    detail: str = ""  # why, for a removal


class RequestUpstream(Value, kw_only=True):
    """An upstream revision that packages of a request were made from."""

    repository: str  # URL
    package: str
    revision: str
    commit: str


class PackageChange(Value):
    """Changes of files that several packages have alike, as lines of a patch.

    `paths` are those of the packages. Values of Secrets are masked. `omitted` says what is left
    out of a long one.
    """

    paths: tuple[str, ...]
    lines: tuple[str, ...]
    omitted: str = ""  # "120 more lines in 3 files"


class RequestConflict(Value):
    """A merge conflict that packages have alike."""

    paths: tuple[str, ...]
    message: str
    is_decided: bool


class RequestHold(Value):
    """Hold of packages of a request; without paths, of all of them."""

    hold: Hold
    paths: tuple[str, ...] = ()


class RequestCheck(Value):
    """Result of a check that packages of a request have alike."""

    result: CheckResult
    paths: tuple[str, ...]


class RequestContent(Value, kw_only=True):
    """Content of the text of a pull request."""

    install: str
    policy: str  # "<namespace>/<name>"; of a variant written by hand its own name
    stage: str = ""
    repository: str  # name of the Repository object
    branch: str  # short name of the branch that is merged into
    head_branch: str  # short name of the branch of the draft
    variants: tuple[RequestVariant, ...]
    changes: tuple[PackageChange, ...] = ()
    conflicts: tuple[RequestConflict, ...] = ()
    holds: tuple[RequestHold, ...] = ()
    checks: tuple[RequestCheck, ...] = ()
    upstreams: tuple[RequestUpstream, ...] = ()
    merge: MergeMethod = MergeMethod.DIRECT
    approval_checks: tuple[str, ...] = ()  # checks of the stage that wait for approvals


class _Section(Value):
    """Section of a text: entries under a heading, of which the last ones may be left out."""

    heading: str
    noun: str  # for an entry that is left out
    entries: tuple[str, ...]
    cut_rank: int  # sections of a lower rank are cut before others
    separator: str = "\n"


def format_request(content: RequestContent, title: str = "", body: str = "") -> RequestText:
    """Format title and text; `title` and `body` replace the built-in ones if they are not empty."""
    text = body.strip()
    data = text.encode()
    if len(data) > MAX_TEXT:
        # Cut at the end of a line, if the text has several.
        text = data[: MAX_TEXT - _NOTES].decode(errors="ignore")
        text = text.rpartition("\n")[0] or text
        omitted = len(data) - len(text.encode())
        text += f"\n\n{omitted:,} of {len(data):,} bytes not shown: the text would be too long."
    return build_request_text(
        content.install,
        content.policy,
        content.stage,
        format_title(title.strip() or build_title(content), MAX_TITLE),
        text or build_body(content),
    )


def build_title(content: RequestContent) -> str:
    """Return the built-in title, before anything in it is escaped."""
    variants, verb = content.variants, _find_verb(content)
    subject = variants[0].path if len(variants) == 1 else pluralize(len(variants), "package")
    stage = f", stage {content.stage}" if content.stage else ""
    made_from = {f"{it.package} {it.revision}" for it in content.upstreams}
    link = "at" if verb in (ChangeVerb.ADD, ChangeVerb.ADOPT, ChangeVerb.MOVE) else "to"
    revision = ""
    if len(made_from) == 1 and verb is not ChangeVerb.REMOVE:
        revision = f" {link} {made_from.pop()}"
    return f"{verb} {subject}{revision} ({content.policy}{stage})"


def build_body(content: RequestContent) -> str:
    """Return the built-in text, in Markdown and within `MAX_TEXT`."""
    stage = f", stage {format_code(content.stage)}" if content.stage else ""
    merger = "A person" if content.merge is MergeMethod.MANUAL else "fanout"
    opening = (
        f"fanout proposes to {_find_verb(content).lower()}"
        f" {pluralize(len(content.variants), 'package')} of policy"
        f" {format_code(content.policy)}{stage}."
        f" {merger} merges this pull request when nothing holds it."
    )
    undecided, decided = (
        tuple(
            f"* {format_names(it.paths)}: {format_sentence(it.message)}"
            for it in content.conflicts
            if it.is_decided is is_decided
        )
        for is_decided in (False, True)
    )
    provenance = [
        f"* Package {format_code(it.package)} of {format_code(it.repository)},"
        f" revision {format_code(it.revision)}, commit {format_code(it.commit)}"
        for it in content.upstreams
    ]
    provenance.append(f"* Installation: {format_code(content.install)}")
    checks: list[str] = []
    for item in content.checks:
        result, subject = item.result, _format_subject(content, item.paths)
        sentence = f": {format_sentence(result.message)}" if result.message else ""
        since = f", since {format_code(format_instant(result.at))}" if result.at else ""
        checks.append(f"* {subject}{format_code(result.name)} {result.verdict}{since}{sentence}")
    holds = [] if content.holds else ["* Nothing: the gates are open."]
    for it in content.holds:
        hold, subject = it.hold, _format_subject(content, it.paths)
        sentence = f"* {subject}{format_sentence(hold.message)} ({format_code(hold.reason)})."
        if hold.until is not None:
            sentence += f" Until {format_code(format_instant(hold.until))}."
        holds.append(sentence + (f" Who can act: {format_sentence(hold.who)}." if hold.who else ""))
    # What needs a person is first, what may be long is last.
    sections = [
        _Section("Undecided merge conflicts", "undecided conflict", undecided, 6),
        _Section("What it waits for", "entry", tuple(holds), 7),
        _Section("Packages", "entry", tuple(_format_variants(content)), 1),
        _Section("Checks", "check", tuple(checks), 4),
        _Section("What you can do", "entry", tuple(_format_instructions(content)), 3),
        _Section("Changes", "change", tuple(_format_changes(content)), 0, "\n\n"),
        _Section("Decided merge conflicts", "decided conflict", decided, 5),
        _Section("Where it comes from", "entry", tuple(provenance), 2),
    ]
    sections = [section for section in sections if section.entries]
    # Entries are left out from the end of a section, until it has none; then of the next rank.
    shown = [len(section.entries) for section in sections]
    sizes = [[len(entry.encode()) + 2 for entry in section.entries] for section in sections]
    total = sum(map(sum, sizes)) + sum(len(section.heading) + 10 for section in sections)
    for index in sorted(range(len(sections)), key=lambda it: sections[it].cut_rank):
        while total > MAX_TEXT - len(opening.encode()) - _NOTES and shown[index]:
            shown[index] -= 1
            total -= sizes[index][shown[index]]
    texts = [opening]
    for section, number in zip(sections, shown, strict=True):
        parts = list(section.entries[:number])
        if omitted := len(section.entries) - number:
            parts.append(
                f"\n{pluralize(omitted, section.noun)} of {len(section.entries)} not shown:"
                " the text would be too long."
            )
        texts.append(f"### {section.heading}\n\n{section.separator.join(parts).strip()}")
    return "\n\n".join(texts)


def _find_verb(content: RequestContent) -> ChangeVerb:
    """Return what the request does to all its packages; to update, if that differs."""
    verbs = {variant.verb for variant in content.variants}
    return content.variants[0].verb if len(verbs) == 1 else ChangeVerb.UPDATE


def _format_variants(content: RequestContent) -> Iterator[str]:
    """Yield an entry for each change of revision, with all packages that have it."""
    groups: dict[tuple[str, str], list[RequestVariant]] = {}
    for variant in content.variants:
        revisions = [it for it in dict.fromkeys((variant.old_revision, variant.revision)) if it]
        if variant.verb is ChangeVerb.REMOVE:
            revisions = revisions[:1]
        parts = [str(variant.verb), " → ".join(map(format_code, revisions))]
        detail = f"; {format_sentence(variant.detail)}" if variant.detail else ""
        groups.setdefault((" ".join(filter(None, parts)), detail), []).append(variant)
    for (change, detail), variants in groups.items():
        paths = [
            f"{format_code(it.old_path)} to {format_code(it.path)}"
            if it.old_path
            else format_code(it.path)
            for it in variants[:_MAX_PATHS]
        ]
        packages, first = ", ".join(paths), variants[0]
        if len(variants) > _MAX_PATHS:
            packages += f" and {len(variants) - _MAX_PATHS} more"
        if len(variants) == 1:
            target = first.target if first.target != first.name else ""
            packages += f" (variant {format_code(first.name)}"
            packages += f", target {format_code(target)})" if target else ")"
        yield f"* {change}: {packages}{detail}"


def _format_subject(content: RequestContent, paths: Sequence[str]) -> str:
    """Return what an entry is about, if that is not the whole request."""
    every = not paths or len(paths) == len(content.variants)
    return "" if every else f"{format_names(paths)}: "


def _format_changes(content: RequestContent) -> Iterator[str]:
    for change in content.changes:
        subject = (
            "All packages"
            if len(change.paths) == len(content.variants) > 1
            else format_names(change.paths)
        )
        parts = [f"{subject}:"]
        if change.lines:
            parts.append(format_block(change.lines, "diff"))
        if change.omitted:
            parts.append(f"Not shown: {format_sentence(change.omitted)}.")
        yield "\n\n".join(parts)


def _format_instructions(content: RequestContent) -> Iterator[str]:
    label, head = format_code(HOLD_LABEL), format_code(content.head_branch)
    namespace, _, name = content.policy.rpartition("/")
    commands = MessageCommands((("namespace", namespace),))
    subject = f"{name} --stage {content.stage}" if content.stage else name
    yield f"* Hold it: add the label {label}. Remove the label to go on."
    removes = _find_verb(content) is ChangeVerb.REMOVE
    resume = format_code(commands.complete(f"fanout resume {subject} --reason WHY"))
    newer = "" if removes else "with a newer revision, "
    yield (
        f"* Decline it: close it, or delete its branch. It comes back {newer}when it is reopened,"
        f" or with {resume}."
    )
    yield f"* Change it: commit to {head}. fanout keeps the commits of other people."
    if any(not conflict.is_decided for conflict in content.conflicts):
        resolve = format_code(
            commands.complete(f"fanout resolve {name} --take CONFLICT=local --reason WHY")
        )
        yield f"* Decide a conflict: commit to {head}, or run {resolve} (or `=upstream`)."
    for check in content.approval_checks:
        yield f"* Approve it for check {format_code(check)}: give an approving review."
    if any(item.hold.reason == Reason.AUTOMATION_OFF for item in content.holds):
        promote = format_code(commands.complete(f"fanout promote {subject} --reason WHY"))
        yield f"* Promote it: run {promote}."
    explain = format_code(commands.complete(f"fanout explain {name}"))
    yield f"* See what holds it: run {explain}."
    effect = "removes" if removes else "publishes"
    yield (
        f"* Merge it: this {effect} all its packages. If something holds it, fanout reports the"
        " merge as `OutOfBand`."
    )
