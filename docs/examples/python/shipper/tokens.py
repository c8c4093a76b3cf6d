"""Access tokens: got once, kept, renewed when they end."""

import base64
import json
import logging
import threading
import time
from urllib.parse import quote, urlencode

from . import sending
from .settings import Settings
from .store import Store

log = logging.getLogger(__name__)

# A token is renewed at half of its 12 hours: if the answer is lost, work goes on with it.
MARGIN = 6 * 3600
# It is not used in its last minutes: it would end on its way.
LAST_MINUTES = 5 * 60


class NoToken(Exception):
    """The credentials are wrong, or the seller's consent is over: somebody has to look."""


class Tokens:
    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        # One refresh at a time: a refresh token that comes a second time is taken for stolen.
        self._lock = threading.Lock()
        given, known = settings.refresh_token, store.fact("refresh_given")
        if given and given != known:
            facts = {"refresh_given": given}
            # Of a store that does not know what was given, the token may be a later one.
            if known or not store.fact("refresh_token"):
                facts |= {"refresh_token": given, "access_token": None, "refresh_sent": None}
            store.remember(**facts)

    def current(self) -> str:
        with self._lock:
            token = self._store.fact("access_token")
            left = float(self._store.fact("access_token_ends") or 0) - time.time()
            sent = self._store.fact("refresh_sent")
            # A refresh token without an answer may be used up, and a second use would end the access token too.
            is_lost = sent is not None and sent == self._store.fact("refresh_token")
            if token and left > (LAST_MINUTES if is_lost else MARGIN):
                return token
            try:
                return self._renew()
            except (sending.Lost, NoToken) as error:
                # The access token may work although no other one is given: after a rotation of the secret, for instance.
                if token and left > LAST_MINUTES:
                    log.warning("no new token: %s", error)
                    return token
                raise

    def instead_of(self, refused: str) -> str:
        """A token in place of one that was answered 401. Another thread may have got it already."""
        with self._lock:
            token = self._store.fact("access_token")
            return token if token and token != refused else self._renew()

    def _renew(self) -> str:
        refresh_token = self._store.fact("refresh_token")
        if refresh_token:
            form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
            self._store.remember(refresh_sent=refresh_token)
        else:
            form = {"grant_type": "client_credentials"}
        # A refresh that failed (429, 500, 503) has used nothing up, so `send` may repeat it. A lost one may have.
        url = f"{self._settings.api_url}/oauth/token"
        answer = sending.send("POST", url, self._headers(), urlencode(form).encode(), repeats_lost=not refresh_token)
        if answer.status != 200:
            raise NoToken(f"{answer.status} {json.dumps(answer.body)}")
        token: str = answer.body["access_token"]
        # Stored before anything else is done: the old refresh token is used up.
        self._store.remember(
            access_token=token,
            access_token_ends=str(time.time() + answer.body["expires_in"]),
            refresh_token=answer.body.get("refresh_token"),
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
