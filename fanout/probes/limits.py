"""How much an answer may be, and how long everything may take."""

from fanout.values import frozen


@frozen
class Limits:
    """A service that is slow or talks too much is a service that gave no answer."""

    seconds: float = 10.0  # for one question, redirects included; half of it to connect
    batch_seconds: float = 60.0  # for all questions that are asked together
    size: int = 1 << 20  # bytes of an answer
    at_once: int = 8
    redirects: int = 3  # and never to another host
