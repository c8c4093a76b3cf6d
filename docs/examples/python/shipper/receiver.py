"""The receiver of webhooks: verifies, stores, answers. The work is done elsewhere."""

import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .store import Store

log = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
# In seconds.
CLOCK_DIFFERENCE = 5 * 60

# The sellers of whom the last delivery was rejected. Only the first of a row is logged: strangers could send many.
rejected: set[str] = set()


def is_genuine(secret: str, headers: Message, body: bytes) -> bool:
    """Verifies both signatures over the bytes as they came: JSON that was parsed and printed again is other bytes."""
    own = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return is_equal(own, headers.get("X-Signature", "")) and is_of_now(secret, headers, body)


def is_of_now(secret: str, headers: Message, body: bytes) -> bool:
    """Verifies the signature of Standard Webhooks. It covers the time, so that nobody can repeat a delivery later."""
    given, sent_at = headers.get("webhook-signature", ""), headers.get("webhook-timestamp", "")
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > CLOCK_DIFFERENCE:
        return False
    signed = f"{headers.get('webhook-id')}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
    # While a secret is replaced there is one signature for each.
    return any(is_equal(expected, signature) for signature in given.split(" "))


def is_equal(expected: str, given: str) -> bool:
    """Takes as long whatever is given, which tells nothing of what is expected."""
    return hmac.compare_digest(expected.encode(), given.encode())


def listen(port: int, stores: dict[str, Store]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        # Whoever is slower than this is no marketplace.
        timeout = 10

        def do_POST(self) -> None:
            # Each seller's subscription has a path and a secret of its own.
            seller = self.path.rpartition("/")[2]
            store = stores.get(seller)
            if store is None:
                return self.answer(404)
            threading.current_thread().name = seller
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > LARGEST_BODY:
                return self.answer(413)
            body = self.rfile.read(int(length))
            secret = store.fact("webhook_secret")
            if secret is None:
                return self.answer(503)
            if not is_genuine(secret, self.headers, body):
                if seller not in rejected:
                    log.warning("a delivery was rejected: its signature is wrong, or a clock")
                rejected.add(seller)
                return self.answer(401)
            rejected.discard(seller)
            delivery = json.loads(body)
            data = delivery["data"]
            # Events and fields may be added: what has no order is taken and left alone. A test event's order exists nowhere.
            order_id = None if data.get("test") else data.get("order_id")
            is_new = store.take([(data.get("event_id", delivery["id"]), order_id)])
            log.info("%s %s of %s", delivery["event"], "came" if is_new else "came again", order_id)
            self.answer(204)

        def answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
