"""Calls of a host's REST API that are parsed: one object, all pages of a list, writes."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from fanout.errors import Unavailable
from fanout.forge.answer_fields import AnswerObject, MalformedAnswer, answer_objects
from fanout.forge.forge_call import ForgeCall, ForgeResponse
from fanout.forge.forge_http import ForgeHttp
from fanout.plan.pull_requests.call_limits import CallKind

Result = TypeVar("Result")
Query = tuple[tuple[str, str], ...]

_MAX_PAGES = 200
_NOT_FOUND = frozenset({404})


class ApiClient:
    """Calls to one host that count for a policy. Every method raises what `ForgeHttp.send` does.

    An answer that has not the documented form raises Unavailable.
    """

    def __init__(
        self,
        http: ForgeHttp,
        policy: str,
        page_size: tuple[str, int],
        *,
        is_conditional: bool = False,
    ) -> None:
        """Create the calls; `page_size`: name of the parameter, and the most that a page has.

        `is_conditional`: the host counts no read of what has not changed since the last one.
        """
        self.http = http
        self._policy = policy
        self._page_size = page_size
        self._is_conditional = is_conditional

    def read_one(self, path: tuple[str, ...], read: Callable[[AnswerObject], Result]) -> Result:
        """Return what `read` makes of an object."""
        call = ForgeCall("GET", path, policy=self._policy, is_conditional=self._is_conditional)
        return self.parse(call.resource, self.http.send(call), read)

    def read_optional(
        self, path: tuple[str, ...], read: Callable[[AnswerObject], Result]
    ) -> Result | None:
        """Return what `read` makes of an object; None where the host shows none."""
        call = ForgeCall(
            "GET",
            path,
            policy=self._policy,
            expected=_NOT_FOUND,
            is_conditional=self._is_conditional,
        )
        response = self.http.send(call)
        return None if response.status == 404 else self.parse(call.resource, response, read)

    def read_all(
        self,
        path: tuple[str, ...],
        read: Callable[[AnswerObject], Result],
        *query: tuple[str, str],
        within: str = "",
        is_optional: bool = False,
    ) -> list[Result]:
        """Return all items of a list.

        `within`: field of the answer that has the list, if it is not all of it. `is_optional`: a
        list that does not exist is empty.
        """
        pages = self.read_pages(path, read, *query, within=within, is_optional=is_optional)
        return [value for page, _ in pages for value in page]

    def read_pages(
        self,
        path: tuple[str, ...],
        read: Callable[[AnswerObject], Result],
        *query: tuple[str, str],
        within: str = "",
        is_optional: bool = False,
    ) -> Iterator[tuple[list[Result], datetime | None]]:
        """Yield the items of each page, and the host's time when it answered."""
        name, size = self._page_size
        for page in range(1, _MAX_PAGES + 1):
            call = ForgeCall(
                "GET",
                path,
                (*query, (name, str(size)), ("page", str(page))),
                policy=self._policy,
                expected=_NOT_FOUND if is_optional else frozenset(),
                is_conditional=self._is_conditional,
            )
            response = self.http.send(call)
            if response.status == 404:
                return
            yield self.parse_list(call.resource, response, read, within), response.instant
            if not response.has_next_page:
                return
        raise self.malformed(call.resource, f"it has more than {_MAX_PAGES} pages")

    def write(
        self,
        method: str,
        path: tuple[str, ...],
        body: Mapping[str, Any] | None = None,
        *,
        expected: tuple[int, ...] = (),
        kind: CallKind = CallKind.WRITE,
        base: str = "",
        pool: str = "core",
    ) -> ForgeResponse:
        """Return the answer to a call with a body, for which see `ForgeCall`."""
        return self.http.send(
            ForgeCall(
                method,
                path,
                body=body,
                kind=kind,
                policy=self._policy,
                expected=frozenset(expected),
                base=base,
                pool=pool,
            )
        )

    def parse(
        self, name: str, response: ForgeResponse, read: Callable[[AnswerObject], Result]
    ) -> Result:
        """Return what `read` makes of the answer; `name`: what messages call it."""
        try:
            return read(AnswerObject(response.data))
        except MalformedAnswer as error:
            raise self.malformed(name, str(error)) from None

    def parse_list(
        self,
        name: str,
        response: ForgeResponse,
        read: Callable[[AnswerObject], Result],
        within: str = "",
    ) -> list[Result]:
        """Return what `read` makes of each item of the answer."""
        try:
            if within:
                return [read(item) for item in AnswerObject(response.data).children(within)]
            return [read(item) for item in answer_objects(response.data)]
        except MalformedAnswer as error:
            raise self.malformed(name, str(error)) from None

    def malformed(self, name: str, problem: str) -> Unavailable:
        """Return the error of an answer that is not as documented."""
        return Unavailable(
            f"{self.http.access.host} gave no usable answer to {name}: {problem}",
            reason="ForgeUnavailable",
        )


def message_of(response: ForgeResponse) -> str:
    """Return the host's sentence about a refusal; "" without one."""
    message = response.data.get("message") if isinstance(response.data, Mapping) else None
    return message if isinstance(message, str) else ""
