//! Operations on orders as one seller sees them: read, list.

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use orders::{
    OrderFilter, OrderItem, OrderRef, OrderStatus, Parcel, PaymentStatus, SellerOrder, TrackingStatus,
};
use uuid::Uuid;
use web::money::MoneyView;
use web::openapi::{Docs, Parameter};
use web::operation::{Call, Incoming, Operation, Read};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, boolean, date_time, integer, object, string, uri, uuid};
use web::timestamps::Timestamp;
use web::{Error, Problem, Violations};

use crate::Public;
use crate::page::{self, List, PageRequest};
use crate::view::{example, examples, part, prose, view};

/// Reads the seller's part of an order by id or number, including test orders.
pub(crate) struct ReadOrder {
    order: OrderRef,
    fields: Selection,
}

impl Operation<Public> for ReadOrder {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/orders/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new("getOrder", "Orders", prose!("getOrder"))
            .about("The order's id, or its number.", examples::ORDER)
            .answers(StatusCode::OK, OrderView::schema, example!("order")),
    );

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS))?;
        let order = incoming.id(0);
        Ok(order.map(|order| Self { order, fields }))
    }
}

impl Read<Public> for ReadOrder {
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let order = call.state.orders.order(call.caller.seller, &self.order).await?;
        let order = order.ok_or_else(Problem::not_found)?;
        Reply::ok(&OrderView::new(&order, self.fields))
    }
}

/// Lists a page of the seller's orders, newest first, without test orders.
pub(crate) struct ListOrders {
    filter: OrderFilter,
    page: PageRequest,
}

impl Operation<Public> for ListOrders {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/orders";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const QUERY: &'static [Parameter] = &[
        page::LIMIT,
        page::AFTER,
        page::FIELDS,
        Parameter::new("status", status),
        Parameter::new("placed_after", date_time),
        Parameter::new("updated_after", date_time),
    ];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    const DOCS: Option<&'static Docs> =
        Some(&Docs::new("listOrders", "Orders", prose!("listOrders")).answers(
            StatusCode::OK,
            || page::schema("OrderPage", OrderView::schema()),
            || page::example(example!("order")()),
        ));

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.query(Self::QUERY, |query| {
            let filter = OrderFilter {
                status: query.one_of("status", &OrderStatus::ALL, OrderStatus::as_str),
                placed_after: query.date_time("placed_after"),
                updated_after: query.date_time("updated_after"),
            };
            let list = List::orders(call.caller.seller, &filter);
            let page = PageRequest::read(query, call, &list, Self::FIELDS);
            Some(Self { filter, page })
        })
    }
}

impl Read<Public> for ListOrders {
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let Self { filter, page } = self;
        let seller = call.caller.seller;
        let orders = &call.state.orders;
        let found = orders.orders(seller, filter, page.after, page.size).await?;
        let list = List::orders(seller, &filter);
        page::reply(&call, &found, &list, OrderView::new, page.fields, 1536)
    }
}

view! {
    /// A seller's part of an order with the selected fields.
    OrderView of order: SellerOrder, named "Order",
        "The seller's part of an order. If an order has items of several sellers, each sees only its own."
    {
        "id": uuid() => order.id.uuid(),
        "order_number": string().describe("The number that people use for the order. Paths accept it in place of the id.")
            .example("ZAM-1-1001") => order.number.as_str(),
        "status": status().describe("That of the seller's items.") => order.status().as_str(),
        "payment_status": payment_status() => order.payment_status().as_str(),
        "payment_method": string().or_null() => order.payment_method,
        "placed_at": date_time() => Timestamp::new(order.placed_at),
        "paid_at": date_time().or_null() => order.paid_at().map(Timestamp::new),
        "shipped_at": date_time().or_null() => order.shipped_at().map(Timestamp::new),
        "delivered_at": date_time().or_null() => order.delivered_at().map(Timestamp::new),
        "delivery_method": string().or_null() => order.delivery_method,
        "shipment": ParcelView::schema().or_null() => order.parcel().map(ParcelView::of),
        "buyer": buyer().or_null().describe(PERSONAL) => shown(order, order.buyer.as_ref()),
        "shipping_address": address().or_null().describe(PERSONAL) => shown(order, order.shipping_address.as_ref()),
        "items": array(ItemView::schema()).describe("Only the seller's own items.")
            => order.items.iter().map(|item| ItemView::of(item, order.status())).collect::<Vec<_>>(),
        "is_test": boolean().describe("Test orders are in no list.") => order.is_test,
        "updated_at": date_time().describe("Moves with every other field.") => Timestamp::new(order.updated_at),
    }
}

/// The cases in which personal data are withheld.
const PERSONAL: &str = "`null` until the order is paid, so also where it was cancelled unpaid; where the order has none; and after the \
                        buyer's data were erased.";

fn status() -> Node {
    string()
        .one_of(OrderStatus::ALL.map(OrderStatus::as_str))
        .describe("`pending` is not paid, `processing` is paid and to be shipped.")
        .named("OrderStatus")
}

fn payment_status() -> Node {
    string()
        .one_of(PaymentStatus::ALL.map(PaymentStatus::as_str))
        .named("PaymentStatus")
}

fn tracking_status() -> Node {
    string()
        .one_of(TrackingStatus::ALL.map(TrackingStatus::as_str))
        .describe("What the carrier says, in one word for all carriers. Further words may be added.")
        .extensible()
        .named("TrackingStatus")
}

/// The buyer's data is shown only once the order is paid.
fn shown<'a, T>(order: &SellerOrder, personal: Option<&'a T>) -> Option<&'a T> {
    personal.filter(|_| order.shows_buyer())
}

part! {
    /// Contract: Order, `shipment`.
    ParcelView<'a>, named "OrderShipment", "How the order was sent." {
        carrier: Option<&'static str> = string().or_null().describe("The carrier's name as people know it.").example("InPost"),
        tracking_number: &'a str = string(),
        tracking_url: Option<String> = uri().or_null().describe("The carrier's page about the parcel."),
        tracking_status: Option<&'static str> = tracking_status().or_null().describe("`null` until the carrier has answered; it is asked only where the marketplace has configured it."),
    }
}

impl<'a> ParcelView<'a> {
    fn of(parcel: &'a Parcel) -> Self {
        Self {
            carrier: Some(parcel.carrier.display_name()),
            tracking_number: parcel.tracking_number.as_str(),
            tracking_url: parcel.carrier.tracking_url(&parcel.tracking_number),
            tracking_status: parcel.tracking_status.map(TrackingStatus::as_str),
        }
    }
}

/// The schema of [`orders::Buyer`].
fn buyer() -> Node {
    let members = ["name", "email", "phone"].map(|name| (name, string().or_null()));
    object(&members)
        .describe("Who bought. Personal data.")
        .named("Buyer")
}

/// The schema of [`orders::ShippingAddress`].
fn address() -> Node {
    object(&[
        ("line1", string().or_null()),
        ("line2", string().or_null()),
        ("postal_code", string().or_null()),
        ("city", string().or_null()),
        ("country", string().example("PL")),
    ])
    .describe("Where the parcel goes. Personal data.")
    .named("ShippingAddress")
}

part! {
    /// Contract: `OrderItem`.
    ItemView<'a>, named "OrderItem", "A line of an order." {
        id: Uuid = uuid().describe("At present that of the offer."),
        offer_id: Uuid = uuid(),
        title: Option<&'a str> = string().or_null(),
        handle: Option<&'a str> = string().or_null(),
        sku: Option<&'a str> = string().or_null(),
        quantity: i32 = integer(1, i32::MAX.into()),
        unit_price: Option<MoneyView> = MoneyView::schema().or_null(),
        fulfillment_status: &'static str = status().describe("At present that of the order, since an order is shipped as a whole."),
    }
}

impl<'a> ItemView<'a> {
    /// An item with the status of its order, because an order is shipped as a whole.
    fn of(item: &'a OrderItem, status: OrderStatus) -> Self {
        Self {
            id: item.offer.uuid(),
            offer_id: item.offer.uuid(),
            title: item.title.as_deref(),
            handle: item.handle.as_deref(),
            sku: item.sku.as_deref(),
            quantity: item.quantity,
            unit_price: item.unit_price.map(MoneyView::from),
            fulfillment_status: status.as_str(),
        }
    }
}
