//! The marketplace's page: orders, offers, applications; and the carriers that the sandbox simulates.

use actix_web::HttpResponse;
use askama::Template;
use oauth::{Application, ApplicationStatus};
use offers::{Offer, Stock};
use orders::{TrackingNumber, TrackingStatus};
use reqwest::Method;
use serde_json::{Value, json};
use web::form::Form;

use super::shop;
use super::trade::{self, Role};
use super::{Card, Frame, Input, Shown, html, unread};
use crate::calls::{By, Call};
use crate::{SandboxPage, SandboxSeller, Settings};

#[derive(Template)]
#[template(path = "marketplace.html")]
struct MarketplacePage<'a> {
    frame: Frame,
    chosen: usize,
    settings: &'a Settings,
    carrier: String,
    new_offer: String,
    orders: Vec<Card>,
    offers: Vec<Card>,
    applications: Vec<Card>,
}

/// `GET /sandbox/marketplace`: all orders, and one seller's offers and applications.
pub(crate) async fn marketplace(page: &SandboxPage, form: &Form) -> Shown {
    let (n, seller) = page.seller(form)?;
    let offers = shop::newest(page, seller, None).await?.into_iter().take(15);
    let directory = &page.settings.applications;
    let applications = directory.applications_at(seller.id, None, 50).await;
    let applications = applications.map_err(|error| unread(&error))?.into_iter();
    let shown = MarketplacePage {
        frame: page.frame("Marketplace"),
        chosen: n,
        settings: &page.settings,
        carrier: trade::carriers_say(page, "TRANSIT0001"),
        new_offer: page.button("Feed a new offer", new_offer(page, seller), NEW_OFFER),
        orders: trade::latest(page, Role::Marketplace).await?,
        offers: offers.map(|offer| offer_card(page, n, seller, offer)).collect(),
        applications: applications
            .map(|listed| application(page, listed.application))
            .collect(),
    };
    Ok(html(&shown))
}

const PRICE: Input<'static> = ("/price/amount", "Price in grosze", &[]);
const STOCK: Input<'static> = ("/stock", "Stock", &[]);
const NEW_OFFER: &[Input<'static>] = &[("/title", "Title", &[]), PRICE, STOCK];

fn new_offer(page: &SandboxPage, seller: &SandboxSeller) -> Call {
    let id = page.settings.randomness.uuid();
    let offer = json!({
        "title": "Teapot", "handle": format!("teapot-{id}"), "status": "published",
        "url": format!("https://shop.example/teapot-{id}"),
        "price": { "amount": 4990, "currency": "PLN" }, "stock": 12,
    });
    let path = format!("/sellers/{}/offers/{id}", seller.id);
    Call::new(By::Office, Method::PUT, path, offer)
}

fn offer_card(page: &SandboxPage, n: usize, seller: &SandboxSeller, offer: Offer) -> Card {
    let path = format!("/sellers/{}/offers/{}", offer.seller, offer.id);
    let post = |label, what, body, inputs| {
        let call = Call::new(By::Office, Method::POST, format!("{path}/{what}"), body);
        page.button(label, call, inputs)
    };
    let decision = |label, decision| post(label, "moderation", json!({ "decision": decision }), &[]);
    let stock = offer.stock.map(Stock::get);
    let price = json!({ "amount": shop::amount(&offer).unwrap_or(1_000), "currency": "PLN" });
    // An offer whose stock is not counted takes none.
    let (change, changed): (_, &[Input<'_>]) = match stock {
        Some(stock) => (json!({ "price": price, "stock": stock }), &[PRICE, STOCK]),
        None => (json!({ "price": price }), &[PRICE]),
    };
    let path = format!("/v1/offers/{}", offer.id);
    let change = Call::new(By::Seller(n), Method::PATCH, path, change);
    let change = page.button("Change as its seller", change, changed);
    let mut buttons = vec![
        decision("Approve", "approve"),
        decision("Reject", "reject"),
        post("Reprice", "automatic-price", json!({ "price": price }), &[PRICE]),
    ];
    buttons.extend(Some(change).filter(|_| !seller.personal_token.is_empty()));
    Card {
        about: offer.status.as_str().to_owned(),
        lines: vec![
            shop::price(&offer),
            stock.map_or_else(
                || "stock not counted".to_owned(),
                |stock| format!("{stock} in stock"),
            ),
        ],
        id: offer.id.to_string(),
        buttons,
        title: offer.title,
    }
}

fn application(page: &SandboxPage, found: Application) -> Card {
    let (label, step) = match found.status {
        ApplicationStatus::Pending => ("Accept", "acceptance"),
        ApplicationStatus::Active => ("Suspend", "suspension"),
        ApplicationStatus::Suspended => ("Reinstate", "reinstatement"),
    };
    let id = found.client_id.to_string();
    let path = format!("/applications/{id}/{step}");
    let call = Call::new(By::Office, Method::POST, path, Value::Null);
    Card {
        buttons: vec![page.button(label, call, &[])],
        title: found.name,
        about: found.status.as_str().to_owned(),
        lines: vec![id.clone()],
        id,
    }
}

/// `POST /sandbox/api/carrier`: what the simulated carriers say of a parcel from now on.
pub(crate) async fn carrier(page: &SandboxPage, form: &Form) -> Shown {
    let field = |name| form.get(name).unwrap_or_default().trim();
    let (number, status) = (field("tracking_number"), field("status"));
    let parcel = TrackingNumber::new(number.to_owned());
    Ok(match (parcel, TrackingStatus::parse(status)) {
        (Err(invalid), _) => HttpResponse::BadRequest().body(format!("The tracking number {invalid}.\n")),
        (_, None) => {
            HttpResponse::BadRequest().body("Carriers know no such status: choose one of the list.\n")
        }
        (Ok(parcel), Some(set)) => {
            let set = (page.settings.set_parcel)(parcel, set).await;
            set.map_err(|error| {
                unread(&error);
                "It is set, but the database does not answer now: carriers are asked at the next look-up."
            })?;
            HttpResponse::Ok().body(format!("Carriers say of {number} from now on: {status}.\n"))
        }
    })
}
