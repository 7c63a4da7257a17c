"""Variables that an expression or a template may read, and faults of those that read others."""

import re
from collections.abc import Collection
from typing import NamedTuple

from fanout.api.field_errors import suggest_name
from fanout.api.text_fields import join_words
from fanout.plan.evidence.check_readings import RESPONSE_VARIABLES as ANSWERS
from fanout.plan.pull_requests.template_variables import TEXT_VARIABLES, TITLE_VARIABLES
from fanout.reconcile.rendering.commit_templates import TEMPLATE_VARIABLES
from fanout.selection.target_selection import VARIABLES as ROLLOUT_VARIABLES
from fanout.selection.template_fields import FIRST_VARIABLES, VARIABLES

_LABEL_PATTERN = re.compile(r"(?:labels|annotations)\.[\w.-]+[/-]")
_CONDITION_PATTERN = re.compile(r"\.propagateWhen\[\d+\]")
CHECK_PATTERN = re.compile(r"\.stages\[\d+\]\.(?:verification|requires)\[\d+\]\.(\w+)\.(\w+)")
_TEMPLATE_VARIABLES = {"titleTemplate": TITLE_VARIABLES, "bodyTemplate": TEXT_VARIABLES}
ANSWER_FIELDS = frozenset({"cel", "observedRevision"})
_CHECK_VARIABLES = ("target", "upstream", "variant")
_STRING_PATTERN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_FIELD_PATTERN = re.compile(r"(?<![\w.\])])(stage|upstream|variant)\s*\.\s*([A-Za-z_]\w*)")
_PLAIN_TEXT_PATTERN = re.compile(r"[A-Za-z][-/A-Za-z0-9]*")


class DeclaredCode(NamedTuple):
    """Expression or template, and the path of its field."""

    field: str
    text: str
    is_template: bool = False

    @property
    def is_condition(self) -> bool:
        """True if it is an entry of `propagateWhen`."""
        return _CONDITION_PATTERN.search(self.field) is not None

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that it may read."""
        if self.is_template:
            return _TEMPLATE_VARIABLES.get(self.field.rpartition(".")[2], TEMPLATE_VARIABLES)
        if self.is_condition:
            return tuple(ROLLOUT_VARIABLES)
        if check_match := CHECK_PATTERN.search(self.field):
            answer = (ANSWERS[check_match[1]],) if check_match[2] in ANSWER_FIELDS else ()
            return (*answer, *_CHECK_VARIABLES)
        first = self.field.endswith(".downstream.repositoryExpr")
        return FIRST_VARIABLES if first else VARIABLES


def find_unknown(code: DeclaredCode, names: Collection[str]) -> tuple[str, str] | None:
    """Return problem and remedy of code that reads these variables, or None if it may."""
    unknown = sorted(set(names) - set(code.variables))
    if unknown:  # most often the code is text without quotes
        available = f"there are {join_words(code.variables, 'and')}"
        verb_phrase = "is not a variable" if len(unknown) == 1 else "are not variables"
        problem = f"{code.text}: {join_words(unknown, 'and')} {verb_phrase} here"
        remedy = f"{suggest_name(unknown[0], code.variables, '')} {available}".strip()
        if unknown == ["repository"] and not code.is_condition:
            problem, remedy = f"{problem}: this expression chooses the repository", available
        elif _LABEL_PATTERN.search(code.text):
            remedy = f"write such keys in brackets, as labels['a/b']; {available}"
        elif not code.is_template and _PLAIN_TEXT_PATTERN.fullmatch(code.text):
            remedy = f"if it is a string, write \"'{code.text}'\", with both quotes; {available}"
        return problem, remedy
    if not code.is_condition and not CHECK_PATTERN.search(code.field):
        return None
    # A condition that reads a field which does not exist would hold its variants forever. String
    # literals are blanked first: a text such as 'stage.dev' is no field access.
    for name, field in _FIELD_PATTERN.findall(_STRING_PATTERN.sub("''", code.text)):
        known_fields = ROLLOUT_VARIABLES[name]
        if field not in known_fields:
            available = f"there are {join_words(sorted(known_fields), 'and')}"
            remedy = f"{suggest_name(field, sorted(known_fields), '')} {available}".strip()
            return f"{code.text}: {name} has no field {field}", remedy
    return None
