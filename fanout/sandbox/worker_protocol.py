"""Protocol between a parent and its worker: limits, and framed requests and responses.

A frame is JSON in UTF-8 with its length in front. Requests go to stdin, responses to
stdout; the limits are the worker's first argument.
"""

import os
import select
import time
from typing import BinaryIO

from fanout.values import frozen


@frozen
class WorkerLimits:
    """Limits of one expression over a chunk of rows.

    A text that exceeds one fails for all rows.
    """

    cpu: int = 2  # seconds of processor time
    memory: int = 256  # MiB of address space on top of an idle worker's
    wall_seconds: float = 10.0  # seconds, enforced by the parent
    processes: int = 2  # workers for one batch


HEADER_SIZE = 4  # bytes of the length, most significant first
CHUNK_SIZE = 1 << 16
MAX_RESPONSE = 32 << 20


class OversizeError(Exception):
    """The response of a worker is longer than MAX_RESPONSE."""


def encode_frame(text: str) -> bytes:
    """Encode a message as a frame."""
    data = text.encode()
    return len(data).to_bytes(HEADER_SIZE, "big") + data


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read the next frame on the worker's side; None if the parent has closed the pipe."""
    header = stream.read(HEADER_SIZE)
    return stream.read(int.from_bytes(header, "big")) if len(header) == HEADER_SIZE else None


def exchange_frames(stdin_fd: int, stdout_fd: int, message: bytes, timeout: float) -> bytes:
    """Write a frame and return the response, on the parent's side.

    Raises TimeoutError after `timeout` seconds, EOFError if the worker has ended,
    OversizeError.
    """
    deadline = time.monotonic() + timeout
    unsent, response = memoryview(message), bytearray()
    # Writing and reading at once: a worker that has filled its output pipe no longer
    # reads its input.
    poll = select.poll()
    poll.register(stdout_fd, select.POLLIN)
    if unsent:
        poll.register(stdin_fd, select.POLLOUT)
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        for descriptor, _ in poll.poll(remaining * 1000):
            if descriptor == stdin_fd:
                unsent = unsent[_write_some(stdin_fd, unsent) :]
                if not unsent:
                    poll.unregister(stdin_fd)
            elif _read_some(stdout_fd, response):
                return bytes(response[HEADER_SIZE:])


def _write_some(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data[:CHUNK_SIZE])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        raise EOFError from None


def _read_some(descriptor: int, response: bytearray) -> bool:
    """Append available bytes; return whether the frame is complete."""
    chunk = os.read(descriptor, CHUNK_SIZE)
    if not chunk:
        raise EOFError
    response += chunk
    if len(response) < HEADER_SIZE:
        return False
    length = int.from_bytes(response[:HEADER_SIZE], "big")
    # Checked by the announced length, before the parent has stored the response.
    if length > MAX_RESPONSE:
        raise OversizeError
    return len(response) >= HEADER_SIZE + length
