"""Memo of answers of one account of a host, for reads that ask only for what has changed.

A host that sends ETags answers 304 where nothing has, which GitHub does not count in the limit of
the hour. The tags of GitHub depend on the token: after a new one each answer is sent in full once.
"""

from fanout.forge.forge_call import ForgeCall, ForgeResponse

_MAX_BYTES = 16 << 20


class AnswerMemo:
    """Answers with an ETag, by path and query; those used least recently are dropped first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        """Keep no answer yet; `max_bytes` of content at most."""
        self._max_bytes = max_bytes
        self._answers: dict[str, tuple[ForgeResponse, int]] = {}
        self._bytes = 0

    def find(self, call: ForgeCall) -> ForgeResponse | None:
        """Return the last answer to a conditional read, or None."""
        entry = self._answers.pop(call.address, None) if call.is_conditional else None
        if entry is None:
            return None
        self._answers[call.address] = entry
        return entry[0]

    def keep(self, call: ForgeCall, response: ForgeResponse, size: int) -> None:
        """Keep an answer in place of the last one; `size` in bytes."""
        if not call.is_conditional:
            return
        _, freed = self._answers.pop(call.address, (None, 0))
        self._bytes -= freed
        if not response.etag or size > self._max_bytes:
            return
        self._answers[call.address] = response, size
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, freed = self._answers.pop(next(iter(self._answers)))
            self._bytes -= freed
