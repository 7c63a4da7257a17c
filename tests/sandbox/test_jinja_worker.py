"""Jinja in children: what templates yield, and what they cannot reach."""

import pytest

from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.metrics import Counters

ROW = {"policy": {"name": "monitoring"}, "variants": ["a", "b"], "n": 2}


@pytest.fixture(scope="module")
def sandbox():
    limits = WorkerLimits(cpu=1, memory=128, wall_seconds=0.6, processes=1)
    with ProcessSandbox(limits, Counters()) as opened:
        yield opened


FILLED = [
    ("a field", "Promote {{ policy.name }}", "Promote monitoring"),
    ("lines of tags go", "{% for v in variants %}\n- {{ v }}\n{% endfor %}\n", "- a\n- b\n"),
    ("an indented tag", "x\n  {% if n == 2 %}\ny\n  {% endif %}\n", "x\ny\n"),
    ("the newline at the end stays", "a\n", "a\n"),
    ("a filter", "{{ variants | join(', ') | upper }}", "A, B"),
    ("no escaping: it is no HTML", "{{ '<b>' }}", "<b>"),
    ("a default", "{{ nothing | default('none') }}", "none"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "text", "value"), FILLED, ids=[row[0] for row in FILLED])
def test_filled(sandbox, sentence, text, value):
    assert sandbox.render([text], [ROW]) == [[value]]


LOOP = "{% for a in range(99999) %}"
BROKEN = [
    ("reaching for __class__", "{{ ''.__class__.__mro__ }}", "ExpressionError", "__class__"),
    ("__class__ by a filter", "{{ ''|attr('__class__') }}", "ExpressionError", "attr"),
    ("__class__ by format", "{{ '{0.__class__}'.format(n) }}", "ExpressionError", "__class__"),
    ("a function's globals", "{{ range.__globals__ }}", "ExpressionError", "__globals__"),
    ("changing what was passed", "{{ variants.append('c') }}", "ExpressionError", "append"),
    ("an undeclared name", "{{ polcy.name }}", "ExpressionError", "'polcy' is undefined"),
    ("a missing field", "{{ policy.nam }}", "ExpressionError", "'nam'"),
    ("a huge range", "{{ range(10000000) | join }}", "ExpressionError", "OverflowError"),
    ("a multiplied string", "{{ 'x' * 1000000000 }}", "LimitExceeded", "longer than"),
    ("a multiplied list", "{{ [1] * 1000000000 }}", "LimitExceeded", "longer than"),
    ("texts that double", "{% set a = 'x' * 600000 %}{{ a + a }}", "LimitExceeded", "longer than"),
    ("a high power", "{{ 9 ** 9999999 }}", "LimitExceeded", "a power is higher"),
    ("loops that write", LOOP * 2 + "x" * 50 + "{% endfor %}" * 2, "LimitExceeded", "longer than"),
    ("a text filled up", "{{ 'x'.ljust(1000000000) }}", "LimitExceeded", "of memory"),
    ("a long string", "{{ 'x' * 2000000 }}", "LimitExceeded", "longer than"),
    ("endless loops", LOOP * 3 + "{% endfor %}" * 3, "LimitExceeded", "took longer"),
    ("another file", "{% include 'x' %}", "ExpressionError", "cannot be filled"),
    ("a syntax error", "a\n{% if %}", "ExpressionError", "syntax error in the template's line 2"),
    ("chance", "{{ variants | random }}", "ExpressionError", "random"),
    ("filler text", "{{ lipsum() }}", "ExpressionError", "'lipsum' is undefined"),
    ("too long a template", "x" * 70_000, "LimitExceeded", "70000 characters"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "text", "reason", "problem"), BROKEN, ids=[row[0] for row in BROKEN]
)
def test_broken(sandbox, sentence, text, reason, problem):
    (broken,), fine = sandbox.render([text, "{{ n }}"], [ROW])
    assert isinstance(broken, ExpressionFailure)
    assert broken.reason == reason
    assert problem in broken.problem
    assert fine == ["2"]
