"""Prices and stock: the company's changes are sent in batches, in their order."""

import json
import logging
import time
import uuid
from itertools import islice
from pathlib import Path
from typing import Any

from .api import Api, Refused
from .sending import Unavailable
from .store import Store

log = logging.getLogger(__name__)

# More items are refused.
ITEMS_AT_ONCE = 100
# A body of more than 64 KiB is refused.
BYTES_AT_ONCE = 60_000
# A key is known for a day. Later, a repeat would be done again.
KEY_LIVES = 23 * 3600


def send_changes(api: Api, store: Store, file: Path) -> None:
    """Sends what the company's system has appended to a file: in each line an item of a batch.

    `{"id": "…", "price": {"amount": 3900, "currency": "PLN"}}` sets a price, whatever it was. `{"id": "…", "stock_adjustment": -2}`
    takes away what was sold in the shop: orders take stock at the same time, and no change gets lost. Where less is left you have
    oversold: the stock becomes 0 at once, and somebody has to settle the orders. If you count what is there instead, send `stock` with
    `if_match`, the `etag` from before the count: it is 412 if an order has come, and you count again.
    """
    while batch := json.loads(store.fact("batch") or "null") or _next_batch(store, file):
        if time.time() > batch["made_at"] + KEY_LIVES:
            # Somebody has to stop this program, compare the stock with what is there, and delete the batch from the store. If it was done,
            # `changes_done` becomes its `end`, or its lines are sent once more.
            raise Unavailable(f"nobody can tell whether this batch was done: {batch}")
        try:
            answer = api.write("/v1/offers/batch?fields=stock", batch["body"].encode(), batch["key"])
        except Refused as refusal:
            if refusal.answer.status == 400 and any(path.startswith("items") for path in refusal.paths):
                # Something in the file is wrong, so that these bytes were never done. When it is right it is read again. Any other
                # 400 says nothing about an earlier request with the key.
                store.remember(batch=None)
            raise
        oversold = []
        for change, item in zip(json.loads(batch["body"])["items"], answer["items"]):
            if item["http_status"] != 200:
                log.error("offer %s was not changed: %s", item["id"], item["errors"])
                codes = [error["code"] for error in item["errors"]]
                if change.get("stock_adjustment", 0) < 0 and "stock_out_of_range" in codes:
                    # The item's other changes, such as a price, were not made either. They are made now, unless one of them was refused too.
                    # Cancelling the orders that cannot be met gives back all their pieces: then the counted stock has to be sent.
                    left = {"id"} if len(codes) > 1 else change.keys() - {"stock_adjustment", "if_match"}
                    oversold.append({name: change[name] for name in change if name in left} | {"stock": 0})
        store.remember(batch=json.dumps(_batch(oversold, batch["end"])), changes_done=str(batch["end"]))
        log.info("%d changes of offers were sent", len(answer["items"]))


def _next_batch(store: Store, file: Path) -> Any:
    """The lines that follow, stored with a key before they are sent; None if there are none."""
    if not file.exists():
        return None
    begin = end = int(store.fact("changes_done") or 0)
    if file.stat().st_size < end:
        # To begin a new file, stop this program, see that everything was sent, and delete `changes_done` from the store.
        raise Unavailable(f"{file} is shorter than what was sent of it")
    items: dict[str, Any] = {}
    with file.open("rb") as lines:
        lines.seek(end)
        for line in islice(lines, ITEMS_AT_ONCE):
            # The last line may not be whole yet.
            if not line.endswith(b"\n"):
                break
            try:
                item = json.loads(line)
                offer = item["id"]
                if not isinstance(offer, str):
                    raise TypeError("its id is no text")
            except (ValueError, TypeError, KeyError) as error:
                if not items:
                    raise Unavailable(f"{file} has no change of an offer at byte {end}: {error!r}") from error
                break  # What stands before it is sent.
            # Another change of an offer belongs to the next batch.
            if offer in items:
                break
            if items and end + len(line) - begin > BYTES_AT_ONCE:
                break
            items[offer] = item
            end += len(line)
    if batch := _batch(list(items.values()), end):
        store.remember(batch=json.dumps(batch))
    return batch


def _batch(items: list[Any], end: int) -> Any:
    """A batch with its key; None without items."""
    body = json.dumps({"items": items}, ensure_ascii=False)
    return {"key": str(uuid.uuid4()), "body": body, "made_at": time.time(), "end": end} if items else None
