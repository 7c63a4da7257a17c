"""Functions of packages in directories: allowed programs, and a pipeline run."""

from fanout.cli.input.package_directory import DEFAULT_LIMITS
from fanout.cli.settings import Settings
from fanout.cli.startup import build_function_runner, load_configuration
from fanout.package.merge.package_update import FileContent, Files
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.sandbox.function_runner import find_allowed_programs
from fanout.telemetry.metrics import Counters
from fanout.values import frozen, replace
from fanout.variants.functions.function_interface import FunctionResult
from fanout.variants.package_rendering import render_package
from fanout.variants.pending_inputs import AllowedPrograms


@frozen
class PackageFunctions:
    """Programs that the configuration allows, and the loop that runs them on request."""

    programs: AllowedPrograms
    answering: FunctionResultCache


def load_package_functions(settings: Settings) -> PackageFunctions:
    """Return the function runtime that the file of --config describes.

    Raises InvalidInput.
    """
    configuration = load_configuration(settings)
    allowed = configuration.functions
    runner = build_function_runner(configuration, Counters())
    return PackageFunctions(find_allowed_programs(allowed), FunctionResultCache(runner))


def run_pipeline(
    files: Files, runtime: PackageFunctions
) -> tuple[dict[str, FileContent], tuple[FunctionResult, ...]]:
    """Run the package's own pipeline and return its new files and function results.

    Runs only programs that the function runtime allows. Raises InvalidInput with file and
    line inside the package.
    """
    limits = replace(DEFAULT_LIMITS, programs=runtime.programs)
    return runtime.answering.run_until_answered(
        lambda answers: render_package(files, limits, answers)
    )
