"""A package's own pipeline, run on its files: what the verbs on plain directories render."""

from fanout.cli.directories import LIMITS
from fanout.cli.workshop import Workshop
from fanout.package.merge.packages import Content, Files
from fanout.values import replace
from fanout.variants.functions.function import Result
from fanout.variants.own_pipeline import own_pipeline


def rendered(files: Files, tools: Workshop) -> tuple[dict[str, Content], tuple[Result, ...]]:
    """The package after its pipeline, and what the functions had to say.

    Programs are run as the workshop allows. Raises InvalidInput with file and line inside the
    package.
    """
    limits = replace(LIMITS, programs=tools.programs)
    return tools.answering.through(lambda answers: own_pipeline(files, limits, answers))
