"""What functions had to say about the drafts of a pass: their warnings, once for all variants."""

from collections.abc import Sequence

from fanout.reconcile.report import PolicyPass

_NAMED = 3  # variants that one sentence has room for


def spoken(passes: Sequence[PolicyPass]) -> list[str]:
    """A sentence for each warning, and for which variants it was given."""
    said: dict[tuple[str, str], list[str]] = {}
    for item in passes:
        for case in item.cases:
            for result in case.rendered.results if case.rendered else ():
                if result.severity == "warning":
                    key = (item.named.name, result.sentence)
                    said.setdefault(key, []).append(case.spec.name)
    return [
        f"{policy}: {sentence} ({_listed(variants)})"
        for (policy, sentence), variants in said.items()
    ]


def _listed(variants: Sequence[str]) -> str:
    names = ", ".join(variants[:_NAMED])
    rest = len(variants) - _NAMED
    return f"{names} and {rest} more" if rest > 0 else names
