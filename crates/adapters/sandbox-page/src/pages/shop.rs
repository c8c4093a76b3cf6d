//! The buyer's page: the catalogue of all sellers, a basket, orders.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::{Money, PageSize};
use offers::{OfferFilter, OfferStatus, Stock};
use reqwest::Method;
use serde::Serialize;
use serde_json::json;
use web::form::Form;

use super::trade::{self, Role};
use super::{Card, Frame, Shown, html, unread};
use crate::SandboxPage;
use crate::calls::{Body, By, Call};

/// How many offers of each seller the page shows, and the JSON has.
const SHOWN: i64 = 20;
const LISTED: i64 = 100;

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
    most: i64,
) -> Result<Vec<CatalogueOffer>, String> {
    let mut all = Vec::new();
    for (n, seller) in page.shared.settings.sellers.iter().enumerate() {
        let filter = OfferFilter {
            status,
            ..OfferFilter::default()
        };
        let offers = page
            .offers
            .offers(seller.id, filter, None, PageSize::clamped(most));
        let offers = offers.await;
        let offers = offers.map_err(|error| unread(&error))?.items.into_iter();
        all.extend(offers.map(|offer| CatalogueOffer {
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
pub(crate) async fn shop(page: &SandboxPage, form: &Form) -> Shown {
    let shop = ShopPage {
        frame: page.frame("Buyer", "/sandbox/shop"),
        offers: catalogue(page, Some(OfferStatus::Published), SHOWN).await?,
        curl: place(page, form)
            .keyed(&page.shared.settings)
            .curl(&page.shared.settings),
        orders: trade::latest(page, Role::Buyer).await?,
    };
    Ok(html(StatusCode::OK, &shop))
}

/// `GET /sandbox/api/offers`: the newest offers of all sellers of the sandbox.
pub(crate) async fn offers_json(page: &SandboxPage) -> Shown {
    let offers = catalogue(page, None, LISTED).await?;
    Ok(HttpResponse::Ok().json(json!({ "items": offers })))
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
    let order = json!({
        "payment_method": "blik",
        "delivery_method": if wants("point") { "parcel_locker" } else { "courier" },
        "buyer": { "name": text("name", "Ewa Żak"), "email": text("email", "ewa@poczta.example"), "phone": null },
        "shipping_address": { "line1": "ul. Długa 1", "postal_code": "00-950", "city": "Warszawa", "country": "PL" },
        "delivery_point": wants("point").then(|| json!({ "id": "WAW01M", "city": "Warszawa" })),
        "invoice": wants("invoice").then(|| json!({ "company": "Żak i Syn", "tax_id": "5260250274" })),
        "is_test": wants("test"),
        "items": items.collect::<Vec<_>>(),
    });
    Call::new(By::Office, Method::POST, "/orders", Body::Json(order))
}
