"""One HTTP request, sent as often as it takes to get an answer that means something."""

import http.client
import json
import logging
import random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from typing import Any

log = logging.getLogger(__name__)

USER_AGENT = "PythonShipper/1.0 (+https://shipper.example/docs)"
# The service may take 30 s to find out whether its database has committed.
TIMEOUT = 35
ATTEMPTS = 6
LONGEST_PAUSE = 60
# After this long what could not be done is tried again.
PAUSE_AFTER_FAILURE = 60


class Unavailable(Exception):
    """There was no answer that means something: try the whole thing again later."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: Any

    def error_codes(self) -> list[str]:
        """The codes of an error of /v1; none where the answer is a good one, or somebody else's."""
        return [error["code"] for error in (self.body or {}).get("errors", [])]


def send(method: str, url: str, headers: dict[str, str], body: bytes | None) -> Answer:
    """Sends a read, a deletion, or a write with an Idempotency-Key: a lost answer may mean that it was carried out, and it is sent again."""
    pause = 1.0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            answer = _send_once(method, url, headers, body)
        except (OSError, http.client.HTTPException) as error:
            reason, asked = f"no answer: {error}", None
        else:
            if not _is_passing(answer):
                return answer
            reason, asked = f"answered {answer.status}", answer.headers.get("Retry-After")
        if attempt == ATTEMPTS:
            break
        # The service knows best how long to wait. Where it says nothing, wait longer each time, and not in step with others.
        seconds = float(asked) if asked and asked.isdigit() else pause * random.uniform(0.5, 1)
        log.info("%s %s: %s, again in %.1f s", method, url, reason, seconds)
        time.sleep(seconds)
        pause = min(pause * 2, LONGEST_PAUSE)
    raise Unavailable(f"{method} {url}: {reason}")


def _is_passing(answer: Answer) -> bool:
    if answer.status == 409:
        return "idempotency_in_progress" in answer.error_codes()
    # A success that is not JSON is somebody else's, such as a proxy's page: nothing tells what became of the request.
    if answer.status < 300 and answer.status != 204:
        return answer.body is None
    return answer.status in (408, 429) or answer.status >= 500


def _send_once(method: str, url: str, headers: dict[str, str], body: bytes | None) -> Answer:
    request = urllib.request.Request(url, method=method, data=body, headers={"User-Agent": USER_AGENT, **headers})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return _answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _answer(refusal.code, refusal.headers, refusal.read())


def _answer(status: int, headers: Message, body: bytes) -> Answer:
    is_json = headers.get_content_type() == "application/json"
    # What is in between, such as a proxy, may answer a 502 in HTML.
    try:
        return Answer(status, headers, json.loads(body) if is_json else None)
    except ValueError:
        # A proxy's error, cut short.
        return Answer(status, headers, None)
