"""Readings of checks that machines answer: objects, HTTP services, Prometheus servers, forges.

What is asked of a service is a query, with a response or a failure.

Pure: values of expressions and answers of probes are requested as pending inputs. What cannot be
probed or read yields a pending reading (docs/concepts/checks.md). `gates` turns readings into
verdicts.
"""

import json
import re
from collections.abc import Collection, Mapping

from fanout.api.field_errors import InvalidValue
from fanout.api.gate_vocabulary import CheckMethod, Verdict
from fanout.api.stages import HttpCheck, MachineCheck, ObjectCheck, PrometheusCheck
from fanout.api.urls import check_http_url
from fanout.gates.gate_facts import CheckReading
from fanout.pending_inputs import ExpressionRequest, Responses, get_response, get_responses
from fanout.plan import plan_wording
from fanout.plan.evidence.due_checks import DueCheck, list_namespaces
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.selection.cluster_objects import ClusterObjectIndex, group_of, version_of
from fanout.selection.variant_spec import ExpressionFailure

# Variables of `cel` and `observedRevision`, by method.
RESPONSE_VARIABLES: Mapping[str, str] = {
    CheckMethod.OBJECT: "object",
    CheckMethod.PROMETHEUS: "result",
    CheckMethod.HTTP: "response",
}
_COMMIT = re.compile(r"(?:.*[@:/])?([0-9a-f]{40})", re.DOTALL)
_NO_TEXT = "yields no text"
_MAX_REVISION = 128  # characters of an observed revision
_INDEX = re.compile(r"\bresult\s*\[")
_MAX_QUOTED = 120  # characters of quoted foreign text in a message


def read_check(
    due_check: DueCheck,
    objects: ClusterObjectIndex,
    responses: Responses,
    readable_namespaces: Collection[str] = (),
) -> CheckReading:
    """Return the reading of a due check.

    Objects are read in the policy's namespace, without a namespace, and in readable ones.
    Raises InputPending while an expression or a probe has no response.
    """
    check = due_check.check
    namespace = check.object.namespace if check.object is not None else None
    # Before anything is looked up: the answer must not depend on what is there.
    if namespace and namespace not in (due_check.namespace, *readable_namespaces):
        sentence = plan_wording.describe_unreadable_namespace(namespace, due_check.namespace)
        return pending_reading(due_check, sentence)
    if due_check.reading is not None:
        return due_check.reading
    subject, answer = _build_probe(due_check, objects, responses)
    if isinstance(answer, ProbeQuery):
        answer = get_response(answer, responses)
    if isinstance(answer, ProbeFailure):
        return pending_reading(due_check, answer.message)
    if problem := unusable_response(due_check, answer):
        return pending_reading(due_check, problem)
    machine_check = _machine_check_of(due_check)
    variables = {**due_check.variables, RESPONSE_VARIABLES[check.method]: answer.value}
    answer_texts = [machine_check.cel, *filter(None, [machine_check.observed_revision])]
    outcome, *observed = get_responses(
        [ExpressionRequest(text, variables) for text in answer_texts], responses
    )
    return build_reading(due_check, subject, answer, outcome, observed[0] if observed else None)


def _build_probe(
    due_check: DueCheck, objects: ClusterObjectIndex, responses: Responses
) -> tuple[str, ProbeQuery | ProbeResponse | ProbeFailure]:
    """Return the subject of a check for messages, and its probe, or the answer without one.

    The address or object of the check may come from expressions.
    """
    check = _machine_check_of(due_check)
    match check:
        case ObjectCheck():
            expressions = [check.name_expr]
        case PrometheusCheck():
            expressions = [check.address_expr, check.query_expr]
        case HttpCheck():
            expressions = [check.url_expr]
    texts = list(dict.fromkeys(filter(None, expressions)))
    requests = [ExpressionRequest(text, due_check.variables) for text in texts]
    values = dict(zip(texts, get_responses(requests, responses), strict=True))
    for text, value in values.items():
        if not isinstance(value, str) or not value:
            problem = _expression_problem(text, value, _NO_TEXT)
            return due_check.check.method.value, ProbeFailure(problem)
    match check:
        case ObjectCheck():
            name = check.name or values[check.name_expr or ""]
            group, version = group_of(check.api_version), version_of(check.api_version)
            namespaces = list_namespaces(check, due_check.namespace)
            for namespace in namespaces:
                observed_object = objects.get(group, check.kind, namespace, name, version)
                if observed_object is not None:
                    title = (
                        f"{check.kind} {namespace}/{name}" if namespace else f"{check.kind} {name}"
                    )
                    return title, ProbeResponse(observed_object)
            title = f"{check.kind} {namespaces[0]}/{name}"
            return title, ProbeFailure(f"there is no {title}")
        case PrometheusCheck():
            address = check.address or values[check.address_expr or ""]
            query = check.query or values[check.query_expr or ""]
            secret = check.secret_ref.name if check.secret_ref else ""
            probe = ProbeQuery(url=address, query=query, secret=secret)
            subject = f"the query to {address}"
        case HttpCheck():
            url = check.url or values[check.url_expr or ""]
            probe = ProbeQuery(
                url=url,
                method=check.method.value,
                headers=tuple(sorted(check.headers.items())),
                body="" if check.body is None else json.dumps(check.body, sort_keys=True),
                secret=check.secret_ref.name if check.secret_ref else "",
            )
            subject = url.partition("?")[0]
    # The rules for declared addresses hold for those that an expression yields, too.
    try:
        check_http_url(probe.url)
    except InvalidValue as error:
        return subject, ProbeFailure(f"{error.problem}; {error.remedy}")
    return subject, probe


def _machine_check_of(due_check: DueCheck) -> MachineCheck:
    machine_check = due_check.check.machine_check
    assert machine_check is not None, "statuses of commits are read from the forge's state"
    return machine_check


def unusable_response(due_check: DueCheck, response: ProbeResponse) -> str:
    """Return why a response is unusable for any expression, or "" if it is usable.

    The order of the series in a vector is arbitrary, so an index would choose one by chance.
    """
    machine_check, series = _machine_check_of(due_check), response.value
    if due_check.check.method is not CheckMethod.PROMETHEUS or not isinstance(series, list):
        return ""
    texts = (machine_check.cel, machine_check.observed_revision or "")
    if len(series) > 1 and any(_INDEX.search(text) for text in texts):
        return (
            f"the query yields {len(series)} series in arbitrary order, so an index selects any of"
            " them; aggregate in the query, or use result.all(...)"
        )
    return ""


def build_reading(
    due_check: DueCheck, subject: str, response: ProbeResponse, outcome: object, observed: object
) -> CheckReading:
    """Build the reading of a response.

    `outcome` is the value of the expression `cel`, `observed` that of `observedRevision`. A value
    that is not a boolean makes the reading pending, and so does a revision that cannot be read.
    """
    machine_check = _machine_check_of(due_check)
    if machine_check.observed_revision is not None and not (isinstance(observed, str) and observed):
        problem = _expression_problem(
            machine_check.observed_revision, observed, _NO_TEXT, response.note
        )
        return pending_reading(due_check, f"{subject}: the observed revision is unknown: {problem}")
    if not isinstance(outcome, bool):
        problem = _expression_problem(
            machine_check.cel, outcome, "is neither true nor false", response.note
        )
        return pending_reading(due_check, f"{subject}: {problem}")
    sentence = f"{subject}: {_shorten(machine_check.cel)} is {'true' if outcome else 'false'}"
    if not outcome:
        # Most controllers write why into the Ready condition of an object.
        try:
            conditions = response.value["status"]["conditions"]
            message = next(it["message"] for it in conditions if it.get("type") == "Ready")
        except (KeyError, TypeError, AttributeError, StopIteration):
            message = ""
        if isinstance(message, str) and (shown := _shorten(message)):
            sentence += f"; its Ready condition says: {shown}"
    verdict = Verdict.PASSED if outcome else Verdict.FAILED
    commit = parse_commit(observed) if isinstance(observed, str) else ""
    # A controller that applies a draft branch reports the draft's commit, which
    # stands for the upstream revision that the draft was rendered for.
    if commit and commit == due_check.draft_commit:
        commit = str(due_check.variables["upstream"]["revision"])
    return CheckReading(due_check.check.name, due_check.digest, verdict, sentence, commit)


def pending_reading(due_check: DueCheck, sentence: str) -> CheckReading:
    """Build a pending reading, with the reason why there is no answer."""
    return CheckReading(due_check.check.name, due_check.digest, Verdict.PENDING, sentence)


def parse_commit(observed: str) -> str:
    """Parse the commit in an observed revision; without one, return the text, cut.

    Flux writes `main@sha1:<commit>`, earlier `main/<commit>`; Argo CD the commit alone.
    """
    text = observed.strip()
    match = _COMMIT.fullmatch(text)
    return match[1] if match else text[:_MAX_REVISION]


def _expression_problem(text: str, value: object, complaint: str, note: str = "") -> str:
    if not isinstance(value, ExpressionFailure):
        return f"{_shorten(text)} {complaint}"
    return f"{_shorten(text)}: {value.problem}{f'; {note}' if note else ''}"


def _shorten(text: str) -> str:
    """Return the text on one line; the middle is cut, since branches differ at the end."""
    line = " ".join(text.split())
    half = _MAX_QUOTED // 2
    return line if len(line) <= _MAX_QUOTED else f"{line[:half]}…{line[-half:]}"
