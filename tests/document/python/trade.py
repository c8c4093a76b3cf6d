"""A whole trade over the client that openapi-python-client made of the document.

The first line of stdin says where the API is and whose program this is.
"""

import base64
import json
import sys
import uuid
from typing import TypeVar

from seller_api_client import AuthenticatedClient
from seller_api_client.api.account import get_me
from seller_api_client.api.authorization import issue_token, revoke_token
from seller_api_client.api.offers import list_offers, update_offer
from seller_api_client.api.orders import get_order, list_orders
from seller_api_client.api.shipments import create_shipment
from seller_api_client.api.webhooks import create_webhook, delete_webhook, list_webhook_deliveries, list_webhooks
from seller_api_client.models import (
    Carrier,
    CreateShipmentConflictCode,
    CreateShipmentConflictError,
    Currency,
    GrantType,
    Me,
    NewPrice,
    NewShipment,
    NewWebhook,
    NotFoundCode,
    NotFoundError,
    Offer,
    OfferPage,
    OfferStatus,
    OfferUpdate,
    Order,
    OrderPage,
    OrderStatus,
    RevocationRequest,
    Scope,
    Shipment,
    TokenRequest,
    TokenResponse,
    UnauthorizedError,
    UpdateOfferUnprocessableCode,
    UpdateOfferUnprocessableError,
    WebhookCreated,
    WebhookDeliveryList,
    WebhookEvent,
    WebhookList,
)
from seller_api_client.types import UNSET, Unset

AGENT = "PythonTrade/1.0"
T = TypeVar("T")

asked = json.loads(sys.stdin.readline())


def a(kind: type[T], answer: object) -> T:
    """The answer, which is of this kind and no other."""
    assert isinstance(answer, kind), answer
    return answer


def there(value: T | None) -> T:
    """A field that is not null."""
    assert value is not None
    return value


def client(credentials: str, scheme: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=asked["base_url"], token=credentials, prefix=scheme, raise_on_unexpected_status=True)


basic = base64.b64encode(f"{asked['client_id']}:{asked['client_secret']}".encode()).decode()
application = client(basic, "Basic")
request = TokenRequest(GrantType.CLIENT_CREDENTIALS)
token = a(TokenResponse, issue_token.sync(client=application, body=request)).access_token
api = client(token, "Bearer")

me = a(Me, get_me.sync(client=api, user_agent=AGENT))
assert me.app.client_id == asked["client_id"]
assert Scope.SHIPMENTSWRITE in me.scopes

# Offers, page by page.
offers: list[Offer] = []
after: str | Unset = UNSET
while True:
    page = a(OfferPage, list_offers.sync(client=api, user_agent=AGENT, limit=7, after=after))
    offers += page.items
    if page.next_ is None:
        break
    after = page.next_
assert len(offers) > 7 and len({offer.id for offer in offers}) == len(offers), offers

# A change that is sent twice happens once.
stocked = next(offer for offer in offers if offer.status is OfferStatus.PUBLISHED and offer.stock is not None)
key, change = str(uuid.uuid4()), OfferUpdate(stock=there(stocked.stock) + 1)


def changed() -> tuple[Offer, str | None]:
    answer = update_offer.sync_detailed(str(stocked.id), client=api, user_agent=AGENT, idempotency_key=key, body=change)
    return a(Offer, answer.parsed), answer.headers.get("Idempotent-Replayed")


first, repeated = changed(), changed()
assert first[0].stock == there(stocked.stock) + 1
assert repeated[0] == first[0]
assert (first[1], repeated[1]) == (None, "true")

# What may be null says so, and nothing else has to be checked.
prices: list[int] = [offer.price.amount for offer in offers if offer.price is not None]
assert prices

# A refusal has a type: its codes are an enumeration.
unpriced = next(offer for offer in offers if offer.price is None)
refusal = update_offer.sync_detailed(
    str(unpriced.id), client=api, user_agent=AGENT, body=OfferUpdate(price=NewPrice(100, Currency.PLN))
)
refused = a(UpdateOfferUnprocessableError, refusal.parsed)
assert [entry.code for entry in refused.errors] == [UpdateOfferUnprocessableCode.NO_PRICE_ROW]
assert refused.trace_id == refusal.headers["X-Trace-Id"]

# Whoever is to hear of shipments subscribes.
subscription = a(
    WebhookCreated,
    create_webhook.sync(
        client=api,
        user_agent=AGENT,
        idempotency_key=str(uuid.uuid4()),
        body=NewWebhook("http://127.0.0.1:9/hooks", [WebhookEvent.ORDER_SHIPPED]),
    ),
)
assert len(subscription.secret) > 20
listed = a(WebhookList, list_webhooks.sync(client=api, user_agent=AGENT))
assert subscription.id in [webhook.id for webhook in listed.items]


def ship(order: str, parcel: str) -> object:
    return create_shipment.sync(
        order,
        client=api,
        user_agent=AGENT,
        idempotency_key=str(uuid.uuid4()),
        body=NewShipment(Carrier.INPOST, parcel),
    )


def read(order: str) -> Order:
    return a(Order, get_order.sync(order, client=api, user_agent=AGENT))


# An order that waits to be shipped, of this seller's items alone.
paid = a(OrderPage, list_orders.sync(client=api, user_agent=AGENT, status=OrderStatus.PROCESSING, limit=200))
for candidate in paid.items:
    order = read(str(candidate.id))
    assert order.status is OrderStatus.PROCESSING and there(order.buyer).email
    answer = ship(str(order.id), "TRANSIT0001")
    if isinstance(answer, CreateShipmentConflictError):
        assert answer.errors[0].code is CreateShipmentConflictCode.MULTI_SELLER_ORDER
        continue
    shipment = a(Shipment, answer)
    break
else:
    raise AssertionError("there is an order to ship")
assert shipment.order_id == order.id and shipment.carrier is Carrier.INPOST
known = read(str(order.id))
assert known.status is OrderStatus.SHIPPED
assert there(known.shipment).tracking_number == "TRANSIT0001"
again = a(CreateShipmentConflictError, ship(str(order.id), "TRANSIT0002"))
assert again.errors[0].code is CreateShipmentConflictCode.ALREADY_SHIPPED

deliveries = a(WebhookDeliveryList, list_webhook_deliveries.sync(str(subscription.id), client=api, user_agent=AGENT))
assert [delivery.event for delivery in deliveries.items] == [WebhookEvent.ORDER_SHIPPED]

# What is gone is a 404 that can be told from others by its code.
gone = delete_webhook.sync_detailed(str(subscription.id), client=api, user_agent=AGENT)
assert gone.status_code == 204
missing = a(NotFoundError, delete_webhook.sync(str(subscription.id), client=api, user_agent=AGENT))
assert missing.errors[0].code is NotFoundCode.NOT_FOUND

assert revoke_token.sync_detailed(client=application, body=RevocationRequest(token)).status_code == 200
a(UnauthorizedError, get_me.sync(client=api, user_agent=AGENT))
print("traded")
