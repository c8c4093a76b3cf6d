"""Puts it together: `python3 -m shipper`."""

import logging
import os
import signal
import sqlite3
import sys
import threading
import time
from typing import Callable

from . import receiver, subscription
from .api import Api, Refused
from .catch_up import catch_up
from .offers import send_changes
from .sending import PAUSE_AFTER_FAILURE, Unavailable
from .settings import Settings
from .shipping import Shipping
from .store import Store
from .tokens import NoToken, Tokens

log = logging.getLogger("shipper")

CHANGES_PAUSE = 5


def work_for(seller: str, settings: Settings, store: Store) -> None:
    """Starts the work for one seller, in threads of its own: while it waits, all others go on."""
    api = Api(settings.api_url, Tokens(settings, store, settings.sellers[seller]))
    shipping = Shipping(api, store)

    def find() -> None:
        try:
            subscription.ensure(api, store, f"{settings.webhook_url}/{seller}")
        except Refused as refusal:
            # Without webhooks the journal tells the same, a little later.
            log.error("there is no subscription: %s", refusal)
        catch_up(api, store)

    def ship() -> None:
        shipping.work(store.next_tasks())

    def change() -> None:
        if settings.changes:
            send_changes(api, store, settings.changes / f"{seller}.jsonl")

    for act, pause in ((find, settings.catch_up_seconds), (ship, 0), (change, CHANGES_PAUSE)):
        threading.Thread(target=again_and_again, args=(act, pause), name=seller, daemon=True).start()


def again_and_again(act: Callable[[], None], pause: float) -> None:
    while True:
        try:
            act()
            time.sleep(pause)
        except Exception as error:
            # Trouble of one seller, such as a consent that is over, or a fault of this program: begin again with what the store has.
            log.error("%s", error, exc_info=not isinstance(error, (Unavailable, Refused, NoToken)))
            time.sleep(PAUSE_AFTER_FAILURE)


def main() -> None:
    # What is stored holds tokens: nobody else on this machine may read it.
    os.umask(0o077)
    form = "%(asctime)s %(levelname)s %(threadName)s: %(message)s"
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format=form)
    # Whatever is under way is found again in the store at the next start.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings.from_environment()
    settings.state.mkdir(parents=True, exist_ok=True)
    stores: dict[str, Store] = {}
    for seller in settings.sellers:
        try:
            stores[seller] = Store(settings.state / f"{seller}.db")
        except sqlite3.Error as error:
            log.error("%s is left out, because its store cannot be read: %s", seller, error)
    if not stores:
        sys.exit(1)
    # The receiver listens before anybody is asked to send.
    listener = receiver.listen(settings.port, stores)
    for seller, store in stores.items():
        work_for(seller, settings, store)
    try:
        listener.serve_forever()
    except KeyboardInterrupt:
        pass


main()
