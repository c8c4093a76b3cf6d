"""Calls to /v1 with a token."""

from typing import Any, Iterator
from urllib.parse import urlencode

from . import sending
from .sending import Answer
from .tokens import Tokens


class Refused(Exception):
    """An answer that this program has no use for."""

    def __init__(self, answer: Answer) -> None:
        # With its trace id somebody at the marketplace can find the request.
        super().__init__(f"{answer.status} {answer.body}")
        self.answer = answer
        # The fields of the request that are wrong.
        self.paths: list[str] = [error.get("path", "") for error in (answer.body or {}).get("errors", [])]


class Api:
    def __init__(self, base_url: str, tokens: Tokens) -> None:
        self._base_url, self._tokens = base_url, tokens

    def get(self, path: str) -> Any:
        return self._good(self._call("GET", path, {}, None))

    def write(self, path: str, body: bytes, idempotency_key: str) -> Any:
        """A POST that is done once, however often it is sent: the same key has to come with the same bytes."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
        return self._good(self._call("POST", path, headers, body))

    def delete(self, path: str) -> None:
        answer = self._call("DELETE", path, {}, None)
        # A repeat, after a lost answer, finds nothing.
        if answer.status != 404:
            self._good(answer)

    def items(self, path: str, query: dict[str, str]) -> Iterator[Any]:
        """The items of a list, page by page."""
        after: str | None = None
        while True:
            page = self.get(f"{path}?{urlencode(query | ({'after': after} if after else {}))}")
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def _call(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Answer:
        token = self._tokens.current()
        answer = self._send(method, path, headers, body, token)
        if answer.status == 401:
            # It was revoked, or ended early. Once: if the new one is refused too, more tokens do not help.
            answer = self._send(method, path, headers, body, self._tokens.instead_of(token))
        return answer

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None, token: str) -> Answer:
        return sending.send(method, self._base_url + path, headers | {"Authorization": f"Bearer {token}"}, body)

    @staticmethod
    def _good(answer: Answer) -> Any:
        if answer.status >= 300:
            raise Refused(answer)
        return answer.body
