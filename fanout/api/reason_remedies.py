"""Cause and remedy of every reason, from the tables of both groups."""

from collections.abc import Mapping

from fanout.api.error_remedies import ERROR_REMEDIES
from fanout.api.gate_remedies import GATE_REMEDIES
from fanout.api.reasons import Reason, Remedy

REMEDIES: Mapping[Reason, Remedy] = {**GATE_REMEDIES, **ERROR_REMEDIES}
