//! Orders, and the calls that move them on.

use std::collections::BTreeSet;

use kernel::PageSize;
use orders::{OrderFilter, OrderItem, OrderStatus, SellerOrder, TrackingStatus};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Card, Input, unread};
use crate::SandboxPage;
use crate::calls::{Answered, By, Call, text};

/// The most orders that are shown.
const LATEST: i64 = 12;
const NUMBER: Input<'static> = ("/tracking_number", "Tracking number", &[]);
/// The places of a shipment that a person may change.
const PARCEL: &[Input<'static>] = &[("/carrier", "Carrier", &[]), NUMBER];

/// Who sees an order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Buyer,
    Marketplace,
}

/// The latest orders of all sellers, newest first, with what can be done to each.
pub(super) async fn latest(page: &SandboxPage, role: Role) -> Result<Vec<Card>, String> {
    let mut all: Vec<Vec<SellerOrder>> = Vec::new();
    for seller in &page.settings.sellers {
        let (filter, most) = (OrderFilter::default(), PageSize::clamped(LATEST));
        let orders = page.settings.orders.orders(seller.id, filter, None, most).await;
        for part in orders.map_err(|error| unread(&error))?.items {
            // One order's parts stand together.
            let is_same = |parts: &&mut Vec<SellerOrder>| parts.iter().any(|other| other.id == part.id);
            match all.iter_mut().find(is_same) {
                Some(parts) => parts.push(part),
                None => all.push(vec![part]),
            }
        }
    }
    all.sort_by_key(|parts| std::cmp::Reverse(parts.first().map(|part| part.placed_at)));
    all.truncate(usize::try_from(LATEST).unwrap_or_default());
    Ok(all.iter().filter_map(|parts| card(page, role, parts)).collect())
}

fn card(page: &SandboxPage, role: Role, parts: &[SellerOrder]) -> Option<Card> {
    let first = parts.first()?;
    let (id, status) = (
        first.id.to_string(),
        OrderStatus::aggregate(parts.iter().map(SellerOrder::status))?,
    );
    let sellers: Vec<_> = parts.iter().map(|part| part.seller.to_string()).collect();
    // One parcel may have several sellers' parts.
    let parcels: BTreeSet<_> = parts
        .iter()
        .filter_map(parcel)
        .filter(|_| role == Role::Marketplace)
        .collect();
    let mut buttons = buttons(page, role, &id, status, &sellers);
    if (role, status) == (Role::Marketplace, OrderStatus::Shipped) {
        let parcels = parts.iter().filter_map(SellerOrder::shipment);
        let numbers: BTreeSet<_> = parcels.map(|parcel| parcel.tracking_number.as_str()).collect();
        buttons.extend(numbers.into_iter().map(|number| carriers_say(page, number)));
    }
    Some(Card {
        title: first.number.as_str().to_owned(),
        about: status.as_str().to_owned(),
        lines: parts
            .iter()
            .flat_map(|part| &part.items)
            .map(item)
            .chain(parcels)
            .collect(),
        buttons,
        id,
    })
}

/// An item for people.
fn item(item: &OrderItem) -> String {
    let title = item.title.as_deref().unwrap_or("(without a title)");
    format!("{} × {title}", item.quantity)
}

/// A parcel for people.
fn parcel(part: &SellerOrder) -> Option<String> {
    let shipment = part.shipment()?;
    let status = shipment.tracking_status;
    let status = status.map_or("not known to the carrier yet", TrackingStatus::as_str);
    let (carrier, number) = (shipment.carrier.display_name(), shipment.tracking_number.as_str());
    Some(format!("Parcel {number} with {carrier}: {status}"))
}

/// What can be done to an order with parts of these sellers.
fn buttons(
    page: &SandboxPage,
    role: Role,
    order: &str,
    status: OrderStatus,
    sellers: &[String],
) -> Vec<String> {
    let step = |label, step| {
        let path = format!("/orders/{order}/{step}");
        page.button(label, Call::new(By::Office, Method::POST, path, Value::Null), &[])
    };
    let ships = |label: &str, by, path| {
        page.button(label, Call::new(by, Method::POST, path, new_parcel(page)), PARCEL)
    };
    let marketplace = || {
        let by_seller = match sellers {
            [seller] => page.seller_with(seller),
            _ => None,
        };
        let by_seller = by_seller.map(|(n, seller)| {
            let label = format!("Ship as seller {}", seller.seller_no);
            ships(&label, By::Seller(n), format!("/v1/orders/{order}/shipments"))
        });
        let all = ships(
            "Ship as the marketplace",
            By::Office,
            format!("/orders/{order}/shipment"),
        );
        by_seller.into_iter().chain([all])
    };
    let mut buttons = Vec::new();
    match (role, status) {
        (Role::Buyer, OrderStatus::Pending) => {
            buttons.extend([step("Pay", "payment"), step("Cancel", "cancellation")]);
        }
        (Role::Buyer, OrderStatus::Processing) => buttons.push(step("Cancel", "cancellation")),
        (Role::Marketplace, OrderStatus::Processing) => buttons.extend(marketplace()),
        _ => {}
    }
    if role == Role::Marketplace {
        if matches!(status, OrderStatus::Processing | OrderStatus::Shipped) {
            buttons.push(step("Report the delivery", "delivery"));
        }
        buttons.push(step("Erase the buyer", "buyer-erasure"));
    }
    buttons
}

fn new_parcel(page: &SandboxPage) -> Value {
    // Carriers know no other parcel of this number.
    let id = page.settings.randomness.uuid().simple().to_string();
    let unique = id.get(24..).unwrap_or_default().to_uppercase();
    json!({ "carrier": "inpost", "tracking_number": format!("TRANSIT{unique}") })
}

/// Sets what the carriers say of a parcel.
pub(super) fn carriers_say(page: &SandboxPage, number: &str) -> String {
    let statuses = TrackingStatus::ALL.map(TrackingStatus::as_str);
    let form = json!({ "token": page.form_token, "tracking_number": number, "status": "delivered" });
    let call = Call::new(By::Page, Method::POST, "/sandbox/api/carrier", form);
    page.button("Set", call, &[NUMBER, ("/status", "Carriers say", &statuses)])
}

/// What comes next in a trade after this answer.
pub(super) fn after(page: &SandboxPage, call: &Call, answer: &Answered) -> Vec<String> {
    let json = answer.json();
    let order = text(&json, "order_id");
    let (role, status) = match call.path.rsplit('/').next() {
        _ if order.is_empty() || !answer.is_success() => return Vec::new(),
        Some("orders") => (Role::Buyer, OrderStatus::Pending),
        Some("payment") => (Role::Marketplace, OrderStatus::Processing),
        Some("shipment" | "shipments") => (Role::Marketplace, OrderStatus::Shipped),
        _ => return Vec::new(),
    };
    let parts = json.get("parts").and_then(Value::as_array).into_iter().flatten();
    let sellers: Vec<_> = parts.map(|part| text(part, "seller_id").to_owned()).collect();
    buttons(page, role, order, status, &sellers)
}
