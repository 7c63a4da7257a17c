"""A function of a pipeline as policies and PackageVariants write it, as selection knows it."""

from collections.abc import Mapping

from fanout.api.pipeline import Function as Written
from fanout.selection.model import Function


def function_of(written: Written, config: Mapping[str, str]) -> Function:
    """The function, with the configuration that its expressions have come to."""
    return Function(
        image=written.image,
        name=written.name or "",
        config=config,
        exec=written.exec or "",
        tag=written.tag or "",
        config_path=written.config_path or "",
        selectors=tuple(row.conditions() for row in written.selectors),
        exclude=tuple(row.conditions() for row in written.exclude),
    )
