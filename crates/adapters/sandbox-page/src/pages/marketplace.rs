//! The marketplace's page: orders, offers, applications; and the carriers that the sandbox simulates.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::PageSize;
use offers::{Offer, OfferFilter, Stock};
use orders::{OrderStatus, SellerOrder, TrackingStatus};
use reqwest::Method;
use serde_json::{Value, json};
use web::form::Form;

use super::shop::{marketplace_ships, order_call, order_card, seller_ships, zloty};
use super::{Card, Frame, Inputs, html, latest_orders, unavailable};
use crate::calls::{Body, By, Call};
use crate::{SandboxPage, SandboxSeller, Settings};

#[derive(Template)]
#[template(path = "marketplace.html")]
struct MarketplacePage<'a> {
    frame: Frame,
    chosen: usize,
    settings: &'a Settings,
    new_offer: String,
    orders: Vec<Card>,
    offers: Vec<Card>,
    applications: Vec<Card>,
}

/// `GET /sandbox/marketplace`: all orders, and one seller's offers and applications.
pub(crate) async fn marketplace(page: &SandboxPage, form: &Form) -> HttpResponse {
    let settings = &page.shared.settings;
    let (n, Some(seller)) = page.seller(form) else {
        return HttpResponse::NotFound().body("The sandbox has no sellers.\n");
    };
    let offers = page
        .offers
        .offers(seller.id, OfferFilter::default(), None, PageSize::clamped(15))
        .await;
    let (offers, orders) = match (offers, latest_orders(page).await) {
        (Ok(offers), Ok(orders)) => (offers.items, orders),
        (Err(error), _) | (_, Err(error)) => return unavailable(&error),
    };
    let path = format!("/sellers/{}/applications?limit=50", seller.id);
    let applications = match page.shared.calls.read(settings, By::Office, path).await {
        Ok(answer) => answer.json(),
        Err(sentence) => return HttpResponse::BadGateway().body(sentence),
    };
    let items = applications.get("items").and_then(Value::as_array);
    let shown = MarketplacePage {
        frame: page.frame("Marketplace", "/sandbox/marketplace"),
        chosen: n,
        settings,
        new_offer: page.button("Feed a new offer", &new_offer(page, seller), NEW_OFFER),
        orders: orders.iter().map(|parts| order(page, parts)).collect(),
        offers: offers.iter().map(|offer| offer_card(page, n, offer)).collect(),
        applications: items
            .into_iter()
            .flatten()
            .map(|found| application(page, found))
            .collect(),
    };
    html(StatusCode::OK, &shown)
}

const PRICE: (&str, &str) = ("/price/amount", "Price in grosze");
const STOCK: (&str, &str) = ("/stock", "Stock");
const NEW_OFFER: Inputs = &[("/title", "Title"), PRICE, STOCK];

fn new_offer(page: &SandboxPage, seller: &SandboxSeller) -> Call {
    let id = page.shared.settings.randomness.uuid();
    let offer = json!({
        "title": "Teapot", "handle": format!("teapot-{id}"), "status": "published",
        "url": format!("https://shop.example/teapot-{id}"),
        "price": { "amount": 4990, "currency": "PLN" }, "stock": 12,
    });
    Call::by_office(
        Method::PUT,
        format!("/sellers/{}/offers/{id}", seller.id),
        Body::Json(offer),
    )
}

fn order(page: &SandboxPage, parts: &[SellerOrder]) -> Card {
    let (mut card, status) = order_card(parts);
    // The items, and the parcels.
    card.lines.extend(parts.iter().filter_map(|part| {
        let shipment = part.shipment()?;
        let status = shipment.tracking_status;
        let status = status.map_or("not known to the carrier yet", TrackingStatus::as_str);
        let (carrier, number) = (shipment.carrier.display_name(), shipment.tracking_number.as_str());
        Some(format!("Parcel {number} with {carrier}: {status}"))
    }));
    let is_processing = status == Some(OrderStatus::Processing);
    if is_processing {
        if let [part] = parts {
            card.buttons
                .extend(seller_ships(page, &part.seller.to_string(), &card.id));
        }
        card.buttons.push(marketplace_ships(page, &card.id));
    }
    let holds_buyer = parts.iter().any(|part| part.buyer.is_some());
    for (is_possible, label, step) in [
        (
            is_processing || status == Some(OrderStatus::Shipped),
            "Report the delivery",
            "delivery",
        ),
        (holds_buyer, "Erase the buyer", "buyer-erasure"),
    ] {
        if is_possible {
            card.buttons
                .push(page.button(label, &order_call(&card.id, step), &[]));
        }
    }
    card
}

fn offer_card(page: &SandboxPage, n: usize, offer: &Offer) -> Card {
    let path = format!("/sellers/{}/offers/{}", offer.seller, offer.id);
    let post = |what, body| Call::by_office(Method::POST, format!("{path}/{what}"), Body::Json(body));
    let (price, stock) = (
        offer.price.map(|price| price.money.amount()),
        offer.stock.map(Stock::get),
    );
    let amount = json!({ "amount": price.unwrap_or(1_000), "currency": "PLN" });
    let change = Body::Json(json!({ "price": amount, "stock": stock.unwrap_or_default() }));
    let change = Call::by_seller(n, Method::PATCH, format!("/v1/offers/{}", offer.id), change);
    Card {
        title: offer.title.clone(),
        about: offer.status.as_str().to_owned(),
        lines: vec![
            price.map_or_else(|| "no price".to_owned(), zloty),
            stock.map_or_else(
                || "stock not counted".to_owned(),
                |stock| format!("{stock} in stock"),
            ),
        ],
        id: offer.id.to_string(),
        buttons: vec![
            page.button(
                "Approve",
                &post("moderation", json!({ "decision": "approve" })),
                &[],
            ),
            page.button(
                "Reject",
                &post("moderation", json!({ "decision": "reject" })),
                &[],
            ),
            page.button(
                "Reprice",
                &post("automatic-price", json!({ "price": amount })),
                &[PRICE],
            ),
            page.button("Change as its seller", &change, &[PRICE, STOCK]),
        ],
    }
}

fn application(page: &SandboxPage, found: &Value) -> Card {
    let text = |name| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let (client_id, status) = (text("client_id"), text("status"));
    let steps: &[(&str, &str)] = match status {
        "pending" => &[("Accept", "acceptance")],
        "active" => &[("Suspend", "suspension")],
        "suspended" => &[("Reinstate", "reinstatement")],
        _ => &[],
    };
    let button = |(label, step): &(&str, &str)| {
        let call = Call::by_office(
            Method::POST,
            format!("/applications/{client_id}/{step}"),
            Body::None,
        );
        page.button(label, &call, &[])
    };
    Card {
        title: text("name").to_owned(),
        about: status.to_owned(),
        lines: vec![client_id.to_owned()],
        id: client_id.to_owned(),
        buttons: steps.iter().map(button).collect(),
    }
}

/// `POST /sandbox/api/carrier`: what the simulated carriers say of a parcel from now on.
pub(crate) async fn carrier(page: &SandboxPage, form: &Form) -> HttpResponse {
    let field = |name| form.get(name).unwrap_or_default().trim().to_owned();
    let (number, status) = (field("tracking_number"), field("status"));
    match page.shared.settings.parcels.set(&number, &status).await {
        Ok(()) => HttpResponse::Ok()
            .insert_header(("HX-Trigger", "called"))
            .body(format!("Carriers say of {number} from now on: {status}.\n")),
        Err(sentence) => HttpResponse::BadRequest().body(format!("{sentence}\n")),
    }
}
