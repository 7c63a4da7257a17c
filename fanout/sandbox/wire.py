"""Questions and answers between a parent and its child: JSON, the length in front."""

import os
import select
import time
from typing import BinaryIO

HEAD = 4  # bytes of the length, most significant first
PIECE = 1 << 16
LONGEST_ANSWER = 32 << 20


class OversizeError(Exception):
    """A child's answer is longer than a parent is willing to hold."""


def frame(text: str) -> bytes:
    """A message as it goes through the pipe."""
    data = text.encode()
    return len(data).to_bytes(HEAD, "big") + data


def receive(stream: BinaryIO) -> bytes | None:
    """The next message on the child's side; None when the parent has gone."""
    head = stream.read(HEAD)
    return stream.read(int.from_bytes(head, "big")) if len(head) == HEAD else None


def exchange(to_child: int, from_child: int, message: bytes, seconds: float) -> bytes:
    """Write a message and read the answer, on the parent's side.

    TimeoutError: it took too long. EOFError: the child has gone. OversizeError: too much came.
    """
    deadline = time.monotonic() + seconds
    unsent, answer = memoryview(message), bytearray()
    poll = select.poll()
    poll.register(from_child, select.POLLIN)
    if unsent:
        poll.register(to_child, select.POLLOUT)
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        for descriptor, _ in poll.poll(left * 1000):
            if descriptor == to_child:
                unsent = unsent[_write(to_child, unsent) :]
                if not unsent:
                    poll.unregister(to_child)
            elif _read(from_child, answer):
                return bytes(answer[HEAD:])


def _write(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data[:PIECE])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        raise EOFError from None


def _read(descriptor: int, answer: bytearray) -> bool:
    """Append what is there; true when the message is complete."""
    piece = os.read(descriptor, PIECE)
    if not piece:
        raise EOFError
    answer += piece
    if len(answer) < HEAD:
        return False
    length = int.from_bytes(answer[:HEAD], "big")
    if length > LONGEST_ANSWER:
        raise OversizeError
    return len(answer) >= HEAD + length
