"""Which checks are to be asked of machines in a pass, what about, and what their answers come to.

Pure: whoever asks hands the answers in as data. How readings become verdicts is `gates.machine`'s.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fanout.api.checks import Check, HttpCheck, ObjectCheck, PrometheusCheck
from fanout.api.stages import Stage
from fanout.gates.facts import Reading
from fanout.gates.rules import Variables, Verdict, Way
from fanout.plan.cases import Case
from fanout.plan.probe import Heard, Unheard
from fanout.selection.model import Broken
from fanout.values import frozen

# What `cel` and `observedRevision` see of the answer, by way.
VARIABLES: Mapping[str, str] = {
    Way.OBJECT: "object",
    Way.PROMETHEUS: "result",
    Way.HTTP: "response",
}
_COMMIT = re.compile(r"(?:.*[@:/])?([0-9a-f]{40})", re.DOTALL)
_REVISION = 128  # characters that the name of one has at most
_INDEX = re.compile(r"\bresult\s*\[")
_LONGEST = 120  # characters of what somebody else wrote, in a sentence of ours

Answer = Heard | Unheard
Asked = ObjectCheck | PrometheusCheck | HttpCheck


@frozen
class Due:
    """One check of one variant, what it is about, and what its expressions see."""

    variant: str
    check: Check
    digest: str
    row: Variables
    namespace: str  # of the policy
    repository: str  # the downstream Repository
    draft: str = ""  # the commit of the draft that it is about

    @property
    def way(self) -> Way:
        """How it is asked."""
        return way_of(self.check)

    @property
    def asked(self) -> Asked | None:
        """What is asked; None where it is the forge that knows."""
        return self.check.object or self.check.prometheus or self.check.http


def way_of(check: Check) -> Way:
    """How the check is answered; approvals are no check of a machine."""
    for way, said in (
        (Way.OBJECT, check.object),
        (Way.PROMETHEUS, check.prometheus),
        (Way.HTTP, check.http),
        (Way.COMMIT_STATUS, check.commit_status),
    ):
        if said is not None:
            return way
    return Way.REPORT


def machine_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Those that a machine answers."""
    return tuple(it for it in checks if it.approval is None and way_of(it) is not Way.REPORT)


def asks_machines(stage: Stage) -> bool:
    """Is there anything in the stage to ask a machine about?"""
    return bool(machine_checks(stage.verification) or machine_checks(stage.requires))


def due(
    stages: Sequence[Stage],
    cases: Sequence[Case],
    variables: Mapping[str, Variables],
    now: datetime,
) -> Iterator[Due]:
    """What is to be asked: about what is published, and about drafts that are released.

    A check is asked while the revision is there, also when it has passed: it may fail later.
    """
    asking = {
        stage.name: (machine_checks(stage.verification), machine_checks(stage.requires))
        for stage in stages
    }
    for case in cases:
        verification, requires = asking.get(case.spec.stage, ((), ()))
        known, draft, grant = case.published, case.draft, case.line.grant
        if verification and known is not None:
            yield from _about(case, verification, variables, (known.revision, known.digest), now)
        if requires and draft is not None and grant is not None and case.granted:
            about = draft.trailers.revision, draft.trailers.digest
            yield from _about(case, requires, variables, about, now)


def _about(
    case: Case,
    checks: Sequence[Check],
    variables: Mapping[str, Variables],
    about: tuple[str, str],
    now: datetime,
) -> Iterator[Due]:
    revision, digest = about
    known, grant = case.published, case.line.grant
    published = known is not None and (known.revision, known.digest) == about
    since = known.at if known is not None and published else grant.at if grant else now
    row = dict(variables.get(case.spec.name, {}))
    row["upstream"] = {**row.get("upstream", {}), "revision": revision}
    for check in checks:
        if now >= since + (check.settle or timedelta(0)):
            commit = case.draft.commit if case.draft is not None and not published else ""
            spec = case.spec
            yield Due(spec.name, check, digest, row, spec.namespace, spec.repository, commit)


def unusable(item: Due, heard: Heard) -> str:
    """Why nothing is made of an answer before any expression looks at it; "": it is looked at.

    The order of a vector's series says nothing, so an index would choose one by chance.
    """
    asked = item.asked
    series = len(heard.value) if item.way is Way.PROMETHEUS and isinstance(heard.value, list) else 1
    if asked is None or series < 2:
        return ""
    texts = (asked.cel, asked.observed_revision or "")
    if any(_INDEX.search(text) for text in texts):
        return (
            f"the query yields {series} series, and which one is meant by an index is chance;"
            " aggregate in the query, or use result.all(...)"
        )
    return ""


def reading(item: Due, subject: str, heard: Heard, said: object, seen: object) -> Reading:
    """What an answer comes to: `said` is what `cel` yields, `seen` what `observedRevision` does.

    What is neither true nor false holds; so does a revision that cannot be read.
    """
    asked = item.asked
    assert asked is not None, "an answer that came was asked for"
    if asked.observed_revision is not None and not (isinstance(seen, str) and seen):
        why = _why(asked.observed_revision, seen, "yields no text", heard)
        return pending(item, f"{subject}: which revision it has seen is not known: {why}")
    if not isinstance(said, bool):
        return pending(
            item, f"{subject}: {_why(asked.cel, said, 'is neither true nor false', heard)}"
        )
    words = f"{subject}: {_short(asked.cel)} is {'true' if said else 'false'}"
    if not said and (message := _own_words(heard.value)):
        words = f"{words}; it says: {message}"
    verdict = Verdict.PASSED if said else Verdict.FAILED
    commit = commit_of(seen) if isinstance(seen, str) else ""
    if commit and commit == item.draft:
        commit = str(item.row["upstream"]["revision"])
    return Reading(item.check.name, item.digest, verdict, words, commit)


def pending(item: Due, sentence: str) -> Reading:
    """No answer, and why."""
    return Reading(item.check.name, item.digest, Verdict.PENDING, sentence)


def commit_of(seen: str) -> str:
    """The commit in what a controller says it has seen, or else the text itself: a revision.

    Flux writes `main@sha1:<commit>`, before that `main/<commit>`; Argo CD the commit alone.
    """
    text = seen.strip()
    found = _COMMIT.fullmatch(text)
    return found[1] if found else text[:_REVISION]


def _why(text: str, value: object, odd: str, heard: Heard) -> str:
    if isinstance(value, Broken):
        problem = f"{_short(text)}: {value.problem}"
        return f"{problem}; {heard.note}" if heard.note else problem
    return f"{_short(text)} {odd}"


def _own_words(value: Any) -> str:
    """The message of an object's condition Ready, which most controllers write."""
    try:
        conditions = value["status"]["conditions"]
        message = next(it["message"] for it in conditions if it.get("type") == "Ready")
    except (KeyError, TypeError, AttributeError, StopIteration):
        return ""
    return _short(message) if isinstance(message, str) else ""


def _short(text: str) -> str:
    """On one line, and where it is long with its end, in which branches differ."""
    line = " ".join(text.split())
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]}…{line[-half:]}"
