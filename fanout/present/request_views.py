"""Pull requests of variants in views and explanations, as the forge shows them."""

from collections.abc import Iterable, Mapping

from fanout.api.view_base import RequestView
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant


def find_request(observed: ObservedVariant) -> RequestView | None:
    """Return the pull request with the variant's draft, or the one that a person declined."""
    forge = observed.repository_state.forge
    facts = forge.requests.get(observed.draft_ref) if forge is not None else None
    # Variants that have not joined it have the branch of their stage in common with those in it.
    if facts is None or (observed.draft is None and observed.declined is None):
        return None
    request = facts.request
    return RequestView(
        repository=observed.spec.repository,
        number=request.number,
        url=request.url,
        state=request.state.value,
    )


def list_requests(variants: Iterable[ObservedVariant]) -> tuple[RequestView, ...]:
    """Return the pull requests of these variants, each once, in the order of the variants."""
    return tuple(dict.fromkeys(it for it in map(find_request, variants) if it is not None))


def group_requests_by_stage(
    variants: Iterable[RenderedVariant],
) -> Mapping[str, tuple[RequestView, ...]]:
    """Return the pull requests with drafts of each stage, by its name."""
    by_stage: dict[str, list[ObservedVariant]] = {}
    for variant in variants:
        by_stage.setdefault(variant.spec.stage, []).append(variant.observed)
    return {stage: list_requests(several) for stage, several in by_stage.items()}
