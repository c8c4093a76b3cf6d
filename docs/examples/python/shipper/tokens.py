"""Access tokens: got once, kept, renewed when they end."""

import base64
import json
import logging
import random
import threading
import time
import uuid
from urllib.parse import quote, urlencode

from . import sending
from .settings import Settings
from .store import Store

log = logging.getLogger(__name__)

# A token is renewed at about half of its 12 hours: if that fails, work goes on with it.
MARGINS = (5 * 3600, 6 * 3600)
# It is not used in its last minutes: it would end on its way.
LAST_MINUTES = 5 * 60
# How long a refusal with a `reason` stands: until somebody has looked the answer is the same, and the calls a minute are those of all
# sellers.
REFUSED_FOR = 3600
# How long a refresh can be repeated under its key. Later, a second use ends the consent.
FORMER_WORKS = 23 * 3600


class NoToken(Exception):
    """The credentials are wrong, or the seller's consent is over: somebody has to look."""


class Tokens:
    """The tokens of one seller."""

    def __init__(self, settings: Settings, store: Store, given: str | None) -> None:
        self._settings, self._store = settings, store
        # One refresh at a time.
        self._lock = threading.Lock()
        self._next_try = 0.0
        self._refusal: NoToken | None = None
        self._refused_until = 0.0
        # Not for all sellers at once: few calls a minute are allowed.
        self._margin = random.uniform(*MARGINS)
        known = store.fact("refresh_given")
        if given and given != known:
            facts = {"refresh_given": given}
            # Of a store that does not know what was given, the token may be a later one.
            if known or not store.fact("refresh_token"):
                facts |= {"refresh_token": given, "access_token": None, "refresh_key": None, "formers": None}
            store.remember(**facts)

    def current(self) -> str:
        with self._lock:
            token = self._store.fact("access_token")
            left = float(self._store.fact("access_token_ends") or 0) - time.time()
            if token and left > (self._margin if time.monotonic() >= self._next_try else LAST_MINUTES):
                return token
            try:
                return self._renew()
            except (sending.Unavailable, NoToken) as error:
                # The access token may work although no other one is given: after a rotation of the secret, for instance.
                if token and left > LAST_MINUTES:
                    log.warning("going on with the old token: %s", error)
                    self._next_try = time.monotonic() + sending.PAUSE_AFTER_FAILURE
                    return token
                raise

    def instead_of(self, refused: str) -> str:
        """A token in place of one that was answered 401. Another thread may have got it already."""
        with self._lock:
            token = self._store.fact("access_token")
            return token if token and token != refused else self._renew()

    def _renew(self) -> str:
        if self._refusal and time.monotonic() < self._refused_until:
            raise self._refusal
        refresh_token = self._store.fact("refresh_token")
        # A second use of a refresh token is taken for theft, unless it comes with the key of the first: then it has the first one's
        # answer. So the key is stored before the call, and kept until the answer is. The other grant ignores it.
        key = self._store.fact("refresh_key") or str(uuid.uuid4())
        self._store.remember(refresh_key=key)
        # If the marketplace's database was set back, the token is unknown, and one before works again, under its own key.
        former = [one for one in json.loads(self._store.fact("formers") or "[]") if time.time() < one[2]]
        tries = [(refresh_token, key), *((token, key) for token, key, _ in former)]
        for older, (refresh_token, key) in enumerate(tries):
            if refresh_token:
                form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
            else:
                form = {"grant_type": "client_credentials"}
            headers = self._headers() | {"Idempotency-Key": key}
            answer = sending.send("POST", f"{self._settings.api_url}/oauth/token", headers, urlencode(form).encode())
            if (answer.body or {}).get("reason") != "unknown":
                break
        if answer.status != 200:
            refusal = NoToken(f"no token: {answer.status} {json.dumps(answer.body)}")
            if "reason" in (answer.body or {}):
                self._refusal, self._refused_until = refusal, time.monotonic() + REFUSED_FOR
            raise refusal
        token: str = answer.body["access_token"]
        # Stored before anything else is done: the old refresh token is used up.
        self._store.remember(
            access_token=token,
            access_token_ends=str(time.time() + answer.body["expires_in"]),
            refresh_token=answer.body.get("refresh_token"),
            refresh_key=None,
            formers=json.dumps([[refresh_token, key, time.time() + FORMER_WORKS], *former[older:]]) if refresh_token else None,
        )
        log.info("got a token by %s", form["grant_type"])
        return token

    def _headers(self) -> dict[str, str]:
        # RFC 6749 §2.3.1: both halves are form-encoded before they are joined.
        pair = f"{quote(self._settings.client_id, safe='')}:{quote(self._settings.client_secret, safe='')}"
        return {
            "Authorization": "Basic " + base64.b64encode(pair.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
