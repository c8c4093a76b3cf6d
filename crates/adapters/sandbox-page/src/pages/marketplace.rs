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

use super::shop::{item, marketplace_ships, order_call, seller_ships, zloty};
use super::{Frame, html, latest_orders, unavailable, unrendered};
use crate::calls::{Body, By, Call};
use crate::{SandboxPage, SandboxSeller};

/// Something with what can be done to it.
struct Card {
    title: String,
    about: String,
    lines: Vec<String>,
    buttons: Vec<String>,
}

#[derive(Template)]
#[template(path = "marketplace.html")]
struct MarketplacePage {
    frame: Frame,
    /// Number, whether chosen, and seller number.
    sellers: Vec<(usize, bool, i32)>,
    new_offer: String,
    orders: Vec<Card>,
    offers: Vec<Card>,
    applications: Vec<Card>,
    statuses: Vec<&'static str>,
    api: String,
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
    let cards = (|| {
        Ok::<_, askama::Error>(MarketplacePage {
            frame: page.frame("Marketplace", "/sandbox/marketplace"),
            sellers: settings
                .sellers
                .iter()
                .enumerate()
                .map(|(i, other)| (i, i == n, other.seller_no))
                .collect(),
            new_offer: page.button("Feed a new offer", &new_offer(page, seller), &NEW_OFFER)?,
            orders: orders
                .iter()
                .map(|parts| order(page, parts))
                .collect::<Result<_, _>>()?,
            offers: offers
                .iter()
                .map(|offer| offer_card(page, n, offer))
                .collect::<Result<_, _>>()?,
            applications: items
                .into_iter()
                .flatten()
                .map(|found| application(page, found))
                .collect::<Result<_, _>>()?,
            statuses: TrackingStatus::ALL
                .into_iter()
                .map(TrackingStatus::as_str)
                .collect(),
            api: settings.api_url.clone(),
        })
    })();
    match cards {
        Ok(cards) => html(StatusCode::OK, &cards),
        Err(error) => unrendered(&error),
    }
}

const NEW_OFFER: [(&str, &str); 3] = [
    ("/title", "Title"),
    ("/price/amount", "Price in grosze"),
    ("/stock", "Stock"),
];

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

fn order(page: &SandboxPage, parts: &[SellerOrder]) -> Result<Card, askama::Error> {
    let status = OrderStatus::aggregate(parts.iter().map(SellerOrder::status));
    let status = status.map_or("", OrderStatus::as_str);
    let (id, number) = match parts.first() {
        Some(first) => (first.id.to_string(), first.number.as_str().to_owned()),
        None => (String::new(), String::new()),
    };
    let mut buttons = Vec::new();
    if status == "processing" {
        if let [part] = parts {
            buttons.extend(seller_ships(page, &part.seller.to_string(), &id));
        }
        buttons.push(marketplace_ships(page, &id)?);
    }
    if matches!(status, "processing" | "shipped") {
        buttons.push(page.button("Report the delivery", &order_call(&id, "delivery"), &[])?);
    }
    if parts.iter().any(|part| part.buyer.is_some()) {
        buttons.push(page.button("Erase the buyer", &order_call(&id, "buyer-erasure"), &[])?);
    }
    Ok(Card {
        title: number,
        about: status.to_owned(),
        lines: lines(parts),
        buttons,
    })
}

/// The items of an order, and its parcels.
fn lines(parts: &[SellerOrder]) -> Vec<String> {
    let mut lines: Vec<String> = parts.iter().flat_map(|part| &part.items).map(item).collect();
    lines.extend(parts.iter().filter_map(|part| {
        let shipment = part.shipment()?;
        let status = shipment
            .tracking_status
            .map_or("not known to the carrier yet", TrackingStatus::as_str);
        let (carrier, number) = (shipment.carrier.display_name(), shipment.tracking_number.as_str());
        Some(format!("Parcel {number} with {carrier}: {status}"))
    }));
    lines
}

fn offer_card(page: &SandboxPage, n: usize, offer: &Offer) -> Result<Card, askama::Error> {
    let path = format!("/sellers/{}/offers/{}", offer.seller, offer.id);
    let moderate = |decision: &str| {
        let body = Body::Json(json!({ "decision": decision }));
        Call::by_office(Method::POST, format!("{path}/moderation"), body)
    };
    let price = offer.price.map(|price| price.money.amount());
    let amount = json!({ "amount": price.unwrap_or(1_000), "currency": "PLN" });
    let by_engine = Body::Json(json!({ "price": amount }));
    let by_engine = Call::by_office(Method::POST, format!("{path}/automatic-price"), by_engine);
    let stock = offer.stock.map(Stock::get);
    let by_seller = Body::Json(json!({ "price": amount, "stock": stock.unwrap_or_default() }));
    let by_seller = Call::by_seller(n, Method::PATCH, format!("/v1/offers/{}", offer.id), by_seller);
    let amount = [("/price/amount", "Price in grosze")];
    Ok(Card {
        title: offer.title.clone(),
        about: offer.status.as_str().to_owned(),
        lines: vec![
            price.map_or_else(|| "no price".to_owned(), zloty),
            stock.map_or_else(
                || "stock not counted".to_owned(),
                |stock| format!("{stock} in stock"),
            ),
        ],
        buttons: vec![
            page.button("Approve", &moderate("approve"), &[])?,
            page.button("Reject", &moderate("reject"), &[])?,
            page.button("Reprice", &by_engine, &amount)?,
            page.button(
                "Change as its seller",
                &by_seller,
                &[("/price/amount", "Price in grosze"), ("/stock", "Stock")],
            )?,
        ],
    })
}

fn application(page: &SandboxPage, found: &Value) -> Result<Card, askama::Error> {
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
    Ok(Card {
        title: text("name").to_owned(),
        about: status.to_owned(),
        lines: vec![client_id.to_owned()],
        buttons: steps.iter().map(button).collect::<Result<_, _>>()?,
    })
}

/// `POST /sandbox/api/carrier`: what the simulated carriers say of a parcel from now on.
pub(crate) async fn carrier(page: &SandboxPage, form: &Form) -> HttpResponse {
    let field = |name| form.get(name).unwrap_or_default().trim().to_owned();
    let (number, status) = (field("tracking_number"), field("status"));
    match page.shared.settings.parcels.set(&number, &status).await {
        Ok(()) => HttpResponse::Ok().body(format!("Carriers say of {number} from now on: {status}.\n")),
        Err(sentence) => HttpResponse::BadRequest().body(format!("{sentence}\n")),
    }
}
