"""Finds what no webhook told of: the receiver was away for longer than deliveries are repeated, or was not there yet."""

import logging
from datetime import datetime, timedelta

from .api import Api
from .store import Store

log = logging.getLogger(__name__)

# A change becomes visible a moment after the time it is noted with.
OVERLAP = timedelta(seconds=60)


def catch_up(api: Api, store: Store) -> None:
    """Reads the orders that have changed since the last reading, and has those looked at that are to be shipped."""
    query = {"status": "processing", "fields": "status", "limit": "200"}
    since = store.fact("caught_up_to")
    if since:
        query["updated_after"] = since
    begun: datetime | None = None
    found: list[str] = []
    for answered_at, orders in api.pages("/v1/orders", query):
        # By the service's clock, not by this machine's. What changes while the pages are read is found by the next reading.
        begun = begun or answered_at
        found += [order["id"] for order in orders]
    store.look_at(found)
    # Only now: if the reading breaks off, the next one begins where this one did.
    if begun is not None:
        store.remember(caught_up_to=(begun - OVERLAP).isoformat())
    log.info("caught up: %d orders to look at", len(found))
