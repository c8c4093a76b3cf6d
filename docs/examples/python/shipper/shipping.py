"""The work: orders are read as they are now, and brought on their way if they are paid."""

import json
import logging
import uuid
from typing import Any

from .api import Api, Refused
from .sending import PAUSE_AFTER_FAILURE, Unavailable
from .store import Parcel, Store, Task
from .tokens import NoToken

log = logging.getLogger(__name__)


class Shipping:
    def __init__(self, api: Api, store: Store) -> None:
        self._api, self._store = api, store

    def work(self, tasks: list[Task]) -> None:
        """Looks at orders. A webhook tells that something happened; the order itself tells what is to be done."""
        orders: dict[str, Any] = {}
        unread = [task.order_id for task in tasks if self._store.parcel(task.order_id) is None]
        if unread:
            # All with one request, which the limit counts.
            page = self._api.get(f"/v1/orders?ids={','.join(unread)}")
            orders = {order["id"]: order for order in page["items"]}
        for task in tasks:
            try:
                self._ship(task, orders.get(task.order_id))
            except Exception as error:
                if isinstance(error, NoToken) or (isinstance(error, Refused) and error.answer.status == 403):
                    # Without a token, or the scope that the answer names, no other order is shipped either.
                    raise
                # Whatever it is, such as an order that cannot be packed, it delays no other order.
                log.error("order %s: %s", task.order_id, error, exc_info=not isinstance(error, (Unavailable, Refused)))
                self._store.put_off(task, PAUSE_AFTER_FAILURE)

    def _ship(self, task: Task, order: Any) -> None:
        parcel = self._store.parcel(task.order_id)
        if parcel is None:
            status = order["status"] if order else "not there"
            if status != "processing":
                # Not paid yet: its `order.paid` will come. Otherwise there is nothing left to do.
                log.info("order %s is %s", task.order_id, status)
                return self._over(task)
            if order["shipped_by"] == "marketplace":
                log.info("order %s is shipped by the marketplace", task.order_id)
                return self._over(task)
            # Key and bytes are stored before they are sent. After a crash the very same request is sent again: then the answer
            # tells what became of the first one.
            parcel = Parcel(task.order_id, str(uuid.uuid4()), json.dumps(pack(order)).encode())
            self._store.keep(parcel)
        try:
            shipment = self._api.write(f"/v1/orders/{task.order_id}/shipments", parcel.body, parcel.idempotency_key)
        except Refused as refusal:
            if refusal.answer.status == 400 and any(refusal.paths):
                # These bytes were never done. When `pack` is mended the order is packed again.
                self._store.forget(task.order_id)
            if refusal.answer.status != 409:
                raise
            return self._conflict(task, parcel, refusal.answer.error_codes()[0])
        self._over(task)
        log.info("order %s is shipped: %s %s", task.order_id, shipment["carrier_name"], shipment["tracking_number"])

    def _conflict(self, task: Task, parcel: Parcel, code: str) -> None:
        """The order is not what it was when it was read: read it again, and decide."""
        order = self._api.get(f"/v1/orders/{task.order_id}")
        number = order["order_number"]
        if code == "order_unpaid":
            log.info("order %s is not paid after all", number)
            return self._store.put_off(task, PAUSE_AFTER_FAILURE)
        if code == "already_shipped":
            shipment, ours = order["shipment"], json.loads(parcel.body)["tracking_number"]
            if shipment and shipment["tracking_number"] == ours:
                log.info("order %s is shipped already, by ourselves", number)
            else:
                log.warning("order %s was shipped by somebody else: keep parcel %s back", number, ours)
        elif code == "order_cancelled":
            log.warning("order %s was cancelled: keep its parcel back", number)
        elif code == "multi_seller_order":
            # The parcel is kept, so that the order is not packed again.
            log.info("order %s holds other sellers' items too: the marketplace ships it", number)
            return self._store.done(task)
        else:
            log.error("order %s cannot be shipped: %s", number, code)
        self._over(task)

    def _over(self, task: Task) -> None:
        self._store.forget(task.order_id)
        self._store.done(task)


def pack(order: Any) -> dict[str, str]:
    """Stands for the warehouse: it packs `order["items"]` for `order["shipping_address"]` and names the parcel.

    After a crash it may be asked again: it names the same parcel. For an order with `is_test` it sends no goods.
    """
    return {"carrier": "other", "tracking_number": "PARCEL-" + order["id"].replace("-", "")}
