"""Layout of the text of a pull request: its sections in the order in which reviewers ask.

A text that is too long is cut by whole entries of its sections, changes of files first,
conflicts and gates last. What is long is folded.
"""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent
from typing import Final

from fanout.api.durations import format_instant
from fanout.api.promotion_policy import MergeMethod
from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.message_commands import MessageCommands
from fanout.plan.pull_requests.markdown_text import (
    format_block,
    format_cell,
    format_code,
    format_fold,
    format_foreign_link,
    format_link,
    format_names,
    format_sentence,
)
from fanout.plan.pull_requests.object_changes import PackageDifference
from fanout.plan.pull_requests.request_holds import HOLD_LABEL
from fanout.plan.pull_requests.request_values import RequestContent, RequestVariant, StageLine
from fanout.plan.rendered_variant import ChangeVerb
from fanout.values import Value, replace

MAX_TEXT: Final = 60_000  # bytes; GitHub takes 65,536 characters, and people add theirs
NOTES: Final = 1_000  # bytes for the sentences about what was left out
_MAX_PATHS: Final = 50  # of packages with equal changes
_FOLDED_PATHS: Final = 8  # more of them are folded
_MAX_SUBJECTS: Final = 3  # names of objects with an equal change
_MAX_AUTHORS: Final = 5
_FOLDED_COMMITS: Final = 8  # those after them are folded
_FOLDED_LINES: Final = 40  # a longer patch is folded
_SHORT_ID: Final = 10  # hex digits of a commit
_STAGES: Final = "| Stage | Revision | Ready | Since | Evidence |\n|---|---|---|---|---|"


class _Section(Value):
    """Section of a text: entries under a heading, of which the last ones may be left out."""

    heading: str
    noun: str  # for an entry that is left out
    entries: tuple[str, ...]
    cut_rank: int  # sections of a lower rank are cut before others
    separator: str = "\n"
    lead: str = ""  # before the first entry that is shown


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
    checks: list[str] = []
    for item in content.checks:
        result, subject = item.result, _format_subject(content, item.paths)
        sentence = f": {format_sentence(result.message)}" if result.message else ""
        since = f", since {format_code(format_instant(result.at))}" if result.at else ""
        checks.append(f"* {subject}{format_code(result.name)} {result.verdict}{since}{sentence}")
    siblings = [
        f"* {format_code(it.repository)}: {format_link(f'pull request {it.number}', it.url)},"
        f" {it.state}"
        for it in content.siblings
    ]
    if content.omitted_siblings:
        siblings.append(f"* and {content.omitted_siblings} more")
    provenance = [
        f"* Package {format_code(it.package)} of {format_code(it.repository)},"
        f" revision {format_code(it.revision)}, commit {format_code(it.commit)}"
        for it in content.upstreams
    ]
    provenance.append(f"* Installation: {format_code(content.install)}")
    # In the order in which reviewers ask; what may be long, and what they know, is last.
    sections = [
        _Section("What changes", "change", tuple(_format_changed(content)), 11),
        _Section("Packages", "entry", tuple(_format_variants(content)), 2),
        _Section("Why", "history", tuple(_format_histories(content)), 4, "\n\n"),
        _Section("Where it is already", "stage", tuple(_format_stages(content)), 8, lead=_STAGES),
        _Section("What it waits for", "entry", tuple(_format_holds(content)), 12),
        _Section("Checks", "check", tuple(checks), 9),
        _Section("The same stage elsewhere", "entry", tuple(siblings), 5),
        _Section(
            "Undecided merge conflicts",
            "undecided conflict",
            tuple(_format_conflicts(content, is_decided=False)),
            13,
        ),
        _Section(
            "Decided merge conflicts",
            "decided conflict",
            tuple(_format_conflicts(content, is_decided=True)),
            10,
        ),
        _Section(
            "Difference", "change", tuple(_format_changes(content, is_metadata=False)), 1, "\n\n"
        ),
        _Section(
            "Kptfile and package context",
            "change",
            tuple(_format_changes(content, is_metadata=True)),
            0,
            "\n\n",
        ),
        _Section("What you can do", "entry", tuple(_format_instructions(content)), 6),
        _Section("Where it comes from", "entry", tuple(provenance), 3),
    ]
    return "\n\n".join([opening, *_cut_sections(sections, MAX_TEXT - len(opening.encode()))])


def without_siblings(content: RequestContent) -> RequestContent:
    """Return the content without the state of its own stage and the requests of that stage.

    What is published there is no reason to write the texts of all its requests.
    """
    return replace(
        content,
        siblings=(),
        omitted_siblings=0,
        stages=tuple(
            StageLine(name=it.name, is_own=True) if it.is_own else it for it in content.stages
        ),
    )


def _cut_sections(sections: Iterable[_Section], limit: int) -> Iterator[str]:
    """Yield the sections that have entries, in as many bytes as the limit allows.

    Entries are left out from the end of a section, until it has none; then of the next rank.
    """
    present = [section for section in sections if section.entries]
    shown = [len(section.entries) for section in present]
    sizes = [[len(entry.encode()) + 2 for entry in section.entries] for section in present]
    total = sum(map(sum, sizes))
    total += sum(len(section.heading) + len(section.lead) + 10 for section in present)
    for index in sorted(range(len(present)), key=lambda it: present[it].cut_rank):
        while total > limit - NOTES and shown[index]:
            shown[index] -= 1
            total -= sizes[index][shown[index]]
    for section, number in zip(present, shown, strict=True):
        parts = list(section.entries[:number])
        if section.lead and parts:
            parts.insert(0, section.lead)
        if omitted := len(section.entries) - number:
            parts.append(
                f"\n{pluralize(omitted, section.noun)} of {len(section.entries)} not shown:"
                " the text would be too long."
            )
        yield f"### {section.heading}\n\n{section.separator.join(parts).strip()}"


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
        if len(variants) > _FOLDED_PATHS:
            fold = indent(format_fold("Their paths", packages), "  ")
            yield f"* {change}: {len(variants)} packages{detail}\n{fold}"
            continue
        if len(variants) == 1:
            target = first.target if first.target != first.name else ""
            packages += f" (variant {format_code(first.name)}"
            packages += f", target {format_code(target)})" if target else ")"
        yield f"* {change}: {packages}{detail}"


def _format_subject(content: RequestContent, paths: Sequence[str]) -> str:
    """Return what an entry is about, if that is not the whole request."""
    every = not paths or len(paths) == len(content.variants)
    return "" if every else f"{format_names(paths)}: "


def _format_changed(content: RequestContent) -> Iterator[str]:
    """Yield an entry for each change of objects and files, with the packages that have it."""
    every = len(content.variants)
    for item in content.changed:
        line = f"* {format_difference(item.difference)}"
        number = len(item.paths)
        if number == every > 1:
            line += f" (each of {number} packages)"
        elif every > 1:
            count = f"{number} packages: " if number > 1 else ""
            line += f" ({count}{format_names(item.paths)})"
        yield line


def format_difference(difference: PackageDifference) -> str:
    """Return a difference in objects and files in Markdown of one line."""
    phrases: list[str] = []
    for it in difference.fields:
        subject = f" of {format_names(it.subjects, _MAX_SUBJECTS)}" if it.subjects else ""
        if it.old and it.new:
            phrases.append(f"{it.label}{subject} {_format_side(it.old)} → {_format_side(it.new)}")
        else:
            verb = "removed" if it.old else "added"
            phrases.append(f"{it.label}{subject} {_format_side(it.old or it.new)} {verb}")
    if difference.omitted_fields:
        phrases.append(f"{difference.omitted_fields} more fields")
    phrases += [
        f"{pluralize(number, count.noun)} {verb}"
        for count in difference.counts
        for number, verb in (
            (count.added, "added"),
            (count.removed, "removed"),
            (count.changed, "changed"),
        )
        if number
    ]
    return ", ".join(phrases) or "nothing but Kptfile and package context"


def _format_side(value: str) -> str:
    return value if value.isascii() and value.isdecimal() and len(value) < 7 else format_code(value)


def _format_histories(content: RequestContent) -> Iterator[str]:
    """Yield upstream's commits between two revisions as one entry."""
    for it in content.histories:
        revision = format_link(format_code(it.revision), it.tag_url)
        span = f"{format_code(it.old_revision)} → {revision}" if it.old_revision else revision
        number = len(it.commits) + it.omitted
        line = f"{format_code(it.package)} {span}"
        if it.old_revision:
            least = "at least " if it.is_cut else ""
            commits = pluralize(number, "commit") if number else "no commit touches the package"
            line += f": {'takes back ' if it.is_backward and number else ''}{least}{commits}"
        if it.authors:
            more = len(it.authors) - _MAX_AUTHORS
            authors = ", ".join(map(format_sentence, it.authors[:_MAX_AUTHORS]))
            line += f" by {authors}{f' and {more} more' if more > 0 else ''}"
        if it.compare_url:
            line += f" ({format_link('compare', it.compare_url)})"
        rows = [
            f"* {format_link(format_code(commit.commit[:_SHORT_ID]), commit.url)}"
            f" {format_sentence(commit.subject)} ({format_sentence(commit.author)})"
            for commit in it.commits
        ]
        if it.omitted:
            rows.append(f"* and {'at least ' if it.is_cut else ''}{it.omitted} more")
        shown = "\n".join(rows[:_FOLDED_COMMITS])
        if len(rows) > _FOLDED_COMMITS + 1:
            rest = "\n".join(rows[_FOLDED_COMMITS:])
            shown += f"\n\n{format_fold('Earlier commits', rest)}"
        elif len(rows) > _FOLDED_COMMITS:
            shown = "\n".join(rows)
        yield "\n\n".join(filter(None, (line, shown)))


def _format_stages(content: RequestContent) -> Iterator[str]:
    """Yield the row of each stage of the policy."""
    for row in content.stages:
        evidence = ", ".join(
            f"{format_foreign_link(format_code(it.check), it.url)} {it.verdict}"
            for it in row.evidence
        )
        cells = (
            f"{format_code(row.name)}{' (this request)' if row.is_own else ''}",
            ", ".join(map(format_code, row.revisions)),
            row.readiness,
            format_code(format_instant(row.since)) if row.since is not None else "",
            evidence,
        )
        yield f"| {' | '.join(map(format_cell, cells))} |"


def _format_holds(content: RequestContent) -> Iterator[str]:
    if not content.holds:
        yield "* Nothing: the gates are open."
    for it in content.holds:
        hold, subject = it.hold, _format_subject(content, it.paths)
        sentence = f"* {subject}{format_sentence(hold.message)} ({format_code(hold.reason)})."
        if hold.until is not None:
            sentence += f" Until {format_code(format_instant(hold.until))}."
        yield sentence + (f" Who can act: {format_sentence(hold.who)}." if hold.who else "")


def _format_conflicts(content: RequestContent, *, is_decided: bool) -> Iterator[str]:
    for it in content.conflicts:
        if it.is_decided is is_decided:
            yield f"* {format_names(it.paths)}: {format_sentence(it.message)}"


def _format_changes(content: RequestContent, *, is_metadata: bool) -> Iterator[str]:
    """Yield the patch of each change, which is folded if it is long."""
    for change in content.changes:
        if change.is_metadata is not is_metadata:
            continue
        subject = (
            "All packages"
            if len(change.paths) == len(content.variants) > 1
            else format_names(change.paths)
        )
        parts = [f"{subject}:"]
        if change.lines:
            block = format_block(change.lines, "diff")
            if is_metadata or len(change.lines) > _FOLDED_LINES:
                block = format_fold(pluralize(len(change.lines), "line"), block)
            parts.append(block)
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
