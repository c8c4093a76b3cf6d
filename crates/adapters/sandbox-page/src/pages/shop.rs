//! The buyer's page: the catalogue of all sellers, a basket, orders.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::{Money, PageSize, StoreError};
use offers::{OfferFilter, OfferStatus, Stock};
use orders::{OrderStatus, SellerOrder};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use web::form::Form;

use super::{Card, Frame, Inputs, html, latest_orders, unavailable};
use crate::SandboxPage;
use crate::calls::{Answered, Body, Call};

/// How many offers of each seller the catalogue has.
const OFFERS: i64 = 8;

/// An offer of the catalogue.
#[derive(Serialize)]
struct CatalogueOffer {
    /// The seller's place in the settings.
    #[serde(skip)]
    seller: usize,
    seller_id: String,
    seller_no: i32,
    id: String,
    title: String,
    status: &'static str,
    /// In grosze.
    price: Option<i64>,
    stock: Option<i32>,
}

impl CatalogueOffer {
    fn price(&self) -> String {
        self.price.map_or_else(|| "no price".to_owned(), zloty)
    }

    fn stock(&self) -> String {
        self.stock
            .map_or_else(|| "not counted".to_owned(), |stock| stock.to_string())
    }

    fn is_sold(&self) -> bool {
        self.price.is_some() && self.stock != Some(0)
    }
}

/// An amount in grosze for people.
pub(super) fn zloty(amount: i64) -> String {
    format!("{}.{:02} PLN", amount / 100, amount % 100)
}

async fn catalogue(
    page: &SandboxPage,
    status: Option<OfferStatus>,
) -> Result<Vec<CatalogueOffer>, StoreError> {
    let mut all = Vec::new();
    for (n, seller) in page.shared.settings.sellers.iter().enumerate() {
        let filter = OfferFilter {
            status,
            ..OfferFilter::default()
        };
        let offers = page
            .offers
            .offers(seller.id, filter, None, PageSize::clamped(OFFERS))
            .await?;
        all.extend(offers.items.into_iter().map(|offer| CatalogueOffer {
            seller: n,
            seller_id: offer.seller.to_string(),
            seller_no: seller.seller_no,
            id: offer.id.to_string(),
            title: offer.title,
            status: offer.status.as_str(),
            price: offer.price.map(|price| Money::amount(price.money)),
            stock: offer.stock.map(Stock::get),
        }));
    }
    Ok(all)
}

#[derive(Template)]
#[template(path = "shop.html")]
struct ShopPage {
    frame: Frame,
    offers: Vec<CatalogueOffer>,
    curl: String,
    orders: Vec<Card>,
}

/// `GET /sandbox/shop`.
pub(crate) async fn shop(page: &SandboxPage, form: &Form) -> HttpResponse {
    let read = async {
        let offers = catalogue(page, Some(OfferStatus::Published)).await?;
        Ok::<_, StoreError>((offers, latest_orders(page).await?))
    };
    let (offers, orders) = match read.await {
        Ok(read) => read,
        Err(error) => return unavailable(&error),
    };
    let shop = ShopPage {
        frame: page.frame("Buyer", "/sandbox/shop"),
        curl: place(page, form).curl(&page.shared.settings),
        offers,
        orders: orders.iter().map(|parts| order(page, parts)).collect(),
    };
    html(StatusCode::OK, &shop)
}

/// An order with what its buyer can do.
fn order(page: &SandboxPage, parts: &[SellerOrder]) -> Card {
    let (card, status) = order_card(parts);
    let moves: &[_] = match status {
        Some(OrderStatus::Pending) => &[("Pay", "payment"), ("Cancel", "cancellation")],
        Some(OrderStatus::Processing) => &[("Cancel", "cancellation")],
        _ => &[],
    };
    let button = |(label, step): &(&str, &str)| page.button(label, &order_call(&card.id, step), &[]);
    let buttons = moves.iter().map(button).collect();
    Card { buttons, ..card }
}

/// An order without buttons, and its status.
pub(super) fn order_card(parts: &[SellerOrder]) -> (Card, Option<OrderStatus>) {
    let status = OrderStatus::aggregate(parts.iter().map(SellerOrder::status));
    let first = parts.first();
    let card = Card {
        title: first.map_or_else(String::new, |first| first.number.as_str().to_owned()),
        about: status.map_or("", OrderStatus::as_str).to_owned(),
        lines: parts.iter().flat_map(|part| &part.items).map(item).collect(),
        id: first.map_or_else(String::new, |first| first.id.to_string()),
        buttons: Vec::new(),
    };
    (card, status)
}

/// An item for people.
fn item(item: &orders::OrderItem) -> String {
    format!(
        "{} × {}",
        item.quantity,
        item.title.as_deref().unwrap_or("(without a title)")
    )
}

/// A move of an order by the marketplace.
pub(super) fn order_call(order: &str, step: &str) -> Call {
    Call::by_office(Method::POST, format!("/orders/{order}/{step}"), Body::None)
}

/// `GET /sandbox/api/offers`: all offers of all sellers of the sandbox.
pub(crate) async fn offers_json(page: &SandboxPage) -> HttpResponse {
    match catalogue(page, None).await {
        Ok(offers) => HttpResponse::Ok().json(json!({ "items": offers })),
        Err(error) => unavailable(&error),
    }
}

/// The call that places the order of a basket, if the form is one.
pub(crate) fn basket_call(page: &SandboxPage, form: &Form) -> Option<Call> {
    form.get("basket").map(|_| place(page, form))
}

/// A field `q/<seller>/<offer>` has the quantity of an offer.
fn place(page: &SandboxPage, form: &Form) -> Call {
    let items = form.pairs().filter_map(|(name, quantity)| {
        let (seller, offer) = name.strip_prefix("q/")?.split_once('/')?;
        let seller = page.shared.settings.sellers.get(seller.parse::<usize>().ok()?)?;
        let quantity = quantity.parse::<i64>().ok().filter(|quantity| *quantity > 0)?;
        Some(json!({ "seller_id": seller.id.to_string(), "offer_id": offer, "quantity": quantity }))
    });
    let text = |name, default: &str| form.get(name).unwrap_or(default).to_owned();
    let wants = |name| form.get(name).is_some();
    let address =
        json!({ "line1": "ul. Długa 1", "postal_code": "00-950", "city": "Warszawa", "country": "PL" });
    let mut order = json!({
        "payment_method": "blik",
        "delivery_method": if wants("point") { "parcel_locker" } else { "courier" },
        "buyer": { "name": text("name", "Ewa Żak"), "email": text("email", "ewa@poczta.example"), "phone": null },
        "shipping_address": address,
        "items": items.collect::<Vec<_>>(),
    });
    let more = [
        ("test", "is_test", json!(true)),
        (
            "point",
            "delivery_point",
            json!({ "id": "WAW01M", "city": "Warszawa" }),
        ),
        (
            "invoice",
            "invoice",
            json!({ "company": "Żak i Syn", "tax_id": "5260250274" }),
        ),
    ];
    if let Value::Object(order) = &mut order {
        order.extend(
            more.into_iter()
                .filter(|(name, ..)| wants(name))
                .map(|(_, key, value)| (key.to_owned(), value)),
        );
    }
    Call::by_office(Method::POST, "/orders", Body::Json(order))
}

/// What comes next in a trade, as buttons.
pub(crate) fn after_order(page: &SandboxPage, call: &Call, answer: &Answered) -> Vec<String> {
    let json = answer.json();
    let order = json.get("order_id").and_then(Value::as_str).unwrap_or_default();
    if !answer.is_success() || order.is_empty() {
        return Vec::new();
    }
    if call.path == "/orders" {
        let moves = [("Pay", "payment"), ("Cancel", "cancellation")];
        return moves
            .map(|(label, step)| page.button(label, &order_call(order, step), &[]))
            .into();
    }
    if !call.path.ends_with("/payment") {
        return Vec::new();
    }
    let parts = json.get("parts").and_then(Value::as_array).into_iter().flatten();
    let sellers: Vec<_> = parts.filter_map(|part| part.get("seller_id")?.as_str()).collect();
    match sellers.as_slice() {
        [seller] => seller_ships(page, seller, order).into_iter().collect(),
        _ => vec![marketplace_ships(page, order)],
    }
}

/// The places of a shipment that a person may change.
const PARCEL: Inputs = &[("/carrier", "Carrier"), ("/tracking_number", "Tracking number")];

fn parcel(page: &SandboxPage) -> Body {
    // Carriers know no other parcel of this number.
    let id = page
        .shared
        .settings
        .randomness
        .uuid()
        .simple()
        .to_string()
        .to_uppercase();
    let unique = id.get(24..).unwrap_or_default();
    Body::Json(json!({ "carrier": "inpost", "tracking_number": format!("TRANSIT{unique}") }))
}

/// The button by which a seller of the sandbox ships its order.
pub(super) fn seller_ships(page: &SandboxPage, seller: &str, order: &str) -> Option<String> {
    let mut sellers = page.shared.settings.sellers.iter().enumerate();
    let (n, seller) = sellers.find(|(_, other)| other.id.to_string() == seller)?;
    let path = format!("/v1/orders/{order}/shipments");
    let call = Call::by_seller(n, Method::POST, path, parcel(page));
    Some(page.button(&format!("Ship as seller {}", seller.seller_no), &call, PARCEL))
}

/// The button by which the marketplace ships all parts of an order.
pub(super) fn marketplace_ships(page: &SandboxPage, order: &str) -> String {
    let call = Call {
        body: parcel(page),
        ..order_call(order, "shipment")
    };
    page.button("Ship as the marketplace", &call, PARCEL)
}
