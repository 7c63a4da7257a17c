"""Writing of record traces: a push of its own for each repository that lacks one.

The record counts at once. What a repository cannot take is a problem of the policy, and the next
pass tries again, as after a crash between the record and its traces.
"""

from collections.abc import Iterable, Mapping

from fanout.errors import Conflict, FanoutError
from fanout.plan.records.trace_changes import DueTrace, build_trace_changes
from fanout.reconcile.world import World


def write_traces(world: World, writes: Iterable[DueTrace]) -> Mapping[str, FanoutError]:
    """Write traces; return the errors by key of the remote.

    A lost race is no error: the other process wrote its own, and the next pass reads them.
    """
    setup = world.setup
    changes = build_trace_changes(writes, setup.install, setup.identity)
    results = world.git.change(changes) if changes else {}
    return {
        key: result
        for key, result in results.items()
        if isinstance(result, FanoutError) and not isinstance(result, Conflict)
    }
