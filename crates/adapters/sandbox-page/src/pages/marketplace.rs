//! The marketplace's page: orders, offers, applications; and the carriers that the sandbox simulates.

use actix_web::HttpResponse;
use askama::Template;
use kernel::PageSize;
use oauth::{Application, ApplicationStatus};
use offers::{Offer, OfferFilter, Stock};
use orders::TrackingStatus;
use reqwest::Method;
use serde_json::json;
use web::form::Form;

use super::shop;
use super::trade::{self, Role};
use super::{Card, Frame, Inputs, Shown, html, unread};
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
pub(crate) async fn marketplace(page: &SandboxPage, form: &Form) -> Shown {
    let (n, Some(seller)) = page.seller(form) else {
        return Err("The sandbox has no sellers.".to_owned());
    };
    let (filter, most) = (OfferFilter::default(), PageSize::clamped(15));
    let offers = page.settings.offers.offers(seller.id, filter, None, most).await;
    let offers = offers.map_err(|error| unread(&error))?.items.into_iter();
    let directory = &page.settings.applications;
    let applications = directory.applications_at(seller.id, None, 50).await;
    let applications = applications.map_err(|error| unread(&error))?.into_iter();
    let shown = MarketplacePage {
        frame: page.frame("Marketplace"),
        chosen: n,
        settings: &page.settings,
        new_offer: page.button("Feed a new offer", new_offer(page, seller), NEW_OFFER),
        orders: trade::latest(page, Role::Marketplace).await?,
        offers: offers.map(|offer| offer_card(page, n, offer)).collect(),
        applications: applications
            .map(|listed| application(page, listed.application))
            .collect(),
    };
    Ok(html(&shown))
}

const PRICE: (&str, &str) = ("/price/amount", "Price in grosze");
const STOCK: (&str, &str) = ("/stock", "Stock");
const NEW_OFFER: Inputs = &[("/title", "Title"), PRICE, STOCK];

fn new_offer(page: &SandboxPage, seller: &SandboxSeller) -> Call {
    let id = page.settings.randomness.uuid();
    let offer = json!({
        "title": "Teapot", "handle": format!("teapot-{id}"), "status": "published",
        "url": format!("https://shop.example/teapot-{id}"),
        "price": { "amount": 4990, "currency": "PLN" }, "stock": 12,
    });
    let path = format!("/sellers/{}/offers/{id}", seller.id);
    Call::new(By::Office, Method::PUT, path, Body::Json(offer))
}

fn offer_card(page: &SandboxPage, n: usize, offer: Offer) -> Card {
    let path = format!("/sellers/{}/offers/{}", offer.seller, offer.id);
    let post = |label, what, body, inputs| {
        let call = Call::new(
            By::Office,
            Method::POST,
            format!("{path}/{what}"),
            Body::Json(body),
        );
        page.button(label, call, inputs)
    };
    let decision = |label, decision| post(label, "moderation", json!({ "decision": decision }), &[]);
    let stock = offer.stock.map(Stock::get);
    let price = json!({ "amount": shop::amount(&offer).unwrap_or(1_000), "currency": "PLN" });
    // An offer whose stock is not counted takes none.
    let (change, changed): (_, Inputs) = match stock {
        Some(stock) => (json!({ "price": price, "stock": stock }), &[PRICE, STOCK]),
        None => (json!({ "price": price }), &[PRICE]),
    };
    let path = format!("/v1/offers/{}", offer.id);
    let change = Call::new(By::Seller(n), Method::PATCH, path, Body::Json(change));
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
        buttons: vec![
            decision("Approve", "approve"),
            decision("Reject", "reject"),
            post("Reprice", "automatic-price", json!({ "price": price }), &[PRICE]),
            page.button("Change as its seller", change, changed),
        ],
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
    let call = Call::new(
        By::Office,
        Method::POST,
        format!("/applications/{id}/{step}"),
        Body::None,
    );
    Card {
        buttons: vec![page.button(label, call, &[])],
        title: found.name,
        about: found.status.as_str().to_owned(),
        lines: vec![id.clone()],
        id,
    }
}

/// `POST /sandbox/api/carrier`: what the simulated carriers say of a parcel from now on.
pub(crate) async fn carrier(page: &SandboxPage, form: &Form) -> HttpResponse {
    let field = |name| form.get(name).unwrap_or_default().trim().to_owned();
    let (number, status) = (field("tracking_number"), field("status"));
    match page.settings.parcels.set(&number, &status).await {
        Ok(()) => HttpResponse::Ok()
            .insert_header(("HX-Trigger", "called"))
            .body(format!("Carriers say of {number} from now on: {status}.\n")),
        Err(sentence) => HttpResponse::BadRequest().body(format!("{sentence}\n")),
    }
}
