//! Operations on orders as one seller sees them: read, list.

use kernel::{Page, StoreError};
use oauth::Scope;
use orders::{
    OrderFilter, OrderId, OrderRef, OrderStatus, PaymentStatus, SellerOrder, Shipment, TrackingStatus,
};
use web::openapi::{Docs, JsonBody, Parameter};
use web::operation::{Call, Incoming, Read};
use web::query;
use web::reply::Reply;
use web::resources::{
    BuyerView, DeliveryPointView, InvoiceView, OrderItemView, ShippingAddressView, order_status,
};
use web::schema::{Node, array, boolean, date_time, string, uri, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Error, Problem, Violations};

use crate::Public;
use crate::documents::{docs, example};
use crate::page::{self, List, PageRequest};
use crate::shipments::carrier_code;

/// Reads the seller's part of an order by id or number, including test orders.
pub(crate) struct ReadOrder(OrderRef);

impl Read<Public> for ReadOrder {
    const SCOPE: &'static [Scope] = &[Scope::OrdersRead];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(OrderView::schema, example!("order"))),
        ..docs!("getOrder", "Orders")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let order = call.state.orders.order(call.caller.reader(), &self.0).await?;
        let order = order.ok_or_else(Problem::not_found)?;
        Reply::ok(&OrderView::new(&order, call.fields))
    }
}

/// Lists a page of the seller's orders without test orders, or those with some ids, newest first.
pub(crate) struct ListOrders {
    filter: OrderFilter,
    page: PageRequest<OrderId>,
}

impl Read<Public> for ListOrders {
    const SCOPE: &'static [Scope] = &[Scope::OrdersRead];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    /// Fifty megabytes take a while to write.
    const OWN_DEADLINE: bool = true;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(
            || page::schema("OrderPage", OrderView::schema()),
            || page::example(example!("order")()),
        )),
        ..docs!("listOrders", "Orders")
    });
    const QUERY: &'static [Parameter] = &[
        page::LIMIT,
        page::AFTER,
        query::FIELDS,
        Parameter::new("status", order_status),
        Parameter::new("placed_after", date_time),
        Parameter::new("updated_after", date_time),
        page::IDS,
    ];

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.query(|query| {
            let mut list = List::new("orders", call.caller.seller, query);
            // In this order: open cursors of the previous release name their list by it.
            let filter = OrderFilter {
                status: list.status(&OrderStatus::ALL, OrderStatus::as_str),
                placed_after: list.date_time("placed_after"),
                updated_after: list.date_time("updated_after"),
            };
            let page = PageRequest::read(list, call);
            Some(Self { filter, page })
        })
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let Self { filter, page } = self;
        let (reader, orders) = (call.caller.reader(), &call.state.orders);
        let reading = async {
            Ok::<_, StoreError>(match &page.ids {
                Some(ids) => Page::whole(orders.orders_by_id(reader, ids).await?),
                None => orders.orders(reader, filter, page.after, page.size).await?,
            })
        };
        let found = call.deadline.run(reading).await??;
        page.reply(&call, &found, OrderView::new).await
    }
}

web::view! {
    /// A seller's part of an order with the selected fields.
    OrderView<'a> of order: &'a SellerOrder, named "Order",
        "The seller's part of an order. If an order has items of several sellers, each sees only its own."
    {
        "id": uuid() => order.id.uuid(),
        "order_number": string().describe("Human-readable number, which paths accept in place of the id.")
            .example("ZAM-1-1001") => order.number.as_str(),
        "status": order_status().describe("The status of the seller's items.") => order.status().as_str(),
        "payment_status": payment_status() => order.payment_status().as_str(),
        "payment_method": string().or_null().describe(MARKETPLACES_TEXT) => order.payment_method,
        "placed_at": date_time() => Timestamp::new(order.placed_at),
        "paid_at": date_time().or_null() => order.paid_at().map(Timestamp::new),
        "shipped_at": date_time().or_null() => order.shipped_at().map(Timestamp::new),
        "delivered_at": date_time().or_null() => order.delivered_at().map(Timestamp::new),
        "delivery_method": string().or_null().describe(MARKETPLACES_TEXT) => order.delivery_method,
        "shipped_by": shipped_by().describe("Whose task the parcel is: the marketplace's if the order has items of several sellers. The marketplace may ship others, too.")
            => if order.several_sellers { "marketplace" } else { "seller" },
        "shipment": ShipmentView::schema().or_null() => order.shipment().map(ShipmentView::whole),
        "buyer": BuyerView::schema().or_null().describe(PERSONAL)
            => shown(order, order.buyer.as_ref()).map(BuyerView::whole),
        "shipping_address": ShippingAddressView::schema().or_null().describe(PERSONAL)
            => shown(order, order.shipping_address.as_ref()).map(ShippingAddressView::whole),
        "delivery_point": DeliveryPointView::schema().or_null().describe(PERSONAL)
            => shown(order, order.delivery_point.as_ref()).map(DeliveryPointView::whole),
        "invoice": InvoiceView::schema().or_null().describe(PERSONAL)
            => shown(order, order.invoice.as_ref()).map(InvoiceView::whole),
        "items": array(OrderItemView::schema()).describe("Only the seller's own items.")
            => order.items.iter().map(|item| OrderItemView::whole((item, order.status()))).collect::<Vec<_>>(),
        "is_test": boolean().describe("True for a test order, which the list has only by `ids`.") => order.is_test,
        "updated_at": date_time().describe("Changes whenever another field does.") => Timestamp::new(order.updated_at),
    }
}

const MARKETPLACES_TEXT: &str = "A text of the marketplace, without a fixed list of values.";

/// The cases in which personal data are withheld.
const PERSONAL: &str = "`null` until the order is paid, so also where it was cancelled unpaid; where the order has none; and after the \
                        buyer's data were erased.";

fn payment_status() -> Node {
    string()
        .one_of(PaymentStatus::ALL.map(PaymentStatus::as_str))
        .named("PaymentStatus")
}

fn shipped_by() -> Node {
    string().one_of(["seller", "marketplace"]).named("ShippedBy")
}

fn tracking_status() -> Node {
    string()
        .one_of(TrackingStatus::ALL.map(TrackingStatus::as_str))
        .describe("The carrier's status, in the same terms for all carriers. Further values may be added.")
        .extensible()
        .named("TrackingStatus")
}

/// The buyer's data is shown only once the order is paid.
fn shown<'a, T>(order: &SellerOrder, personal: Option<&'a T>) -> Option<&'a T> {
    personal.filter(|_| order.shows_buyer())
}

web::view! {
    /// Contract: Order, `shipment`.
    ShipmentView<'a> of shipment: &'a Shipment, named "OrderShipment", "How the order was sent." {
        "carrier": string().or_null().describe("The carrier's brand name.").example("InPost")
            => shipment.carrier.display_name(),
        "carrier_code": carrier_code() => shipment.carrier.as_str(),
        "tracking_number": string() => shipment.tracking_number.as_str(),
        "tracking_url": uri().or_null().describe("The carrier's page about the parcel.")
            => shipment.carrier.tracking_url(&shipment.tracking_number),
        "tracking_status": tracking_status().or_null().describe("`null` until the carrier has answered. Only carriers that the marketplace has configured are asked.")
            => shipment.tracking_status.map(TrackingStatus::as_str),
    }
}
