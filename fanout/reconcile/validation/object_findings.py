"""Errors of declared objects that no pass meets, for their statuses.

Expressions, version ranges and configurations of functions are validated once for each object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fanout.api.object_meta import KRMObject
from fanout.declared.declared_objects import DeclaredObjects, Finding, ObjectKey, key_of
from fanout.ports import Sandbox
from fanout.reconcile.validation.declaration_findings import find_function_findings
from fanout.reconcile.validation.expression_validation import validate_expressions
from fanout.values import replace

ErrorsByObject = Mapping[str, tuple[str, ...]]
"""Sentences by `Kind/namespace/name`."""


@dataclass(slots=True)
class ObjectFindings:
    """Errors of the objects that are declared now; those of an unchanged object are kept."""

    sandbox: Sandbox  # its thread is that of the caller
    _declared: DeclaredObjects = field(default_factory=DeclaredObjects)
    _errors: ErrorsByObject = field(default_factory=dict)
    # An object that says the same is the same one.
    _validated: dict[ObjectKey, tuple[KRMObject, tuple[Finding, ...]]] = field(default_factory=dict)

    def find_errors(self, declared: DeclaredObjects) -> ErrorsByObject:
        """Return the errors of usable objects; those of the others are what makes them unusable."""
        if declared is self._declared:
            return self._errors
        items = {
            key_of(it): it for it in (*declared.policies, *declared.variants, *declared.promotions)
        }
        # Only the objects that have changed are validated, and those that are gone are forgotten.
        earlier = self._validated.items()
        validated = {key: pair for key, pair in earlier if items.get(key) is pair[0]}
        changed = {key: item for key, item in items.items() if key not in validated}
        if changed:
            subset = replace(
                declared,
                policies=tuple(it for it in declared.policies if key_of(it) in changed),
                variants=tuple(it for it in declared.variants if key_of(it) in changed),
                promotions=tuple(it for it in declared.promotions if key_of(it) in changed),
                scenarios=(),
                broken=(),
            )
            findings: dict[str, list[Finding]] = {}
            of_expressions = validate_expressions(subset, self.sandbox)
            for finding in (*of_expressions, *find_function_findings(subset)):
                findings.setdefault(finding.where.object, []).append(finding)
            for key, item in changed.items():
                validated[key] = item, tuple(findings.get(declared.where(item).object, ()))
        self._validated = validated
        sentences: dict[str, dict[str, None]] = {}
        for finding in (*declared.faults, *(it for _, own in validated.values() for it in own)):
            if finding.severity == "error":
                sentences.setdefault(finding.where.object, {})[str(finding)] = None
        for left_out in declared.left_out:
            sentences.pop(f"{left_out.kind}/{left_out.namespace}/{left_out.name}", None)
        self._errors = {name: tuple(own) for name, own in sentences.items()}
        self._declared = declared
        return self._errors
