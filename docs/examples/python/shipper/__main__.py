"""Puts it together: `python3 -m shipper`."""

import logging
import signal
import sys
import threading
import time

from . import receiver, subscription
from .api import Api, Refused
from .catch_up import catch_up
from .sending import Unavailable
from .settings import Settings
from .shipping import Shipping
from .store import Store
from .tokens import NoToken, Tokens

log = logging.getLogger("shipper")

# After this long an order that could not be dealt with is tried again.
PAUSE_AFTER_FAILURE = 60


def run(settings: Settings) -> None:
    store = Store(settings.state)
    api = Api(settings.api_url, Tokens(settings, store))
    shipping = Shipping(api, store)
    # The receiver listens before anybody is asked to send.
    listener = receiver.listen(settings.port, store)
    threading.Thread(target=listener.serve_forever, daemon=True).start()

    next_reading = time.monotonic()
    while True:
        try:
            if time.monotonic() >= next_reading:
                subscription.ensure(api, store, settings.webhook_url)
                catch_up(api, store)
                next_reading = time.monotonic() + settings.catch_up_seconds
        except (Unavailable, Refused) as error:
            log.error("cannot catch up: %s", error)
            next_reading = time.monotonic() + PAUSE_AFTER_FAILURE
        task = store.next_task(wait=max(0, next_reading - time.monotonic()))
        if task is None:
            continue
        try:
            shipping.work(task)
        except (Unavailable, Refused) as error:
            log.error("order %s: %s", task.order_id, error)
            store.put_off(task, PAUSE_AFTER_FAILURE)


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s")
    # Whatever is under way is found again in the store at the next start.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run(Settings.from_environment())
    except KeyboardInterrupt:
        pass
    except NoToken as error:
        sys.exit(f"no token: {error}")


main()
