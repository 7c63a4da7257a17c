"""How much an expression or template may take before its process is ended."""

from fanout.values import frozen


@frozen
class Limits:
    """For one expression over a chunk of rows; what exceeds one of them is Broken for all rows."""

    cpu: int = 2  # seconds of processor time
    memory: int = 256  # MiB of address space on top of what an idle child has
    wall: float = 10.0  # seconds, enforced by the parent
    processes: int = 2  # children that work on one batch at the same time
