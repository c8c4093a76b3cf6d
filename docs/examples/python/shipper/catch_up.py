"""Finds what no webhook told of: the receiver was away for longer than deliveries are repeated, or was not there yet."""

import logging
from urllib.parse import quote

from .api import Api, Refused
from .store import Store

log = logging.getLogger(__name__)


def catch_up(api: Api, store: Store) -> None:
    """Has the orders looked at of which the journal has events that no webhook told of."""
    cursor, has_more, found = store.fact("cursor"), True, 0
    while has_more:
        if cursor is None:
            return begin(api, store)
        try:
            page = api.get(f"/v1/events?limit=200&after={quote(cursor)}")
        except Refused as refusal:
            if refusal.answer.status != 400:
                raise
            # The program was away for longer than events are kept, or the marketplace has lost the last ones.
            log.warning("the journal has a gap: %s", refusal)
            cursor = None
            continue
        cursor, has_more = page["cursor"], page["has_more"]
        found += store.take([(event["id"], event["data"].get("order_id")) for event in page["items"]], cursor)
    log.info("caught up: %d events", found)


def begin(api: Api, store: Store) -> None:
    """Has all orders looked at that are to be shipped; from now on the journal tells."""
    # The end of the journal, asked for before the orders, so that nothing is between the two.
    cursor = api.get("/v1/events?since=2100-01-01T00:00:00Z")["cursor"]
    found = list(api.items("/v1/orders", {"status": "processing", "fields": "status", "limit": "200"}))
    store.look_at([order["id"] for order in found], cursor)
    log.info("caught up: %d orders to look at", len(found))
